"""Snapshots: Caffe's two files, and a sidecar that makes resuming exact to the bit.

Written in this order, each atomically: ``<prefix>_iter_<N>.caffemodel``, ``.solverstate`` (both
with ``.h5`` appended for ``snapshot_format: HDF5``), ``.layrubnet.json``. The sidecar names the
hashes of the other two; without a sidecar that fits, a state loads as Caffe's own would.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from layrubnet.errors import LayrubError, WeightsError
from layrubnet.observe.observer import SnapshotReport
from layrubnet.proto import enum_name
from layrubnet.prototxt.state import SavedState, find_learned_net, read_state, write_state
from layrubnet.prototxt.weights import write_weights
from layrubnet.solvers import sidecar
from layrubnet.solvers.weights import fits, load_weights, net_blobs

if TYPE_CHECKING:
    from layrubnet.solvers.solver import Solver


def snapshot_paths(solver: Solver) -> tuple[str, str]:
    """The paths of weights and state of a snapshot taken now."""
    stem = f"{snapshot_prefix(solver)}_iter_{solver.iter}"
    suffix = ".h5" if is_hdf5(solver) else ""
    return f"{stem}.caffemodel{suffix}", f"{stem}.solverstate{suffix}"


def snapshot_prefix(solver: Solver) -> str:
    """``snapshot_prefix``; if not set, the solver file's path without its ending, as in Caffe."""
    if solver.param.snapshot_prefix:
        return str(solver.param.snapshot_prefix)
    if solver.solver_file is not None:
        return str(Path(solver.solver_file).with_suffix(""))
    return solver.net.graph.name or "net"


def is_hdf5(solver: Solver) -> bool:
    """Whether snapshots are HDF5 files."""
    return enum_name(solver.param, "snapshot_format") == "HDF5"


def save(solver: Solver) -> SnapshotReport:
    """Write a snapshot of the solver."""
    weights, state = snapshot_paths(solver)
    hdf5 = is_hdf5(solver)
    solver.observers.writing(weights, "weights", hdf5)
    data, diffs = net_blobs(solver.net, diffs=solver.param.snapshot_diff)
    write_weights(weights, solver.net.param, data, diffs)
    solver.observers.writing(state, "state", hdf5)
    write_state(state, solver.iter, weights, history(solver), solver.current_step)
    sidecar.write(solver, weights, state)
    return SnapshotReport(solver.iter, weights, state)


def save_best(solver: Solver) -> str:
    """Write the weights alone as ``<prefix>_best.caffemodel`` (or ``.h5``); return the path."""
    path = f"{snapshot_prefix(solver)}_best.caffemodel{'.h5' if is_hdf5(solver) else ''}"
    write_weights(path, solver.net.param, net_blobs(solver.net)[0])
    return path


def history(solver: Solver) -> list[Any]:
    """The histories in Caffe's order: the first of every learnable blob, then the second.

    Blobs that the solver does not move (statistics, lr_mult 0) have zeros.
    """
    net = solver.net
    made = []
    for k in range(solver.rule.histories):
        for param in net.graph.params:
            operands = net.program.history.get(param.name)
            made.append(
                net.device.download(net.executor.array(operands[k]))
                if operands
                else np.zeros(param.shape, np.float32)
            )
    return made


def restore(solver: Solver, path: str | os.PathLike[str]) -> None:
    """Set the solver to the snapshot at ``path`` (a ``.solverstate`` or ``.solverstate.h5``).

    Raises :class:`~layrubnet.errors.WeightsError` for any other file, a history that does not
    suit the net, or missing weights; the solver is then unchanged.
    """
    state = read_state(path)
    weights = find_learned_net(path, state)
    try:
        extra = sidecar.read(path, weights)
    except LayrubError as error:
        extra = None
        solver.observers.warning(
            f"{error.what}: resuming as Caffe does, from the start of the data "
            "(weights, history and iteration are exact)"
        )
    _check_history(solver, path, state)
    if extra is not None and extra["seed"] != solver.seed:
        solver.observers.note(f"random_seed: {extra['seed']} (from the snapshot)")
        solver.seed = extra["seed"]
        solver.close()
        solver.build_nets()
    load_weights(solver.net, weights)
    _set_history(solver, state)
    solver.iter, solver.current_step = state.iter, state.current_step
    solver.losses.clear()
    if extra is not None:
        sidecar.apply(solver, extra)


def _check_history(solver: Solver, path: str | os.PathLike[str], state: SavedState) -> None:
    params = solver.net.graph.params
    wanted = len(params) * solver.rule.histories
    if len(state.history) != wanted:
        raise WeightsError(
            "Incorrect length of history blobs.",
            where=os.fspath(path),
            expected=f"{wanted}: {len(params)} blobs, {solver.rule.histories} each for "
            f"{solver.param.type}",
            got=len(state.history),
            hint="the snapshot is of another net or another solver type",
        )
    for index, array in enumerate(state.history):
        param = params[index % len(params)]
        if not fits(array.shape, param.shape):
            raise WeightsError(
                f"the history of parameter {param.name!r} has another shape",
                where=os.fspath(path),
                expected=param.shape,
                got=array.shape,
                hint="the snapshot is of another net",
            )


def _set_history(solver: Solver, state: SavedState) -> None:
    net = solver.net
    for index, array in enumerate(state.history):
        k, position = divmod(index, len(net.graph.params))
        param = net.graph.params[position]
        operands = net.program.history.get(param.name)
        if operands:
            values = np.asarray(array, np.float32).reshape(param.shape)
            net.device.upload(net.executor.array(operands[k]), values)


def find_newest(prefix: str) -> tuple[str | None, list[str]]:
    """Return the newest snapshot of ``prefix`` that is whole, and why newer ones were passed over.

    One with a sidecar that fits is taken before any without (Caffe's own, or cut off by a crash).
    """
    folder, stem = os.path.split(prefix)
    found: list[tuple[int, str]] = []
    for entry in Path(folder or ".").glob("*"):
        for suffix in (".solverstate", ".solverstate.h5"):
            middle = entry.name.removeprefix(f"{stem}_iter_").removesuffix(suffix)
            if entry.name == f"{stem}_iter_{middle}{suffix}" and middle.isdecimal():
                found.append((int(middle), os.path.join(folder, entry.name)))
    plain: str | None = None
    reasons: list[str] = []
    for _, path in sorted(found, reverse=True):
        try:
            weights = find_learned_net(path, read_state(path))
        except LayrubError as error:
            reasons.append(f"{path}: {error.what}")
            continue
        try:
            sidecar.read(path, weights)
        except LayrubError as error:
            reasons.append(f"{path}: {error.what}")
            plain = plain or path
            continue
        return path, reasons
    return plain, reasons
