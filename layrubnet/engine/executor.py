"""Run a program on a device. Every array is bound before the first step; a step allocates none."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from layrubnet.devices.base import Device
from layrubnet.devices.scratch import Cache
from layrubnet.engine.buffers import COUNTERS, LOSS, SCALARS
from layrubnet.engine.contract import Contract
from layrubnet.engine.copies import COPY_OPS, Copies
from layrubnet.engine.graph import Node
from layrubnet.engine.io import IO, Named, RandomSource, Slots
from layrubnet.engine.poison import Poison
from layrubnet.engine.program import Instruction, Operand, Program, Slot
from layrubnet.engine.updates import UpdateRule
from layrubnet.errors import LayrubError
from layrubnet.memory.plan import Plan, Schedule

Hook = Callable[[Instruction], None]
_LAYER_OPS = ("load", "forward", "recompute", "backward_data", "backward_weights", "update_state")


@dataclass(frozen=True)
class BoundSchedule:
    """A schedule with an array for every buffer and a function for every instruction."""

    schedule: Schedule
    arrays: dict[str, Any]
    steps: list[tuple[Instruction, Callable[[], None]]]


class Executor:
    """A program with memory behind it.

    ``external``: arrays of another executor for some buffers (shared parameters); the plan then
    has no place for them. ``seed``: base of all random draws of layers. ``offload_dir``: where
    offloaded buffers go on devices whose host memory is a file. ``lender``: an executor that never
    runs at the same time; its arena is used again if it is large enough.

    With ``debug`` set, memory whose content is dead is filled with NaN (see ``poison.py``).
    """

    def __init__(
        self,
        program: Program,
        plan: Plan,
        device: Device,
        *,
        seed: int,
        rule: UpdateRule | None = None,
        external: Mapping[str, Any] | None = None,
        offload_dir: str | None = None,
        lender: Executor | None = None,
    ) -> None:
        self.program, self.plan, self.device = program, plan, device
        self.rule, self.seed = rule, seed
        self.arena: Any
        self._arena_offset: int
        transient = plan.nbytes - plan.persistent_bytes
        self.borrows = lender is not None and lender.transient_bytes >= transient
        if lender is not None and self.borrows:
            self.memory = device.allocate(plan.persistent_bytes)
            self.arena, self._arena_offset = lender.arena, lender._arena_offset
        else:
            self.memory = self.arena = device.allocate(plan.nbytes)
            self._arena_offset = plan.persistent_bytes
        self.extents: dict[str, int] = {}
        self.persistent: dict[str, Any] = dict(external or {})
        for name, offset in plan.persistent.items():
            buffer = program.buffers[name]
            array = device.view(self.memory, offset, buffer.shape, buffer.dtype)
            self.persistent[name] = array
            if buffer.fill:
                device.ops.fill(array, buffer.fill)
        self.debug = False
        self._poisons: dict[str, Poison] = {}
        self._nodes = {node.name: node for node in program.graph.nodes}
        self._scratch_arrays: Cache = {}
        self._copies = Copies(device, plan.host_bytes, offload_dir)
        self._bound: dict[str, BoundSchedule] = {}
        for name, schedule in plan.schedules.items():
            self.arrays = self._arrays_of(schedule)
            self._copies.start(schedule)
            steps = [(i, self._bind(i)) for i in schedule.instructions]
            self._bound[name] = BoundSchedule(schedule, self.arrays, steps)
        # What `array` looks at until a schedule has run.
        for name in ("forward", "step_first"):
            if name in self._bound:
                self.arrays = self._bound[name].arrays

    def _arrays_of(self, schedule: Schedule) -> dict[str, Any]:
        for bound in self._bound.values():
            if bound.schedule.offsets is schedule.offsets:
                return bound.arrays
        arrays = dict(self.persistent)
        for name, buffer in schedule.buffers.items():
            if name not in arrays:
                arrays[name] = self._view(schedule.offsets[name], buffer.shape, buffer.dtype)
        return arrays

    # -- running ---------------------------------------------------------------------------------

    def run(
        self,
        schedule: str,
        *,
        layers: frozenset[str] | None = None,
        hook: Hook | None = None,
    ) -> None:
        """Run a schedule of the plan (of some layers only, if given).

        ``hook`` is called after each instruction, when its results are in ``arrays``.
        """
        bound = self._bound.get(schedule)
        if bound is None:
            return
        before, self.arrays = self.arrays, bound.arrays
        self.device.ops.scratch.bind(self._view, self._scratch_arrays)
        poison = self._poison(schedule) if self.debug and layers is None else None
        try:
            with self.device.active():
                self._run(bound, layers, hook, poison)
        except BaseException:
            self._copies.settle()
            raise
        if not bound.schedule.buffers:
            # An update has no blobs of its own: those of the pass before it stay in sight.
            self.arrays = before

    def _run(
        self,
        bound: BoundSchedule,
        layers: frozenset[str] | None,
        hook: Hook | None,
        poison: Poison | None,
    ) -> None:
        scratch = self.device.ops.scratch
        granted, common = self.device.base_scratch, self.plan.scratch_offset
        own = bound.schedule.scratch
        for position, (instruction, step) in enumerate(bound.steps):
            if layers is not None and instruction.target not in layers:
                continue
            limit = max(granted, instruction.scratch)
            begin = own.get(position, common)
            scratch.reset(limit, instruction.target, begin)
            if poison is not None:
                poison.scratch(begin, limit)
            try:
                step()
            except LayrubError:
                raise
            except Exception as error:  # most likely in the user's own layer: say which
                node = self._nodes.get(instruction.target)
                error.add_note(f"in {instruction.op} of {node.layer.where if node else 'the net'}")
                raise
            if hook is not None:
                hook(instruction)
            if poison is not None:
                poison.after(position)

    def _poison(self, name: str) -> Poison | None:
        schedule, plan = self._bound[name].schedule, self.plan
        if plan.keeps_everything or not schedule.buffers:
            return None
        poison = self._poisons.get(name)
        if poison is None:
            arena = (plan.persistent_bytes, plan.scratch_offset)
            poison = Poison(schedule, arena, self._view, self.device.ops, plan.kept)
            self._poisons[name] = poison
        poison.start()
        return poison

    def _view(self, offset: int, shape: Any, dtype: str) -> Any:
        """An array at an address of the plan's arena (which another executor may own)."""
        begin = offset - self.plan.persistent_bytes + self._arena_offset
        return self.device.view(self.arena, begin, shape, dtype)

    @property
    def transient_bytes(self) -> int:
        """Bytes of the arena and the scratch: what lives within one iteration."""
        return self.plan.nbytes - self.plan.persistent_bytes

    @property
    def allocated_bytes(self) -> int:
        """Bytes of device memory this executor took for itself."""
        return self.plan.persistent_bytes if self.borrows else self.plan.nbytes

    def close(self) -> None:
        """Give host memory back; the executor cannot offload afterwards."""
        self._copies.close()

    def array(self, operand: Operand) -> Any:
        """The array of an operand in the current schedule, cut to its run-time extent."""
        array = self.arrays[operand.buffer]
        if array.shape != operand.shape:
            array = array.reshape(operand.shape)
        if operand.extent is not None:
            array = array[: self.extents.get(operand.extent, operand.shape[0])]
        return array

    @property
    def loss(self) -> float:
        """The weighted sum of losses of the last forward (0 for a net without loss)."""
        if LOSS not in self.arrays:
            return 0.0
        return float(self.device.download(self.arrays[LOSS])[0])

    def set_scalar(self, slot: int, value: float) -> None:
        """Set one of the values the update section reads (learning rate, step number, ...)."""
        if SCALARS in self.arrays:  # not in a net whose parameters are all frozen
            self.device.ops.set_item(self.arrays[SCALARS], slot, value)

    def set_counters(self, iteration: int, micro_batch: int, rank: int = 0) -> None:
        """Set what random draws depend on besides the seed and the layer."""
        if COUNTERS in self.arrays:
            for slot, value in enumerate((iteration, micro_batch, rank)):
                self.device.ops.set_item(self.arrays[COUNTERS], slot, value)

    # -- binding ---------------------------------------------------------------------------------

    def _bind(self, instruction: Instruction) -> Callable[[], None]:
        if instruction.op in COPY_OPS:
            return self._copies.bind(instruction, self.arrays)
        if instruction.op in _LAYER_OPS:
            return self._bind_layer(instruction)
        return self._bind_plain(instruction)

    def _bind_layer(self, instruction: Instruction) -> Callable[[], None]:
        node = self._nodes[instruction.target]
        again = instruction.op == "recompute"
        method = getattr(node.layer, "forward" if again else instruction.op)
        ops = self.device.ops
        if any(o.extent for o in instruction.operands()):

            def run_with_extents() -> None:
                io = self._io(instruction, node)
                method(ops, io)
                self._note_extents(node, io)

            return run_with_extents
        io = self._io(instruction, node)
        return lambda: method(ops, io)

    def _note_extents(self, node: Node, io: IO) -> None:
        for top, extent in io.extents.items():
            name = node.tops[top].type.extent
            if name is not None:
                self.extents[name] = extent

    def _io(self, instruction: Instruction, node: Node) -> IO:
        slots, contract = instruction.slots, node.contract
        what = f"{node.layer.where} ({node.layer.type}), {instruction.op}:"
        # A layer that determines an extent gets the whole bound to write into.
        whole = instruction.op in ("forward", "recompute") and self._determines_extent(node)
        counters = self._slot(slots.get("counters", ()), cut=False)
        return IO(
            x=Slots(self._slot(slots.get("x", ())), f"{what} bottom"),
            y=Slots(self._slot(slots.get("y", ()), cut=not whole), f"{what} top"),
            w=Slots(self._slot(slots.get("w", ())), f"{what} blob"),
            dx=self._slot(slots.get("dx", ())),
            dy=self._slot(slots.get("dy", ())),
            dw=self._slot(slots.get("dw", ())),
            saved=self._named(_saved_names(contract), slots.get("saved", ()), what),
            state=self._named((s.name for s in contract.state), slots.get("state", ()), what),
            accumulate=instruction.accumulate,
            chunk=instruction.chunk,
            random=RandomSource(self._key(node), counters[0]) if counters else None,
        )

    def _determines_extent(self, node: Node) -> bool:
        known = {v.type.extent for v in node.bottoms}
        return any(v.type.extent not in known for v in node.tops if v.type.extent)

    def _slot(self, slot: tuple[Slot, ...], *, cut: bool = True) -> tuple[Any, ...]:
        made: list[Any] = []
        for operand in slot:
            if operand is None:
                made.append(None)
            elif cut:
                made.append(self.array(operand))
            else:
                made.append(self.arrays[operand.buffer].reshape(operand.shape))
        return tuple(made)

    def _named(self, names: Iterable[str], slot: tuple[Slot, ...], what: str) -> Named:
        arrays = self._slot(slot)
        found = {n: a for n, a in zip(names, arrays, strict=False) if a is not None}
        return Named(found, f"{what} value")

    def _key(self, node: Node) -> tuple[int, int]:
        return (self.seed & 0xFFFFFFFF, zlib.crc32(node.name.encode()))

    def _bind_plain(self, instruction: Instruction) -> Callable[[], None]:
        ops, values = self.device.ops, instruction.values
        x = self._slot(instruction.slots.get("x", ()))
        y = self._slot(instruction.slots.get("y", ()))
        match instruction.op:
            case "seed":
                return lambda: ops.fill(y[0], values[0])
            case "zero":
                return lambda: ops.fill(y[0], 0.0)
            case "copy":
                return lambda: ops.copy(x[0], y[0])
            case "fetch_loss":
                return lambda: ops.weighted_sum(x, values, y[0])
            case "accumulate":
                return lambda: ops.add(x[0], x[1], y[0])
            case "norm":
                return lambda: ops.global_norm(x, y[0])
            case "clip":
                return lambda: ops.clip_by_norm(x[1], x[0], values[0])
            case "normalise":
                return lambda: ops.scale_in_place(x[0], values[0])
            case "regularise":
                rule = self.rule
                assert rule is not None
                kind = rule.regularization_type
                return lambda: ops.regularise(x[0], x[1], values[0], kind)
            case "update":
                rule = self.rule
                assert rule is not None
                history = self._slot(instruction.slots.get("history", ()))
                lr_mult = values[0]
                return lambda: rule.update(ops, y[0], x[1], history, x[0], lr_mult)
        raise AssertionError(instruction.op)


def _saved_names(contract: Contract) -> Iterable[str]:
    """The names of the extras in a slot, that of the compact form behind the others."""
    compact = (contract.compact.saved,) if contract.compact is not None else ()
    return (s.name for s in (*contract.saved, *compact))
