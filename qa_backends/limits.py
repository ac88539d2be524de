"""What this process may really use, by the container it runs in and not by the host: cores and memory."""

from __future__ import annotations

import math
import os
from functools import cache
from pathlib import Path

import psutil

CGROUP = Path("/sys/fs/cgroup")
"""``cpu.max`` holds "<microseconds|max> <period>", ``memory.max`` bytes or "max" (Linux documentation, cgroup v2)."""


@cache
def thread_count() -> int:
    """Cores this process may run on, by CPU affinity and the container's quota; the same for every engine."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else (os.cpu_count() or 1)
    allowed, _, period = _read("cpu.max").partition(" ")
    quota = math.ceil(int(allowed) / int(period)) if allowed.isdigit() else cores
    return max(1, min(cores, quota))


def memory_bytes() -> int:
    """The machine's memory, or the container's share of it."""
    total = int(psutil.virtual_memory().total)
    allowed = _read("memory.max")
    return min(total, int(allowed)) if allowed.isdigit() else total


def _read(name: str) -> str:
    """The control group's setting; empty where there is none."""
    try:
        return (CGROUP / name).read_text(encoding="ascii").strip()
    except OSError:
        return ""
