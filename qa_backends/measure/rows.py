"""A row of a benchmark: what one backend did at one point, with all that is needed to judge it."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from qa_backends import catalog
from qa_backends.measure.plan import MIXED_BATCH, PIPELINE
from qa_backends.measure.results import QUALITY, checkpoint_hash, shipped_accuracy
from qa_backends.measure.statistics import summarise, unstable
from qa_backends.reader.reader import MAX_PADDING
from qa_backends.reader.windows import by_count, by_tokens, padding_share

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from qa_backends.artefacts.manifest import Manifest
    from qa_backends.catalog import Family
    from qa_backends.contract import IntArray, Ran, Windows
    from qa_backends.measure.floor import Floor
    from qa_backends.measure.plan import Point
    from qa_backends.measure.rounds import Samples
    from qa_backends.measure.statistics import Ratio
    from qa_backends.reader.reader import Prepared

PARTS = ("tokenise", "forward", "decode")


@dataclass(frozen=True, slots=True)
class Contestant:
    """One side of a comparison: a backend, and how its batches are made.

    ``order`` is "equal" for one batch of equal lengths, "arrival" for mixed lengths as they come, "sorted" for mixed
    lengths sorted so that like share a batch.
    """

    name: str
    order: str

    @property
    def key(self) -> str:
        return f"{self.name} {self.order}"

    def split(self, windows: Windows, device: str) -> Iterable[IntArray]:
        """Rows of each forward call; equal lengths make one, and a second for the shorter windows of long texts."""
        if self.order == "equal":
            return by_tokens(windows, max_tokens=windows.n_windows * windows.seq_len, max_padding=MAX_PADDING[device])
        return by_count(windows, size=MIXED_BATCH, sort=self.order == "sorted")


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured of one contestant, and on what."""

    group: Family
    point: Point
    contestant: Contestant
    samples: Samples
    prepared: Prepared

    def against(self, other: Contestant) -> dict[str, Any] | None:
        ratio: Ratio | None = self.samples.speed_up(self.contestant.key, other.key)
        return None if ratio is None else {**asdict(ratio), "backend": f"{self.group.name}/{other.name}"}


def row_of(
    measured: Measured, entrants: Sequence[Contestant], ran: Ran, manifest: Manifest | None, floor: Floor | None
) -> dict[str, Any]:
    """The row, raw samples included. A reference has no manifest: how it cuts and batches is its own affair."""
    point, contestant, samples = measured.point, measured.contestant, measured.samples
    compute = samples.compute_s(contestant.key)
    times = samples.times[contestant.key]
    summary = summarise(compute)
    windows = measured.prepared.windows
    queries = len(measured.prepared.queries)
    groups = list(contestant.split(windows, point.device))
    shapes = [(len(rows), int(windows.lengths[rows].max())) for rows in groups]
    return {
        "backend": f"{measured.group.name}/{contestant.name}",
        "checkpoint": _checkpoint(measured),
        "device": point.device,
        "tokens": point.tokens,
        "batch": point.batch,
        "order": contestant.order,
        "questions": queries,
        "windows": windows.n_windows if manifest else None,
        "padding": padding_share(windows, groups) if manifest else None,
        "warm_up_runs": samples.warm_up_runs,
        "cold_ms": 1000 * samples.cold[contestant.key].compute_s,
        "runs": summary.runs,
        "p50_ms": 1000 * summary.p50_s,
        "p90_ms": None if summary.p90_s is None else 1000 * summary.p90_s,
        "p99_ms": None if summary.p99_s is None else 1000 * summary.p99_s,
        "questions_per_second": queries * len(compute) / sum(compute),
        "unstable": unstable(compute, samples.blocks),
        "against_baseline": _against_baseline(measured, entrants),
        "against_previous": _against_previous(measured, entrants),
        "against_arrival": _against_arrival(measured),
        "floor_ms": 1000 * floor.seconds(shapes) if floor else None,
        "bytes": manifest.bytes if manifest else None,
        "stored": manifest.precision if manifest else None,
        "encoder_parameters": manifest.encoder_parameters if manifest else None,
        "quality": _quality(measured),
        "ran": asdict(ran),
        "blocks": list(samples.blocks),
        "samples_ms": {part: [round(1000 * getattr(each, f"{part}_s"), 4) for each in times] for part in PARTS},
    }


def alone_row(company: dict[str, Any], samples: Samples, contestant: Contestant) -> dict[str, Any]:
    """A backend measured by itself beside what it took in company; ``ratio`` is company over alone."""
    alone_ms = 1000 * statistics.median(samples.compute_s(contestant.key))
    return {
        "backend": company["backend"],
        "device": company["device"],
        "tokens": company["tokens"],
        "batch": company["batch"],
        "runs": len(samples.times[contestant.key]),
        "p50_ms": alone_ms,
        "company_p50_ms": company["p50_ms"],
        "ratio": company["p50_ms"] / alone_ms,
    }


def _against_baseline(measured: Measured, entrants: Sequence[Contestant]) -> dict[str, Any] | None:
    baseline = Contestant(catalog.BASELINE, measured.contestant.order)
    if measured.contestant == baseline or baseline not in entrants:
        return None
    return measured.against(baseline)


def _against_previous(measured: Measured, entrants: Sequence[Contestant]) -> dict[str, Any] | None:
    """Against the step of optimisation before, in the catalogue's order; a reference is no step."""
    steps = [each for each in entrants if each.order == measured.contestant.order and each.name != PIPELINE]
    if measured.contestant not in steps[1:]:
        return None
    return measured.against(steps[steps.index(measured.contestant) - 1])


def _against_arrival(measured: Measured) -> dict[str, Any] | None:
    """What sorting by length wins over batches as they come."""
    if measured.contestant.order != "sorted":
        return None
    return measured.against(Contestant(measured.contestant.name, "arrival"))


def _quality(measured: Measured) -> dict[str, Any] | None:
    """EM and F1 of these very weights, where they were measured; a reference's answers were not."""
    if measured.contestant.name == PIPELINE:
        return None
    row = catalog.backend(measured.contestant.name)
    found = shipped_accuracy(measured.group, row, measured.point.device)
    return {key: found[key] for key in QUALITY} if found else None


def _checkpoint(measured: Measured) -> str | None:
    """A reference runs on the baseline's weights."""
    name = measured.contestant.name
    return checkpoint_hash(measured.group, catalog.backend(catalog.BASELINE if name == PIPELINE else name))
