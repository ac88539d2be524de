"""Samples to statements: medians, ratios with intervals, and when to say nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

LEAST_ROUNDS = 5
"""Fewer rounds than this give one reading and no interval."""
LEAST_FOR_P90 = 30
LEAST_FOR_P99 = 1000
UNSTABLE_ABOVE = 0.10
"""Medians of the last three blocks further apart than this, relative to the least, are no steady state."""
RESAMPLES = 2000
TAILS = (2.5, 97.5)
"""Percentiles that hold the middle 95 %."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Percentiles in seconds; p90 is ``None`` below 30 runs and p99 below 1,000: each would be a sample or two."""

    runs: int
    p50_s: float
    p90_s: float | None
    p99_s: float | None


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times as fast: the ratio of medians with its 95 % interval from ``runs`` pairs."""

    value: float
    low: float
    high: float
    runs: int

    @property
    def tie(self) -> bool:
        """Whether the interval holds 1, so that neither can be called faster."""
        return self.low <= 1.0 <= self.high


def summarise(samples: Sequence[float]) -> Summary:
    """Raises ValueError for no samples."""
    if not samples:
        raise ValueError("no samples to summarise")
    values = np.asarray(samples, dtype=np.float64)
    p90 = float(np.percentile(values, 90)) if len(values) >= LEAST_FOR_P90 else None
    p99 = float(np.percentile(values, 99)) if len(values) >= LEAST_FOR_P99 else None
    return Summary(len(values), float(np.median(values)), p90, p99)


def speed_up(
    reference: Sequence[float], candidate: Sequence[float], blocks: Sequence[int] | None = None
) -> Ratio | None:
    """How many times as fast the candidate is as the reference; ``None`` with fewer than five rounds.

    The interval is the percentile bootstrap (Efron 1979) of the ratio of medians. Samples at the same place of both
    lists were taken in the same round, and ``blocks`` are the rounds' sizes (1 each by default). Whole rounds are
    resampled, both lists together: runs that follow each other are alike, and what slowed a whole round cancels out.
    The resampling is seeded: the same samples always give the same interval.
    """
    sizes = np.asarray(blocks if blocks is not None else [1] * min(len(reference), len(candidate)), dtype=np.int64)
    if len(sizes) < LEAST_ROUNDS:
        return None
    picks = np.random.default_rng(0).integers(0, len(sizes), size=(RESAMPLES, len(sizes)))
    slow, fast = (np.asarray(each[: sizes.sum()], dtype=np.float64) for each in (reference, candidate))
    ratios = _medians(slow, sizes, picks) / _medians(fast, sizes, picks)
    low, high = np.percentile(ratios, TAILS)
    return Ratio(float(np.median(slow) / np.median(fast)), float(low), float(high), len(slow))


def between_runs(reference: Sequence[float], candidate: Sequence[float]) -> Ratio | None:
    """``speed_up`` of samples that were taken at different times: each list is resampled by itself.

    What changed on the machine between the two is not in the interval.
    """
    if min(len(reference), len(candidate)) < LEAST_ROUNDS:
        return None
    rng = np.random.default_rng(0)
    slow, fast = (np.asarray(each, dtype=np.float64) for each in (reference, candidate))
    medians = [
        np.median(each[rng.integers(0, len(each), size=(RESAMPLES, len(each)))], axis=1) for each in (slow, fast)
    ]
    low, high = np.percentile(medians[0] / medians[1], TAILS)
    return Ratio(float(np.median(slow) / np.median(fast)), float(low), float(high), min(len(slow), len(fast)))


def _medians(samples: Floats, sizes: Ints, picks: Ints) -> Floats:
    """Median of the samples of each row of ``picks`` ``[RESAMPLES, n_rounds]``, which names rounds."""
    ends = np.cumsum(sizes)
    rounds = np.full((len(sizes), int(sizes.max())), np.inf)
    for row, (end, size) in enumerate(zip(ends, sizes, strict=True)):
        rounds[row, :size] = samples[end - size : end]
    drawn = np.sort(rounds[picks].reshape(len(picks), -1), axis=1)  # the padding, infinite, comes last
    count = sizes[picks].sum(axis=1)
    row = np.arange(len(picks))
    return (drawn[row, (count - 1) // 2] + drawn[row, count // 2]) / 2


def unstable(samples: Sequence[float], blocks: Sequence[int]) -> bool:
    """Whether the medians of the last three blocks differ by more than 10 %; ``blocks`` are the blocks' sizes."""
    ends = np.cumsum(blocks)
    medians = [float(np.median(samples[end - size : end])) for end, size in zip(ends, blocks, strict=True)][-3:]
    return len(medians) == 3 and max(medians) > min(medians) * (1 + UNSTABLE_ABOVE)


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % interval."""

    low: float
    high: float


def interval_of_mean(values: Floats) -> Interval:
    """Percentile bootstrap (Efron 1979) of the mean of ``values`` ``[n]``, seeded.

    Only how often each distinct value is drawn matters, and that is multinomial: 2,000 resamples of 12,000 questions
    take milliseconds.
    """
    distinct, counts = np.unique(values, return_counts=True)
    draws = np.random.default_rng(0).multinomial(len(values), counts / len(values), size=RESAMPLES)
    low, high = np.percentile(draws @ distinct / len(values), TAILS)
    return Interval(float(low), float(high))
