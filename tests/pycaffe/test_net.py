"""Looking into a net, running it in whole and in part."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from layrubnet import pycaffe as caffe
from layrubnet.errors import DeviceError, LayrubError, NetError
from tests.pycaffe.nets import FULLY_CONVOLUTIONAL, IN_PLACE, LENET


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(11)


def train_net(rng: np.random.Generator) -> caffe.Net:
    net = caffe.Net(LENET, caffe.TRAIN)
    net.blobs["data"].data[...] = rng.normal(size=(4, 1, 8, 8))
    net.blobs["label"].data[...] = [0, 1, 2, 1]
    return net


def test_all_orders_of_arguments(tmp_path: Path) -> None:
    file, weights = str(tmp_path / "net.prototxt"), str(tmp_path / "net.caffemodel")
    Path(file).write_text(LENET)
    first = caffe.Net(file, caffe.TEST)
    first.save(weights)
    for net in (
        caffe.Net(file, weights, caffe.TEST),
        caffe.Net(file, caffe.TEST, weights=weights),
        caffe.Net(file, caffe.TEST, 0, [], weights),
        caffe.Net(network_file=file, phase=caffe.TEST, weights=weights),
    ):
        np.testing.assert_array_equal(net.params["ip1"][0].data, first.params["ip1"][0].data)
    for bad in ((file,), (file, weights), (file, 7), (file, 1, 0, [], weights, 3)):
        with pytest.raises(TypeError):
            caffe.Net(*bad)


def test_names_and_shapes(rng: np.random.Generator) -> None:
    net = train_net(rng)
    assert list(net.blobs) == ["data", "label", "conv1", "pool1", "ip1", "ip2", "loss"]
    assert net.inputs == ["data", "label"]
    assert net.outputs == ["loss"]
    assert list(net.params) == ["conv1", "ip1", "ip2"]
    assert [b.shape for b in net.params["conv1"]] == [(3, 1, 3, 3), (3,)]
    assert net._layer_names[:3] == ["data", "conv1", "pool1"]
    assert [layer.type for layer in net.layers][:3] == ["Input", "Convolution", "Pooling"]
    assert len(net.layers[1].blobs) == 2
    assert net.layer_dict["ip2"].blobs[1].shape == (3,)
    assert net.bottom_names["loss"] == ["ip2", "label"]
    assert net.top_names["data"] == ["data", "label"]
    assert net.blob_loss_weights["loss"] == 1
    assert net.blob_loss_weights["ip2"] == 0


def test_legacy_dimensions(rng: np.random.Generator) -> None:
    net = train_net(rng)
    conv = net.blobs["conv1"]
    assert (conv.num, conv.channels, conv.height, conv.width) == (4, 3, 6, 6)
    assert conv.count == 4 * 3 * 6 * 6
    ip = net.blobs["ip1"]
    assert (ip.num, ip.channels, ip.height, ip.width) == (4, 5, 1, 1)
    assert net.blobs["loss"].shape == ()
    assert net.blobs["loss"].count == 1


def test_level_and_stages() -> None:
    text = IN_PLACE.replace('top: "z"', 'top: "z" include { min_level: 1 stage: "deploy" }')
    assert "out" not in caffe.Net(text, caffe.TEST)._layer_names
    assert "out" not in caffe.Net(text, caffe.TEST, level=1)._layer_names
    assert "out" in caffe.Net(text, caffe.TEST, level=1, stages=["deploy"])._layer_names


def test_gradients_of_parameters_add_up_and_those_of_blobs_do_not(
    rng: np.random.Generator,
) -> None:
    net = train_net(rng)
    net.forward()
    net.backward()
    once = {n: [b.diff.copy() for b in blobs] for n, blobs in net.params.items()}
    blob = net.blobs["ip1"].diff.copy()
    assert np.abs(once["conv1"][0]).max() > 0
    net.backward()
    for name, diffs in once.items():
        for twice, diff in zip(net.params[name], diffs, strict=True):
            np.testing.assert_allclose(twice.diff, 2 * diff, rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(net.blobs["ip1"].diff, blob)
    net.clear_param_diffs()
    assert all(not b.diff.any() for blobs in net.params.values() for b in blobs)


def test_a_blob_without_gradient_has_zeros_that_can_be_written(rng: np.random.Generator) -> None:
    net = train_net(rng)
    diff = net.blobs["label"].diff
    np.testing.assert_array_equal(diff, np.zeros(4))
    diff[0] = 3
    assert net.blobs["label"].diff[0] == 3


def test_forward_takes_all_inputs_or_none(rng: np.random.Generator) -> None:
    net = train_net(rng)
    data, label = rng.normal(size=(4, 1, 8, 8)), np.zeros(4)
    loss = net.forward(data=data, label=label)["loss"]
    assert loss > 0
    assert loss is not None
    assert set(net.forward(blobs=["ip1", "pool1"])) == {"loss", "ip1", "pool1"}
    with pytest.raises(NetError, match="do not match net inputs"):
        net.forward(data=data)
    with pytest.raises(NetError, match="not batch sized"):
        net.forward(data=data[:2], label=label)


def test_backward_takes_gradients_of_outputs(rng: np.random.Generator) -> None:
    net = caffe.Net(FULLY_CONVOLUTIONAL, caffe.TEST)
    net.forward(data=rng.normal(size=(2, 1, 8, 8)))
    seed = rng.normal(size=(2, 5, 1, 1)).astype(np.float32)
    net.params["fc-conv"][0].data[...] = rng.normal(size=(5, 3, 3, 3))
    found = net.backward(fc=seed, diffs=["pool1"])
    assert set(found) == {"data", "pool1"}
    expected = np.einsum("no,ochw->nchw", seed[:, :, 0, 0], net.params["fc-conv"][0].data)
    np.testing.assert_allclose(found["pool1"], expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(net.blobs["fc"].diff, seed)
    with pytest.raises(NetError, match="do not match net outputs"):
        net.backward(pool1=seed)


def test_running_in_part(rng: np.random.Generator) -> None:
    net = train_net(rng)
    whole = net.forward()["loss"].copy()
    assert set(net.forward(end="pool1")) == {"pool1"}
    net.blobs["ip1"].data[...] = 0
    assert net.forward(start="ip2")["loss"] == pytest.approx(np.log(3), abs=1e-5)
    assert net.forward(start="ip1")["loss"] == whole
    last = len(net.layers) - 1
    assert net._forward(0, last) == pytest.approx(float(whole), rel=1e-6)
    assert net._forward(0, last - 1) == 0
    net.clear_param_diffs()
    net._backward(last, last)
    assert not net.params["ip2"][0].diff.any()
    net._backward(last - 1, 0)
    assert net.params["ip2"][0].diff.any()
    with pytest.raises(NetError, match="did you mean pool1"):
        net.forward(end="pol1")


def test_backward_from_the_middle(rng: np.random.Generator) -> None:
    net = caffe.Net(FULLY_CONVOLUTIONAL, caffe.TEST)
    net.forward(data=rng.normal(size=(2, 1, 8, 8)), end="conv1")
    net.blobs["conv1"].diff[...] = 0
    net.blobs["conv1"].diff[0, 1, 2, 3] = 1
    found = net.backward(start="conv1")
    expected = np.zeros((2, 1, 8, 8))
    expected[0, 0, 2:5, 3:6] = net.params["conv1"][0].data[1, 0]
    np.testing.assert_allclose(found["data"], expected, atol=1e-6)
    assert set(net.backward(start="fc-conv", end="pool1")) == {"conv1"}


def test_a_blob_is_one_array_also_where_layers_work_in_place() -> None:
    net = caffe.Net(IN_PLACE, caffe.TEST)
    y = net.blobs["y"]
    net.forward(x=np.ones((2, 3)))
    assert (y.data == 30).all()
    net.forward(end="double")
    assert (y.data == 2).all()
    net.forward(end="scale")
    assert (y.data == 10).all()
    y.data[...] = 7
    net.forward(start="shift")
    assert (y.data == 21).all()
    assert (net.blobs["z"].data == 22).all()
    y.data[...] = 1
    net.forward(start="scale", end="shift")
    assert (y.data == 15).all()
    assert (net.blobs["z"].data == 22).all()


def test_the_gradient_of_an_in_place_blob_is_that_of_its_first_version() -> None:
    net = caffe.Net(IN_PLACE, caffe.TEST)
    net.forward(x=np.ones((2, 3)))
    assert (net.backward(z=np.ones((2, 3)))["x"] == 30).all()
    assert (net.blobs["y"].diff == 15).all()
    y = net.blobs["y"]
    y.diff[...] = 1
    net.backward(start="scale", end="scale")
    assert (y.diff == 5).all()
    y.diff[...] = 4
    net.backward(start="double")
    assert (net.blobs["x"].diff == 8).all()


def test_more_rows_than_a_batch(rng: np.random.Generator) -> None:
    net = caffe.Net(LENET, caffe.TEST)
    rows = rng.normal(size=(5, 1, 8, 8)).astype(np.float32)
    found = net.forward_all(data=rows, blobs=["ip1"])
    assert found["prob"].shape == (5, 3)
    assert found["ip1"].shape == (5, 5)
    for row, prob in zip(rows, found["prob"], strict=True):
        single = net.forward(data=np.stack([row, row]))["prob"][0]
        np.testing.assert_allclose(prob, single, rtol=1e-5)


def test_forward_and_backward_over_many_rows(rng: np.random.Generator) -> None:
    net = caffe.Net(FULLY_CONVOLUTIONAL, caffe.TEST)
    net.params["fc-conv"][0].data[...] = rng.normal(size=(5, 3, 3, 3))
    rows = rng.normal(size=(3, 1, 8, 8)).astype(np.float32)
    seeds = rng.normal(size=(3, 5, 1, 1)).astype(np.float32)
    outputs, gradients = net.forward_backward_all(data=rows, fc=seeds, diffs=["conv1"])
    assert outputs["fc"].shape == (3, 5, 1, 1)
    assert gradients["data"].shape == (3, 1, 8, 8)
    assert gradients["conv1"].shape == (3, 3, 6, 6)
    net.forward(data=np.stack([rows[2], rows[0]]))
    single = net.backward(fc=np.stack([seeds[2], seeds[0]]))["data"]
    np.testing.assert_allclose(gradients["data"][2], single[0], rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="different numbers of rows"):
        net.forward_backward_all(data=rows, fc=seeds[:1])


def test_the_random_seed_repeats_a_net_and_separates_two() -> None:
    def weights() -> np.ndarray:
        return np.array(caffe.Net(LENET, caffe.TEST).params["ip1"][0].data)

    caffe.set_random_seed(5)
    first, second = weights(), weights()
    caffe.set_random_seed(5)
    np.testing.assert_array_equal(weights(), first)
    assert (first != second).any()


def test_no_gpu_yet() -> None:
    caffe.set_mode_cpu()
    with pytest.raises(DeviceError, match="set_mode_cpu"):
        caffe.set_mode_gpu()
    with pytest.raises(DeviceError, match="CPU only"):
        caffe.set_device(0)


def test_a_label_out_of_range_is_an_exception(rng: np.random.Generator) -> None:
    net = train_net(rng)
    net.blobs["label"].data[2] = 9
    with pytest.raises(LayrubError, match="9"):
        net.forward()


def test_known_types_and_messages() -> None:
    assert {"Convolution", "InnerProduct", "Input"} <= set(caffe.layer_type_list())
    pb = caffe.proto.caffe_pb2
    assert pb.NetParameter(name="x").name == "x"
    assert (pb.TRAIN, pb.TEST) == (caffe.TRAIN, caffe.TEST) == (0, 1)
    assert pb.Phase.Value("TEST") == caffe.TEST
    assert "SolverParameter" in dir(pb)
    with pytest.raises(AttributeError):
        _ = pb.NoSuchMessage


def test_a_composite_layer_is_one_layer() -> None:
    import tests.engine.stubs  # noqa: F401  (registers the stub types)

    net = caffe.Net(
        """
layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 3 dim: 4 dim: 8 } } }
layer { name: "rnn" type: "StubLSTM" bottom: "x" top: "y" }
layer { name: "out" type: "Power" bottom: "y" top: "z" power_param { scale: 2 } }
""",
        caffe.TEST,
    )
    assert net._layer_names == ["in", "rnn", "out"]
    assert list(net.blobs) == ["x", "y", "z"]
    assert (net.layer_dict["rnn"].type, len(net.layer_dict["rnn"].blobs)) == ("StubLSTM", 1)
    assert (net.bottom_names["rnn"], net.top_names["rnn"]) == (["x"], ["y"])
    assert list(net.params) == ["rnn"]
    net.blobs["y"].data[...] = 4
    net.forward(start="out")
    assert (net.blobs["z"].data == 8).all()
    with pytest.raises(NetError, match="has no layer"):
        net.forward(start="rnn/out")
