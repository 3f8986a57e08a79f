"""``layrubnet plan``: report, comparison, budgets, files; without data and without a device."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from layrubnet.memory.strategies import STRATEGIES
from layrubnet.prototxt.text import read_solver
from layrubnet.solvers.solver import Solver
from tests.cli.support import Job


@pytest.fixture
def bare(job: Job) -> Job:
    """The job without its data."""
    shutil.rmtree(job.data)
    return job


def numbers(text: str) -> int:
    """The exact bytes of the report."""
    found = re.search(r"device memory .*\(([\d,]+) bytes\)", text)
    assert found
    return int(found[1].replace(",", ""))


def test_report(job: Job) -> None:
    done = job("plan", job.solver, "--memory", "hybrid")
    assert done.status == 0, done.err
    for words in ("Tiny: 6 layers, batch size 8", "strategy hybrid", "the peak is at", "parameters",
                  "host memory", "predicted time", "against reuse", "saved against   BVLC Caffe",
                  "strategy caffe as it runs here"):  # fmt: skip
        assert words in done.out
    assert "note:" not in done.out  # the data is there


def test_plan_equals_what_training_allocates(job: Job) -> None:
    solver = Solver(read_solver(job.solver), solver_file=str(job.solver))
    try:
        allocated = solver.net.plan.nbytes
    finally:
        solver.close()
    assert numbers(job("plan", job.solver, "--memory", "caffe").out) == allocated


def test_data_that_is_not_there_is_guessed_from_the_crop(bare: Job) -> None:
    done = bare("plan", bare.net)
    assert done.status == 0, done.err
    assert "taken to be 8,3,6,6" in done.out
    given = bare("plan", bare.net, "--input-shape", "data=8,3,6,6")
    assert "note:" not in given.out
    assert numbers(given.out) == numbers(done.out)


def test_without_crop_the_shape_must_be_given(bare: Job) -> None:
    bare.edit(bare.net, "crop_size: 6", "")
    done = bare("plan", bare.net)
    assert done.status == 1
    assert "the shape of the data is not known" in done.error
    assert "--input-shape data=8,3,224,224" in done.error
    assert bare("plan", bare.net, "--input-shape", "data=8,1,5,5").status == 0


def test_training_still_needs_the_data(bare: Job) -> None:
    assert bare("train", bare.solver).status == 1


@pytest.mark.parametrize("shape", ["data", "data=", "data=3,x", "=3,4", "data=0,3"])
def test_impossible_shapes_are_refused(bare: Job, shape: str) -> None:
    done = bare("plan", bare.net, "--input-shape", shape)
    assert done.status == 2
    assert "data=64,3,224,224" in done.err


def test_batch_size_and_iter_size(bare: Job) -> None:
    small = bare("plan", bare.net, "--memory", "reuse", "--batch", "4")
    large = bare("plan", bare.net, "--memory", "reuse", "--batch", "400")
    assert "batch size 400" in large.out
    assert numbers(large.out) > numbers(small.out)
    again = bare("plan", bare.net, "--memory", "reuse", "--batch", "4", "--iter-size", "3")
    assert "batch size 4, iter_size 3" in again.out


def test_comparison_has_a_row_per_strategy(bare: Job) -> None:
    done = bare("plan", bare.net, "--compare", "--memory-budget", "1GiB")
    table = done.out[done.out.index("strategy  ") :].splitlines()
    assert [row.split()[0] for row in table[2 : 3 + len(STRATEGIES)]] == ["BVLC", *STRATEGIES]
    assert max(map(len, table)) <= 100


def test_largest_batch_fits_and_the_next_does_not(bare: Job) -> None:
    budget = 2 << 20
    done = bare("plan", bare.net, "--memory", "reuse", "--memory-budget", budget)
    found = re.search(r"the largest batch that fits is (\d+)", done.out)
    assert found
    most = int(found[1])
    fits = bare("plan", bare.net, "--memory", "reuse", "--batch", most)
    over = bare("plan", bare.net, "--memory", "reuse", "--batch", most + 1)
    assert numbers(fits.out) <= budget < numbers(over.out)


def test_impossible_budget_is_refused_with_the_smallest(bare: Job) -> None:
    done = bare("plan", bare.net, "--memory-budget", "1KiB")
    assert done.status == 1
    assert "a budget of at least" in done.error
    assert "not even a batch of one image fits" in done.error
    need = re.search(r"at least (\d+) bytes", done.error)
    assert need
    assert bare("plan", bare.net, "--memory-budget", need[1]).status == 0
    less = bare("plan", bare.net, "--memory-budget", int(need[1]) - 1)
    assert less.status == 1


def test_solver_says_the_strategy(bare: Job) -> None:
    with open(bare.solver, "a") as file:
        file.write('memory_param { strategy: "sublinear" }\n')
    assert "strategy sublinear" in bare("plan", bare.solver).out
    assert "strategy min" in bare("plan", bare.solver, "--memory", "min").out


def test_unknown_strategy(bare: Job) -> None:
    done = bare("plan", bare.net, "--memory", "hybird")
    assert done.status == 1
    assert "did you mean 'hybrid'?" in done.error


def test_files(bare: Job, tmp_path: Path) -> None:
    paths = {kind: tmp_path / f"plan.{kind}" for kind in ("json", "svg", "html")}
    flags = [word for kind, path in paths.items() for word in (f"--{kind}", path)]
    done = bare("plan", bare.net, "--memory", "hybrid", "--memory-budget", "1GiB", *flags)
    assert done.status == 0, done.err
    data = json.loads(paths["json"].read_text())
    assert data["plan"]["device"] == numbers(done.out)
    assert data["plan"]["instructions"]
    assert data["largest_batch"] > 8
    assert data["caffe"]["total"] > 0
    assert set(data["strategies"]) == {"caffe", "reuse", "hybrid", "min"}
    assert ElementTree.parse(paths["svg"]).getroot().tag.endswith("svg")
    assert "<canvas" in paths["html"].read_text()
    assert not list(tmp_path.glob(".*tmp"))


def test_places_that_cannot_be_written_are_refused_first(bare: Job, tmp_path: Path) -> None:
    done = bare("plan", bare.net, "--svg", tmp_path)
    assert done.status == 1
    assert "is a folder" in done.error
    assert done.out == ""


def test_verbose_lists_the_instructions(bare: Job) -> None:
    out = bare("plan", bare.net, "--memory", "hybrid", "--verbose").out
    assert "step_first" in out
    assert "offload data.data" in out or "offload ip1" in out


def test_which_file(job: Job) -> None:
    done = job("plan")
    assert done.status == 1
    assert "which net or solver?" in done.error


def test_documentation_names_every_strategy_and_has_its_pictures() -> None:
    docs = Path(__file__).parents[2] / "docs"
    text = (docs / "memory.md").read_text(encoding="utf-8")
    assert [s for s in STRATEGIES if f"| `{s}` |" not in text] == []
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", text)
    assert len(pictures) >= 6
    assert [p for p in pictures if not (docs / p).is_file()] == []


OTHER_INPUTS = """
layer { name: "h5" type: "HDF5Data" top: "x" hdf5_data_param { source: "none.txt" batch_size: 4 } }
layer { name: "in" type: "Input" top: "y" input_param { shape { dim: 4 dim: 3 } } }
layer { name: "memory" type: "MemoryData" top: "z" top: "label"
  memory_data_param { batch_size: 4 channels: 1 height: 1 width: 3 } }
layer { name: "dummy" type: "DummyData" top: "d" dummy_data_param { shape { dim: 4 dim: 3 } } }
layer { name: "flat" type: "Flatten" bottom: "z" top: "flat" }
layer { name: "sum" type: "Eltwise" bottom: "x" bottom: "y" bottom: "flat" bottom: "d" top: "s" }
layer { name: "ip" type: "InnerProduct" bottom: "s" top: "ip"
  inner_product_param { num_output: 2 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""


def test_every_kind_of_input_follows_the_batch_size(job: Job) -> None:
    job.net.write_text(OTHER_INPUTS)
    missing = job("plan", job.net)
    assert missing.status == 1
    assert "--input-shape x=4," in missing.error
    for batch in (4, 64):
        done = job("plan", job.net, "--input-shape", "x=4,3", "--batch", batch)
        assert done.status == 0, done.err
        assert f"batch size {batch}" in done.out
    reshaped = job("plan", job.net, "--input-shape", "x=4,5", "--input-shape", "y=4,5")
    assert "(4, 5)" in reshaped.error  # the Input layer has taken the shape, z and d cannot
