"""Which nets a solver trains and tests: net, net_param, train_net, test_net and their states."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from layrubnet.errors import PrototxtError
from layrubnet.proto import TEST, TRAIN, NetState
from layrubnet.prototxt.positions import Positions
from layrubnet.prototxt.rules import filter_net, kept_layers
from layrubnet.prototxt.text import read_net
from layrubnet.prototxt.upgrade import upgrade_net

_TRAIN_FIELDS = ("net", "net_param", "train_net", "train_net_param")


@dataclass(frozen=True, slots=True)
class NetSource:
    """A net as it stands in its file, and the state for which its layers are to be chosen."""

    net: Any
    phase: int
    level: int
    stages: tuple[str, ...]
    name: str
    positions: Positions

    def filtered(self) -> NetSource:
        """Return the source with the layers (and positions) of its state only."""
        state = (self.phase, self.level, self.stages)
        kept = kept_layers(self.net, *state, self.positions)
        net = filter_net(self.net, *state, self.positions)
        return replace(self, net=net, positions=self.positions.keep(kept))


def solver_train_net(
    solver: Any, solver_file: str | os.PathLike[str] | None = None, *, allow_unknown: bool = False
) -> NetSource:
    """Return the net to train. Exactly one of the four train fields has to be set."""
    where = _where(solver_file)
    given = [field for field in _TRAIN_FIELDS if solver.HasField(field)]
    if not given:
        raise PrototxtError(
            "SolverParameter must specify a train net using one of these fields: "
            + ", ".join(_TRAIN_FIELDS),
            where=where,
        )
    if len(given) > 1:
        raise PrototxtError(
            "SolverParameter must not contain more than one of these fields specifying a "
            "train net: " + ", ".join(_TRAIN_FIELDS),
            where=where,
            got=", ".join(given),
        )
    net, places = _resolve(given[0], getattr(solver, given[0]), solver_file, allow_unknown)
    return _source(net, places, TRAIN, solver.train_state, given[0])


def solver_test_nets(
    solver: Any, solver_file: str | os.PathLike[str] | None = None, *, allow_unknown: bool = False
) -> list[NetSource]:
    """Return the nets to test, in the order of ``test_iter``: those of ``test_net_param``, those
    of ``test_net``, then the train field ``net_param`` or ``net`` for what is left."""
    where = _where(solver_file)
    plan: list[tuple[str, Any]] = [("test_net_param", net) for net in solver.test_net_param]
    plan += [("test_net", name) for name in solver.test_net]
    generic = next((field for field in ("net_param", "net") if solver.HasField(field)), None)
    count = len(solver.test_iter)
    if count < len(plan) or (generic is None and count != len(plan)):
        raise PrototxtError(
            "test_iter must be specified for each test network.",
            where=where,
            got=f"{count} test_iter for {len(plan)} test nets",
            hint="" if plan or generic else "give the nets as test_net, or both as net",
        )
    if generic is not None:
        plan += [(generic, getattr(solver, generic))] * (count - len(plan))
    states = list(solver.test_state)
    if states and len(states) != len(plan):
        raise PrototxtError(
            "test_state must be unspecified or specified once per test net.",
            where=where,
            got=f"{len(states)} test_state for {len(plan)} test nets",
        )
    if plan and solver.test_interval <= 0:
        raise PrototxtError(
            "there are test nets, but test_interval is not set",
            where=where,
            hint="set test_interval to the number of iterations between tests",
        )
    sources = []
    for index, (field, value) in enumerate(plan):
        net, places = _resolve(field, value, solver_file, allow_unknown)
        state = states[index] if states else NetState()
        sources.append(_source(net, places, TEST, state, f"test net #{index} ({field})"))
    return sources


def find_beside(name: str, solver_file: str | os.PathLike[str] | None) -> str:
    """Return a path as Caffe takes it, from the current folder, or else from the solver's."""
    if solver_file is None or os.path.isabs(name) or os.path.exists(name):
        return name
    beside = Path(solver_file).parent / name
    return str(beside) if beside.exists() else name


def _resolve(
    field: str, value: Any, solver_file: str | os.PathLike[str] | None, allow_unknown: bool
) -> tuple[Any, Positions]:
    if isinstance(value, str):
        return read_net(Path(find_beside(value, solver_file)), allow_unknown=allow_unknown)
    return upgrade_net(value, Positions(f"{_where(solver_file)} {field}"))


def _source(net: Any, places: Positions, phase: int, state: Any, label: str) -> NetSource:
    # Merged as in Caffe: the phase, then the net's own state, then the solver's.
    merged = NetState(phase=phase)
    merged.MergeFrom(net.state)
    merged.MergeFrom(state)
    stages = tuple(merged.stage)
    return NetSource(net, merged.phase, merged.level, stages, net.name or label, places)


def _where(solver_file: str | os.PathLike[str] | None) -> str:
    return "solver" if solver_file is None else os.fspath(solver_file)
