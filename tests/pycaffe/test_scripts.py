"""The kinds of scripts that people have: surgery, classification, filters, siamese, ascent."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from layrubnet import pycaffe as caffe
from layrubnet.errors import ShapeError
from tests.pycaffe.nets import FULLY_CONVOLUTIONAL, LENET

COLOUR = """
force_backward: true
layer { name: "data" type: "Input" top: "data"
  input_param { shape { dim: 10 dim: 3 dim: 6 dim: 6 } } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "gaussian" std: 0.1 } } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "fc" type: "InnerProduct" bottom: "conv1" top: "fc"
  inner_product_param { num_output: 5 weight_filler { type: "gaussian" std: 0.1 } } }
layer { name: "prob" type: "Softmax" bottom: "fc" top: "prob" }
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """A colour net with weights."""
    model, weights = str(tmp_path / "deploy.prototxt"), str(tmp_path / "net.caffemodel")
    Path(model).write_text(COLOUR)
    caffe.set_random_seed(1)
    caffe.Net(model, caffe.TEST).save(weights)
    return model, weights


def test_net_surgery_casts_fully_connected_layers_to_convolutions(tmp_path: Path) -> None:
    caffe.set_mode_cpu()
    net = caffe.Net(LENET, caffe.TEST)
    full_conv = caffe.Net(FULLY_CONVOLUTIONAL, caffe.TEST)
    for source, target in zip(net.params["conv1"], full_conv.params["conv1"], strict=True):
        target.data[...] = source.data
    fc = {pr: (net.params[pr][0].data, net.params[pr][1].data) for pr in ["ip1"]}
    conv = {pr: (full_conv.params[pr][0].data, full_conv.params[pr][1].data) for pr in ["fc-conv"]}
    conv["fc-conv"][0].flat = fc["ip1"][0].flat
    conv["fc-conv"][1][...] = fc["ip1"][1]
    full_conv.save(str(tmp_path / "full_conv.caffemodel"))
    image = np.random.default_rng(2).normal(size=(1, 1, 10, 10)).astype(np.float32)
    full_conv.blobs["data"].reshape(*image.shape)
    scores = full_conv.forward_all(data=image)["fc"]
    assert scores.shape == (1, 5, 2, 2)
    for y in range(2):
        for x in range(2):
            window = image[:, :, 2 * y : 2 * y + 8, 2 * x : 2 * x + 8]
            net.blobs["data"].data[...] = window
            net.forward(end="ip1")
            np.testing.assert_allclose(scores[0, :, y, x], net.blobs["ip1"].data[0], atol=1e-5)


def test_classification_with_a_transformer(files: tuple[str, str]) -> None:
    model, weights = files
    net = caffe.Net(model, weights, caffe.TEST)
    transformer = caffe.io.Transformer({"data": net.blobs["data"].data.shape})
    transformer.set_transpose("data", (2, 0, 1))
    transformer.set_mean("data", np.array([104.0, 117.0, 123.0]))
    transformer.set_raw_scale("data", 255)
    transformer.set_channel_swap("data", (2, 1, 0))
    net.blobs["data"].reshape(1, 3, 6, 6)
    image = np.random.default_rng(3).random((9, 8, 3)).astype(np.float32)
    net.blobs["data"].data[...] = transformer.preprocess("data", image)
    output_prob = net.forward()["prob"][0]
    assert output_prob.shape == (5,)
    assert output_prob.sum() == pytest.approx(1, abs=1e-5)
    top = output_prob.argsort()[::-1][:3]
    assert output_prob[top[0]] == output_prob.max()
    for blob in net.blobs.values():
        assert blob.data.shape[0] == 1


def test_the_classifier(files: tuple[str, str]) -> None:
    model, weights = files
    classifier = caffe.Classifier(
        model,
        weights,
        image_dims=(8, 8),
        mean=np.array([10.0, 20, 30]),
        raw_scale=255,
        channel_swap=(2, 1, 0),
        input_scale=0.1,
    )
    images = [np.random.default_rng(n).random((8, 8, 3)).astype(np.float32) for n in range(2)]
    averaged = classifier.predict(images)
    assert averaged.shape == (2, 5)
    ten = caffe.io.oversample([images[1]], (6, 6))
    single = [classifier.transformer.preprocess("data", crop) for crop in ten]
    expected = classifier.forward_all(data=np.stack(single))["prob"].mean(axis=0)
    np.testing.assert_allclose(averaged[1], expected, atol=1e-5)
    centre = classifier.predict(images, oversample=False)
    np.testing.assert_allclose(
        centre[0],
        classifier.forward_all(
            data=classifier.transformer.preprocess("data", images[0][1:7, 1:7])[None]
        )["prob"][0],
        atol=1e-5,
    )


def test_filters_as_a_picture(files: tuple[str, str]) -> None:
    net = caffe.Net(*files, caffe.TEST)
    filters = net.params["conv1"][0].data.transpose(0, 2, 3, 1)
    filters = (filters - filters.min()) / (filters.max() - filters.min())
    side = int(np.ceil(np.sqrt(filters.shape[0])))
    padded = np.pad(filters, [(0, side**2 - len(filters)), (0, 1), (0, 1), (0, 0)])
    tiled = padded.reshape(side, side, 4, 4, 3).transpose(0, 2, 1, 3, 4).reshape(8, 8, 3)
    np.testing.assert_array_equal(tiled[4:7, :3], filters[2])


def test_gradient_ascent_on_a_layer(files: tuple[str, str]) -> None:
    net = caffe.Net(*files, caffe.TEST)
    source, target = net.blobs["data"], net.blobs["conv1"]
    source.reshape(1, 3, 7, 7)
    with pytest.raises(ShapeError):
        net.reshape()
    source.reshape(1, 3, 6, 6)
    source.data[...] = np.random.default_rng(4).normal(size=(1, 3, 6, 6))
    strength = []
    for _ in range(5):
        net.forward(end="relu1")
        strength.append(float((target.data**2).sum()))
        target.diff[:] = target.data
        net.backward(start="relu1")
        gradient = source.diff[0]
        source.data[:] += 0.5 * gradient / np.abs(gradient).mean()
    assert all(later > earlier for earlier, later in itertools.pairwise(strength))


def siamese() -> str:
    tower = """
layer {{ name: "ip{s}" type: "InnerProduct" bottom: "data{s}" top: "ip{s}"
  param {{ name: "w" lr_mult: 1 }} param {{ name: "b" lr_mult: 2 }}
  inner_product_param {{ num_output: 2 weight_filler {{ type: "xavier" }} }} }}
"""
    return (
        """
layer { name: "pair" type: "Input" top: "data" top: "data_p" top: "sim"
  input_param { shape { dim: 6 dim: 4 } shape { dim: 6 dim: 4 } shape { dim: 6 } } }
"""
        + tower.format(s="")
        + tower.format(s="_p")
        + """
layer { name: "loss" type: "ContrastiveLoss" bottom: "ip" bottom: "ip_p" bottom: "sim" top: "loss"
  contrastive_loss_param { margin: 1 } }
"""
    )


def test_siamese_towers_learn_together(tmp_path: Path) -> None:
    (tmp_path / "net.prototxt").write_text(siamese())
    (tmp_path / "solver.prototxt").write_text(
        f'net: "{tmp_path / "net.prototxt"}" base_lr: 0.1 momentum: 0.9 lr_policy: "fixed"'
    )
    solver = caffe.SGDSolver(str(tmp_path / "solver.prototxt"))
    rng = np.random.default_rng(0)
    net = solver.net
    left = rng.normal(size=(6, 4))
    similar = np.array([1, 1, 1, 0, 0, 0])
    net.blobs["data"].data[...] = left
    net.blobs["data_p"].data[...] = np.where(similar[:, None], left, -left)
    net.blobs["sim"].data[...] = similar
    losses = []
    for _ in range(40):
        solver.step(1)
        losses.append(float(net.blobs["loss"].data))
        assert net.params["ip"][0].data.base is net.params["ip_p"][0].data.base
        np.testing.assert_array_equal(net.params["ip"][0].data, net.params["ip_p"][0].data)
    assert losses[-1] < 0.2 * losses[0]
