"""Several backends on the same questions: agreement, differences, stopping, and a backend that cannot run."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from threading import Event
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from qa_backends import catalog
from qa_backends.contract import Answer, Engine, Span
from qa_backends.errors import BackendUnavailable
from qa_backends.measure.quality import evaluation, scoring
from qa_backends.measure.quality.datasets import data_set
from qa_backends.measure.quality.evaluation import (
    Evaluation,
    EvaluationTask,
    differences,
    evaluate_all,
    find_difference,
)
from qa_backends.measure.quality.scoring import Scored, score
from qa_backends.progress import UNWATCHED, Cancelled, Progress
from qa_backends.squad import GoldAnswer, Question

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from qa_backends.catalog import Backend, Family
    from qa_backends.contract import Query
    from qa_backends.measure.quality.datasets import DataSet
    from qa_backends.runtime import Runtime

MINILM = catalog.family("minilm")
BACKENDS = [catalog.backend("baseline"), catalog.backend("pruned")]


@pytest.fixture(scope="module")
def own() -> DataSet:
    return data_set("own", UNWATCHED)


def task(data: DataSet, limit: int | None = None, seed: int = 0) -> EvaluationTask:
    return EvaluationTask(MINILM, "cpu", data, limit=limit, seed=seed)


def test_figures_agree_with_the_differences_that_are_shown(runtime: Runtime, own: DataSet) -> None:
    found = evaluate_all(runtime, task(own, limit=40, seed=1), BACKENDS[::-1])
    assert [each.record.backend for each in found.results] == ["minilm/baseline", "minilm/pruned"], "the baseline first"
    one, other = found.results
    assert one.record.agreement == 100 and other.record.agreement is not None
    differ = differences(one.scored, other.scored)
    assert len(differ) == round(40 * (1 - other.record.agreement / 100)) > 0
    assert all(each.one.question is each.other.question for each in differ)
    assert other.record.f1_difference is not None
    assert other.record.f1_difference.value == pytest.approx(other.record.f1 - one.record.f1)
    assert found.done == found.of == 80 and found.status == ""
    assert (other.record.limit, other.record.seed, other.record.n) == (40, 1, 40)
    few = replace(own, questions=own.questions[:10])
    (whole,) = evaluate_all(runtime, task(few, limit=40, seed=1), BACKENDS[:1]).results
    assert (whole.record.limit, whole.record.seed) == (None, 0), "nothing was drawn: it is the same record as without"


def test_the_figures_do_not_depend_on_batch_or_order(
    runtime: Runtime, own: DataSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real model's sums depend on how a batch is shaped, in the last digits only."""
    results = []
    for tokens, at_once, questions in ((6144, 256, own.questions), (500, 7, own.questions[::-1])):
        monkeypatch.setattr(Engine, "batch_tokens", tokens)
        monkeypatch.setattr(scoring, "QUESTIONS_AT_ONCE", at_once)
        data = replace(own, questions=questions[:20] if questions is own.questions else questions[-20:])
        (result,) = evaluate_all(runtime, task(data), BACKENDS[1:]).results
        results.append(result.record)
    for figure in ("exact", "f1", "has_ans_f1", "no_ans_f1"):
        assert getattr(results[0], figure) == pytest.approx(getattr(results[1], figure), abs=1e-3)


def test_stopping_keeps_the_backends_that_were_finished(
    runtime: Runtime, own: DataSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring, "QUESTIONS_AT_ONCE", 10)
    stop = False

    def watch(state: Evaluation) -> None:
        nonlocal stop
        stop = state.status.startswith("Pruned: 10")

    found = evaluate_all(runtime, task(own, limit=20), BACKENDS, emit=watch, stopped=lambda: stop)
    assert [each.backend.name for each in found.results] == ["baseline"]
    assert found.done == 30 and found.status == "" and found.left_out == []


def test_a_limit_that_leaves_nothing_out_is_none(runtime: Runtime, own: DataSet) -> None:
    few = replace(own, questions=own.questions[:6])
    limits = [evaluate_all(runtime, task(few, limit), BACKENDS[:1]).results[0].record.limit for limit in (5, 6, 7)]
    assert limits == [5, None, None]


def test_stopping_while_a_backend_is_loaded_is_no_failure_of_that_backend(runtime: Runtime, own: DataSet) -> None:
    runtime.drop(MINILM, "pruned", "cpu")
    said: list[str] = []

    def watch(state: Evaluation) -> None:
        said.append(state.status)
        if state.status == "loading minilm/pruned on cpu …":
            raise Cancelled

    found = evaluate_all(runtime, task(own, limit=10), BACKENDS, emit=watch)
    assert said[-2:] == ["loading minilm/pruned on cpu …", ""]
    assert [each.backend.name for each in found.results] == ["baseline"] and found.left_out == []


def test_what_was_handed_out_of_an_evaluation_does_not_grow(runtime: Runtime, own: DataSet) -> None:
    handed_out: list[Evaluation] = []
    evaluate_all(runtime, task(own, limit=10), BACKENDS, emit=lambda state: handed_out.append(state.copy()))
    assert {len(each.results) for each in handed_out} == {0, 1, 2}
    assert [each.done for each in handed_out] == sorted(each.done for each in handed_out)


def test_a_backend_that_cannot_run_is_left_out(runtime: Runtime, own: DataSet, monkeypatch: pytest.MonkeyPatch) -> None:
    real = runtime.make_ready

    def make_ready(family: Family, backend: Backend, device: str, progress: Progress) -> Path:
        if backend.name == "baseline":
            raise BackendUnavailable("It is not here.", "Install it.")
        return real(family, backend, device, progress)

    monkeypatch.setattr(runtime, "make_ready", make_ready)
    found = evaluate_all(runtime, task(own, limit=10), BACKENDS)
    assert [each.backend.name for each in found.results] == ["pruned"]
    record = found.results[0].record
    assert record.agreement is None and record.f1_difference is None, "without the baseline there is nothing to compare"
    assert "Install it." in found.left_out[0].why
    assert found.done == found.of == 20


def test_the_time_left_is_that_of_answers_that_were_given(
    runtime: Runtime, small_family: Family, own: DataSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The baseline is left out, building takes a hundred seconds by this clock, and each answer one."""
    clock = [0.0]
    monkeypatch.setattr(evaluation, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    monkeypatch.setattr(scoring, "QUESTIONS_AT_ONCE", 10)

    def make_ready(_family: Family, backend: Backend, _device: str, _progress: Progress) -> None:
        clock[0] += 100
        if backend.name == "baseline":
            raise BackendUnavailable("It is not here.", "Install it.")

    def answer_all(queries: Sequence[Query]) -> AbstractContextManager[tuple[list[Answer], float]]:
        clock[0] += len(queries)
        return nullcontext(([Answer("", None, 0.0, 1.0, 0.5)] * len(queries), 1.0))

    monkeypatch.setattr(runtime, "make_ready", make_ready)
    monkeypatch.setattr(scoring, "through", lambda *_: answer_all)
    left: list[tuple[int, float]] = []
    asked = EvaluationTask(small_family, "cpu", own, limit=20)
    evaluate_all(runtime, asked, BACKENDS, emit=lambda state: left.append((state.done, state.left_s)))
    assert set(left) == {(20, 0.0), (30, 10.0), (40, 0.0)}


def test_nobody_is_timed_while_answers_are_scored_and_drawn(
    runtime: Runtime, small_family: Family, own: DataSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    alones: list[bool] = []
    drawn_with: list[int] = []
    real = scoring.figures

    def figures(*values: Any) -> scoring.Figures:
        alones.append(runtime.ahead() == 1)
        return real(*values)

    monkeypatch.setattr(scoring, "figures", figures)
    asked = EvaluationTask(small_family, "cpu", own, limit=20)

    def watch(state: Evaluation) -> None:
        if "of 20 questions" in state.status:
            alones.append(runtime.ahead() == 1)
            drawn_with.append(len(state.results))

    evaluate_all(runtime, asked, BACKENDS[:1], emit=watch)
    assert len(alones) >= 3 and all(alones)
    assert drawn_with[-1] == 1 and not any(drawn_with[:-1]), "the figures come with what is told of the last answers"


def test_whoever_stops_while_figures_wait_for_others_keeps_them(
    runtime: Runtime, small_family: Family, own: DataSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where somebody else's longest turn began behind the last answer."""
    stop, turns, real = Event(), [], runtime.turn

    def turn(*asked: Any, timed: bool = True, **more: Any) -> AbstractContextManager[Any]:
        if timed:
            return real(*asked, timed=timed, **more)
        turns.append(timed)
        stop.set()
        raise Cancelled

    monkeypatch.setattr(runtime, "turn", turn)
    asked = EvaluationTask(small_family, "cpu", own, limit=20)
    found = evaluate_all(runtime, asked, BACKENDS[:2], stopped=stop.is_set)
    assert [each.record.n for each in found.results] == [20] and turns == [False]


def answered(number: int, text: str, start: int = 0) -> Scored:
    question = Question(str(number), "", "Where?", "In Rome.", (GoldAnswer("Rome", 3),))
    return score(question, Answer(text, Span(start, start + len(text)) if text else None, 1.0, 0.0, 0.5))


def test_differences_begin_with_those_on_which_one_is_right() -> None:
    one = [answered(0, "Venice"), answered(1, "Rome"), answered(2, "Rome"), answered(3, "Rome then")]
    other = [answered(0, "Oslo"), answered(1, "Rome"), answered(2, "Oslo"), answered(3, "Rome")]
    assert [each.one.question.id for each in differences(one, other)] == ["2", "3", "0"]


def test_the_same_text_at_another_place_is_the_same_answer() -> None:
    assert differences([answered(0, "Rome", 3)], [answered(0, "Rome", 90)]) == []
    assert len(differences([answered(0, "")], [answered(0, "Rome")])) == 1


def test_a_question_that_two_backends_answer_differently_is_found(
    runtime: Runtime, own: DataSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    progress = Progress(said.append)
    monkeypatch.setattr(evaluation, "LOOK_AT_ONCE", 4)
    found = find_difference(runtime, MINILM, (BACKENDS[0], BACKENDS[1]), "cpu", own.questions, progress)
    assert found is not None and found.one.answer.text != found.other.answer.text
    assert any("Looking for" in each for each in said)
    same = (BACKENDS[0], BACKENDS[0])
    assert find_difference(runtime, MINILM, same, "cpu", own.questions[:8], progress) is None


def test_looking_for_a_difference_can_be_stopped(
    runtime: Runtime, own: DataSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation, "LOOK_AT_ONCE", 2)
    said: list[str] = []
    watched = Progress(said.append, stopped=lambda: "6 of" in said[-1] if said else False)
    same = (BACKENDS[0], BACKENDS[0])
    with pytest.raises(Cancelled):
        find_difference(runtime, MINILM, same, "cpu", own.questions, watched)
    assert [each.split(":")[1].split()[0] for each in said if "Looking" in each] == ["0", "2", "4", "6"]
