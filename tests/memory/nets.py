"""Prototxt text of small nets: pieces to build them from, and miniatures of known families."""

from __future__ import annotations

from collections.abc import Iterable

N = 3
"""Images in a batch."""


def layer(kind: str, name: str, bottoms: Iterable[str], tops: Iterable[str], more: str = "") -> str:
    """One layer as text."""
    given = " ".join([f'bottom: "{b}"' for b in bottoms] + [f'top: "{t}"' for t in tops])
    return f'layer {{ name: "{name}" type: "{kind}" {given} {more} }}\n'


def source(name: str, *shape: int) -> str:
    """An Input layer."""
    dims = " ".join(f"dim: {d}" for d in shape)
    return layer("Input", name, [], [name], f"input_param {{ shape {{ {dims} }} }}")


def conv(name: str, bottom: str, outputs: int, kernel: int = 3, more: str = "", **at: int) -> str:
    """A convolution that keeps the size unless it has a stride."""
    stride = at.get("stride", 1)
    param = (
        f"num_output: {outputs} kernel_size: {kernel} pad: {kernel // 2} stride: {stride} "
        'weight_filler { type: "xavier" } bias_filler { type: "constant" value: 0.1 }'
    )
    return layer("Convolution", name, [bottom], [name], f"convolution_param {{ {param} }} {more}")


def ip(name: str, bottom: str, outputs: int, more: str = "") -> str:
    """An inner product."""
    param = f'num_output: {outputs} weight_filler {{ type: "xavier" }}'
    return layer(
        "InnerProduct", name, [bottom], [name], f"inner_product_param {{ {param} }} {more}"
    )


def on(kind: str, blob: str, more: str = "") -> str:
    """A layer in place."""
    return layer(kind, f"{blob}_{kind.lower()}", [blob], [blob], more)


def pool(name: str, bottom: str, kind: str = "MAX", kernel: int = 2, stride: int = 2) -> str:
    """A pooling."""
    param = f"pool: {kind} kernel_size: {kernel} stride: {stride}"
    return layer("Pooling", name, [bottom], [name], f"pooling_param {{ {param} }}")


def head(bottom: str) -> str:
    """Three classes and a loss."""
    loss = layer("SoftmaxWithLoss", "loss", ["fc", "label"], ["loss"])
    return ip("fc", bottom, 3) + loss


def net(*layers: str, channels: int = 3, size: int = 6) -> str:
    """Images and labels before the layers."""
    return source("data", N, channels, size, size) + source("label", N) + "".join(layers)


# -- families ------------------------------------------------------------------------------------


def lenet() -> str:
    """LeNet on smaller images."""
    return net(
        conv("conv1", "data", 4, 5),
        pool("pool1", "conv1"),
        conv("conv2", "pool1", 6, 5),
        pool("pool2", "conv2"),
        ip("ip1", "pool2", 10),
        on("ReLU", "ip1"),
        on("Dropout", "ip1"),
        head("ip1"),
        channels=1,
        size=12,
    )


def cifar_quick() -> str:
    """CIFAR-10 quick: pooling before ReLU, then after."""
    return net(
        conv("conv1", "data", 4, 5),
        pool("pool1", "conv1", "MAX", 3),
        on("ReLU", "pool1"),
        on("LRN", "pool1", "lrn_param { local_size: 3 }"),
        conv("conv2", "pool1", 4, 5),
        on("ReLU", "conv2"),
        pool("pool2", "conv2", "AVE", 3),
        conv("conv3", "pool2", 8, 5),
        on("ReLU", "conv3"),
        pool("pool3", "conv3", "AVE", 3),
        ip("ip1", "pool3", 8),
        head("ip1"),
        size=16,
    )


def _normalised(name: str, bottom: str, outputs: int, kernel: int = 3, stride: int = 1) -> str:
    scale = on("Scale", name, "scale_param { bias_term: true }")
    return conv(name, bottom, outputs, kernel, stride=stride) + on("BatchNorm", name) + scale


def googlenet() -> str:
    """Two inception blocks, and a second loss between them."""
    text, bottom = conv("c0", "data", 4) + on("ReLU", "c0") + pool("p0", "c0"), "p0"
    for k in "ab":
        text += conv(f"{k}1", bottom, 2, 1) + on("ReLU", f"{k}1")
        text += conv(f"{k}3r", bottom, 2, 1) + on("ReLU", f"{k}3r")
        text += conv(f"{k}3", f"{k}3r", 3) + on("ReLU", f"{k}3")
        text += conv(f"{k}5r", bottom, 2, 1) + on("ReLU", f"{k}5r")
        text += conv(f"{k}5", f"{k}5r", 2, 5) + on("ReLU", f"{k}5")
        text += pool(f"{k}p", bottom, "MAX", 1, 1) + conv(f"{k}pp", f"{k}p", 2, 1)
        text += layer("Concat", k, [f"{k}1", f"{k}3", f"{k}5", f"{k}pp"], [k])
        bottom = k
        if k == "a":
            text += pool("aux", "a", "AVE", 3, 2) + ip("aux_fc", "aux", 3)
            pair = ["aux_fc", "label"]
            text += layer("SoftmaxWithLoss", "aux_loss", pair, ["aux_loss"], "loss_weight: 0.3")
    return net(text, on("Dropout", bottom), head(bottom), size=10)


def resnet20() -> str:
    """CIFAR's ResNet-20, four channels wide."""
    text, bottom, width = _normalised("c0", "data", 4) + on("ReLU", "c0"), "c0", 4
    for stage in range(3):
        for block in range(3):
            name, stride = f"s{stage}b{block}", 2 if stage and not block else 1
            text += _normalised(f"{name}_1", bottom, width * 2**stage, 3, stride)
            text += on("ReLU", f"{name}_1")
            text += _normalised(f"{name}_2", f"{name}_1", width * 2**stage)
            if stride == 2:
                text += _normalised(f"{name}_p", bottom, width * 2**stage, 1, 2)
                bottom = f"{name}_p"
            text += layer("Eltwise", name, [bottom, f"{name}_2"], [name]) + on("ReLU", name)
            bottom = name
    return net(text, pool("gap", bottom, "AVE", 2, 1), head("gap"), size=8)


def densenet() -> str:
    """Each layer reads all earlier ones through Concat: splits within splits."""
    text, bottom = conv("c0", "data", 3), "c0"
    for k in range(1, 5):
        text += layer("BatchNorm", f"n{k}", [bottom], [f"n{k}"])
        text += on("Scale", f"n{k}", "scale_param { bias_term: true }") + on("ReLU", f"n{k}")
        text += conv(f"g{k}", f"n{k}", 2) + on("Dropout", f"g{k}")
        text += layer("Concat", f"c{k}", [bottom, f"g{k}"], [f"c{k}"])
        bottom = f"c{k}"
    return net(text, pool("p", bottom, "AVE", 2), head("p"))


def siamese() -> str:
    """Two branches that share every parameter."""
    text = source("data", N, 2, 6, 6) + source("label", N)
    text += layer("Slice", "pair", ["data"], ["d_a", "d_b"])
    for side in "ab":
        shared = [f'param {{ name: "{k}" }}' for k in ("w1", "b1", "w2", "b2")]
        text += conv(f"c_{side}", f"d_{side}", 4, more=" ".join(shared[:2]))
        text += on("ReLU", f"c_{side}") + pool(f"p_{side}", f"c_{side}")
        text += ip(f"f_{side}", f"p_{side}", 4, " ".join(shared[2:]))
    return text + layer("ContrastiveLoss", "loss", ["f_a", "f_b", "label"], ["loss"])


def unet() -> str:
    """Down and up again, with copies across, and a loss per pixel."""
    text = source("data", N, 2, 8, 8) + source("label", N, 1, 8, 8)
    bottom = "data"
    for k, width in enumerate((3, 4)):
        text += conv(f"d{k}", bottom, width) + on("ReLU", f"d{k}") + pool(f"p{k}", f"d{k}")
        bottom = f"p{k}"
    text += conv("m", bottom, 5) + on("ReLU", "m") + on("Dropout", "m")
    bottom = "m"
    for k, width in ((1, 4), (0, 3)):
        up = "kernel_size: 2 stride: 2"
        param = f'num_output: {width} {up} weight_filler {{ type: "xavier" }}'
        text += layer(
            "Deconvolution", f"u{k}", [bottom], [f"u{k}"], f"convolution_param {{ {param} }}"
        )
        text += layer("Concat", f"j{k}", [f"u{k}", f"d{k}"], [f"j{k}"])
        text += conv(f"e{k}", f"j{k}", width) + on("ReLU", f"e{k}")
        bottom = f"e{k}"
    return text + conv("out", bottom, 3, 1) + layer("SoftmaxWithLoss", "l", ["out", "label"], ["l"])


def frozen() -> str:
    """Frozen layers, a branch without gradient, and a parameter that only decays."""
    still = "param { lr_mult: 0 } param { lr_mult: 0 }"
    return net(
        conv("c1", "data", 4, more=still),
        on("ReLU", "c1"),
        conv("c2", "c1", 4),
        on("Sigmoid", "c2"),
        conv("c3", "c2", 4, more=still),
        conv("c4", "c2", 4, more="propagate_down: false"),
        layer("Eltwise", "e", ["c3", "c4"], ["e"], "eltwise_param { operation: PROD }"),
        ip("side", "c2", 3, "propagate_down: false"),
        layer("SoftmaxWithLoss", "l2", ["side", "label"], ["l2"], "loss_weight: 0.5"),
        head("e"),
    )


def chain() -> str:
    """A long chain of layers in place."""
    text = conv("c", "data", 4)
    for k, kind in enumerate(("ReLU", "Dropout", "Scale", "TanH", "Power", "PReLU", "Bias")):
        more = "power_param { power: 2 shift: 1 }" if kind == "Power" else ""
        text += layer(kind, f"k{k}", ["c"], ["c"], more)
    return net(text, head("c"))


FAMILIES = {
    "LeNet": lenet(),
    "CIFAR-quick": cifar_quick(),
    "GoogLeNet": googlenet(),
    "ResNet-20": resnet20(),
    "DenseNet": densenet(),
    "siamese": siamese(),
    "U-Net": unet(),
    "frozen": frozen(),
    "chain": chain(),
}
