"""One thread count for every engine: what this process may really use, not what the host has."""

from __future__ import annotations

import math
import os
from functools import cache
from pathlib import Path

CGROUP_CPU_MAX = Path("/sys/fs/cgroup/cpu.max")
"""The control group's quota, "<microseconds|max> <period>" (Linux kernel documentation, cgroup v2)."""


@cache
def thread_count() -> int:
    """Cores this process may run on, by CPU affinity and by the container's quota; at least 1."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else (os.cpu_count() or 1)
    return max(1, min(cores, _quota(CGROUP_CPU_MAX) or cores))


def _quota(path: Path) -> int | None:
    """Whole cores the quota allows, rounded up; ``None`` without one."""
    try:
        allowed, period = path.read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return None
    return None if allowed == "max" else math.ceil(int(allowed) / int(period))
