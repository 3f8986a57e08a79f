"""Write the prototxt of a net, or of its solver, to standard output.

python examples/resnet/generate.py ResNet-152 --batch 16 > resnet152.prototxt
"""

from __future__ import annotations

import argparse
import sys

from net_writer import Source
from nets import PUBLISHED, make, make_solver

from layrubnet.prototxt.text import to_text


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", help=f"{', '.join(PUBLISHED)}, or any ResNet-N, WRN-d-k, resnet")
    parser.add_argument("--batch", type=int, help="images per iteration (default: the paper's)")
    parser.add_argument("--classes", type=int, help="how many (default: 1000, CIFAR 10)")
    parser.add_argument(
        "--blocks", type=int, nargs=4, default=(), metavar="N",
        help="blocks per stage of a bottleneck ResNet, with the name resnet",
    )  # fmt: skip
    parser.add_argument(
        "--data", nargs="+", default=["input"], metavar=("KIND", "LMDB"),
        help="'input' (blobs that you fill; default), or 'lmdb TRAIN_FOLDER [TEST_FOLDER]'",
    )  # fmt: skip
    parser.add_argument(
        "--solver", metavar="NET_FILE", help="write the solver for the net in NET_FILE instead"
    )
    return parser


def _source(words: list[str]) -> Source:
    kind, *folders = words
    if (kind, len(folders)) == ("input", 0) or (kind == "lmdb" and 1 <= len(folders) <= 2):
        return Source(*folders)
    raise ValueError("--data is 'input', or 'lmdb TRAIN_FOLDER [TEST_FOLDER]'")


def main() -> None:
    """Parse the command line and print the prototxt."""
    parser = _arguments()
    given = parser.parse_args()
    try:
        message = (
            make_solver(given.name, given.solver, blocks=given.blocks)
            if given.solver
            else make(
                given.name,
                batch=given.batch,
                classes=given.classes,
                blocks=given.blocks,
                source=_source(given.data),
            )
        )
    except ValueError as error:
        parser.error(str(error))
    sys.stdout.write(to_text(message))


if __name__ == "__main__":
    main()
