"""What a visitor's buttons set off: work that was stopped draws nothing over what came after it."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import gradio as gr
import pytest
from helpers import QUESTION, TEXT

from qa_backends.errors import BackendFailed
from qa_backends.web.ask.answering import CANCELLED, Answering
from qa_backends.web.ask.visits import Visit
from qa_backends.web.shared.stops import UNFORESEEN, Stops

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qa_backends.catalog import Backend
    from qa_backends.runtime import Runtime

VISITOR: Any = SimpleNamespace(session_hash="somebody", headers={})
PATIENCE_S = 60.0
FORM = (TEXT, QUESTION, ["baseline"], "minilm", "cpu")


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who ends work waits for it however slow the machine is."""
    monkeypatch.setattr("qa_backends.web.shared.stops.DRAWN_WITHIN_S", PATIENCE_S)


def asking(answering: Answering) -> Iterator[Any]:
    return answering.ask_now(Visit(), *FORM, VISITOR)


def measuring_longer(answering: Answering) -> Iterator[Any]:
    return answering.ask_longer(Visit(), VISITOR)


def looking(answering: Answering) -> Iterator[Any]:
    return answering.find(*FORM, VISITOR)


def cancelling_behind(answering: Answering, found: list[Any]) -> threading.Thread:
    """Who has pressed Cancel, and waits for what is under way; what it shows comes to ``found``."""
    cancelling = threading.Thread(target=lambda: found.extend(answering.cancelled(Visit(), VISITOR)), daemon=True)
    cancelling.start()
    while not answering.stops._events[VISITOR.session_hash].is_set():
        time.sleep(0.01)
    return cancelling


@pytest.mark.parametrize("begun", [asking, measuring_longer, looking])
def test_what_is_cancelled_has_nothing_as_its_last_word(runtime: Runtime, begun: Any) -> None:
    answering = Answering(runtime)
    work = begun(answering)
    first = next(work)
    result, _, cancel = answering.cancelled(Visit(), VISITOR)
    assert CANCELLED in result and not cancel.visible
    *_, last = [first, *work]
    assert len(last) == len(first) and all(each == gr.skip() for each in last)


def test_where_nothing_stood_before_cancelling_brings_nothing_back(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QA_FAMILY", "bert-large")  # of which no comparison is recorded
    answering = Answering(runtime)
    under_way = asking(answering)
    next(under_way)
    result, marks, _ = answering.cancelled(Visit(), VISITOR)
    assert "Cancelled." in result and "before it" not in result and marks == ""


def test_half_an_emoji_is_asked_like_any_other_text(runtime: Runtime) -> None:
    broken = "\ud83d"
    form = (f"{TEXT} {broken}", f"{QUESTION} {broken}", *FORM[2:])
    for update in Answering(runtime).ask_now(Visit(), *form, VISITOR):
        [part.encode() for part in update if isinstance(part, str)]
    assert "?" in update[0].last.question and update[0].last.context.startswith(TEXT)


def test_what_is_measured_longer_is_what_is_shown(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qa_backends.web.ask.answering.LONGER_SECONDS", 0.5)
    answering = Answering(runtime)
    *_, shown = asking(answering)
    *_, longer = answering.ask_longer(shown[0], VISITOR)
    assert (longer[0].last.question, longer[0].last.context) == (QUESTION, TEXT)
    assert [card.backend for card in longer[0].last.cards] == ["baseline"]


@pytest.mark.parametrize(
    ("ticked", "family", "compared"),
    [
        (["baseline", "baseline-ort", "pruned-deep-ov-int8", "pruned"], "minilm", "pruned-deep-ov-int8"),
        (["baseline", "baseline-ort"], "minilm", "pruned"),
        (["baseline"], "distilbert", "baseline-ort"),
    ],
)
def test_another_answer_is_looked_for_from_the_first_ticked_backend_of_other_weights(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch, ticked: list[str], family: str, compared: str
) -> None:
    pairs: list[list[str]] = []

    def nothing_found(_runtime: object, _of: object, pair: tuple[Backend, Backend], *_: object) -> None:
        pairs.append([each.name for each in pair])

    monkeypatch.setattr("qa_backends.web.ask.answering.find_difference", nothing_found)
    *_, last = Answering(runtime).find(TEXT, QUESTION, ticked, family, "cpu", VISITOR)
    assert pairs == [["baseline", compared]] and "agree on all" in last[6]


def test_a_newer_question_ends_the_one_before_which_leaves_its_cancel_button_alone(runtime: Runtime) -> None:
    answering = Answering(runtime)
    older, newer = asking(answering), asking(answering)
    next(older)
    next(newer)
    updates = list(older)
    assert updates and all(each == gr.skip() for update in updates for each in update)
    *_, last = newer
    assert not last[-1].visible and QUESTION in last[1]


def test_what_was_replaced_has_not_failed_whatever_the_page_calls_it(runtime: Runtime) -> None:
    answering = Answering(runtime)
    assert UNFORESEEN[:30] in answering.failed(VISITOR)[0]
    replaced, closed = asking(answering), asking(answering)
    next(replaced)
    next(closed)
    list(replaced)
    assert answering.failed(VISITOR) == (gr.skip(), gr.skip())
    closed.close()
    assert answering.failed(VISITOR) == (gr.skip(), gr.skip())
    assert UNFORESEEN[:30] in answering.failed(VISITOR)[0], "what fails by itself is said"


def test_two_that_were_replaced_have_both_not_failed_though_they_end_at_once(runtime: Runtime) -> None:
    answering = Answering(runtime)
    replaced = [asking(answering), asking(answering)]
    newest = asking(answering)
    for each in (*replaced, newest):
        next(each)
    for each in replaced:
        each.close()
    for _ in (*replaced, "what took too long to end"):
        assert answering.failed(VISITOR) == (gr.skip(), gr.skip()), "the page is the newest question's"
    list(newest)
    assert UNFORESEEN[:30] in answering.failed(VISITOR)[0]


def test_cancel_that_comes_too_late_says_nothing_of_it(runtime: Runtime) -> None:
    answering = Answering(runtime)
    *_, last = asking(answering)
    result, _, cancel = answering.cancelled(last[0], VISITOR)
    assert QUESTION in result and CANCELLED not in result and not cancel.visible


@pytest.mark.usefixtures("patient")
def test_what_fails_once_it_was_cancelled_says_nothing(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    answering = Answering(runtime)
    under_way, go_on = threading.Event(), threading.Event()

    def failing(*_: object, **__: object) -> None:
        under_way.set()
        go_on.wait()
        raise BackendFailed("the model is gone")

    monkeypatch.setattr("qa_backends.web.ask.answering.ask", failing)
    drawn: list[Any] = []
    visitor = threading.Thread(target=lambda: drawn.extend(asking(answering)), daemon=True)
    visitor.start()
    assert under_way.wait(PATIENCE_S)
    cancelling = cancelling_behind(answering, [])
    go_on.set()
    for each in (visitor, cancelling):
        each.join(PATIENCE_S)
    first, last = drawn
    assert QUESTION in first[1] and all(each == gr.skip() for each in last)


@pytest.mark.usefixtures("patient")
def test_cancel_leaves_alone_what_was_asked_while_it_waited(runtime: Runtime) -> None:
    answering = Answering(runtime)
    older, newer = asking(answering), asking(answering)
    next(older)
    found: list[Any] = []
    cancelling = cancelling_behind(answering, found)
    next(newer)
    cancelling.join(PATIENCE_S)
    assert found == [gr.skip()] * 3
    *_, last = newer
    assert QUESTION in last[1]


@pytest.mark.usefixtures("patient")
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
    assert stops.end_and_wait(VISITOR)
    assert told == ["drawn"]


def test_who_stops_work_that_does_not_notice_waits_for_one_drawing_and_no_longer() -> None:
    stops = Stops()
    stops.begin(VISITOR)
    waiting = threading.Thread(target=lambda: stops.end_and_wait(VISITOR), daemon=True)
    waiting.start()
    waiting.join(PATIENCE_S)
    assert not waiting.is_alive()
