"""The nets of a solver, compiled: the train net with the update rule, test nets that share it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from layrubnet.engine.net import CompiledNet
from layrubnet.memory.options import MemoryOptions, asked_in_net
from layrubnet.proto import phase_name
from layrubnet.prototxt.solver_nets import NetSource, solver_test_nets, solver_train_net

if TYPE_CHECKING:
    from layrubnet.solvers.solver import Solver


def train_net(solver: Solver) -> CompiledNet:
    """The net that the solver trains."""
    source = solver_train_net(
        solver.param, solver.solver_file, allow_unknown=solver.allow_unknown
    ).filtered()
    return CompiledNet(
        source.net,
        phase_name(source.phase),
        device=solver.device,
        seed=solver.seed,
        rank=solver.rank,
        rule=solver.rule,
        where=places(source),
        memory=train_memory(solver.memory, source),
    )


def test_nets(solver: Solver) -> list[CompiledNet]:
    """The nets that the solver tests, in the order of ``test_iter``."""
    made = []
    for source in solver_test_nets(
        solver.param, solver.solver_file, allow_unknown=solver.allow_unknown
    ):
        kept = source.filtered()
        made.append(
            CompiledNet(
                kept.net,
                phase_name(kept.phase),
                device=solver.device,
                seed=solver.seed,
                share=solver.net,
                train=False,
                where=places(kept),
                memory=test_memory(solver.memory, kept),
            )
        )
    return made


def train_memory(asked: MemoryOptions | None, source: NetSource) -> MemoryOptions:
    """How a train net is planned: as the solver asks, else as the net does."""
    return asked or asked_in_net(source.net, "TRAIN")


def test_memory(asked: MemoryOptions | None, source: NetSource) -> MemoryOptions:
    """A test net has no backward: lifetimes alone are the best plan, unless all is to be kept."""
    asked = asked or asked_in_net(source.net, "TEST")
    return MemoryOptions() if asked.strategy == "caffe" else MemoryOptions("reuse")


def places(source: NetSource) -> Callable[[str], str]:
    """Return the function that gives a layer's place in its file."""
    index = {layer.name: n for n, layer in enumerate(source.net.layer)}

    def where(name: str) -> str:
        if name in index:
            return source.positions.where(index[name], name)
        return f"layer {name!r}"  # one that we added, such as a split

    return where
