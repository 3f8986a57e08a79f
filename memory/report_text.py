"""Reports of plans in words: a summary, a table of strategies, the out-of-memory message."""

from __future__ import annotations

from collections.abc import Sequence

from layrubnet.engine.program import Program
from layrubnet.errors import OutOfMemory
from layrubnet.memory.caffe_bytes import CaffeBytes
from layrubnet.memory.cost import CPU, CostModel
from layrubnet.memory.plan import Plan
from layrubnet.memory.report import Figures, measure
from layrubnet.memory.timeline import timeline

ABOUT = {
    "caffe": "everything keeps its place",
    "reuse": "dead places are used again",
    "intra": "gradients over their activations",
    "inter": "feature maps leave for the host",
    "hybrid": "Layrub: intra and inter",
    "vdnn": "inputs of convolutions leave",
    "recompute": "cheap layers run again",
    "sublinear": "sqrt(n) checkpoints",
    "min": "the smallest peak",
    "auto": "the fastest that fits, or is free",
}


def size(nbytes: float) -> str:
    """Bytes for people, in units of 1024: ``12.3 MiB``."""
    units = ["GiB", "MiB", "KiB"]
    if abs(nbytes) < 1024:
        return f"{nbytes:.0f} bytes"
    nbytes /= 1024
    unit = units.pop()
    while abs(nbytes) >= 1024 and units:
        nbytes /= 1024
        unit = units.pop()
    return f"{nbytes:.2f} GiB" if unit == "GiB" else f"{nbytes:.1f} {unit}"


def milliseconds(seconds: float) -> str:
    """``132 ms``, ``4.21 ms``, ``12.3 s`` or ``26 µs``."""
    if seconds >= 10:
        return f"{seconds:.1f} s"
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.2f} s"


def percent(part: float, whole: float) -> str:
    """How much smaller ``part`` is than ``whole``: ``58.2 %`` (``x 12``: 12 times as large)."""
    if part >= 2 * whole > 0:
        return f"x {part / whole:.0f}"
    return f"{100 * (1 - part / whole):.1f} %" if whole else "-"


def saving(part: float, whole: float) -> str:
    """``58.2 % less``, or ``3.1 % more``."""
    if part <= whole:
        return f"{percent(part, whole)} less"
    if part >= 2 * whole:
        return f"{part / whole:.1f} times as much" if whole else "more"
    return f"{100 * (part / whole - 1):.1f} % more"


def change(now: float, before: float) -> str:
    """``+4.2 %``: how much more ``now`` is."""
    return f"{100 * (now / before - 1):+.1f} %" if before else "-"


def summary(
    figures: Figures, reuse: Figures, caffe: Figures, bvlc: CaffeBytes, device: str
) -> list[str]:
    """The report of one plan."""
    lines = [
        f"strategy {figures.strategy}: {ABOUT.get(figures.strategy, '')}",
        "",
        f"device memory   {size(figures.device)} ({figures.device:,} bytes)",
        f"  {_peak(figures)}"
        + (f" (instruction {figures.peak_position}); then it holds" if figures.peak_op else ""),
    ]
    found = sorted(figures.parts.items(), key=lambda item: -item[1])
    lines += [f"  {size(nbytes):>12}  {words}" for words, nbytes in found if nbytes]
    lines += ["", f"host memory     {size(figures.host)}"]
    if figures.moved:
        lines.append(
            f"transfers       {size(figures.moved)} to the host in each iteration, and back"
        )
    lines += [
        f"predicted time  {milliseconds(figures.seconds)} an iteration, "
        f"{change(figures.seconds, reuse.seconds)} against reuse ({device} figures)"
    ]
    if figures.stall or figures.recompute:
        lines.append(
            f"                of it {milliseconds(figures.stall)} waiting for copies, "
            f"{milliseconds(figures.recompute)} computing again"
        )
    ours = figures.features
    lines += [
        "",
        f"saved against   BVLC Caffe, {size(bvlc.total)} by its own accounting: "
        f"{saving(figures.device, bvlc.total)}",
        f"                  of all but parameters, gradients and history ({size(bvlc.features)}): "
        f"{saving(ours, bvlc.features)}",
        f"                strategy caffe as it runs here, {size(caffe.device)}: "
        f"{saving(figures.device, caffe.device)}",
    ]
    return lines


def _peak(figures: Figures) -> str:
    """What sets the peak."""
    if figures.peak_op:
        return f"the peak is at {figures.peak_op} of layer {figures.peak_layer!r}"
    return f"every buffer has a place; layer {figures.peak_layer!r} has most"


_COLUMNS = ("strategy", "device", "features", "host", "moved", "time", "waits", "saved", "of feat.")


def table(rows: Sequence[Figures], bvlc: CaffeBytes, budget: int | None) -> list[str]:
    """One row per strategy, below one for BVLC Caffe; at most 100 columns wide."""
    reuse = next((r for r in rows if r.strategy == "reuse"), rows[0])
    head = [*_COLUMNS] + (["fits"] if budget is not None else [])
    cells = [head, ["BVLC Caffe", size(bvlc.total), size(bvlc.features), *["-"] * 6]]
    if budget is not None:
        cells[-1].append("yes" if bvlc.total <= budget else "no")
    for r in rows:
        cells.append(
            [
                r.strategy,
                size(r.device),
                size(r.features),
                size(r.host) if r.host else "-",
                size(r.moved) if r.moved else "-",
                change(r.seconds, reuse.seconds) if r is not reuse else milliseconds(r.seconds),
                milliseconds(r.stall) if r.stall else "-",
                percent(r.device, bvlc.total),
                percent(r.features, bvlc.features),
            ]
        )
        if budget is not None:
            cells[-1].append("yes" if r.device <= budget else "no")
    widths = [max(len(row[n]) for row in cells) for n in range(len(head))]
    lines = [
        "  ".join(
            cell.ljust(width) if n == 0 else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
    lines.insert(1, "-" * max(map(len, lines)))
    return [
        *lines,
        "",
        "device    all device memory",
        "features  of it, all but parameters, their gradients and the solver's history",
        "moved     copied to the host in an iteration; as much comes back",
        "time      predicted, against reuse; waits: of it, for copies",
        "saved     of BVLC Caffe's device memory; of feat.: of its features",
    ]


def out_of_memory(
    program: Program, plan: Plan, error: OutOfMemory, free: int | None, why: str = ""
) -> OutOfMemory:
    """The message for a plan that the device has no room for.

    ``free``: bytes that could be had, as far as the system says; ``why``: what limits them.
    """
    figures = measure(timeline(program, plan), CostModel(CPU))
    found = sorted(figures.parts.items(), key=lambda item: -item[1])
    lines = [f"  planned:  {size(nbytes):>10}  {words}" for words, nbytes in found if nbytes]
    room = f"{size(free)} free{f' ({why})' if why else ''}" if free is not None else "less"
    budget = f"{max(1, int((free or plan.nbytes // 2) * 0.9) >> 20)}MiB"
    hint = (
        f"--memory auto --memory-budget {budget} looks for a plan that fits"
        if plan.strategy in ("caffe", "reuse")
        else "lower batch_size (iter_size makes up for it)"
    )
    return OutOfMemory(
        "the system does not give the memory that this net needs",
        error.nbytes,
        where=f"net {program.graph.name or 'without a name'!r}",
        expected=f"{size(error.nbytes)} under strategy {plan.strategy}; {_peak(figures)}\n"
        + "\n".join(lines),
        got=room,
        hint=hint,
    )
