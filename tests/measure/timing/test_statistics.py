"""Statements made of samples, on invented numbers."""

from __future__ import annotations

import re
import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qa_backends.measure.timing.statistics import (
    RESAMPLES,
    Difference,
    Ratio,
    between_runs,
    interval_of_mean,
    on_frontier,
    paired_difference,
    percentiles,
    speed_up,
    unstable,
)


def test_the_ratio_is_that_of_medians_and_its_interval_holds_it() -> None:
    noise = np.random.default_rng(1).normal(1, 0.02, size=(2, 40))
    ratio = speed_up(list(0.030 * noise[0]), list(0.010 * noise[1]), [1] * 40)
    assert ratio is not None
    assert ratio.value == pytest.approx(3.0, rel=0.03)
    assert ratio.low <= ratio.value <= ratio.high
    assert 0 < ratio.high - ratio.low < 0.2
    assert not ratio.tie and ratio.runs == 40
    assert str(ratio).startswith(f"{ratio.value:.2f}× [")


def test_the_interval_is_the_same_for_the_same_samples() -> None:
    samples = list(np.random.default_rng(2).gamma(5, 1, size=30)), list(np.random.default_rng(3).gamma(5, 1, size=30))
    assert speed_up(*samples, [1] * 30) == speed_up(*samples, [1] * 30)


def test_no_difference_is_a_tie() -> None:
    rng = np.random.default_rng(4)
    ratio = speed_up(list(rng.normal(1, 0.2, 30)), list(rng.normal(1, 0.2, 30)), [1] * 30)
    assert ratio is not None and ratio.tie
    assert str(ratio).startswith("tie [")


def test_slower_is_said_as_slower() -> None:
    ratio = speed_up([1.0] * 6, [2.0] * 6, [1] * 6)
    assert ratio is not None
    assert str(ratio) == "0.50× [0.50–0.50]" and str(ratio.inverse) == "2.00× [2.00–2.00]"


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        (Ratio(3.41, 3.18, 3.63, 24), "3.4× [3.2–3.6]"),
        (Ratio(1.041, 1.012, 1.078, 24), "1.04× [1.01–1.08]"),
        (Ratio(1.041, 1.003, 1.078, 24), "1.041× [1.003–1.078]"),
        (Ratio(1.9, 1.901, 1.904, 24), "1.900× [1.901–1.904]"),
        (Ratio(0.953, 0.944, 0.955, 24), "0.95× [0.94–0.95]"),
        (Ratio(0.99, 0.971, 1.018, 24), "tie [0.97–1.02]"),
        (Ratio(1.0, 0.6, 1.4, 24), "tie [0.6–1.4]"),
        (Ratio(1.00002, 1.00001, 1.00003, 24), "tie [1.00–1.00]"),
    ],
)
def test_a_ratio_is_said_in_as_many_digits_as_mean_something(ratio: Ratio, said: str) -> None:
    assert str(ratio) == said


@pytest.mark.parametrize(
    ("ratio", "narrow", "vague"),
    [
        (Ratio(2.0, 1.905, 2.099, 24), True, False),
        (Ratio(2.0, 1.95, 2.14, 24), False, False),
        (Ratio(2.0, 1.82, 2.01, 24), False, False),
        (Ratio(2.0, 1.895, 2.1, 24), False, False),
        (Ratio(2.0, 1.0, 2.99, 24), False, False),
        (Ratio(2.0, 1.0, 3.01, 24), False, True),
    ],
)
def test_an_interval_is_narrow_or_vague_by_its_share_of_the_figure(ratio: Ratio, narrow: bool, vague: bool) -> None:
    assert (ratio.narrow, ratio.vague) == (narrow, vague)


@pytest.mark.parametrize(
    ("difference", "said"),
    [
        (Difference(-2.41, -3.12, -1.73), "−2.4 [−3.1 to −1.7]"),
        (Difference(0.31, 0.26, 0.38), "+0.31 [+0.26 to +0.38]"),
        (Difference(-0.27, -0.79, 0.27), "−0.3 [−0.8 to +0.3]"),
        (Difference(-0.23, -0.45, -0.016), "−0.23 [−0.45 to −0.02]"),
        (Difference(0.5, 0.02, 0.9), "+0.50 [+0.02 to +0.90]"),
        (Difference(0.2, -0.01, 0.5), "+0.2 [0.0 to +0.5]"),
        (Difference(0.0, 0.0, 0.0), "0.00 [0.00 to 0.00]"),
    ],
)
def test_a_difference_is_said_with_its_sign_and_shows_none_only_where_it_may_be_none(
    difference: Difference, said: str
) -> None:
    assert difference.spelt() == said


def numbers(text: str) -> list[float]:
    return [float(each.replace("−", "-")) for each in re.findall(r"[−+]?\d+\.\d+", text)]


@given(st.lists(st.floats(0.01, 200), min_size=2, max_size=2).map(sorted), st.floats(0, 1))
@example([1.0, 1.1], 0.4)
@example([1.00005, 1.1], 0.4)
@example([0.99995, 0.99996], 0.5)
@example([1.901, 1.904], 0.5)
def test_the_figures_of_a_ratio_never_say_faster_of_what_may_be_as_fast(ends: list[float], at: float) -> None:
    low, high = ends
    ratio = Ratio(low + at * (high - low), low, high, 30)
    assert ("tie" in str(ratio)) is ratio.tie
    if not ratio.tie:
        shown = numbers(str(ratio))
        assert 1.0 not in shown and all((each > 1) == (low > 1) for each in shown)
    shown_low, shown_high = numbers(str(ratio))[-2:]
    assert (shown_low < shown_high) is (round(low, 4) != round(high, 4))


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=2).map(sorted), st.floats(0, 1))
@example([0.00005, 0.3], 0.5)
@example([-0.3, -0.00006], 0.5)
def test_the_words_of_a_difference_never_show_none_as_some(ends: list[float], at: float) -> None:
    low, high = ends
    difference = Difference(low + at * (high - low), low, high)
    shown = numbers(difference.spelt())
    assert difference.tie or 0.0 not in shown
    assert (shown[-2] < shown[-1]) is (round(low, 4) != round(high, 4))


def test_four_pairs_are_too_few_for_an_interval() -> None:
    assert speed_up([1.0] * 4, [2.0] * 4, [1] * 4) is None
    assert speed_up([1.0] * 5, [2.0] * 5, [1] * 5) is not None


def test_a_round_that_was_slow_for_all_does_not_widen_the_interval() -> None:
    slow_rounds = np.where(np.arange(40) % 2, 1.0, 5.0)
    together = speed_up(list(3 * slow_rounds), list(slow_rounds), [1] * 40)
    assert together is not None
    assert together.value == pytest.approx(3.0)
    assert together.high - together.low < 1e-9


def test_the_luckiest_of_many_is_quoted_with_a_wider_interval_than_one_alone() -> None:
    rng = np.random.default_rng(6)
    samples = list(rng.normal(2, 0.2, 40)), list(rng.normal(1, 0.1, 40))
    alone, of_two, of_ten = (speed_up(*samples, [1] * 40, among=among) for among in (1, 2, 10))
    assert alone is not None and of_two is not None and of_ten is not None
    assert alone.value == of_two.value == of_ten.value
    assert of_ten.low < of_two.low < alone.low
    assert alone.high < of_two.high < of_ten.high


def test_an_interval_for_many_holds_for_all_of_them_as_often_as_it_says() -> None:
    """Ten candidates that are as fast as the reference: the luckiest is called a tie nineteen times of twenty."""
    rng = np.random.default_rng(7)
    trials, candidates = 60, 10
    wrong = {1: 0, candidates: 0}
    for _ in range(trials):
        reference, *others = rng.normal(1, 0.05, size=(candidates + 1, 30))
        for among in wrong:
            ratios = [speed_up(list(reference), list(each), [1] * 30, among=among) for each in others]
            best = max((each for each in ratios if each), key=lambda each: each.value)
            wrong[among] += not best.tie
    assert wrong[candidates] <= 0.15 * trials < 2 * wrong[1]


def test_the_90th_percentile_needs_thirty_runs() -> None:
    assert percentiles(list(range(29))).p90_s is None
    many = percentiles([float(each) for each in range(1, 101)])
    assert many.p50_s == 50.5
    assert many.p90_s == pytest.approx(90.1)
    with pytest.raises(ValueError, match="no samples"):
        percentiles([])


def test_the_99th_percentile_needs_a_thousand_runs() -> None:
    assert percentiles([1.0] * 999).p99_s is None
    assert percentiles([float(each) for each in range(1, 1001)]).p99_s == pytest.approx(990.01)


def test_runs_of_one_round_do_not_count_as_independent() -> None:
    """Rounds that differ while their runs are alike: the interval is that of the rounds."""
    rng = np.random.default_rng(5)
    level = np.repeat(rng.normal(1, 0.2, size=12), 3)
    slow, fast = list(3 * np.ones(36)), list(level)
    by_round, by_run = speed_up(slow, fast, [3] * 12), speed_up(slow, fast, [1] * 36)
    assert by_round is not None and by_run is not None
    assert by_round.value == by_run.value
    assert by_round.high - by_round.low > 1.2 * (by_run.high - by_run.low)


def test_runs_of_one_round_do_not_count_as_independent_between_two_benchmarks_either() -> None:
    rng = np.random.default_rng(8)
    then, now = (list(np.repeat(rng.normal(level, 0.1, size=12), 3)) for level in (2, 1))
    by_round, by_run = between_runs(then, now, [3] * 12, [3] * 12), between_runs(then, now, [1] * 36, [1] * 36)
    assert by_round is not None and by_run is not None
    assert by_round.value == by_run.value == pytest.approx(2, rel=0.15)
    assert by_round.low < by_round.value < by_round.high
    assert by_round.high - by_round.low > 1.2 * (by_run.high - by_run.low)


def test_rounds_that_were_slow_in_one_benchmark_do_not_cancel_out_in_another() -> None:
    slow_rounds = list(np.where(np.arange(40) % 2, 1.0, 5.0))
    found = between_runs(slow_rounds, slow_rounds, [1] * 40, [1] * 40)
    assert found is not None and found.tie and found.high - found.low > 1


def test_two_benchmarks_of_four_rounds_are_too_few_to_compare() -> None:
    assert between_runs([2.0] * 10, [1.0] * 12, [1, 3, 3, 3], [3] * 4) is None
    assert between_runs([2.0] * 5, [1.0] * 12, [1] * 5, [3] * 4) is None
    found = between_runs([2.0] * 5, [1.0] * 15, [1] * 5, [3] * 5)
    assert found == Ratio(2.0, 2.0, 2.0, 5)


def test_rounds_of_different_sizes_are_resampled_whole() -> None:
    same = speed_up([2.0] * 13, [1.0] * 13, [1, 3, 3, 3, 3])
    assert same is not None and (same.value, same.low, same.high, same.runs) == (2.0, 2.0, 2.0, 13)
    assert speed_up([2.0] * 10, [1.0] * 10, [1, 3, 3, 3]) is None, "four rounds are too few"


@pytest.mark.parametrize("blocks", [[1, 3, 3, 3, 3], [1] * 6, [3, 2, 1, 1, 3, 3, 1]])
def test_the_interval_is_that_of_medians_of_rounds_drawn_and_sorted_one_by_one(blocks: list[int]) -> None:
    rng = np.random.default_rng(10)
    slow, fast = (rng.gamma(5, 1, sum(blocks)) for _ in range(2))
    starts = np.cumsum([0, *blocks])
    drawn = [
        np.concatenate([np.arange(starts[each], starts[each + 1]) for each in picks])
        for picks in np.random.default_rng(0).integers(0, len(blocks), size=(RESAMPLES, len(blocks)))
    ]
    ratios = [np.median(slow[each]) / np.median(fast[each]) for each in drawn]
    found = speed_up(list(slow), list(fast), blocks)
    assert found is not None
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(ratios, (2.5, 97.5))))


def test_thousands_of_rounds_take_little_memory() -> None:
    """As a file may hold of each of hundreds of backends."""
    samples = list(np.random.default_rng(11).normal(1, 0.1, 5000))
    tracemalloc.start()
    found = between_runs(samples, samples, [1] * 5000, [1] * 5000)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 20e6
    assert found is not None and found.tie and found.high - found.low == pytest.approx(0.014, abs=0.004)


@pytest.mark.parametrize(
    ("medians", "expected"),
    [((1.0, 1.0, 1.0), False), ((1.0, 1.05, 1.09), False), ((1.0, 1.05, 1.12), True), ((1.12, 1.0, 1.0), True)],
)
def test_a_record_is_unstable_when_its_last_three_blocks_differ(medians: tuple[float, ...], expected: bool) -> None:
    samples = [9.0] + [value + noise for value in medians for noise in (-0.5, 0.0, 0.5)]
    assert unstable(samples, [1, 3, 3, 3]) is expected


def test_single_runs_that_came_last_are_compared_in_threes() -> None:
    """One run of eleven that took longer says nothing of the machine; three that follow each other do."""
    blocks = [1, 3, 3, 1, 1, 1, 1]
    assert not unstable([1.0] * 10 + [1.2], blocks)
    assert unstable([1.0] * 8 + [1.2] * 3, blocks)
    assert unstable([1.0] * 4 + [1.2], [1] * 5), "of fewer than nine runs, single ones are all there is"


def test_what_came_before_the_last_three_blocks_does_not_make_a_record_unstable() -> None:
    assert not unstable([5.0, 1.0, 1.0, 1.0], [1, 1, 1, 1])
    assert not unstable([5.0, 1.0], [1, 1]), "two blocks say nothing yet"


def test_a_paired_difference_is_that_of_the_means_as_wide_as_by_hand() -> None:
    """1,000 questions, of which 60 are answered better and 30 worse, and the others alike."""
    baseline = np.tile([0.0, 100.0], 500)
    change = np.zeros(1000)
    change[:120:2], change[1:60:2] = 100, -100
    found = paired_difference(baseline + change, baseline)
    assert found.value == pytest.approx(3.0)
    # Variance of one difference: 0.09 * 100² - 3²; of their mean a thousandth of that.
    spread = 1.96 * np.sqrt((0.09 * 100**2 - 3**2) / 1000)
    assert found.low == pytest.approx(3 - spread, abs=0.2)
    assert found.high == pytest.approx(3 + spread, abs=0.2)
    assert not found.tie


def test_questions_that_both_find_hard_do_not_widen_what_tells_them_apart() -> None:
    rng = np.random.default_rng(9)
    baseline = 100 * (rng.random(2000) < 0.7)
    other = np.where(rng.random(2000) < 0.05, 100 - baseline, baseline)
    paired = paired_difference(other.astype(float), baseline.astype(float))
    apart = [interval_of_mean(each.astype(float)) for each in (other, baseline)]
    unpaired = np.hypot(*(each.high - each.low for each in apart))
    assert paired.high - paired.low < 0.5 * unpaired
    assert not paired.tie and unpaired / 2 > abs(paired.value), "apart, it would be called a tie"


@pytest.mark.parametrize(
    ("right", "of", "low", "high"),
    [
        (1, 1, 2.5, 100.0),
        (3, 3, 29.24, 100.0),
        (0, 3, 0.0, 70.76),
        (10, 10, 69.15, 100.0),
        (9, 10, 55.5, 99.75),
        (14, 20, 45.72, 88.11),
        (408, 408, 99.1, 100.0),
    ],
)
def test_a_handful_of_questions_gives_no_certainty(right: int, of: int, low: float, high: float) -> None:
    """About as wide as Clopper and Pearson's interval of a share, and just that where all are right or all wrong."""
    found = interval_of_mean(np.repeat([100.0, 0.0], [right, of - right]))
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.01 if right in (0, of) else 8)


def test_the_same_answers_to_three_questions_are_no_tie_to_rely_on() -> None:
    same = np.asarray([100.0, 0.0, 50.0])
    found = paired_difference(same, same)
    assert (found.value, found.tie) == (0.0, True)
    assert -found.low == found.high > 50
    many = paired_difference(np.zeros(12_000), np.zeros(12_000))
    assert (many.low, many.high) == (0.0, 0.0), "of thousands, nothing is left to tell apart"


def test_the_frontier_is_whatever_no_other_is_both_quicker_and_as_good_as() -> None:
    assert on_frontier([(1.0, 60.0), (2.0, 60.0), (3.0, 70.0), (4.0, 65.0), (5.0, 71.0)]) == [0, 2, 4]
    assert on_frontier([]) == []
