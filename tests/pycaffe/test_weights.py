"""Weights into files and back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from layrubnet import pycaffe as caffe
from layrubnet.errors import WeightsError
from layrubnet.prototxt.weights import read_weights
from tests.pycaffe.nets import LENET


@pytest.mark.parametrize("name", ["w.caffemodel", "w.caffemodel.h5"])
def test_round_trip(name: str, tmp_path: Path) -> None:
    if name.endswith(".h5"):
        pytest.importorskip("h5py")
    saved, loaded = caffe.Net(LENET, caffe.TRAIN), caffe.Net(LENET, caffe.TEST)
    path = str(tmp_path / name)
    saved.save(path)
    loaded.copy_from(path)
    for layer, blobs in saved.params.items():
        for mine, other in zip(blobs, loaded.params[layer], strict=True):
            np.testing.assert_array_equal(mine.data, other.data)


def test_hdf5_with_gradients(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    net = caffe.Net(LENET, caffe.TRAIN)
    net.params["ip2"][1].diff[...] = [1, 2, 3]
    path = str(tmp_path / "w.h5")
    net.save_hdf5(path, write_diff=True)
    diffs = {layer.name: layer.diffs for layer in read_weights(path)}
    np.testing.assert_array_equal(diffs["ip2"][1], [1, 2, 3])
    other = caffe.Net(LENET, caffe.TEST)
    other.load_hdf5(path)
    np.testing.assert_array_equal(other.params["ip1"][0].data, net.params["ip1"][0].data)


def test_fine_tuning_needs_another_name_for_another_shape(tmp_path: Path) -> None:
    path = str(tmp_path / "w.caffemodel")
    saved = caffe.Net(LENET, caffe.TEST)
    saved.save(path)
    bigger = LENET.replace("num_output: 3 weight", "num_output: 4 weight")
    net = caffe.Net(bigger, caffe.TEST)
    before = np.array(net.params["conv1"][0].data)
    with pytest.raises(WeightsError, match="layer 'ip2'"):
        net.copy_from(path)
    np.testing.assert_array_equal(net.params["conv1"][0].data, before)
    renamed = caffe.Net(bigger.replace('name: "ip2"', 'name: "new"'), caffe.TEST, weights=path)
    np.testing.assert_array_equal(renamed.params["ip1"][0].data, saved.params["ip1"][0].data)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="no such file"):
        caffe.Net(LENET, caffe.TEST, weights=str(tmp_path / "none.caffemodel"))
