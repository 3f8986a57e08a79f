"""The ``layrubnet`` command: one file per subcommand.

A subcommand module has ``NAME``, ``HELP``, ``configure(parser)`` and ``run(args) -> exit status``.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from layrubnet.cli import check, device_query, test, time, train
from layrubnet.errors import LayrubError
from layrubnet.version import __version__

COMMANDS = (train, test, time, check, device_query)

DESCRIPTION = """\
Train, test and inspect nets written for Caffe.

  layrubnet check net.prototxt            is everything all right? (shapes, memory, one batch)
  layrubnet train solver.prototxt         train; Ctrl-C stops with a snapshot
  layrubnet train solver.prototxt --resume        go on from the newest snapshot
  layrubnet train net.prototxt --lr 0.01 --max-iter 2000     no solver file needed
  layrubnet test --model net.prototxt --weights net_iter_1000.caffemodel
  layrubnet time --model net.prototxt     how long each layer takes

Caffe's own spellings work as well: layrubnet train -solver solver.prototxt -weights w.caffemodel
"""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="layrubnet",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="`layrubnet COMMAND --help` explains each command with examples.",
    )
    parser.add_argument("--version", action="version", version=f"layrubnet {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    for module in COMMANDS:
        sub = commands.add_parser(
            module.NAME,
            help=module.HELP,
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
    parser = build_parser()
    args = parser.parse_args(argv)
    if args.command is None:
        parser.print_help()
        return 2
    try:
        status: int = args.run(args)
    except LayrubError as error:
        print(f"layrubnet: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("layrubnet: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader (head, less) has gone: nothing more to say, and nothing to complain about.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status
