"""Random nets for hypothesis: graphs of layers with branches, splits, in-place chains, sharing."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

CHANNELS, SIZE, BATCH, CLASSES = 2, 4, 2, 3
_SHAPE = f"dim: {BATCH} dim: {CHANNELS} dim: {SIZE} dim: {SIZE}"
_FILLER = 'weight_filler { type: "xavier" } bias_filler { type: "constant" value: 0.1 }'

IN_PLACE = {
    "ReLU": ["", "relu_param { negative_slope: 0.2 }"],
    "TanH": [""],
    "Sigmoid": [""],
    "PReLU": [""],
    "Dropout": ["dropout_param { dropout_ratio: 0.3 }"],
    "Power": ["power_param { power: 2 shift: 1 scale: 0.5 }", "power_param { scale: -1 }"],
    "BatchNorm": [""],
    "Scale": ["scale_param { bias_term: true }", ""],
    "Bias": [""],
    "LRN": ["lrn_param { local_size: 3 }"],
    "Softmax": [""],
}
"""Layers that keep the shape and may be named in place, with their parameters."""

ELTWISE = [
    "",
    "eltwise_param { coeff: 2 coeff: -0.5 }",
    "eltwise_param { operation: PROD }",
    "eltwise_param { operation: MAX }",
]


class _Writer:
    """Writes layers on blobs of one shape; remembers which blobs there are."""

    def __init__(self, draw: Callable[..., object]) -> None:
        self.draw = draw
        self.text = ""
        self.blobs = ["data"]
        self.count = 0

    def choose(self, options: list[str]) -> str:
        return str(self.draw(st.sampled_from(options)))

    def one_in(self, chances: int) -> bool:
        return self.draw(st.integers(1, chances)) == 1

    def bottom(self) -> str:
        """A recent blob more often than an old one."""
        return self.choose(self.blobs[-3:] if not self.one_in(3) else self.blobs)

    def top(self) -> str:
        self.count += 1
        self.blobs.append(f"b{self.count}")
        return self.blobs[-1]

    def add(self, kind: str, bottoms: list[str], tops: list[str], more: str = "") -> None:
        self.count += 1
        given = " ".join([f'bottom: "{b}"' for b in bottoms] + [f'top: "{t}"' for t in tops])
        self.text += f'layer {{ name: "l{self.count}" type: "{kind}" {given} {more} }}\n'

    # -- steps that lead from blobs to blobs of the same shape -----------------------------------

    def simple(self) -> None:
        """A layer that keeps the shape, in place or not."""
        kind = self.choose(sorted(IN_PLACE))
        bottom = self.bottom()
        top = bottom if bottom != "data" and self.draw(st.booleans()) else self.top()
        self.add(kind, [bottom], [top], self.choose(IN_PLACE[kind]))

    def convolution(self) -> None:
        shared = 'param { name: "w" } param { name: "wb" }' if self.one_in(4) else ""
        still = "param { lr_mult: 0 } param { lr_mult: 0 }" if self.one_in(5) else ""
        param = f"num_output: {CHANNELS} kernel_size: 3 pad: 1 {_FILLER}"
        bottom = self.bottom()
        self.add(
            "Convolution",
            [bottom],
            [self.top()],
            f"convolution_param {{ {param} }} {shared or still}",
        )

    def eltwise(self) -> None:
        bottoms = [self.bottom(), self.bottom()]
        top = bottoms[0] if bottoms[0] != "data" and self.one_in(4) else self.top()
        self.add("Eltwise", bottoms, [top], self.choose(ELTWISE))

    def scale_by_another(self) -> None:
        bottoms = [self.bottom(), self.bottom()]
        self.add("Scale", bottoms, [self.top()], "scale_param { axis: 0 }")

    def concat_and_slice(self) -> None:
        bottoms = [self.bottom(), self.bottom()]
        self.count += 1
        name = f"c{self.count}"
        self.add("Concat", bottoms, [name])
        if self.draw(st.booleans()):
            self.add("ReLU", [name], [name])
        self.add("Slice", [name], [self.top(), self.top()])

    def pool(self) -> None:
        kind, bottom = self.choose(["MAX", "AVE"]), self.bottom()
        param = f"pool: {kind} kernel_size: 3 stride: 1 pad: 1"
        self.add("Pooling", [bottom], [self.top()], f"pooling_param {{ {param} }}")

    def views(self) -> None:
        """Flatten, something in place on the view, and back."""
        self.count += 1
        name, bottom = f"f{self.count}", self.bottom()
        self.add("Flatten", [bottom], [name])
        if self.draw(st.booleans()):
            self.add(self.choose(["TanH", "ReLU", "Dropout"]), [name], [name])
        shape = f"dim: 0 dim: {CHANNELS} dim: {SIZE} dim: {SIZE}"
        self.add("Reshape", [name], [self.top()], f"reshape_param {{ shape {{ {shape} }} }}")

    def dead_end(self) -> None:
        self.add("Silence", [self.bottom()], [])

    def side_loss(self) -> None:
        self.count += 1
        name = f"s{self.count}"
        self.inner_product(self.bottom(), name)
        weight = self.choose(["loss_weight: 0.3", "loss_weight: 0", "propagate_down: false"])
        if weight.startswith("prop"):
            weight += " propagate_down: false"
        self.add("SoftmaxWithLoss", [name, "label"], [f"{name}_loss"], weight)

    def inner_product(self, bottom: str, top: str) -> None:
        param = f"num_output: {CLASSES} {_FILLER}"
        self.add("InnerProduct", [bottom], [top], f"inner_product_param {{ {param} }}")


STEPS = (
    *[_Writer.simple] * 4,
    *[_Writer.convolution] * 2,
    *[_Writer.eltwise] * 2,
    _Writer.scale_by_another,
    _Writer.concat_and_slice,
    _Writer.pool,
    _Writer.views,
    _Writer.dead_end,
    _Writer.side_loss,
)


@st.composite
def random_nets(draw: Callable[..., object], most: int = 14) -> str:
    """Prototxt text of a net with Input blobs ``data`` and ``label`` and at least one loss."""
    writer = _Writer(draw)
    steps = draw(st.lists(st.sampled_from(STEPS), min_size=1, max_size=most))
    for step in steps:  # type: ignore[attr-defined]
        step(writer)
    writer.inner_product(writer.blobs[-1], "fc")
    writer.add("SoftmaxWithLoss", ["fc", "label"], ["loss"])
    inputs = (
        'layer { name: "data" type: "Input" top: "data" '
        f"input_param {{ shape {{ {_SHAPE} }} }} }}\n"
        f'layer {{ name: "label" type: "Input" top: "label" '
        f"input_param {{ shape {{ dim: {BATCH} }} }} }}\n"
    )
    return inputs + writer.text
