"""Layers written in Python for pycaffe."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

from layrubnet.engine.net import CompiledNet
from layrubnet.errors import LayrubError, NetError
from layrubnet.proto import NetParameter
from tests.support.checks import check_gradients, make_net, randomise
from tests.support.golden import assert_close, find_case

MODULE = "layrubnet_test_module"

LAYERS = '''
import caffe
import numpy as np


class Distance(caffe.Layer):
    """Caffe's example: the Euclidean loss."""

    def setup(self, bottom, top):
        if len(bottom) != 2:
            raise Exception("Need two inputs to compute distance.")

    def reshape(self, bottom, top):
        if bottom[0].count != bottom[1].count:
            raise Exception("Inputs must have the same dimension.")
        self.diff = np.zeros_like(bottom[0].data, dtype=np.float32)
        top[0].reshape(1)

    def forward(self, bottom, top):
        self.diff[...] = bottom[0].data - bottom[1].data
        top[0].data[...] = np.sum(self.diff**2) / bottom[0].num / 2.0

    def backward(self, top, propagate_down, bottom):
        for i in range(2):
            if not propagate_down[i]:
                continue
            sign = 1 if i == 0 else -1
            bottom[i].diff[...] = sign * top[0].diff[0] * self.diff / bottom[i].num


class Numbers(caffe.Layer):
    """A source of data."""

    def setup(self, bottom, top):
        self.next, self.size = 0, eval(self.param_str)["size"]

    def reshape(self, bottom, top):
        top[0].reshape(self.size, 2)

    def forward(self, bottom, top):
        top[0].data[...] = self.next
        self.next += 1

    def backward(self, top, propagate_down, bottom):
        pass


class Grows(caffe.Layer):
    def reshape(self, bottom, top):
        self.size = getattr(self, "size", 0) + 1
        top[0].reshape(self.size)

    def forward(self, bottom, top):
        pass


class Late(caffe.Layer):
    def reshape(self, bottom, top):
        top[0].reshape(1)

    def forward(self, bottom, top):
        self.blobs.add_blob(3)


class NoForward(caffe.Layer):
    def reshape(self, bottom, top):
        top[0].reshape(1)


class Fails(NoForward):
    def forward(self, bottom, top):
        raise KeyError("oops")


class Stranger:
    pass
'''


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / f"{MODULE}.py").write_text(LAYERS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    for name in (MODULE, "affine_mod"):
        sys.modules.pop(name, None)


def inputs(**shapes: tuple[int, ...]) -> str:
    return "".join(
        f'layer {{ name: "in_{n}" type: "Input" top: "{n}" input_param {{ shape {{ '
        + " ".join(f"dim: {d}" for d in shape)
        + " } } }"
        for n, shape in shapes.items()
    )


def python(cls: str, bottoms: str = "", more: str = "", param: str = "") -> str:
    named = " ".join(f'bottom: "{b}"' for b in bottoms)
    return (
        f'layer {{ name: "l" type: "Python" {named} top: "y" {more} python_param {{'
        f' module: "{MODULE}" layer: "{cls}" {param} }} }}'
    )


def test_golden(folder: Path) -> None:
    arrays = dict(np.load(find_case("data_python_default.npz"), allow_pickle=False))
    meta = json.loads(str(arrays["meta"]))
    (folder / "affine_mod.py").write_text(meta["module"])
    param = text_format.Parse(str(arrays["prototxt"]), NetParameter())
    net = CompiledNet(param, meta["phase"], seeds=True)
    np.testing.assert_array_equal(net.get_blob("py", 0), arrays["filled.py.0"])
    net.set_blob("py", 0, arrays["param.py.0"])
    for step in range(meta["steps"]):
        t = f"s{step}"
        net.data("x")[...] = arrays[f"{t}.in.x"]
        net.forward()
        for top in ("y", "info"):
            assert_close(net.data(top), arrays[f"{t}.top.{top}"], f"{t} {top}")
        net.diff("y")[...] = arrays[f"{t}.topdiff.y"]
        net.backward()
        assert_close(net.diff("x"), arrays[f"{t}.bottomdiff.x"], f"{t} dx")
        assert_close(net.param_diff("py/0"), arrays[f"{t}.paramdiff.py.0"], f"{t} dw")
    once = np.array(net.param_diff("py/0"))
    net.backward(accumulate=True)
    np.testing.assert_allclose(net.param_diff("py/0"), 2 * once, rtol=1e-6)
    assert "caffe" not in sys.modules


def test_a_loss_in_python() -> None:
    text = inputs(a=(3, 4), b=(3, 4)) + python("Distance", "ab", "loss_weight: 2")
    net = make_net(text)
    randomise(net, np.random.default_rng(0))
    net.diff("y")[...] = 2
    square = ((net.data("a").astype(np.float64) - net.data("b")) ** 2).sum()
    assert net.forward() == pytest.approx(2 * square / 6, rel=1e-5)
    check_gradients(net, ["a", "b"])


def test_one_bottom_without_gradient() -> None:
    text = inputs(a=(3, 4), b=(3, 4)) + python(
        "Distance", "ab", "loss_weight: 1 propagate_down: true propagate_down: false"
    )
    param = text_format.Parse(text, NetParameter())
    net = CompiledNet(param, "TRAIN")
    net.data("a")[...] = 3
    net.forward()
    net.backward()
    np.testing.assert_array_equal(net.diff("a"), 1)


def test_a_source_of_data_and_its_param_str() -> None:
    net = make_net(python("Numbers", param="param_str: \"{'size': 3}\""), train=False)
    for number in range(3):
        net.forward()
        np.testing.assert_array_equal(net.data("y"), np.full((3, 2), number))


def test_modules_beside_the_net_are_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    param = text_format.Parse(python("Numbers", param="param_str: \"{'size': 3}\""), NetParameter())
    before = list(sys.path)
    net = CompiledNet(param, "TEST", where=lambda name: f"{folder}/net.prototxt:3:1 layer {name!r}")
    assert net.data("y").shape == (3, 2)
    assert sys.path == before


def test_in_both_phases() -> None:
    text = inputs(a=(2, 2), b=(2, 2)) + python("Distance", "ab", "loss_weight: 1")
    for phase in ("TRAIN", "TEST"):
        assert make_net(text, phase, train=False).forward() == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (python("Distanse"), "did you mean 'Distance'"),
        (python("Stranger"), "does not derive from"),
        (python("Late").replace(MODULE, "no_such_module"), "no_such_module.py"),
        ('layer { name: "l" type: "Python" top: "y" }', "needs a module and a class"),
    ],
)
def test_nonsense(text: str, message: str) -> None:
    with pytest.raises(NetError, match=message):
        make_net(text)


@pytest.mark.parametrize(
    ("cls", "message"),
    [
        ("Grows", "changed the shape of a blob"),
        ("Late", "adds its blobs in setup"),
        ("NoForward", "defines no forward"),
    ],
)
def test_mistakes_that_show_in_forward(cls: str, message: str) -> None:
    net = make_net(python(cls), train=False)
    with pytest.raises(LayrubError, match=message) as error:
        net.forward()
    assert "layer 'l'" in str(error.value)


def test_errors_of_the_users_code_name_the_layer() -> None:
    net = make_net(python("Fails"), train=False)
    with pytest.raises(KeyError) as error:
        net.forward()
    assert any("forward() of layer 'l'" in note for note in error.value.__notes__)
    with pytest.raises(Exception, match="Need two inputs") as other:
        make_net(inputs(a=(1,)) + python("Distance", "a"))
    assert any("setup() of layer 'l'" in note for note in other.value.__notes__)


def test_blobs_have_the_old_names_of_axes() -> None:
    from layrubnet.pycaffe.python_base import LayerBlob

    blob: Any = LayerBlob((2, 3))
    assert (blob.num, blob.channels, blob.height, blob.width, blob.count) == (2, 3, 1, 1, 6)
    blob.reshape(4, 5)
    assert blob.data.shape == blob.diff.shape == blob.shape == (4, 5)
    with pytest.raises(NetError, match="negative"):
        blob.reshape(-1)
