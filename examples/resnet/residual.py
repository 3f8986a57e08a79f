"""Residual nets: ResNet for ImageNet (basic and bottleneck), for CIFAR, and wide ResNet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from net_writer import MSRA, NetWriter, Source

BASIC_BLOCKS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3)}
BOTTLENECK_BLOCKS = {
    50: (3, 4, 6, 3),
    101: (3, 4, 23, 3),
    152: (3, 8, 36, 3),
    1001: (3, 57, 270, 3),
    1172: (3, 64, 320, 3),
    1304: (3, 71, 357, 3),
    1484: (3, 81, 407, 3),
    1505: (3, 83, 412, 3),
    1511: (3, 83, 414, 3),
    1517: (3, 83, 416, 3),
}
CIFAR_DEPTHS = (20, 32, 44, 56, 110)

Block = Callable[[NetWriter, str, str, int, int, bool], str]


def bottleneck_blocks(depth: int) -> tuple[int, ...]:
    """Blocks per stage of a bottleneck net of ``depth`` weight layers, 3 * (sum of blocks) + 2.

    Depths that nobody has published get stages in the proportions of the deepest published nets.
    """
    if depth in BOTTLENECK_BLOCKS:
        return BOTTLENECK_BLOCKS[depth]
    blocks, rest = divmod(depth - 2, 3)
    if rest or blocks < 8:
        raise ValueError(f"a bottleneck ResNet has 3 n + 2 layers with n >= 8, not {depth}")
    second = max(1, (blocks - 6) // 6)
    return (3, second, blocks - 6 - second, 3)


def bottleneck(net: NetWriter, x: str, name: str, width: int, stride: int, project: bool) -> str:
    """1x1, 3x3, 1x1 with four times the width; the stride is in the first 1x1."""
    short = _shortcut(net, x, name, 4 * width, stride, project)
    y = net.norm(net.conv(x, f"{name}_1", width, 1, stride=stride), relu=True)
    y = net.norm(net.conv(y, f"{name}_2", width, 3, pad=1), relu=True)
    y = net.norm(net.conv(y, f"{name}_3", 4 * width, 1))
    return net.relu(net.sum(name, short, y))


def basic(net: NetWriter, x: str, name: str, width: int, stride: int, project: bool) -> str:
    """Two 3x3; the stride is in the first."""
    short = _shortcut(net, x, name, width, stride, project)
    y = net.norm(net.conv(x, f"{name}_1", width, 3, stride=stride, pad=1), relu=True)
    y = net.norm(net.conv(y, f"{name}_2", width, 3, pad=1))
    return net.relu(net.sum(name, short, y))


def _shortcut(net: NetWriter, x: str, name: str, outputs: int, stride: int, project: bool) -> str:
    if not project:
        return x
    return net.norm(net.conv(x, f"{name}_proj", outputs, 1, stride=stride))


def _stages(net: NetWriter, x: str, block: Block, blocks: Sequence[int], width: int) -> str:
    """Stages of doubling width; the first block of each projects and, but for stage 1, strides."""
    for stage, count in enumerate(blocks):
        for k in range(count):
            stride = 2 if stage and not k else 1
            x = block(net, x, f"r{stage + 1}_{k + 1}", width << stage, stride, k == 0)
    return x


def _head(net: NetWriter, x: str, classes: int) -> Any:
    scores = net.fc(net.average_pool(x, "pool_last"), "fc", classes)
    net.loss(scores)
    net.accuracy(scores)
    return net.param


def imagenet_resnet(
    blocks: Sequence[int], *, block: Block, batch: int, classes: int, source: Source
) -> Any:
    """A ResNet for images of 224 x 224, as its NetParameter."""
    depth = sum(blocks) * (3 if block is bottleneck else 2) + 2
    net = NetWriter(f"ResNet-{depth}", weights=MSRA)
    x = net.images(source, batch, 224)
    # The published ResNet-50 for Caffe has a bias here, the other nets have none.
    stem = net.conv(x, "conv1", 64, 7, stride=2, pad=3, bias=0.0 if depth == 50 else None)
    x = net.max_pool(net.norm(stem, relu=True), "pool1")
    return _head(net, _stages(net, x, block, blocks, 64), classes)


def cifar_resnet(depth: int, *, batch: int, classes: int, source: Source) -> Any:
    """A ResNet of 6 n + 2 weight layers for images of 32 x 32: 3 stages of n basic blocks."""
    count, rest = divmod(depth - 2, 6)
    if rest or count < 1:
        raise ValueError(f"a ResNet for CIFAR has 6 n + 2 layers, not {depth}")
    net = NetWriter(f"ResNet-{depth}", weights=MSRA)
    x = net.images(source, batch, 32)
    x = net.norm(net.conv(x, "conv1", 16, 3, pad=1), relu=True)
    return _head(net, _stages(net, x, basic, (count,) * 3, 16), classes)


def wide_resnet(depth: int, factor: int, *, batch: int, classes: int, source: Source) -> Any:
    """WRN-depth-factor for images of 32 x 32: 3 stages of (depth - 4) / 6 blocks.

    A block is conv, norm, conv and a sum; the sums are normalised, but for each stage's first.
    """
    count, rest = divmod(depth - 4, 6)
    if rest or count < 1 or factor < 1:
        raise ValueError(f"a wide ResNet has 6 n + 4 layers, not {depth}")
    net = NetWriter(f"WRN-{depth}-{factor}", weights=MSRA)
    x = net.images(source, batch, 32)
    x = net.norm(net.conv(x, "conv1", 16, 3, pad=1, bias=0.0), relu=True)
    return _head(net, _stages(net, x, _wide_block, (count,) * 3, 16 * factor), classes)


def _wide_block(net: NetWriter, x: str, name: str, width: int, stride: int, project: bool) -> str:
    y = net.conv(x, f"{name}_1", width, 3, stride=stride, pad=1)
    y = net.conv(net.norm(y, relu=True), f"{name}_2", width, 3, pad=1)
    short = net.conv(x, f"{name}_proj", width, 1, stride=stride) if project else x
    y = net.sum(name, short, y)
    return y if project else net.norm(y, relu=True)
