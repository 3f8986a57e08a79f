"""What real Caffe computed, through the pycaffe face."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from layrubnet import pycaffe as caffe
from tests.support.golden import assert_close, find_case

NETS = [
    "net_fcn",
    "net_inception_loss",
    "net_multi_loss_shared",
    "net_resnet_test",
    "net_siamese",
    "net_siamese_permissive",
    "net_small_cnn",
    "net_small_cnn_test",
]


class Case:
    """A golden case as a pycaffe net, opened from files."""

    def __init__(self, name: str, folder: Path, *, with_weights: bool) -> None:
        self.arrays = dict(np.load(find_case(f"{name}.npz"), allow_pickle=False))
        self.meta: dict[str, Any] = json.loads(str(self.arrays.pop("meta")))
        file = folder / "net.prototxt"
        file.write_text(str(self.arrays.pop("prototxt")))
        phase = caffe.TRAIN if self.meta["phase"] == "TRAIN" else caffe.TEST
        if with_weights:
            weights = find_case(f"{name}.caffemodel")
            self.net = caffe.Net(str(file), phase, weights=str(weights))
        else:
            self.net = caffe.Net(str(file), phase)
            for layer, index, values in self.layer_keys("param."):
                self.net.params[layer][index].data[...] = values

    def keys(self, prefix: str) -> list[tuple[str, np.ndarray]]:
        return [(k[len(prefix) :], v) for k, v in self.arrays.items() if k.startswith(prefix)]

    def layer_keys(self, prefix: str) -> list[tuple[str, int, np.ndarray]]:
        split = [(k.rsplit(".", 1), v) for k, v in self.keys(prefix)]
        return [(layer, int(index), v) for (layer, index), v in split]


@pytest.mark.parametrize("name", NETS)
def test_nets(name: str, tmp_path: Path) -> None:
    case = Case(name, tmp_path, with_weights=True)
    net, meta = case.net, case.meta
    assert net._layer_names == meta["layer_names"]
    assert net.inputs == meta["inputs"]
    assert net.outputs == meta["outputs"]
    assert {n: list(b.shape) for n, b in net.blobs.items()} == meta["blob_shapes"]
    shapes = {n: [list(b.shape) for b in blobs] for n, blobs in net.params.items()}
    assert shapes == meta["param_shapes"]
    for layer, index, values in case.layer_keys("param."):
        np.testing.assert_array_equal(net.params[layer][index].data, values)
    inputs = {n: v for n, v in case.keys("s0.in.") if n in net.inputs}
    outputs = net.forward(**inputs)
    assert sorted(outputs) == meta["outputs"]
    for blob, values in case.keys("s0.top."):
        assert_close(net.blobs[blob].data, values, blob)
    if meta["forward_only"]:
        return
    for blob, values in case.keys("s0.topdiff."):
        net.blobs[blob].diff[...] = values
    net.backward()
    for blob, values in case.keys("s0.bottomdiff."):
        assert_close(net.blobs[blob].diff, values, f"diff of {blob}")
    for layer, index, values in case.layer_keys("s0.paramdiff."):
        assert_close(net.params[layer][index].diff, values, f"diff of {layer}.{index}")


def test_reshape_between_steps(tmp_path: Path) -> None:
    case = Case("reshape_spatial", tmp_path, with_weights=False)
    net = case.net
    handle, weights = net.blobs["x"], net.params["c"][0].data
    for step in range(case.meta["steps"]):
        t = f"s{step}."
        values = case.arrays[f"{t}in.x"]
        net.blobs["x"].reshape(*values.shape)
        net.blobs["x"].data[...] = values
        net.forward()
        assert handle.shape == values.shape
        assert net.params["c"][0].data.base is weights.base
        assert_close(net.blobs["p"].data, case.arrays[f"{t}top.p"], f"{t}p")
        net.clear_param_diffs()
        net.backward(p=case.arrays[f"{t}topdiff.p"])
        assert_close(handle.diff, case.arrays[f"{t}bottomdiff.x"], f"{t}diff of x")
        for layer, index, values in case.layer_keys(f"{t}paramdiff."):
            assert_close(net.params[layer][index].diff, values, f"{t}diff of {layer}.{index}")


def test_transformer() -> None:
    case = dict(np.load(find_case("io_transformer.npz"), allow_pickle=False))
    image = case["image"]
    before = image.copy()
    transformer = caffe.io.Transformer({"data": (1, 3, 6, 7)})

    def check(name: str) -> None:
        assert_close(transformer.preprocess("data", image), case[name], name, 1e-6)

    check("default")
    transformer.set_transpose("data", (2, 0, 1))
    check("transpose")
    transformer.set_channel_swap("data", (2, 1, 0))
    transformer.set_raw_scale("data", 255)
    check("swap_raw255")
    transformer.set_mean("data", np.array([10, 20, 30]))
    check("mean_channel")
    transformer.set_input_scale("data", 0.017)
    check("mean_scale")
    back = transformer.deprocess("data", case["mean_scale"])
    assert_close(back, case["deprocess_of_mean_scale"], "deprocess", 1e-6)
    transformer.set_mean("data", case["mean.image"])
    check("mean_image_scale")
    np.testing.assert_array_equal(image, before)


def test_oversample_and_resize() -> None:
    case = dict(np.load(find_case("io_transformer.npz"), allow_pickle=False))
    crops = caffe.io.oversample([case["image"]], (4, 5))
    np.testing.assert_array_equal(crops, case["oversample_4x5"])
    small = caffe.io.resize_image(case["big"], (6, 7))
    assert_close(small, case["resize_6x7"], "smaller", 1e-5)
    large = caffe.io.resize_image(case["image"], (12, 9))
    assert_close(large, case["resize_up_12x9"], "larger", 1e-5)
