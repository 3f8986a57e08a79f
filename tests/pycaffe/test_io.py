"""caffe.io: errors, messages and image files (values: see test_golden)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from layrubnet import pycaffe as caffe
from layrubnet.errors import DataError


def test_transformer_refuses_what_does_not_fit() -> None:
    transformer = caffe.io.Transformer({"data": (1, 3, 4, 5)})
    image = np.zeros((4, 5, 3), np.float32)
    with pytest.raises(ValueError, match="not one of the net inputs"):
        transformer.preprocess("dat", image)
    with pytest.raises(ValueError, match="Transpose order"):
        transformer.set_transpose("data", (1, 0))
    with pytest.raises(ValueError, match="Channel swap"):
        transformer.set_channel_swap("data", (1, 0))
    for mean in (np.zeros(4), np.zeros((4, 4, 5)), np.zeros((4, 5))):
        with pytest.raises(ValueError, match="Mean channels"):
            transformer.set_mean("data", mean)
    with pytest.raises(ValueError, match="Mean shape"):
        transformer.set_mean("data", np.zeros((1, 3, 4, 5)))


def test_a_mean_of_another_size_is_resized() -> None:
    transformer = caffe.io.Transformer({"data": (1, 3, 4, 5)})
    mean = np.broadcast_to(np.array([1, 2, 3], np.float32)[:, None, None], (3, 8, 8))
    transformer.set_mean("data", mean)
    transformer.set_transpose("data", (2, 0, 1))
    made = transformer.preprocess("data", np.zeros((4, 5, 3)))
    assert made.shape == (3, 4, 5)
    np.testing.assert_allclose(made[1, 1:-1, 1:-1], -2, atol=0.2)


def test_resize_is_exact_for_constants_and_other_channels() -> None:
    assert (caffe.io.resize_image(np.full((3, 4, 3), 6.0), (5, 5)) == 6).all()
    ramp = np.tile(np.arange(5.0)[:, None, None], (1, 3, 2))
    made = caffe.io.resize_image(ramp, (9, 3))
    np.testing.assert_allclose(made[:, 0, 0], np.arange(9) / 2, atol=1e-6)
    nearest = caffe.io.resize_image(ramp, (10, 3), interp_order=0)
    assert set(np.unique(nearest)) <= set(range(5))
    with pytest.raises(ValueError, match="interp_order"):
        caffe.io.resize_image(ramp, (2, 2), interp_order=3)


def test_crops_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        caffe.io.oversample([np.zeros((4, 4, 3))], (5, 4))


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_datum_round_trip(dtype: type) -> None:
    array = np.arange(24).reshape(2, 3, 4).astype(dtype)
    datum = caffe.io.array_to_datum(array, 5)
    assert datum.label == 5
    back = caffe.io.datum_to_array(
        caffe.proto.caffe_pb2.Datum.FromString(datum.SerializeToString())
    )
    np.testing.assert_array_equal(back, array)
    assert back.dtype == dtype
    assert not caffe.io.array_to_datum(array).HasField("label")


def test_blobproto_round_trip() -> None:
    array = np.arange(6, dtype=np.float32).reshape(1, 2, 3)
    blob = caffe.io.array_to_blobproto(array, diff=-array)
    assert list(blob.shape.dim) == [1, 2, 3]
    np.testing.assert_array_equal(caffe.io.blobproto_to_array(blob), array)
    np.testing.assert_array_equal(caffe.io.blobproto_to_array(blob, return_diff=True), -array)
    legacy = caffe.proto.caffe_pb2.BlobProto(num=1, channels=2, height=1, width=2)
    legacy.data.extend([1, 2, 3, 4])
    assert caffe.io.blobproto_to_array(legacy).shape == (1, 2, 1, 2)
    assert not caffe.io.blobproto_to_array(legacy, return_diff=True).any()
    vector = caffe.io.arraylist_to_blobprotovector_str([array, array[0]])
    again = caffe.io.blobprotovector_str_to_arraylist(vector)
    assert [a.shape for a in again] == [(1, 2, 3), (2, 3)]


def test_load_image(tmp_path: Path) -> None:
    cv2 = pytest.importorskip("cv2")
    rgb = np.zeros((2, 3, 3), np.uint8)
    rgb[0, 1] = [255, 128, 0]
    path = str(tmp_path / "image.png")
    cv2.imwrite(path, rgb[:, :, ::-1])
    image = caffe.io.load_image(path)
    assert image.dtype == np.float32
    np.testing.assert_allclose(image, rgb / 255, atol=1e-6)
    gray = caffe.io.load_image(path, color=False)
    assert gray.shape == (2, 3, 1)
    assert gray[0, 1, 0] == pytest.approx(0.2125 + 0.7154 * 128 / 255, abs=1e-5)
    with pytest.raises(DataError, match="no such image file"):
        caffe.io.load_image(str(tmp_path / "none.png"))
    (tmp_path / "text.png").write_text("no image")
    with pytest.raises(DataError, match="no image that OpenCV"):
        caffe.io.load_image(str(tmp_path / "text.png"))
