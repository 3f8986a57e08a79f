"""The solver: trains a net, tests it, takes snapshots; everything it has to say goes to observers.

One iteration, in Caffe's order: test if due, ``iter_size`` times forward and backward, update
(clip, normalise, regularise, rule), count, snapshot if due.
"""

from __future__ import annotations

import os
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from layrubnet.devices import Device, get_device
from layrubnet.engine.executor import Hook
from layrubnet.engine.net import CompiledNet
from layrubnet.engine.program import Instruction
from layrubnet.engine.updates import LR, STEP
from layrubnet.memory.options import MemoryOptions, solver_memory
from layrubnet.observe.debug import DebugInfo
from layrubnet.observe.finite import FiniteCheck, explain_loss, looks_like_floor
from layrubnet.observe.observer import Observer, Observers, TrainReport
from layrubnet.observe.signals import Action
from layrubnet.solvers import sidecar
from layrubnet.solvers import snapshot as snapshots
from layrubnet.solvers.limits import check_max_iter
from layrubnet.solvers.nets import test_nets, train_net
from layrubnet.solvers.policies import (
    Plateau,
    check_policy,
    current_step,
    learning_rate,
    plateau_step,
)
from layrubnet.solvers.rules import make_rule
from layrubnet.solvers.testing import outputs_of, run_test
from layrubnet.solvers.watch import Watch
from layrubnet.solvers.weights import load_weights

Request = Callable[[], Action]


class Solver:
    """Training as a SolverParameter describes it.

    ``param`` has been upgraded (``layrubnet.prototxt.text.read_solver`` does it); ``solver_file``
    is where it was read from, for messages and for nets beside it. ``requests`` is asked after
    every iteration, and during tests, what a signal wants
    (:class:`layrubnet.observe.signals.SignalActions`). ``seed`` replaces ``random_seed``;
    ``memory`` replaces ``memory_param``.
    ``allow_unknown``: skip fields of the net files that the schema does not have.
    """

    def __init__(
        self,
        param: Any,
        *,
        solver_file: str | os.PathLike[str] | None = None,
        device: Device | str = "cpu",
        observers: Iterable[Observer] = (),
        requests: Request | None = None,
        rank: int = 0,
        seed: int | None = None,
        allow_unknown: bool = False,
        memory: MemoryOptions | None = None,
    ) -> None:
        check_policy(param)
        self.param, self.solver_file, self.rank = param, solver_file, rank
        self.allow_unknown = allow_unknown
        self.device = get_device(device) if isinstance(device, str) else device
        self.observers = Observers(observers)
        self.requests = requests or (lambda: Action.NONE)
        self.rule = make_rule(param)
        self.memory = memory or solver_memory(param)
        self.watch = Watch(param)
        self.iter = 0
        self.current_step = 0
        self.plateau = Plateau()
        self.stopped = False
        self.losses: deque[float] = deque(maxlen=max(1, param.average_loss))
        self._display_timer = (time.perf_counter(), 0)
        self._last_snapshot = -1
        self.test_mark: sidecar.TestState | None = None
        self._warned_floor = False
        self.seed = self._choose_seed(seed)
        self.net: CompiledNet
        self.test_nets: list[CompiledNet]
        self.build_nets()
        if param.weights:
            report = load_weights(self.net, param.weights)
            for line in report.lines():
                self.observers.note(line)

    # -- set-up ----------------------------------------------------------------------------------

    def _choose_seed(self, seed: int | None) -> int:
        if seed is not None:
            return seed
        if self.param.random_seed >= 0:
            return int(self.param.random_seed)
        drawn = secrets.randbits(31)
        self.observers.note(
            f"random_seed: {drawn} (drawn; set it in the solver to repeat this run)"
        )
        return drawn

    def build_nets(self) -> None:
        """Compile the train net and the test nets, which share its parameters."""
        self.net = train_net(self)
        self.test_nets = test_nets(self)

    def close(self) -> None:
        """Stop background readers of all nets."""
        for net in (self.net, *self.test_nets):
            net.close()

    # -- training --------------------------------------------------------------------------------

    def solve(self, resume: str | os.PathLike[str] | None = None) -> None:
        """Train to ``max_iter`` (from a snapshot if given), with the final snapshot and tests."""
        param = self.param
        check_max_iter(param)
        if resume is not None:
            self.restore(resume)
            if self.iter >= param.max_iter:
                self.observers.note(
                    f"Nothing left to train: iteration {self.iter}, max_iter {param.max_iter}"
                )
        snapshots.check_writable(self)
        self.observers.started(self.net.graph.name, param.lr_policy, self.iter, param.max_iter)
        self.step(param.max_iter - self.iter)
        if param.snapshot_after_train and self._last_snapshot != self.iter:
            self.snapshot()
        early = self.stopped
        if not early:
            self._last_look()
        self.observers.finished(self.iter, early)

    def _last_look(self) -> None:
        """The loss and the tests after the last update, if they are due."""
        param = self.param
        if param.display and self.iter % param.display == 0:
            self.losses.append(self._checked(self.net.forward(iteration=self.iter)))
            self.observers.forwarded(self.iter, self.smoothed_loss)
        if param.test_interval and self.iter % param.test_interval == 0:
            self.test_all()

    def step(self, iterations: int) -> None:
        """Train for so many iterations; fewer when a signal or early stopping ends them."""
        self.stopped = False
        self._display_timer = (time.perf_counter(), self.iter)
        stop = self.iter + iterations
        while self.iter < stop and not self.stopped:
            if self._test_due():
                self.test_all()
                if self.stopped:
                    break
            self._iterate()

    def _test_due(self) -> bool:
        interval = self.param.test_interval
        due = bool(interval) and self.iter % interval == 0
        return due and (self.iter > 0 or self.param.test_initialization)

    def _iterate(self) -> None:
        display = bool(self.param.display) and self.iter % self.param.display == 0
        hook = self._hook(display)
        total = 0.0
        for micro_batch in range(self.rule.iter_size):
            loss = self.net.step(iteration=self.iter, micro_batch=micro_batch, hook=hook)
            total += self._checked(loss)
        loss = total / self.rule.iter_size
        self.losses.append(loss)
        rate = self._advance_rate()
        if display:
            self._report(rate)
        self.net.executor.set_scalar(LR, rate)
        self.net.executor.set_scalar(STEP, self.iter + 1)
        self.net.update(hook)
        self.iter += 1
        self.observers.iterated(self.iter, loss)
        self._after_update()

    def _checked(self, loss: float) -> float:
        """The loss of a forward, if it is a number."""
        explain_loss(loss, self.net, self.iter)
        if not self._warned_floor and looks_like_floor(loss):
            self._warned_floor = True
            self.observers.warning(
                f"Iteration {self.iter}: the loss is 87.3365 = -ln(FLT_MIN): the net gives every "
                "true class the probability 0, so training has diverged; lower base_lr or check "
                "the scale of the data"
            )
        return loss

    def _advance_rate(self) -> float:
        before = self.current_step
        names = {"multistep": "MultiStep", "plateau": "Plateau"}
        policy = self.param.lr_policy
        if policy == "plateau":
            self.current_step, self.plateau = plateau_step(
                self.param, self.iter, before, self.smoothed_loss, self.plateau
            )
        else:
            self.current_step = current_step(self.param, self.iter, before)
        if policy in names and self.current_step != before:
            self.observers.note(
                f"{names[policy]} Status: Iteration {self.iter}, step = {self.current_step}"
            )
        return learning_rate(self.param, self.iter, self.current_step)

    def _after_update(self) -> None:
        request = self.requests()
        interval = self.param.snapshot
        if (interval and self.iter % interval == 0) or request is Action.SNAPSHOT:
            self.snapshot()
        if request is Action.STOP:
            self.stopped = True

    # -- reporting -------------------------------------------------------------------------------

    @property
    def smoothed_loss(self) -> float:
        """The mean loss of the last ``average_loss`` iterations (0 before the first)."""
        return sum(self.losses) / len(self.losses) if self.losses else 0.0

    @property
    def lr(self) -> float:
        """The learning rate of the next iteration."""
        step = current_step(self.param, self.iter, self.current_step)
        return learning_rate(self.param, self.iter, step)

    def _hook(self, display: bool) -> Hook | None:
        hooks: list[Hook] = []
        if self.param.check_finite:
            hooks.append(FiniteCheck(self.net, self.iter))
        if display and self.param.debug_info:
            hooks.append(DebugInfo(self.net, self.observers.note))
        if len(hooks) < 2:
            return hooks[0] if hooks else None

        def both(instruction: Instruction) -> None:
            for hook in hooks:
                hook(instruction)

        return both

    def _report(self, rate: float) -> None:
        started, iteration = self._display_timer
        now = time.perf_counter()
        seconds = now - started
        self._display_timer = (now, self.iter)
        self.observers.trained(
            TrainReport(
                iteration=self.iter,
                loss=self.smoothed_loss,
                lr=rate,
                outputs=outputs_of(self.net),
                rate=(self.iter - iteration) / (seconds or 1.0),
                seconds=seconds,
                display=self.param.display,
            )
        )

    # -- testing and snapshots -------------------------------------------------------------------

    def test_all(self) -> None:
        """Run every test net; a request to stop ends the tests as well."""
        # A snapshot taken meanwhile has to lead back to the start of the tests.
        mark = self.test_mark = sidecar.test_state(self)
        for index in range(len(self.test_nets)):
            report = run_test(self, index)
            if report is None:
                sidecar.set_test_state(self, mark)
                break
            self.observers.tested(report)
            self.watch.see(self, report)
        self.test_mark = None

    def handle_requests(self) -> bool:
        """Do what signals ask for during a test; return whether to stop."""
        while (request := self.requests()) is not Action.NONE:
            if request is Action.SNAPSHOT:
                self.snapshot()
            else:
                self.stopped = True
                break
        return self.stopped

    def snapshot(self) -> str:
        """Write weights, state and sidecar; return the path of the state."""
        report = snapshots.save(self)
        self._last_snapshot = self.iter
        self.observers.snapshot(report)
        self.watch.written(self, report)
        return report.state

    def restore(self, path: str | os.PathLike[str]) -> None:
        """Continue from a snapshot: bit for bit if its sidecar is there."""
        self.observers.note(f"Restoring previous solver status from {os.fspath(path)}")
        snapshots.restore(self, path)
        self._last_snapshot = self.iter
