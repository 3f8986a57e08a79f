"""Run a net in phase TEST on its own data and average its outputs.

  layrubnet test net.prototxt --weights net_iter_1000.caffemodel
  layrubnet test net.prototxt --weights w.caffemodel --iterations 100
  layrubnet test net.prototxt --weights w.caffemodel --min accuracy=0.97

Prints the outputs of every batch, then their averages; with --min it ends with
status 1 if an average is too low. Without --weights the net is untrained.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from layrubnet.cli import common
from layrubnet.cli.parser import count, minimum
from layrubnet.engine.net import CompiledNet
from layrubnet.errors import LayrubError
from layrubnet.solvers.nets import places
from layrubnet.solvers.weights import load_weights

NAME = "test"
ALIASES: list[str] = []
USAGE = "layrubnet test NET [--weights FILE] [options]"
HELP = "score a model on its test data"


def configure(parser: argparse.ArgumentParser) -> None:
    common.add_model_flags(parser, weights="the trained weights, comma-separated if several")
    parser.add_argument(
        "-iterations", "--iterations", type=count, default=50, metavar="N",
        help="batches to run (50)",
    )  # fmt: skip
    parser.add_argument(
        "--min",
        action="append",
        type=minimum,
        default=[],
        metavar="BLOB=NUMBER",
        help="end with status 1 if the average of an output is below NUMBER (repeatable)",
    )
    common.add_phase_flag(parser, "TEST", "the layers of this phase (TEST)")
    common.add_state_flags(parser)
    common.add_device_flags(parser)


def run(args: argparse.Namespace) -> int:
    stages = common.split_list(args.stage)
    source = common.load_net(
        common.model_path(args), args.phase, args.level, stages, args.allow_unknown_fields
    )
    device = common.chosen_device(args)
    weights = common.weights_paths(args)
    net = CompiledNet(source.net, args.phase, device=device, train=False, where=places(source))
    try:
        if weights:
            load_weights(net, weights)
        scores, loss = _score(net, args.iterations)
    finally:
        net.close()
    return _report(net, scores, loss, args.min)


def _score(net: CompiledNet, iterations: int) -> tuple[dict[str, np.ndarray], float]:
    """Average every element of every output over the batches."""
    totals: dict[str, np.ndarray] = {}
    loss = 0.0
    for batch in range(iterations):
        loss += net.forward()
        for name, values in net.output_values().items():
            values = np.asarray(values, np.float64).ravel()
            for value in values if values.size <= _SHOWN else ():
                print(f"Batch {batch}, {name} = {value:.6g}")
            totals[name] = totals.get(name, 0) + values
    return {name: total / iterations for name, total in totals.items()}, loss / iterations


_SHOWN = 16
"""Larger outputs (feature maps, probabilities) are averaged but not printed batch by batch."""


def _report(
    net: CompiledNet,
    scores: dict[str, np.ndarray],
    loss: float,
    minima: list[tuple[str, float]],
) -> int:
    weights = {
        v.name: w
        for node in net.graph.nodes
        for v, w in zip(node.tops, node.loss_weights, strict=True)
        if w
    }
    print(f"Loss: {loss:.6g}")
    for name, values in scores.items():
        weight = weights.get(name)
        for value in values[:_SHOWN]:
            extra = f" (* {weight:g} = {weight * value:.6g} loss)" if weight else ""
            print(f"{name} = {value:.6g}{extra}")
        if values.size > _SHOWN:
            print(f"{name}: {values.size - _SHOWN} more values, mean of all {values.mean():.6g}")
    status = 0
    for name, least in minima:
        if name not in scores:
            raise LayrubError(
                f"--min names {name!r}, which is no output of the net",
                expected=", ".join(scores) or "a net with outputs",
            )
        score = float(scores[name].mean())
        if not score >= least:
            print(f"{name} = {score:.6g} is below the minimum {least:g}", file=sys.stderr)
            status = 1
    return status
