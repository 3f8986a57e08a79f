"""examples/resnet: every net has the layers, parameters and work of its paper; the generator."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest

from layrubnet.devices import get_device
from layrubnet.engine.lower import lower
from layrubnet.proto import SolverParameter
from layrubnet.prototxt.text import parse, read_net
from tests.support.example_nets import FOLDER, example_graph, example_nets, graph_of
from tests.support.known_nets import CHEAP, DEEP, KNOWN


def _check(name: str) -> None:
    known, graph = KNOWN[name], example_graph(name)
    assert len(graph.nodes) == known.with_splits
    splits = sum(node.layer.type == "Split" for node in graph.nodes)
    assert len(graph.nodes) - splits == known.layers
    floats = sum(math.prod(param.shape) for param in graph.params)
    assert round(4 * floats / 2**20, 1) == known.params
    images = graph.nodes[0].tops[0].type.shape[0]
    work = sum(
        node.contract.flops.forward
        for node in graph.nodes
        if node.layer.type in ("Convolution", "InnerProduct")
    )
    assert round(work / images / 1e9, 2) == known.gflop


@pytest.mark.parametrize("name", CHEAP)
def test_known_nets(name: str) -> None:
    _check(name)


@pytest.mark.full
@pytest.mark.parametrize("name", DEEP)
def test_known_deep_nets(name: str) -> None:
    _check(name)


@pytest.mark.parametrize("name", ["GoogLeNet", "ResNet-20", "ResNet-34", "WRN-16-2"])
def test_nets_become_programs_in_both_phases(name: str) -> None:
    param = example_nets().make(name, batch=2, classes=7)
    for phase in ("TRAIN", "TEST"):
        program = lower(graph_of(param, phase), get_device("null").ops, train=phase == "TRAIN")
        assert ("accuracy" in program.blob_data) == (phase == "TEST")
        assert program.sections["forward"]


@pytest.mark.full
def test_ten_thousand_weight_layers() -> None:
    graph = graph_of(example_nets().make("ResNet-10001"))
    weighted = [n for n in graph.nodes if n.layer.type in ("Convolution", "InnerProduct")]
    assert len(weighted) == 10_001 + 4  # the projections do not count
    assert len(graph.nodes) > 46_000


def test_blocks_and_depths() -> None:
    nets = example_nets()
    assert nets.make("resnet", blocks=(3, 4, 6, 3)) == nets.make("ResNet-50")
    assert nets.make("resnet", blocks=(1, 1, 1, 1)).name == "ResNet-14"
    assert nets.make("ResNet-32").layer[0].input_param.shape[0].dim[2] == 32
    assert nets.make("ResNet-305").name == "ResNet-305"


@pytest.mark.parametrize("name", ["ResNet-51", "ResNet-5", "WRN-27-10", "WRN-28-0", "resnet", "x"])
def test_unknown_nets_are_refused(name: str) -> None:
    with pytest.raises(ValueError):
        example_nets().make(name)


def _generate(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(FOLDER / "generate.py"), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_generator_writes_what_it_is_asked_for() -> None:
    done = _generate("ResNet-20", "--batch", "4", "--classes", "3")
    assert done.returncode == 0, done.stderr
    net, _ = read_net(done.stdout)
    assert net == example_nets().make("ResNet-20", batch=4, classes=3)


def test_the_generator_reads_from_data_bases(tmp_path: Path) -> None:
    done = _generate("AlexNet", "--data", "lmdb", "train_db", "test_db")
    net, _ = read_net(done.stdout)
    data = [layer for layer in net.layer if layer.type == "Data"]
    assert [layer.data_param.source for layer in data] == ["train_db", "test_db"]
    assert [layer.transform_param.crop_size for layer in data] == [227, 227]
    assert [layer.transform_param.mirror for layer in data] == [True, False]


def test_the_generator_writes_solvers() -> None:
    done = _generate("WRN-28-10", "--solver", "wrn.prototxt")
    solver = parse(done.stdout, SolverParameter)
    assert (solver.net, solver.type, solver.iter_size) == ("wrn.prototxt", "Nesterov", 1)
    assert parse(_generate("ResNet-152", "--solver", "n").stdout, SolverParameter).iter_size == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "no net is called 'nothing'"),
        (["VGG-16", "--batch", "0"], "at least 1"),
        (["VGG-16", "--data", "lmdb"], "lmdb TRAIN_FOLDER"),
        (["ResNet-33"], "3 n + 2 layers"),
    ],
)
def test_the_generator_says_what_is_wrong(arguments: list[str], message: str) -> None:
    done = _generate(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
