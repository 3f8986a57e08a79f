"""Show what layrubnet can run on.

  layrubnet device-query

Prints the version, the device, and the library that multiplies matrices.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from layrubnet.devices import get_device
from layrubnet.devices.cpu.convolution_ops import convolution_engine
from layrubnet.version import __version__

NAME = "device-query"
ALIASES = ["device_query"]
USAGE = "layrubnet device-query"
HELP = "show the devices that nets can run on"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-gpu", "--gpu", metavar="ID", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    config: dict[str, Any] = np.show_config(mode="dicts")  # type: ignore[assignment]
    blas = config["Build Dependencies"]["blas"]
    print(f"layrubnet {__version__}")
    print(f"Device name:       {get_device('cpu').describe()}")
    print(f"Matrix products:   {blas.get('name')} {blas.get('version')}")
    print(f"Convolution:       {convolution_engine()}")
    print("GPU:               this version has no GPU device yet")
    return 0
