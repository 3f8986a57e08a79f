"""transform_param: the formula, the crop window, mirroring, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from layrubnet.data.transform import Transformer
from layrubnet.errors import DataError
from layrubnet.proto import TEST, TRAIN, BlobProto, TransformationParameter

RNG = np.random.default_rng(8)
IMAGE = RNG.integers(0, 256, (3, 7, 6), dtype=np.uint8)


def transformed(transformer: Transformer, array: NDArray[Any], record: int = 0) -> Any:
    out = np.full(transformer.output_shape(*array.shape), np.nan, np.float32)
    transformer.transform_into(out, array, record)
    return out


def made(phase: int = TEST, seed: int = 0, layer: int = 0, **fields: Any) -> Transformer:
    return Transformer(TransformationParameter(**fields), phase, seed, layer, "layer 'data'")


def write_mean(path: Path, mean: NDArray[np.float32], legacy: bool = True) -> str:
    blob = BlobProto(data=mean.ravel().tolist())
    if legacy:
        blob.num = 1
        blob.channels, blob.height, blob.width = mean.shape
    else:
        blob.shape.dim.extend(mean.shape)
    path.write_bytes(blob.SerializeToString())
    return str(path)


def test_nothing_to_do() -> None:
    np.testing.assert_array_equal(transformed(made(), IMAGE), IMAGE.astype(np.float32))


def test_mean_then_scale() -> None:
    out = transformed(made(scale=0.25, mean_value=[10.5]), IMAGE)
    np.testing.assert_array_equal(out, (IMAGE.astype(np.float32) - 10.5) * np.float32(0.25))


def test_a_mean_per_channel() -> None:
    out = transformed(made(mean_value=[1, 2, 3]), IMAGE)
    np.testing.assert_array_equal(out, IMAGE - np.arange(1, 4, dtype=np.float32).reshape(3, 1, 1))


def test_the_centre_is_cropped_in_test() -> None:
    out = transformed(made(crop_size=4), IMAGE)
    np.testing.assert_array_equal(out, IMAGE[:, 1:5, 1:5])


@pytest.mark.parametrize("legacy", [True, False])
def test_the_mean_image_is_cropped_alike(tmp_path: Path, legacy: bool) -> None:
    mean = RNG.standard_normal(IMAGE.shape).astype(np.float32)
    path = write_mean(tmp_path / "mean.binaryproto", mean, legacy)
    out = transformed(made(crop_size=5, mean_file=path), IMAGE)
    np.testing.assert_array_equal(out, (IMAGE.astype(np.float32) - mean)[:, 1:6, 0:5])
    for record in range(20):
        out = transformed(made(TRAIN, crop_size=5, mirror=True, mean_file=path), IMAGE, record)
        plain = IMAGE.astype(np.float32) - mean
        assert any(
            np.array_equal(out, plain[:, y : y + 5, x : x + 5][:, :, ::step])
            for y in range(3)
            for x in range(2)
            for step in (1, -1)
        )


def test_random_crops_cover_every_offset_evenly() -> None:
    array = np.arange(30, dtype=np.float32).reshape(1, 5, 6)
    transformer = made(TRAIN, crop_size=4)
    corners = [float(transformed(transformer, array, r)[0, 0, 0]) for r in range(1200)]
    counts = [corners.count(y * 6 + x) for y in range(2) for x in range(3)]
    assert sum(counts) == 1200
    assert min(counts) > 150
    assert max(counts) < 250


@pytest.mark.parametrize("phase", [TRAIN, TEST])
def test_half_of_the_records_are_mirrored_in_both_phases(phase: int) -> None:
    transformer = made(phase, mirror=True, scale=2)
    plain = IMAGE.astype(np.float32) * 2
    flipped = 0
    for record in range(400):
        out = transformed(transformer, IMAGE, record)
        if np.array_equal(out, plain[:, :, ::-1]):
            flipped += 1
        else:
            np.testing.assert_array_equal(out, plain)
    assert 150 < flipped < 250


def test_randomness_belongs_to_the_record_the_seed_and_the_layer() -> None:
    array = np.arange(40 * 40, dtype=np.float32).reshape(1, 40, 40)

    def corners(seed: int, layer: int, records: list[int]) -> list[float]:
        transformer = made(TRAIN, seed, layer, crop_size=8)
        return [float(transformed(transformer, array, r)[0, 0, 0]) for r in records]

    records = [0, 1, 2, 2**32, 2**32 + 1, 2**40]
    forward = corners(1, 0, records)
    assert corners(1, 0, records[::-1]) == forward[::-1]
    assert len(set(forward)) == len(records)
    assert corners(2, 0, records) != forward
    assert corners(1, 1, records) != forward


def test_crop_h_and_crop_w() -> None:
    np.testing.assert_array_equal(transformed(made(crop_h=3, crop_w=4), IMAGE), IMAGE[:, 2:5, 1:5])
    centred = made(TRAIN, crop_size=4, center_crop=True)
    np.testing.assert_array_equal(transformed(centred, IMAGE, 5), IMAGE[:, 1:5, 1:5])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"mean_file": "m", "mean_value": [1]}, "mean_file and mean_value"),
        ({"force_color": True, "force_gray": True}, "force_color and force_gray"),
        ({"crop_size": 3, "crop_h": 3, "crop_w": 3}, "exclude each other"),
        ({"crop_h": 3}, "belong together"),
        ({"resize_param": {}}, "resize_param"),
    ],
)
def test_contradictions(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        made(**fields)
    assert caught.value.where == "layer 'data'"


@pytest.mark.parametrize(
    ("fields", "out", "message"),
    [
        ({}, (1, 7, 6), "number of channels"),
        ({}, (3, 7, 7), "size differs"),
        ({"crop_size": 7}, (3, 7, 7), "smaller than the crop"),
        ({"mean_value": [1, 2]}, (3, 7, 6), "mean values"),
    ],
)
def test_misfits(fields: dict[str, Any], out: tuple[int, ...], message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        made(**fields).transform_into(np.empty(out, np.float32), IMAGE, 0, "db key '3'")
    assert caught.value.where == "db key '3'"


def test_mean_images_that_do_not_fit(tmp_path: Path) -> None:
    path = write_mean(tmp_path / "m", np.zeros((3, 7, 7), np.float32))
    with pytest.raises(DataError, match="before cropping"):
        transformed(made(mean_file=path, crop_size=4), IMAGE)
    path = write_mean(tmp_path / "v", np.zeros((3, 1, 1), np.float32))
    with pytest.raises(DataError, match="before cropping"):
        transformed(made(mean_file=path), IMAGE)
    path = write_mean(tmp_path / "flat", np.zeros(5, np.float32), legacy=False)
    with pytest.raises(DataError, match="no single image"):
        made(mean_file=path)
