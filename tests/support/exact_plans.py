"""The best plan there is, by trying every mixture of keep, offload, recompute and compact form."""

from __future__ import annotations

from itertools import product

from google.protobuf import text_format

from layrubnet.devices import get_device
from layrubnet.engine.lower import LowerOptions, lower
from layrubnet.memory.candidates import transient
from layrubnet.memory.copies import Pace
from layrubnet.memory.cost import GPU, CostModel
from layrubnet.memory.iteration import Decisions, Iteration, Outline
from layrubnet.memory.rewrite import Choice
from layrubnet.proto import NetParameter
from tests.support.example_nets import graph_of


def _conv(name: str, bottom: str, outputs: int = 64) -> str:
    return f"""layer {{ name: "{name}" type: "Convolution" bottom: "{bottom}" top: "{name}"
      convolution_param {{ num_output: {outputs} kernel_size: 3 pad: 1 }} }}
    layer {{ name: "{name}_relu" type: "ReLU" bottom: "{name}" top: "{name}_relu" }}"""


def _net(body: str, last: str) -> str:
    return f"""
    layer {{ name: "x" type: "Input" top: "x"
      input_param {{ shape {{ dim: 32 dim: 64 dim: 56 dim: 56 }} }} }}
    layer {{ name: "label" type: "Input" top: "label" input_param {{ shape {{ dim: 32 }} }} }}
    {body}
    layer {{ name: "pool" type: "Pooling" bottom: "{last}" top: "pool"
      pooling_param {{ pool: AVE global_pooling: true }} }}
    layer {{ name: "fc" type: "InnerProduct" bottom: "pool" top: "fc"
      inner_product_param {{ num_output: 10 }} }}
    layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "fc" bottom: "label" top: "loss" }}"""


SMALL_NETS = {
    "chain": _net(
        _conv("c1", "x") + _conv("c2", "c1_relu") + _conv("c3", "c2_relu") + _conv("c4", "c3_relu"),
        "c4_relu",
    ),
    "residual": _net(
        _conv("c1", "x")
        + """
        layer { name: "c2" type: "Convolution" bottom: "c1_relu" top: "c2"
          convolution_param { num_output: 64 kernel_size: 3 pad: 1 } }
        layer { name: "sum" type: "Eltwise" bottom: "c1_relu" bottom: "c2" top: "sum" }
        layer { name: "sum_relu" type: "ReLU" bottom: "sum" top: "sum_relu" }"""
        + _conv("c3", "sum_relu", 128),
        "c3_relu",
    ),
    "pooled": _net(
        _conv("c1", "x", 32)
        + """
        layer { name: "p1" type: "Pooling" bottom: "c1_relu" top: "p1"
          pooling_param { kernel_size: 2 stride: 2 } }"""
        + _conv("c2", "p1"),
        "c2_relu",
    ),
}


def iteration_of(text: str) -> Iteration:
    """One iteration of a net on the null device, with the figures of a GPU."""
    device = get_device("null")
    program = lower(
        graph_of(text_format.Parse(text, NetParameter())),
        device.ops,
        options=LowerOptions(named_in_place=False),
    )
    return Iteration(
        program.sections["forward"],
        program.sections["backward"],
        transient(program.buffers),
        CostModel(GPU),
        base_scratch=device.base_scratch,
        alternatives=program.alternatives,
    )


class Exact:
    """All mixtures for one iteration (few candidates: there are 3 to the power of their number).

    What backward does not read is computed again too in one half of the mixtures, kept in the
    other.
    """

    def __init__(self, iteration: Iteration) -> None:
        self.iteration = iteration
        waiting = [c.name for c in iteration.candidates]
        options = [
            (Choice.KEEP, Choice.OFFLOAD)
            + (Choice.RECOMPUTE,) * c.repeatable
            + (Choice.COMPACT,) * (c.name in iteration.compacts)
            for c in iteration.candidates
        ]
        others = {
            v.name: Choice.RECOMPUTE
            for v in iteration.values
            if v.repeatable and v.first_backward < 0
        }
        self.mixtures: list[tuple[Outline, float]] = []
        for picked in product(*options):
            chosen = {n: c for n, c in zip(waiting, picked, strict=True) if c is not Choice.KEEP}
            for more in ({}, others) if others else ({},):
                outline = iteration.outline(Decisions({**chosen, **more}, Pace(0, 0)))
                self.mixtures.append((outline, outline.timing.compute))
        self.mixtures.sort(key=lambda m: m[1])

    @property
    def smallest(self) -> int:
        """The smallest peak of all."""
        return min(outline.bound for outline, _ in self.mixtures)

    def seconds(self, budget: int) -> float:
        """The time of the fastest mixture that fits."""
        best = float("inf")
        for outline, fastest in self.mixtures:
            if fastest >= best:
                break
            if outline.bound <= budget:
                timed = self.iteration.outline(Decisions(outline.decisions.choices, room=budget))
                best = min(best, timed.timing.total)
        return best
