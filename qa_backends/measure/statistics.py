"""Samples to statements: medians, ratios with intervals, and when to say nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

LEAST_PAIRS = 5
"""Fewer pairs than this give one reading and no interval."""
LEAST_FOR_P90 = 30
RESAMPLES = 2000
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Summary:
    """Medians of a run of samples, in seconds; ``p90_s`` is ``None`` below 30 runs, where it would be one sample."""

    runs: int
    p50_s: float
    p90_s: float | None


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
    return Summary(len(values), float(np.median(values)), p90)


def speed_up(reference: Sequence[float], candidate: Sequence[float]) -> Ratio | None:
    """How many times as fast the candidate is as the reference; ``None`` with fewer than five pairs.

    The interval is the percentile bootstrap (Efron 1979) of the ratio of medians. Samples at the same place of both
    lists were taken in the same round and are resampled together, so that what slowed a whole round cancels out. The
    resampling is seeded: the same samples always give the same interval.
    """
    pairs = min(len(reference), len(candidate))
    if pairs < LEAST_PAIRS:
        return None
    slow = np.asarray(reference[:pairs], dtype=np.float64)
    fast = np.asarray(candidate[:pairs], dtype=np.float64)
    picks = np.random.default_rng(0).integers(0, pairs, size=(RESAMPLES, pairs))
    ratios = np.median(slow[picks], axis=1) / np.median(fast[picks], axis=1)
    tail = (1 - CONFIDENCE) / 2 * 100
    low, high = np.percentile(ratios, [tail, 100 - tail])
    return Ratio(float(np.median(slow) / np.median(fast)), float(low), float(high), pairs)
