"""Weights files of every age and fork; what is written comes back and Caffe's schema reads it."""

from __future__ import annotations

import numpy as np
import pytest

from layrubnet.errors import WeightsError
from layrubnet.proto import BlobProto, LayerParameter, NetParameter
from layrubnet.prototxt import sniff
from layrubnet.prototxt.blobs import decode_blob, encode_blob
from layrubnet.prototxt.weights import read_blob, read_weights, write_blob, write_weights
from layrubnet.prototxt.wire import encode_header
from tests.support.shared import GOLDEN, needs_golden

NET = NetParameter(
    name="n",
    layer=[
        {"name": "data", "type": "Input", "top": ["x"]},
        {"name": "conv1/7x7", "type": "Convolution", "param": [{"name": "w"}]},
        {"name": "twin", "type": "Convolution", "param": [{"name": "w"}]},
    ],
)


def arrays(seed=0):
    rng = np.random.default_rng(seed)
    w, b1, b2 = (rng.normal(size=s).astype(np.float32) for s in [(2, 3, 1, 2), (2,), (2,)])
    return {"conv1/7x7": [w, b1], "twin": [w, b2]}


def binary_cases():
    if not GOLDEN.is_dir():
        return []
    return sorted(p.name for p in GOLDEN.glob("*.caffemodel") if "legacy" not in p.name)


@needs_golden
@pytest.mark.parametrize("name", binary_cases())
def test_caffes_files_are_read_and_written_again(name, tmp_path):
    stored = NetParameter.FromString((GOLDEN / name).read_bytes())
    layers = read_weights(GOLDEN / name)
    assert [(x.name, x.type) for x in layers] == [(x.name, x.type) for x in stored.layer]
    for ours, theirs in zip(layers, stored.layer, strict=True):
        assert len(ours.blobs) == len(theirs.blobs)
        for array, blob in zip(ours.blobs, theirs.blobs, strict=True):
            assert array.shape == tuple(blob.shape.dim)
            assert array.dtype == np.float32
            np.testing.assert_array_equal(array.ravel(), np.array(blob.data, np.float32))
    with_diffs = any(diff is not None for layer in layers for diff in layer.diffs)
    assert with_diffs == ("snapshot_diff" in name)
    diffs = {layer.name: layer.diffs for layer in layers} if with_diffs else None
    path = tmp_path / "again.caffemodel"
    write_weights(path, stored, {layer.name: layer.blobs for layer in layers}, diffs)
    assert NetParameter.FromString(path.read_bytes()) == stored


@needs_golden
def test_legacy_v1_file():
    layers = {x.name: x for x in read_weights(GOLDEN / "model_legacy_v1.caffemodel")}
    case = np.load(GOLDEN / "model_legacy_v1.npz")
    assert layers["c"].type == "Convolution"
    assert layers["f"].blobs[0].shape == (1, 1, 4, 48)
    assert list(layers) == ["c", "r", "f", "gone"]
    for key in ("c.0", "c.1", "f.0", "f.1"):
        name, index = key.split(".")
        loaded = case[f"loaded.{key}"]
        np.testing.assert_array_equal(layers[name].blobs[int(index)].ravel(), loaded.ravel())


@needs_golden
@pytest.mark.parametrize("solver", ["sgd", "adam"])
def test_caffes_hdf5_equals_its_trajectory(solver):
    path = GOLDEN / f"solver_{solver}_hdf5_snapshot_iter_10.caffemodel.h5"
    layers = {x.name: x for x in read_weights(path)}
    assert {name: len(x.blobs) for name, x in layers.items() if x.blobs} == {"f1": 2, "f2": 2}
    assert layers["f1"].blobs[0].shape == (5, 6)


def test_round_trip(tmp_path):
    path = tmp_path / "deep" / "x.caffemodel"
    blobs, diffs = arrays(), arrays(1)
    write_weights(path, NET, blobs, diffs)
    back = {x.name: x for x in read_weights(path)}
    assert list(back) == ["data", "conv1/7x7", "twin"]
    for name, wanted in blobs.items():
        for index, array in enumerate(wanted):
            np.testing.assert_array_equal(back[name].blobs[index], array)
            np.testing.assert_array_equal(back[name].diffs[index], diffs[name][index])
            assert back[name].blobs[index].flags.writeable
    assert [p.name for p in path.parent.iterdir()] == ["x.caffemodel"]
    # The layers are complete messages: Caffe's tools print nets from weights files.
    message = NetParameter.FromString(path.read_bytes())
    assert message.layer[1].param[0].name == "w"
    assert list(message.layer[1].blobs[0].shape.dim) == [2, 3, 1, 2]


def test_round_trip_hdf5(tmp_path):
    path = tmp_path / "x.caffemodel.h5"
    blobs, diffs = arrays(), arrays(1)
    write_weights(path, NET, blobs, diffs)
    back = {x.name: x for x in read_weights(path)}
    assert set(back) == {"data", "conv1/7x7", "twin"}
    np.testing.assert_array_equal(back["conv1/7x7"].blobs[0], blobs["conv1/7x7"][0])
    np.testing.assert_array_equal(back["conv1/7x7"].diffs[1], diffs["conv1/7x7"][1])
    assert back["twin"].blobs[0] is None  # stored under its owner only
    np.testing.assert_array_equal(back["twin"].blobs[1], blobs["twin"][1])


def test_written_blobs_have_to_belong_to_the_net(tmp_path):
    with pytest.raises(WeightsError, match="no layer 'other'"):
        write_weights(tmp_path / "x.caffemodel", NET, {"other": []})
    assert not list(tmp_path.iterdir())


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.caffemodel"
    path.write_bytes(b"old")
    wrong = {"twin": [np.zeros((3,), np.float32)]}
    with pytest.raises(WeightsError, match="another shape"):
        write_weights(path, NET, arrays(), wrong)
    assert path.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("code", [0, 1, 2])
def test_raw_values_of_nvidias_fork(code):
    kind = ["<f8", "<f4", "<f2"][code]
    values = np.arange(6, dtype=kind).reshape(2, 3)
    message = BlobProto(
        shape={"dim": [2, 3]},
        raw_data_type=code,
        raw_diff_type=code,
        raw_data=values.tobytes(),
        raw_diff=(values * 2).tobytes(),
    )
    array, diff = decode_blob(memoryview(message.SerializeToString()))
    assert array.dtype == np.dtype(kind)
    np.testing.assert_array_equal(array, values)
    np.testing.assert_array_equal(diff, values * 2)


def test_other_ways_to_store_values():
    double = BlobProto(shape={"dim": [2]}, double_data=[1, 1e-300], double_diff=[3, 4])
    array, diff = decode_blob(memoryview(double.SerializeToString()))
    assert array.dtype == np.float64
    assert list(array) == [1, 1e-300]
    assert list(diff) == [3, 4]
    legacy = BlobProto(num=1, channels=2, height=1, width=3, data=range(6))
    assert decode_blob(memoryview(legacy.SerializeToString()))[0].shape == (1, 2, 1, 3)
    scalar = BlobProto(shape={}, data=[7])
    assert decode_blob(memoryview(scalar.SerializeToString()))[0].shape == ()
    # Not packed, as a writer with another schema may do it: tag and four bytes per value.
    unpacked = b"".join(b"\x2d" + np.float32(v).tobytes() for v in (1, 2, 3))
    np.testing.assert_array_equal(decode_blob(memoryview(unpacked))[0], [1, 2, 3])
    big_endian_safe = decode_blob(memoryview(encode_blob(np.zeros((0, 3)))))[0]
    assert big_endian_safe.shape == (0, 3)


def test_layer_options_of_any_fork_do_not_matter(tmp_path):
    # Field 13 as another wire type, and bytes that are no message where BVLC has clip_param.
    blob = encode_blob(np.ones((2,), np.float32))
    layer = LayerParameter(name="l", type="Odd").SerializeToString()
    layer += encode_header(7, len(blob)) + blob + encode_header(148, 3) + b"\xff\xff\xff"
    path = tmp_path / "fork.caffemodel"
    path.write_bytes(encode_header(100, len(layer)) + layer)
    (found,) = read_weights(path)
    assert (found.name, found.type, list(found.blobs[0])) == ("l", "Odd", [1, 1])


def test_v0_file(tmp_path):
    net = NetParameter(
        layers=[{"layer": {"name": "c", "type": "conv", "blobs": [{"num": 1, "channels": 1}]}}]
    )
    net.layers[0].layer.blobs[0].MergeFrom(BlobProto(height=1, width=2, data=[1, 2]))
    path = tmp_path / "v0.caffemodel"
    path.write_bytes(net.SerializeToString())
    (layer,) = read_weights(path)
    assert (layer.name, layer.type, layer.blobs[0].shape) == ("c", "conv", (1, 1, 1, 2))


def test_mean_file(tmp_path):
    mean = np.random.default_rng(0).normal(size=(1, 3, 4, 5)).astype(np.float32)
    path = tmp_path / "mean.binaryproto"
    write_blob(path, mean)
    np.testing.assert_array_equal(read_blob(path), mean)
    assert list(BlobProto.FromString(path.read_bytes()).shape.dim) == [1, 3, 4, 5]


def test_wrong_files(tmp_path):
    write_weights(tmp_path / "good.caffemodel", NET, arrays())
    write_weights(tmp_path / "good.caffemodel.h5", NET, arrays())
    write_blob(tmp_path / "mean.binaryproto", np.ones((1, 1, 2, 2)))
    good = (tmp_path / "good.caffemodel").read_bytes()
    hdf5 = (tmp_path / "good.caffemodel.h5").read_bytes()
    mean = (tmp_path / "mean.binaryproto").read_bytes()
    cases = {
        "empty.caffemodel": (b"", "empty file"),
        "cut.caffemodel": (good[:-7], "damaged or cut off"),
        "text.caffemodel": (b'name: "x"\nlayer { }\n', "a text file"),
        "hdf5.caffemodel": (hdf5, "name it"),
        "binary.caffemodel.h5": (good, "the name says HDF5"),
        "cut.caffemodel.h5": (hdf5[:300], "HDF5"),
        "mean.caffemodel": (mean, "a single array"),
        "noise.caffemodel": (bytes(range(255, 0, -1)), "none of Caffe's formats"),
    }
    for name, (content, words) in cases.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(WeightsError) as caught:
            read_weights(tmp_path / name)
        assert words in str(caught.value), name
        assert name in str(caught.value)
    with pytest.raises(WeightsError, match="no such file"):
        read_weights(tmp_path / "none.caffemodel")
    with pytest.raises(WeightsError, match="folder"):
        read_weights(tmp_path)
    with pytest.raises(WeightsError, match="weights file"):
        read_blob(tmp_path / "good.caffemodel")


def test_kinds():
    assert sniff.kind_of(NET.SerializeToString()) == sniff.WEIGHTS
    assert sniff.kind_of(NetParameter(layers=[{"name": "a"}]).SerializeToString()) == sniff.WEIGHTS
    assert sniff.kind_of("name: 'é'".encode()) == sniff.TEXT
