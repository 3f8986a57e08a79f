"""Train the net of this folder and print the loss: ``python examples/custom_layer/train.py``"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import swish  # noqa: F401  (makes the type known)

import layrubnet


def main() -> None:
    """Fit sin(3 x) + x on points drawn anew in each iteration."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=300)
    iterations = parser.parse_args().iterations
    solver = layrubnet.Solver(Path(__file__).with_name("solver.prototxt"))
    rng = np.random.default_rng(0)
    x, target = solver.net.data("x"), solver.net.data("target")
    for iteration in range(iterations):
        x[...] = rng.uniform(-1, 1, x.shape)
        target[...] = np.sin(3 * x) + x
        solver.step(1)
        if iteration % 50 == 0 or iteration == iterations - 1:
            print(f"iteration {iteration:4d}   loss {solver.smoothed_loss:.5f}")
    beta = solver.net.get_blob("swish1", 0)
    print(f"beta went from 1 to {beta.min():.2f} .. {beta.max():.2f}")


if __name__ == "__main__":
    main()
