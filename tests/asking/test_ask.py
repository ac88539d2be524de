"""One question to several backends: who fails loses its own card, stopping loses nobody's, memory is kept within."""

from __future__ import annotations

import re
import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from helpers import QUESTION, TEXT, random_bert
from paced import PACED

from qa_backends import catalog
from qa_backends.asking.ask import Asking, ask
from qa_backends.asking.comparison import Comparison, comparison_of
from qa_backends.catalog import Family
from qa_backends.checkpoints import sources
from qa_backends.checkpoints.manifest import content_hash
from qa_backends.checkpoints.sources import Source
from qa_backends.contract import Query
from qa_backends.engines.fake import Fake
from qa_backends.errors import ArtefactError, BackendFailed, InputError
from qa_backends.measure.timing.load import LoadMeter
from qa_backends.progress import Cancelled, Progress
from qa_backends.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from qa_backends.catalog import Backend
    from qa_backends.contract import SpanLogits, Windows
    from qa_backends.reader.reader import Prepared

    AddFile = Callable[[str, str], None]

QUERY = Query(QUESTION, TEXT)
BOTH = [catalog.backend("baseline"), catalog.backend("pruned")]


def test_an_engine_that_dies_is_reported_while_the_others_answer(
    small_family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = Runtime()
    with runtime.turn("cpu"):
        broken = runtime.get(small_family, BOTH[1], "cpu").engine

    def die(_windows: Windows) -> SpanLogits:
        raise MemoryError("no memory left on the device")

    monkeypatch.setattr(broken, "forward", die)
    alive, dead = ask(runtime, small_family, BOTH, QUERY, "cpu", seconds=0.2).outcomes
    assert alive.reading is not None and alive.error is None
    assert dead.reading is None and "no memory left" in str(dead.error) and "ask again" in str(dead.error)
    again = ask(runtime, small_family, BOTH, QUERY, "cpu", seconds=0)
    assert all(each.reading for each in again.outcomes), "asking again must start the backend afresh"


@pytest.mark.usefixtures("quick")
def test_states_behind_which_turns_are_timed_say_so(small_family: Family) -> None:
    """So that whoever draws them does it before the turn, or not at all."""
    found: dict[str, bool] = {}

    def emit(state: Asking) -> None:
        found[state.status] = state.timing

    ask(Runtime(), small_family, PACED, QUERY, "cpu", seconds=0.5, emit=emit)
    turns = {status: timed for status, timed in found.items() if status.startswith("Taking turns")}
    assert len(turns) > 2 and all(turns.values())
    assert all(found[each] for each in found if "answering" in each), "the first answer is timed too"
    assert not found["Reading the text …"]


@pytest.mark.usefixtures("quick")
def test_an_engine_that_dies_between_turns_loses_its_card_only(
    small_family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = Runtime()
    with runtime.turn("cpu"):
        engine = runtime.get(small_family, PACED[1], "cpu").engine
    real, calls = engine.forward, []

    def die_later(windows: Windows) -> SpanLogits:
        calls.append(windows)
        if len(calls) > 4:
            raise RuntimeError("lost the device")
        return real(windows)

    monkeypatch.setattr(engine, "forward", die_later)
    shares = iter([0.1, *[0.9] * 100])
    monkeypatch.setattr(LoadMeter, "share", lambda _meter: next(shares))
    found = ask(runtime, small_family, PACED, QUERY, "cpu", seconds=1)
    assert found.outcomes[0].reading is not None and found.busy == 0.1, "of the first readings, which are shown"
    assert "lost the device" in str(found.outcomes[1].error)
    assert found.turns_notice == "One reading of each: a backend failed while they took turns."
    assert found.outcomes[1].answer is None, "who failed has no answer, though it gave one"


def test_a_build_that_cannot_be_written_is_a_sentence_on_its_card(
    small_family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QA_CACHE", "/proc/nowhere")
    backends = [BOTH[0], catalog.backend("pruned-ort")]
    found = ask(Runtime(), small_family, backends, QUERY, "cpu", seconds=0)
    assert found.outcomes[0].reading is not None
    assert "getting ready" in str(found.outcomes[1].error)


def unpacked(folder: Path) -> Family:
    """A family of one's own checkpoint, which is packed when it is asked of."""
    checkpoint = random_bert(folder, seed=71)
    return Family("unpacked", "Unpacked", (("baseline", Source(folder=checkpoint, contents=content_hash(checkpoint))),))


@pytest.mark.parametrize(
    "error", [MemoryError("no memory left"), OSError("no disk left"), ArtefactError("No weights.")]
)
def test_where_none_can_be_made_ready_each_says_why_and_who_only_reads_is_told_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_packing: object) -> None:
        raise error

    monkeypatch.setattr(sources, "pack_checkpoint", fail)
    runtime, family = Runtime(), unpacked(tmp_path / "mine")
    found = ask(runtime, family, [BOTH[0], catalog.backend("baseline-ort")], QUERY, "cpu")
    assert all(str(error) in str(each.error) for each in found.outcomes) and found.status == ""
    with pytest.raises((BackendFailed, ArtefactError), match=str(error)):
        runtime.reader(family)


def test_a_stop_while_a_backend_is_loaded_ends_the_asking_and_is_nobodys_failure(small_family: Family) -> None:
    runtime, seen = Runtime(), list[str]()

    def emit(state: Asking) -> None:
        seen.append(state.status)
        assert [each.error for each in state.outcomes] == [None, None]

    with pytest.raises(Cancelled):
        ask(
            runtime, small_family, BOTH, QUERY, "cpu", seconds=0, emit=emit,
            stopped=lambda: any("loading small/pruned" in each for each in seen),
        )  # fmt: skip
    assert runtime.ahead() == 0
    again = ask(runtime, small_family, BOTH, QUERY, "cpu", seconds=0)
    assert all(each.reading for each in again.outcomes)


def test_nothing_ticked_is_bad_input(runtime: Runtime, small_family: Family) -> None:
    with pytest.raises(InputError, match="Tick at least one"):
        ask(runtime, small_family, [], QUERY, "cpu")


@pytest.mark.parametrize(
    ("query", "said"),
    [(Query("", TEXT), "no question"), (Query(QUESTION, " \n"), "no text"), (Query("x" * 2001, TEXT), "2,000")],
)
def test_what_cannot_be_asked_is_bad_input(runtime: Runtime, small_family: Family, query: Query, said: str) -> None:
    with pytest.raises(InputError, match=said):
        ask(runtime, small_family, BOTH, query, "cpu")


@pytest.mark.parametrize("by", ["what it tells raises", "it is told to stop"])
def test_a_stop_while_a_backend_is_built_ends_the_asking_and_is_nobodys_failure(
    small_family: Family, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, by: str
) -> None:
    monkeypatch.setenv("QA_CACHE", str(tmp_path))
    runtime, seen = Runtime(), list[Asking]()

    def emit(state: Asking) -> None:
        seen.append(state)
        if by == "what it tells raises":
            raise Cancelled

    def stopped() -> bool:
        return by == "it is told to stop" and bool(seen)

    backends = [BOTH[0], catalog.backend("pruned-ort")]
    with pytest.raises(Cancelled):
        ask(runtime, small_family, backends, QUERY, "cpu", emit=emit, stopped=stopped)
    assert seen and [each.error for each in seen[-1].outcomes] == [None, None]
    assert runtime.ahead() == 0


@pytest.mark.usefixtures("quick")
def test_a_stop_between_turns_keeps_what_was_handed_out(small_family: Family) -> None:
    handed_out: list[Comparison] = []

    def emit(state: Asking) -> None:
        handed_out.append(comparison_of(state))

    with pytest.raises(Cancelled):
        ask(
            Runtime(), small_family, PACED, QUERY, "cpu", seconds=60, emit=emit,
            stopped=lambda: bool(handed_out) and handed_out[-1].cards[1].speed_up is not None,
        )  # fmt: skip
    assert all(card.answered and card.error is None for card in handed_out[-1].cards)
    assert handed_out[-1].cards[1].runs >= 5


@pytest.mark.usefixtures("quick")
def test_who_asks_is_waited_for_and_still_gets_the_turns_of_the_seconds_given(small_family: Family) -> None:
    """Though the drawing of four rounds takes longer than all of them were given."""

    def drawing(state: Asking) -> None:
        if 0 < len(state.samples.blocks) < 5:
            time.sleep(0.5)

    found = ask(Runtime(), small_family, PACED, QUERY, "cpu", seconds=1.5, emit=drawing)
    assert len(found.samples.blocks) >= 5


@pytest.mark.usefixtures("quick")
def test_the_first_question_of_all_takes_turns_though_its_text_was_slow_to_cut(
    small_family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The turns do not cut it again, so they are as quick as for any other."""
    runtime, cut = Runtime(), list[Query]()
    reader = runtime.reader(small_family)
    real = reader.prepare

    def prepare(query: Query) -> Prepared:
        cut.append(query)
        return replace(real(query), tokenise_s=0.3) if len(cut) == 1 else real(query)

    monkeypatch.setattr(reader, "prepare", prepare)
    found = ask(runtime, small_family, PACED, QUERY, "cpu", seconds=0.8)
    assert len(found.samples.blocks) >= 5


@pytest.mark.usefixtures("quick")
def test_a_comparison_is_of_its_moment_and_does_not_change_when_more_is_measured(small_family: Family) -> None:
    states: list[Asking] = []
    comparisons: list[Comparison] = []
    written: list[str] = []

    def emit(state: Asking) -> None:
        states.append(state.copy())
        comparisons.append(comparison_of(state))
        written.append(repr(comparisons[-1]))

    ask(Runtime(), small_family, PACED, QUERY, "cpu", seconds=0.8, emit=emit)
    assert [repr(each) for each in comparisons] == written
    assert [repr(comparison_of(each)) for each in states] == written, "nor does a copy of what it is made of"
    assert len(set(written)) > 5


FAKES = [catalog.backend("pruned-fake"), PACED[0], catalog.backend("baseline-fake")]


def watched(runtime: Runtime, family: Family, backends: list[Backend]) -> tuple[Asking, list[str]]:
    """What was found, and the backends that were loaded, in order."""
    said: list[str] = []

    def emit(state: Asking) -> None:
        if not said or said[-1] != state.status:
            said.append(state.status)

    found = ask(runtime, family, backends, QUERY, "cpu", seconds=1.5, emit=emit)
    loaded = [re.match(r"(?:\d of \d: )?loading .*?/(\S+)", each) for each in said]
    return found, [each[1] for each in loaded if each]


def size_of(family: Family, *backends: Backend) -> int:
    runtime = Runtime()
    return sum(runtime.size_of(family, each, "cpu") for each in backends)


@pytest.mark.usefixtures("quick")
def test_within_the_memory_every_backend_takes_turns_and_is_loaded_once(small_family: Family) -> None:
    found, loads = watched(Runtime(budget_bytes=size_of(small_family, *FAKES)), small_family, FAKES)
    assert loads == [each.name for each in FAKES]
    assert set(found.samples.times) == {each.name for each in FAKES}


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("fits", "compared"), [(2, {"baseline", "pruned-fake"}), (1, {"baseline"})])
def test_beyond_the_memory_all_answer_and_only_what_fits_beside_the_baseline_is_compared(
    small_family: Family, fits: int, compared: set[str]
) -> None:
    """The baseline first of all, though it was not named first: without it there is nothing to compare with."""
    budget = size_of(small_family, *[FAKES[1], FAKES[0]][:fits])
    found, loads = watched(Runtime(budget_bytes=budget), small_family, FAKES)
    assert all(each.reading is not None and each.error is None for each in found.outcomes)
    assert set(found.samples.times) == compared and len(found.samples.blocks) >= 5
    assert len(loads) <= len(FAKES) + fits, "loaded once to answer, and at most once more to take turns"
    comparison = comparison_of(found)
    assert {card.backend for card in comparison.cards if card.speed_up} == compared - {"baseline"}
    assert all(card.answered and card.latency_ms for card in comparison.cards)
    assert {card.backend for card in comparison.cards if card.runs} == compared


@pytest.mark.usefixtures("quick")
def test_a_backend_that_cannot_be_loaded_again_for_its_turns_loses_its_card_only(
    small_family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had made room for another one."""
    real, loads = Fake.load, Counter[str]()

    def load(self: Fake, artefact: Path, device: str) -> None:
        loads[artefact.name] += 1
        if loads["pruned"] > 1:
            raise ArtefactError("The file is gone.")
        real(self, artefact, device)

    monkeypatch.setattr(Fake, "load", load)
    budget = size_of(small_family, FAKES[1], FAKES[0])
    found, _ = watched(Runtime(budget_bytes=budget), small_family, FAKES)
    assert [each.error for each in found.outcomes] == ["The file is gone.", None, None]
    assert found.outcomes[0].answer is None and set(found.samples.times) == {"baseline"}


@pytest.mark.usefixtures("quick")
def test_a_backend_whose_build_is_gone_before_its_turns_loses_its_card_only(
    small_family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Runtime.size_of

    def size_of(self: Runtime, family: Family, backend: Backend, device: str) -> int:
        if backend == FAKES[0]:
            raise ArtefactError("The folder is gone.")
        return real(self, family, backend, device)

    monkeypatch.setattr(Runtime, "size_of", size_of)
    found, _ = watched(Runtime(), small_family, FAKES)
    assert [each.error for each in found.outcomes] == ["The folder is gone.", None, None]
    assert set(found.samples.times) == {"baseline", "baseline-fake"}


@pytest.mark.usefixtures("quick")
def test_a_baseline_that_cannot_answer_leaves_the_others_without_a_ratio(
    small_family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = Runtime()
    real = runtime.make_ready

    def make_ready(family: Family, backend: Backend, device: str, progress: Progress) -> Path:
        if backend.name == "baseline":
            raise InputError("Not this one.")
        return real(family, backend, device, progress)

    monkeypatch.setattr(runtime, "make_ready", make_ready)
    comparison = comparison_of(ask(runtime, small_family, FAKES, QUERY, "cpu", seconds=1))
    assert comparison.baseline is None and comparison.fastest is None
    assert [card.error for card in comparison.cards] == [None, "Not this one.", None]
    assert all(card.speed_up is None and card.same_answer is None for card in comparison.answered)
    assert all(card.runs >= 5 for card in comparison.answered), "they are timed all the same"
