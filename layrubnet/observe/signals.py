"""What signals do to training: SIGINT and SIGTERM stop it with a snapshot, SIGHUP snapshots.

The effects are Caffe's (``--sigint_effect``, ``--sighup_effect``) and take place between two
iterations or two batches of a test, so that every file is whole. Where SIGINT (Ctrl-C) stops, a
second one does not wait: it ends the process at once.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from enum import Enum
from types import FrameType, TracebackType
from typing import Any

from layrubnet.errors import LayrubError, nearest


class Action(Enum):
    """What to do before the next iteration."""

    NONE = "none"
    SNAPSHOT = "snapshot"
    STOP = "stop"


EFFECTS = tuple(action.value for action in Action)


def parse_effect(name: str) -> Action:
    """Return the action of a name given on the command line: none, snapshot or stop."""
    try:
        return Action(name)
    except ValueError:
        close = nearest(name, EFFECTS)
        raise LayrubError(
            f'The signal effect "{name}" was not recognized',
            expected=", ".join(EFFECTS),
            hint=f"did you mean {close[0]!r}?" if close else "",
        ) from None


class SignalActions:
    """A context in which signals become requests; calling it returns and clears the oldest one.

    ``Solver(param, requests=actions)`` asks after every iteration and during tests. Stopping goes
    before snapshots, since a stopped run ends with one. Only the main thread can use it.
    ``told`` hears of every request as it arrives, inside the signal handler.
    """

    def __init__(
        self,
        sigint: str = "stop",
        sighup: str = "snapshot",
        told: Callable[[Action], None] | None = None,
    ) -> None:
        self.told = told or (lambda action: None)
        interrupt, hang_up = parse_effect(sigint), parse_effect(sighup)
        self.effects = {"SIGINT": interrupt, "SIGTERM": interrupt, "SIGHUP": hang_up}
        self._pending: set[Action] = set()
        self._interrupted = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> SignalActions:
        for name, action in self.effects.items():
            number = getattr(signal, name, None)  # Windows has no SIGHUP
            if number is not None and action is not Action.NONE:
                self._before[number] = signal.signal(number, self._handler(action))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def __call__(self) -> Action:
        for action in (Action.STOP, Action.SNAPSHOT):
            if action in self._pending:
                self._pending.discard(action)
                return action
        return Action.NONE

    def _handler(self, action: Action) -> Callable[[int, FrameType | None], None]:
        def handle(number: int, frame: FrameType | None) -> None:
            if number == signal.SIGINT and action is Action.STOP:
                if self._interrupted:
                    raise KeyboardInterrupt
                self._interrupted = True
            self._pending.add(action)
            self.told(action)

        return handle
