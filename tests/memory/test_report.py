"""Figures and messages of the memory report."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layrubnet.engine.net import CompiledNet
from layrubnet.errors import DeviceError, OutOfMemory
from layrubnet.memory.caffe_bytes import caffe_bytes
from layrubnet.memory.machine import free_memory
from layrubnet.memory.options import MemoryOptions
from layrubnet.memory.report import as_json, largest, measure
from layrubnet.memory.report_text import saving, size, summary, table
from layrubnet.memory.strategies import STRATEGIES
from layrubnet.memory.timeline import timeline
from layrubnet.proto import NetParameter
from layrubnet.prototxt.text import parse
from tests.memory.support import COST, chain, planned, program


@pytest.mark.parametrize("strategy", ["reuse", "hybrid", "recompute", "min", "sublinear", "auto"])
def test_what_is_in_use_at_the_peak_is_the_bound_of_the_plan(strategy: str) -> None:
    """The report counts lifetimes by itself and must come to what the planner counted."""
    made, plan = planned(strategy)
    line = timeline(made, plan)
    assert int(line.total_in_use.max()) <= plan.schedules["step_first"].lower_bound
    slack = sum(63 for life in line.lives if life.start <= line.fullest <= life.end)
    assert int(line.total_in_use.max()) >= plan.schedules["step_first"].lower_bound - slack


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_parts_add_up_to_the_device_memory(strategy: str) -> None:
    made, plan = planned(strategy)
    figures = measure(timeline(made, plan), COST)
    assert sum(figures.parts.values()) == figures.device == plan.nbytes
    assert min(figures.parts.values()) >= 0
    assert figures.weights + figures.features == figures.device
    assert figures.peak_layer in {node.name for node in made.graph.nodes}


def test_offloading_moves_bytes_and_recomputing_takes_time() -> None:
    reuse, hybrid, again = (
        measure(timeline(*planned(s)), COST) for s in ("reuse", "hybrid", "sublinear")
    )
    assert (reuse.moved, reuse.host, reuse.recompute) == (0, 0, 0)
    assert hybrid.moved == hybrid.host > 0
    assert hybrid.seconds == pytest.approx(reuse.seconds + hybrid.stall)
    assert again.recompute > 0
    # Not exactly: a ReLU in compact form reads a little less.
    assert again.seconds == pytest.approx(reuse.seconds + again.recompute, rel=1e-3)


def test_micro_batches_multiply_time_and_transfers() -> None:
    line = timeline(*planned("hybrid"))
    one, two = measure(line, COST), measure(line, COST, micro_batches=2)
    assert two.moved == 2 * one.moved
    assert two.device == one.device


def test_json_holds_every_buffer_and_instruction() -> None:
    made, plan = planned("hybrid")
    data = json.loads(
        json.dumps(as_json(timeline(made, plan), measure(timeline(made, plan), COST), COST))
    )
    step = plan.schedules["step_first"]
    assert [(i["op"], i["target"]) for i in data["instructions"]] == [
        (i.op, i.target) for i in step.instructions
    ]
    named = {b["name"]: b for b in data["buffers"] if b["name"] != "scratch"}
    assert set(named) == set(step.offsets)
    assert all(named[name]["offset"] == offset for name, offset in step.offsets.items())
    assert {b["name"] for b in data["persistent_buffers"]} == set(plan.persistent)
    assert data["update"]


def test_table_fits_100_columns_and_has_a_row_per_strategy() -> None:
    figures = [measure(timeline(*planned(s)), COST) for s in STRATEGIES]
    lines = table(figures, caffe_bytes(program().graph), 1 << 20)
    assert max(map(len, lines)) <= 100
    assert [line.split()[0] for line in lines[2 : 3 + len(STRATEGIES)]] == ["BVLC", *STRATEGIES]


def test_summary_names_peak_savings_and_time() -> None:
    figures = {s: measure(timeline(*planned(s)), COST) for s in ("caffe", "reuse", "hybrid")}
    bvlc = caffe_bytes(program().graph)
    text = "\n".join(summary(figures["hybrid"], figures["reuse"], figures["caffe"], bvlc, "gpu"))
    hybrid = figures["hybrid"]
    assert f"({hybrid.device:,} bytes)" in text
    assert f"{hybrid.peak_op} of layer {hybrid.peak_layer!r}" in text
    assert saving(hybrid.device, bvlc.total) in text
    assert saving(hybrid.device, figures["caffe"].device) in text


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (3 << 20, "3.0 MiB"),
     (-(5 << 20), "-5.0 MiB"), (7 << 40, "7168.00 GiB")],
)  # fmt: skip
def test_sizes(nbytes: int, text: str) -> None:
    assert size(nbytes) == text


def test_savings_in_words() -> None:
    assert saving(30, 100) == "70.0 % less"
    assert saving(112, 100) == "12.0 % more"


@given(
    fixed=st.integers(0, 10**6),
    per_image=st.integers(1, 10**4),
    bump=st.integers(0, 500),
    budget=st.integers(1, 10**8),
    start=st.integers(1, 5000),
)
def test_largest_batch_is_the_largest(
    fixed: int, per_image: int, bump: int, budget: int, start: int
) -> None:
    def needed(n: int) -> int:
        return fixed + per_image * n + bump * n.bit_length()

    found = largest(needed, budget, start, limit=100_000)
    assert found == 0 or needed(found) <= budget
    assert found == 100_000 or needed(found + 1) > budget


def test_largest_batch_needs_few_plans() -> None:
    asked: list[int] = []

    def needed(n: int) -> int:
        asked.append(n)
        return 1000 + 37 * n

    assert largest(needed, 10**6, 32) == (10**6 - 1000) // 37
    assert len(asked) <= 6


def _refuse(nbytes: int) -> Callable[..., object]:
    def allocate(self: object, wanted: int) -> object:
        raise OutOfMemory("no", wanted)

    return allocate


@pytest.mark.parametrize(
    ("strategy", "hint"), [("caffe", "--memory auto --memory-budget "), ("min", "batch_size")]
)
def test_out_of_memory_says_what_was_planned(
    monkeypatch: pytest.MonkeyPatch, strategy: str, hint: str
) -> None:
    monkeypatch.setattr("layrubnet.devices.cpu.device.CpuDevice.allocate", _refuse(0))
    with pytest.raises(DeviceError) as caught:
        CompiledNet(parse(chain(3), NetParameter), "TRAIN", memory=MemoryOptions(strategy))
    text = str(caught.value)
    assert text.startswith("net 'chain': the system does not give the memory")
    peak = "every buffer has a place; layer" if strategy == "caffe" else "the peak is at"
    assert f"under strategy {strategy}; {peak}" in text
    assert "feature maps" in text
    assert "free (" in text
    assert hint in text.splitlines()[-1]


def test_a_limit_of_the_process_is_what_is_free() -> None:
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_AS)
    wide, _ = free_memory()
    assert wide is None or wide > 0
    resource.setrlimit(resource.RLIMIT_AS, (1 << 40, before[1]))
    try:
        resource.setrlimit(resource.RLIMIT_AS, (_virtual_bytes() + (50 << 20), before[1]))
        free, why = free_memory()
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    assert free is not None
    assert free <= 50 << 20
    assert why == "ulimit -v"


def _virtual_bytes() -> int:
    with open("/proc/self/status", encoding="ascii") as file:
        found = [line for line in file if line.startswith("VmSize:")]
    return int(found[0].split()[1]) * 1024
