"""Time one training step (forward, loss, backward, SGD with momentum) beside PyTorch.

    python benchmarks/train_step.py [--nets lenet,cifar_quick] [--threads 2] [--rounds 7]
                                    [--torch-python PYTHON] [--clock cpu]

Each program runs in a process of its own (two OpenMP libraries in one process disturb each other)
and they take turns: A B A B ... A round is as many steps as take about half a second; the table
shows the median over rounds and the ratio of the medians. On a machine that others use too,
``--threads 1 --clock cpu`` counts processor time instead.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
WORKERS = {"layrubnet": HERE / "step_layrubnet.py", "torch": HERE / "step_torch.py"}


class Worker:
    """A process that answers each line ``net seconds clock`` with the milliseconds of one step."""

    def __init__(self, python: str, script: Path, threads: int, clock: str) -> None:
        self.clock = clock
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        self.process = subprocess.Popen(
            [python, str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **{name: str(threads) for name in names}},
            text=True,
        )

    def ask(self, net: str, seconds: float) -> float:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{net} {seconds} {self.clock}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"a worker ended early (status {self.process.wait()})")
        return float(answer)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def has_torch(python: str) -> bool:
    """Can this interpreter import PyTorch?"""
    probe = [python, "-c", "import importlib.util as u; raise SystemExit(not u.find_spec('torch'))"]
    return subprocess.run(probe, check=False).returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nets", default="lenet,cifar_quick")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.5, help="of one round")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--torch-python", default=sys.executable)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    workers = {"layrubnet": Worker(sys.executable, WORKERS["layrubnet"], args.threads, args.clock)}
    if has_torch(args.torch_python):
        workers["torch"] = Worker(args.torch_python, WORKERS["torch"], args.threads, args.clock)
    else:
        print("PyTorch is not installed: no comparison (see --torch-python)")
    rows = []
    for net in args.nets.split(","):
        times: dict[str, list[float]] = {name: [] for name in workers}
        for worker in workers.values():
            worker.ask(net, 0.05)  # build and warm up
        for _ in range(args.rounds):
            for name, worker in workers.items():
                times[name].append(worker.ask(net, args.seconds))
        medians = {name: statistics.median(values) for name, values in times.items()}
        spread = {name: (min(values), max(values)) for name, values in times.items()}
        rows.append({"net": net, "threads": args.threads, "median_ms": medians, "range_ms": spread})
        line = f"{net:<12} {args.threads} threads"
        for name, median in medians.items():
            low, high = spread[name]
            line += f"   {name} {median:8.2f} ms ({low:.2f}-{high:.2f})"
        if "torch" in medians:
            line += f"   ratio {medians['layrubnet'] / medians['torch']:.2f}"
        print(line, flush=True)
    for worker in workers.values():
        worker.close()
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
