"""Check a net or a solver without training.

  layrubnet check net.prototxt
  layrubnet check solver.prototxt          its train net and its test nets
  layrubnet check net.prototxt --no-data   without running a batch
  layrubnet check net.prototxt --json      the result for programs
  layrubnet check --layers                 the known layer types

Reads the files, computes all shapes, parameters and the memory, and runs one
batch of data. Ends with status 0 if all is right, 1 at the first mistake.
"""

from __future__ import annotations

import argparse
import json
import textwrap
from pathlib import Path
from typing import Any

import numpy as np

from layrubnet.cli import common
from layrubnet.engine.layer import layer_types
from layrubnet.engine.net import CompiledNet
from layrubnet.engine.program import Instruction
from layrubnet.engine.updates import UpdateRule
from layrubnet.errors import LayrubError
from layrubnet.memory.options import MemoryOptions, solver_memory
from layrubnet.observe.finite import FiniteCheck
from layrubnet.proto import phase_name
from layrubnet.prototxt.solver_nets import NetSource, solver_test_nets, solver_train_net
from layrubnet.prototxt.text import read_solver
from layrubnet.solvers.limits import check_max_iter
from layrubnet.solvers.nets import places, test_memory, train_memory
from layrubnet.solvers.policies import check_policy
from layrubnet.solvers.rules import make_rule

NAME = "check"
ALIASES: list[str] = []
_GLUE = "\u00a0"
"""A blank at which no line is broken."""
USAGE = "layrubnet check NET_OR_SOLVER [options]"
HELP = "check a net or solver: syntax, shapes, sharing, memory, one batch of data"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", metavar="NET_OR_SOLVER", help="the prototxt to check")
    parser.add_argument("-model", "--model", metavar="NET", help="the same, Caffe's spelling")
    parser.add_argument("-solver", "--solver", metavar="SOLVER", help="likewise for a solver")
    common.add_phase_flag(
        parser, None, "check a net file in this phase only (every phase it has layers for)"
    )
    parser.add_argument("--no-data", action="store_true", help="do not run the first batch")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--layers", action="store_true", help="list the known layer types and end")
    common.add_state_flags(parser)
    common.add_device_flags(parser)


def run(args: argparse.Namespace) -> int:
    if args.layers:
        print("\n".join(layer_types()))
        return 0
    given = {path for path in (args.file, args.model, args.solver) if path}
    if len(given) != 1:
        raise LayrubError(
            "which file?" if not given else "several files given",
            expected="one file",
            got=" and ".join(sorted(given)) or "none",
            hint="layrubnet check net.prototxt",
        )
    path = given.pop()
    device = common.chosen_device(args)
    reports = []
    for source, rule, memory in _sources(path, args):
        report = _check(source, rule, memory, device, not args.no_data)
        reports.append(report)
        if not args.json:
            _print(report)
    if args.json:
        print(json.dumps(reports, indent=1))
    else:
        print("everything is all right")
    return 0


def _sources(
    path: str, args: argparse.Namespace
) -> list[tuple[NetSource, UpdateRule | None, MemoryOptions]]:
    """The nets to check, each with the rule that will train it (or None) and its memory plan."""
    if not common.is_net_file(path):
        unknown = args.allow_unknown_fields
        solver = read_solver(Path(path), allow_unknown=unknown)
        check_policy(solver)
        rule = make_rule(solver)
        check_max_iter(solver)
        asked = solver_memory(solver)
        train = solver_train_net(solver, path, allow_unknown=unknown).filtered()
        tests = [t.filtered() for t in solver_test_nets(solver, path, allow_unknown=unknown)]
        return [
            (train, rule, train_memory(asked, train)),
            *((test, None, test_memory(asked, test)) for test in tests),
        ]
    stages = common.split_list(args.stage)
    sources = []
    problems = []
    for phase in (args.phase,) if args.phase else ("TRAIN", "TEST"):
        try:
            sources.append(
                common.load_net(path, phase, args.level, stages, args.allow_unknown_fields)
            )
        except LayrubError as error:
            problems.append(error)
    if not sources:
        raise problems[0]
    if len(sources) == 2 and sources[0].net == sources[1].net:
        sources = sources[:1]  # no phase rules: once is enough
    plans = {"TRAIN": train_memory, "TEST": test_memory}
    return [
        (source, None, plans[phase_name(source.phase)](None, source))
        for source in sources
        if len(source.net.layer)
    ]


def _check(
    source: NetSource, rule: UpdateRule | None, memory: MemoryOptions, device: str, data: bool
) -> dict[str, Any]:
    phase = phase_name(source.phase)
    net = CompiledNet(
        source.net,
        phase,
        device=device,
        rule=rule,
        train=phase == "TRAIN",
        where=places(source),
        memory=memory,
    )
    try:
        if rule is not None:
            common.check_loss(net)
        batch = _first_batch(net) if data else []
        written = {layer.name for layer in source.net.layer}
        return {
            "net": source.name,
            "phase": phase,
            "layers": [_layer_row(net, node, written) for node in net.graph.nodes],
            "parameters": common.parameter_count(net),
            "shared": [
                {"name": p.shared_name, "layers": [user for user, _ in p.users]}
                for p in net.graph.params
                if len(p.users) > 1
            ],
            "batch_size": common.batch_size(net),
            "memory_strategy": net.plan.strategy,
            "memory_bytes": net.plan.nbytes,
            "memory_by_kind": _memory(net),
            "first_batch": batch,
        }
    finally:
        net.close()


def _layer_row(net: CompiledNet, node: Any, written: set[str]) -> dict[str, Any]:
    return {
        "name": node.name,
        "type": node.layer.type,
        "tops": {v.name: list(v.type.shape) for v in node.tops},
        "blobs": [list(decl.shape) for decl in node.contract.blobs],
        "backward": node.needs_backward,
        "automatic": node.layer.type == "Split" and node.name not in written,
    }


def _memory(net: CompiledNet) -> dict[str, int]:
    """Bytes by kind. What a plan lets share one place is one kind, ``arena``."""
    plan = net.plan
    kinds: dict[str, int] = {"scratch": plan.scratch_bytes}
    if not plan.keeps_everything:
        kinds["arena"] = plan.arena_bytes
    for buffer in net.program.buffers.values():
        if plan.keeps_everything or buffer.persistent:
            kinds[buffer.kind] = kinds.get(buffer.kind, 0) + buffer.nbytes
    return kinds


def _first_batch(net: CompiledNet) -> list[dict[str, Any]]:
    """Run forward once; describe what the data layers gave."""
    nodes = {node.name: node for node in net.data_nodes()}
    if not nodes:
        return []
    finite = FiniteCheck(net, 0)
    rows = []

    def look(instruction: Instruction) -> None:
        finite(instruction)
        if instruction.op != "load":
            return
        # Now: a plan may soon use the memory of a batch again.
        tops = zip(nodes[instruction.target].tops, instruction.slots["y"], strict=True)
        for value, operand in tops:
            if operand is not None:
                array = net.device.download(net.executor.array(operand))
                rows.append(
                    {
                        "blob": value.name,
                        "shape": list(array.shape),
                        "min": float(array.min()),
                        "max": float(array.max()),
                        "mean": float(array.mean()),
                    }
                )

    with np.errstate(all="ignore"):  # FiniteCheck explains it better
        net.forward(hook=look)
    return rows


def _print(report: dict[str, Any]) -> None:
    print(f"net {report['net']!r}, phase {report['phase']}")
    rows: list[tuple[str, ...]] = [("layer", "type", "tops", "blobs", "backward")]
    for layer in report["layers"]:
        if not layer["automatic"]:
            rows += _text_rows(layer)
    if report["phase"] == "TEST":
        rows = [row[:-1] for row in rows]  # nobody trains there
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        print("  " + "  ".join(cells).rstrip())
    for shared in report["shared"]:
        _wrapped(f"shared parameter {shared['name']!r}: {', '.join(shared['layers'])}")
    for row in report["first_batch"]:
        _wrapped(
            f"first batch: {row['blob']} {_shape(row['shape'])}, "
            f"from {row['min']:.4g} to {row['max']:.4g}, mean {row['mean']:.4g}"
        )
    parts = ", ".join(
        f"{kind} {common.megabytes(size)}".replace(" ", _GLUE)
        for kind, size in sorted(report["memory_by_kind"].items(), key=lambda item: -item[1])
    )
    batch = f"batch size {report['batch_size']}, " if report["batch_size"] else ""
    _wrapped(f"{batch}{report['parameters']:,} parameters")
    strategy = report["memory_strategy"]
    planned = "" if strategy == "caffe" else f", strategy {strategy}"
    _wrapped(f"memory {common.megabytes(report['memory_bytes'])}{planned} ({parts})")
    print()


def _text_rows(layer: dict[str, Any]) -> list[tuple[str, ...]]:
    """A line per top; the name of a top is left out where it is the layer's."""
    name = layer["name"]
    tops = [f"{n} {_shape(s)}" if n != name else _shape(s) for n, s in layer["tops"].items()]
    blobs = " ".join(map(_shape, layer["blobs"]))
    first = (name, layer["type"], *tops[:1], *[""][len(tops) :], blobs)
    return [
        (*first, "yes" if layer["backward"] else ""),
        *(("", "", top, "", "") for top in tops[1:]),
    ]


def _wrapped(text: str) -> None:
    lines = textwrap.fill(text, 80, initial_indent="  ", subsequent_indent="    ")
    print(lines.replace(_GLUE, " "))


def _shape(shape: list[int]) -> str:
    return "x".join(map(str, shape)) if shape else "scalar"
