"""Statements made of samples, on invented numbers."""

from __future__ import annotations

import numpy as np
import pytest

from qa_backends.contract import StageTimes
from qa_backends.measure.rounds import WARM_UP_RUNS, take_turns
from qa_backends.measure.statistics import speed_up, summarise
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
