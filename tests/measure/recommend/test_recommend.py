"""Which backend is advised: a set of backends whose times and qualities are known."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from helpers import soon

from qa_backends import catalog
from qa_backends.artefacts.steps import CHECKPOINT
from qa_backends.catalog import Backend, lookup
from qa_backends.measure.benchmark.plan import PIPELINE
from qa_backends.measure.recommend import answers, race, wish
from qa_backends.measure.recommend import recommend as module
from qa_backends.measure.recommend.heat import reading
from qa_backends.measure.recommend.recommend import recommend
from qa_backends.measure.recommend.search import Search, advice
from qa_backends.measure.recommend.wish import Wish
from qa_backends.measure.results.shipped import shipped_quality
from qa_backends.measure.timing.statistics import Difference, Ratio
from qa_backends.progress import UNWATCHED
from qa_backends.runtime import loading
from qa_backends.runtime.cost import LoadCost

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from conftest import AddFile

    from qa_backends.catalog import Family
    from qa_backends.contract import Engine, Query
    from qa_backends.measure.benchmark.contestants import Contestant
    from qa_backends.measure.recommend.search import Candidate
    from qa_backends.measure.results.records import QualityRecord
    from qa_backends.runtime import Runtime, Turn

pytestmark = pytest.mark.slow
MINILM = catalog.family("minilm")
WISH = Wish("minilm", lengths=(32, 64), seconds=20)
PACED = """
    import time
    from typing import ClassVar

    from qa_backends.contract import Choice
    from qa_backends.engines.fake import Fake

    class Paced(Fake):
        title: ClassVar = "Paced"
        short: ClassVar = "paced"
        label: ClassVar = "Paced"
        options: ClassVar = {"pace": {
            each: Choice(each)
            for each in (
                "1ms-dying-late", "5ms", "5ms-again", "7ms", "30ms", "lossy", "elsewhere", "unknown", "large", "dying"
            )
        }}

        answered = 0

        def forward(self, windows):
            pace = self.chosen["pace"]
            Paced.answered += pace == "1ms-dying-late" and windows.n_windows == 1
            if Paced.answered > 20 or (pace == "dying" and windows.n_windows == 1):
                Paced.answered = 0
                raise MemoryError("no memory left on the device")
            time.sleep(float(pace.partition("ms")[0]) / 1000 if "ms" in pace else 0.002)
            return super().forward(windows)
"""
MEGABYTES = {"5ms": 40, "5ms-again": 30, "large": 900}
LOSSES = {"lossy": 2.5}


def paced(pace: str, checkpoint: str = "pruned") -> Backend:
    return Backend(checkpoint, CHECKPOINT, "paced", (("pace", pace),))


@pytest.fixture
def offer(add_engine: AddFile, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Offers the baseline and backends of these paces, all of them tested but ``unknown``, with their known F1."""
    add_engine("paced", PACED)
    real_quality, real_load, real_plain = shipped_quality, loading.load_measured, catalog.plain
    real_check = answers.AnswerCheck.check

    def quality(family: Family, backend: Backend, device: str, data: str) -> QualityRecord | None:
        found = real_quality(family, replace(backend, engine="pytorch", options=()), device, data)
        if found is None or backend.engine != "paced":
            return found
        loss = LOSSES.get(backend.options[0][1], 0.5)
        return replace(found, f1_difference=Difference(-loss, -loss - 0.3, -loss + 0.3))

    def load(engine: Engine, artefact: Path, device: str) -> LoadCost:
        cost = real_load(engine, artefact, device)
        return replace(cost, memory_bytes=1_000_000 * MEGABYTES.get(engine.chosen.get("pace", ""), 50))

    def check(self: answers.AnswerCheck, candidate: Candidate) -> None:
        """The first word is no answer, but taken for one; one loses on other texts what it does not lose on SQuAD."""
        real_check(self, candidate)
        if "paced" in candidate.name and candidate.here:
            lost = Difference(-4.0, -6.0, -2.0) if "elsewhere" in candidate.name else Difference(-4.0, -9.0, 1.0)
            candidate.here = replace(candidate.here, difference=lost)

    def offering(*paces: str, others: tuple[Backend, ...] = ()) -> None:
        rows = (catalog.backend(catalog.BASELINE), *map(paced, paces), *others)
        monkeypatch.setattr(lookup, "BACKENDS", rows)

    def plain(backend: Backend) -> Backend:
        """What the pruned ones must answer as: each other."""
        return paced("5ms") if (backend.checkpoint, backend.engine) == ("pruned", "paced") else real_plain(backend)

    monkeypatch.setattr(catalog, "plain", plain)
    monkeypatch.setattr(module, "shipped_quality", quality)
    monkeypatch.setattr(module, "tested", lambda backend: ("pace", "unknown") not in backend.options)
    monkeypatch.setattr(loading, "load_measured", load)
    monkeypatch.setattr(answers, "CHECK_S", 0.5)
    monkeypatch.setattr(wish, "LEAST_SECONDS", 1)
    monkeypatch.setattr(answers.AnswerCheck, "check", check)
    return offering


def out_of(found: Search) -> dict[str, str]:
    return {each.name.removeprefix("pruned-paced-"): each.out for each in found.candidates if each.out}


def test_the_fastest_that_keeps_its_answers_is_advised_and_of_each_other_it_is_said_why_not(
    runtime: Runtime, offer: Callable[..., None]
) -> None:
    again = paced("5ms-again", "baseline")
    offer("5ms", "7ms", "30ms", "lossy", "elsewhere", "unknown", "large", "dying", others=(again,))
    states: list[Search] = []
    for name in ("pruned-paced-5ms", "pruned-paced-7ms", "pruned-paced-30ms"):
        runtime.drop(MINILM, name, "cpu")
    runtime.load(MINILM, paced("30ms"), "cpu", UNWATCHED)
    loaded_before = runtime.loaded("cpu")
    found = recommend(runtime, replace(WISH, memory_mb=100), emit=lambda each: states.append(each.copy()))
    assert (found.advised, found.tied, found.status) == ("pruned-paced-5ms", ("pruned-paced-5ms",), "")
    out = out_of(found)
    assert out.keys() == {
        "baseline", "7ms", "30ms", "lossy", "elsewhere", "unknown", "large", "dying", "baseline-paced-5ms-again",
    }  # fmt: skip
    assert "2.5" in out["lossy"] and "SQuAD" in out["lossy"]
    assert "−4.0 [−6.0 to −2.0] on other texts" in out["elsewhere"]
    assert "untested" in out["unknown"]
    assert "900 MB" in out["large"] and "100" in out["large"]
    assert "no memory left" in out["dying"]
    assert "answers" in out["baseline-paced-5ms-again"], "the baseline's weights that do not answer as the baseline"
    assert "times as long" in out["30ms"] and "first reading" in out["30ms"]
    assert "as long as Pruned, Paced, 5ms" in out["7ms"]
    best = found.candidate(found.advised)
    assert best.ms.keys() == {32, 64} and all(each > 5 for each in best.ms.values()) and best.turns >= 5
    assert best.speed_up is not None and best.speed_up.low > 1, "a model takes longer than that"
    assert {"lossy", "unknown"}.isdisjoint(each.name for each in found.raced)
    assert "the speed of the transformers pipeline" in advice(found)
    assert "−0.5 [−0.8 to −0.2] on SQuAD" in advice(found) and "other texts" in advice(found)
    assert [each.done for each in states] == sorted(each.done for each in states)
    in_heats = [each.timing for each in states if "warm up" in each.status or "turns of each" in each.status]
    assert in_heats and all(in_heats) and not states[0].timing, "whoever draws these, does it before the next turns"
    assert found.done == found.of and max(each.left_s for each in states) <= WISH.seconds
    more = set(runtime.loaded("cpu")) - set(loaded_before)
    assert more == {"minilm/pruned-paced-5ms"}, "who is out takes no memory"
    assert "minilm/pruned-paced-30ms" in runtime.loaded("cpu"), "unless it was loaded before"


def test_a_tie_is_said_as_one_and_the_smaller_is_advised(
    runtime: Runtime, offer: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qa_backends.measure.timing.statistics.NARROW", 0.5)  # so that few rounds tell
    offer("5ms", "5ms-again")
    found = recommend(runtime, replace(WISH, seconds=12))
    assert found.advised == "pruned-paced-5ms-again" and set(found.tied) == {"pruned-paced-5ms", found.advised}
    assert "It is a tie with Pruned, Paced, 5ms [" in advice(found) and "less memory" in advice(found)
    found.candidate("pruned-paced-5ms").behind = Ratio(0.994, 0.990, 0.999, 73)
    assert "tie with Pruned, Paced, 5ms [0.990–0.999], " in advice(found), "surely slower, by less than counts"


def test_more_may_be_lost_where_more_is_allowed(runtime: Runtime, offer: Callable[..., None]) -> None:
    offer("5ms", "lossy")
    assert recommend(runtime, replace(WISH, max_f1_loss=3, seconds=6)).advised == "pruned-paced-lossy"


def test_a_family_without_shipped_figures_is_judged_by_the_questions_answered_here(
    runtime: Runtime, offer: Callable[..., None], small: Family
) -> None:
    """Random weights answer nothing rightly, so that nothing can be lost; and the first word is no worse an answer."""
    offer("5ms", "lossy")
    found = recommend(runtime, replace(WISH, family=small.name, max_f1_loss=100, seconds=6))
    assert all(each.shipped is None and each.here is not None for each in found.raced)
    assert "SQuAD" not in advice(found)


def test_stopping_advises_nothing_and_keeps_what_was_found(runtime: Runtime, offer: Callable[..., None]) -> None:
    stop = threading.Event()

    def watch(search: Search) -> None:
        if "turns of each" in search.status:
            stop.set()

    offer("5ms", "5ms-again")
    for name in ("pruned-paced-5ms", "pruned-paced-5ms-again", PIPELINE):
        runtime.drop(MINILM, name, "cpu")
    runtime.load(MINILM, paced("5ms-again"), "cpu", UNWATCHED)
    loaded_before = set(runtime.loaded("cpu"))
    found = recommend(runtime, WISH, emit=watch, stopped=stop.is_set)
    assert soon(lambda: set(runtime.loaded("cpu")) == loaded_before), "what it had loaded takes no memory any more"
    assert found.advised == "" and advice(found) == "" and found.status == ""
    assert {each.name for each in found.raced} > {"pruned-paced-5ms"}


def test_who_has_no_time_for_five_turns_is_out(runtime: Runtime, offer: Callable[..., None]) -> None:
    offer()
    found = recommend(runtime, replace(WISH, lengths=(384,), batch=32, seconds=6))
    assert "Five turns do not fit" in found.candidate("baseline").out
    assert found.advised == "" and advice(found).startswith("No backend can be advised here")


def test_who_is_slow_only_at_first_races(
    runtime: Runtime, offer: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    cold = {"pruned-paced-5ms"}

    def slow_at_first(turn: Turn, contestant: Contestant, asked: Mapping[int, Sequence[Query]]) -> dict[int, float]:
        took = reading(turn, contestant, asked)
        if contestant.name in cold:
            cold.remove(contestant.name)
            return dict.fromkeys(took, 10_000.0)
        return took

    monkeypatch.setattr(race, "reading", slow_at_first)
    offer("5ms")
    found = recommend(runtime, replace(WISH, seconds=6))
    assert cold == set() and found.advised == "pruned-paced-5ms"


def test_whoever_was_beaten_by_one_that_fails_later_is_back(runtime: Runtime, offer: Callable[..., None]) -> None:
    offer("1ms-dying-late", "30ms")
    found = recommend(runtime, replace(WISH, max_f1_loss=5, seconds=6))
    assert "no memory left" in found.candidate("pruned-paced-1ms-dying-late").out
    assert found.advised in ("baseline", "pruned-paced-30ms"), "whichever is the faster on this machine"


def test_without_room_for_the_pipeline_the_time_is_all_that_is_said(
    runtime: Runtime, offer: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    offer("5ms", "7ms")
    monkeypatch.setattr(runtime, "fitting", lambda sizes, _device: [number == 0 for number in range(len(sizes))])
    found = recommend(runtime, replace(WISH, seconds=6))
    assert found.advised == "pruned-paced-5ms" and found.candidate(found.advised).speed_up is None
    assert "ms for a question of 32 tokens and one of 64" in advice(found)
    assert "do not fit into the memory budget" in found.candidate("pruned-paced-7ms").out
