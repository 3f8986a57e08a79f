"""Where layers begin, in every way of writing them."""

from __future__ import annotations

from layrubnet.prototxt.positions import Position, Positions, locate

TEXT = """\
# layer { in a comment
name: "layer { in a string" 'and another'
layer { name: "a" include { phase: TRAIN } }
  layer: <
 top: ["q", "r"] loss_weight: [1, -2] ; >
layer: [{name: "c"},
        {name: "d" pooling_param { pool: MAX }}] layers{ layer{} }
state { level: -1 stage: "}" }
layer{}
"""


def test_every_spelling():
    places = locate(TEXT, "f", ("layer", "layers"))
    assert [(p.line, p.column, p.field) for p in places] == [
        (3, 1, "layer"),
        (4, 3, "layer"),
        (6, 9, "layer"),
        (7, 9, "layer"),
        (7, 50, "layers"),
        (9, 1, "layer"),
    ]


def test_nets_inside_a_solver():
    text = 'net_param { layer {} }\ntest_net_param { }\ntest_net_param {\n  layer { name: "x" } }\n'
    assert [p.line for p in locate(text, "s", ("layer",), (("net_param", 0),))] == [1]
    assert locate(text, "s", ("layer",), (("test_net_param", 0),)) == ()
    assert locate(text, "s", ("layer",), (("test_net_param", 1),)) == (Position("s", 4, 3),)


def test_where():
    places = Positions("net.prototxt", (Position("net.prototxt", 41, 3),)).prepend()
    assert places.where(1, "conv1") == "net.prototxt:41:3 layer 'conv1'"
    assert places.where(0, "input") == "net.prototxt layer 'input'"
    assert places.where(7) == "net.prototxt layer 7"
    assert places.keep([1]).where(0, "c") == "net.prototxt:41:3 layer 'c'"
