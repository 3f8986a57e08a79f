"""Small nets, planned, for the tests of reports and pictures."""

from __future__ import annotations

from functools import cache

from layrubnet.devices import get_device
from layrubnet.engine.build import build_graph
from layrubnet.engine.lower import LowerOptions, lower
from layrubnet.engine.program import Program
from layrubnet.memory.cost import GPU, CostModel
from layrubnet.memory.plan import Plan
from layrubnet.memory.planner import PlanOptions, make_plan
from layrubnet.proto import NetParameter, SolverParameter
from layrubnet.prototxt.text import parse
from layrubnet.solvers.rules import make_rule

COST = CostModel(GPU)


def chain(depth: int, batch: int = 4) -> str:
    """A net of ``depth`` blocks: convolution, ReLU, and a sum with what came in."""
    layers = [
        f'name: "chain" layer {{ name: "in" type: "Input" top: "x0" top: "label" input_param {{'
        f" shape {{ dim: {batch} dim: 4 dim: 16 dim: 16 }} shape {{ dim: {batch} }} }} }}"
    ]
    for n in range(depth):
        layers.append(
            f'layer {{ name: "conv{n}" type: "Convolution" bottom: "x{n}" top: "c{n}"'
            " convolution_param { num_output: 4 kernel_size: 3 pad: 1 } }"
            f' layer {{ name: "relu{n}" type: "ReLU" bottom: "c{n}" top: "c{n}" }}'
            f' layer {{ name: "sum{n}" type: "Eltwise" bottom: "c{n}" bottom: "x{n}"'
            f' top: "x{n + 1}" }}'
        )
    layers.append(
        f'layer {{ name: "pool" type: "Pooling" bottom: "x{depth}" top: "pool"'
        " pooling_param { kernel_size: 2 stride: 2 } }"
        ' layer { name: "ip" type: "InnerProduct" bottom: "pool" top: "ip"'
        " inner_product_param { num_output: 5 } }"
        ' layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }'
    )
    return "\n".join(layers)


@cache
def program(depth: int = 4, named_in_place: bool = False) -> Program:
    """The program of a chain, for SGD with momentum."""
    graph = build_graph(parse(chain(depth), NetParameter), "TRAIN")
    rule = make_rule(SolverParameter(type="SGD", base_lr=0.1, momentum=0.9))
    options = LowerOptions(named_in_place=named_in_place)
    return lower(graph, get_device("null").ops, rule=rule, options=options)


@cache
def planned(strategy: str, depth: int = 4) -> tuple[Program, Plan]:
    """A chain's program and its plan under a strategy."""
    made = program(depth, strategy == "caffe")
    base = get_device("null").base_scratch
    return made, make_plan(made, PlanOptions(strategy, cost=COST, base_scratch=base))
