"""Devices: memory, streams, events, copies, and the mathematics (``ops``) on each.

``get_device("cpu")``, ``get_device("null")``; nothing else in the package asks which one it is.
"""

from __future__ import annotations

from layrubnet.devices.base import Device
from layrubnet.errors import DeviceError, nearest


def get_device(name: str = "cpu") -> Device:
    """Return a device by name: ``cpu``, or ``null`` (shapes and plans only)."""
    if name == "cpu":
        from layrubnet.devices.cpu.device import CpuDevice

        return CpuDevice()
    if name == "null":
        from layrubnet.devices.null import NullDevice

        return NullDevice()
    close = nearest(name, ["cpu", "null"])
    raise DeviceError(
        f"unknown device {name!r}",
        expected="cpu or null",
        hint=f"did you mean {close[0]}?" if close else "",
    )


__all__ = ["Device", "get_device"]
