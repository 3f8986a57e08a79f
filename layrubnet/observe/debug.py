"""``debug_info``: mean magnitudes of data and gradients, layer by layer, in Caffe's lines."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from layrubnet.engine.graph import Node, Param
from layrubnet.engine.net import CompiledNet
from layrubnet.engine.program import Instruction, Operand


class DebugInfo:
    """An executor's hook that passes one line per blob to ``say``."""

    def __init__(self, net: CompiledNet, say: Callable[[str], None]) -> None:
        self.net, self.say = net, say
        self._nodes = {node.name: node for node in net.graph.nodes}
        self._params = {param.name: param for param in net.graph.params}

    def __call__(self, instruction: Instruction) -> None:
        if instruction.op == "update":
            self._update(self._params[instruction.target])
            return
        node = self._nodes.get(instruction.target)
        if node is None:
            return
        match instruction.op:
            case "load" | "forward":
                self._forward(node, instruction)
            case "backward_data":
                for value, operand in zip(node.bottoms, instruction.slots["dx"], strict=True):
                    if operand is not None:
                        mean = self._mean(operand)
                        self._line("Backward", node, f"bottom blob {value.name} diff: {mean}")
            case "backward_weights":
                for index, operand in enumerate(instruction.slots["dw"]):
                    if operand is not None:
                        mean = self._mean(operand)
                        self._line("Backward", node, f"param blob {index} diff: {mean}")

    def _forward(self, node: Node, instruction: Instruction) -> None:
        for value, operand in zip(node.tops, instruction.slots.get("y", ()), strict=True):
            if operand is not None:
                self._line("Forward", node, f"top blob {value.name} data: {self._mean(operand)}")
        for index, param in enumerate(node.params):
            shown = param.shared_name or str(index)
            mean = self._mean(self.net.program.param_data[param.name])
            self._line("Forward", node, f"param blob {shown} data: {mean}")

    def _update(self, param: Param) -> None:
        program = self.net.program
        data = self._mean(program.param_data[param.name])
        step = program.param_diff.get(param.name)
        diff = self._mean(step) if step is not None else "0"
        shown = param.shared_name or str(param.index)
        self.say(f"    [Update] Layer {param.owner}, param {shown} data: {data}; diff: {diff}")

    def _line(self, direction: str, node: Node, text: str) -> None:
        self.say(f"    [{direction}] Layer {node.name}, {text}")

    def _mean(self, operand: Operand) -> str:
        values = self.net.device.download(self.net.executor.array(operand))
        return f"{np.abs(values).mean(dtype=np.float64) if values.size else 0.0:g}"
