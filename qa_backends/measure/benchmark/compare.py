"""Two benchmarks side by side: the same point, measured then and now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from qa_backends.measure.timing.statistics import Ratio, between_runs

if TYPE_CHECKING:
    from qa_backends.measure.results.records import Benchmark, BenchmarkRecord


@dataclass(frozen=True, slots=True)
class Change:
    """One point of both. ``speed_up`` is how many times as fast now as then; ``same_weights`` is ``None`` where the
    weights of one are not known."""

    then: BenchmarkRecord
    now: BenchmarkRecord
    speed_up: Ratio | None
    same_weights: bool | None


def changes(then: Benchmark, now: Benchmark) -> list[Change]:
    """The points that both hold, in the order of ``now``."""
    before = {each.place: each for each in then.rows}
    return [_change(before[each.place], each) for each in now.rows if each.place in before]


def _change(then: BenchmarkRecord, now: BenchmarkRecord) -> Change:
    ratio = between_runs(then.samples_ms.wholes(), now.samples_ms.wholes(), then.blocks, now.blocks)
    return Change(then, now, ratio, _same(_weights(then), _weights(now)))


def _weights(record: BenchmarkRecord) -> str | None:
    """What identifies the weights: the checkpoint's hash, or that of the file that ran."""
    return record.checkpoint or record.ran.file_hash or None


def _same(one: str | None, other: str | None) -> bool | None:
    return None if one is None or other is None else one == other
