"""A net or several around each type of layer."""

from __future__ import annotations

from tests.engine import stubs  # noqa: F401  (registers StubFilter)
from tests.memory.nets import N, conv, head, ip, layer, net, on, pool, source

_X = conv("x0", "data", 4) + on("TanH", "x0") + conv("x", "x0", 4)
_PAIR = _X + conv("z", "x0", 4)
_FLAT = _X + ip("v", "x", 6) + ip("u", "x0", 6)


def one(kind: str, more: str = "") -> str:
    """The layer on a feature map: named apart, then in place, then apart again."""
    return net(
        _X,
        layer(kind, "l1", ["x"], ["a"], more),
        layer(kind, "l2", ["a"], ["a"], more),
        layer(kind, "l3", ["a"], ["b"], more),
        head("b"),
    )


def two(kind: str, more: str = "", top: str = "y") -> str:
    """The layer on two feature maps, in place if ``top`` is ``x``; then on one map twice."""
    return net(
        _PAIR,
        layer(kind, "l1", ["x", "z"], [top], more),
        conv("w", top, 4),
        layer(kind, "l2", ["w", "w"], ["q"], more),
        head("q"),
    )


def loss(kind: str, more: str = "", labels: str = "u", weight: str = "loss_weight: 0.7") -> str:
    """A loss on two vectors, beside another loss."""
    return net(_FLAT, layer(kind, "l1", ["v", labels], ["l"], f"{weight} {more}"), head("v"))


_FILLER = 'weight_filler { type: "xavier" }'
_UP = f"convolution_param {{ num_output: 3 kernel_size: 2 stride: 2 {_FILLER} }}"
_DOWN = f"convolution_param {{ num_output: 2 kernel_size: 3 {_FILLER} }}"
_DRAWN = (
    'dummy_data_param { shape { dim: 3 dim: 2 dim: 4 dim: 4 } data_filler { type: "gaussian" } }'
)
_POWER = "power_param { power: 2 scale: 0.5 shift: 1 }"
_PYTHON = 'python_param { module: "tests.memory.python_layers" layer: "%s" }'

LAYERS = {
    "Accuracy": net(_X, head("x"), layer("Accuracy", "l1", ["fc", "label"], ["acc"])),
    "BatchNorm": one("BatchNorm"),
    "BatchNorm global": one("BatchNorm", "batch_norm_param { use_global_stats: true }"),
    "Bias": one("Bias"),
    "Bias of two": two("Bias", "bias_param { axis: 0 }"),
    "Bias in place": two("Bias", "bias_param { axis: 0 }", "x"),
    "Concat": two("Concat"),
    "Concat images": net(
        _PAIR, layer("Concat", "l", ["x", "z", "x"], ["y"], "concat_param { axis: 2 }"), head("y")
    ),
    "ContrastiveLoss": net(
        _FLAT,
        source("labels", N),
        layer("ContrastiveLoss", "l1", ["v", "u", "labels"], ["l"], "loss_weight: 0.5"),
        head("v"),
    ),
    "Convolution": net(conv("x", "data", 4), conv("y", "x", 4, stride=2), head("y")),
    "Convolution shared": net(
        conv("x", "data", 3, more='param { name: "w" } param { name: "b" }'),
        conv("y", "x", 3, more='param { name: "w" } param { name: "b" }'),
        head("y"),
    ),
    "Convolution of two": net(
        _PAIR,
        layer(
            "Convolution",
            "c",
            ["x", "z"],
            ["p", "q"],
            _DOWN,
        ),
        layer("Eltwise", "e", ["p", "q"], ["y"]),
        head("y"),
    ),
    "Crop": net(
        _PAIR,
        pool("s", "z"),
        layer("Crop", "l1", ["x", "s"], ["y"], "crop_param { axis: 2 offset: 1 }"),
        head("y"),
    ),
    "Deconvolution": net(
        _X,
        layer("Deconvolution", "l1", ["x"], ["y"], _UP),
        head("y"),
    ),
    "Dropout": one("Dropout", "dropout_param { dropout_ratio: 0.4 }"),
    "DummyData": layer("DummyData", "d", [], ["data"], _DRAWN)
    + source("label", N)
    + _X
    + head("x"),
    "Eltwise SUM": two("Eltwise", "eltwise_param { coeff: 2 coeff: -3 }"),
    "Eltwise SUM in place": two("Eltwise", "", "x"),
    "Eltwise PROD": two("Eltwise", "eltwise_param { operation: PROD }"),
    "Eltwise PROD in place": two("Eltwise", "eltwise_param { operation: PROD }", "x"),
    "Eltwise MAX": two("Eltwise", "eltwise_param { operation: MAX }"),
    "Eltwise MAX in place": two("Eltwise", "eltwise_param { operation: MAX }", "x"),
    "Eltwise of three": net(
        _PAIR,
        layer(
            "Eltwise", "e", ["x", "z", "x"], ["x"], "eltwise_param { coeff: 2 coeff: 3 coeff: 5 }"
        ),
        layer("Eltwise", "f", ["x", "x", "x"], ["y"], "eltwise_param { operation: PROD }"),
        head("y"),
    ),
    "EuclideanLoss": loss("EuclideanLoss"),
    "EuclideanLoss with itself": loss("EuclideanLoss", labels="v"),
    "Extents": net(
        _X,
        source("label_wanted", N),
        layer("StubFilter", "f", ["x", "label_wanted"], ["f"]),
        on("TanH", "f"),
        conv("p", "f", 4),
        on("PReLU", "p"),
        on("Dropout", "p"),
        layer("Concat", "c", ["p", "f"], ["c"]),
        layer("Slice", "s", ["c"], ["d", "e"]),
        layer("Eltwise", "m", ["d", "e"], ["m"], "eltwise_param { operation: MAX }"),
        pool("m1", "m", "MAX", 3),
        pool("m2", "d", "MAX", 3),
        layer("EuclideanLoss", "l", ["m1", "m2"], ["l"]),
        head("x0"),
    ),
    "Flatten": net(
        _X, on("ReLU", "x"), layer("Flatten", "l1", ["x"], ["y"]), on("TanH", "y"), head("y")
    ),
    "InnerProduct": net(_FLAT, on("ReLU", "v"), layer("Concat", "c", ["v", "u"], ["y"]), head("y")),
    "InnerProduct shared": net(
        ip("x", "data", 6),
        ip("y", "x", 6, 'param { name: "w" }'),
        ip("z", "y", 6, 'param { name: "w" }'),
        head("z"),
    ),
    "Input": net(layer("TanH", "t", ["data"], ["data"]), _X, head("x")),
    "LRN": one("LRN", "lrn_param { local_size: 3 }"),
    "LRN within": one("LRN", "lrn_param { local_size: 3 norm_region: WITHIN_CHANNEL }"),
    "PReLU": one("PReLU"),
    "Pooling MAX": net(_X, pool("y", "x", "MAX", 3), head("y")),
    "Pooling MAX overlapping": net(
        _X, pool("y", "x", "MAX", 3, 1), pool("z", "y", "MAX", 2, 2), head("z")
    ),
    "Pooling AVE": net(_X, pool("y", "x", "AVE", 3), head("y")),
    "Power": one("Power", _POWER),
    "Power cube": one("Power", "power_param { power: 3 }"),
    "Python": net(_PAIR, layer("Python", "l1", ["x", "z"], ["y"], _PYTHON % "Mix"), head("y")),
    "Python with state": net(
        _X, layer("Python", "l1", ["x"], ["y"], _PYTHON % "Counter"), head("y")
    ),
    "ReLU": one("ReLU"),
    "ReLU leaky": one("ReLU", "relu_param { negative_slope: 0.1 }"),
    "Reshape": net(
        _X,
        layer("Reshape", "l1", ["x"], ["y"], "reshape_param { shape { dim: 0 dim: 2 dim: -1 } }"),
        on("Sigmoid", "y"),
        layer(
            "Reshape", "l2", ["y"], ["w"], "reshape_param { shape { dim: 0 dim: 4 dim: 6 dim: 6 } }"
        ),
        conv("q", "w", 2),
        head("q"),
    ),
    "Scale": one("Scale", "scale_param { bias_term: true }"),
    "Scale of two": two("Scale", "scale_param { axis: 0 bias_term: true }"),
    "Scale in place": two("Scale", "scale_param { axis: 0 }", "x"),
    "Scale by channel": net(
        _X,
        pool("s", "x0", "AVE", 6, 6),
        layer("Reshape", "r", ["s"], ["c"], "reshape_param { shape { dim: 0 dim: 4 } }"),
        layer("Scale", "l1", ["x", "c"], ["y"], "scale_param { axis: 0 }"),
        head("y"),
    ),
    "Sigmoid": one("Sigmoid"),
    "SigmoidCrossEntropyLoss": net(
        _FLAT,
        layer("Sigmoid", "s", ["data"], ["t"]),
        ip("k", "x", 108),
        layer("Flatten", "tf", ["t"], ["tt"]),
        layer("SigmoidCrossEntropyLoss", "l1", ["k", "tt"], ["l"]),
        head("v"),
    ),
    "Silence": net(_PAIR, layer("Silence", "l1", ["z"], []), head("x")),
    "Slice": net(
        _X,
        layer("Slice", "l1", ["x"], ["a", "b"]),
        on("ReLU", "a"),
        layer("Eltwise", "e", ["a", "b"], ["y"]),
        head("y"),
    ),
    "Slice images": net(
        _X,
        layer("Slice", "l1", ["x"], ["a", "b", "c"], "slice_param { axis: 2 }"),
        layer("Concat", "e", ["c", "a", "b"], ["y"]),
        head("y"),
    ),
    "Slice partly": net(
        _X, layer("Slice", "l1", ["x"], ["a", "b"]), layer("Silence", "s", ["b"], []), head("a")
    ),
    "Softmax": one("Softmax"),
    "SoftmaxWithLoss": source("label_map", N, 1, 6, 6)
    + net(_X, layer("SoftmaxWithLoss", "l1", ["x", "label_map"], ["l", "p"], "loss_weight: 1")),
    "Split": net(
        _X,
        layer("Split", "l1", ["x"], ["a", "b"]),
        on("ReLU", "a"),
        on("TanH", "b"),
        layer("Eltwise", "e", ["a", "b", "x"], ["y"]),
        head("y"),
    ),
    "TanH": one("TanH"),
}
