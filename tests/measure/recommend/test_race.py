"""Who is out of a race, when it ends, and who is advised: on invented times, with no model loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from measure.invented import MACHINE

from qa_backends.contract import StageTimes
from qa_backends.errors import InputError, QAError
from qa_backends.measure.benchmark.contestants import ContestantFailedError
from qa_backends.measure.benchmark.plan import PIPELINE
from qa_backends.measure.recommend.heat import Heat
from qa_backends.measure.recommend.race import Race
from qa_backends.measure.recommend.search import Candidate, Search, advice
from qa_backends.measure.recommend.wish import Wish
from qa_backends.measure.timing.rounds import Samples
from qa_backends.measure.timing.statistics import Ratio
from qa_backends.progress import UNWATCHED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from qa_backends.measure.benchmark.contestants import Contestant
    from qa_backends.runtime import Runtime, Turn

WISH = Wish("minilm", lengths=(32, 64), seconds=20)
LUCKY = (10.1, 10.1, *[11.0] * 8)
"""Milliseconds in ten rounds: surely slower than 10 alone, and not among many, of whom one may be as unlucky."""
MANY = {"fastest": [10.0] * 10, "lucky": LUCKY, **{f"slow {number}": [30.0] * 10 for number in range(9)}}


def heat_of(ms: Mapping[str, Sequence[float]]) -> Heat:
    """Of the whole answers' milliseconds in each round, a quarter at the first length and the rest at the other."""
    times = {
        f"{name} {tokens}": [StageTimes(0.0, 0.0, share * each / 1000, 0.0) for each in rounds]
        for name, rounds in ms.items()
        for tokens, share in zip(WISH.lengths, (0.25, 0.75), strict=True)
    }
    return Heat(Samples(times, blocks=[1] * len(next(iter(ms.values())))), WISH.lengths)


def steady(rounds: int = 10, **ms: float) -> dict[str, list[float]]:
    return {name: [each] * rounds for name, each in ms.items()}


def race_of(runtime: Runtime, found: Heat, names: Sequence[str], megabytes: Sequence[int] = ()) -> tuple[Race, Search]:
    """A race that has come to this heat."""
    search = Search(WISH, MACHINE, [Candidate(name, name.title(), ms=found.p50_ms(name)) for name in names])
    for candidate, size in zip(search.candidates, megabytes, strict=False):
        candidate.memory_bytes = size * 1_000_000
    return Race(runtime, search, UNWATCHED), search


def test_runs_of_the_same_round_make_one_whole_over_all_lengths() -> None:
    """One that is quick at one length where it is slow at the other takes the same time throughout."""
    quick, slow = [0.001, 0.004] * 5, [0.009, 0.006] * 5
    times = {"a 32": quick, "a 64": slow, "b 32": [0.010] * 10, "b 64": [0.010] * 10}
    runs = {name: [StageTimes(0.0, 0.0, each, 0.0) for each in taken] for name, taken in times.items()}
    found = Heat(Samples(runs, blocks=[1, 3, 3, 1, 1, 1]), WISH.lengths)
    ratio = found.speed_up("a", "b")
    assert ratio is not None and (ratio.low, ratio.value, ratio.high) == pytest.approx((2, 2, 2))
    assert (found.rounds, found.runs) == (6, 10)
    assert found.p50_ms("a") == pytest.approx({32: 2.5, 64: 7.5})
    assert found.speed_up("a", "c") is None and found.speed_up("c", "a") is None


@pytest.mark.parametrize(("ms", "out"), [(10.15, False), (10.25, True)])
def test_who_is_surely_slower_is_out_and_what_is_within_two_percent_is_as_fast(
    runtime: Runtime, ms: float, out: bool
) -> None:
    found = heat_of(steady(fastest=10.0, other=ms))
    race, search = race_of(runtime, found, ["other", "fastest"])
    search.candidate("fastest").behind = Ratio(1.5, 1.4, 1.6, 5)  # as of an earlier heat
    race._drop_slower(found, last=False)
    fastest, other = search.raced
    assert (fastest.out, fastest.behind) == ("", None)
    assert other.behind is not None and other.behind.value == pytest.approx(ms / 10)
    assert bool(other.out) is out and other.slower_than == ("fastest" if out else "")
    if out:
        assert other.out == "It takes 1.02× [1.02–1.02] as long as Fastest, 10 turns of each."


def test_fewer_than_ten_rounds_drop_nobody_from_the_race_and_are_no_sure_sign_at_its_end(runtime: Runtime) -> None:
    found = heat_of(steady(9, fastest=10.0, other=12.0))
    race, search = race_of(runtime, found, ["fastest", "other"])
    race._drop_slower(found, last=False)
    assert [each.name for each in search.left] == ["fastest", "other"], "what five rounds say is often mere luck"
    race._drop_slower(found, last=True)
    assert search.candidate("other").out == (
        "It took 1.20× [1.20–1.20] as long as Fastest, in only 9 turns of each: give it more seconds to be sure."
    )


def test_only_the_last_heat_leaves_anybody_out_for_want_of_time(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    race, search = race_of(runtime, heat_of(steady(fastest=10.0, other=20.0)), ["fastest", "other"])
    monkeypatch.setattr(race, "_line_up", lambda **_: [])
    monkeypatch.setattr(race, "_take_turns", lambda *_: None)
    assert race._heat("Sifting", 1.0, lambda _: True) is None
    assert [each.name for each in search.left] == ["fastest", "other"]
    with pytest.raises(InputError, match="Five turns of Fastest alone do not fit into 2 s"):
        race._heat("Last heat", 2.0, lambda _: True, last=True)
    assert "There was no time to race it" in search.candidate("other").out


def test_who_is_back_because_another_failed_races_only_where_there_is_room(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["pruned", "baseline", "pruned-ort", "pruned-ov"]
    found = heat_of(steady(**{name: 10.0 + place for place, name in enumerate(names)}))
    race, search = race_of(runtime, found, names)
    for name in ("pruned-ort", "pruned-ov"):
        search.candidate(name).lose_to(search.candidate("pruned"), "no room")
    lined_up: list[list[str]] = []

    def take_turns(_turn: Turn, _what: str, contestants: Sequence[Contestant], *_: object) -> Heat:
        lined_up.append([each.name for each in contestants])
        if "pruned" in lined_up[-1]:
            raise ContestantFailedError("pruned", QAError("no memory left"))
        return found

    monkeypatch.setattr(race, "_take_turns", take_turns)
    monkeypatch.setattr(runtime, "size_of", lambda *_: 1)
    monkeypatch.setattr(runtime, "fitting", lambda sizes, _device: [place < 2 for place, _ in enumerate(sizes)])
    assert race._heat("Last heat", 5.0, lambda _: True, last=True) is found
    assert lined_up == [["pruned", "baseline"], ["baseline", "pruned-ort"]]
    assert "do not fit into the memory budget" in search.candidate("pruned-ov").out


def test_who_looks_slower_only_because_many_race_is_not_out(runtime: Runtime) -> None:
    found = heat_of(MANY)
    for names, out in ((["fastest", "lucky"], True), (list(MANY), False)):
        race, search = race_of(runtime, found, names)
        race._drop_slower(found, last=False)
        assert bool(search.candidate("lucky").out) is out
        race, _ = race_of(runtime, found, names)
        assert race._parted(found) is out


@pytest.mark.parametrize(("rounds", "ends"), [(5, False), (10, True), (11, False), (20, True), (30, False), (40, True)])
def test_the_last_heat_may_end_when_its_rounds_have_doubled(runtime: Runtime, rounds: int, ends: bool) -> None:
    found = heat_of(steady(rounds, fastest=10.0, other=20.0))
    race, _ = race_of(runtime, found, ["fastest", "other"])
    assert race._parted(found) is ends


@pytest.mark.parametrize(
    ("ms", "pipeline", "ends"),
    [(20.0, (25.0, 25.0), True), (20.0, (20.0, 30.0), False), (10.1, (25.0, 25.0), False)],
    ids=["all is known", "the pipeline's pace is not", "the fastest is not"],
)
def test_the_last_heat_goes_on_until_all_is_known(
    runtime: Runtime, ms: float, pipeline: tuple[float, float], ends: bool
) -> None:
    found = heat_of({**steady(fastest=10.0, other=ms), PIPELINE: [*pipeline] * 5})
    race, _ = race_of(runtime, found, ["fastest", "other"])
    assert race._parted(found) is ends


@pytest.mark.parametrize(
    ("megabytes", "advised"),
    [((50, 40, 30), "third"), ((50, 30, 40), "second"), ((50, 46, 60), "fastest"), ((), "fastest")],
    ids=["the least", "the least, not the last", "none clearly", "unknown"],
)
def test_of_those_as_fast_as_the_fastest_the_one_that_takes_the_least_memory_is_advised(
    runtime: Runtime, megabytes: tuple[int, ...], advised: str
) -> None:
    names = ["fastest", "second", "third"]
    found = heat_of({**steady(fastest=10.0, second=10.05, third=10.1, beaten=20.0), PIPELINE: [30.0] * 10})
    race, search = race_of(runtime, found, [*names, "beaten"], megabytes)
    search.candidate("beaten").out = "It was slower."
    race._choose(found)
    assert (search.advised, search.tied) == (advised, tuple(names))
    for each in search.left:
        assert each.speed_up == found.speed_up(each.name, PIPELINE) and each.speed_up is not None
        assert each.behind == (None if each.name == advised else found.speed_up(advised, each.name))
    assert search.candidate("beaten").speed_up is None


def test_what_takes_less_memory_is_not_advised_where_few_turns_say_too_little_of_its_pace(runtime: Runtime) -> None:
    found = heat_of({**steady(fastest=10.0), "light": [9.0, 9.5, 13.0, 14.0, 14.5] * 2, PIPELINE: [30.0] * 10})
    race, search = race_of(runtime, found, ["fastest", "light"], (50, 30))
    race._choose(found)
    assert search.advised == "fastest" and search.tied == ("fastest", "light")
    assert "more seconds may tell" in advice(search)
