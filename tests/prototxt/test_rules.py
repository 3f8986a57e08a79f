"""Phase, level and stage rules, and the nets that a solver names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from layrubnet.errors import PrototxtError
from layrubnet.proto import TEST, TRAIN
from layrubnet.prototxt.rules import filter_net
from layrubnet.prototxt.solver_nets import solver_test_nets, solver_train_net
from layrubnet.prototxt.text import read_net, read_solver

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "state_rules.json").read_text())
PHASES = {"TRAIN": TRAIN, "TEST": TEST}
NET = 'layer { name: "a" type: "Input" } layer { name: "b" include { phase: TRAIN } }'


def test_rules_as_caffe_applies_them():
    net, _ = read_net(GOLDEN["prototxt"])
    assert len(GOLDEN["nets"]) > 30
    for case in GOLDEN["nets"]:
        kept = filter_net(net, PHASES[case["phase"]], case["level"], case["stages"])
        assert [layer.name for layer in kept.layer] == case["layers"], case
        assert list(kept.state.stage) == case["stages"]


def test_include_and_exclude_together():
    net, places = read_net('\nlayer { name: "a" include { } exclude { } }', filename="n")
    with pytest.raises(PrototxtError, match="n:2:1 layer 'a': Specify either include"):
        filter_net(net, TRAIN, 0, (), places)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "net.prototxt").write_text(f'name: "both"\n{NET}')
    (tmp_path / "test.prototxt").write_text('name: "test" layer { name: "t" }')
    return tmp_path


def sources(text, folder):
    solver, path = read_solver(text + "\n"), folder / "solver.prototxt"
    return solver_train_net(solver, path), solver_test_nets(solver, path)


def test_one_net_for_both(folder):
    train, tests = sources('net: "net.prototxt" test_iter: [2, 3] test_interval: 5', folder)
    assert (train.phase, train.name) == (TRAIN, "both")
    assert [layer.name for layer in train.filtered().net.layer] == ["a", "b"]
    assert [source.phase for source in tests] == [TEST, TEST]
    only = tests[0].filtered()
    assert [layer.name for layer in only.net.layer] == ["a"]
    assert str(only.positions.layers[0]).endswith("net.prototxt:2:1")


def test_states_are_merged(folder):
    train, tests = sources(
        'net: "net.prototxt" train_state { level: 2 stage: "s" } test_state { stage: "v" } '
        "test_iter: 1 test_interval: 1",
        folder,
    )
    assert (train.level, train.stages) == (2, ("s",))
    assert (tests[0].level, tests[0].stages) == (0, ("v",))


def test_order_of_test_nets(folder):
    _, tests = sources(
        'net: "net.prototxt" test_net: "test.prototxt" test_net_param { name: "p" } '
        "test_iter: [1, 1, 1, 1] test_interval: 1",
        folder,
    )
    assert [source.name for source in tests] == ["p", "test", "both", "both"]


def test_nets_inside_the_solver(folder):
    train, tests = sources(f"net_param {{ {NET} }} test_iter: 1 test_interval: 1", folder)
    assert [layer.name for layer in train.net.layer] == ["a", "b"]
    assert "net_param" in train.positions.where(0, "a")
    assert len(tests) == 1


def test_the_current_folder_comes_first(folder, monkeypatch, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("cwd")
    monkeypatch.chdir(elsewhere)
    assert sources('net: "net.prototxt"', folder)[0].name == "both"
    (elsewhere / "net.prototxt").write_text('name: "here"')
    assert sources('net: "net.prototxt"', folder)[0].name == "here"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("base_lr: 1", "must specify a train net"),
        ('net: "a" train_net: "b"', "must not contain more than one"),
        ('train_net: "net.prototxt" test_iter: 3', "test_iter must be specified"),
        ('train_net: "net.prototxt" test_net: "test.prototxt"', "0 test_iter for 1 test nets"),
        ('net: "net.prototxt" test_iter: 1', "test_interval is not set"),
        (
            'net: "net.prototxt" test_iter: 1 test_interval: 1 test_state {} test_state {}',
            "2 test_state for 1 test nets",
        ),
        ('net: "nothere.prototxt"', "no such file"),
    ],
)
def test_solvers_without_sense(folder, text, words):
    with pytest.raises(PrototxtError) as caught:
        sources(text, folder)
    assert words in str(caught.value)
