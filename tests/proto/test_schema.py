"""The schema against Caffe's facts, and the committed binary against its source."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FieldDescriptor as Kind

import layrubnet.proto as proto
from layrubnet.proto import LayerParameter, NetParameter, SolverParameter, enum_name, enum_value

CAFFE = json.loads((Path(__file__).parents[1] / "golden" / "schema.json").read_text())
TYPES = {
    Kind.TYPE_INT32: "int32",
    Kind.TYPE_INT64: "int64",
    Kind.TYPE_UINT32: "uint32",
    Kind.TYPE_FLOAT: "float",
    Kind.TYPE_DOUBLE: "double",
    Kind.TYPE_BOOL: "bool",
    Kind.TYPE_STRING: "string",
    Kind.TYPE_BYTES: "bytes",
}
FORKS_FROM, OURS_FROM = 10000, 20000


def type_name(field):
    if field.type == Kind.TYPE_MESSAGE:
        return field.message_type.full_name.removeprefix("layrubnet.")
    if field.type == Kind.TYPE_ENUM:
        return field.enum_type.full_name.removeprefix("layrubnet.")
    return TYPES[field.type]


def label(field):
    if field.is_repeated:
        return "repeated"
    return "required" if field.is_required else "optional"


@pytest.mark.parametrize("name", CAFFE["messages"])
def test_message_agrees_with_caffe(name):
    ours = proto.MESSAGES[name].DESCRIPTOR
    for field_name, (number, lab, kind, default, packed) in CAFFE["messages"][name][
        "fields"
    ].items():
        field = ours.fields_by_name[field_name]
        assert (field.number, label(field), type_name(field)) == (number, lab, kind), field_name
        assert field.is_packed == packed, field_name
        assert field.has_default_value == (default is not None), field_name
        if default is not None and field.type == Kind.TYPE_ENUM:
            assert field.enum_type.values_by_number[field.default_value].name == default
        elif default is not None and kind == "float":
            assert np.float32(field.default_value) == np.float32(default), field_name
        elif default is not None:
            assert field.default_value == default, field_name
    for enum_key, values in CAFFE["messages"][name]["enums"].items():
        enum = ours.enum_types_by_name[enum_key]
        assert {v.name: v.number for v in enum.values} == values


@pytest.mark.parametrize("name", CAFFE["messages"])
def test_additions_stay_clear_of_every_fork_number(name):
    theirs = CAFFE["messages"][name]["fields"]
    extra = [f for f in proto.MESSAGES[name].DESCRIPTOR.fields if f.name not in theirs]
    if name == "BlobProto":  # NVIDIA's own numbers: they are read from binary files
        assert {f.name: f.number for f in extra} == {
            "raw_data_type": 10,
            "raw_diff_type": 11,
            "raw_data": 12,
            "raw_diff": 13,
        }
        return
    assert all(f.number >= FORKS_FROM for f in extra)
    ours = {"memory_param", "comm_param", "precision", "snapshot_best", "early_stop"}
    assert all(f.number >= OURS_FROM for f in extra if f.name in ours)


def test_phase():
    assert dict(proto.Phase.items()) == CAFFE["enums"]["Phase"]
    assert (proto.TRAIN, proto.TEST) == (0, 1)
    assert proto.phase_name(1) == "TEST"


def test_binary_is_in_step_with_the_source():
    pytest.importorskip("grpc_tools")
    from layrubnet.proto import compile as compiler

    # Compared as messages: another protoc may write the same content in other bytes.
    fresh = descriptor_pb2.FileDescriptorSet.FromString(compiler.compile_schema())
    kept = descriptor_pb2.FileDescriptorSet.FromString(compiler.BINARY.read_bytes())
    assert fresh == kept, "run python -m layrubnet.proto.compile"


def test_no_clash_with_another_schema_of_the_same_names():
    serialised = (Path(proto.__file__).parent / "schema.binpb").read_bytes()
    pool, classes = proto.load_pool(serialised)
    assert pool.FindMessageTypeByName("layrubnet.NetParameter") is not NetParameter.DESCRIPTOR
    data = NetParameter(name="x").SerializeToString()
    assert classes["NetParameter"].FromString(data).name == "x"
    from google.protobuf import descriptor_pool

    with pytest.raises(KeyError):
        descriptor_pool.Default().FindMessageTypeByName("layrubnet.NetParameter")


def test_enum_helpers():
    layer = LayerParameter()
    assert enum_name(layer.pooling_param, "pool") == "MAX"
    layer.pooling_param.pool = enum_value(layer.pooling_param, "pool", "AVE")
    assert enum_name(layer.pooling_param, "pool") == "AVE"


def test_own_options_have_harmless_defaults():
    solver = SolverParameter()
    assert solver.memory_param.strategy == "auto"
    assert not solver.HasField("comm_param")
    assert solver.precision == "float32"


def test_unknown_attribute():
    with pytest.raises(AttributeError, match="NetParam"):
        _ = proto.NetParam
    assert "NetParameter" in dir(proto)
