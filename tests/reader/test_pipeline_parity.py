"""One window, one model: our reader answers as the pipeline of transformers does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from qa_backends.checkpoints.load import load_model
from qa_backends.contract import Answer, Query
from qa_backends.engines.pytorch import PyTorch
from qa_backends.reader.reader import Reader
from qa_backends.reader.tokens import SubwordTokenizer
from qa_backends.squad import read_squad

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qa_backends.squad import Question

ASSETS = Path(__file__).resolve().parents[2] / "assets"
BASELINE = ASSETS / "models" / "minilm" / "baseline"
N_QUESTIONS = 50

KNOWN_DIFFERENCES: dict[str, str] = {}
"""Question id → why the two answers differ."""

Found = tuple[str, int, int]
"""Text, start and end; ``("", 0, 0)`` where there is no answer, as the pipeline says it."""


@pytest.fixture(scope="module")
def reader() -> Reader:
    return Reader(SubwordTokenizer(BASELINE))


@pytest.fixture(scope="module")
def questions(reader: Reader) -> list[Question]:
    """The first fifty whose text fits one window: over several, the pipeline's scores cannot be compared."""
    fitting = []
    for each in read_squad(ASSETS / "questions.json"):
        if reader.prepare(Query(each.question, each.context)).windows.n_windows == 1:
            fitting.append(each)
        if len(fitting) == N_QUESTIONS:
            break
    return fitting


@pytest.fixture(scope="module")
def engine() -> Iterator[PyTorch]:
    engine = PyTorch({})
    engine.load(BASELINE, "cpu")
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def ours(reader: Reader, engine: PyTorch, questions: list[Question]) -> dict[str, Found]:
    def found(answer: Answer) -> Found:
        return ("", 0, 0) if answer.span is None else (answer.text, answer.span.start, answer.span.end)

    prepared = {each.id: reader.prepare(Query(each.question, each.context)) for each in questions}
    return {name: found(reader.read(each, engine.forward).answers[0]) for name, each in prepared.items()}


@pytest.fixture(scope="module")
def theirs(questions: list[Question]) -> dict[str, Found]:
    from transformers import AutoTokenizer, pipeline

    tokenizer = AutoTokenizer.from_pretrained(BASELINE)
    answer = pipeline("question-answering", model=load_model(BASELINE), tokenizer=tokenizer, device="cpu")
    results: list[dict[str, Any]] = answer(
        question=[each.question for each in questions],
        context=[each.context for each in questions],
        max_seq_len=384,
        doc_stride=128,
        max_answer_len=30,
        handle_impossible_answer=True,
        align_to_words=False,
    )
    return {
        each.id: (found["answer"], found["start"], found["end"])
        for each, found in zip(questions, results, strict=True)
    }  # fmt: skip


def test_the_comparison_has_questions_with_and_without_an_answer(questions: list[Question]) -> None:
    assert len(questions) == N_QUESTIONS
    assert 10 <= sum(not each.answers for each in questions) <= N_QUESTIONS - 10


def test_answers_are_those_of_the_pipeline(ours: dict[str, Found], theirs: dict[str, Found]) -> None:
    different = {name: (ours[name], theirs[name]) for name in theirs if ours[name] != theirs[name]}
    assert set(different) == set(KNOWN_DIFFERENCES), different


def test_the_comparison_saw_answers_and_no_answers(theirs: dict[str, Found]) -> None:
    texts = [text for text, _, _ in theirs.values()]
    assert 0 < texts.count("") < N_QUESTIONS
