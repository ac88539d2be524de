"""Backends taking turns, on invented ones that take a known time."""

from __future__ import annotations

import itertools
import time
from functools import partial
from typing import TYPE_CHECKING

import pytest

from qa_backends.contract import StageTimes
from qa_backends.measure.timing.load import LoadMeter
from qa_backends.measure.timing.rounds import WARM_UP_RUNS, Samples, blocks_for, take_turns, turns_fit

if TYPE_CHECKING:
    from collections.abc import Callable


def run_of(seconds: float, calls: list[str] | None = None, name: str = "") -> Callable[[], StageTimes]:
    """A run that says it took so long, and notes that it was called."""

    def run() -> StageTimes:
        if calls is not None:
            calls.append(name)
        return StageTimes(0.0, 0.0, seconds, 0.0)

    return run


class Clock:
    """What stands in for ``time`` where turns are taken: it goes on by what is slept on it, and by nothing else."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def perf_counter(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def run(self, seconds: float) -> StageTimes:
        self.sleep(seconds)
        return StageTimes(0.0, 0.0, seconds, 0.0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr("qa_backends.measure.timing.rounds.time", found)
    return found


def test_others_are_metered_while_turns_are_taken_and_not_while_they_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[str] = []
    monkeypatch.setattr(LoadMeter, "start", lambda _meter: done.append("on"))
    monkeypatch.setattr(LoadMeter, "stop", lambda _meter: done.append("off"))
    monkeypatch.setattr(LoadMeter, "share", lambda _meter: 0.1 * done.count("off"))
    shares = []
    for samples in take_turns({"a": run_of(0.001, done, "run")}, seconds=60, rounds=3):
        done.append("look")
        shares.append(samples.others)
    assert shares == [0.1, 0.2, pytest.approx(0.3)]
    metered = False
    for each in done:
        metered = {"on": True, "off": False}.get(each, metered)
        assert each in ("on", "off") or metered is (each == "run")


def test_backends_take_turns_in_alternating_order_after_warming_up(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr("qa_backends.measure.timing.rounds.settle", lambda: calls.append("settle"))
    runs = {name: run_of(0.001, calls, name) for name in "ab"}
    *_, samples = take_turns(runs, seconds=60, rounds=3)
    warm, rest = calls[: 2 * WARM_UP_RUNS], calls[2 * WARM_UP_RUNS :]
    assert samples.warm_up_runs == WARM_UP_RUNS
    assert warm.count("a") == warm.count("b") == WARM_UP_RUNS
    blocks = [("a", 2), ("b", 2), ("b", 4), ("a", 4), ("a", 4), ("b", 4)]
    assert rest == [call for name, runs in blocks for call in ["settle", *[name] * runs]], "a run more than is timed"
    assert len(samples.times["a"]) == len(samples.times["b"]) == 1 + 3 + 3


def test_nobody_always_follows_the_same_one_and_every_second_round_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """What ran before leaves its threads and what it had in the caches to who comes next."""
    calls: list[str] = []
    monkeypatch.setattr("qa_backends.measure.timing.rounds.settle", lambda: None)
    runs = {name: run_of(0.001, calls, name) for name in "abcdef"}
    *_, _ = take_turns(runs, seconds=60, rounds=40, per_block=1)
    blocks = calls[len(runs) * WARM_UP_RUNS :: 2]  # a run that is thrown away, and one that is timed
    rounds = [blocks[at : at + len(runs)] for at in range(0, len(blocks), len(runs))]
    assert len(rounds) == 40 and all(sorted(each) == list(runs) for each in rounds)
    assert rounds[0] == list(runs)
    assert all(back == there[::-1] for there, back in zip(rounds[::2], rounds[1::2], strict=True))
    before = {(one, other) for each in rounds for one, other in itertools.pairwise(each)}
    assert len(before) == len(runs) * (len(runs) - 1), "each has come right behind each other one"


@pytest.mark.parametrize(("seconds", "single"), [(6.0, False), (4.0, True)])
def test_blocks_shrink_only_where_the_rounds_that_are_missing_do_not_fit(
    clock: Clock, seconds: float, single: bool
) -> None:
    """Eleven rounds of a backend that takes 0.1 s need 5.7 s, warming up included."""
    rounds, per_block = blocks_for(30)
    *_, samples = take_turns({"a": partial(clock.run, 0.1)}, seconds=seconds, rounds=rounds, per_block=per_block)
    assert (1 in samples.blocks[1:]) is single
    assert single or sum(samples.blocks) == 31, "as many as p90 needs"


def test_where_five_rounds_do_not_fit_nothing_is_claimed(clock: Clock) -> None:
    assert list(take_turns({name: partial(clock.run, 0.1) for name in "ab"}, seconds=0.5)) == []
    assert clock.now_s < 1


def test_where_five_rounds_are_said_to_fit_the_warm_up_leaves_them_their_time(clock: Clock) -> None:
    """Slow backends, of which one run of each may take a fourteenth of the seconds; five rounds need ten of them."""
    runs = {name: partial(clock.run, 0.08) for name in "ab"}
    assert turns_fit(0.2, len(runs), 2.8)
    *_, samples = take_turns(runs, seconds=2.8, one_each_s=0.2, warm_up_share=0.5)
    assert len(samples.blocks) >= 5 and samples.speed_up("b", "a") is not None
    assert clock.now_s < 3.2


@pytest.mark.parametrize("cold_s", [0.0, 1.0])
def test_the_warm_up_leaves_slow_backends_their_time_where_nothing_was_known_of_them(
    clock: Clock, cold_s: float
) -> None:
    """A run of each takes an eighteenth of the seconds, however long the first took: half are not for warming up."""
    cold = iter([cold_s, cold_s])

    def run() -> StageTimes:
        clock.sleep(next(cold, 0.0))
        return clock.run(0.1)

    *_, samples = take_turns({"a": run, "b": run}, seconds=3.6, warm_up_share=0.5)
    assert len(samples.blocks) >= 5 and samples.speed_up("b", "a") is not None
    assert clock.now_s < 2 * cold_s + 4.5


def test_where_five_rounds_are_known_not_to_fit_nothing_is_run() -> None:
    calls: list[str] = []
    assert not turns_fit(0.5, 1, 5.0)
    assert list(take_turns({"a": run_of(0.5, calls, "a")}, seconds=5.0, one_each_s=0.5)) == []
    assert calls == []
    assert list(take_turns({}, seconds=5.0)) == [], "nor where there is nobody to run"


def test_the_time_in_which_engines_settle_counts_among_what_must_fit(clock: Clock) -> None:
    """Fast ones too: with nearly nothing to run, forty of them wait for each other 7 s in five rounds."""
    assert turns_fit(0.01, 40, 8.0) and not turns_fit(0.01, 40, 6.0)
    assert list(take_turns({str(name): partial(clock.run, 0.0001) for name in range(40)}, seconds=6.0)) == []
    assert clock.now_s < 0.1


def test_measuring_that_turns_out_too_slow_ends_before_its_time(clock: Clock) -> None:
    """Where the first rounds show that the fifth will not be reached, the rest of the time is not spent in vain."""
    found = list(take_turns({"a": partial(clock.run, 0.3)}, seconds=2.0, one_each_s=0.1))
    assert all(len(each.blocks) < 5 for each in found)
    assert clock.now_s < 1.8


def test_the_time_given_is_kept() -> None:
    """By the machine's own clock."""

    def run() -> StageTimes:
        time.sleep(0.005)
        return StageTimes(0.0, 0.0, 0.005, 0.0)

    began = time.perf_counter()
    *_, samples = take_turns({"a": run, "b": run}, seconds=3.0)
    assert time.perf_counter() - began < 6.0
    assert samples.speed_up("b", "a") is not None
    assert 1.5 < samples.spent_s < 6.0


def test_the_time_given_is_for_measuring_and_not_for_whoever_looks_on(clock: Clock) -> None:
    """Somebody who draws after every round, for longer than the round took, gets as many rounds."""

    def rounds(looking_s: float) -> Samples:
        last = Samples()
        for each in take_turns({name: partial(clock.run, 0.002) for name in "ab"}, seconds=1.5):
            clock.sleep(looking_s)
            last = each
        return last

    undisturbed, watched = rounds(0), rounds(0.1)
    assert len(watched.blocks) == len(undisturbed.blocks) >= 5
    assert watched.spent_s == pytest.approx(undisturbed.spent_s)


def test_samples_that_were_handed_out_do_not_grow() -> None:
    handed_out = list(take_turns({"a": run_of(0.001), "b": run_of(0.001)}, seconds=60, rounds=6))
    assert [len(each.blocks) for each in handed_out] == [1, 2, 3, 4, 5, 6]
    for each in handed_out:
        assert len(each.times["a"]) == len(each.times["b"]) == sum(each.blocks)


def test_a_backend_that_took_no_turns_is_compared_with_none() -> None:
    *_, samples = take_turns({"a": run_of(0.001), "b": run_of(0.002)}, seconds=60, rounds=6)
    assert samples.speed_up("a", "b") is not None
    assert samples.speed_up("a", "c") is None and samples.speed_up("c", "a") is None


@pytest.mark.parametrize(("runs", "rounds", "per_block"), [(5, 5, 1), (6, 6, 1), (9, 5, 2), (30, 11, 3), (31, 11, 3)])
def test_few_runs_come_in_small_blocks_so_that_there_are_five_rounds(runs: int, rounds: int, per_block: int) -> None:
    assert blocks_for(runs) == (rounds, per_block)
    assert rounds >= 5 and runs <= 1 + (rounds - 1) * per_block < runs + per_block
