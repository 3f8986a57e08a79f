"""Write docs/layers.md, the catalogue of layers, from the docstrings of the layer classes.

    python docs/generate_layers.py

A test keeps the file in step with the code.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from pathlib import Path

from layrubnet.engine.layer import Layer, layer_class, layer_types

TARGET = Path(__file__).resolve().parent / "layers.md"
HEAD = """\
# Layers

All layer types of this version, by name. `layrubnet check --layers` lists them, too. Written by
`docs/generate_layers.py` from the code: formula first, then shapes, an example, and what differs
from Caffe.
"""


def built_in_types() -> dict[str, type[Layer]]:
    """The layer types that this package brings, by name."""
    found = {name: layer_class(name) for name in layer_types()}
    return {n: c for n, c in found.items() if c.__module__.startswith("layrubnet.layers")}


def examples(cls: type[Layer]) -> list[str]:
    """The prototxt examples of a docstring: its indented blocks after ``::``."""
    text = inspect.getdoc(cls) or ""
    blocks = re.findall(r"::\n\n((?:(?: {4}.*)?\n?)+)", text + "\n")
    return [textwrap.dedent(block).strip() for block in blocks if "layer" in block]


def section(name: str, cls: type[Layer]) -> str:
    """One layer type as Markdown."""
    text = inspect.getdoc(cls) or ""
    text = re.sub(
        r"::\n\n((?:(?: {4}.*)?\n?)+)",
        lambda m: ":\n\n```\n" + textwrap.dedent(m[1]).strip("\n") + "\n```\n\n",
        text + "\n",
    )
    return f"## {name}\n\n{text.strip()}\n"


def catalogue() -> str:
    """The whole page."""
    sections = [section(name, cls) for name, cls in built_in_types().items()]
    return HEAD + "\n" + "\n".join(sections)


if __name__ == "__main__":
    TARGET.write_text(catalogue(), encoding="utf-8")
    print(f"wrote {TARGET}")
