"""What a visitor's buttons set off: work that was stopped draws nothing over what came after it."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import gradio as gr
import pytest
from helpers import QUESTION, TEXT

from qa_backends.web.ask.answering import CANCELLED, Answering
from qa_backends.web.ask.visits import Visit
from qa_backends.web.shared.stops import DRAWN_WITHIN_S, Stops

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qa_backends.runtime import Runtime

VISITOR: Any = SimpleNamespace(session_hash="somebody", headers={})
FORM = (TEXT, QUESTION, ["baseline"], "minilm", "cpu")


def asking(answering: Answering) -> Iterator[Any]:
    return answering.ask_now(Visit(), *FORM, VISITOR)


def looking(answering: Answering) -> Iterator[Any]:
    return answering.find(0, *FORM, VISITOR)


@pytest.mark.parametrize("begun", [asking, looking])
def test_what_is_cancelled_has_nothing_as_its_last_word(runtime: Runtime, begun: Any) -> None:
    answering = Answering(runtime)
    work = begun(answering)
    first = next(work)
    result, _, cancel = answering.cancelled(Visit(), TEXT, QUESTION, VISITOR)
    assert CANCELLED in result and not cancel.visible
    *_, last = [first, *work]
    assert len(last) == len(first) and all(each == gr.skip() for each in last)


def test_a_newer_question_ends_the_one_before_which_leaves_its_cancel_button_alone(runtime: Runtime) -> None:
    answering = Answering(runtime)
    older, newer = asking(answering), asking(answering)
    next(older)
    next(newer)
    assert all(each == gr.skip() for update in older for each in update)
    *_, last = newer
    assert not last[-1].visible and QUESTION in last[1]


def test_who_stops_work_waits_until_what_it_draws_is_handed_over() -> None:
    stops = Stops()
    stop = stops.begin(VISITOR)
    told: list[str] = []

    def draw() -> None:
        stop.wait()
        time.sleep(0.1)
        told.append("drawn")
        stops.over(VISITOR, stop)

    threading.Thread(target=draw, daemon=True).start()
    stops.end_and_wait(VISITOR)
    assert told == ["drawn"]


def test_who_stops_work_does_not_wait_for_what_draws_nothing() -> None:
    stops = Stops()
    stops.begin(VISITOR)
    began = time.monotonic()
    stops.end_and_wait(VISITOR)
    assert time.monotonic() - began < 10 * DRAWN_WITHIN_S
