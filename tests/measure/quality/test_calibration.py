"""What confidence is worth: worked out by hand, and the same as what the reader gives."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from helpers import ROOT

from qa_backends import catalog
from qa_backends.contract import Query, SpanLogits
from qa_backends.errors import BackendFailed
from qa_backends.measure.quality.calibration import (
    Rivals,
    calibration_error,
    fitted_temperature,
    fitted_threshold,
    rivals,
)
from qa_backends.measure.quality.scoring import figures, score
from qa_backends.progress import UNWATCHED
from qa_backends.runtime import Turn
from qa_backends.squad import Question, read_squad

if TYPE_CHECKING:
    from qa_backends.catalog import Backend, Family
    from qa_backends.contract import Windows
    from qa_backends.runtime import Runtime

FEW = 30


def test_the_error_is_the_mean_distance_from_the_share_of_right_answers() -> None:
    # Four answers in the bin of 0.9, three of them right: 0.15 too sure. One at 0.5, right: 0.5 too unsure.
    confidence = np.array([0.9, 0.9, 0.9, 0.9, 0.5])
    right = np.array([True, True, True, False, True])
    assert calibration_error(confidence, right) == pytest.approx(100 * (4 * 0.15 + 1 * 0.5) / 5)
    assert calibration_error(np.array([1.0, 1.0]), np.array([True, True])) == 0


def too_sure(by: float, n: int = 4000) -> Rivals:
    """Questions whose scores are ``by`` times what they should be: at that temperature, confidence is what it says."""
    draws = np.random.default_rng(0)
    span = draws.normal(0, 2, n)
    likely = 1 / (1 + np.exp(-span))  # of the best span against "no answer"
    right = draws.random(n) < likely
    return Rivals(by * np.stack([np.zeros(n), span], axis=1), right, ~right, right.astype(float))


@pytest.mark.parametrize("by", [0.5, 1.0, 2.5])
def test_the_temperature_that_was_put_in_is_found_and_mends_the_error(by: float) -> None:
    found = too_sure(by)
    temperature = fitted_temperature(found, 0.0)
    assert temperature == pytest.approx(by, rel=0.1)
    errors = [calibration_error(found.confidence(each, 0.0), found.right(0.0)) for each in (1.0, temperature)]
    assert errors[1] < 3
    if by != 1:
        assert errors[1] < errors[0] / 2


def test_a_window_of_fewer_spans_counts_them_alone() -> None:
    scores = np.array([[0.0, 1.0, 2.0], [0.0, 1.0, -np.inf]])
    found = Rivals(scores, np.array([True, False]), np.array([False, True]), np.array([1.0, 0.5]))
    e = math.e
    assert found.confidence(1.0, 0.0).tolist() == pytest.approx([e**2 / (1 + e + e**2), e / (1 + e)])
    assert found.right(0.0).tolist() == [True, False]
    assert found.right(-1.5).tolist() == [True, True], "the second is not sure enough for an answer"
    assert found.f1(0.0) == 75 and found.f1(-1.5) == 100
    assert found.confidence(1.0, -1.5).tolist() == pytest.approx([e**2 / (1 + e + e**2), 1 / (1 + e)])


def test_the_threshold_is_where_f1_is_highest() -> None:
    """Of five questions by how far "no answer" is ahead; the second and third stand level, and go together."""
    ahead = np.array([-4.0, -1.0, -1.0, 2.0, 3.0, np.inf])
    span_f1 = np.array([1.0, 1.0, 0.0, 0.8, 0.0, 0.0])
    unanswerable = np.array([False, False, True, False, True, True])
    scores = np.stack([ahead, np.zeros(6)], axis=1)
    scores[5] = 0, -np.inf  # a text without a word
    found = Rivals(scores, span_f1 == 1, unanswerable, span_f1)
    assert [found.f1(each) for each in (-5, -2, 0, 2.5, 4)] == pytest.approx(
        [100 * each / 6 for each in (3, 4, 4, 4.8, 3.8)]
    )
    assert fitted_threshold(found) == 2.5
    never = Rivals(scores, span_f1 == 2, ~(span_f1 == 2), 0 * span_f1)
    assert fitted_threshold(never) < -4, "nothing is worth an answer"
    assert fitted_threshold(Rivals(scores[5:], span_f1[5:] == 1, unanswerable[5:], span_f1[5:])) == 0


def test_a_text_without_a_word_competes_with_nothing(runtime: Runtime, small_family: Family) -> None:
    questions = [Question("1", "title", "What?", "\u200b", ())]
    found = rivals(runtime, small_family, catalog.backend("baseline"), "cpu", questions, UNWATCHED)
    assert found.confidence(1.0, 0.0).tolist() == [1.0] and found.right(0.0).tolist() == [True]


def test_logits_that_are_no_numbers_are_told_and_fit_nothing(
    runtime: Runtime, small_family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_turn: Turn, _family: Family, _backend: Backend, windows: Windows) -> SpanLogits:
        start = np.zeros((windows.n_windows, windows.seq_len), dtype=np.float32)
        start[0, 0] = np.nan
        return SpanLogits(start, np.zeros_like(start))

    monkeypatch.setattr(Turn, "logits", broken)
    questions = [Question("1", "title", "Where?", "In Rome.", ())]
    with pytest.raises(BackendFailed, match="not finite"):
        rivals(runtime, small_family, catalog.backend("baseline"), "cpu", questions, UNWATCHED)


def test_what_competes_is_what_the_reader_chooses_among(runtime: Runtime) -> None:
    family, backend = catalog.family("minilm"), catalog.backend("pruned")
    questions = read_squad(ROOT / "assets" / "questions.json")[:FEW]
    found = rivals(runtime, family, backend, "cpu", questions, UNWATCHED)
    with runtime.turn("cpu") as turn:
        prepared = runtime.reader(family).prepare_all([Query(each.question, each.context) for each in questions])
        answers = turn.answer_all(family, backend, prepared).answers
    temperature = family.reads("pruned").temperature
    assert temperature != 1, "its manifest says one"
    assert found.confidence(temperature, 0.0) == pytest.approx([each.confidence for each in answers], abs=1e-4)
    scored = [score(question, answer) for question, answer in zip(questions, answers, strict=True)]
    assert found.right(0.0).tolist() == [each.exact for each in scored]
    assert 0 < sum(each.exact for each in scored) < FEW
    assert found.figures(0.0) == figures(scored, None)
    assert found.f1(0.0) == pytest.approx(100 * sum(each.f1 for each in scored) / FEW)
