"""How much memory this process could still have, as far as the system says."""

from __future__ import annotations

import contextlib
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


def free_memory() -> tuple[int | None, str]:
    """Bytes that could still be allocated, and what limits them; None where nothing is known."""
    found = [(nbytes, why) for nbytes, why in (_available(), _limit(), _group()) if nbytes >= 0]
    return min(found) if found else (None, "")


def _available() -> tuple[int, str]:
    """What Linux expects to be able to give without swapping."""
    value = _field(Path("/proc/meminfo"), "MemAvailable:")
    return value, "the machine's memory"


def _limit() -> tuple[int, str]:
    """What ``ulimit -v`` leaves."""
    with contextlib.suppress(ImportError, OSError):
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        used = _field(Path("/proc/self/status"), "VmSize:")
        if soft != resource.RLIM_INFINITY and used >= 0:
            return max(0, soft - used), "ulimit -v"
    return -1, ""


def _group() -> tuple[int, str]:
    """What a container's or job's memory limit leaves."""
    with contextlib.suppress(OSError, ValueError):
        limit = int((_CGROUP / "memory.max").read_text())
        used = int((_CGROUP / "memory.current").read_text())
        return max(0, limit - used), "the memory limit of this container or job"
    return -1, ""


def _field(path: Path, name: str) -> int:
    """A field in kB of a file of /proc, in bytes; -1 if it is not there."""
    with contextlib.suppress(OSError):
        for line in path.read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) * 1024
    return -1
