"""Two benchmarks side by side, the same point measured then and now; and two backends at one point of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from qa_backends.measure.benchmark.contestants import AS_ASKED
from qa_backends.measure.timing.statistics import Ratio, between_runs, speed_up

if TYPE_CHECKING:
    from qa_backends.measure.results.records import Benchmark, BenchmarkRecord


def in_turns(reference: BenchmarkRecord, candidate: BenchmarkRecord, *, among: int) -> Ratio | None:
    """How many times as fast the candidate, picked from so many, was as the reference; ``None`` where the two did not
    take turns, or took fewer than five."""
    if reference.blocks != candidate.blocks:
        return None
    return speed_up(reference.samples_ms.wholes(), candidate.samples_ms.wholes(), candidate.blocks, among=among)


@dataclass(frozen=True, slots=True)
class Change:
    """One point of both. ``speed_up`` is how many times as fast now as then; ``same_shapes``, whether it is that of
    weights of the same shapes, is ``None`` where that is not known."""

    then: BenchmarkRecord
    now: BenchmarkRecord
    speed_up: Ratio | None
    same_shapes: bool | None


def changes(then: Benchmark, now: Benchmark) -> list[Change]:
    """The points that both hold, in the order of ``now``."""
    before = {_point(each): each for each in then.rows}
    return [_change(before[_point(each)], each) for each in now.rows if _point(each) in before]


def _point(record: BenchmarkRecord) -> tuple[object, ...]:
    """The place; how large a batch the app made of its own is a result, and none of the place."""
    backend, device, tokens, batch, order = record.place
    return backend, device, tokens, None if order == AS_ASKED else batch, order


def _change(then: BenchmarkRecord, now: BenchmarkRecord) -> Change:
    ratio = between_runs(then.samples_ms.wholes(), now.samples_ms.wholes(), then.blocks, now.blocks)
    return Change(then, now, ratio, _same_shapes(then, now))


def _same_shapes(then: BenchmarkRecord, now: BenchmarkRecord) -> bool | None:
    """By the shapes' hashes; where one is not known, the same weights or the same file still have the same shapes,
    while others may have them too."""
    if then.shapes and now.shapes:
        return then.shapes == now.shapes
    hashes = ((each.checkpoint, each.ran.file_hash) for each in (then, now))
    return True if any(one and one == other for one, other in zip(*hashes, strict=True)) else None
