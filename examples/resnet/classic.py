"""Nets without shortcuts: AlexNet, CaffeNet, VGG-16 and GoogLeNet."""

from __future__ import annotations

from typing import Any

from net_writer import GAUSSIAN_CONV, XAVIER, NetWriter, Source

_GAUSSIAN_FC = {"type": "gaussian", "std": 0.005}
_VGG_STAGES = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))

# 1x1; 3x3 behind a 1x1; 5x5 behind a 1x1; 1x1 behind a pool
_INCEPTIONS = {
    "3a": (64, 96, 128, 16, 32, 32),
    "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64),
    "4b": (160, 112, 224, 24, 64, 64),
    "4c": (128, 128, 256, 24, 64, 64),
    "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128),
    "5b": (384, 192, 384, 48, 128, 128),
}


def _finish(net: NetWriter, scores: str) -> Any:
    net.loss(scores)
    net.accuracy(scores)
    return net.param


def _large_head(
    net: NetWriter, x: str, classes: int, hidden: dict[str, Any], last: dict[str, Any], bias: float
) -> Any:
    """Two hidden layers of 4096 with dropout, and the scores."""
    for name in ("6", "7"):
        x = net.relu(net.fc(x, f"fc{name}", 4096, weights=hidden, bias=bias), f"relu{name}")
        net.dropout(x, f"drop{name}")
    return _finish(net, net.fc(x, "fc8", classes, weights=last))


def alexnet(*, batch: int, classes: int, source: Source, pool_first: bool = False) -> Any:
    """AlexNet; with ``pool_first`` (pooling before normalisation) it is CaffeNet."""
    net = NetWriter("CaffeNet" if pool_first else "AlexNet", weights=GAUSSIAN_CONV, bias=0.0)
    one = 1.0 if pool_first else 0.1

    def reduce(x: str, k: int) -> str:
        if pool_first:
            return net.lrn(net.max_pool(x, f"pool{k}"), f"norm{k}")
        return net.max_pool(net.lrn(x, f"norm{k}"), f"pool{k}")

    x = net.images(source, batch, 227)
    x = reduce(net.relu(net.conv(x, "conv1", 96, 11, stride=4), "relu1"), 1)
    x = reduce(net.relu(net.conv(x, "conv2", 256, 5, pad=2, group=2, bias=one), "relu2"), 2)
    x = net.relu(net.conv(x, "conv3", 384, 3, pad=1), "relu3")
    x = net.relu(net.conv(x, "conv4", 384, 3, pad=1, group=2, bias=one), "relu4")
    x = net.relu(net.conv(x, "conv5", 256, 3, pad=1, group=2, bias=one), "relu5")
    x = net.max_pool(x, "pool5")
    return _large_head(net, x, classes, _GAUSSIAN_FC, GAUSSIAN_CONV, one)


def vgg16(*, batch: int, classes: int, source: Source) -> Any:
    """VGG with 13 convolutions of 3x3."""
    net = NetWriter("VGG-16", weights=XAVIER, bias=0.0)
    x = net.images(source, batch, 224)
    for stage, (width, count) in enumerate(_VGG_STAGES, 1):
        for k in range(1, count + 1):
            x = net.conv(x, f"conv{stage}_{k}", width, 3, pad=1)
            net.relu(x, f"relu{stage}_{k}")
        x = net.max_pool(x, f"pool{stage}", 2)
    return _large_head(net, x, classes, _GAUSSIAN_FC, GAUSSIAN_CONV, 0.0)


def googlenet(*, batch: int, classes: int, source: Source) -> Any:
    """GoogLeNet: nine inceptions, and two auxiliary losses in training."""
    net = NetWriter("GoogLeNet", weights=XAVIER, bias=0.2)

    def conv(x: str, name: str, outputs: int, kernel: int, **more: Any) -> str:
        return net.relu(net.conv(x, name, outputs, kernel, **more))

    def inception(x: str, part: str) -> str:
        wide, reduce3, wide3, reduce5, wide5, pooled = _INCEPTIONS[part]
        name = f"inception_{part}"
        one = conv(x, f"{name}/1x1", wide, 1)
        three = conv(x, f"{name}/3x3_reduce", reduce3, 1)
        three = conv(three, f"{name}/3x3", wide3, 3, pad=1)
        five = conv(x, f"{name}/5x5_reduce", reduce5, 1)
        five = conv(five, f"{name}/5x5", wide5, 5, pad=2)
        pool = net.max_pool(x, f"{name}/pool", 3, stride=1, pad=1)
        pool = conv(pool, f"{name}/pool_proj", pooled, 1)
        return net.concat(f"{name}/output", one, three, five, pool)

    def auxiliary(x: str, name: str) -> None:
        x = net.average_pool(x, f"{name}/ave_pool", 5, stride=3)
        x = conv(x, f"{name}/conv", 128, 1)
        x = net.relu(net.fc(x, f"{name}/fc", 1024, bias=0.2))
        net.dropout(x, f"{name}/drop_fc", 0.7)
        net.loss(net.fc(x, f"{name}/classifier", classes), f"{name}/loss", weight=0.3)

    x = net.images(source, batch, 224)
    x = net.max_pool(conv(x, "conv1/7x7_s2", 64, 7, stride=2, pad=3), "pool1/3x3_s2")
    x = conv(net.lrn(x, "pool1/norm1"), "conv2/3x3_reduce", 64, 1)
    x = net.lrn(conv(x, "conv2/3x3", 192, 3, pad=1), "conv2/norm2")
    x = net.max_pool(x, "pool2/3x3_s2")
    for part in _INCEPTIONS:
        x = inception(x, part)
        if part in ("4a", "4d"):
            auxiliary(x, "loss1" if part == "4a" else "loss2")
        if part in ("3b", "4e"):
            x = net.max_pool(x, f"pool{part[0]}/3x3_s2")
    x = net.dropout(net.average_pool(x, "pool5/7x7_s1", 7), "pool5/drop", 0.4)
    return _finish(net, net.fc(x, "loss3/classifier", classes))
