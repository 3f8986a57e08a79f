"""MemoryData: batches of arrays that a script hands over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layrubnet.data import MemoryBatches
from layrubnet.engine.contract import Contract, TensorType
from layrubnet.engine.io import IO
from layrubnet.engine.layer import Layer, register


@register("MemoryData")
class MemoryData(Layer):
    """Batches of two arrays set with ``set_arrays``, in order, round and round

    Tops: data (N, C, H, W), labels (N, 1, 1, 1). The number of rows set must be a multiple of N;
    the arrays are referred to, not copied, if they hold float32::

        layer { name: "data" type: "MemoryData" top: "data" top: "label"
          memory_data_param { batch_size: 64 channels: 1 height: 28 width: 28 } }
    """

    num_bottoms = (0, 0)
    num_tops = (2, 2)

    def setup(self) -> None:
        p = self.spec.memory_data_param
        shape = (p.batch_size, p.channels, p.height, p.width)
        if min(shape) < 1:
            raise self.bad_shape(
                "batch_size, channels, height, and width must be specified and positive "
                "in memory_data_param",
                expected="each of them >= 1",
                got=shape,
            )
        self.batches = MemoryBatches(shape, self.where)

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        shape = self.batches.shape
        return Contract(tops=(TensorType(shape), TensorType((shape[0], 1, 1, 1))), loads=True)

    def set_arrays(self, data: Any, labels: Any) -> None:
        """Use ``data`` (rows, C, H, W) with ``labels`` (rows) from the next forward on."""
        self.batches.set_arrays(data, labels)

    def load(self, ops: Any, io: IO) -> None:
        ops.load_host(self.batches.next_into, tuple(io.y))

    def cursor(self) -> dict[str, int]:
        return {"row": self.batches.cursor}

    def seek(self, cursor: dict[str, int]) -> None:
        self.batches.seek(cursor["row"])
