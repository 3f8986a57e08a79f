"""Run the commands of memory.md again and put what they print back into it.

    python docs/generate_memory.py

An output is the indented block after a comment ``<!-- output: COMMAND -->``. Commands run in a
scratch folder in which the nets they name lie.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "memory.md"
NETS = {"resnet50.prototxt": "ResNet-50", "vgg16.prototxt": "VGG-16"}
SOLVER = """net: "resnet50.prototxt"
base_lr: 0.1 lr_policy: "fixed" momentum: 0.9 max_iter: 1
"""
BLOCK = re.compile(r"<!-- output: (.+?) -->\n\n((?:    .*\n|\n(?=    ))+)")


def printed(command: str, folder: Path) -> str:
    """What a command prints, indented as a block."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command.replace("EXAMPLES", str(ROOT / "examples")),
        shell=True,
        executable="/bin/bash",
        cwd=folder,
        env={**os.environ, "PATH": path, "OPENBLAS_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    lines = [f"    {line}".rstrip() for line in done.stdout.strip("\n").splitlines()]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the page anew."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, net in NETS.items():
            generator = [sys.executable, str(ROOT / "examples/resnet/generate.py"), net]
            text = subprocess.run(generator, capture_output=True, text=True, check=True).stdout
            (folder / file).write_text(text)
        (folder / "solver.prototxt").write_text(SOLVER)

        def again(match: re.Match[str]) -> str:
            print(match[1])
            return f"<!-- output: {match[1]} -->\n\n{printed(match[1], folder)}"

        PAGE.write_text(BLOCK.sub(again, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
