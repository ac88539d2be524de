"""Whether others took the machine while something was measured: by invented clocks, and by a real disturbance."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from qa_backends.limits import thread_count
from qa_backends.measure.timing import load
from qa_backends.measure.timing.load import BUSY_ABOVE, LoadMeter, Usage, read_usage, said_of, taken_by_others

if TYPE_CHECKING:
    from pathlib import Path

QUIET = Usage(wall_s=10.0, own_s=16.0, busy_s=16.0)
"""Two cores, of which this process filled 1.6 in ten seconds."""


@pytest.mark.parametrize(
    ("used", "share"),
    [
        (QUIET, 0.0),
        (replace(QUIET, busy_s=19.0), 0.15),
        (replace(QUIET, busy_s=18.0, stolen_s=1.0), 0.15),
        (replace(QUIET, throttled_s=4.0), 0.2),
        (replace(QUIET, busy_s=18.0, stolen_s=1.0, throttled_s=1.0), 0.2),
        (replace(QUIET, own_s=0.0, busy_s=20.0, stolen_s=5.0), 1.0),
        (replace(QUIET, busy_s=15.9), 0.0),
    ],
    ids=["nobody", "others", "others and a hypervisor", "a quota", "all", "more than there is", "rounding"],
)
def test_the_share_is_what_others_took_of_our_cores(used: Usage, share: float) -> None:
    assert taken_by_others(used, threads=2, cores=2) == pytest.approx(share)


def test_what_fits_on_cores_that_we_may_not_fill_takes_nothing() -> None:
    """A container that may fill two cores of eight: others have six before they are in the way."""
    used = Usage(wall_s=10.0, own_s=20.0, busy_s=80.0)
    assert taken_by_others(used, threads=2, cores=8) == 0.0
    assert taken_by_others(replace(used, own_s=15.0), threads=2, cores=8) == pytest.approx(0.25)


@pytest.mark.parametrize(
    "used",
    [Usage(), replace(QUIET, wall_s=0.1), replace(QUIET, busy_s=0.0)],
    ids=["nothing measured", "too short", "a sandbox's zeros"],
)
def test_nothing_is_said_of_what_cannot_be_known(used: Usage) -> None:
    assert taken_by_others(used, threads=2, cores=2) is None


def test_only_what_lies_between_start_and_stop_counts() -> None:
    threads = thread_count()
    clocks = iter(
        [
            Usage(),
            Usage(wall_s=1.0, own_s=0.5, busy_s=0.5 + 0.2 * threads),
            Usage(wall_s=9.0, own_s=0.5, busy_s=0.5 + 8.2 * threads),  # others drew, for as long as they liked
            Usage(wall_s=10.0, own_s=1.0, busy_s=1.0 + 8.6 * threads),
        ]
    )
    meter = LoadMeter(lambda: next(clocks))
    assert meter.share() is None
    for _ in range(2):
        meter.start()
        meter.stop()
    assert meter.share() == pytest.approx(0.3)


def test_a_system_that_does_not_tell_once_is_not_believed() -> None:
    clocks = iter([Usage(), None, Usage(), Usage(wall_s=10.0)])
    meter = LoadMeter(lambda: next(clocks))
    for _ in range(2):
        meter.start()
        meter.stop()
    assert meter.share() is None


def test_programs_that_burn_the_cores_are_seen_and_our_own_work_is_not_theirs() -> None:
    """However busy the machine is otherwise: with as many programs as cores, others have most while we sleep."""
    cores = len(os.sched_getaffinity(0))
    burning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(cores)]
    try:
        time.sleep(0.2)
        asleep, awake = LoadMeter(), LoadMeter()
        asleep.start()
        time.sleep(1.0)
        asleep.stop()
        awake.start()
        own, until = time.process_time(), time.monotonic() + 1.0
        while time.monotonic() < until:
            pass
        own = time.process_time() - own
        awake.stop()
    finally:
        for each in burning:
            each.kill()
            each.wait()
    asleep_share, awake_share = asleep.share(), awake.share()
    assert asleep_share is not None and asleep_share > 0.8
    assert awake_share is not None and awake_share < 1.05 - own / thread_count()


def test_what_others_took_is_said_where_it_was_much() -> None:
    assert said_of([]) == said_of([None, 0.0, BUSY_ABOVE]) == ""
    assert said_of([None, 0.02, 0.3, 0.41]) == (
        "Others took up to 41 % of the cores in 2 of 4 measurements: times there may be too long."
    )


@pytest.mark.parametrize(
    "stat",
    [None, "", "cpu  1 2 3\n", "cpu0 one two three\n", "cpu999 1 2 3 4 5 6 7 8 9 10\n", "cpu0 1 2\ncpu1 1 2\n"],
    ids=["missing", "empty", "no cores", "no numbers", "other cores", "an old kernel"],
)
def test_clocks_that_cannot_be_read_are_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stat: str | None
) -> None:
    if stat is not None:
        (tmp_path / "stat").write_text(stat)
    monkeypatch.setattr(load, "STAT", tmp_path / "stat")
    assert read_usage() is None


def test_busy_and_stolen_times_are_read_of_each_core_of_ours_and_of_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every column of every core has a number of its own; the columns are in the order of Linux's documentation."""
    cores, ticks = os.sched_getaffinity(0), os.sysconf("SC_CLK_TCK")
    columns = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice")
    clocks = {
        core: {column: ticks * (place + 1) * 2**at for at, column in enumerate(columns)}
        for place, core in enumerate([*sorted(cores), max(cores) + 1])
    }
    lines = [f"cpu{core} {' '.join(str(clock) for clock in each.values())}" for core, each in clocks.items()]
    (tmp_path / "stat").write_text("\n".join(["cpu " + "9 " * 10, *lines, "intr 1 2 3"]))
    monkeypatch.setattr(load, "STAT", tmp_path / "stat")
    found = read_usage()
    assert found is not None
    busy = ("user", "nice", "system", "irq", "softirq")
    assert found.busy_s == sum(clocks[core][column] for core in cores for column in busy) / ticks
    assert found.stolen_s == sum(clocks[core]["steal"] for core in cores) / ticks


def test_a_containers_throttling_is_read_where_it_has_a_quota(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "CGROUP", tmp_path)
    before = read_usage()
    assert before is not None and before.throttled_s == 0
    (tmp_path / "cpu.stat").write_text("usage_usec 9\nnr_periods 30\nnr_throttled 4\nthrottled_usec 2500000\n")
    after = read_usage()
    assert after is not None and after.throttled_s == 2.5
