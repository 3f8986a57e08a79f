"""Snapshots of the solver: ``.solverstate`` and ``.solverstate.h5``, as Caffe writes them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from layrubnet.errors import WeightsError
from layrubnet.files import atomic_write
from layrubnet.prototxt import hdf5, sniff, wire
from layrubnet.prototxt.binary import damage, read_checked
from layrubnet.prototxt.blobs import Array, decode_blob, encode_blob

# Field numbers of SolverState.
_ITER, _LEARNED_NET, _HISTORY, _CURRENT_STEP = 1, 2, 3, 4


@dataclass(slots=True)
class SavedState:
    """The iteration, the weights file written with it, and the solver's history in Caffe's order
    (one array per learnable blob; Adam and AdaDelta: then a second one per blob)."""

    iter: int
    learned_net: str = ""
    history: list[Array] = field(default_factory=list)
    current_step: int = 0


def read_state(path: str | os.PathLike[str]) -> SavedState:
    """Return a snapshot. Raises :class:`~layrubnet.errors.WeightsError` for any other file."""
    data = read_checked(path, sniff.STATE)
    if data.startswith(sniff.HDF5_SIGNATURE):
        return _read_hdf5(path)
    state = SavedState(0)
    with damage(os.fspath(path)):
        for number, _, value in wire.fields(memoryview(data)):
            if isinstance(value, int):
                if number == _ITER:
                    state.iter = wire.signed(value)
                elif number == _CURRENT_STEP:
                    state.current_step = wire.signed(value)
            elif number == _LEARNED_NET:
                state.learned_net = str(value, "utf-8", "replace")
            elif number == _HISTORY:
                state.history.append(decode_blob(value)[0])
    return state


def write_state(
    path: str | os.PathLike[str],
    iteration: int,
    learned_net: str,
    history: Sequence[Array],
    current_step: int = 0,
) -> None:
    """Write a snapshot that Caffe reads; ``.h5`` chooses HDF5. Atomic, float32."""
    state = SavedState(iteration, learned_net, list(history), current_step)
    with atomic_write(path) as temporary:
        if Path(path).suffix == ".h5":
            _write_hdf5(temporary, state)
            return
        with open(temporary, "wb") as file:
            file.write(wire.encode_varint(_ITER << 3) + wire.encode_varint(iteration))
            name = learned_net.encode()
            file.write(wire.encode_header(_LEARNED_NET, len(name)) + name)
            for array in history:
                body = encode_blob(array)
                file.write(wire.encode_header(_HISTORY, len(body)))
                file.write(body)
            file.write(wire.encode_varint(_CURRENT_STEP << 3) + wire.encode_varint(current_step))


def find_learned_net(path: str | os.PathLike[str], state: SavedState) -> Path:
    """Return the weights file of a snapshot: the stored path, or that name beside the snapshot
    (which may have been moved). Raises WeightsError if there is neither."""
    stored = Path(state.learned_net)
    beside = Path(path).parent / stored.name
    for candidate in (beside, stored):
        if state.learned_net and candidate.is_file():
            return candidate
    raise WeightsError(
        "the weights file of this snapshot is missing",
        where=os.fspath(path),
        expected=" or ".join(dict.fromkeys((str(stored), str(beside)))),
    )


def _read_hdf5(path: str | os.PathLike[str]) -> SavedState:
    with hdf5.opened(path) as file:
        if "iter" not in file:
            raise WeightsError(
                "the HDF5 file is no solver snapshot (it has no 'iter')",
                where=os.fspath(path),
                hint="this is a weights file; use --weights" if "data" in file else "",
            )
        name = file["learned_net"][()] if "learned_net" in file else b""
        return SavedState(
            iter=int(np.ravel(file["iter"][()])[0]),
            learned_net=name.decode() if isinstance(name, bytes) else str(name),
            history=hdf5.read_indexed(file["history"]) if "history" in file else [],
            current_step=int(np.ravel(file["current_step"][()])[0])
            if "current_step" in file
            else 0,
        )


def _write_hdf5(path: Path, state: SavedState) -> None:
    with hdf5.opened(path, "w") as file:
        file["iter"] = np.array([state.iter], np.int32)
        # Fixed length with its closing zero, as H5LTmake_dataset_string has it.
        file["learned_net"] = np.bytes_(state.learned_net.encode() + b"\0")
        file["current_step"] = np.array([state.current_step], np.int32)
        history = file.create_group("history")
        for index, array in enumerate(state.history):
            history[str(index)] = np.asarray(array, np.float32)
