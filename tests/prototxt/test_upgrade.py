"""Old formats against what Caffe's own tools make of them, and the contradictions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from layrubnet.errors import PrototxtError
from layrubnet.proto import NetParameter, enum_name
from layrubnet.prototxt.positions import Positions
from layrubnet.prototxt.text import read_net, read_solver, to_text
from layrubnet.prototxt.upgrade import upgrade_net

V1_TYPES = (
    "AbsVal Accuracy ArgMax BNLL Concat ContrastiveLoss Convolution Data Deconvolution Dropout "
    "DummyData EuclideanLoss Eltwise Exp Flatten HDF5Data HDF5Output HingeLoss Im2col ImageData "
    "InfogainLoss InnerProduct LRN MemoryData MultinomialLogisticLoss MVN Pooling Power ReLU "
    "Sigmoid SigmoidCrossEntropyLoss Silence Softmax SoftmaxWithLoss Split Slice TanH WindowData "
    "Threshold"
)
GOLDEN = Path(__file__).parents[1] / "golden"


def golden(name):
    return json.loads((GOLDEN / f"{name}.json").read_text())


@pytest.mark.parametrize("name", ["upgrade_v0", "upgrade_v1"])
def test_nets_as_caffe_upgrades_them(name):
    case = golden(name)
    assert to_text(read_net(case["input"])[0]) == case["output"]


def test_solver_as_caffe_upgrades_it():
    case = golden("upgrade_solver")
    assert to_text(read_solver(case["input"])) == case["output"]


def test_positions_follow_the_layers():
    net, places = read_net(golden("upgrade_v0")["input"])
    assert len(net.layer) == len(places.layers)
    # The Input layer is ours, the padding layer on line 3 is gone.
    assert [place and place.line for place in places.layers[:3]] == [None, 4, 5]


def test_current_nets_stay_as_they_are():
    text = golden("upgrade_v1")["output"]
    assert to_text(read_net(text)[0]) == text


def test_solver_type_given_twice():
    with pytest.raises(PrototxtError, match="both solver_type and type"):
        read_solver('solver_type: SGD type: "Adam"')


def test_l01_mixed_formats_are_refused():
    text = 'layer{name:"d" type:"DummyData" top:"x"}\nlayers{name:"r" type:RELU bottom:"x" top:"y"}'
    with pytest.raises(PrototxtError) as caught:
        read_net(text, filename="net.prototxt")
    message = str(caught.value)
    assert "'layer' at net.prototxt:1:1, 'layers' at net.prototxt:2:1" in message


def test_l02_three_ways_to_declare_an_input():
    ways = [
        'input: "data" input_dim: 1 input_dim: 3 input_dim: 8 input_dim: 8',
        'input: "data" input_shape { dim: [1, 3, 8, 8] }',
        'layer { name: "input" type: "Input" top: "data" '
        "input_param { shape { dim: [1, 3, 8, 8] } } }",
    ]
    rest = ' layer { name: "r" type: "ReLU" bottom: "data" top: "r" }'
    nets = [read_net(way + rest)[0] for way in ways]
    assert nets[0] == nets[1] == nets[2]
    assert [layer.name for layer in nets[0].layer] == ["input", "r"]


def test_l02_two_inputs():
    net, _ = read_net('input: "a" input: "b" input_dim: [1, 2, 3, 4, 5, 6, 7, 8]')
    (layer,) = net.layer
    assert list(layer.top) == ["a", "b"]
    assert [list(shape.dim) for shape in layer.input_param.shape] == [[1, 2, 3, 4], [5, 6, 7, 8]]


@pytest.mark.parametrize(
    "text",
    [
        'input: "a" input_dim: 1 input_dim: 2',
        'input: "a" input: "b" input_shape { dim: 1 }',
        'input: "a" input_shape { dim: 1 } input_dim: [1, 1, 1, 1]',
    ],
)
def test_inputs_that_contradict_themselves(text):
    with pytest.raises(PrototxtError):
        read_net(text)


def test_l03_inputs_without_shapes_are_dropped():
    net = NetParameter(input=["data"], layers=[{"name": "c", "type": 4, "blobs": [{"data": [1]}]}])
    upgraded, _ = upgrade_net(net)
    assert [(layer.name, layer.type) for layer in upgraded.layer] == [("c", "Convolution")]
    assert list(upgraded.layer[0].blobs[0].data) == [1]
    assert not upgraded.input


def test_l04_v1_parameters():
    net, _ = read_net(
        'layers { name: "c" type: CONVOLUTION blobs_lr: 1 blobs_lr: 2 weight_decay: 1 '
        'weight_decay: 0 param: "w" blob_share_mode: PERMISSIVE }'
    )
    weight, bias = net.layer[0].param
    assert (weight.lr_mult, weight.decay_mult) == (1, 1)
    assert (bias.lr_mult, bias.decay_mult) == (2, 0)
    assert weight.name == "w"
    assert enum_name(weight, "share_mode") == "PERMISSIVE"
    assert not bias.HasField("name")


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        ("", "CEIL"),
        ("ceil_mode: false", "FLOOR"),
        ("ceil_mode: true", "CEIL"),
        ("round_mode: FLOOR", "FLOOR"),
        ("torch_pooling: true", "FLOOR"),
        ("torch_pooling: true ceil_mode: false round_mode: FLOOR", "FLOOR"),
    ],
)
def test_l06_pooling_rounds_as_asked(wish, expected):
    net, _ = read_net(f'layer {{ type: "Pooling" pooling_param {{ {wish} }} }}')
    pooling = net.layer[0].pooling_param
    assert enum_name(pooling, "round_mode") == expected
    assert not pooling.HasField("ceil_mode")
    assert not pooling.HasField("torch_pooling")


@pytest.mark.parametrize(
    "wish", ["ceil_mode: true round_mode: FLOOR", "torch_pooling: true round_mode: CEIL"]
)
def test_l06_contradictory_rounding(wish):
    with pytest.raises(PrototxtError, match=r"net\.prototxt:1:1 layer 'p'") as caught:
        read_net(f'layer {{ name: "p" pooling_param {{ {wish} }} }}', filename="net.prototxt")
    assert "round_mode" in str(caught.value)


def test_batch_norm_of_old_lists_three_params():
    three = "param { lr_mult: 0 } " * 3
    net, _ = read_net(f'layer {{ type: "BatchNorm" {three} }} layer {{ type: "Scale" {three} }}')
    assert [len(layer.param) for layer in net.layer] == [0, 3]


def test_old_transform_fields():
    v1 = (
        'layers { type: IMAGE_DATA image_data_param { scale: 0.5 mean_file: "m" } '
        "transform_param { scale: 2 mirror: true } }"
    )
    transform = read_net(v1)[0].layer[0].transform_param
    assert (transform.scale, transform.mean_file, transform.mirror) == (0.5, "m", True)
    now = 'layer { type: "Data" data_param { crop_size: 5 mirror: true } }'
    layer = read_net(now)[0].layer[0]
    assert (layer.transform_param.crop_size, layer.transform_param.mirror) == (5, True)
    assert not layer.data_param.HasField("crop_size")
    with pytest.raises(PrototxtError, match="crop_size is given in data_param"):
        read_net("layer { data_param { crop_size: 5 } transform_param { crop_size: 6 } }")


def test_v0_types_and_errors():
    net, _ = read_net(
        'layers { layer { name: "i" type: "images" source: "s" batchsize: 2 meanfile: "m" '
        'shuffle_images: true new_height: 4 } top: "d" }'
    )
    options = net.layer[0].image_data_param
    assert (options.source, options.batch_size, options.shuffle) == ("s", 2, True)
    assert net.layer[0].transform_param.mean_file == "m"
    with pytest.raises(PrototxtError, match="unknown layer type 'convolve'"):
        read_net('layers { layer { name: "c" type: "convolve" } }')
    with pytest.raises(PrototxtError, match="no field 'pad'"):
        read_net('layers { layer { name: "c" type: "relu" pad: 1 } }')
    with pytest.raises(PrototxtError, match="can only be followed by"):
        read_net(
            'layers { layer { name: "p" type: "padding" pad: 2 } bottom: "x" top: "p" }'
            'layers { layer { name: "r" type: "relu" } bottom: "p" top: "r" }'
        )


def test_every_v1_type_has_the_current_name():
    kinds = NetParameter.DESCRIPTOR.fields_by_name["layers"].message_type
    names = [v.name for v in kinds.enum_types_by_name["LayerType"].values]
    net, _ = read_net(" ".join(f"layers {{ type: {name} }}" for name in names))
    assert {layer.type for layer in net.layer} == {"", *V1_TYPES.split()}


def test_the_given_net_is_not_changed():
    net = NetParameter(input=["x"], input_dim=[1, 2, 3, 4], layer=[{"name": "a"}])
    before = net.SerializeToString()
    upgrade_net(net, Positions("f"))
    assert net.SerializeToString() == before
