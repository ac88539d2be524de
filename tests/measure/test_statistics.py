"""Statements made of samples, on invented numbers."""

from __future__ import annotations

import numpy as np
import pytest

from qa_backends.contract import StageTimes
from qa_backends.measure.rounds import WARM_UP_RUNS, blocks_for, take_turns
from qa_backends.measure.statistics import speed_up, summarise, unstable
from qa_backends.web.wording import ratio_sentence


def test_the_ratio_is_that_of_medians_and_its_interval_holds_it() -> None:
    noise = np.random.default_rng(1).normal(1, 0.02, size=(2, 40))
    ratio = speed_up(list(0.030 * noise[0]), list(0.010 * noise[1]))
    assert ratio is not None
    assert ratio.value == pytest.approx(3.0, rel=0.03)
    assert ratio.low <= ratio.value <= ratio.high
    assert 0 < ratio.high - ratio.low < 0.2
    assert not ratio.tie and ratio.runs == 40
    assert ratio_sentence(ratio).startswith("3.0× faster [")


def test_the_interval_is_the_same_for_the_same_samples() -> None:
    samples = list(np.random.default_rng(2).gamma(5, 1, size=30)), list(np.random.default_rng(3).gamma(5, 1, size=30))
    assert speed_up(*samples) == speed_up(*samples)


def test_no_difference_is_a_tie() -> None:
    rng = np.random.default_rng(4)
    ratio = speed_up(list(rng.normal(1, 0.2, 30)), list(rng.normal(1, 0.2, 30)))
    assert ratio is not None and ratio.tie
    assert ratio_sentence(ratio).startswith("a tie")


def test_slower_is_said_as_slower() -> None:
    ratio = speed_up([1.0, 1.01, 0.99, 1.0, 1.0, 1.0], [2.0, 2.01, 1.99, 2.0, 2.0, 2.0])
    assert ratio is not None
    assert ratio_sentence(ratio) == "2.0× slower [2–2], 6 runs"


def test_four_pairs_are_too_few_for_an_interval() -> None:
    assert speed_up([1.0] * 4, [2.0] * 4) is None
    assert speed_up([1.0] * 9, [2.0] * 4) is None
    assert speed_up([1.0] * 5, [2.0] * 5) is not None


def test_a_round_that_was_slow_for_all_does_not_widen_the_interval() -> None:
    slow_rounds = np.where(np.arange(40) % 2, 1.0, 5.0)
    together = speed_up(list(3 * slow_rounds), list(slow_rounds))
    assert together is not None
    assert together.value == pytest.approx(3.0)
    assert together.high - together.low < 1e-9


def test_the_90th_percentile_needs_thirty_runs() -> None:
    assert summarise(list(range(29))).p90_s is None
    many = summarise([float(each) for each in range(1, 101)])
    assert many.p50_s == 50.5
    assert many.p90_s == pytest.approx(90.1)
    with pytest.raises(ValueError, match="no samples"):
        summarise([])


def fake_run(seconds: float, calls: list[str], name: str) -> StageTimes:
    calls.append(name)
    return StageTimes(0.0, 0.0, seconds, 0.0)


def test_backends_take_turns_in_alternating_order_after_warming_up() -> None:
    calls: list[str] = []
    runs = {name: lambda name=name: fake_run(0.001, calls, name) for name in "ab"}
    *_, samples = take_turns(runs, seconds=60, rounds=3)
    warm, rest = calls[: 2 * WARM_UP_RUNS], calls[2 * WARM_UP_RUNS :]
    assert samples.warm_up_runs == WARM_UP_RUNS
    assert warm.count("a") == warm.count("b") == WARM_UP_RUNS
    blocks = [name for at, name in enumerate(rest) if at == 0 or rest[at - 1] != name]
    assert blocks == ["a", "b", "a", "b"], "a b, b a, a b: equal neighbours run together"
    assert len(samples.times["a"]) == len(samples.times["b"]) == 1 + 3 + 3


def test_where_five_rounds_do_not_fit_nothing_is_claimed() -> None:
    import time

    def slow() -> StageTimes:
        time.sleep(0.1)
        return StageTimes(0.0, 0.0, 0.1, 0.0)

    began = time.perf_counter()
    assert list(take_turns({"a": slow, "b": slow}, seconds=0.5)) == []
    assert time.perf_counter() - began < 2


def test_the_time_given_is_kept() -> None:
    import time

    def quick() -> StageTimes:
        time.sleep(0.005)
        return StageTimes(0.0, 0.0, 0.005, 0.0)

    began = time.perf_counter()
    *_, samples = take_turns({"a": quick, "b": quick}, seconds=1.0)
    assert time.perf_counter() - began < 2.0
    assert samples.speed_up("b", "a") is not None


def test_runs_of_one_round_do_not_count_as_independent() -> None:
    """Rounds that differ while their runs are alike: the interval is that of the rounds."""
    rng = np.random.default_rng(5)
    level = np.repeat(rng.normal(1, 0.2, size=12), 3)
    slow, fast = list(3 * np.ones(36)), list(level)
    by_round, by_run = speed_up(slow, fast, [3] * 12), speed_up(slow, fast)
    assert by_round is not None and by_run is not None
    assert by_round.value == by_run.value
    assert by_round.high - by_round.low > 1.2 * (by_run.high - by_run.low)


def test_rounds_of_different_sizes_are_resampled_whole() -> None:
    same = speed_up([2.0] * 13, [1.0] * 13, [1, 3, 3, 3, 3])
    assert same is not None and (same.value, same.low, same.high, same.runs) == (2.0, 2.0, 2.0, 13)
    assert speed_up([2.0] * 10, [1.0] * 10, [1, 3, 3, 3]) is None, "four rounds are too few"


@pytest.mark.parametrize(
    ("medians", "expected"),
    [((1.0, 1.0, 1.0), False), ((1.0, 1.05, 1.09), False), ((1.0, 1.05, 1.12), True), ((1.12, 1.0, 1.0), True)],
)
def test_a_row_is_unstable_when_its_last_three_blocks_differ(medians: tuple[float, ...], expected: bool) -> None:
    samples = [9.0] + [value + noise for value in medians for noise in (-0.5, 0.0, 0.5)]
    assert unstable(samples, [1, 3, 3, 3]) is expected


def test_what_came_before_the_last_three_blocks_does_not_make_a_row_unstable() -> None:
    assert not unstable([5.0, 1.0, 1.0, 1.0], [1, 1, 1, 1])
    assert not unstable([5.0, 1.0], [1, 1]), "two blocks say nothing yet"


def test_the_99th_percentile_needs_a_thousand_runs() -> None:
    assert summarise([1.0] * 999).p99_s is None
    assert summarise([float(each) for each in range(1, 1001)]).p99_s == pytest.approx(990.01)


@pytest.mark.parametrize(("runs", "rounds", "per_block"), [(5, 5, 1), (6, 6, 1), (9, 5, 2), (30, 11, 3), (31, 11, 3)])
def test_few_runs_come_in_small_blocks_so_that_there_are_five_rounds(runs: int, rounds: int, per_block: int) -> None:
    assert blocks_for(runs) == (rounds, per_block)
    assert rounds >= 5 and runs <= 1 + (rounds - 1) * per_block < runs + per_block
