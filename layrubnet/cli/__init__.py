"""The ``layrubnet`` command: one file per subcommand.

A subcommand module has ``NAME``, ``ALIASES``, ``USAGE``, ``HELP``, ``configure(parser)`` and
``run(args) -> exit status``; its docstring is the start of its help.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
from collections.abc import Iterator, Sequence

from layrubnet.cli import check, device_query, plan, test, time, train
from layrubnet.cli.common import import_layers
from layrubnet.cli.parser import Parser
from layrubnet.errors import LayrubError
from layrubnet.observe.log import add_handler, remove_handler
from layrubnet.version import __version__

COMMANDS = (train, test, time, check, plan, device_query)

DESCRIPTION = """\
Train, test and inspect nets written for Caffe.

  layrubnet check net.prototxt            is everything all right? (shapes, memory, one batch)
  layrubnet train solver.prototxt         train; Ctrl-C stops with a snapshot
  layrubnet train solver.prototxt --resume          go on from the newest snapshot
  layrubnet train net.prototxt --lr 0.01 --max-iter 2000    no solver file needed
  layrubnet test --model net.prototxt --weights net_iter_1000.caffemodel
  layrubnet time --model net.prototxt     how long each layer takes
  layrubnet plan net.prototxt --compare   how much memory each strategy takes

Caffe's own spellings work as well:

  layrubnet train -solver solver.prototxt -weights w.caffemodel
"""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = Parser(
        prog="layrubnet",
        usage="layrubnet COMMAND [FILE] [options]",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="`layrubnet COMMAND --help` explains each command with examples.",
    )
    parser.add_argument("--version", action="version", version=f"layrubnet {__version__}")
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", dest="command", prog="layrubnet"
    )
    for module in COMMANDS:
        sub = commands.add_parser(
            module.NAME,
            help=module.HELP,
            usage=module.USAGE,
            description=module.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            aliases=module.ALIASES,
            allow_abbrev=False,
        )
        module.configure(sub)
        sub.set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status (1: an error that the user can act on)."""
    words = list(sys.argv[1:] if argv is None else argv)
    parser = build_parser()
    args = parser.parse_args(words)
    if args.command is None:
        parser.print_help()
        return 2
    try:
        _check_names(words)
        with _warnings_on_stderr(args.run is not train.run):
            import_layers(getattr(args, "imports", []))
            status: int = args.run(args)
            sys.stdout.flush()
    except LayrubError as error:
        return _complain(str(error), 1)
    except MemoryError as error:
        hint = "lower batch_size (iter_size makes up for it)"
        return _complain(str(LayrubError(f"out of memory: {error}", hint=hint)), 1)
    except KeyboardInterrupt:
        return _complain("interrupted", 130)
    except BrokenPipeError:
        # The reader (head, less) has gone: nothing more to say, and nothing to complain about.
        _forget_stdout()
        return 0
    except OSError as error:
        _forget_stdout()
        name = f"{error.filename}: " if error.filename else ""
        return _complain(f"{name}{error.strerror or error}", 1)
    return status


def _forget_stdout() -> None:
    """Send what is still in the buffer nowhere, so that Python's exit does not fail on it."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _check_names(words: Sequence[str]) -> None:
    """Refuse names that no prototxt or snapshot could hold: their strings are UTF-8."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise LayrubError(
                "a name is not valid UTF-8",
                got=ascii(word),
                hint="rename the file or folder, or cd into it and use a relative path",
            ) from None


def _complain(text: str, status: int) -> int:
    kind = "" if status == 130 else "error: "
    with contextlib.suppress(OSError):  # stderr may be gone as well
        print(f"layrubnet: {kind}{text}", file=sys.stderr)
    return status


@contextlib.contextmanager
def _warnings_on_stderr(wanted: bool) -> Iterator[None]:
    """Show what the package logs as a warning (``train`` has handlers of its own)."""
    if not wanted:
        yield
        return
    handler = add_handler(sys.stderr, logging.WARNING)
    handler.setFormatter(logging.Formatter("layrubnet: warning: %(message)s"))
    try:
        yield
    finally:
        remove_handler(handler)
