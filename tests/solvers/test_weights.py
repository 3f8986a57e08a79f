"""Fine-tuning: which layers get what from weights files, and what does not fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from layrubnet.engine.net import CompiledNet
from layrubnet.errors import WeightsError
from layrubnet.proto import NetParameter
from layrubnet.prototxt.text import parse
from layrubnet.prototxt.weights import write_weights
from layrubnet.solvers.weights import fits, load_weights, net_blobs
from tests.solvers.support import linear_net, make_solver
from tests.support.checks import make_net


def two_layers(first: str = "a", outputs: int = 3, shared: bool = False) -> CompiledNet:
    param = 'param { name: "w" } param { name: "b" }' if shared else ""
    return make_net(
        f"""
        layer {{ name: "in" type: "Input" top: "x" input_param {{ shape {{ dim: 2 dim: 3 }} }} }}
        layer {{ name: "{first}" type: "InnerProduct" bottom: "x" top: "h" {param}
          inner_product_param {{ num_output: {outputs} weight_filler {{ type: "xavier" }} }} }}
        layer {{ name: "b" type: "InnerProduct" bottom: "h" top: "y" {param}
          inner_product_param {{ num_output: 3 weight_filler {{ type: "xavier" }} }} }}
        """
    )


def saved(net: CompiledNet, path: Path) -> str:
    write_weights(path, net.param, net_blobs(net)[0])
    return str(path)


def test_by_name(tmp_path: Path) -> None:
    path = saved(two_layers("old"), tmp_path / "w.caffemodel")
    net = two_layers("new")
    before = net.get_blob("new", 0)
    report = load_weights(net, path)
    assert (report.copied, report.ignored, report.new) == (["b"], ["old"], ["new"])
    assert (net.get_blob("new", 0) == before).all()
    text = "\n".join(report.lines())
    assert "Layers copied from the weights (1): b" in text
    assert "old" in text
    assert "new, with their initial values (1): new" in text


def test_shape_mismatch_and_skipping(tmp_path: Path) -> None:
    source = two_layers(outputs=4)
    path = saved(source, tmp_path / "w.caffemodel")
    net = two_layers(outputs=3)
    before = net_blobs(net)[0]
    with pytest.raises(WeightsError) as caught:
        load_weights(net, path)
    text = str(caught.value)
    assert "Cannot copy param 0 weights from layer 'a'; shape mismatch." in text
    assert "3 3 (9)" in text
    assert "4 3 (12)" in text
    assert "rename the layer" in text
    assert all((net_blobs(net)[0][n][0] == v[0]).all() for n, v in before.items())
    report = load_weights(net, path, skip_mismatched=True)
    assert report.mismatched == ["a", "b"]


def test_number_of_blobs(tmp_path: Path) -> None:
    net = two_layers()
    blobs = net_blobs(net)[0]
    blobs["a"] = blobs["a"][:1]
    write_weights(tmp_path / "w.caffemodel", net.param, blobs)
    with pytest.raises(WeightsError, match="Incompatible number of blobs for layer a"):
        load_weights(net, tmp_path / "w.caffemodel")


def test_later_files_win(tmp_path: Path) -> None:
    one, two = two_layers(), two_layers()
    for net, value in ((one, 1.0), (two, 2.0)):
        net.set_blob("a", 0, np.full(9, value))
    paths = f"{saved(one, tmp_path / '1.caffemodel')},{saved(two, tmp_path / '2.caffemodel')}"
    net = two_layers()
    report = load_weights(net, paths)
    assert (net.get_blob("a", 0) == 2).all()
    assert report.duplicates == ["a", "b"]


@pytest.mark.parametrize("suffix", [".caffemodel", ".caffemodel.h5"])
def test_shared_blobs(tmp_path: Path, suffix: str) -> None:
    source = two_layers(shared=True)
    source.set_blob("a", 0, np.arange(9))
    net = two_layers(shared=True)
    report = load_weights(net, saved(source, tmp_path / f"w{suffix}"))
    assert (net.get_blob("b", 0).ravel() == np.arange(9)).all()
    assert "a" in report.copied


def test_legacy_shapes_match_from_the_end(tmp_path: Path) -> None:
    net = two_layers()
    blobs = net_blobs(net)[0]
    legacy = {"a": [blobs["a"][0].reshape(1, 1, 3, 3) * 2, blobs["a"][1].reshape(1, 1, 1, 3)]}
    write_weights(tmp_path / "w.caffemodel", net.param, legacy)
    load_weights(net, tmp_path / "w.caffemodel")
    assert (net.get_blob("a", 0) == blobs["a"][0] * 2).all()


@pytest.mark.parametrize(
    ("stored", "wanted", "fit"),
    [
        ((1, 1, 5, 6), (5, 6), True),
        ((1, 1, 1, 5), (5,), True),
        ((1, 5, 1, 6), (5, 6), False),
        ((1, 5, 6), (5, 6), False),
        ((5, 6), (6, 5), False),
        ((2, 1, 3, 3), (2, 1, 3, 3), True),
        ((1, 1, 1, 1), (), True),
    ],
)
def test_fits(stored: tuple[int, ...], wanted: tuple[int, ...], fit: bool) -> None:
    assert fits(stored, wanted) is fit


def test_a_solver_starts_from_its_weights_field(tmp_path: Path) -> None:
    text = 'lr_policy: "fixed" base_lr: 0.1 '
    first, _ = make_solver(text)
    first.step(3)
    path = saved(first.net, tmp_path / "w.caffemodel")
    second, recorder = make_solver(f'{text} weights: "{path}"')
    assert (second.net.get_blob("ip", 0) == first.net.get_blob("ip", 0)).all()
    assert any("copied from the weights (1): ip" in text for text in recorder.notes)


def test_diffs_of_unlearned_blobs_are_zeros() -> None:
    net = linear_net().replace('top: "y"', 'top: "y" param { lr_mult: 0 } param { lr_mult: 1 }')
    solver, _ = make_solver('lr_policy: "fixed" base_lr: 0.1', net)
    solver.step(1)
    _, diffs = net_blobs(solver.net, diffs=True)
    assert diffs is not None
    assert (diffs["ip"][0] == 0).all()
    assert (diffs["ip"][1] != 0).all()


def test_parse_is_strict() -> None:
    # The nets above are what the file says: no layer is lost on the way.
    assert len(parse(linear_net(), NetParameter).layer) == 3
