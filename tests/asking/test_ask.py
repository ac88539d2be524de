"""A backend that fails loses its own card, and stopping loses nobody's: one question to several backends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from helpers import QUESTION, TEXT

from qa_backends import catalog
from qa_backends.asking.ask import ask
from qa_backends.contract import Query
from qa_backends.errors import InputError
from qa_backends.progress import Cancelled
from qa_backends.runtime import Runtime

if TYPE_CHECKING:
    from qa_backends.asking.ask import Asking
    from qa_backends.catalog import Family
    from qa_backends.contract import SpanLogits, Windows

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
    alive, dead = ask(runtime, small_family, BOTH, Query(QUESTION, TEXT), "cpu", seconds=0.2).outcomes
    assert alive.reading is not None and alive.error is None
    assert dead.reading is None and "no memory left" in str(dead.error) and "ask again" in str(dead.error)
    again = ask(runtime, small_family, BOTH, Query(QUESTION, TEXT), "cpu", seconds=0)
    assert all(each.reading for each in again.outcomes), "asking again must start the backend afresh"


def test_an_engine_that_dies_between_turns_loses_its_card_only(
    small_family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = Runtime()
    with runtime.turn("cpu"):
        engine = runtime.get(small_family, BOTH[1], "cpu").engine
    real, calls = engine.forward, []

    def die_later(windows: Windows) -> SpanLogits:
        calls.append(windows)
        if len(calls) > 4:
            raise RuntimeError("lost the device")
        return real(windows)

    monkeypatch.setattr(engine, "forward", die_later)
    found = ask(runtime, small_family, BOTH, Query(QUESTION, TEXT), "cpu", seconds=1)
    assert found.outcomes[0].reading is not None
    assert "lost the device" in str(found.outcomes[1].error)


def test_a_build_that_cannot_be_written_is_a_sentence_on_its_card(
    small_family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QA_CACHE", "/proc/nowhere")
    backends = [BOTH[0], catalog.backend("pruned-ort")]
    found = ask(Runtime(), small_family, backends, Query(QUESTION, TEXT), "cpu", seconds=0)
    assert found.outcomes[0].reading is not None
    assert "getting ready" in str(found.outcomes[1].error)


def test_a_stop_while_a_backend_is_loaded_ends_the_asking_and_is_nobodys_failure(small_family: Family) -> None:
    runtime, seen = Runtime(), list[str]()

    def emit(state: Asking) -> None:
        seen.append(state.status)
        assert [each.error for each in state.outcomes] == [None, None]

    with pytest.raises(Cancelled):
        ask(
            runtime, small_family, BOTH, Query(QUESTION, TEXT), "cpu", seconds=0, emit=emit,
            stopped=lambda: any("loading small/pruned" in each for each in seen),
        )  # fmt: skip
    assert runtime.ahead() == 0
    again = ask(runtime, small_family, BOTH, Query(QUESTION, TEXT), "cpu", seconds=0)
    assert all(each.reading for each in again.outcomes)


def test_nothing_ticked_is_bad_input(runtime: Runtime, small_family: Family) -> None:
    with pytest.raises(InputError, match="Tick at least one"):
        ask(runtime, small_family, [], Query(QUESTION, TEXT), "cpu")
