"""The sidecar of a snapshot: everything that Caffe's files have no room for.

JSON with the positions in the data, the state of layers that is in no blob, the seed of all
random draws, the losses behind the smoothed one, and the choices that decide about bits.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from layrubnet.engine.net import CompiledNet
from layrubnet.errors import WeightsError
from layrubnet.files import atomic_write
from layrubnet.solvers.policies import Plateau
from layrubnet.version import __version__

if TYPE_CHECKING:
    from layrubnet.solvers.solver import Solver

FORMAT = 1
_KEYS = ("seed", "losses", "plateau", "nets", "watch", "choices")
TestState = tuple[list[dict[str, Any]], dict[str, Any]]
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def sidecar_path(state: str | os.PathLike[str]) -> Path:
    """The path of the sidecar that belongs to a state file."""
    path = Path(state)
    return path.with_name(path.name.split(".solverstate")[0] + ".layrubnet.json")


def write(solver: Solver, weights: str, state: str) -> None:
    """Write the sidecar of files that are already in place."""
    nets, watch = solver.test_mark or test_state(solver)
    content = {
        "format": FORMAT,
        "iteration": solver.iter,
        "current_step": solver.current_step,
        "seed": solver.seed,
        "losses": list(solver.losses),
        "weights_sha256": _digest(weights),
        "state_sha256": _digest(state),
        "plateau": _plateau(solver.plateau),
        "nets": [_net_state(solver.net), *nets],
        "watch": watch,
        "choices": _choices(solver),
    }
    with atomic_write(sidecar_path(state)) as temporary:
        temporary.write_text(
            json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8"
        )


def read(state: str | os.PathLike[str], weights: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the sidecar of a snapshot; WeightsError if it is missing or of other files."""
    path = sidecar_path(state)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise WeightsError(f"the snapshot has no sidecar {path.name}", where=str(path)) from None
    except ValueError:
        raise WeightsError(f"the sidecar {path.name} is damaged", where=str(path)) from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise WeightsError(f"the sidecar {path.name} has an unknown format", where=str(path))
    for key, file in (("weights_sha256", weights), ("state_sha256", state)):
        if content.get(key) != _digest(file):
            raise WeightsError(
                f"the sidecar {path.name} was not written with {Path(file).name}", where=str(path)
            )
    if any(key not in content for key in _KEYS):
        raise WeightsError(f"the sidecar {path.name} is damaged", where=str(path))
    return content


def apply(solver: Solver, content: dict[str, Any]) -> None:
    """Set the solver to the content of a sidecar."""
    solver.losses.extend(content["losses"])
    minimum, event = content["plateau"]
    solver.plateau = Plateau(math.inf if minimum is None else minimum, event)
    solver.watch.load(content["watch"])
    nets = (solver.net, *solver.test_nets)
    if len(content["nets"]) != len(nets):
        solver.observers.warning(
            f"the snapshot knows {len(content['nets']) - 1} test nets, the solver has "
            f"{len(nets) - 1}: positions in test data may differ"
        )
    for net, saved in zip(nets, content["nets"], strict=False):
        _set_net_state(net, saved, solver)
    mine = _choices(solver)
    changed = [
        f"{key} {content['choices'].get(key)} -> {value}"
        for key, value in mine.items()
        if content["choices"].get(key) != value
    ]
    if changed:
        solver.observers.note(
            "Results may differ in the last bits from a run without interruption: "
            + ", ".join(changed)
        )


def test_state(solver: Solver) -> TestState:
    """What a test changes: positions and state of the test nets, and what watches them."""
    return [_net_state(net) for net in solver.test_nets], solver.watch.state()


def set_test_state(solver: Solver, state: TestState) -> None:
    """Go back to before a test that was interrupted."""
    for net, saved in zip(solver.test_nets, state[0], strict=True):
        _set_net_state(net, saved, solver)
    solver.watch.load(state[1])


def _plateau(seen: Plateau) -> list[float | None]:
    """JSON has no infinity: no minimum yet is null."""
    return [seen.minimum if math.isfinite(seen.minimum) else None, seen.event]


def _choices(solver: Solver) -> dict[str, Any]:
    """What decides about the last bits of results besides the solver and net files."""
    return {
        "layrubnet": __version__,
        # Processor, libraries and their versions: which kernels compute.
        "device": solver.device.describe(),
        "threads": next((os.environ[n] for n in _THREADS if n in os.environ), os.cpu_count()),
    }


def _net_state(net: CompiledNet) -> dict[str, Any]:
    return {
        "cursors": {node.name: node.layer.cursor() for node in net.data_nodes()},
        "state": {name: _encode(net, name) for name in _state_buffers(net)},
    }


def _set_net_state(net: CompiledNet, saved: dict[str, Any], solver: Solver) -> None:
    for node in net.data_nodes():
        cursor = saved["cursors"].get(node.name)
        if cursor is None:
            solver.observers.warning(
                f"the snapshot has no position for data layer {node.name!r}: it starts anew"
            )
        else:
            node.layer.seek(cursor)
    for name in _state_buffers(net):
        if name in saved["state"]:
            target = net.executor.arrays[name]
            raw = base64.b64decode(saved["state"][name])
            if len(raw) == target.nbytes:
                values = np.frombuffer(raw, target.dtype).reshape(target.shape)
                net.device.upload(target, values)


def _state_buffers(net: CompiledNet) -> list[str]:
    return [name for name, buffer in net.program.buffers.items() if buffer.kind == "state"]


def _encode(net: CompiledNet, name: str) -> str:
    values = net.device.download(net.executor.arrays[name])
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode()


def _digest(path: str | os.PathLike[str]) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise WeightsError(f"cannot be read: {error.strerror}", where=os.fspath(path)) from None
