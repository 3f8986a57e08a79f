"""The argument parser: short errors with a hint, instead of a screen of usage."""

from __future__ import annotations

import argparse
import math
import re
import sys
from typing import NoReturn

from layrubnet.errors import LayrubError, nearest

INT32 = range(-(2**31), 2**31)


class Parser(argparse.ArgumentParser):
    """Says what is wrong, the nearest known word, and where the help is."""

    def error(self, message: str) -> NoReturn:
        hint = self._guess(message) or f"{self.prog} --help"
        print(f"layrubnet: error: {LayrubError(message, hint=hint)}", file=sys.stderr)
        raise SystemExit(2)

    def _guess(self, message: str) -> str:
        unknown = re.match(r"unrecognized arguments: (\S+)", message)
        if unknown:
            flag, _, _ = unknown[1].partition("=")
            if not flag.startswith("-"):
                return "one file is enough"
            close = nearest(flag, self._flags())
            return f"did you mean {close[0]}?" if close else ""
        choice = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        if choice:
            close = nearest(choice[1], re.findall(r"[\w-]+", choice[2]))
            return f"did you mean {close[0]!r}?" if close else ""
        return ""

    def _flags(self) -> set[str]:
        """The flags of this parser and of its subcommands; the root reports unknown ones."""
        flags = set(self._option_string_actions)
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                for sub in action.choices.values():
                    flags |= set(sub._option_string_actions)
        return flags


def int32(text: str) -> int:
    """A whole number that a solver field can hold."""
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if value not in INT32:
        raise argparse.ArgumentTypeError(f"{text} is too large (at most {INT32[-1]})")
    return value


def int64(text: str) -> int:
    """A whole number of 64 bits (seeds)."""
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if not -(2**63) <= value < 2**63:
        raise argparse.ArgumentTypeError(f"{text} is too large (64 bits)")
    return value


def count(text: str) -> int:
    """A whole number of 1 or more."""
    value = int32(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {value}")
    return value


def number(text: str) -> float:
    """A finite number."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text} is not a finite number")
    return value


def minimum(text: str) -> tuple[str, float]:
    """``accuracy=0.97`` as a pair."""
    name, equals, value = text.rpartition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form BLOB=NUMBER")
    return name, number(value)
