"""Compact forms: the same bits, a smaller peak, chosen only where they pay."""

from __future__ import annotations

import pytest

from layrubnet.memory import planner
from layrubnet.memory.compact import extras_offloaded, with_compact
from layrubnet.memory.iteration import Decisions, Iteration
from layrubnet.memory.options import MemoryOptions
from layrubnet.memory.plan import Plan
from layrubnet.memory.rewrite import Choice
from layrubnet.memory.strategies import fixed_decisions
from tests.memory.layer_nets import LAYERS
from tests.memory.nets import FAMILIES, N, conv, head, ip, layer, net, on, pool, source
from tests.memory.planning import iteration_of, known_program, planned, text_program
from tests.memory.training import Training, differences, train
from tests.support.array_memory import count_array_memory
from tests.support.checks import LIMIT

LEAKY = "relu_param { negative_slope: 0.1 }"
TURNED = "relu_param { negative_slope: -0.1 }"
IMAGES = "reshape_param { shape { dim: 0 dim: 4 dim: 6 dim: 6 } }"
NETS = {
    "in place": net(conv("c", "data", 4), on("ReLU", "c"), pool("p", "c"), head("p")),
    "leaky": net(conv("c", "data", 4), on("ReLU", "c", LEAKY), pool("p", "c"), head("p")),
    "odd": net(
        conv("c", "data", 3),
        layer("ReLU", "r", ["c"], ["r"]),
        pool("p", "r", "AVE", 3, 1),
        layer("ReLU", "r2", ["p"], ["q"], LEAKY),
        layer("Power", "s", ["q"], ["s"], "power_param { scale: 2 }"),
        head("s"),
        size=5,
    ),
    "through a view": net(
        conv("c", "data", 4),
        layer("Flatten", "f", ["c"], ["f"]),
        on("ReLU", "f"),
        layer("Reshape", "g", ["f"], ["g"], IMAGES),
        pool("p", "g"),
        head("p"),
    ),
    "in a branch": net(
        conv("c", "data", 4),
        on("ReLU", "c"),
        pool("p", "c"),
        pool("q", "c", "AVE"),
        layer("Eltwise", "e", ["p", "q"], ["e"]),
        on("ReLU", "e"),
        layer("Eltwise", "h", ["e", "p"], ["h"]),
        head("h"),
    ),
    "with dropout": net(ip("v", "data", 7), on("ReLU", "v"), on("Dropout", "v"), head("v")),
}  # fmt: skip
KINDS = {
    "alone": lambda iteration: with_compact(iteration, {}),
    "and its bits leave": lambda iteration: extras_offloaded(
        iteration, with_compact(iteration, {})
    ),
    "beside offloads": lambda iteration: with_compact(
        iteration, {c.name: Choice.OFFLOAD for c in iteration.candidates}
    ),
    "read by repetitions": lambda iteration: {
        **{c.name: Choice.RECOMPUTE for c in iteration.values if c.repeatable},
        **dict.fromkeys(iteration.compacts, Choice.COMPACT),
    },
}


@pytest.fixture
def forced(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """The strategy ``reuse`` takes the compact form wherever there is one."""

    def decisions(name: str, iteration: Iteration) -> Decisions:
        return Decisions(KINDS[request.param](iteration))

    monkeypatch.setattr(planner, "fixed_decisions", decisions)


def compact_layers(plan: Plan, name: str = "step_first") -> list[str]:
    """Layers that leave bits, in the order in which backward reads them."""
    return [
        i.target
        for i in plan.schedules[name].instructions
        if i.op == "backward_data" and any(r.rstrip("~").endswith(".positive") for r in i.reads)
    ]


@pytest.mark.parametrize("forced", KINDS, indirect=True)
@pytest.mark.parametrize("iter_size", [1, 2])
@pytest.mark.parametrize("text", NETS.values(), ids=NETS)
@pytest.mark.usefixtures("forced")
def test_same_bits(text: str, iter_size: int) -> None:
    training = Training(iter_size)
    made = training.net(text, MemoryOptions("reuse"))
    for schedule in ("step_first", "step_more")[:iter_size]:
        assert compact_layers(made.plan, schedule)
    made.close()
    assert not differences(train(text, "reuse", training), train(text, "caffe", training))


@pytest.mark.parametrize("forced", ["alone"], indirect=True)
@pytest.mark.parametrize("name", ["LeNet", "CIFAR-quick", "GoogLeNet", "U-Net", "chain"])
@pytest.mark.usefixtures("forced")
def test_same_bits_of_families(name: str) -> None:
    text, training = FAMILIES[name], Training(2)
    assert not differences(train(text, "reuse", training), train(text, "caffe", training))


@pytest.mark.parametrize("forced", ["alone"], indirect=True)
@pytest.mark.usefixtures("forced")
def test_nothing_is_allocated() -> None:
    text = net(conv("c", "data", 8), on("ReLU", "c", LEAKY), pool("p", "c"), head("p"), size=40)
    made = Training(debug=False).net(text, MemoryOptions("reuse"))
    assert compact_layers(made.plan)
    made.step(iteration=0)
    with count_array_memory() as memory:
        made.step(iteration=1)
    assert memory.peak <= LIMIT
    made.close()


def test_what_has_a_compact_form() -> None:
    def compacts(text: str) -> list[str]:
        return [a.extra.layer for a in iteration_of(text_program(text)).compacts.values()]

    assert compacts(NETS["in place"]) == ["c_relu"]
    assert sorted(compacts(NETS["odd"])) == ["r", "r2"]
    # A convolution's weights need its bottom as well.
    assert not compacts(net(conv("c", "data", 4), on("ReLU", "c"), conv("d", "c", 4), head("d")))
    # With a negative slope y does not tell the sign.
    assert not compacts(net(conv("c", "data", 4), on("ReLU", "c", TURNED), pool("p", "c"),
                            head("p")))  # fmt: skip


def test_a_size_known_at_run_time_has_none() -> None:
    text = LAYERS["Extents"].replace('type: "PReLU"', 'type: "ReLU"')
    assert 'type: "ReLU"' in text
    program = text_program(text)
    assert not program.alternatives
    assert not differences(train(text, "recompute"), train(text, "caffe"))


def test_bits_are_an_eighth_of_the_elements() -> None:
    program = text_program(NETS["odd"])
    assert program.alternatives["r"].extra.nbytes == -(-N * 3 * 5 * 5 // 8)
    assert not program.buffers.keys() & {a.extra.name for a in program.alternatives.values()}


@pytest.mark.parametrize("strategy", ["recompute", "min", "auto"])
def test_relu_before_pooling_needs_less(strategy: str) -> None:
    text = source("data", 8, 3, 32, 32) + source("label", 8)
    bottom = "data"
    for k in range(3):
        text += conv(f"c{k}", bottom, 8) + on("ReLU", f"c{k}") + pool(f"p{k}", f"c{k}")
        bottom = f"p{k}"
    program = text_program(text + head(bottom))
    plan, reuse = planned(program, strategy), planned(program, "reuse")
    assert compact_layers(plan) == ["c2_relu", "c1_relu", "c0_relu"]
    assert plan.arena_bytes < 0.75 * reuse.arena_bytes


@pytest.mark.parametrize("strategy", ["reuse", "inter", "hybrid", "vdnn", "intra"])
def test_strategies_of_others_do_without(strategy: str) -> None:
    assert not compact_layers(planned(known_program("VGG-16"), strategy))


def test_it_costs_no_time_where_it_replaces_keeping() -> None:
    iteration = iteration_of(known_program("VGG-16"))
    plain = iteration.outline(fixed_decisions("reuse", iteration))
    compact = iteration.outline(Decisions(with_compact(iteration, {})))
    assert compact.bound < 0.7 * plain.bound
    assert compact.timing.total <= plain.timing.total
    assert iteration.outline(Decisions()).timing.total == plain.timing.total
