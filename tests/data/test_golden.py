"""Data, transformation and MemoryData give the values that Caffe gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

from layrubnet.data import (
    Batches,
    MemoryBatches,
    Transformer,
    encode_datum,
    open_records,
    write_lmdb,
)
from layrubnet.proto import TEST, TRAIN, BlobProto, Datum, NetParameter
from tests.support.shared import GOLDEN, needs_golden

CASES = sorted(p.stem for p in GOLDEN.glob("data_lmdb_*.npz"))


def load(name: str) -> tuple[Any, Any, Any]:
    arrays = np.load(GOLDEN / f"{name}.npz", allow_pickle=False)
    net = text_format.Parse(str(arrays["prototxt"]), NetParameter())
    return arrays, json.loads(str(arrays["meta"])), net.layer[0]


def records(arrays: Any) -> list[bytes]:
    labels = arrays["db.label"].tolist()
    if "db.encoded.0" in arrays:
        return [
            Datum(encoded=True, data=arrays[f"db.encoded.{i}"].tobytes(), label=label)
            .SerializeToString()
            for i, label in enumerate(labels)
        ]  # fmt: skip
    images = arrays["db.image" if "db.image" in arrays else "db.float_data"]
    return [encode_datum(image, label) for image, label in zip(images, labels, strict=True)]


@needs_golden
def test_the_cases_are_there() -> None:
    assert len(CASES) == 6


@needs_golden
@pytest.mark.parametrize("name", CASES)
def test_lmdb(name: str, tmp_path: Path) -> None:
    arrays, meta, layer = load(name)
    write_lmdb(tmp_path / "db", ((b"%08d" % i, raw) for i, raw in enumerate(records(arrays))))
    param = layer.transform_param
    if "mean" in arrays:
        mean = arrays["mean"]
        blob = BlobProto(data=mean.ravel().tolist())
        blob.num, blob.channels, blob.height, blob.width = mean.shape
        (tmp_path / "mean.binaryproto").write_bytes(blob.SerializeToString())
        param.mean_file = str(tmp_path / param.mean_file)
    phase = TRAIN if meta["phase"] == "TRAIN" else TEST
    batches = Batches(
        open_records(tmp_path / layer.data_param.source),
        Transformer(param, phase),
        layer.data_param.batch_size,
    )
    data = np.empty(batches.shape, np.float32)
    labels = np.empty(batches.shape[0], np.float32)
    for step in range(meta["steps"]):
        batches.next_into(data, labels)
        expected = arrays[f"s{step}.top.x"]
        assert data.shape == expected.shape
        np.testing.assert_allclose(data, expected, rtol=1e-6, atol=1e-6 * abs(expected).max())
        np.testing.assert_array_equal(labels, arrays[f"s{step}.top.t"])
    batches.close()


@needs_golden
def test_memory_data() -> None:
    arrays, meta, layer = load("data_memory_wrap")
    size = layer.memory_data_param
    batches = MemoryBatches((size.batch_size, size.channels, size.height, size.width))
    batches.set_arrays(arrays["array.x"], arrays["array.t"])
    for step in range(meta["steps"]):
        data = np.empty(batches.shape, np.float32)
        labels = np.empty((size.batch_size, 1, 1, 1), np.float32)
        batches.next_into(data, labels)
        np.testing.assert_array_equal(data, arrays[f"s{step}.top.x"])
        np.testing.assert_array_equal(labels, arrays[f"s{step}.top.t"])
