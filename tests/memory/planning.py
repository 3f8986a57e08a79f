"""Programs on the null device, for tests of the planner: nothing is run."""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf import text_format

from layrubnet.devices import get_device
from layrubnet.engine.graph import Graph
from layrubnet.engine.lower import LowerOptions, lower
from layrubnet.engine.program import Program
from layrubnet.memory.candidates import transient
from layrubnet.memory.cost import GPU, CostModel
from layrubnet.memory.iteration import Iteration
from layrubnet.memory.plan import Plan
from layrubnet.memory.planner import PlanOptions, make_plan, sections_of
from layrubnet.memory.verify import verify
from layrubnet.proto import NetParameter, SolverParameter
from layrubnet.solvers.rules import make_rule
from tests.memory.nets import FAMILIES
from tests.support.example_nets import example_graph, example_nets, graph_of

DEVICE: Any = get_device("null")
ANY_SCRATCH = 1 << 40
"""As a common scratch: no instruction needs more, so peaks are those of the buffers alone, whatever
the convolutions run on."""


def program_of(graph: Graph) -> Program:
    """The train program, every value in a buffer of its own."""
    rule = make_rule(SolverParameter(type="SGD", base_lr=0.1, momentum=0.9))
    return lower(graph, DEVICE.ops, rule=rule, options=LowerOptions(named_in_place=False))


@cache
def known_program(net: str) -> Program:
    """A program by name, of the catalogue or (small ones) of tests/memory/nets.py."""
    if net in example_nets().PUBLISHED:
        return program_of(example_graph(net))
    return text_program(FAMILIES[net])


def text_program(text: str) -> Program:
    """The program of a net in prototxt."""
    return program_of(graph_of(text_format.Parse(text, NetParameter())))


def iteration_of(program: Program, base_scratch: int = ANY_SCRATCH) -> Iteration:
    """Forward and backward with the figures of a GPU."""
    return Iteration(
        program.sections["forward"],
        program.sections["backward"],
        transient(program.buffers),
        CostModel(GPU),
        base_scratch=base_scratch,
        alternatives=program.alternatives,
    )


def planned(program: Program, strategy: str, budget: int | None = None) -> Plan:
    """A plan, checked by the verifier."""
    options = PlanOptions(strategy, budget, base_scratch=ANY_SCRATCH, cost=CostModel(GPU))
    plan = make_plan(program, options)
    verify(program, plan, sections_of(plan))
    return plan
