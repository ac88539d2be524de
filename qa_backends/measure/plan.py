"""What a benchmark is asked to measure: the plan, its points, and the command that repeats it."""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from qa_backends import catalog
from qa_backends.errors import InputError
from qa_backends.measure.inputs import LONGEST, SHORTEST

if TYPE_CHECKING:
    from collections.abc import Iterable

    from qa_backends.catalog import Backend, Family

LENGTHS = (32, 64, 128, 256, 384, 512)
BATCHES = (1, 2, 4, 8, 16, 32, 64)
BATCHES_AT = 128
"""Batch sizes are compared at the chosen length nearest to this one."""
MOST_BATCH = 64
RUNS = 30
SECONDS = 20.0
MOST_RUNS, MOST_SECONDS = 5_000, 600.0
MIXED_BATCH = 4
MIXED_QUESTIONS = 16
PIPELINE = "hf-pipeline"
REFERENCES = (PIPELINE,)


@dataclass(frozen=True, slots=True)
class Point:
    """One place of the sweep, at which all backends take turns; ``tokens`` is ``None`` for mixed lengths."""

    device: str
    tokens: int | None
    batch: int

    def __str__(self) -> str:
        length = "mixed lengths" if self.tokens is None else f"{self.tokens} tokens"
        return f"{length}, batch {self.batch}, {self.device.upper()}"


@dataclass(frozen=True, slots=True)
class Plan:
    """A point ends at ``runs`` timed runs of each backend or after ``seconds``, whichever comes first."""

    family: str
    backends: tuple[str, ...]
    devices: tuple[str, ...]
    lengths: tuple[int, ...] = (32, 128, 384)
    batches: tuple[int, ...] = (1,)
    runs: int = RUNS
    seconds: float = SECONDS
    mixed: bool = False
    reference: str | None = None

    @property
    def group(self) -> Family:
        return catalog.family(self.family)

    @property
    def rows(self) -> list[Backend]:
        """In the catalogue's order, which is that of the steps of optimisation."""
        return sorted((catalog.backend(name) for name in set(self.backends)), key=catalog.BACKENDS.index)

    def check(self) -> None:
        """Raises InputError, with what to do, for a plan that cannot be measured."""
        catalog.family(self.family)
        for what, chosen in (("backend", self.backends), ("device", self.devices), ("length", self.lengths),
                             ("batch size", self.batches)):  # fmt: skip
            if not chosen:
                raise InputError(f"No {what} is chosen. Choose at least one.")
        for name in self.backends:
            catalog.backend(name)
        for device in self.devices:
            if device not in catalog.devices():
                there = ", ".join(catalog.devices())
                raise InputError(f"There is no device '{device}' here. Choose one of: {there}.")
        _within("A length", self.lengths, SHORTEST, LONGEST, "tokens")
        _within("A batch size", self.batches, 1, MOST_BATCH, "questions")
        _within("The number of runs", [self.runs], 5, MOST_RUNS, "runs")
        _within("The time for a point", [self.seconds], 1, MOST_SECONDS, "seconds")
        if self.reference not in (None, *REFERENCES):
            raise InputError(f"There is no reference '{self.reference}'. Choose one of: {', '.join(REFERENCES)}.")

    def points(self) -> list[Point]:
        """Every length at the smallest batch size, then the other batch sizes at one length, then mixed lengths.

        That is what the charts show; all lengths at all batch sizes would take many times as long.
        """
        batches = sorted(set(self.batches))
        at = self.batches_at
        points = []
        for device in dict.fromkeys(self.devices):
            points += [Point(device, tokens, batches[0]) for tokens in sorted(set(self.lengths))]
            points += [Point(device, at, batch) for batch in batches[1:]]
            points += [Point(device, None, MIXED_BATCH)] if self.mixed else []
        return points

    @property
    def batches_at(self) -> int:
        """The length at which batch sizes are compared."""
        return min(sorted(self.lengths), key=lambda tokens: abs(tokens - BATCHES_AT))

    def command(self) -> str:
        """The line that repeats exactly this measurement."""
        return shlex.join([
            "python", "-m", "qa_backends", "bench", "--family", self.family, "--backends", ",".join(self.backends),
            "--device", ",".join(self.devices), "--lengths", _listed(self.lengths), "--batches", _listed(self.batches),
            "--runs", str(self.runs), "--seconds", f"{self.seconds:g}", *(["--mixed"] if self.mixed else []),
            *(["--reference", self.reference] if self.reference else []), "--save", "benchmark.json",
        ])  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}


def plan_from(content: dict[str, Any]) -> Plan:
    """The plan that ``as_dict`` gave, read back from JSON."""
    return Plan(**{key: tuple(value) if isinstance(value, list) else value for key, value in content.items()})


def _within(what: str, values: Iterable[float], low: float, high: float, unit: str) -> None:
    for value in values:
        if not low <= value <= high:
            raise InputError(f"{what} is from {low:g} to {high:g} {unit}, not {value:g}.")


def _listed(values: Iterable[int]) -> str:
    return ",".join(map(str, values))
