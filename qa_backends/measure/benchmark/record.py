"""From samples to records: what each contestant did at a point."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qa_backends import catalog
from qa_backends.measure.benchmark.contestants import ARRIVAL, AS_ASKED, SINGLY, SORTED
from qa_backends.measure.results.records import Against, AloneRecord, BenchmarkRecord, Samples
from qa_backends.measure.timing.statistics import percentiles, unstable
from qa_backends.reader.windows import padding_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qa_backends.measure.benchmark.contestants import Answered, Contestant, Facts
    from qa_backends.measure.benchmark.plan import Point
    from qa_backends.measure.timing import rounds


@dataclass(frozen=True, slots=True)
class Entry:
    """A contestant with one way of making its batches."""

    contestant: Contestant
    order: str

    @property
    def key(self) -> str:
        return f"{self.contestant.name} {self.order}"


@dataclass(frozen=True, slots=True)
class AtPoint:
    """What was measured of all entries at one point; ``last`` is each one's last answer."""

    family: str
    point: Point
    entries: Sequence[Entry]
    samples: rounds.Samples
    last: dict[str, Answered]
    questions: int

    @property
    def others(self) -> float | None:
        """The share of the cores, 0 to 1, that others took meanwhile, where that is known and tells anything."""
        return self.samples.others if all(each.contestant.computes_here for each in self.entries) else None

    def against(self, entry: Entry, name: str | None, order: str) -> Against | None:
        """How many times as fast as the entry of that name and order, where it took part and is another."""
        other = next((e for e in self.entries if (e.contestant.name, e.order) == (name, order)), None)
        if other is None or other == entry:
            return None
        ratio = self.samples.speed_up(entry.key, other.key)
        if ratio is None:
            return None
        return Against(ratio.value, ratio.low, ratio.high, ratio.runs, f"{self.family}/{other.contestant.name}")


def record_of(at: AtPoint, entry: Entry, facts: Facts) -> BenchmarkRecord:
    """The record, every sample included."""
    samples, manifest = at.samples, facts.manifest
    times, compute = samples.times[entry.key], samples.compute_s(entry.key)
    answered, quantiles = at.last[entry.key], percentiles(compute)
    windows = answered.prepared.windows if answered.prepared else None
    return BenchmarkRecord(
        backend=f"{at.family}/{entry.contestant.name}",
        checkpoint=facts.checkpoint,
        device=at.point.device,
        tokens=at.point.tokens,
        batch=_batch(at, entry, answered),
        order=entry.order,
        questions=at.questions,
        windows=windows.n_windows if windows else None,
        padding=padding_share(windows, answered.computed) if windows else None,
        warm_up_runs=samples.warm_up_runs,
        cold_ms=1000 * samples.cold[entry.key].compute_s,
        runs=quantiles.runs,
        p50_ms=1000 * quantiles.p50_s,
        p90_ms=None if quantiles.p90_s is None else 1000 * quantiles.p90_s,
        p99_ms=None if quantiles.p99_s is None else 1000 * quantiles.p99_s,
        questions_per_second=at.questions * len(compute) / sum(compute),
        unstable=unstable(compute, samples.blocks),
        against_baseline=at.against(entry, catalog.BASELINE, entry.order),
        against_previous=at.against(entry, _step_before(at, entry), entry.order),
        against_arrival=at.against(entry, entry.contestant.name, ARRIVAL) if entry.order == SORTED else None,
        floor_ms=1000 * facts.floor.seconds(answered.computed) if facts.floor else None,
        bytes=manifest.bytes if manifest else None,
        stored=manifest.precision if manifest else None,
        encoder_parameters=manifest.encoder_parameters if manifest else None,
        quality=facts.quality,
        ran=facts.ran,
        blocks=tuple(samples.blocks),
        samples_ms=Samples(
            tokenise=tuple(round(1000 * each.tokenise_s, 4) for each in times),
            forward=tuple(round(1000 * each.forward_s, 4) for each in times),
            decode=tuple(round(1000 * each.decode_s, 4) for each in times),
        ),
        shapes=facts.shapes,
        others=at.others,
    )


def _batch(at: AtPoint, entry: Entry, answered: Answered) -> int:
    """The point's, where the benchmark makes the batches; where the app does, the largest that it made."""
    if entry.order == AS_ASKED:
        return max(windows for windows, _ in answered.computed)
    return 1 if entry.order == SINGLY else at.point.batch


def _step_before(at: AtPoint, entry: Entry) -> str | None:
    """The step of optimisation before, of those that took part; a reference is no step and has none."""
    return entry.contestant.step_before([each.contestant.name for each in at.entries])


def alone_record(company: BenchmarkRecord, samples: rounds.Samples, entry: Entry) -> AloneRecord:
    """A backend measured by itself, beside what it took in company."""
    alone_ms = 1000 * statistics.median(samples.compute_s(entry.key))
    return AloneRecord(
        backend=company.backend,
        device=company.device,
        tokens=company.tokens,
        batch=company.batch,
        runs=len(samples.times[entry.key]),
        p50_ms=alone_ms,
        company_p50_ms=company.p50_ms,
        ratio=company.p50_ms / alone_ms,
    )
