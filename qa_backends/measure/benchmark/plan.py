"""What a benchmark is asked to measure: the plan, its points, and the command that repeats it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from qa_backends import catalog
from qa_backends.errors import InputError
from qa_backends.measure.timing.rounds import least_turns_s, turns_fit
from qa_backends.runtime.loading import check_device

if TYPE_CHECKING:
    from qa_backends.catalog import Backend, Family

LENGTHS = (32, 64, 128, 256, 384, 512)
BATCHES = (1, 2, 4, 8, 16, 32, 64)
SHORTEST, LONGEST = LENGTHS[0], LENGTHS[-1]
MOST_BATCH = BATCHES[-1]
LEAST_RUNS, MOST_RUNS = 5, 5_000
MOST_SECONDS = 600.0
SHOWN_AT = 128
"""Batch sizes are compared, and each backend is measured alone, at the chosen length nearest to this one."""
MIXED_BATCH = 4
MIXED_QUESTIONS = 16
PIPELINE, ORT, OPENVINO = "hf-pipeline", "ort", "openvino"


@dataclass(frozen=True, slots=True)
class ReferenceKind:
    """What people run otherwise; ``runs`` names the backend whose weights and files it takes, as
    the table does, see ``catalog.in_family``."""

    title: str
    runs: str


REFERENCES = {
    PIPELINE: ReferenceKind("transformers pipeline", catalog.BASELINE),
    ORT: ReferenceKind("ONNX Runtime as documented", "pruned-ort"),
    OPENVINO: ReferenceKind("OpenVINO as documented", "pruned-ov"),
}
"""What backends can be measured beside, by name."""


@dataclass(frozen=True, slots=True)
class Point:
    """One place of the sweep, at which all backends take turns; ``tokens`` is ``None`` for mixed lengths."""

    device: str
    tokens: int | None
    batch: int

    def __str__(self) -> str:
        length = "mixed lengths" if self.tokens is None else f"{self.tokens} tokens"
        return f"{length}, batch {self.batch}, {self.device.upper()}"


@dataclass(frozen=True)
class BenchmarkPlan:
    """A point ends at about ``runs`` timed runs of each backend, in whole blocks, or after ``seconds``, whichever comes
    first.

    The page and the command line begin with these lengths, batches, runs and seconds. The page ticks the backends that
    it preselects, and the command line measures all of them.
    """

    family: str
    backends: tuple[str, ...] = catalog.PRESELECTED
    devices: tuple[str, ...] = ("cpu",)
    lengths: tuple[int, ...] = (32, 128, 384)
    batches: tuple[int, ...] = (1, 8)
    runs: int = 30
    seconds: float = 20.0
    mixed: bool = False
    reference: str | None = None
    """Names of references, with commas between."""

    @property
    def references(self) -> list[str]:
        return [name for each in (self.reference or "").split(",") if (name := each.strip())]

    @cached_property
    def of(self) -> Family:
        """The family that is measured; looked up once, since one's own may be forgotten while it is measured."""
        return catalog.family(self.family)

    @cached_property
    def chosen(self) -> list[Backend]:
        """Each backend once, as steps of optimisation; looked up once, as the family is."""
        return catalog.ladder(catalog.resolve(name, self.family)[1] for name in self.backends)

    def check(self) -> None:
        """Raises InputError, with what to do, for a plan that cannot be measured."""
        _ = self.of  # there is one
        for device in self.devices:  # first: by them it is chosen what backends there are
            check_device(device)
        for what, chosen in (("backend", self.backends), ("device", self.devices), ("length", self.lengths),
                             ("batch size", self.batches)):  # fmt: skip
            if not chosen:
                raise InputError(f"No {what} is chosen. Choose at least one.")
        for name in self.backends:
            catalog.resolve(name, self.family)
        within("A length", self.lengths, SHORTEST, LONGEST, "tokens")
        within("A batch size", self.batches, 1, MOST_BATCH, "questions")
        within("The number of runs", [self.runs], LEAST_RUNS, MOST_RUNS, "runs")
        within("The time for a point", [self.seconds], 1, MOST_SECONDS, "seconds")
        for reference in self.references:
            if reference not in REFERENCES:
                raise InputError(f"There is no reference '{reference}'. Choose one of: {', '.join(REFERENCES)}.")
        for device in self.devices:
            self._check_time(device)

    def _check_time(self, device: str) -> None:
        """Raises InputError where not even the waits between the runs fit, which is known before anything is loaded."""
        able = [each for each in self.chosen if not catalog.unavailable(each, device)]
        together = len(able) + len(self.references)
        if not turns_fit(0.0, together, self.seconds):
            raise InputError(
                f"Five runs of each of {together} do not fit into {self.seconds:g} s: the waits between them alone "
                f"take {least_turns_s(0.0, together):.1f} s. Give a measurement more seconds, or choose fewer backends."
            )

    def points(self) -> list[Point]:
        """Every length at the smallest batch size, then the other batch sizes at one length, then mixed lengths.

        That is what the charts show; all lengths at all batch sizes would take many times as long.
        """
        batches = sorted(set(self.batches))
        points = []
        for device in dict.fromkeys(self.devices):
            points += [Point(device, tokens, batches[0]) for tokens in sorted(set(self.lengths))]
            points += [Point(device, self.shown_at, batch) for batch in batches[1:]]
            points += [Point(device, None, MIXED_BATCH)] if self.mixed else []
        return points

    @property
    def shown_at(self) -> int:
        """The length at which batch sizes are compared and backends measured alone."""
        return nearest_length(self.lengths)

    @property
    def most_seconds(self) -> float:
        """What all of it takes at most, loading apart: every point, and each backend alone on each device."""
        alone = len(self.chosen) * len(set(self.devices))
        return self.seconds * (len(self.points()) + alone)

    def repeating(self, places: Iterable[tuple[str, str, int | None, int, str]]) -> BenchmarkPlan:
        """The part of the plan that these places of records cover: the whole, unless it was stopped or had to leave
        something out. A place is family/backend, device, tokens, batch and order."""
        found = list(places)
        names = {backend.rpartition("/")[2] for backend, *_ in found}
        there = {device for _, device, *_ in found}
        equal = [(tokens, batch) for _, _, tokens, batch, _ in found if tokens is not None]
        return replace(
            self,
            backends=tuple(name for name in self.backends if name.rpartition("/")[2] in names) or self.backends,
            devices=tuple(device for device in self.devices if device in there) or self.devices,
            lengths=tuple(tokens for tokens in self.lengths if tokens in dict(equal)) or self.lengths,
            batches=tuple(batch for batch in self.batches if batch in {each for _, each in equal}) or self.batches,
            mixed=any(tokens is None for _, _, tokens, *_ in found),
            reference=",".join(each for each in self.references if each in names) or None,
        )

    def command(self) -> str:
        """The line that repeats exactly this measurement."""
        return shlex.join([
            "python", "-m", "qa_backends", "bench", *catalog.chosen_by(self.family),
            "--backends", ",".join(self.backends),
            "--device", ",".join(self.devices), "--lengths", listed(self.lengths), "--batches", listed(self.batches),
            "--runs", str(self.runs), "--seconds", repr(self.seconds).removesuffix(".0"),
            *(["--mixed"] if self.mixed else []), *(["--reference", self.reference] if self.reference else []),
            "--save", "benchmark.json",
        ])  # fmt: skip


def nearest_length(lengths: Iterable[int]) -> int:
    """The length that charts and comparisons are shown at."""
    return min(sorted(lengths), key=lambda tokens: abs(tokens - SHOWN_AT), default=SHOWN_AT)


def within(what: str, values: Iterable[float], low: float, high: float, unit: str) -> None:
    """Raises InputError, with the range, for the first of the values that is outside of it."""
    for value in values:
        if not low <= value <= high:
            raise InputError(f"{what} is from {low:g} to {high:g} {unit}, not {value:g}.")


def listed(values: Iterable[int]) -> str:
    """As a command takes them."""
    return ",".join(map(str, values))
