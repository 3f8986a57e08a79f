"""Documents stay true: the layer catalogue, examples in docstrings, docstrings of public names."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
from pathlib import Path
from types import ModuleType

import pytest

from layrubnet.engine.layer import layer_class
from layrubnet.proto import NetParameter
from layrubnet.prototxt.text import parse

ROOT = Path(__file__).resolve().parents[1]


def load_generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_layers", ROOT / "docs/generate_layers.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATOR = load_generator()
TYPES = GENERATOR.built_in_types()


def test_the_layer_catalogue_is_in_step_with_the_code() -> None:
    written = (ROOT / "docs/layers.md").read_text(encoding="utf-8")
    assert written == GENERATOR.catalogue(), "run: python docs/generate_layers.py"


@pytest.mark.parametrize("name", TYPES)
def test_every_layer_has_an_example_that_is_true(name: str) -> None:
    found = GENERATOR.examples(TYPES[name])
    assert found, f"the docstring of {name} shows no prototxt"
    for text in found:
        net = parse(text, NetParameter, f"example of {name}")
        assert len(net.layer), text
        for layer in net.layer:
            cls = layer_class(layer.type)
            cls(layer, "TRAIN")  # its parameters are accepted


def modules() -> list[str]:
    """Every module of the package, the subpackages mapped from folders at the top included."""
    names = []
    for package in (
        "layrubnet",
        *(f"layrubnet.{p}" for p in ("comm", "layers", "memory", "solvers")),
    ):
        names.append(package)
        path = importlib.import_module(package).__path__
        names += [info.name for info in pkgutil.walk_packages(path, f"{package}.")]
    return [name for name in names if not name.endswith("__main__")]


COMMAND = {"configure", "run"}
"""What every command has, documented in ``layrubnet/cli/__init__.py``."""


@pytest.mark.parametrize("name", modules())
def test_every_public_name_has_a_docstring(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} has no docstring"
    missing = [
        thing_name
        for thing_name, thing in vars(module).items()
        if not thing_name.startswith("_")
        and (inspect.isclass(thing) or inspect.isfunction(thing))
        and thing.__module__ == name
        and not inspect.getdoc(thing)
        and not (name.startswith("layrubnet.cli.") and thing_name in COMMAND)
    ]
    assert not missing, f"{name}: public names without a docstring: {missing}"
