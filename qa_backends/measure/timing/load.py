"""How much of the machine others took while something was measured, as Linux counts it.

What is read are clocks that only grow: this process's own CPU time, all threads (``time.process_time``); for each core
that it may run on, the time that the core was busy and the time that a hypervisor stole from it (``/proc/stat``); and
the time for which the container was held back, having used up its quota (``throttled_usec`` in cgroup v2's
``cpu.stat``). Others took what is busy and not our own, what was stolen, and what was held back.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from qa_backends.limits import CGROUP, thread_count

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

BUSY_ABOVE = 0.15
"""Share of our cores above which a machine counts as busy. On two cores that is nearly a third of one: a step that both
work on waits for the one that gets 0.7 of its core, so it may take 1.4 times as long, and not every backend's alike.
What a quiet machine does by the way stays well below."""
LEAST_S = 0.5
"""Of shorter times nothing is said: a core's clocks tick a hundred times a second."""
IMPOSSIBLE = 0.1
"""Where the cores seem less busy, by this share, than this process alone made them, their clocks are not this
machine's: sandboxes hand out zeros."""
STAT = Path("/proc/stat")
BUSY_COLUMNS = (0, 1, 2, 5, 6)
"""user, nice, system, irq and softirq; guests' time is in user (Linux documentation, proc)."""
STOLEN_COLUMN = 7


@dataclass(frozen=True, slots=True)
class Usage:
    """Seconds: by the wall clock, and of cores. They are since some start, or between two readings."""

    wall_s: float = 0.0
    own_s: float = 0.0
    busy_s: float = 0.0
    stolen_s: float = 0.0
    throttled_s: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return self._with(other, 1)

    def __sub__(self, other: Usage) -> Usage:
        return self._with(other, -1)

    def _with(self, other: Usage, sign: int) -> Usage:
        return Usage(
            self.wall_s + sign * other.wall_s,
            self.own_s + sign * other.own_s,
            self.busy_s + sign * other.busy_s,
            self.stolen_s + sign * other.stolen_s,
            self.throttled_s + sign * other.throttled_s,
        )


def taken_by_others(used: Usage, *, threads: int, cores: int) -> float | None:
    """Share, 0 to 1, of the ``threads`` cores that the process may fill which others took, of ``cores`` it may run on.

    Work of others that fits on cores that the process would leave idle takes nothing. ``None`` for a time too short,
    and where the readings contradict each other.
    """
    if used.wall_s < LEAST_S or used.busy_s < used.own_s * (1 - IMPOSSIBLE) - 0.01 * cores:
        return None
    idle_s = (cores - threads) * used.wall_s
    taken_s = max(0.0, used.busy_s - used.own_s + used.stolen_s - idle_s) + used.throttled_s
    return min(1.0, max(0.0, taken_s / (threads * used.wall_s)))


def said_of(shares: Sequence[float | None]) -> str:
    """What is to be known of measurements during which others took these shares, as a sentence; empty where it is
    nothing."""
    busy = [each for each in shares if each is not None and each > BUSY_ABOVE]
    if not busy:
        return ""
    return (
        f"Others took up to {100 * max(busy):.0f} % of the cores in {len(busy):,} of {len(shares):,} measurements: "
        "times there may be too long."
    )


def read_usage() -> Usage | None:
    """The clocks as they are now; ``None`` where the system has no such clocks, or not for all cores of ours."""
    try:
        cores = os.sched_getaffinity(0)
        ticks = os.sysconf("SC_CLK_TCK")
        lines = [line.split() for line in STAT.read_text(encoding="ascii").splitlines() if line.startswith("cpu")]
        clocks = {each[0]: [int(number) for number in each[1:]] for each in lines}
        own = [clocks[f"cpu{core}"] for core in cores]
        busy = sum(clock[column] for clock in own for column in BUSY_COLUMNS)
        stolen = sum(clock[STOLEN_COLUMN] for clock in own)
    except (AttributeError, OSError, ValueError, LookupError):  # other systems, and /proc as sandboxes imitate it
        return None
    return Usage(time.perf_counter(), time.process_time(), busy / ticks, stolen / ticks, _throttled_s())


def _throttled_s() -> float:
    """0 where there is no quota."""
    try:
        lines = (CGROUP / "cpu.stat").read_text(encoding="ascii").splitlines()
        return int(dict(line.split() for line in lines).get("throttled_usec", 0)) / 1e6
    except (OSError, ValueError):
        return 0.0


class LoadMeter:
    """The share that others took while it ran: ``start`` and ``stop`` any number of times, around what is measured."""

    def __init__(self, read: Callable[[], Usage | None] = read_usage) -> None:
        self._read = read
        self._began: Usage | None = None
        self._used: Usage | None = Usage()

    def start(self) -> None:
        self._began = self._read()

    def stop(self) -> None:
        ended = self._read()
        if self._used is None or self._began is None or ended is None:
            self._used = None
        else:
            self._used += ended - self._began

    def share(self) -> float | None:
        """``None`` where the system does not tell; see ``taken_by_others``."""
        if self._used is None or self._used.wall_s == 0:
            return None
        return taken_by_others(self._used, threads=thread_count(), cores=len(os.sched_getaffinity(0)))
