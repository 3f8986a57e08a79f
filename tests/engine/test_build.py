"""Building the graph: names, producers, splits, sharing; and the errors that users meet."""

from __future__ import annotations

import pytest
from google.protobuf import text_format

from layrubnet.engine.build import build_graph
from layrubnet.engine.graph import Graph
from layrubnet.errors import NetError, ShapeError
from layrubnet.proto import NetParameter

X = 'layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 2 dim: 6 } } }\n'


def graph(text: str, phase: str = "TRAIN") -> Graph:
    return build_graph(text_format.Parse(text, NetParameter()), phase)


def ip(name: str, bottom: str, top: str, more: str = "", outputs: int = 6) -> str:
    return (
        f'layer {{ name: "{name}" type: "InnerProduct" bottom: "{bottom}" top: "{top}" {more}'
        f" inner_product_param {{ num_output: {outputs} }} }}\n"
    )


def relu(name: str, bottom: str, top: str, more: str = "") -> str:
    return f'layer {{ name: "{name}" type: "ReLU" bottom: "{bottom}" top: "{top}" {more} }}\n'


def test_split_names_are_caffes() -> None:
    made = graph(X + ip("a", "x", "y") + relu("r", "y", "z") + ip("b", "y", "w"))
    assert [n.name for n in made.nodes] == ["in", "a", "y_a_0_split", "r", "b"]
    split = made.nodes[2]
    assert [v.name for v in split.tops] == ["y_a_0_split_0", "y_a_0_split_1"]
    assert [v.name for v in made.outputs()] == ["w", "z"]


def test_a_loss_weight_counts_as_a_use_and_moves_to_the_split() -> None:
    made = graph(X + ip("a", "x", "y", "loss_weight: 2") + relu("r", "y", "z"))
    split = next(n for n in made.nodes if n.layer.type == "Split")
    assert split.loss_weights == (2.0, 0.0)
    assert made.nodes[1].loss_weights == (0.0,)


def test_a_zero_loss_weight_is_no_use() -> None:
    made = graph(X + ip("a", "x", "y", "loss_weight: 0") + relu("r", "y", "z"))
    assert not any(n.layer.type == "Split" for n in made.nodes)


def test_in_place_layers_make_new_versions() -> None:
    made = graph(X + ip("a", "x", "y") + relu("r", "y", "y") + relu("s", "y", "y"))
    assert [v.label for n in made.nodes for v in n.tops] == ["x", "y", "y@1", "y@2"]
    assert made.last_values()["y"].version == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (X + relu("r", "y", "z"), r"Unknown bottom blob 'y' \(layer 'r', bottom index 0\)"),
        (X + ip("a", "x", "y") + ip("b", "x", "y"), "multiple sources: layers 'a' and 'b'"),
        (X + ip("a", "x", "y") + relu("a", "y", "z"), "two layers have the same name 'a'"),
        (X + 'layer { name: "c" type: "Relu" bottom: "x" top: "y" }', "Unknown layer type: Relu"),
        (X + relu("r", "x", "y", 'bottom: "x"'), "wrong number of bottom"),
        (X + 'layer { name: "r" type: "ReLU" bottom: "x" }', "wrong number of top"),
        (X + ip("a", "x", "y", "param { } param { } param { }"), "Too many params specified"),
        (X + ip("a", "x", "y", "propagate_down: [true, false]"), "propagate_down must"),
        (X + ip("a", "x", "y", outputs=0), "num_output must be given"),
        ("", "no layers in this phase"),
    ],
)  # fmt: skip
def test_mistakes_are_explained(text: str, message: str) -> None:
    with pytest.raises(NetError, match=message):
        graph(text)


def test_an_unknown_type_names_the_nearest() -> None:
    with pytest.raises(NetError, match="did you mean ReLU"):
        graph(X + 'layer { name: "c" type: "Relu" bottom: "x" top: "y" }')


def test_a_bad_axis_names_the_layer() -> None:
    bad = X + ip("a", "x", "y").replace("num_output: 6", "num_output: 6 axis: 5")
    with pytest.raises(ShapeError, match=r"layer 'a': the axis is out of range"):
        graph(bad)


class TestSharing:
    def test_strict_needs_equal_shapes(self) -> None:
        w = 'param { name: "w" }'
        with pytest.raises(NetError, match=r"(?s)Cannot share param 'w' owned by layer 'a'.*shape"):
            graph(X + ip("a", "x", "y", w, 3) + ip("b", "x", "z", w, 4))

    def test_permissive_needs_equal_counts(self) -> None:
        w = 'param { name: "w" share_mode: PERMISSIVE }'
        text = X + ip("a", "x", "y", w, 3) + ip("b", "y", "z", w, 6)
        assert [p.users for p in graph(text).params if p.shared_name] == [[("a", 0), ("b", 0)]]
        with pytest.raises(NetError, match="count mismatch"):
            graph(X + ip("a", "x", "y", w, 3) + ip("b", "y", "z", w, 5))

    def test_multipliers_must_agree_where_both_are_given(self) -> None:
        a = 'param { name: "w" lr_mult: 2 }'
        b = 'param { name: "w" }'
        c = 'param { name: "w" lr_mult: 3 }'
        made = graph(X + ip("a", "x", "y", b) + ip("b", "y", "z", a))
        assert made.params[0].lr_mult == 2
        with pytest.raises(NetError, match="mismatched lr_mult"):
            graph(X + ip("a", "x", "y", a) + ip("b", "y", "z", c))


class TestWhoNeedsGradients:
    LOSS = 'layer { name: "l" type: "Power" bottom: "%s" top: "l" loss_weight: 1 }'.replace(
        "Power", "ReLU"
    )

    def test_only_what_lies_under_a_loss(self) -> None:
        made = graph(
            X + ip("a", "x", "y") + ip("b", "y", "z") + ip("c", "y", "q") + self.LOSS % "z"
        )
        need = {n.name: n.needs_backward for n in made.nodes}
        assert need == {
            "in": False, "a": True, "y_a_0_split": True, "b": True, "c": False, "l": True,
        }  # fmt: skip
        split = made.nodes[2]
        assert [v.needs_gradient for v in split.tops] == [True, False]

    def test_no_loss_no_backward(self) -> None:
        made = graph(X + ip("a", "x", "y"))
        assert not any(n.needs_backward for n in made.nodes)

    def test_frozen_layers_end_the_backward_pass(self) -> None:
        frozen = "param { lr_mult: 0 } param { lr_mult: 0 }"
        made = graph(X + ip("a", "x", "y", frozen) + ip("b", "y", "z") + self.LOSS % "z")
        assert not made.nodes[1].needs_backward
        assert made.nodes[2].propagate == [False]

    def test_propagate_down_false_stops_and_true_forces(self) -> None:
        text = X + ip("a", "x", "y") + ip("b", "y", "z", "propagate_down: %s") + self.LOSS % "z"
        assert not graph(text % "false").nodes[1].needs_backward
        assert graph(text % "true").nodes[1].needs_backward
        forced = X + ip("a", "x", "y", "propagate_down: 1") + self.LOSS % "y"
        assert graph(forced).nodes[1].propagate == [True]

    def test_force_backward_reaches_the_inputs(self) -> None:
        made = graph("force_backward: true " + X + ip("a", "x", "y"))
        assert made.nodes[0].tops[0].needs_gradient
