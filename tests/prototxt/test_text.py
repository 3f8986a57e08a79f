"""Reading text: what is accepted, and what the errors say."""

from __future__ import annotations

import math

import pytest

from layrubnet.errors import PrototxtError
from layrubnet.proto import NetParameter, SolverParameter
from layrubnet.prototxt.forks import fork_fields
from layrubnet.prototxt.text import parse, read_net, read_solver, to_text


def one_layer(body):
    net, _ = read_net('layer { name: "l" ' + body + " }")
    return net.layer[0]


def failure(call, *args, **options):
    with pytest.raises(PrototxtError) as caught:
        call(*args, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("body", "check"),
    [
        ("top: 'a', top: 'b';", lambda x: list(x.top) == ["a", "b"]),
        ("type: 'x'", lambda x: x.type == "x"),
        ("include < phase: 0 >", lambda x: x.include[0].phase == 0),
        ('type: "Re" "LU"', lambda x: x.type == "ReLU"),
        ("propagate_down: True propagate_down: 0", lambda x: list(x.propagate_down) == [True, 0]),
        ("loss_weight: .1f", lambda x: x.loss_weight[0] == pytest.approx(0.1)),
        (
            "input_param { shape { dim: [1, 3, 224, 224] } }",
            lambda x: list(x.input_param.shape[0].dim) == [1, 3, 224, 224],
        ),
        ("eltwise_param { coeff: inf }", lambda x: math.isinf(x.eltwise_param.coeff[0])),
        ('top: "数据"', lambda x: x.top[0] == "数据"),
        (
            "convolution_param { num_output: 010 }",
            lambda x: x.convolution_param.num_output == 8,  # octal, as in Caffe
        ),
    ],
)
def test_accepted_oddities(body, check):
    assert check(one_layer(body))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("max_iter: 1 max_iter: 2", ['multiple "max_iter"', "give it once"]),
        ("max_iter: 1e4", ["1e4", "whole number"]),
        ("net: x", ["net.prototxt:1:6"]),
    ],
)
def test_rejected_in_solvers(text, words):
    message = failure(parse, text, SolverParameter, "net.prototxt")
    assert all(word in message for word in words), message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("layer { pooling_param { kernel_size: 3.0 } }", ["<text>:1:38", "whole number"]),
        ('layer { pooling_param { pool: "MAX" } }', ["<text>:1:31", "without quotes: MAX"]),
        ("layer { pooling_param { pool: MAXX } }", ["did you mean MAX?"]),
        ("layer { clip_param { min: 1 } }", ["layer[0].clip_param.max", "missing"]),
        ("layer {", ["<text>:1", 'Expected "}"']),
        ('layer {\n name: "C:\\data" }', ["<text>:2:11", "invalid escape"]),
        ('layer { name: "a }\n', ["<text>:1:15", "missing ending quote"]),
        ('base_lr: 0.1 net: "x"', ["solver file given as a net"]),
    ],
)
def test_rejected_in_nets(text, words):
    message = failure(read_net, text)
    assert all(word in message for word in words), message


def test_l05_unknown_field_of_a_fork(tmp_path):
    path = tmp_path / "net.prototxt"
    path.write_text(
        'layer {\n  name: "d"\n  transform_param { erase_ratio: 0.5 }\n}\n'
        "layer { transform_param { fixed_crop: true } }\n"
    )
    message = failure(read_net, path)
    assert f"{path}:3:21" in message
    assert 'Message type "TransformationParameter" has no field named "erase_ratio"' in message
    assert "known in happynear/caffe-windows" in message
    net, _ = read_net(path, allow_unknown=True)
    assert [layer.name for layer in net.layer] == ["d", ""]


def test_nearest_field():
    assert "did you mean 'kernel_size'?" in failure(
        read_net, "layer { convolution_param { kernal_size: 3 } }"
    )
    assert "belongs to the layer itself" in failure(
        read_net, "layer { convolution_param { pooling_param { } } }"
    )


def test_bom_is_stripped(tmp_path):
    path = tmp_path / "net.prototxt"
    path.write_bytes(b'\xef\xbb\xbfname: "x"\r\nlayer { name: "a" }\r\n')
    net, places = read_net(path)
    assert net.name == "x"
    assert str(places.layers[0]) == f"{path}:2:1"
    assert read_net('\ufeffname: "x"')[0].name == "x"


def test_positions_of_errors_after_a_bom():
    assert "<text>:2:1" in failure(read_net, '\ufeffname: "x"\nfoo: 1')


def test_files_that_are_no_prototxt(tmp_path):
    (tmp_path / "train.prototxt").write_text('name: "x"')
    message = failure(read_net, tmp_path / "trian.prototxt")
    assert "no such file" in message
    assert "train.prototxt?" in message
    assert "is a folder" in failure(read_net, tmp_path)
    for content, words in [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (NetParameter(name="x", layer=[{"name": "a"}]).SerializeToString(), "weights file"),
        (b'name: "x"\0', "not a prototxt file"),
        (b"\x89HDF\r\n\x1a\n....", "HDF5"),
        ('name: "x"'.encode("utf-16"), "UTF-16"),
        (b'name: "a"\nname: "\xe9"', ":2:8"),
    ]:
        path = tmp_path / "bad.prototxt"
        path.write_bytes(content)
        assert words in failure(read_net, path), content
        assert str(path) in failure(read_net, path)


def test_missing_name_never_reads_as_text(tmp_path):
    assert "no such file" in failure(read_net, str(tmp_path / "x.prototxt"))


def test_snapshot_prefix(tmp_path):
    path = tmp_path / "lenet_solver.prototxt"
    path.write_text("base_lr: 1")
    assert read_solver(path).snapshot_prefix == str(tmp_path / "lenet_solver")
    path.write_text(f'snapshot_prefix: "{tmp_path}"')
    assert read_solver(path).snapshot_prefix == str(tmp_path / "lenet_solver")
    path.write_text('snapshot_prefix: "out/x"')
    assert read_solver(path).snapshot_prefix == "out/x"


def test_nets_inside_a_solver_are_upgraded():
    solver = read_solver(
        'net_param { input: "x" input_dim: [1, 2, 3, 4] }\n'
        'test_net_param { layers { name: "r" type: RELU } }'
    )
    assert solver.net_param.layer[0].type == "Input"
    assert solver.test_net_param[0].layer[0].type == "ReLU"
    message = failure(read_solver, "net_param {\n  layers { }\n  layer { } }")
    assert "<text>:2:3" in message


def test_own_solver_options():
    solver = read_solver(
        'memory_param { strategy: "hybrid" budget: "2GB" offload_dir: "/tmp" }\n'
        'comm_param { codec: "gradsa" density: 0.01 }\nprecision: "float16"\nwarmup_iter: 5\n'
        'snapshot_best { metric: "loss" mode: MIN }\nearly_stop { patience: 3 }\nkeep_snapshots: 2'
    )
    assert solver.memory_param.budget == "2GB"
    assert solver.comm_param.codec == "gradsa"


def test_fork_fields():
    net = parse(
        "mem_param { optimize_train: true } layer { loss_param { class_weight: 1 } } "
        'layer { type: "Permute" permute_param { order: 0 } } layer { relu_param { } }',
        NetParameter,
    )
    assert sorted(fork_fields(net)) == [
        "layer.loss_param.class_weight",
        "layer.permute_param",
        "mem_param",
    ]


def test_to_text_writes_numbers_as_caffe_does():
    text = 'layer {\n  name: "a: 1.0"\n  loss_weight: 1\n  loss_weight: 0.1\n}\n'
    assert to_text(parse(text, NetParameter)) == text
