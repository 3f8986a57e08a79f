"""The layer contract, proven on stubs: what is declared is what the program does."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from google.protobuf import text_format

import tests.engine.stubs  # noqa: F401  (registers the stub layers)
from layrubnet.devices import get_device
from layrubnet.engine.build import build_graph
from layrubnet.engine.lower import LowerOptions, lower
from layrubnet.engine.program import Program
from layrubnet.errors import ContractError, DeviceError, NetError
from layrubnet.memory.plan import keep_everything
from layrubnet.proto import NetParameter
from tests.support.checks import make_net


def layer(name: str, kind: str, bottom: str = "", top: str = "", more: str = "") -> str:
    bottoms = "".join(f'bottom: "{b}" ' for b in bottom.split())
    tops = "".join(f'top: "{t}" ' for t in top.split())
    return f'layer {{ name: "{name}" type: "{kind}" {bottoms}{tops}{more} }}\n'


def given(name: str, *shape: int) -> str:
    dims = " ".join(f"dim: {d}" for d in shape)
    return layer(name, "Input", top=name, more=f"input_param {{ shape {{ {dims} }} }}")


def dense(name: str, bottom: str, top: str, more: str = "") -> str:
    return layer(
        name, "InnerProduct", bottom, top, f"inner_product_param {{ num_output: 8 }} {more}"
    )


def program(text: str, phase: str = "TRAIN", **options: object) -> Program:
    """Compiled on the null device: no memory, no mathematics."""
    device = get_device("null")
    net = text_format.Parse(text, NetParameter())
    return lower(
        build_graph(net, phase), device.ops, train=phase == "TRAIN", options=LowerOptions(**options)
    )  # type: ignore[arg-type]


def ops(made: Program, section: str) -> list[str]:
    return [f"{i.op} {i.target}" for i in made.sections[section]]


def test_batch_norm_statistics_are_written_by_update_state_alone() -> None:
    made = program(
        given("x", 4, 3, 5, 5)
        + dense("ip", "x", "a", "")
        + given("y", 4, 3, 2, 2)
        + layer("bn", "StubBatchNorm", "y", "y")
        + layer("loss", "StubLoss", "a y", "l")
    )
    writers = {
        i.op for section in made.sections.values() for i in section if "bn/0.param" in i.writes
    }
    assert writers == {"update_state"}
    assert ops(made, "forward").count("update_state bn") == 1
    assert all(not o.startswith("update_state") for o in ops(made, "backward"))
    assert "bn/0" not in made.param_diff


def test_in_place_is_refused_where_the_old_version_is_read_later() -> None:
    text = given("x", 2, 8) + dense("ip", "x", "a") + layer("u", "StubUnknown", "a", "b")
    safe = program(text + layer("r", "ReLU", "b", "b") + layer("loss", "StubLoss", "b", "l"))
    # StubUnknown's backward reads its top, so ReLU must not write over it.
    assert safe.blob_data["b"].buffer == "b@1.data"
    plain = program(given("x", 2, 8) + dense("ip", "x", "a") + layer("r", "ReLU", "a", "a")
                    + layer("loss", "StubLoss", "a", "l"))  # fmt: skip
    assert plain.blob_data["a"].buffer == "a.data"


def test_lstm_expands_into_steps_that_share_a_weight_and_carry_a_state() -> None:
    made = program(
        given("x", 12, 8)
        + layer("lstm", "StubLSTM", "x", "h")
        + layer("loss", "StubLoss", "h", "l")
    )
    steps = [o for o in ops(made, "forward") if "lstm/step" in o]
    assert steps == [f"forward lstm/step_{t}" for t in range(3)]
    assert [p.name for p in made.graph.params] == ["lstm/step_0/0"]
    assert list(made.graph.layer_blobs()["lstm"]) == made.graph.params
    weights = [i for i in made.sections["backward"] if i.op == "backward_weights"]
    # The last step comes first in backward and overwrites; a layer that cannot accumulate goes
    # through a temporary and an `accumulate` from the second on.
    assert [w.writes[0] for w in weights] == [
        "lstm/step_0/0.param_diff", "lstm/step_1/0.partial_diff", "lstm/step_0/0.partial_diff",
    ]  # fmt: skip
    assert [o for o in ops(made, "backward") if o.startswith("accumulate")] == [
        "accumulate lstm/step_1",
        "accumulate lstm/step_0",
    ]
    state = made.buffers["lstm/end.h.state"]
    assert state.persistent
    (writer,) = [i for i in made.sections["forward"] if state.name in i.writes]
    assert writer.op == "update_state"


def test_filter_declares_a_bound_and_consumers_accept_it_or_compilation_refuses() -> None:
    text = given("x", 6, 8) + given("s", 6) + layer("f", "StubFilter", "x s", "y")
    made = program(text + layer("r", "ReLU", "y", "z"))
    relu = next(i for i in made.sections["forward"] if i.target == "r")
    assert {o.extent for o in relu.operands()} == {"f"}
    assert made.buffers["y.data"].shape == (6, 8)
    with pytest.raises(NetError, match="size known only at run time"):
        program(text + dense("ip", "y", "z"))


def test_filter_runs_with_its_run_time_extent() -> None:
    net = make_net(
        given("x", 4, 2) + given("s", 4) + layer("f", "StubFilter", "x s", "y")
        + layer("r", "ReLU", "y", "z")
    )  # fmt: skip
    for selector in ([1, 0, 0, 1], [0, 1, 0, 0], [1, 1, 1, 1]):
        net.data("x")[...] = x = np.arange(8, dtype=np.float32).reshape(4, 2) - 3
        net.data("s")[...] = selector
        net.forward()
        kept = np.flatnonzero(selector)
        np.testing.assert_array_equal(net.data("z"), np.maximum(x[kept], 0))
        net.diff("z")[...] = 1
        net.backward()
        want = np.zeros_like(x)
        want[kept] = x[kept] > 0
        np.testing.assert_array_equal(net.diff("x"), want)


def test_detection_output_is_not_differentiable() -> None:
    made = program(
        given("x", 2, 8) + dense("ip", "x", "a") + layer("d", "StubDetectionOutput", "a", "out"),
        "TRAIN",
    )
    assert made.sections["backward"] == ()
    assert made.blob_data["out"].extent == "d"


def test_center_loss_centres_are_state_that_forward_reads() -> None:
    made = program(
        given("x", 4, 6) + given("t", 4) + dense("ip", "x", "a")
        + layer("c", "StubCenterLoss", "a t", "l", "loss_weight: 0.008")
    )  # fmt: skip
    order = ops(made, "forward")
    assert order.index("forward c") < order.index("update_state c")
    forward = next(i for i in made.sections["forward"] if i.target == "c" and i.op == "forward")
    assert "c/0.param" in forward.reads
    assert "c/0.param" not in forward.writes
    seed = next(i for i in made.sections["backward"] if i.op == "seed")
    assert seed.values == pytest.approx((0.008,))


def test_siamese_towers_share_and_accumulate_in_program_order() -> None:
    named = 'param { name: "w" } param { name: "b" }'
    made = program(
        given("p", 4, 6) + given("q", 4, 6) + dense("left", "p", "a", named)
        + dense("right", "q", "b", named) + layer("loss", "StubLoss", "a b", "l")
    )  # fmt: skip
    assert [p.name for p in made.graph.params] == ["left/0", "left/1"]
    weights = [i for i in made.sections["backward"] if i.op == "backward_weights"]
    assert [(w.target, w.accumulate) for w in weights] == [("right", False), ("left", True)]
    again = [i for i in made.sections["backward_accumulate"] if i.op == "backward_weights"]
    assert all(w.accumulate for w in again)


def test_views_cost_no_instruction_and_no_memory() -> None:
    made = program(
        given("x", 2, 8) + dense("ip", "x", "a") + layer("v", "StubView", "a", "b")
        + layer("r", "ReLU", "b", "c") + layer("loss", "StubLoss", "c", "l")
    )  # fmt: skip
    assert not any(i.target == "v" for s in made.sections.values() for i in s)
    assert made.blob_data["b"].buffer == "a.data"
    assert made.blob_data["b"].shape == (16,)
    assert made.blob_diff["b"].buffer == "a.diff"


def test_weight_gradients_in_chunks_have_the_same_result() -> None:
    text = given("x", 5, 6) + dense("ip", "x", "a") + layer("r", "ReLU", "a", "b")
    chunked = program(text, seeds=True, weight_chunks=3)
    chunks = [i.chunk for i in chunked.sections["backward"] if i.op == "backward_weights"]
    assert chunks == []  # without a loss nothing is learned
    text = text.replace('type: "ReLU"', 'type: "ReLU" loss_weight: 1')
    chunked = program(text, seeds=True, weight_chunks=3)
    made = [i for i in chunked.sections["backward"] if i.op == "backward_weights"]
    assert [i.chunk for i in made] == [(0, 2), (2, 5), (5, 8)]
    # The bias comes with the last piece only.
    assert [i.slots["dw"][1] is None for i in made] == [True, True, False]


def test_an_undeclared_read_is_an_error_that_says_what_to_declare() -> None:
    from layrubnet.engine.layer import Layer, register

    @register("StubLiar")
    class Liar(Layer):
        def infer(self, bottoms):  # type: ignore[no-untyped-def]
            from layrubnet.engine.contract import Contract, Needs

            return Contract(tops=(bottoms[0],), backward_data=Needs())

        def forward(self, ops, io):  # type: ignore[no-untyped-def]
            ops.copy(io.x[0], io.y[0])

        def backward_data(self, ops, io):  # type: ignore[no-untyped-def]
            ops.copy(io.x[0], io.dx[0])

    net = make_net(given("x", 2, 3) + layer("liar", "StubLiar", "x", "y"))
    net.forward()
    with pytest.raises(ContractError, match=r"'liar'.*bottom 0 is not declared"):
        net.backward()


def test_an_error_in_a_layer_names_the_layer() -> None:
    from layrubnet.engine.contract import Contract
    from layrubnet.engine.layer import Layer, register

    @register("StubBroken")
    class Broken(Layer):
        def infer(self, bottoms):  # type: ignore[no-untyped-def]
            return Contract(tops=(bottoms[0],))

        def forward(self, ops, io):  # type: ignore[no-untyped-def]
            raise ZeroDivisionError("oops")

    net = make_net(given("x", 2, 3) + layer("broken", "StubBroken", "x", "y"))
    with pytest.raises(ZeroDivisionError) as caught:
        net.forward()
    assert caught.value.__notes__ == ["in forward of layer 'broken'"]


def test_every_buffer_of_the_plan_has_its_own_place() -> None:
    made = program(
        given("x", 12, 8)
        + layer("lstm", "StubLSTM", "x", "h")
        + layer("loss", "StubLoss", "h", "l")
    )
    plan = keep_everything(made)
    offsets = {**plan.persistent, **plan.schedules["forward"].offsets}
    spans = sorted((offsets[b.name], b.nbytes) for b in made.buffers.values())
    for (a, size), (b, _) in itertools.pairwise(spans):
        assert a + size <= b
    assert spans[-1][0] + spans[-1][1] <= plan.scratch_offset <= plan.nbytes


def test_the_null_device_plans_and_refuses_to_run() -> None:
    with pytest.raises(DeviceError, match="computes nothing"):
        make_net(given("x", 2, 3) + layer("r", "ReLU", "x", "y"), device="null")
