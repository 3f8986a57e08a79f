"""The verifier accepts what the planner makes, and finds every planted fault."""

from __future__ import annotations

import random
from functools import cache, partial

import pytest
from google.protobuf import text_format

from layrubnet.devices import get_device
from layrubnet.engine.build import build_graph
from layrubnet.engine.lower import LowerOptions, lower
from layrubnet.engine.program import Program
from layrubnet.memory.options import MemoryOptions
from layrubnet.memory.plan import Plan
from layrubnet.memory.planner import PlanOptions, make_plan, sections_of
from layrubnet.memory.strategies import STRATEGIES
from layrubnet.memory.verify import PlanError, verify
from layrubnet.proto import NetParameter, SolverParameter
from layrubnet.solvers.rules import make_rule
from tests.memory.mutants import MUTATIONS, displaced, shifted
from tests.memory.nets import FAMILIES
from tests.memory.training import Training, differences, train, use_plan

DEVICE = get_device("null")
SCRATCH = 1024
"""A small common scratch, so that instructions have places of their own for it."""
PLANNED = [name for name in STRATEGIES if name != "caffe"]
NETS = ("LeNet", "GoogLeNet", "DenseNet", "U-Net")


@cache
def program(net: str, strategy: str) -> Program:
    graph = build_graph(text_format.Parse(FAMILIES[net], NetParameter()), "TRAIN")
    rule = make_rule(SolverParameter(type="SGD", base_lr=0.1, momentum=0.9, iter_size=2))
    options = LowerOptions(named_in_place=strategy == "caffe")
    return lower(graph, DEVICE.ops, rule=rule, options=options)


@cache
def plan(net: str, strategy: str) -> Plan:
    options = PlanOptions(strategy, micro_batches=2, base_scratch=SCRATCH)
    return make_plan(program(net, strategy), options)


def check(net: str, strategy: str, candidate: Plan) -> None:
    sections = sections_of(plan(net, strategy))
    verify(program(net, strategy), candidate, sections, (), SCRATCH)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("net", FAMILIES)
def test_plans_are_right(net: str, strategy: str) -> None:
    check(net, strategy, plan(net, strategy))


@pytest.mark.parametrize("strategy", PLANNED)
@pytest.mark.parametrize("net", FAMILIES)
def test_the_claimed_peak_is_used_up(net: str, strategy: str) -> None:
    """To the byte: the highest end of all buffers and scratch is the end of the arena."""
    made = plan(net, strategy)
    ends = [made.persistent_bytes]
    for schedule in made.schedules.values():
        ends += [schedule.offsets[n] + b.nbytes for n, b in schedule.buffers.items()]
        ends += [o + schedule.instructions[p].scratch for p, o in schedule.scratch.items()]
    assert -(-max(ends) // 64) * 64 == made.scratch_offset


def accepted(net: str, strategy: str, candidate: Plan) -> bool:
    try:
        check(net, strategy, candidate)
    except PlanError:
        return False
    return True


def plant(fault: str, tries: int) -> int:
    """Plant a fault in several nets, under every strategy, ``tries`` times each; all are found."""
    planted = 0
    for net in NETS:
        for strategy in PLANNED:
            rng = random.Random(f"{fault} {net} {strategy}")
            for _ in range(tries):
                mutant = MUTATIONS[fault](plan(net, strategy), rng)
                if mutant is None:
                    break
                planted += 1
                assert not accepted(net, strategy, mutant), (fault, net, strategy, planted)
    return planted


@pytest.mark.parametrize("fault", MUTATIONS)
def test_planted_faults_are_found(fault: str) -> None:
    assert plant(fault, 2) >= len(NETS)


@pytest.mark.full
@pytest.mark.parametrize("fault", MUTATIONS)
def test_many_planted_faults_are_found(fault: str) -> None:
    assert plant(fault, 15) >= 5 * len(NETS)


def harmless(net: str, strategy: str, seed: int, tries: int) -> int:
    """Run every accepted mutant of some random changes; return how many there were."""
    text, training = FAMILIES[net], Training()
    wanted = train(text, "caffe", training)
    made = training.net(text, MemoryOptions(strategy))
    program, plan, sections = made.program, made.plan, sections_of(made.plan)
    made.close()
    rng = random.Random(seed)
    count = 0
    for _ in range(tries):
        mutant = rng.choice([shifted, displaced])(plan, rng)
        try:
            verify(program, mutant, sections, (), DEVICE.base_scratch)
        except PlanError:
            continue
        count += 1
        got = train(text, strategy, training, before=partial(use_plan, plan=mutant))
        assert not differences(got, wanted)
    return count


@pytest.mark.parametrize("strategy", ["recompute", "min"])
def test_what_is_accepted_is_harmless(strategy: str) -> None:
    """Random moves of copies, waits, repetitions and addresses: rejected, or the same bits."""
    assert harmless("LeNet", strategy, 1, 60)


@pytest.mark.full
@pytest.mark.parametrize("strategy", PLANNED)
@pytest.mark.parametrize("net", ["LeNet", "CIFAR-quick", "siamese", "U-Net"])
def test_much_that_is_accepted_is_harmless(net: str, strategy: str) -> None:
    harmless(net, strategy, 2, 120)
