"""Several backends on the same questions: agreement, differences, stopping, and a backend that cannot run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from qa_backends import catalog
from qa_backends.contract import Answer, Span
from qa_backends.errors import BackendUnavailable
from qa_backends.measure import accuracy, evaluation
from qa_backends.measure.accuracy import score
from qa_backends.measure.datasets import data_set
from qa_backends.measure.evaluation import Evaluation, differences, evaluate_all, find_difference
from qa_backends.squad import GoldAnswer, Question

if TYPE_CHECKING:
    from collections.abc import Callable

    from qa_backends.catalog import Backend, Family
    from qa_backends.measure.datasets import DataSet
    from qa_backends.runtime import Loaded, Runtime

MINILM = catalog.family("minilm")
ROWS = [catalog.backend("baseline"), catalog.backend("pruned")]


@pytest.fixture(scope="module")
def own() -> DataSet:
    return data_set("own", lambda _: None)


def test_figures_agree_with_the_differences_that_are_shown(runtime: Runtime, own: DataSet) -> None:
    found = evaluate_all(runtime, MINILM, ROWS, "cpu", own, limit=80, seed=1)
    assert [each.row["backend"] for each in found.results] == ["minilm/baseline", "minilm/pruned"]
    one, other = found.results
    assert one.row["agreement"] == 100
    differ = differences(one.scored, other.scored)
    assert len(differ) == round(80 * (1 - other.row["agreement"] / 100)) > 0
    assert all(each.one.question is each.other.question for each in differ)
    assert found.done == found.of == 160 and found.status == ""


def test_the_figures_do_not_depend_on_batch_or_order(
    runtime: Runtime, own: DataSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real model's sums depend on how a batch is shaped, in the last digits only."""
    from dataclasses import replace

    from qa_backends.reader import reader

    results = []
    for tokens, at_once, questions in ((6144, 256, own.questions), (500, 7, own.questions[::-1])):
        monkeypatch.setattr(reader, "BATCH_TOKENS", tokens)
        monkeypatch.setattr(accuracy, "QUESTIONS_AT_ONCE", at_once)
        data = replace(own, questions=questions[:120] if questions is own.questions else questions[-120:])
        (result,) = evaluate_all(runtime, MINILM, ROWS[:1], "cpu", data).results
        results.append(result.row)
    for figure in ("exact", "f1", "has_ans_f1", "no_ans_f1"):
        assert results[0][figure] == pytest.approx(results[1][figure], abs=1e-3)


def test_stopping_keeps_the_backends_that_were_finished(
    runtime: Runtime, own: DataSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accuracy, "QUESTIONS_AT_ONCE", 10)
    stop = False

    def watch(state: Evaluation) -> None:
        nonlocal stop
        stop = state.status.startswith("Pruned: 10")

    found = evaluate_all(runtime, MINILM, ROWS, "cpu", own, limit=30, emit=watch, stopped=lambda: stop)
    assert [each.backend.name for each in found.results] == ["baseline"]
    assert found.done == 40 and found.status == ""


def test_a_backend_that_cannot_run_is_left_out(runtime: Runtime, own: DataSet, monkeypatch: pytest.MonkeyPatch) -> None:
    real = runtime.get

    def get(group: Family, row: Backend, device: str, say: Callable[[str], None] | None = None) -> Loaded:
        if row.name == "baseline":
            raise BackendUnavailable("It is not here.", "Install it.")
        return real(group, row, device, say)

    monkeypatch.setattr(runtime, "get", get)
    found = evaluate_all(runtime, MINILM, ROWS, "cpu", own, limit=10)
    assert [each.backend.name for each in found.results] == ["pruned"]
    assert found.results[0].row["agreement"] is None, "without the baseline there is nothing to agree with"
    assert "Install it." in found.left_out[0]["why"]


def test_differences_begin_with_those_on_which_one_is_right() -> None:
    def answered(number: int, text: str) -> accuracy.Scored:
        question = Question(str(number), "", "Where?", "In Rome.", (GoldAnswer("Rome", 3),))
        return score(question, Answer(text, Span(0, 1), 1.0, 0.0, 0.5))

    one = [answered(0, "Venice"), answered(1, "Rome"), answered(2, "Rome"), answered(3, "Rome then")]
    other = [answered(0, "Oslo"), answered(1, "Rome"), answered(2, "Oslo"), answered(3, "Rome")]
    assert [each.one.question.id for each in differences(one, other)] == ["2", "3", "0"]


def test_a_question_that_two_backends_answer_differently_is_found(
    runtime: Runtime, own: DataSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    found = find_difference(runtime, MINILM, (ROWS[0], ROWS[1]), "cpu", own.questions, said.append)
    assert found is not None and found.one.answer.text != found.other.answer.text
    assert "Looking for" in said[0]
    monkeypatch.setattr(evaluation, "differences", lambda *_: [])
    assert find_difference(runtime, MINILM, (ROWS[0], ROWS[1]), "cpu", own.questions[:20], said.append) is None
