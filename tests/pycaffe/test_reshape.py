"""Inputs of other shapes, shared parameters, arrays of MemoryData."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from layrubnet import pycaffe as caffe
from layrubnet.data import encode_datum, write_lmdb
from layrubnet.errors import DataError, NetError, ShapeError
from tests.pycaffe.nets import FULLY_CONVOLUTIONAL, LENET


def test_the_new_shape_is_there_at_once_and_the_rest_follows() -> None:
    net = caffe.Net(FULLY_CONVOLUTIONAL, caffe.TEST)
    handles = dict(net.blobs)
    net.blobs["data"].reshape(1, 1, 10, 12)
    assert handles["data"].shape == (1, 1, 10, 12)
    assert handles["data"].diff.shape == (1, 1, 10, 12)
    assert handles["conv1"].shape == (2, 3, 6, 6)
    net.reshape()
    assert handles["conv1"].shape == (1, 3, 8, 10)
    assert handles["fc"].shape == (1, 5, 2, 3)


def test_forward_reshapes_by_itself() -> None:
    rng = np.random.default_rng(1)
    net = caffe.Net(FULLY_CONVOLUTIONAL, caffe.TEST)
    net.params["fc-conv"][0].data[...] = rng.normal(size=(5, 3, 3, 3))
    image = rng.normal(size=(1, 1, 8, 8)).astype(np.float32)
    net.blobs["data"].data[...] = image
    small = net.forward()["fc"][0].copy()
    net.blobs["data"].reshape(3, 1, 8, 8)
    assert net.forward(data=np.repeat(image, 3, axis=0))["fc"].shape == (3, 5, 1, 1)
    np.testing.assert_allclose(net.blobs["fc"].data[2], small, rtol=1e-6)


def test_the_array_of_an_input_stays_live_through_the_reshape() -> None:
    net = caffe.Net(FULLY_CONVOLUTIONAL, caffe.TEST)
    net.blobs["data"].reshape(1, 1, 8, 8)
    array = net.blobs["data"].data
    net.reshape()
    array[...] = 3
    assert (net.blobs["data"].data == 3).all()


def test_content_that_fits_is_kept() -> None:
    net = caffe.Net(FULLY_CONVOLUTIONAL, caffe.TEST)
    net.blobs["data"].data[...] = np.arange(128).reshape(2, 1, 8, 8)
    net.blobs["data"].reshape(1, 1, 8, 8)
    np.testing.assert_array_equal(net.blobs["data"].data.ravel(), np.arange(64))


def test_parameters_and_their_gradients_stay_in_their_arrays() -> None:
    net = caffe.Net(FULLY_CONVOLUTIONAL, caffe.TEST)
    weight, diff = net.params["conv1"][0].data, net.params["conv1"][0].diff
    diff[...] = 4
    net.blobs["data"].reshape(1, 1, 9, 9)
    net.reshape()
    assert (net.params["conv1"][0].diff == 4).all()
    weight[...] = 8
    assert (net.params["conv1"][0].data == 8).all()


def test_two_inputs_change_together() -> None:
    net = caffe.Net(LENET, caffe.TRAIN)
    net.blobs["data"].reshape(6, 1, 8, 8)
    net.blobs["label"].reshape(6)
    net.blobs["label"].data[...] = 1
    assert net.forward()["loss"] > 0
    assert net.blobs["ip2"].shape == (6, 3)


def test_what_cannot_be_reshaped() -> None:
    net = caffe.Net(LENET, caffe.TEST)
    with pytest.raises(NetError, match="not an input"):
        net.blobs["conv1"].reshape(1, 2, 3, 4)
    net.blobs["conv1"].reshape(2, 3, 6, 6)
    with pytest.raises(ValueError, match="net's definition"):
        net.params["conv1"][0].reshape(1, 1, 3, 3)
    net.params["conv1"][1].reshape(3)
    net.blobs["data"].reshape(2, 1, 12, 12)
    with pytest.raises(ShapeError, match=r"layer 'ip1'[\s\S]*\(5, 27\)[\s\S]*\(5, 75\)"):
        net.reshape()
    net.blobs["data"].reshape(3, 1, 8, 8)
    net.reshape()
    assert net.blobs["prob"].shape == (3, 3)


def test_sharing_parameters() -> None:
    first, second = caffe.Net(LENET, caffe.TEST), caffe.Net(LENET, caffe.TRAIN)
    second.share_with(first)
    first.params["ip1"][0].data[...] = 2
    assert (second.params["ip1"][0].data == 2).all()
    second.blobs["data"].reshape(5, 1, 8, 8)
    second.blobs["label"].reshape(5)
    second.reshape()
    second.params["conv1"][1].data[...] = 7
    assert (first.params["conv1"][1].data == 7).all()
    other = caffe.Net(LENET.replace("num_output: 5", "num_output: 6"), caffe.TEST)
    with pytest.raises(ShapeError, match="Cannot share param 0 weights from layer 'ip1'"):
        other.share_with(first)


def test_set_input_arrays_needs_memory_data() -> None:
    with pytest.raises(DataError, match="MemoryData"):
        caffe.Net(LENET, caffe.TEST).set_input_arrays(np.zeros((2, 1, 8, 8)), np.zeros(2))


def test_memory_data_keeps_its_rows_and_its_place() -> None:
    net = caffe.Net(
        """
layer { name: "data" type: "MemoryData" top: "data" top: "label"
  memory_data_param { batch_size: 2 channels: 1 height: 1 width: 1 } }
layer { name: "more" type: "Input" top: "more" input_param { shape { dim: 3 } } }
""",
        caffe.TEST,
    )
    net.set_input_arrays(np.arange(6.0, dtype=np.float32).reshape(6, 1, 1, 1), np.arange(6))
    net.forward()
    np.testing.assert_array_equal(net.blobs["data"].data.ravel(), [0, 1])
    net.blobs["more"].reshape(4)
    net.forward()
    np.testing.assert_array_equal(net.blobs["data"].data.ravel(), [2, 3])
    np.testing.assert_array_equal(net.blobs["label"].data.ravel(), [2, 3])


def test_a_data_base_goes_on_where_it_was(tmp_path: Path) -> None:
    pytest.importorskip("lmdb")
    records = (
        (f"{n:03d}".encode(), encode_datum(np.full((1, 1, 1), n, np.uint8), n)) for n in range(10)
    )
    write_lmdb(tmp_path / "base", records)
    net = caffe.Net(
        f"""
layer {{ name: "base" type: "Data" top: "data" top: "label"
  data_param {{ source: "{tmp_path / "base"}" batch_size: 3 backend: LMDB }} }}
layer {{ name: "more" type: "Input" top: "more" input_param {{ shape {{ dim: 3 }} }} }}
""",
        caffe.TEST,
    )
    net.forward()
    net.blobs["more"].reshape(4)
    net.forward()
    np.testing.assert_array_equal(net.blobs["label"].data, [3, 4, 5])
    net.compiled.close()
