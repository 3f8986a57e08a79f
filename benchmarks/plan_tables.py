"""The tables of ``plan_compare.py`` as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import mean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plan_compare import Result

_ABOUT = """# Memory of the published nets under every strategy

Written by `python benchmarks/plan_compare.py` on {date}. Nothing was run: these are plans of the
null device, each checked by the verifier; times are predictions.

**What is compared.** *Caffe* is BVLC Caffe by its own accounting (`memory/caffe_bytes.py`): data,
gradients (those of Splits too), what layers keep, and im2col columns; without data read ahead,
small vectors, cuDNN's work spaces and the CUDA context. Against it stands *all* device memory of
our plan but parameters, their gradients and the solver's history: feature maps, gradients, what
layers keep, small vectors, batch statistics, and scratch. Scratch is that of the CPU's
convolutions (oneDNN's, or columns where that is not installed); on a GPU it is another. *With
weights* adds parameters, their gradients and one history (SGD with momentum) on both sides. *Host*
memory holds what is offloaded and is never counted as device memory. *Layrub* is the original's
memory by `memory/layrub_bytes.py`; `caffe` is Caffe's way as executed here.

**Times** are over those of `reuse` (no plan is faster), for a GPU of 10 Tflop/s, 500 GB/s and
12 GB/s to and from the host; *Kepler*: 2.5 Tflop/s, 200 GB/s, 10 GB/s, about what Layrub's authors
had. Plans are made for the first. Layrub's own figures, on its own nets and batch sizes: 58.2 %
saved on average, 98.9 % at most, 24.1 % more time.

MiB are 2^20 bytes.
"""


def write_tables(
    eleven: Sequence[Result], others: Sequence[Result], gap: tuple[float, float], date: str
) -> str:
    """The whole document."""
    text = [_ABOUT.format(date=date)]
    if eleven:
        names = list(eleven[0].rows)
        text += ["## Averages over the eleven nets\n", _summary(eleven, names)]
        text += ["## Saved against Caffe, without weights\n", _saved(eleven, names)]
        text += ["## What was asked for\n", _criteria(eleven)]
    text.append(
        "Fastest plan within a budget against the best of all mixtures of keep, offload and\n"
        f"recompute (`tests/memory/test_exact.py`): {gap[0]:.1%} slower on average, {gap[1]:.1%} "
        "at most.\n"
    )
    if eleven:
        text += ["## The eleven nets\n", *(_net(r) for r in eleven)]
    if others:
        text += ["## Other nets\n", *(_net(r) for r in others)]
    return "\n".join(text)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|---" + "|--:" * (len(head) - 1) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _summary(results: Sequence[Result], names: Sequence[str]) -> str:
    head = ["strategy", "saved, average", "least", "most", "with weights, average", "time, average",
            "most", "time on Kepler, average"]  # fmt: skip
    rows = []
    for name in names:
        saved = [r.saved(name) for r in results]
        slower = [r.slower(name) for r in results]
        rows.append(
            [
                name,
                *(f"{x:.1%}" for x in (mean(saved), min(saved), max(saved))),
                f"{mean(r.saved_total(name) for r in results):.1%}",
                *(f"{x:+.1%}" for x in (mean(slower), max(slower))),
                f"{mean(r.slower(name, old=True) for r in results):+.1%}",
            ]
        )
    return _table(head, rows)


def _saved(results: Sequence[Result], names: Sequence[str]) -> str:
    rows = [
        [
            r.net,
            f"{1 - r.layrub_features / r.caffe_features:.1%}",
            *(f"{r.saved(name):.1%}" for name in names),
        ]
        for r in results
    ]
    return _table(["net", "Layrub", *names], rows)


def _criteria(results: Sequence[Result]) -> str:
    def average(strategy: str) -> float:
        return mean(r.saved(strategy) for r in results)

    hybrid, smallest, auto = average("hybrid"), average("min"), average("auto")
    slowest = max(r.slower("auto") for r in results)
    lines = [
        _line(
            hybrid >= 0.582,
            f"`hybrid` saves {hybrid:.1%} on average (asked: 58.2 %); predicted time "
            f"{mean(r.slower('hybrid') for r in results):+.1%}, on Kepler "
            f"{mean(r.slower('hybrid', old=True) for r in results):+.1%} "
            "(Layrub's authors: +24.1 %)",
        ),
        _line(smallest >= 0.9, f"`min` saves {smallest:.1%} on average (asked: 90 %)"),
        _line(
            auto >= 0.7 and slowest <= 0.0501,
            f"`auto` saves {auto:.1%} on average (asked: 70 %) at {slowest:+.1%} time at most "
            "(asked: +5 %)",
        ),
    ]
    for r in results:
        if r.net == "ResNet-1517":
            lines += [_deep(r, strategy) for strategy in ("hybrid", "min")]
    return "\n".join(lines) + "\n"


def _deep(result: Result, strategy: str) -> str:
    row = result.rows[strategy]
    device = row.features + row.weights
    return _line(
        device <= 12 << 30,
        f"ResNet-1517, batch 32, `{strategy}`: {device / 2**30:.2f} GiB of device memory "
        f"(asked: 12), of these {row.weights / 2**30:.2f} weights; {row.host / 2**30:.2f} GiB "
        "of host memory",
    )


def _line(good: bool, text: str) -> str:
    return f"* {'met' if good else '**missed**'}: {text}"


def _net(result: Result) -> str:
    head = ["", "features and scratch, MiB", "weights", "host", "saved", "with weights", "time",
            "time on Kepler"]  # fmt: skip
    caffe, weights = result.caffe_features, result.caffe_weights
    rows = [
        ["*Caffe*", _mib(caffe), _mib(weights), "0", "", "", "", ""],
        [
            "*Layrub*",
            _mib(result.layrub_features),
            _mib(weights),
            _mib(result.layrub_host),
            f"{1 - result.layrub_features / caffe:.1%}",
            f"{1 - (result.layrub_features + weights) / (caffe + weights):.1%}",
            "",
            "",
        ],
    ]
    rows += [
        [
            name,
            _mib(row.features),
            _mib(row.weights),
            _mib(row.host),
            f"{result.saved(name):.1%}",
            f"{result.saved_total(name):.1%}",
            f"{result.slower(name):+.1%}",
            f"{result.slower(name, old=True):+.1%}",
        ]
        for name, row in result.rows.items()
    ]
    return f"### {result.net} ({result.layers:,} layers)\n\n{_table(head, rows)}"


def _mib(nbytes: int) -> str:
    return f"{nbytes / 2**20:,.0f}"
