"""From a prototxt to programs that can be planned: no device, no data, any batch size."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from layrubnet import proto
from layrubnet.cli import common
from layrubnet.data.stand_in import Shape, stand_ins
from layrubnet.devices import get_device
from layrubnet.engine.build import build_graph
from layrubnet.engine.graph import Graph
from layrubnet.engine.lower import LowerOptions, lower
from layrubnet.engine.program import Program
from layrubnet.memory.cost import CPU, GPU, CostModel
from layrubnet.memory.options import MemoryOptions, asked_in_net, solver_memory
from layrubnet.memory.plan import Plan
from layrubnet.memory.planner import PlanOptions, make_plan, sections_of
from layrubnet.memory.report import Figures, measure
from layrubnet.memory.timeline import Timeline, timeline
from layrubnet.memory.verify import verify
from layrubnet.prototxt.solver_nets import NetSource, solver_train_net
from layrubnet.prototxt.text import read_solver
from layrubnet.solvers.nets import places
from layrubnet.solvers.rules import make_rule

FIGURES = {"gpu": GPU, "cpu": CPU}

_BATCHED = ("data_param", "hdf5_data_param", "memory_data_param")


def input_shape(text: str) -> tuple[str, Shape]:
    """``data=64,3,224,224`` as a pair."""
    name, equals, dims = text.partition("=")
    try:
        shape = tuple(int(d) for d in dims.split(","))
    except ValueError:
        shape = ()
    if not (name and equals and shape) or min(shape) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form data=64,3,224,224")
    return name, shape


@dataclass(frozen=True)
class Job:
    """A net to plan. ``rule``: the solver's update, whose histories are planned as well."""

    source: NetSource
    rule: Any
    memory: MemoryOptions | None
    figures: str
    micro_batches: int
    shapes: dict[str, Shape]
    batch: int | None = None

    @cached_property
    def _graph_and_notes(self) -> tuple[Graph, tuple[str, ...]]:
        net = self.source.net
        shapes = self.shapes
        if self.batch is not None:
            net = with_batch(net, self.batch)
            shapes = {top: (self.batch, *shape[1:]) for top, shape in shapes.items()}
        net = _with_inputs(net, shapes)
        with stand_ins(shapes) as context:
            graph = build_graph(net, "TRAIN", places(self.source))
        return graph, tuple(context.notes)

    @property
    def graph(self) -> Graph:
        """The net, built for training."""
        return self._graph_and_notes[0]

    @property
    def notes(self) -> tuple[str, ...]:
        """What had to be guessed about the data."""
        return self._graph_and_notes[1]

    @cached_property
    def _device(self) -> Any:
        return get_device("null")

    @cached_property
    def cost(self) -> CostModel:
        """Times by arithmetic: nothing has been measured here."""
        return CostModel(FIGURES[self.figures])

    @cached_property
    def _kept(self) -> Program:
        return self._lower(True)

    @cached_property
    def _lean(self) -> Program:
        return self._lower(False)

    def _lower(self, named_in_place: bool) -> Program:
        options = LowerOptions(named_in_place=named_in_place)
        return lower(self.graph, self._device.ops, rule=self.rule, options=options)

    def program(self, strategy: str) -> Program:
        """The program that a strategy plans."""
        return self._kept if strategy == "caffe" else self._lean

    def plan(self, strategy: str, budget: int | None = None) -> Plan:
        """A plan (BudgetError if it does not fit)."""
        program = self.program(strategy)
        kept = self.memory.keep if self.memory else ()
        options = PlanOptions(
            strategy,
            budget,
            keep=frozenset(
                program.blob_data[blob].buffer for blob in kept if blob in program.blob_data
            ),
            micro_batches=self.micro_batches,
            cost=self.cost,
            base_scratch=self._device.base_scratch,
        )
        return make_plan(program, options)

    def checked(self, strategy: str, budget: int | None = None) -> Plan:
        """A plan that has passed the verifier."""
        plan = self.plan(strategy, budget)
        verify(self.program(strategy), plan, sections_of(plan))
        return plan

    def timeline(self, plan: Plan) -> Timeline:
        """One of this job's plans, read back."""
        return timeline(self.program(plan.strategy), plan)

    def measured(self, line: Timeline) -> Figures:
        """The figures of a plan."""
        return measure(line, self.cost, self.micro_batches)

    def with_batch(self, batch: int) -> Job:
        """The same net with another batch size."""
        return replace(self, batch=batch)

    @property
    def batch_size(self) -> int:
        """Samples per micro-batch, by the first top of the first layer that has no bottom."""
        for node in self.graph.nodes:
            if not node.bottoms and node.tops and node.tops[0].type.shape:
                return node.tops[0].type.shape[0]
        return 1

    @property
    def histories(self) -> int:
        """Arrays that the solver keeps per parameter."""
        return int(self.rule.histories)


def job(args: argparse.Namespace) -> Job:
    """The job that the command line describes; a net without a solver gets SGD with momentum."""
    path: str = args.file
    memory = None
    if common.is_net_file(path):
        source = common.load_net(
            path,
            "TRAIN",
            args.level,
            common.split_list(args.stage),
            args.allow_unknown_fields,
        )
        solver = proto.SolverParameter(type="SGD", base_lr=0.01, momentum=0.9)
    else:
        solver = read_solver(Path(path), allow_unknown=args.allow_unknown_fields)
        found = solver_train_net(solver, path, allow_unknown=args.allow_unknown_fields)
        source = found.filtered()
        memory = solver_memory(solver)
    if memory is None:
        in_net = asked_in_net(source.net, "TRAIN")
        memory = in_net if in_net.strategy != "caffe" else None
    if args.iter_size is not None:
        solver.iter_size = args.iter_size
    rule = make_rule(solver)
    return Job(
        source,
        rule,
        memory,
        args.device_figures,
        solver.iter_size,
        dict(args.input_shape),
        args.batch,
    )


def with_batch(net: Any, batch: int) -> Any:
    """A copy of a net with ``batch`` samples in every data and input layer."""
    copy = type(net)()
    copy.CopyFrom(net)
    for layer in copy.layer:
        for name in _BATCHED:
            if layer.HasField(name):
                getattr(layer, name).batch_size = batch
        for shape in (*layer.input_param.shape, *layer.dummy_data_param.shape):
            if len(shape.dim):
                shape.dim[0] = batch
        legacy = layer.dummy_data_param.num
        legacy[:] = [batch] * len(legacy)
    return copy


def _with_inputs(net: Any, shapes: dict[str, Shape]) -> Any:
    """The net with the given shapes in its Input layers."""
    if not any(layer.type == "Input" and set(layer.top) & set(shapes) for layer in net.layer):
        return net
    copy = type(net)()
    copy.CopyFrom(net)
    for layer in copy.layer:
        if layer.type != "Input":
            continue
        old = list(layer.input_param.shape)
        dims = [list(s.dim) for s in (old if len(old) == len(layer.top) else old * len(layer.top))]
        dims = dims or [[] for _ in layer.top]
        del layer.input_param.shape[:]
        for top, given in zip(layer.top, dims, strict=True):
            layer.input_param.shape.add(dim=shapes.get(top, given))
    return copy
