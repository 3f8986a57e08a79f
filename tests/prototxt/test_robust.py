"""Whatever the bytes are: readers return something or raise a LayrubError, never anything else."""

from __future__ import annotations

import contextlib

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from layrubnet.errors import LayrubError
from layrubnet.proto import NetParameter
from layrubnet.prototxt.state import read_state, write_state
from layrubnet.prototxt.text import decode, read_net, read_solver
from layrubnet.prototxt.weights import read_blob, read_weights, write_blob, write_weights

VALID = """\
name: "net" input: 'x' input_dim: [1, 2, 3, 4] # comment
layer { name: "c" type: "Convolution" bottom: "x" top: "c" include { phase: TRAIN }
  convolution_param { num_output: 3 kernel_size: 3 weight_filler { type: "gaussian" std: 1e-2 } } }
layer < pooling_param { pool: AVE, ceil_mode: false; } >
"""
OLD = """\
layers { layer { name: "p" type: "padding" pad: 1 } bottom: "x" top: "p" }
layers { layer { name: "c" type: "conv" num_output: 1 } bottom: "p" top: "c" }
"""
WORDS = (
    "layer layers { } < > [ ] : , ; \" ' # \n \\ \0 \ufeff - 1 1e9 -1 99999999999999999999 inf nan "
    "true MAX name type input input_dim pooling_param pool include phase state stage \\777 \\x "
    "net net_param solver_type type: blobs data é \ud7ff 0x 08 .5f"
)
PIECES = st.sampled_from(WORDS.split(" "))


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=25).map(" ".join))
def test_random_words(text):
    for read in (read_net, read_solver):
        with contextlib.suppress(LayrubError):
            read(text + "\n")


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([VALID, OLD]), st.integers(0, 400), st.integers(0, 40), PIECES)
def test_damaged_text(text, start, length, piece):
    start %= len(text)
    with contextlib.suppress(LayrubError):
        read_net(text[:start] + piece + text[start + length :] + "\n")


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60))
def test_random_bytes_as_text(data):
    with contextlib.suppress(LayrubError):
        read_net(decode(data, "f") + "\n", filename="f")


def test_very_deep_text():
    with contextlib.suppress(LayrubError):
        read_net("layer {" * 5000)
    with contextlib.suppress(LayrubError):
        read_net("foo {" * 5000 + "\n", allow_unknown=True)


def samples(folder):
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    net = NetParameter(name="n", layer=[{"name": "a", "type": "T"}, {"name": "b"}])
    write_weights(folder / "w", net, {"a": [array, array[0]], "b": [array]}, {"a": [array]})
    write_state(folder / "s", 5, "w.caffemodel", [array, array], 2)
    write_blob(folder / "b", array)
    return [(folder / name).read_bytes() for name in "wsb"]


def read_all(path):
    for read in (read_weights, read_state, read_blob):
        with contextlib.suppress(LayrubError):
            read(path)


def test_damaged_binaries(tmp_path_factory):
    folder = tmp_path_factory.mktemp("binary")
    originals = samples(folder)
    path = folder / "damaged"

    @settings(max_examples=300, deadline=None)
    @given(
        st.sampled_from(originals),
        st.lists(st.tuples(st.integers(0, 500), st.integers(0, 255)), min_size=1, max_size=6),
        st.integers(0, 30),
    )
    def check(data, changes, cut):
        damaged = bytearray(data)
        for place, value in changes:
            damaged[place % len(damaged)] = value
        path.write_bytes(bytes(damaged[: len(damaged) - cut]))
        read_all(path)

    check()


def test_damaged_hdf5(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hdf5")
    net = NetParameter(layer=[{"name": "a"}])
    array = np.ones((2, 3), np.float32)
    write_weights(folder / "w.h5", net, {"a": [array]})
    data = (folder / "w.h5").read_bytes()
    path = folder / "damaged.h5"

    @settings(max_examples=60, deadline=None)
    @given(st.integers(0, len(data)), st.binary(min_size=1, max_size=8))
    def check(place, new):
        path.write_bytes(data[:place] + new + data[place + len(new) :])
        read_all(path)

    check()
