"""One test: the mean of every output of a test net over ``test_iter`` batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from layrubnet.engine.net import CompiledNet
from layrubnet.observe.observer import Output, TestReport

if TYPE_CHECKING:
    from layrubnet.solvers.solver import Solver


def run_test(solver: Solver, index: int) -> TestReport | None:
    """Return the mean outputs of test net ``index``, or None if a signal interrupted the test."""
    net, batches = solver.test_nets[index], int(solver.param.test_iter[index])
    solver.observers.testing(solver.iter, index)
    sums: list[float] = []
    outputs: tuple[Output, ...] = ()
    loss = 0.0
    for batch in range(batches):
        if solver.handle_requests():
            solver.observers.note("Test interrupted.")
            return None
        loss += net.forward(iteration=solver.iter, micro_batch=batch)
        outputs = outputs_of(net)
        sums = sums or [0.0] * len(outputs)
        for position, output in enumerate(outputs):
            sums[position] += output.value
    means = tuple(
        Output(o.name, total / batches, o.weight) for o, total in zip(outputs, sums, strict=True)
    )
    mean_loss = loss / batches if solver.param.test_compute_loss and batches else None
    return TestReport(solver.iter, index, means, mean_loss)


def outputs_of(net: CompiledNet) -> tuple[Output, ...]:
    """Every number of the net's outputs after a forward."""
    weights = {
        value.name: weight
        for node in net.graph.nodes
        for value, weight in zip(node.tops, node.loss_weights, strict=True)
    }
    found: list[Output] = []
    for name, values in net.output_values().items():
        numbers: Sequence[float] = [float(v) for v in values.ravel()]
        found += [Output(name, number, weights.get(name, 0.0)) for number in numbers]
    return tuple(found)
