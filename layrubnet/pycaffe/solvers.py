"""``caffe.get_solver`` and ``caffe.SGDSolver`` and its kin."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from layrubnet.engine.net import CompiledNet
from layrubnet.engine.updates import LR, STEP
from layrubnet.memory.options import MemoryOptions
from layrubnet.observe.log import LogObserver
from layrubnet.proto import SolverParameter
from layrubnet.prototxt.text import read_solver
from layrubnet.pycaffe.live import LiveNet
from layrubnet.pycaffe.mode import given_seed
from layrubnet.pycaffe.net import Net
from layrubnet.solvers.solver import Solver as Training

Path = str | os.PathLike[str]


class _Training(Training):
    """Keeps the faces of its nets up to date: a snapshot of another seed compiles nets anew."""

    faces: Sequence[LiveNet] = ()

    def build_nets(self) -> None:
        super().build_nets()
        for face, net in zip(self.faces, (self.net, *self.test_nets), strict=False):
            face.adopt(net)


class Solver:
    """A solver as pycaffe's scripts use it. ``solver_file``: a path (or a SolverParameter).

    Its nets keep every blob, whatever ``memory_param`` says: scripts read and run them in parts.
    """

    type = ""
    """The rule that this class stands for; empty: the one in the file."""

    def __init__(self, solver_file: Any) -> None:
        given = isinstance(solver_file, SolverParameter)
        self.param: Any = solver_file if given else read_solver(solver_file)
        if self.type:
            self.param.type = self.type
        self._solver = _Training(
            self.param,
            solver_file=None if given else solver_file,
            seed=given_seed(self.param.random_seed),
            observers=[LogObserver()],
            memory=MemoryOptions(),
        )
        faces = [LiveNet(self._solver.net, self._replace)]
        faces += [
            LiveNet(net, self._replace_test(n)) for n, net in enumerate(self._solver.test_nets)
        ]
        self._solver.faces = faces
        self.net = Net.wrap(faces[0])
        """The net that is trained."""
        self.test_nets = [Net.wrap(face) for face in faces[1:]]

    def _replace(self, net: CompiledNet) -> None:
        self._solver.net = net

    def _replace_test(self, index: int) -> Callable[[CompiledNet], None]:
        def replace(net: CompiledNet) -> None:
            self._solver.test_nets[index] = net

        return replace

    @property
    def iter(self) -> int:
        """The number of updates so far."""
        return self._solver.iter

    @property
    def lr(self) -> float:
        """The learning rate of the next update."""
        return self._solver.lr

    def step(self, iterations: int) -> None:
        """Train for so many iterations (tests and snapshots included where they are due)."""
        self._reshape()
        self._solver.step(iterations)

    def solve(self, resume_file: Path | None = None) -> None:
        """Train to ``max_iter``, from a snapshot if one is given."""
        self._reshape()
        self._solver.solve(resume_file)

    def apply_update(self) -> None:
        """Update the parameters with the gradients that are there now."""
        solver = self._solver
        solver.net.executor.set_scalar(LR, solver.lr)
        solver.net.executor.set_scalar(STEP, solver.iter + 1)
        solver.net.update()

    def snapshot(self) -> str:
        """Write weights and solver state; return the path of the state."""
        return self._solver.snapshot()

    def restore(self, path: Path) -> None:
        """Continue from a snapshot (``.solverstate`` or its ``.h5`` form)."""
        self._solver.restore(path)

    def share_weights(self, net: Net) -> None:
        """Let another net use the parameters of the trained one."""
        net.share_with(self.net)

    def _reshape(self) -> None:
        for net in (self.net, *self.test_nets):
            net.reshape()


class SGDSolver(Solver):
    """Stochastic gradient descent with momentum, whatever ``type`` the file has."""

    type = "SGD"


class NesterovSolver(Solver):
    """Nesterov's accelerated gradient."""

    type = "Nesterov"


class AdaGradSolver(Solver):
    """AdaGrad."""

    type = "AdaGrad"


class RMSPropSolver(Solver):
    """RMSProp."""

    type = "RMSProp"


class AdaDeltaSolver(Solver):
    """AdaDelta."""

    type = "AdaDelta"


class AdamSolver(Solver):
    """Adam."""

    type = "Adam"


def get_solver(solver_file: Any) -> Solver:
    """The solver of a file, with the rule that the file names."""
    return Solver(solver_file)
