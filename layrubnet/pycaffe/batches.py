"""Run a net over arrays with more (or fewer) rows than its batch size."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from layrubnet.pycaffe.net import Net


def forward_all(net: Net, blobs: Collection[str], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The outputs (and ``blobs``) for every row of the inputs, as new arrays."""
    outputs = _Rows([*net.outputs, *blobs])
    for batch, rows in _batches(net, inputs):
        outputs.add(net.forward(blobs=blobs, **batch), rows)
    return outputs.arrays()


def forward_backward_all(
    net: Net, blobs: Collection[str], diffs: Collection[str], arrays: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Outputs and gradients of inputs for every row; ``arrays`` may hold output gradients."""
    inputs = {n: a for n, a in arrays.items() if n in net.inputs}
    tops = {n: a for n, a in arrays.items() if n not in inputs}
    outputs, gradients = _Rows([*net.outputs, *blobs]), _Rows([*net.inputs, *diffs])
    forwards, backwards = _batches(net, inputs), _batches(net, tops)
    for forward, backward in itertools.zip_longest(forwards, backwards):
        if forward is None or (tops and backward is None):
            raise ValueError("inputs and gradients of outputs have different numbers of rows")
        batch, rows = forward
        outputs.add(net.forward(blobs=blobs, **batch), rows)
        gradients.add(net.backward(diffs=diffs, **(backward[0] if backward else {})), rows)
    return outputs.arrays(), gradients.arrays()


class _Rows:
    """Collects the rows of several arrays, batch by batch."""

    def __init__(self, names: Collection[str]) -> None:
        self._parts: dict[str, list[Any]] = {name: [] for name in names}

    def add(self, batch: Mapping[str, Any], rows: int) -> None:
        for name, parts in self._parts.items():
            # The net's arrays change with the next batch; scalars have one value a batch.
            parts.append(np.array(np.atleast_1d(batch[name])[:rows]))

    def arrays(self) -> dict[str, Any]:
        return {n: np.concatenate(parts) for n, parts in self._parts.items() if parts}


def _batches(net: Net, arrays: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], int]]:
    """Batches of the arrays, the last one filled up with zeros, and how many rows count."""
    if not arrays:
        return
    counts = {len(a) for a in arrays.values()}
    if len(counts) != 1:
        raise ValueError(f"the arrays have different numbers of rows: {sorted(counts)}")
    (total,) = counts
    size = net.blobs[next(iter(arrays))].shape[0]
    for begin in range(0, total, size):
        rows = min(size, total - begin)
        batch = {}
        for name, array in arrays.items():
            part = np.asarray(array[begin : begin + rows], np.float32)
            filler = np.zeros((size - rows, *part.shape[1:]), np.float32)
            batch[name] = np.concatenate([part, filler])
        yield batch, rows
