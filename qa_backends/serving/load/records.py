"""What was measured of serving, as a results file keeps it; ``assets/results/README.md`` documents the fields."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from qa_backends.measure.results.records import Milliseconds, ResultsFile
from qa_backends.measure.timing.machine import Machine

REST, ONE_BY_ONE, TRITON = "REST", "REST, one by one", "Triton"
REPLICA, TWO_REPLICAS = "Ray, a replica of one core", "Ray, two replicas of one core"
"""Ways of asking, of those that are compared."""
Samples = Annotated[tuple[Milliseconds, ...], Field(min_length=2)]


@dataclass(frozen=True, slots=True)
class OwnCost:
    """One question after another by a way of asking, and by the direct call in turn with it."""

    way: str
    tokens: int
    samples_ms: Samples
    direct_samples_ms: Samples

    @property
    def own_ms(self) -> float:
        """What asking this way costs beyond the direct call."""
        return statistics.mean(self.samples_ms) - statistics.mean(self.direct_samples_ms)


@dataclass(frozen=True, slots=True)
class Load:
    """So many clients at once, each asking again as soon as it is answered; ``requests`` are those that succeeded."""

    way: str
    clients: int
    seconds: float
    requests: int
    failures: int
    per_second: float
    p50_ms: float
    p90_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True)
class BatchPoint:
    """Questions a second of the direct call, tokenising included, where so many are answered together."""

    batch: int
    per_second: float


@dataclass(frozen=True, slots=True)
class Serving(ResultsFile):
    """All of it: on one backend, the load at one length."""

    kind: ClassVar = "serving"
    machine: Machine
    backend: str
    device: str
    tokens: int
    own: tuple[OwnCost, ...]
    batches: tuple[BatchPoint, ...]
    load: tuple[Load, ...]
    left_out: tuple[str, ...]

    def at(self, way: str, clients: int) -> Load | None:
        return next((each for each in self.load if (each.way, each.clients) == (way, clients)), None)


def share_reached(batches: tuple[BatchPoint, ...], alone: float, together: float) -> float | None:
    """Of what the batch curve allows, what a server's batching gains: (together/alone - 1) / (allowed - 1).

    ``alone`` and ``together`` are questions a second of the server with batches of one and as they come. ``None``
    where the curve does not rise, so that there is nothing to gain.
    """
    allowed = times_allowed(batches)
    return (together / alone - 1) / (allowed - 1) if allowed > 1 else None


def times_allowed(batches: tuple[BatchPoint, ...]) -> float:
    """How many times as many questions a second the direct call answers in its best batches as one by one."""
    first = next(each.per_second for each in batches if each.batch == 1)
    return max(each.per_second for each in batches) / first
