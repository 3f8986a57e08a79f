"""The loop of a benchmark worker: answer ``net seconds clock`` lines with ms per step."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable


def serve(build: Callable[[str], Callable[[], object]]) -> None:
    """``build(net)`` returns a function that runs one step; it is built once per net.

    The clock is ``wall`` or ``cpu`` (of the whole process); rounds end by the wall clock.
    """
    steps: dict[str, Callable[[], object]] = {}
    for line in sys.stdin:
        net, seconds, clock = line.split()
        if net not in steps:
            steps[net] = build(net)
            steps[net]()
        step, count = steps[net], 0
        read = time.process_time if clock == "cpu" else time.perf_counter
        started = read()
        begin = now = time.perf_counter()
        while now - begin < float(seconds) or count < 2:
            step()
            count += 1
            now = time.perf_counter()
        print((read() - started) * 1e3 / count, flush=True)
