"""What this process may use is what its container allows, and not what the host has."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from qa_backends import limits

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_containers_limits_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("250000 100000\n")
    (tmp_path / "memory.max").write_text("1000000000\n")
    monkeypatch.setattr(limits, "CGROUP", tmp_path)
    monkeypatch.setattr(limits.os, "sched_getaffinity", lambda _pid: set(range(64)))
    assert limits.thread_count() == 2
    assert limits.memory_bytes("cpu") == 1_000_000_000
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    assert limits.thread_count() == 1
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert limits.thread_count() == 64
    for told, threads in (("3", 3), ("4,2", 4), ("128", 64), ("0", 1), ("many", 64)):
        monkeypatch.setenv("OMP_NUM_THREADS", told)
        assert limits.thread_count() == threads


def test_without_a_container_the_cores_that_may_be_used_and_the_machines_memory_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(limits, "CGROUP", tmp_path / "nowhere")
    monkeypatch.setattr(limits.os, "sched_getaffinity", lambda _pid: {3, 5, 7})
    assert limits.thread_count() == 3
    assert limits.memory_bytes("cpu") == limits.psutil.virtual_memory().total


FAULTS = """
from resource import RUSAGE_SELF, getrusage
from qa_backends.limits import keep_freed_memory

def faults_of_a_large_block():
    before = getrusage(RUSAGE_SELF).ru_minflt
    bytearray(64 << 20)
    return getrusage(RUSAGE_SELF).ru_minflt - before

faults_of_a_large_block()
given_back = faults_of_a_large_block()
keep_freed_memory()
faults_of_a_large_block()
print(given_back, faults_of_a_large_block())
"""


def test_a_large_block_that_was_freed_is_there_for_the_next_once_memory_is_kept() -> None:
    run = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True)
    given_back, kept = map(int, run.stdout.split())
    assert kept < given_back / 10, "the system empties every page again"
