"""Datums: every way to store one, and every damaged one refused with the record's name."""

from __future__ import annotations

import contextlib
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from layrubnet.data.datum import decode_datum, encode_datum
from layrubnet.errors import DataError
from layrubnet.proto import Datum

RNG = np.random.default_rng(5)
COLOR = RNG.integers(0, 256, (3, 5, 4), dtype=np.uint8)
GREY = COLOR[:1]


def png(image: NDArray[Any]) -> bytes:
    return bytes(cv2.imencode(".png", image)[1])


def test_bytes() -> None:
    array, label = decode_datum(encode_datum(COLOR, -7), "here")
    assert array.dtype == np.uint8
    np.testing.assert_array_equal(array, COLOR)
    assert label == -7


def test_floats() -> None:
    values = RNG.standard_normal((2, 3, 3)).astype(np.float32)
    array, label = decode_datum(encode_datum(values, 2**31 - 1), "here")
    assert array.dtype == np.float32
    np.testing.assert_array_equal(array, values)
    assert label == 2**31 - 1


def test_encoded_images_come_as_blue_green_red() -> None:
    red = np.zeros((2, 2, 3), np.uint8)
    red[:, :, 2] = 200  # OpenCV's order: red is last
    raw = Datum(encoded=True, data=png(red), label=3).SerializeToString()
    array, label = decode_datum(raw, "here")
    assert array[:, 0, 0].tolist() == [0, 0, 200]
    assert label == 3


@pytest.mark.parametrize("image", [COLOR, GREY])
def test_png_keeps_every_pixel(image: NDArray[np.uint8]) -> None:
    np.testing.assert_array_equal(decode_datum(encode_datum(image, 1, "png"), "here")[0], image)


def test_jpg_is_near() -> None:
    smooth = np.broadcast_to(np.arange(0, 160, 10, dtype=np.uint8), (3, 16, 16))
    raw = encode_datum(smooth, 1, "jpg", quality=100)
    assert np.abs(decode_datum(raw, "here")[0].astype(int) - smooth).max() <= 3
    assert len(raw) != len(encode_datum(smooth, 1, "jpg", quality=20))


def test_forced_colours() -> None:
    grey = decode_datum(encode_datum(GREY, 0, "png"), "here", force_color=True)[0]
    np.testing.assert_array_equal(grey, np.repeat(GREY, 3, axis=0))
    forced = decode_datum(encode_datum(COLOR, 0, "png"), "here", force_gray=True)[0]
    expected = cv2.cvtColor(COLOR.transpose(1, 2, 0), cv2.COLOR_BGR2GRAY)
    assert np.abs(forced[0].astype(int) - expected).max() <= 1
    plain = decode_datum(encode_datum(GREY), "here", force_color=True)[0]
    np.testing.assert_array_equal(plain, GREY)


def test_alpha_is_kept_unless_colour_is_forced() -> None:
    image = RNG.integers(0, 256, (3, 3, 4), dtype=np.uint8)
    raw = Datum(encoded=True, data=png(image)).SerializeToString()
    assert decode_datum(raw, "here")[0].shape == (4, 3, 3)
    assert decode_datum(raw, "here", force_color=True)[0].shape == (3, 3, 3)


def raw_datum(**fields: Any) -> bytes:
    return bytes(Datum(**fields).SerializeToString())


DAMAGED = {
    "not a Datum": b"\xff\xff\xff\xff",
    "holds no data": raw_datum(channels=1, height=2, width=2),
    "impossible shape": raw_datum(data=b"abc", channels=-1, height=3, width=1),
    "do not fit its shape": raw_datum(data=b"abc", channels=1, height=2, width=2),
    "4294967296 values": raw_datum(data=b"abc", channels=65536, height=65536, width=1),
    "cannot be decoded": raw_datum(encoded=True, data=b"no image"),
    "0 bytes": raw_datum(encoded=True),
    "8 bits": raw_datum(encoded=True, data=png(np.zeros((2, 2), np.uint16))),
}


@pytest.mark.parametrize("message", DAMAGED)
def test_damage_is_named(message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        decode_datum(DAMAGED[message], "db key '00000007'")
    assert str(caught.value).startswith("db key '00000007': ")


def test_an_image_file_without_the_flag_gets_a_hint() -> None:
    with pytest.raises(DataError) as caught:
        decode_datum(raw_datum(data=png(COLOR.transpose(1, 2, 0))), "here")
    assert "encoded: true" in caught.value.hint


@pytest.mark.parametrize("size", [4, 40])
def test_an_annotated_datum_is_recognised(size: int) -> None:
    inner = encode_datum(np.zeros((3, size, size), np.uint8), 4)
    length = len(inner)
    prefix = bytes([length]) if length < 128 else bytes([length & 127 | 128, length >> 7])
    annotated = b"\x0a" + prefix + inner + b"\x10\x00"  # datum = 1, type = 2
    with pytest.raises(DataError, match="AnnotatedDatum") as caught:
        decode_datum(annotated, "here")
    assert "AnnotatedData" in caught.value.hint


@pytest.mark.parametrize("base", ["plain", "float", "png", "jpg"])
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_mutated_records_never_crash(base: str, data: st.DataObject) -> None:
    raw = {
        "plain": encode_datum(COLOR, 1),
        "float": encode_datum(COLOR.astype(np.float32), 1),
        "png": encode_datum(COLOR, 1, "png"),
        "jpg": encode_datum(COLOR, 1, "jpg"),
    }[base]
    bad = bytearray(raw)
    for _ in range(data.draw(st.integers(1, 4))):
        bad[data.draw(st.integers(0, len(bad) - 1))] = data.draw(st.integers(0, 255))
    bad = bad[: data.draw(st.integers(0, len(bad)))]
    with contextlib.suppress(DataError):
        array, label = decode_datum(bytes(bad), "here")
        assert array.ndim == 3
        assert array.size > 0
        assert -(2**31) <= label < 2**31


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60))
def test_noise_never_crashes(raw: bytes) -> None:
    with contextlib.suppress(DataError):
        assert decode_datum(raw, "here")[0].ndim == 3


def test_what_cannot_be_encoded() -> None:
    with pytest.raises(DataError, match="3 axes"):
        encode_datum(np.zeros((2, 2)))
    with pytest.raises(DataError, match="32 bits"):
        encode_datum(COLOR, 2**31)
    with pytest.raises(DataError, match="images"):
        encode_datum(COLOR.astype(np.float32), 0, "png")
    with pytest.raises(DataError, match="cannot write"):
        encode_datum(COLOR, 0, "nosuch")
