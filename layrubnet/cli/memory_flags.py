"""Flags that choose a memory plan."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from layrubnet.memory.options import MemoryOptions, memory_options, solver_memory
from layrubnet.memory.strategies import STRATEGIES


def add_memory_flags(parser: argparse.ArgumentParser) -> None:
    """``--memory`` and what belongs to it."""
    group = parser.add_argument_group("memory (these override memory_param)")
    group.add_argument(
        "--memory",
        metavar="STRATEGY",
        help=f"{', '.join(STRATEGIES)}; results do not change by a bit (default: caffe, which "
        "keeps everything; auto if a budget is given)",
    )
    group.add_argument(
        "--memory-budget",
        metavar="BYTES",
        help="device memory to use at most: 6GiB, 750MB, 80%%, or bytes",
    )
    group.add_argument(
        "--offload-dir",
        metavar="FOLDER",
        help="where feature maps go that leave the CPU's memory (the system's temporary folder)",
    )
    group.add_argument(
        "--memory-profile",
        metavar="FILE",
        help="plan by the times that `layrubnet time NET --profile FILE` measured",
    )


def chosen_memory(args: argparse.Namespace, param: Any) -> MemoryOptions | None:
    """The options of flags and solver together; None when neither says anything."""
    asked = solver_memory(param)
    if args.memory is not None or args.memory_budget is not None:
        given = memory_options(args.memory, args.memory_budget)
        solver = asked or MemoryOptions()
        asked = replace(
            given, keep=solver.keep, offload_dir=solver.offload_dir, profile=solver.profile
        )
    if args.offload_dir is not None:
        asked = replace(asked or MemoryOptions(), offload_dir=args.offload_dir)
    if args.memory_profile is not None:
        asked = replace(asked or MemoryOptions("auto"), profile=args.memory_profile)
    return asked
