"""Nets written in Python."""

from __future__ import annotations

import doctest

import numpy as np
import pytest

from layrubnet import pycaffe as caffe
from layrubnet.pycaffe import net_spec

L, P = caffe.layers, caffe.params


def small() -> caffe.NetSpec:
    n = caffe.NetSpec()
    n.data, n.label = L.Input(ntop=2, shape=[{"dim": [2, 1, 6, 6]}, {"dim": [2]}])
    n.conv = L.Convolution(
        n.data,
        kernel_size=3,
        num_output=4,
        weight_filler={"type": "xavier"},
        param=[{"lr_mult": 1}, {"lr_mult": 2}],
    )
    n.relu = L.ReLU(n.conv, in_place=True)
    n.pool = L.Pooling(n.relu, kernel_size=2, stride=2, pool=P.Pooling.AVE)
    n.score = L.InnerProduct(n.pool, num_output=3)
    n.loss = L.SoftmaxWithLoss(n.score, n.label, loss_param={"ignore_label": 2})
    return n


def test_the_net_runs() -> None:
    net = caffe.Net(small().to_proto(), caffe.TRAIN)
    assert list(net.blobs) == ["data", "label", "conv", "pool", "score", "loss"]
    assert net.forward()["loss"] == pytest.approx(np.log(3), abs=1e-5)


def test_the_message() -> None:
    proto = small().to_proto()
    conv, relu, pool, loss = proto.layer[1], proto.layer[2], proto.layer[3], proto.layer[5]
    assert [p.lr_mult for p in conv.param] == [1, 2]
    assert list(conv.convolution_param.kernel_size) == [3]
    assert conv.convolution_param.weight_filler.type == "xavier"
    assert (list(relu.bottom), list(relu.top), relu.name) == (["conv"], ["conv"], "relu")
    assert pool.pooling_param.pool == P.Pooling.AVE
    assert loss.loss_param.ignore_label == 2


def test_automatic_names() -> None:
    data = L.Input(shape={"dim": [1, 4]})
    first = L.InnerProduct(data, num_output=2)
    second = L.InnerProduct(first, num_output=2, name="second")
    proto = caffe.to_proto(second, L.Silence(first, ntop=0))
    assert [layer.name for layer in proto.layer] == [
        "Input1",
        "InnerProduct1",
        "second",
        "Silence1",
    ]
    del proto.layer[3]
    assert second.to_proto() == proto


def test_a_chain_of_any_length() -> None:
    top = L.Input(shape={"dim": [1, 4]})
    for _ in range(3000):
        top = L.Power(top, scale=2)
    assert len(caffe.to_proto(top).layer) == 3001


def test_enums_by_name_and_mistakes() -> None:
    data = L.Input(shape={"dim": [1, 1, 4, 4]})
    assert caffe.to_proto(L.Pooling(data, pool="AVE")).layer[1].pooling_param.pool == 1
    with pytest.raises(TypeError, match="no option 'kernel'"):
        caffe.to_proto(L.Pooling(data, kernel=2))
    with pytest.raises(TypeError, match="no field 'dims'"):
        caffe.to_proto(L.Input(shape={"dims": [1]}))
    with pytest.raises(TypeError, match="is not a Top"):
        L.ReLU("data")
    with pytest.raises(TypeError, match="in_place"):
        L.Eltwise(data, data, in_place=True)
    with pytest.raises(AttributeError):
        _ = P.NoSuchLayer
    n = caffe.NetSpec()
    n["a"] = data
    n.quiet = L.Silence(data, ntop=0)
    assert [layer.name for layer in n.to_proto().layer] == ["a", "quiet"]
    assert n.a is n["a"]
    del n.a
    with pytest.raises(AttributeError):
        _ = n.a


def test_example_in_the_docstring() -> None:
    assert doctest.testmod(net_spec).failed == 0
