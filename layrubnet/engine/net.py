"""A net that runs: graph, program, plan and executor behind one object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from layrubnet.devices import Device, get_device
from layrubnet.engine.build import build_graph
from layrubnet.engine.executor import Executor, Hook
from layrubnet.engine.fillers import fill, generator
from layrubnet.engine.graph import Graph, Node
from layrubnet.engine.lower import LowerOptions, lower
from layrubnet.engine.program import Operand
from layrubnet.engine.updates import UpdateRule
from layrubnet.errors import NetError, OutOfMemory, ShapeError, nearest
from layrubnet.memory.machine import free_memory
from layrubnet.memory.options import MemoryOptions
from layrubnet.memory.plan import Plan
from layrubnet.memory.planner import PlanOptions, make_plan, sections_of
from layrubnet.memory.profile import load_profile
from layrubnet.memory.report_text import out_of_memory
from layrubnet.memory.verify import verify

KEEP_EVERYTHING = MemoryOptions()


class CompiledNet:
    """A net for one phase on one device, by default with every blob kept in memory.

    ``share``: another net whose parameters this one uses (matched by layer name): a test net
    beside its train net. ``rule``: a solver's update, which makes the program end with it.
    ``seeds``: gradients of outputs can be set from outside (pycaffe). ``rank`` of ``world``:
    enters the random streams, so that ranks drop different units, and deals out the data.
    ``arrays``: existing arrays to use for buffers of these names (a net compiled again for new
    input shapes keeps its parameters). ``memory``: how to plan; under any strategy but ``caffe``
    only outputs, parameters and ``keep`` can be read after a step, and ``step`` alone trains.
    ``train``: with backward.
    """

    def __init__(
        self,
        param: Any,
        phase: str,
        *,
        device: Device | str = "cpu",
        seed: int = 0,
        rank: int = 0,
        world: int = 1,
        share: CompiledNet | None = None,
        rule: UpdateRule | None = None,
        train: bool = True,
        seeds: bool = False,
        where: Any = None,
        arrays: Mapping[str, Any] | None = None,
        memory: MemoryOptions = KEEP_EVERYTHING,
    ) -> None:
        self.param, self.phase, self.seed, self.rank = param, phase, seed, rank
        self.rule, self.train, self.seeds, self.where = rule, train, seeds, where
        self.memory = memory
        self.device = get_device(device) if isinstance(device, str) else device
        self.graph: Graph = build_graph(param, phase, where)
        self.program = lower(
            self.graph,
            self.device.ops,
            train=train,
            rule=rule,
            options=LowerOptions(seeds=seeds, named_in_place=memory.strategy == "caffe"),
        )
        buffers = self.program.buffers
        external = {
            name: array
            for name, array in (arrays or {}).items()
            if name in buffers and tuple(array.shape) == buffers[name].shape
        }
        external |= self._shared_arrays(share) if share else {}
        self.plan = self._plan(memory, external)
        try:
            self.executor = Executor(
                self.program,
                self.plan,
                self.device,
                seed=seed,
                rule=rule,
                external=external,
                offload_dir=memory.offload_dir,
                lender=self._lender(share, memory),
            )
        except OutOfMemory as error:
            free, why = free_memory()
            raise out_of_memory(self.program, self.plan, error, free, why) from None
        self.iteration = 0
        self._nodes = {node.name: n for n, node in enumerate(self.graph.nodes)}
        self._fill_params(external)
        for node in self.data_nodes():
            node.layer.open(seed=seed, rank=rank, world=world)

    # -- set-up ----------------------------------------------------------------------------------

    def _lender(self, share: CompiledNet | None, memory: MemoryOptions) -> Executor | None:
        """A planned net that shares parameters with another uses that one's arena as well."""
        if share is None or memory.strategy == "caffe" or share.plan.keeps_everything:
            return None
        return share.executor if share.device is self.device else None

    def _plan(self, memory: MemoryOptions, external: Mapping[str, Any]) -> Plan:
        kept = [self._array_operand(self.program.blob_data, b, "blob") for b in memory.keep]
        options = PlanOptions(
            strategy=memory.strategy,
            budget=memory.budget,
            keep=frozenset(operand.buffer for operand in kept),
            micro_batches=self.rule.iter_size if self.rule else 1,
            base_scratch=self.device.base_scratch,
        )
        if memory.profile is not None:
            options = replace(options, cost=load_profile(memory.profile).cost_model())
        plan = make_plan(self.program, options, external)
        verify(self.program, plan, sections_of(plan), external, self.device.base_scratch)
        return plan

    def _shared_arrays(self, other: CompiledNet) -> dict[str, Any]:
        shared: dict[str, Any] = {}
        theirs = other.graph.layer_blobs()
        for name, params in self.graph.layer_blobs().items():
            for mine, source in zip(params, theirs.get(name, ()), strict=False):
                if mine.shape != source.shape:
                    raise ShapeError(
                        f"Cannot share param of layer '{name}' between nets; shape mismatch",
                        expected=f"{source.shape} (net {other.graph.name!r})",
                        got=f"{mine.shape} (net {self.graph.name!r})",
                        hint="to learn this layer's parameters from scratch, rename the layer",
                    )
                buffer = self.program.param_data[mine.name].buffer
                theirs_operand = other.program.param_data[source.name]
                shared[buffer] = other.executor.arrays[theirs_operand.buffer]
        return shared

    def _fill_params(self, external: Mapping[str, Any]) -> None:
        where = {node.name: node.layer.where for node in self.graph.nodes}
        for param in self.graph.params:
            operand = self.program.param_data[param.name]
            if operand.buffer not in external:
                rng = generator(self.seed, param.name)
                values = fill(param.filler, param.shape, rng, where[param.owner])
                self.device.upload(self.executor.arrays[operand.buffer], values)

    def data_nodes(self) -> list[Node]:
        """Layers that read data by themselves."""
        return [node for node in self.graph.nodes if node.contract.loads]

    def close(self) -> None:
        """Stop background readers, give host memory back; the net cannot run afterwards."""
        for node in self.data_nodes():
            node.layer.close()
        self.executor.close()

    # -- looking in ------------------------------------------------------------------------------

    @property
    def layer_names(self) -> list[str]:
        """Names of all layers, automatic splits included, in order."""
        return list(self._nodes)

    @property
    def blob_names(self) -> list[str]:
        """Names of all blobs, in order of first appearance."""
        return list(self.program.blob_data)

    def data(self, blob: str) -> Any:
        """The data of a blob: a live view of device memory."""
        return self._array(self.program.blob_data, blob, "blob")

    def diff(self, blob: str) -> Any:
        """The gradient of a blob (an error if this net computes none for it)."""
        return self._array(self.program.blob_diff, blob, "blob with a gradient")

    def param_data(self, name: str) -> Any:
        """A parameter by its stored name, ``<layer>/<index>``."""
        return self._array(self.program.param_data, name, "parameter")

    def param_diff(self, name: str) -> Any:
        """The gradient of a parameter by its stored name."""
        return self._array(self.program.param_diff, name, "parameter with a gradient")

    def _array(self, table: Mapping[str, Operand], name: str, what: str) -> Any:
        operand = self._array_operand(table, name, what)
        if not self.plan.readable(operand.buffer):
            raise NetError(
                f"{what} {name!r} is not kept: its memory is used again within a step",
                where=f"memory strategy {self.plan.strategy!r}",
                hint=f"memory with keep=[{name!r}] keeps it, strategy 'caffe' keeps everything",
            )
        return self.executor.array(operand)

    def readable(self, blob: str) -> bool:
        """Can the data of a blob be read after a step under this memory plan?"""
        return self.plan.readable(self.program.blob_data[blob].buffer)

    def _array_operand(self, table: Mapping[str, Operand], name: str, what: str) -> Operand:
        operand = table.get(name)
        if operand is None:
            close = nearest(name, table, 3)
            raise NetError(
                f"the net has no {what} {name!r}",
                hint=f"did you mean {' or '.join(close)}?" if close else "",
            )
        return operand

    def output_values(self) -> dict[str, Any]:
        """The outputs of the last forward as host arrays, by name."""
        return {v.name: self.device.download(self.data(v.name)) for v in self.graph.outputs()}

    # -- running ---------------------------------------------------------------------------------

    def layer_range(self, start: str | None, end: str | None) -> frozenset[str] | None:
        """The names of the layers from ``start`` to ``end``, both included (None: all)."""
        if start is None and end is None:
            return None
        names = self.layer_names
        first = self._position(start) if start is not None else 0
        last = self._position(end) if end is not None else len(names) - 1
        return frozenset(names[first : last + 1])

    def _position(self, layer: str) -> int:
        if layer not in self._nodes:
            close = nearest(layer, self._nodes, 3)
            raise NetError(
                f"the net has no layer {layer!r}",
                hint=f"did you mean {' or '.join(close)}?" if close else "",
            )
        return self._nodes[layer]

    def forward(
        self,
        *,
        start: str | None = None,
        end: str | None = None,
        iteration: int | None = None,
        micro_batch: int = 0,
        hook: Hook | None = None,
    ) -> float:
        """Run forward; return the loss. ``iteration`` numbers random draws (default: counts)."""
        if iteration is None:
            iteration = self.iteration
            self.iteration += 1
        if not self.plan.keeps_everything and not start is end is None:
            raise self._only_whole("a part of forward")
        self.executor.set_counters(iteration, micro_batch, self.rank)
        self.executor.run("forward", layers=self.layer_range(start, end), hook=hook)
        return self.executor.loss

    def backward(
        self,
        *,
        start: str | None = None,
        end: str | None = None,
        accumulate: bool = False,
        hook: Hook | None = None,
    ) -> None:
        """Run backward from layer ``start`` down to ``end`` (both included)."""
        if not self.plan.keeps_everything:
            raise self._only_whole("backward alone")
        section = "backward_accumulate" if accumulate else "backward"
        self.executor.run(section, layers=self.layer_range(end, start), hook=hook)

    def step(self, *, iteration: int, micro_batch: int = 0, hook: Hook | None = None) -> float:
        """Forward and backward of one micro-batch; return the loss.

        The first one (0) overwrites the weight gradients, later ones add to them.
        """
        if self.plan.keeps_everything:
            loss = self.forward(iteration=iteration, micro_batch=micro_batch, hook=hook)
            self.backward(accumulate=micro_batch > 0, hook=hook)
            return loss
        self.executor.set_counters(iteration, micro_batch, self.rank)
        self.executor.run("step_more" if micro_batch else "step_first", hook=hook)
        return self.executor.loss

    def _only_whole(self, part: str) -> NetError:
        return NetError(
            f"{part} needs feature maps that are not kept",
            where=f"memory strategy {self.plan.strategy!r}",
            hint="step() runs forward and backward together; strategy 'caffe' keeps everything",
        )

    def update(self, hook: Hook | None = None) -> None:
        """Run the solver's update."""
        self.executor.run("update", hook=hook)

    # -- weights ---------------------------------------------------------------------------------

    def set_blob(self, layer: str, index: int, values: np.ndarray | Sequence[float]) -> None:
        """Copy host values into blob ``index`` of ``layer``; the number of elements must agree."""
        param = self.graph.layer_blobs()[layer][index]
        target = self.param_data(param.name)
        self.device.upload(target, np.asarray(values, np.float32).reshape(target.shape))

    def get_blob(self, layer: str, index: int) -> np.ndarray:
        """Blob ``index`` of ``layer`` as a host array."""
        param = self.graph.layer_blobs()[layer][index]
        values: np.ndarray = self.device.download(self.param_data(param.name))
        return values
