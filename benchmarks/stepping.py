"""The loop of a benchmark worker: answer ``net seconds`` lines with milliseconds per step."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable


def serve(build: Callable[[str], Callable[[], object]]) -> None:
    """``build(net)`` returns a function that runs one step; it is built once per net."""
    steps: dict[str, Callable[[], object]] = {}
    for line in sys.stdin:
        net, seconds = line.split()
        if net not in steps:
            steps[net] = build(net)
            steps[net]()
        step, count = steps[net], 0
        begin = now = time.perf_counter()
        while now - begin < float(seconds) or count < 2:
            step()
            count += 1
            now = time.perf_counter()
        print((now - begin) * 1e3 / count, flush=True)
