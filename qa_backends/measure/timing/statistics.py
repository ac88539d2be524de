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
LOOKED_AT = frozenset(2 * LEAST_ROUNDS * 2**power for power in range(12))
"""Rounds after which a measurement may end early: who looks after each one stops at the first lucky interval, and of so
few as five rounds, one in sixteen lean one way throughout for nothing."""
LEAST_FOR_P90 = 30
LEAST_FOR_P99 = 1000
UNSTABLE_ABOVE = 0.10
"""Medians of what was measured last further apart than this, relative to the least, are no steady state."""
LAST_RUNS = 9
"""As many as are compared, in three groups: single runs differ by more than ``UNSTABLE_ABOVE`` on a calm machine."""
NARROW = 0.05
"""Share of a ratio on either side of it: an interval within that needs no more measuring."""
LEAST_TO_RESAMPLE = 30
"""Fewer questions than this are too few to stand for all those that might have been asked."""
RESAMPLES = 2000
MOST_ROUNDS = 500
"""More are not drawn each by itself: a file may hold thousands for each backend."""
DRAWN_AT_ONCE = 100_000
"""Samples in the resamples that are made at once: they bound the memory that it takes."""
TAIL = 2.5
"""Percent left out on either side of a 95 % interval."""
MOST_DIGITS = 4
"""Decimals beyond which nothing is told apart: no machine repeats a measurement so closely."""


@dataclass(frozen=True, slots=True)
class Percentiles:
    """In seconds; p90 is ``None`` below 30 runs and p99 below 1,000: each would be a sample or two."""

    runs: int
    p50_s: float
    p90_s: float | None
    p99_s: float | None


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times as fast: the ratio of medians with its interval, 95 % by default, from ``runs`` pairs."""

    value: float
    low: float
    high: float
    runs: int

    @property
    def tie(self) -> bool:
        """Whether the interval, to ``MOST_DIGITS``, holds 1, so that neither can be called faster."""
        return _holds(self.low, self.high, 1.0)

    @property
    def inverse(self) -> Ratio:
        """How many times as slow."""
        return Ratio(1 / self.value, 1 / self.high, 1 / self.low, self.runs)

    def __str__(self) -> str:
        """As in "3.4× [3.2–3.6]", "1.04× [1.01–1.08]" or "tie [0.97–1.02]"."""
        return f"{'tie' if self.tie else self.figure()} {self.bracketed()}"

    @property
    def narrow(self) -> bool:
        """Whether the interval says the figure well: its ends are within ``NARROW`` of it."""
        return max(self.value - self.low, self.high - self.value) <= NARROW * self.value

    @property
    def vague(self) -> bool:
        """Whether the interval is wider than its figure, which then says little more than a direction."""
        return self.high - self.low > self.value

    def figure(self) -> str:
        """Only the value, as in "3.4×"."""
        return f"{self.value:.{self._shown_digits()}f}×"

    def bracketed(self) -> str:
        """Only the interval, as in "[3.2–3.6]"."""
        digits = self._shown_digits()
        return f"[{self.low:.{digits}f}–{self.high:.{digits}f}]"

    def interval(self) -> str:
        """Only the interval, as in "3.2 to 3.6"."""
        digits = self._shown_digits()
        return f"{self.low:.{digits}f} to {self.high:.{digits}f}"

    def _shown_digits(self) -> int:
        return _digits(self.low, self.value, self.high, neutral=1.0, tie=self.tie)


def _holds(low: float, high: float, neutral: float) -> bool:
    """Whether the interval holds the number that would mean no difference."""
    return round(low, MOST_DIGITS) <= neutral <= round(high, MOST_DIGITS)


def _digits(low: float, value: float, high: float, *, neutral: float, tie: bool) -> int:
    """As many decimals as the interval's width gives a meaning to, and enough to tell its ends apart, where they are,
    and, unless it is a tie, each number from the one that would mean no difference."""
    one_number = round(low, MOST_DIGITS) == round(high, MOST_DIGITS)
    for digits in range(1 if high - low >= 0.2 else 2, MOST_DIGITS):
        shown = round(low, digits), round(value, digits), round(high, digits)
        if (one_number or shown[0] != shown[2]) and (tie or neutral not in shown):
            return digits
    return MOST_DIGITS


def percentiles(samples: Sequence[float]) -> Percentiles:
    """Raises ValueError for no samples."""
    if not samples:
        raise ValueError("no samples to take percentiles of")
    values = np.asarray(samples, dtype=np.float64)
    p90 = float(np.percentile(values, 90)) if len(values) >= LEAST_FOR_P90 else None
    p99 = float(np.percentile(values, 99)) if len(values) >= LEAST_FOR_P99 else None
    return Percentiles(len(values), float(np.median(values)), p90, p99)


def speed_up(
    reference: Sequence[float], candidate: Sequence[float], blocks: Sequence[int], *, among: int = 1
) -> Ratio | None:
    """How many times as fast the candidate is as the reference; ``None`` with fewer than five rounds.

    The interval is the percentile bootstrap (Efron 1979) of the ratio of medians. Samples at the same place of both
    lists were taken in the same round, and ``blocks`` are the rounds' sizes. Whole rounds are resampled, both lists
    together: runs that follow each other are alike, and what slowed a whole round cancels out. The resampling is
    seeded: the same samples always give the same interval.

    ``among`` is how many candidates this one was picked from, as the fastest say. The interval is widened so that it
    holds at 95 % for all of them at once (Bonferroni's correction), since the luckiest looks better than it is.
    """
    if len(blocks) < LEAST_ROUNDS:
        return None
    sizes = np.asarray(blocks, dtype=np.int64)
    slow, fast = (np.asarray(each[: sizes.sum()], dtype=np.float64) for each in (reference, candidate))
    ratios = _medians(slow, sizes, seed=0) / _medians(fast, sizes, seed=0)
    return _ratio(slow, fast, ratios, among)


def between_runs(
    reference: Sequence[float],
    candidate: Sequence[float],
    reference_blocks: Sequence[int],
    candidate_blocks: Sequence[int],
) -> Ratio | None:
    """``speed_up`` of samples that were taken at different times: the rounds of each are resampled by themselves.

    What changed on the machine between the two is not in the interval.
    """
    if min(len(reference_blocks), len(candidate_blocks)) < LEAST_ROUNDS:
        return None
    slow, fast = (np.asarray(each, dtype=np.float64) for each in (reference, candidate))
    medians = [
        _medians(samples, np.asarray(blocks, dtype=np.int64), seed)
        for seed, (samples, blocks) in enumerate(((slow, reference_blocks), (fast, candidate_blocks)))
    ]
    return _ratio(slow, fast, medians[0] / medians[1], among=1)


def _ratio(slow: Floats, fast: Floats, resampled: Floats, among: int) -> Ratio:
    low, high = np.percentile(resampled, (TAIL / among, 100 - TAIL / among))
    return Ratio(float(np.median(slow) / np.median(fast)), float(low), float(high), min(len(slow), len(fast)))


def _medians(samples: Floats, sizes: Ints, seed: int) -> Floats:
    """``[RESAMPLES]``: medians of as many rounds as there are, drawn anew each time, the same ones for a seed.

    Of more than ``MOST_ROUNDS``, neighbours are drawn together. Nothing is sorted but the samples, once: a sample was
    drawn as often as its round.
    """
    sizes = np.add.reduceat(sizes, np.arange(0, len(sizes), -(-len(sizes) // MOST_ROUNDS)))
    random, order = np.random.default_rng(seed), np.argsort(samples)
    rounds = np.repeat(np.arange(len(sizes)), sizes)[order]
    step = max(1, DRAWN_AT_ONCE // len(samples))
    places = [
        _middles(random.integers(0, len(sizes), size=(min(step, RESAMPLES - first), len(sizes))), rounds)
        for first in range(0, RESAMPLES, step)
    ]
    medians: Floats = samples[order][np.concatenate(places)].mean(axis=1)
    return medians


def _middles(picks: Ints, rounds: Ints) -> Ints:
    """``[n, 2]``: of each line of ``picks`` ``[n, n_rounds]``, the places of the two samples in its middle, among
    ascending ones that belong to ``rounds``."""
    (n, n_rounds), lines = picks.shape, np.arange(len(picks))[:, None]
    times = np.bincount((picks + n_rounds * lines).ravel(), minlength=n * n_rounds).reshape(n, n_rounds)
    upto = np.cumsum(times[:, rounds])  # of one line after the other
    ends = upto[len(rounds) - 1 :: len(rounds)]
    begins = np.concatenate(([0], ends[:-1]))
    middles = np.stack([begins + (ends - begins - 1) // 2, begins + (ends - begins) // 2], axis=1)
    return np.searchsorted(upto, middles, side="right") - len(rounds) * lines


def unstable(samples: Sequence[float], blocks: Sequence[int]) -> bool:
    """Whether the medians of the last three groups of three runs differ by more than 10 %; of fewer than nine runs,
    those of the last three blocks. ``blocks`` are the blocks' sizes."""
    sizes = [LAST_RUNS // 3] * 3 if len(samples) >= LAST_RUNS else list(blocks[-3:])
    groups = np.split(np.asarray(samples[len(samples) - sum(sizes) :]), np.cumsum(sizes[:-1]))
    medians = [float(np.median(each)) for each in groups]
    return len(sizes) == 3 and max(medians) > min(medians) * (1 + UNSTABLE_ABOVE)


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % interval, of a share in percent."""

    low: float
    high: float

    def around(self, value: float, difference: Difference | None = None) -> str:
        """As in "70.8 [70.0–71.6]": the figure that the interval is of, and the interval; behind them the figure's
        difference to another, as in ", −1.0 [−1.6 to −0.4]", where it is given."""
        against = f", {difference.spelt()}" if difference else ""
        return f"{value:.1f} [{self.low:.1f}–{self.high:.1f}]{against}"


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference of means with its 95 % interval, over pairs."""

    value: float
    low: float
    high: float

    @property
    def tie(self) -> bool:
        """Whether the interval, to ``MOST_DIGITS``, holds 0, so that no difference was shown."""
        return _holds(self.low, self.high, 0.0)

    def spelt(self) -> str:
        """As in "−3.4 [−7.0 to +0.3]": the figure also of a tie, for readers who weigh a likely loss."""
        digits = _digits(self.low, self.value, self.high, neutral=0.0, tie=self.tie)
        return f"{signed(self.value, digits)} [{signed(self.low, digits)} to {signed(self.high, digits)}]"


def signed(value: float, digits: int) -> str:
    """With the sign that typesetting has for it, and none where nothing but zeros is shown."""
    shown = f"{abs(value):.{digits}f}"
    return shown if not float(shown) else f"{'+' if value > 0 else '−'}{shown}"


def paired_difference(values: Floats, baseline: Floats) -> Difference:
    """The mean of ``values - baseline``, both ``[n]``, in percent, over the same questions, with its interval.

    Pairs are resampled: questions that both find hard or easy do not widen the interval of what tells them apart. Of
    answers that all count the same, and are not few, there is nothing to tell apart.
    """
    apart = values - baseline
    if len(apart) >= LEAST_TO_RESAMPLE and not apart.any():
        return Difference(0.0, 0.0, 0.0)
    found = interval_of_mean(apart, least=-100.0)
    return Difference(float(apart.mean()), found.low, found.high)


def interval_of_mean(values: Floats, *, least: float = 0.0) -> Interval:
    """Percentile bootstrap (Efron 1979) of the mean of ``values`` ``[n]``, from ``least`` to 100, seeded.

    Only how often each distinct value is drawn matters, and that is multinomial: 2,000 resamples of 12,000 questions
    take milliseconds. What was never seen is never drawn, so of a handful of values, or of values that are all alike,
    that alone would be far too sure. Then the interval has room for as many unseen values, at either end of what is
    possible, as may have been missed: all right on 3 questions is [29–100], as Clopper and Pearson (1934) have it.
    """
    distinct, counts = np.unique(values, return_counts=True)
    draws = np.random.default_rng(0).multinomial(len(values), counts / len(values), size=RESAMPLES)
    low, high = np.percentile(draws @ distinct / len(values), (TAIL, 100 - TAIL))
    few = len(values) < LEAST_TO_RESAMPLE or len(distinct) == 1
    missed = 1 - (TAIL / 100) ** (1 / len(values)) if few else 0.0
    return Interval(float(low + missed * (least - low)), float(high + missed * (100.0 - high)))


def on_frontier(places: Sequence[tuple[float, float]]) -> list[int]:
    """Of latency and F1 in pairs, the quickest first, the indices of those that no other is both quicker and as good
    as."""
    return [index for index, (_, f1) in enumerate(places) if all(f1 > better for _, better in places[:index])]
