"""Data: the LMDB layer inside a net."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

from layrubnet.data import encode_datum, write_lmdb
from layrubnet.engine.net import CompiledNet
from layrubnet.errors import DataError
from layrubnet.proto import BlobProto, Datum, NetParameter
from tests.support.checks import check_no_allocation
from tests.support.golden import assert_close, find_case

CASES = [
    "data_lmdb_encoded", "data_lmdb_float", "data_lmdb_mean_file_crop", "data_lmdb_one_mean",
    "data_lmdb_plain", "data_lmdb_scale_mean",
]  # fmt: skip


def write_numbers(path: Path, count: int, shape: tuple[int, int, int] = (1, 2, 2)) -> None:
    """Records whose values and labels are their numbers."""
    images = (np.full(shape, i, np.uint8) for i in range(count))
    write_lmdb(path, ((b"%04d" % i, encode_datum(x, i)) for i, x in enumerate(images)))


def data_net(more: str = "", phase: str = "TRAIN", **options: Any) -> CompiledNet:
    text = f"""layer {{ name: "data" type: "Data" top: "x" top: "t"
      data_param {{ source: "db" backend: LMDB batch_size: 3 {more} }} }}"""
    return CompiledNet(text_format.Parse(text, NetParameter()), phase, **options)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str, folder: Path) -> None:
    arrays = np.load(find_case(f"{name}.npz"), allow_pickle=False)
    meta = json.loads(str(arrays["meta"]))
    labels = arrays["db.label"].tolist()
    if "db.encoded.0" in arrays:
        raw = [
            Datum(encoded=True, data=arrays[f"db.encoded.{i}"].tobytes(), label=label)
            .SerializeToString()
            for i, label in enumerate(labels)
        ]  # fmt: skip
    else:
        images = arrays["db.image" if "db.image" in arrays else "db.float_data"]
        raw = [encode_datum(x, label) for x, label in zip(images, labels, strict=True)]
    write_lmdb(folder / "db", ((b"%08d" % i, r) for i, r in enumerate(raw)))
    if "mean" in arrays:
        mean = arrays["mean"]
        blob = BlobProto(data=mean.ravel().tolist())
        blob.num, blob.channels, blob.height, blob.width = mean.shape
        (folder / "mean.binaryproto").write_bytes(blob.SerializeToString())
    net = CompiledNet(text_format.Parse(str(arrays["prototxt"]), NetParameter()), meta["phase"])
    for step in range(meta["steps"]):
        net.forward()
        for blob_name in ("x", "t"):
            assert_close(net.data(blob_name), arrays[f"s{step}.top.{blob_name}"], blob_name)
    net.close()


def labels_of(net: CompiledNet, steps: int) -> list[list[float]]:
    found = []
    for _ in range(steps):
        net.forward()
        found.append(net.data("t").tolist())
        assert (net.data("x")[:, 0, 0, 0] == net.data("t")).all()
    return found


def test_the_cursor_is_what_was_received(folder: Path) -> None:
    write_numbers(folder / "db", 5)
    net = data_net()
    (node,) = net.data_nodes()
    first = labels_of(net, 2)
    assert first == [[0, 1, 2], [3, 4, 0]]
    place = node.layer.cursor()
    after = labels_of(net, 3)
    again = data_net()
    again.data_nodes()[0].layer.seek(place)
    assert labels_of(again, 3) == after
    net.close()
    again.close()


def test_rand_skip_and_prefetch(folder: Path) -> None:
    write_numbers(folder / "db", 50)
    results = []
    for more in ("rand_skip: 40", "rand_skip: 40 prefetch: 1"):
        net = data_net(more, seed=5)
        results.append(labels_of(net, 2))
        net.close()
    assert results[0] == results[1]
    assert 0 < results[0][0][0] < 40


def test_ranks_share_the_records_in_train_only(folder: Path) -> None:
    write_numbers(folder / "db", 12)
    for phase, expected in (("TRAIN", [1, 3, 5]), ("TEST", [0, 1, 2])):
        net = data_net(phase=phase)
        layer = net.data_nodes()[0].layer
        layer.close()
        layer.open(seed=0, rank=1, world=2)
        assert labels_of(net, 1) == [expected]
        net.close()


def test_without_labels(folder: Path) -> None:
    write_numbers(folder / "db", 4)
    text = 'layer { name: "d" type: "Data" top: "x" data_param { source: "db" batch_size: 2 } }'
    net = CompiledNet(text_format.Parse(text, NetParameter()), "TEST")
    net.forward()
    np.testing.assert_array_equal(net.data("x")[:, 0, 0, 0], [0, 1])
    check_no_allocation(net)
    net.close()


def test_missing_data_base(folder: Path) -> None:
    with pytest.raises(DataError) as error:
        data_net()
    message = str(error.value)
    assert message.startswith("layer 'data'")
    assert "does not exist" in message
    assert "db" in message
    assert "hint" in message


def test_leveldb_is_refused_with_the_recipe(folder: Path) -> None:
    (folder / "db").mkdir()
    (folder / "db" / "CURRENT").touch()
    with pytest.raises(DataError, match="write_lmdb"):
        data_net()


def test_bad_record_names_layer_and_key(folder: Path) -> None:
    write_lmdb(folder / "db", [
        (b"a", encode_datum(np.zeros((1, 2, 2), np.uint8))),
        (b"b", encode_datum(np.zeros((3, 2, 2), np.uint8))),
    ])  # fmt: skip
    net = data_net()
    with pytest.raises(DataError) as error:
        net.forward()
    assert "layer 'data'" in str(error.value)
    assert "'b'" in str(error.value)
    net.close()


@pytest.mark.parametrize(
    ("param", "message"),
    [("batch_size: 2", "names no data base"), ('source: "db"', "batch_size must be given")],
)
def test_nonsense(param: str, message: str) -> None:
    text = f'layer {{ name: "d" type: "Data" top: "x" data_param {{ {param} }} }}'
    with pytest.raises(DataError, match=message):
        CompiledNet(text_format.Parse(text, NetParameter()), "TRAIN")
