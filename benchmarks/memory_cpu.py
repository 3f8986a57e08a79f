"""Memory and time of training on the CPU under memory plans, as the operating system sees them.

    python benchmarks/memory_cpu.py [--net ResNet-20] [--batch 64] [--rounds 5] [--threads 1]
                                    [--data CIFAR10_LMDB] [--offload-dir FOLDER] [--json FILE]

Three tables. (1) Strategies: planned bytes, resident anonymous memory, its difference to the plan
('outside the plan': what libraries take for themselves, and what never was touched), bytes in the
offload file, and step times as ratios to ``caffe`` (processes take turns, A B A B; medians), by
the clock and, for machines that others use too, in processor time (copies included).
(2) Two batch sizes: the measured difference of resident memory beside the planned one. (3) A limit
on the address space (``ulimit -v``) under which ``caffe`` is refused and ``auto`` trains.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

WORKER = Path(__file__).resolve().parent / "memory_worker.py"
MIB = 2**20


@dataclass(frozen=True)
class Job:
    """What the workers of a run have in common."""

    net: str
    threads: int
    more: tuple[str, ...] = ()

    def command(self, batch: int, strategy: str, budget: int | None = None) -> list[str]:
        """The command line of a worker."""
        command = [sys.executable, str(WORKER), self.net, f"--batch={batch}"]
        command += [f"--strategy={strategy}", *self.more]
        return command + ([f"--budget={budget}"] if budget else [])

    def environment(self) -> dict[str, str]:
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        # A limit on address space counts what the C library reserves for each thread, too.
        one = {"MALLOC_ARENA_MAX": "1"}
        return {**os.environ, **one, **{name: str(self.threads) for name in names}}

    def start(self, batch: int, strategy: str, budget: int | None = None) -> Worker:
        process = subprocess.Popen(
            self.command(batch, strategy, budget),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self.environment(),
            text=True,
        )
        return Worker(process)

    def once(self, batch: int, strategy: str, budget: int | None = None) -> dict[str, Any]:
        """Figures of a worker that ends at once."""
        worker = self.start(batch, strategy, budget)
        worker.close()
        return worker.figures

    def limited(
        self, limit: int, batch: int, strategy: str, budget: int | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a worker with a limit on its address space."""
        return subprocess.run(
            self.command(batch, strategy, budget),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=self.environment(),
            text=True,
            check=False,
            preexec_fn=partial(resource.setrlimit, resource.RLIMIT_AS, (limit, limit)),
        )


@dataclass
class Worker:
    """A process that trains, its figures, and the step times it measured."""

    process: subprocess.Popen[str]
    figures: dict[str, Any] = field(default_factory=dict)
    times: list[tuple[float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.figures = json.loads(self._answer())

    def _answer(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"a worker ended early (status {self.process.wait()})")
        return line

    def steps(self, count: int) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"steps {count}\n")
        self.process.stdin.flush()
        wall, busy = map(float, self._answer().split())
        self.times.append((wall, busy))

    def ratio(self, other: Worker, clock: int) -> float:
        """Step time against another worker: neighbours in time are compared, then the median."""
        pairs = zip(self.times, other.times, strict=True)
        return statistics.median(a[clock] / b[clock] for a, b in pairs)

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def strategies(job: Job, batch: int, rounds: int, steps: int) -> dict[str, Any]:
    """Table 1."""
    whole = job.once(batch, "caffe")["planned"]
    rows: list[tuple[str, str, int | None]] = [
        ("caffe", "caffe", None),
        ("reuse", "reuse", None),
        ("auto", "auto", None),
        ("auto in 25 %", "auto", int(0.25 * whole)),
        ("min", "min", None),
    ]
    workers = {name: job.start(batch, strategy, budget) for name, strategy, budget in rows}
    for _ in range(rounds):
        for worker in workers.values():
            worker.steps(steps)
    base = workers["caffe"]
    print(f"{job.net}, batch {batch}, {job.threads} thread(s)")
    print(
        f"{'':14}{'planned':>10}{'resident':>10}{'outside':>10}{'file':>10}"
        f"{'resident':>10}{'step':>9}{'time':>7}{'cpu':>7}"
    )
    print(
        f"{'':14}{'MiB':>10}{'MiB':>10}{'MiB':>10}{'MiB':>10}{'/ caffe':>10}{'ms':>9}{'ratio':>7}"
    )
    found = {}
    for name, worker in workers.items():
        worker.close()
        f = worker.figures
        wall, busy = worker.ratio(base, 0), worker.ratio(base, 1)
        share = f["anon"] / base.figures["anon"]
        found[name] = {**f, "ratio": wall, "busy": busy, "share": share}
        print(
            f"{name:14}{f['planned'] / MIB:10.1f}{f['anon'] / MIB:10.1f}"
            f"{(f['anon'] - f['planned']) / MIB:10.1f}{f['host'] / MIB:10.1f}{share:10.2f}"
            f"{statistics.median(t[0] for t in worker.times) * 1e3:9.0f}{wall:7.3f}{busy:7.3f}"
        )
    return found


def two_batches(job: Job, batch: int, names: Sequence[str]) -> dict[str, float]:
    """Table 2; returns measured / planned difference by strategy."""
    print(f"\nfrom batch {batch // 4} to {batch}:  planned MiB  measured MiB  measured/planned")
    found = {}
    for name in names:
        small, large = job.once(batch // 4, name), job.once(batch, name)
        planned = large["planned"] - small["planned"]
        measured = large["anon"] - small["anon"]
        found[name] = measured / planned
        print(f"{name:22}{planned / MIB:13.1f}{measured / MIB:14.1f}{measured / planned:18.4f}")
    return found


def under_limit(job: Job, batch: int) -> bool:
    """Table 3; returns whether ``caffe`` is refused and ``auto`` trains."""
    whole = job.once(batch, "caffe")
    budget = int(0.25 * whole["planned"])
    limit = whole["size"] - whole["planned"] // 2
    refused = job.limited(limit, batch, "caffe")
    trained = job.limited(limit, batch, "auto", budget)
    print(f"\nulimit -v {limit // 1024} ({limit / MIB:.0f} MiB)")
    for name, done in (("caffe", refused), (f"auto in {budget / MIB:.0f} MiB", trained)):
        text = done.stdout.strip() or done.stderr.strip()
        print(f"  {name}: status {done.returncode}")
        print("    " + "\n    ".join(text.splitlines()[-12:]))
    return refused.returncode == 1 and trained.returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--net", default="ResNet-20")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=1, help="steps per round")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--data", help="an LMDB of 32 x 32 images instead of random numbers")
    parser.add_argument("--offload-dir")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    more = [f"--data={arguments.data}"] if arguments.data else []
    more += [f"--offload-dir={arguments.offload_dir}"] if arguments.offload_dir else []
    job = Job(arguments.net, arguments.threads, tuple(more))
    found = {
        "strategies": strategies(job, arguments.batch, arguments.rounds, arguments.steps),
        "differences": two_batches(job, arguments.batch, ("caffe", "reuse", "hybrid", "min")),
        "limit": under_limit(job, arguments.batch),
    }
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
