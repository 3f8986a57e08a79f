"""Snapshots: Caffe's two files, and a sidecar that makes resuming exact to the bit.

Written in this order, each atomically: ``<prefix>_iter_<N>.caffemodel``, ``.solverstate`` (both
with ``.h5`` appended for ``snapshot_format: HDF5``), ``.layrubnet.json``. The sidecar names the
hashes of the other two; without a sidecar that fits, a state loads as Caffe's own would.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from layrubnet.errors import LayrubError, WeightsError
from layrubnet.observe.observer import SnapshotReport
from layrubnet.proto import enum_name
from layrubnet.prototxt.state import SavedState, find_learned_net, read_state, write_state
from layrubnet.prototxt.weights import read_weights, write_weights
from layrubnet.solvers import sidecar
from layrubnet.solvers.weights import fits, load_weights, net_blobs

if TYPE_CHECKING:
    from layrubnet.solvers.solver import Solver


def snapshot_paths(solver: Solver) -> tuple[str, str]:
    """The paths of weights and state of a snapshot taken now."""
    stem = f"{prefix_of(solver.param, solver.solver_file)}_iter_{solver.iter}"
    suffix = ".h5" if is_hdf5(solver) else ""
    return f"{stem}.caffemodel{suffix}", f"{stem}.solverstate{suffix}"


def prefix_of(param: Any, solver_file: str | os.PathLike[str] | None) -> str:
    """``snapshot_prefix``; if not set, the solver file's path without its ending, as in Caffe.

    A prefix that is a folder gets the solver file's name appended.
    """
    name = "net" if solver_file is None else Path(solver_file).stem
    prefix = str(param.snapshot_prefix)
    if not prefix:
        return name if solver_file is None else str(Path(solver_file).with_suffix(""))
    is_folder = prefix.endswith("/") or os.path.isdir(prefix)
    return os.path.join(prefix, name) if is_folder else prefix


def check_writable(solver: Solver) -> None:
    """Raise LayrubError, before any training, if snapshots could not be written."""
    prefix = prefix_of(solver.param, solver.solver_file)
    folder = Path(prefix).absolute().parent
    while not folder.exists():  # missing folders will be made
        folder = folder.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise LayrubError(
            f"Cannot write to snapshot prefix '{prefix}'.",
            where="solver",
            hint="Make sure that the directory exists and is writable.",
        )


def is_hdf5(solver: Solver) -> bool:
    """Whether snapshots are HDF5 files."""
    return bool(enum_name(solver.param, "snapshot_format") == "HDF5")


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
    prefix = prefix_of(solver.param, solver.solver_file)
    path = f"{prefix}_best.caffemodel{'.h5' if is_hdf5(solver) else ''}"
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
        try:
            sidecar.apply(solver, extra)
        except (KeyError, TypeError, ValueError) as error:
            name = sidecar.sidecar_path(path).name
            raise WeightsError(
                f"the sidecar {name} is damaged ({error})",
                where=os.fspath(path),
                hint="without it, training resumes as Caffe does, from the start of the data",
            ) from None
    mine = snapshot_paths(solver)
    if os.path.abspath(path) == os.path.abspath(mine[1]):
        solver.watch.written(solver, SnapshotReport(solver.iter, *mine))


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


def find_newest(prefix: str, say: Callable[[str], None] | None = None) -> str | None:
    """Return the newest snapshot of ``prefix`` that is whole (None: there is none).

    ``say`` is told which one that is, and why newer ones were passed over.
    One with a sidecar that fits is taken before any without (Caffe's own, or cut off by a crash).
    """
    folder, stem = os.path.split(prefix)
    found: list[tuple[int, str]] = []
    for entry in Path(folder or ".").glob("*"):
        for suffix in (".solverstate", ".solverstate.h5"):
            middle = entry.name.removeprefix(f"{stem}_iter_").removesuffix(suffix)
            if entry.name == f"{stem}_iter_{middle}{suffix}" and middle.isdecimal():
                found.append((int(middle), os.path.join(folder, entry.name)))
    tell = say or (lambda text: None)
    plain: str | None = None
    for _, path in sorted(found, reverse=True):
        try:
            weights = find_learned_net(path, read_state(path))
            read_weights(weights)
        except LayrubError as error:
            tell(f"Passed over {path}: {error.what}")
            continue
        try:
            sidecar.read(path, weights)
        except LayrubError as error:
            plain = plain or path
            tell(f"Passed over {path}: {error.what}")
            continue
        tell(f"The newest snapshot is {path}")
        return path
    if plain is not None:
        tell(f"The newest snapshot is {plain} (without a sidecar)")
    return plain
