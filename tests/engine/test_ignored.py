"""Options of Caffe's forks that no layer reads are warned of."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from layrubnet.engine import ignored
from layrubnet.engine.build import build_graph
from layrubnet.observe.log import LOGGER
from layrubnet.proto import NetParameter
from layrubnet.prototxt.text import parse

NET = """
layer {{ name: "in" type: "Input" top: "x" top: "t"
  input_param {{ shape {{ dim: 4 dim: 3 }} shape {{ dim: 4 }} }} }}
layer {{ name: "ip" type: "InnerProduct" bottom: "x" top: "y"
  inner_product_param {{ num_output: 2 {ip} }} {layer} }}
layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "y" bottom: "t" {loss} }}
{net}
"""


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The warnings of the package's logger, as if nothing had been said before."""
    monkeypatch.setattr(ignored, "_told", set())
    said: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    handler = Keep()
    LOGGER.addHandler(handler)
    yield said
    LOGGER.removeHandler(handler)


def build(**texts: str) -> None:
    parts = {"ip": "", "layer": "", "loss": "", "net": "", **texts}
    build_graph(parse(NET.format(**parts), NetParameter), "TRAIN")


def test_options_of_caffe_and_those_that_are_read_are_silent(warnings: list[str]) -> None:
    build(ip="bias_term: false", loss="loss_param { class_weight: [1, 2] }")
    assert warnings == []


def test_options_that_nobody_reads(warnings: list[str]) -> None:
    build(ip="normalize: true", layer="permute_param { order: 0 }")
    assert sorted(warnings) == [
        "layer 'ip': InnerProduct layers ignore the option inner_product_param.normalize",
        "layer 'ip': InnerProduct layers ignore the option permute_param",
    ]


def test_read_by_another_type_only(warnings: list[str]) -> None:
    build(layer="loss_param { class_weight: 1 }")
    assert warnings == ["layer 'ip': InnerProduct layers ignore the option loss_param.class_weight"]


def test_options_of_the_net(warnings: list[str]) -> None:
    build(net='name: "N" mem_param { optimize_train: true }')
    assert warnings == ["net 'N': the option mem_param is not known here and ignored"]


def test_once(warnings: list[str]) -> None:
    for _ in range(3):
        build(ip="normalize: true")
    assert len(warnings) == 1
