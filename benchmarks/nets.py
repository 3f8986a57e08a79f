"""The nets that benchmarks train: prototxt text without data layers, and their input shapes."""

from __future__ import annotations

INPUTS = {"lenet": (64, 1, 28, 28), "cifar_quick": (100, 3, 32, 32)}
CLASSES = 10


def prototxt(net: str) -> str:
    """The train net of ``lenet`` or ``cifar_quick`` with Input layers."""
    shape = INPUTS[net]
    layers = [_input("data", shape), _input("label", shape[:1])]
    layers += {"lenet": _lenet, "cifar_quick": _cifar_quick}[net]()
    layers.append('layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" }')
    return "\n".join(layers)


def _input(name: str, shape: tuple[int, ...]) -> str:
    dims = " ".join(f"dim: {d}" for d in shape)
    return (
        f'layer {{ name: "{name}" type: "Input" top: "{name}" '
        f"input_param {{ shape {{ {dims} }} }} }}"
    )


def _conv(name: str, bottom: str, outputs: int, kernel: int, pad: int = 0) -> str:
    return (
        f'layer {{ name: "{name}" type: "Convolution" bottom: "{bottom}" top: "{name}" '
        f"convolution_param {{ num_output: {outputs} kernel_size: {kernel} pad: {pad} "
        'weight_filler { type: "xavier" } } }'
    )


def _pool(name: str, bottom: str, kind: str, kernel: int) -> str:
    return (
        f'layer {{ name: "{name}" type: "Pooling" bottom: "{bottom}" top: "{name}" '
        f"pooling_param {{ pool: {kind} kernel_size: {kernel} stride: 2 }} }}"
    )


def _relu(bottom: str) -> str:
    return f'layer {{ name: "relu_{bottom}" type: "ReLU" bottom: "{bottom}" top: "{bottom}" }}'


def _ip(name: str, bottom: str, outputs: int) -> str:
    return (
        f'layer {{ name: "{name}" type: "InnerProduct" bottom: "{bottom}" top: "{name}" '
        f'inner_product_param {{ num_output: {outputs} weight_filler {{ type: "xavier" }} }} }}'
    )


def _lenet() -> list[str]:
    return [
        _conv("conv1", "data", 20, 5),
        _pool("pool1", "conv1", "MAX", 2),
        _conv("conv2", "pool1", 50, 5),
        _pool("pool2", "conv2", "MAX", 2),
        _ip("ip1", "pool2", 500),
        _relu("ip1"),
        _ip("ip2", "ip1", CLASSES),
    ]


def _cifar_quick() -> list[str]:
    return [
        _conv("conv1", "data", 32, 5, 2),
        _pool("pool1", "conv1", "MAX", 3),
        _relu("pool1"),
        _conv("conv2", "pool1", 32, 5, 2),
        _relu("conv2"),
        _pool("pool2", "conv2", "AVE", 3),
        _conv("conv3", "pool2", 64, 5, 2),
        _relu("conv3"),
        _pool("pool3", "conv3", "AVE", 3),
        _ip("ip1", "pool3", 64),
        _ip("ip2", "ip1", CLASSES),
    ]
