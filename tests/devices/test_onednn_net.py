"""Whole nets on oneDNN: as with NumPy, the same bits in every run, no allocation."""

from __future__ import annotations

import numpy as np

from layrubnet.devices.cpu.device import CpuDevice
from layrubnet.engine.net import CompiledNet
from layrubnet.engine.updates import LR
from layrubnet.proto import NetParameter, SolverParameter
from layrubnet.prototxt.text import parse
from layrubnet.solvers.rules import make_rule
from tests.devices.onednn_support import needs_onednn, numpy_only
from tests.support.checks import check_no_allocation

pytestmark = needs_onednn

NET = """
layer { name: "data" type: "Input" top: "data"
  input_param { shape { dim: 24 dim: 3 dim: 20 dim: 20 } } }
layer { name: "label" type: "Input" top: "label" input_param { shape { dim: 24 } } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 16 kernel_size: 5 pad: 2 weight_filler { type: "xavier" } } }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
  pooling_param { pool: MAX kernel_size: 3 stride: 2 } }
layer { name: "relu1" type: "ReLU" bottom: "pool1" top: "pool1" }
layer { name: "conv2" type: "Convolution" bottom: "pool1" top: "conv2"
  convolution_param { num_output: 32 kernel_size: 3 group: 2 weight_filler { type: "xavier" } } }
layer { name: "pool2" type: "Pooling" bottom: "conv2" top: "pool2"
  pooling_param { pool: AVE kernel_size: 3 stride: 2 } }
layer { name: "ip" type: "InnerProduct" bottom: "pool2" top: "ip"
  inner_product_param { num_output: 90 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" }
"""


class Shifted(CpuDevice):
    """Arenas begin at an address that is not aligned to a cache line."""

    def allocate(self, nbytes: int) -> np.ndarray:
        return super().allocate(nbytes + 4096)[16 : 16 + nbytes]


def compiled(device: CpuDevice | None = None) -> CompiledNet:
    solver = SolverParameter(type="SGD", base_lr=0.1, momentum=0.9)
    options = {} if device is None else {"device": device}
    net = CompiledNet(parse(NET, NetParameter), "TRAIN", rule=make_rule(solver), seed=3, **options)
    rng = np.random.default_rng(1)
    net.data("data")[...] = rng.standard_normal(net.data("data").shape)
    net.data("label")[...] = rng.integers(0, 10, net.data("label").shape)
    net.executor.set_scalar(LR, 0.1)
    return net


def trained(net: CompiledNet, steps: int = 4) -> dict[str, np.ndarray]:
    for _ in range(steps):
        net.forward()
        net.backward()
        net.update()
    return {p.name: np.array(net.param_data(p.name)) for p in net.graph.params}


def test_the_same_bits_every_time() -> None:
    first, again = trained(compiled()), trained(compiled())
    for name, values in first.items():
        assert (values == again[name]).all(), name


def test_the_same_bits_at_another_address() -> None:
    first, shifted = trained(compiled()), trained(compiled(Shifted()))
    for name, values in first.items():
        assert (values == shifted[name]).all(), name


def test_as_with_numpy() -> None:
    net = compiled()
    assert all(n.layer.plan.uses for n in net.graph.nodes if n.layer.type == "Convolution")
    fast = trained(net)
    with numpy_only():
        slow = trained(compiled())
    for name, values in fast.items():
        np.testing.assert_allclose(values, slow[name], rtol=0, atol=2e-5, err_msg=name)


def test_no_allocation() -> None:
    check_no_allocation(compiled())
