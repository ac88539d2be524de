"""Exact match and F1, worked out by hand, and independent of how the questions were grouped."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import pytest
from helpers import ROOT

from qa_backends.contract import Answer, Query, ReaderSettings, Span, SpanLogits, Windows
from qa_backends.measure.quality import scoring
from qa_backends.measure.quality.scoring import AnswerAll, Scored, answers_by_id, evaluate, figures, sample, score
from qa_backends.measure.timing.load import LoadMeter
from qa_backends.reader.reader import Reader
from qa_backends.reader.tokens import SubwordTokenizer
from qa_backends.squad import GoldAnswer, Question, read_squad

ASSETS = ROOT / "assets"
Held = AbstractContextManager[tuple[Sequence[Answer], float]]


def question(*golds: str, name: str = "1") -> Question:
    return Question(name, "title", "What?", "a text", tuple(GoldAnswer(gold, 0) for gold in golds))


def answer(text: str) -> Answer:
    return Answer(text, Span(0, len(text)) if text else None, score=1.0, null_score=0.0, confidence=0.5)


def scored(text: str, *golds: str) -> Scored:
    return score(question(*golds), answer(text))


@pytest.mark.parametrize(
    ("text", "golds", "exact", "f1"),
    [
        # Articles, case, punctuation and spaces do not count.
        ("second little pig!", ["The second little pig"], True, 1.0),
        ("a  Ferry", ["the ferry."], True, 1.0),
        # answer {january, 1610}, gold {in, year, 1610}: precision 1/2, recall 1/3, 2 * (1/6) / (5/6) = 2/5.
        ("January 1610", ["in the year 1610"], False, 2 / 5),
        # answer {no}, gold {no, no, yes}: a word counts as often as it stands; precision 1, recall 1/3, F1 1/2.
        ("no", ["no no yes"], False, 1 / 2),
        ("no no yes", ["no"], False, 1 / 2),
        # No word in common.
        ("Venice", ["Rome"], False, 0.0),
        # The gold answer that fits best counts: against "Rome" 1/2, against the other all of it.
        ("city of Rome", ["Rome", "the city of Rome"], True, 1.0),
        # Against "Rome" precision 1/3, recall 1: 1/2; against "old city of Rome" precision 1, recall 3/4: 6/7.
        ("city of Rome", ["Rome", "old city of Rome"], False, 6 / 7),
        # No answer is right only where there is none.
        ("", [], True, 1.0),
        ("Rome", [], False, 0.0),
        ("", ["Rome"], False, 0.0),
    ],
)
def test_an_answer_is_scored_as_by_hand(text: str, golds: list[str], exact: bool, f1: float) -> None:
    found = scored(text, *golds)
    assert found.exact is exact
    assert found.f1 == pytest.approx(f1, rel=1e-12)


def test_the_summary_is_in_percent_and_tells_answerable_from_unanswerable() -> None:
    found = [
        scored("the ferry", "ferry"),  # exact, 1
        scored("January 1610", "in the year 1610"),  # not, 2/5
        scored("", "Rome"),  # not, 0
        scored("", *[]),  # exact, 1
        scored("Rome", *[]),  # not, 0
    ]
    total = figures(found, seconds=2.5)
    assert total.n == 5
    assert total.exact == pytest.approx(40)
    assert total.f1 == pytest.approx(100 * 2.4 / 5)
    assert total.has_ans_f1 == pytest.approx(100 * 1.4 / 3)
    assert total.no_ans_f1 == pytest.approx(50)
    assert total.questions_per_second == pytest.approx(2)


def test_a_part_without_questions_has_no_figure() -> None:
    assert figures([scored("Rome", "Rome")], seconds=1).no_ans_f1 is None
    assert figures([scored("Rome")], seconds=1).has_ans_f1 is None


def test_nothing_to_summarise_is_an_error_and_not_a_perfect_score() -> None:
    with pytest.raises(ValueError, match="no questions"):
        figures([], seconds=1)


MANY = [question("gold", name=str(number)) for number in range(200)]


def test_a_sample_is_the_same_for_the_same_seed_and_in_the_order_of_the_data() -> None:
    drawn = sample(MANY, 30, seed=5)
    assert drawn == sample(MANY, 30, seed=5)
    assert drawn != sample(MANY, 30, seed=6)
    numbers = [int(each.id) for each in drawn]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 30
    assert numbers[-1] >= 100, "drawn from all the data and not from its beginning"


@pytest.mark.parametrize("limit", [None, 200, 201])
def test_a_sample_as_large_as_the_data_is_all_of_it(limit: int | None) -> None:
    assert sample(MANY, limit, seed=5) == MANY


def forward(windows: Windows) -> SpanLogits:
    """Logits that depend on a window's own tokens and their places, as a model's do, and on no other window's."""
    place = np.arange(windows.seq_len)
    whole = np.where(windows.attention_mask == 1, windows.input_ids, 0).sum(axis=1, keepdims=True)
    start = 5 * np.sin(windows.input_ids * 1.7 + place * 0.3 + whole)
    end = 5 * np.cos(windows.input_ids * 2.3 + place * 0.7 + whole)
    start[:, 0] += 6
    return SpanLogits(start.astype(np.float32), end.astype(np.float32))


def through(reader: Reader) -> AnswerAll:
    """The reader with the invented logits, as an evaluation asks a backend."""

    def answer_all(queries: Sequence[Query]) -> Held:
        read = reader.read(reader.prepare_all(queries), forward)
        return nullcontext((read.answers, read.times.compute_s))

    return answer_all


@pytest.fixture(scope="module")
def reader() -> Reader:
    words = SubwordTokenizer(ASSETS / "models" / "minilm" / "baseline")
    return Reader(words, ReaderSettings(max_seq_len=96, stride=32, max_question_tokens=12))


@pytest.fixture(scope="module")
def questions() -> list[Question]:
    return read_squad(ASSETS / "questions.json")[::5]


@pytest.fixture(scope="module")
def one_by_one(reader: Reader, questions: list[Question]) -> dict[str, Answer]:
    """What a person gets who asks the same questions in the app."""
    found = {}
    for each in questions:
        prepared = reader.prepare(Query(each.question, each.context))
        (found[each.id],) = reader.read(prepared, forward).answers
    return found


def test_the_questions_need_windows_of_their_own_and_are_answered_differently(
    reader: Reader, questions: list[Question], one_by_one: dict[str, Answer]
) -> None:
    n_windows = {reader.prepare(Query(each.question, each.context)).windows.n_windows for each in questions}
    assert min(n_windows) > 1
    assert len(n_windows) > 1
    answers = [each.text for each in one_by_one.values()]
    assert len(set(answers)) > len(questions) / 2
    assert "" in answers


@pytest.mark.parametrize("at_once", [1, 7, 1024])
@pytest.mark.parametrize("order", ["as they are", "backwards", "shuffled"])
def test_the_measured_answers_are_those_people_get_whatever_the_grouping(
    monkeypatch: pytest.MonkeyPatch,
    reader: Reader,
    questions: list[Question],
    one_by_one: dict[str, Answer],
    at_once: int,
    order: str,
) -> None:
    monkeypatch.setattr(scoring, "QUESTIONS_AT_ONCE", at_once)
    places = {
        "as they are": np.arange(len(questions)),
        "backwards": np.arange(len(questions))[::-1],
        "shuffled": np.random.default_rng(2).permutation(len(questions)),
    }[order]
    asked = [questions[place] for place in places]
    found, _ = evaluate(through(reader), asked)
    total = figures(found, seconds=1)
    assert [each.question for each in found] == asked
    assert {each.question.id: each.answer for each in found} == one_by_one
    expected = figures([score(each, one_by_one[each.id]) for each in questions], seconds=1)
    assert total.n == expected.n
    assert total.exact == pytest.approx(expected.exact)
    assert total.f1 == pytest.approx(expected.f1)
    assert total.has_ans_f1 == pytest.approx(expected.has_ans_f1)
    assert total.no_ans_f1 == pytest.approx(expected.no_ans_f1)


def test_progress_is_told_after_every_group_and_ends_at_all(
    monkeypatch: pytest.MonkeyPatch, reader: Reader, questions: list[Question]
) -> None:
    monkeypatch.setattr(scoring, "QUESTIONS_AT_ONCE", 4)
    told: list[tuple[int, int]] = []
    evaluate(through(reader), questions[:10], lambda done, of: told.append((done, of)))
    assert told == [(4, 10), (8, 10), (10, 10)]


def test_intervals_hold_the_figures_and_shrink_with_more_questions() -> None:
    few = [scored("Rome", "Rome"), scored("Venice", "Rome")] * 20
    some, many = figures(few, seconds=1), figures(few * 100, seconds=1)
    for total in (some, many):
        assert total.f1_interval.low <= total.f1 <= total.f1_interval.high
        assert total.exact_interval.low <= total.exact <= total.exact_interval.high
    # The mean of n coin tosses has a standard error of 50 / sqrt(n) percent; 95 % are within 1.96 of them.
    assert some.f1_interval.high - some.f1_interval.low == pytest.approx(2 * 1.96 * 50 / 40**0.5, rel=0.15)
    assert many.f1_interval.high - many.f1_interval.low == pytest.approx(2 * 1.96 * 50 / 4000**0.5, rel=0.15)


def test_agreement_counts_answers_that_are_the_baselines() -> None:
    found = [score(question("Rome", name="1"), answer("Rome")), score(question("Rome", name="2"), answer("Venice"))]
    assert figures(found, seconds=1).agreement is None
    assert figures(found, seconds=1, baseline=list(answers_by_id(found).values())).agreement == 100
    assert figures(found, seconds=1, baseline=["Rome", "Rome"]).agreement == 50
    assert figures(found, seconds=1, baseline=["", ""]).agreement == 0


def test_the_difference_of_f1_is_paired_and_is_none_to_the_baseline_itself() -> None:
    golds = [question("Rome", name=str(number)) for number in range(200)]
    answers = ["Venice" if number % 3 else "Rome" for number in range(200)]
    better = ["Rome" if number % 10 == 1 else text for number, text in enumerate(answers)]
    found = [score(each, answer(text)) for each, text in zip(golds, better, strict=True)]
    gained = sum(one != other for one, other in zip(answers, better, strict=True))
    assert figures(found, seconds=1).f1_difference is None, "without the baseline's answers"
    itself = figures(found, seconds=1, baseline=better).f1_difference
    assert itself is not None and (itself.value, itself.low, itself.high) == (0, 0, 0)
    total = figures(found, seconds=1, baseline=answers)
    assert total.f1_difference is not None
    assert total.f1_difference.value == pytest.approx(100 * gained / 200)
    assert 0 < total.f1_difference.low < total.f1_difference.value < total.f1_difference.high
    spread = total.f1_interval.high - total.f1_interval.low
    assert total.f1_difference.high - total.f1_difference.low < 0.7 * spread
    rounded = figures(found, seconds=1, baseline=better, parent=answers)
    assert rounded.parent_difference == total.f1_difference and rounded.f1_difference == itself
    assert total.parent_difference is None, "without the answers of the same weights in FP32"


def test_questions_that_share_an_id_are_still_compared_one_by_one() -> None:
    found = [score(question("Rome", name="1"), answer("Rome")), score(question("Rome", name="1"), answer("Venice"))]
    assert figures(found, seconds=1, baseline=["Rome", "Venice"]).agreement == 100


def test_a_gold_answer_of_articles_alone_does_not_count() -> None:
    """As the official script drops it: an empty answer would equal it."""
    assert not scored("", "the", "the Rhine").exact
    assert scored("Rhine", "the", "the Rhine").exact


def others_took(share: float | None) -> type[LoadMeter]:
    """A meter that says so, whatever else the machine does."""

    class Told(LoadMeter):
        def share(self) -> float | None:
            return share

    return Told


@pytest.mark.parametrize(("taken", "seconds"), [(0.3, None), (0.1, 20.0), (None, 20.0)])
def test_the_seconds_are_not_given_where_others_took_much_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, taken: float | None, seconds: float | None
) -> None:
    monkeypatch.setattr(scoring, "LoadMeter", others_took(taken))
    found, took = evaluate(lambda queries: nullcontext(([answer("")] * len(queries), 10.0)), MANY[:17])
    assert len(found) == 17 and took == seconds


def test_a_group_of_long_texts_is_a_small_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "LoadMeter", others_took(0.0))
    monkeypatch.setattr(scoring, "CHARACTERS_AT_ONCE", 100)
    monkeypatch.setattr(scoring, "TURN_S", 1e9)
    sizes: list[int] = []

    def answer_all(queries: Sequence[Query]) -> Held:
        sizes.append(sum(len(each.context) for each in queries))
        return nullcontext(([answer("")] * len(queries), 1.0))

    texts = [10, 10, 90, 300, 50, 40, 20]
    asked = [Question(str(number), "", "?", "x" * length, ()) for number, length in enumerate(texts)]
    found, seconds = evaluate(answer_all, asked)
    assert sizes == [20, 90, 300, 90, 20]
    assert len(found) == len(asked) and seconds == 5.0


def test_a_slow_backend_is_asked_few_questions_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def answer_all(queries: Sequence[Query]) -> Held:
        sizes.append(len(queries))
        return nullcontext(([answer("")] * len(queries), 2.0 * len(queries)))

    evaluate(answer_all, [question()] * 30)
    assert sizes[0] == 16 and set(sizes[1:]) == {2}, "two seconds a question, five a turn"
