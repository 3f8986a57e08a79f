"""MemoryData, DummyData, HDF5Data and Input."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

from layrubnet.engine.net import CompiledNet
from layrubnet.errors import DataError, LayrubError, ShapeError
from layrubnet.proto import NetParameter
from tests.support.checks import check_no_allocation
from tests.support.golden import GoldenCase, assert_close, find_case

h5py = pytest.importorskip("h5py")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def compiled(text: str, phase: str = "TRAIN", **options: Any) -> CompiledNet:
    return CompiledNet(text_format.Parse(text, NetParameter()), phase, **options)


def layer_of(net: CompiledNet) -> Any:
    return net.data_nodes()[0].layer


def load_case(name: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    arrays = dict(np.load(find_case(f"{name}.npz"), allow_pickle=False))
    return arrays, json.loads(str(arrays.pop("meta")))


# -- MemoryData ----------------------------------------------------------------------------------

MEMORY = """layer { name: "data" type: "MemoryData" top: "x" top: "t"
  memory_data_param { batch_size: 2 channels: 1 height: 2 width: 2 } }"""


def test_memory_golden() -> None:
    arrays, meta = load_case("data_memory_wrap")
    net = compiled(str(arrays["prototxt"]))
    layer_of(net).set_arrays(arrays["array.x"], arrays["array.t"])
    for step in range(meta["steps"]):
        net.forward()
        for top in ("x", "t"):
            assert_close(net.data(top), arrays[f"s{step}.top.{top}"], top)


def test_memory_position_and_allocation() -> None:
    net = compiled(MEMORY)
    layer_of(net).set_arrays(np.arange(24.0).reshape(6, 1, 2, 2), np.arange(6))
    net.forward()
    place = layer_of(net).cursor()
    check_no_allocation(net)
    layer_of(net).seek(place)
    net.forward()
    np.testing.assert_array_equal(net.data("t").ravel(), [2, 3])


def test_memory_mistakes() -> None:
    net = compiled(MEMORY)
    with pytest.raises(DataError, match="layer 'data'") as error:
        net.forward()
    assert "has no data" in str(error.value)
    with pytest.raises(DataError, match="wrong shape"):
        layer_of(net).set_arrays(np.zeros((2, 1, 3, 3)), np.zeros(2))
    with pytest.raises(ShapeError, match="must be specified"):
        compiled(MEMORY.replace("height: 2", ""))


# -- DummyData -----------------------------------------------------------------------------------


def dummy(param: str, tops: str = "a", **options: Any) -> CompiledNet:
    named = " ".join(f'top: "{t}"' for t in tops)
    text = f'layer {{ name: "d" type: "DummyData" {named} dummy_data_param {{ {param} }} }}'
    return compiled(text, **options)


@pytest.mark.parametrize("name", ["dummydata_legacy", "dummydata_one_shape"])
def test_dummy_golden(name: str) -> None:
    GoldenCase(name).check()


SHAPE = "shape { dim: 50 dim: 60 }"
FILLERS = {
    "uniform": 'type: "uniform" min: 2 max: 4',
    "gaussian": 'type: "gaussian" mean: 3 std: 0.5',
    "sparse": 'type: "gaussian" mean: 3 std: 0.5 sparse: 25',
    "xavier": 'type: "xavier"',
}


@pytest.mark.parametrize("kind", FILLERS)
def test_dummy_random_values_are_new_each_time_and_can_be_repeated(kind: str) -> None:
    param = f"{SHAPE} data_filler {{ {FILLERS[kind]} }}"
    net, other = dummy(param, seed=3), dummy(param, seed=3)
    values = []
    for _ in range(3):
        net.forward()
        values.append(np.array(net.data("a")))
    assert not (values[0] == values[1]).all()
    layer_of(other).seek({"forwards": 2})
    other.forward()
    np.testing.assert_array_equal(other.data("a"), values[2])
    assert layer_of(other).cursor() == {"forwards": 3}
    far = dummy(param, seed=4)
    far.forward()
    assert not (far.data("a") == values[0]).all()


def test_dummy_distributions() -> None:
    net = dummy(f"{SHAPE} data_filler {{ {FILLERS['uniform']} }} data_filler {{ "
                f"{FILLERS['gaussian']} }} data_filler {{ value: 7 }}", "abc")  # fmt: skip
    net.forward()
    a, b = net.data("a"), net.data("b")
    assert a.min() >= 2
    assert a.max() < 4
    assert a.mean() == pytest.approx(3, abs=0.05)
    assert b.mean() == pytest.approx(3, abs=0.05)
    assert b.std() == pytest.approx(0.5, abs=0.05)
    np.testing.assert_array_equal(net.data("c"), 7)
    check_no_allocation(net)


@pytest.mark.parametrize(
    ("param", "message"),
    [
        ("num: 1 channels: 2", "equally often"),
        (f"{SHAPE} num: 1 channels: 1 height: 1 width: 1", "both shape and num"),
        (f"{SHAPE} {SHAPE}", "once per top"),
        (f"{SHAPE} data_filler {{ }} data_filler {{ }}", "data_filler must be given once"),
        ("", "shape must be given once"),
    ],
)
def test_dummy_mistakes(param: str, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        dummy(param, "abc")


# -- HDF5Data ------------------------------------------------------------------------------------


def hdf5(more: str = "", tops: str = "xt", size: int = 4, **options: Any) -> CompiledNet:
    named = " ".join(f'top: "{t}"' for t in tops)
    text = f"""layer {{ name: "d" type: "HDF5Data" {named}
      hdf5_data_param {{ source: "list.txt" batch_size: {size} {more} }} }}"""
    return compiled(text, **options)


def write_files(folder: Path, sizes: tuple[int, ...], dtype: str = "int64") -> None:
    start, names = 0, []
    for n, size in enumerate(sizes):
        names.append(f"a file {n}.h5")
        with h5py.File(folder / names[-1], "w") as file:
            rows = np.arange(start, start + size)
            file["t"] = rows.astype(dtype)
            file["x"] = np.repeat(rows[:, None], 3, axis=1).astype("uint8")
        start += size
    (folder / "list.txt").write_text("\n".join(names) + "\n\n")


def rows_of(net: CompiledNet, steps: int) -> list[int]:
    found: list[int] = []
    for _ in range(steps):
        net.forward()
        found += net.data("t").astype(int).tolist()
        assert (net.data("x") == net.data("t")[:, None]).all()
    return found


@pytest.mark.parametrize("name", ["data_hdf5_three", "data_hdf5_three_tops"])
def test_hdf5_golden(name: str, folder: Path) -> None:
    arrays, meta = load_case(name)
    for n in range(meta["files"]):
        with h5py.File(folder / f"{n}.h5", "w") as file:
            for key, values in arrays.items():
                if key.startswith(f"file{n}."):
                    file[key.split(".")[1]] = values
    (folder / "list.txt").write_text("".join(f"{n}.h5\n" for n in range(meta["files"])))
    net = compiled(str(arrays["prototxt"]))
    for step in range(meta["steps"]):
        net.forward()
        for key, values in arrays.items():
            if key.startswith(f"s{step}.top."):
                assert_close(net.data(key.split(".")[2]), values, key)


def test_hdf5_order_position_and_empty_files(folder: Path) -> None:
    write_files(folder, (3, 0, 2, 0))
    net = hdf5()
    assert rows_of(net, 3) == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1]
    place = layer_of(net).cursor()
    after = rows_of(net, 2)
    again = hdf5()
    layer_of(again).seek(place)
    assert rows_of(again, 2) == after


def test_hdf5_shuffle_gives_every_row_once_a_pass(folder: Path) -> None:
    write_files(folder, (3, 4, 5))
    net = hdf5("shuffle: true", seed=1)
    passes = [rows_of(net, 3) for _ in range(4)]
    assert all(sorted(p) == list(range(12)) for p in passes)
    assert len({tuple(p) for p in passes}) > 1
    for p in passes:
        groups = [0 if row < 3 else 1 if row < 7 else 2 for row in p]
        assert sum(a != b for a, b in itertools.pairwise(groups)) == 2
    again = hdf5("shuffle: true", seed=1)
    layer_of(again).seek({"row": 24})
    assert rows_of(again, 3) == passes[2]
    assert rows_of(hdf5("shuffle: true", seed=2), 3) != passes[0]


def test_hdf5_ranks(folder: Path) -> None:
    write_files(folder, (12,))
    for phase, expected in (("TRAIN", [1, 3, 5, 7]), ("TEST", [0, 1, 2, 3])):
        net = hdf5(phase=phase)
        layer_of(net).open(seed=0, rank=1, world=2)
        assert rows_of(net, 1) == expected


def test_hdf5_allocates_nothing_while_a_file_lasts(folder: Path) -> None:
    write_files(folder, (4000,), "float64")
    check_no_allocation(hdf5(size=1000))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda f: (f / "list.txt").unlink(), "list of HDF5 files does not exist"),
        (lambda f: (f / "list.txt").write_text("\n"), "list of HDF5 files is empty"),
        (lambda f: (f / "list.txt").write_text("no.h5"), "does not exist"),
        (lambda f: (f / "list.txt").write_text("list.txt"), "cannot be read as HDF5"),
        (lambda f: (f / "list.txt").write_bytes(b"\x89HDF\r\n"), "no list of files"),
    ],
)
def test_hdf5_missing_files(folder: Path, spoil: Any, message: str) -> None:
    write_files(folder, (4,))
    spoil(folder)
    with pytest.raises(DataError, match=message) as error:
        hdf5()
    assert "layer 'd'" in str(error.value)


def spoiled(folder: Path, name: str, values: Any, second: bool = True) -> None:
    write_files(folder, (4, 4))
    with h5py.File(folder / f"a file {int(second)}.h5", "a") as file:
        del file[name]
        if values is not None:
            file[name] = values


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("t", None, "has no data set 't'"),
        ("t", np.zeros(3), "different numbers of rows"),
        ("x", np.zeros((4, 2)), "another shape than in the first file"),
        ("t", np.float32(1), "no data set with rows"),
        ("t", np.array([b"a"] * 4), "holds no numbers"),
    ],
)
def test_hdf5_bad_data_sets(folder: Path, name: str, values: Any, message: str) -> None:
    spoiled(folder, name, values)
    with pytest.raises(DataError, match=message) as error:
        hdf5()
    assert "a file 1.h5" in str(error.value)


def test_hdf5_no_rows_no_source_no_transformation(folder: Path) -> None:
    write_files(folder, (0,))
    with pytest.raises(DataError, match="no rows"):
        hdf5()
    text = 'layer { name: "d" type: "HDF5Data" top: "x" hdf5_data_param { source: "l" } }'
    with pytest.raises(DataError, match="batch_size must be given"):
        compiled(text)
    with pytest.raises(DataError, match="does not transform"):
        compiled(text.replace("top:", "transform_param { scale: 2 } top:"))


# -- Input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["input_legacy", "input_legacy_shape"])
def test_input_golden(name: str) -> None:
    GoldenCase(name).check()


def test_input_shapes_once_or_per_top() -> None:
    two = 'layer { name: "i" type: "Input" top: "a" top: "b" input_param { %s } }'
    once = compiled(two % "shape { dim: 2 dim: 3 }")
    assert once.data("a").shape == once.data("b").shape == (2, 3)
    each = compiled(two % "shape { dim: 2 } shape { dim: 3 }")
    assert (each.data("a").shape, each.data("b").shape) == ((2,), (3,))
    with pytest.raises(LayrubError, match="once per top"):
        compiled(two % "shape { } shape { } shape { }")
