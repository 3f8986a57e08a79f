"""The wheel holds everything and nothing else, and both kinds of installation work.

The wheel is built from the source distribution, so files missing from either are noticed; both
are built from a copy of the tree, because setuptools would leave its build folder here and put
what it finds there into the next wheel.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SETUPTOOLS = CONFIG["tool"]["setuptools"]
# Where the modules of the package are in the repository: "layrubnet.layers" -> "layers".
FOLDERS: dict[str, str] = SETUPTOOLS["package-dir"]
DATA_SUFFIXES = {".proto", ".binpb", ".css", ".cu", ".js", ".typed"}
# Packages that only extras bring: importing layrubnet must not need them.
OPTIONAL = ["lmdb", "h5py", "cv2", "cupy", "mpi4py", "matplotlib", "rich", "tensorboardX"]


def _run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """Run a command without this process's PYTHONPATH and return what it prints."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=inherited | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def _tree() -> dict[str, Path]:
    """Path in the wheel -> path in the repository, for each module and data file."""
    files = {}
    for package, folder in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix == ".py" or path.suffix in DATA_SUFFIXES or path.name == "py.typed":
                inside = path.relative_to(ROOT / folder).as_posix()
                files[f"{package.replace('.', '/')}/{inside}"] = path
    return files


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the source distribution of a copy of the tree."""
    copy = tmp_path_factory.mktemp("source")
    for folder in FOLDERS.values():
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", copy / "dist", cwd=copy)
    (built,) = (copy / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the installed wheel and nothing else."""
    target = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    _run(*pip, "--target", target, wheel, cwd=target)
    return target


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def test_every_folder_of_modules_is_mapped() -> None:
    named = {"layrubnet", "layers", "solvers", "memory", "comm", "proto"}
    present = {name for name in named if list((ROOT / name).rglob("*.py"))}
    assert present == set(FOLDERS.values())


def test_every_package_is_listed() -> None:
    found = {
        Path(inside).parent.as_posix().replace("/", ".")
        for inside in _tree()
        if inside.endswith("/__init__.py")
    }
    assert found == set(SETUPTOOLS["packages"])


def test_every_module_is_in_a_package() -> None:
    tree = _tree()
    orphans = [
        inside
        for inside in tree
        if inside.endswith(".py") and f"{Path(inside).parent.as_posix()}/__init__.py" not in tree
    ]
    assert orphans == []


def test_wheel_holds_every_file(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        shipped = {n: archive.read(n) for n in archive.namelist() if ".dist-info/" not in n}
    tree = {inside: path.read_bytes() for inside, path in _tree().items()}
    assert "layrubnet/py.typed" in tree
    assert sorted(shipped) == sorted(tree)
    assert [name for name in tree if shipped[name] != tree[name]] == []


def test_nothing_generic_at_the_top(installed: Path) -> None:
    top = {path.name for path in installed.iterdir()}
    version = CONFIG["project"]["name"] + "-"
    assert {name for name in top if not name.startswith(version)} == {"layrubnet", "bin"}


def test_metadata(metadata: Message, installed: Path) -> None:
    hard = [r for r in metadata.get_all("Requires-Dist", []) if "extra ==" not in r]
    assert sorted(r.split(">")[0] for r in hard) == ["numpy", "protobuf"]
    assert set(metadata.get_all("Provides-Extra", [])) == set(
        CONFIG["project"]["optional-dependencies"]
    )
    assert metadata["License-Expression"] == "Apache-2.0"
    code = "from layrubnet.version import __version__; print(__version__)"
    printed = _run(sys.executable, "-c", code, cwd=installed.parent, PYTHONPATH=str(installed))
    assert printed.strip() == metadata["Version"]


def test_installed_wheel_imports_without_extras(installed: Path, tmp_path: Path) -> None:
    modules = [
        inside.removesuffix("/__init__.py").removesuffix(".py").replace("/", ".")
        for inside in _tree()
        if inside.endswith(".py") and not inside.endswith("__main__.py")
    ]
    code = (
        "import importlib, sys\n"
        f"sys.modules.update(dict.fromkeys({OPTIONAL!r}))\n"  # None: importing it fails
        f"for name in {modules!r}:\n"
        "    print(name, importlib.import_module(name).__file__, sep='\\t')\n"
    )
    printed = _run(sys.executable, "-c", code, cwd=tmp_path, PYTHONPATH=str(installed))
    places = dict(line.split("\t") for line in printed.splitlines())
    assert sorted(places) == sorted(modules)
    strays = [name for name, place in places.items() if not Path(place).is_relative_to(installed)]
    assert strays == []


def test_editable_install_leads_to_the_repository(tmp_path: Path) -> None:
    code = "import importlib, sys\nprint(importlib.import_module(sys.argv[1]).__file__)"
    for package, folder in FOLDERS.items():
        printed = _run(sys.executable, "-c", code, package, cwd=tmp_path)
        assert Path(printed.strip()) == ROOT / folder / "__init__.py"


def test_licence_is_complete() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert all(f"\n   {number}. " in text for number in range(1, 10))
    assert "END OF TERMS AND CONDITIONS" in text
    assert text.rstrip().endswith("limitations under the License.")
