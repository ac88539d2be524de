"""What is said of backends that took turns, on invented readings and times."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from qa_backends import catalog
from qa_backends.asking.answer import answer_json
from qa_backends.asking.ask import Asking, Outcome
from qa_backends.asking.comparison import arithmetic, comparison_of
from qa_backends.contract import Answer, Query, Ran, Reading, Span, StageTimes
from qa_backends.measure.results.shipped import shipped_quality
from qa_backends.measure.timing.rounds import Samples

if TYPE_CHECKING:
    from collections.abc import Mapping

MINILM = catalog.family("minilm")
SETS = {"squad-v2-dev": "SQuAD", "own": "other texts", "everyday": "everyday texts"}
RAN = Ran("CPU", "Abacus", "FP32", 2, {"Attention": 6, "BiasGelu": 6}, "abc", {}, ("a note",))
TIMES = StageTimes(0.001, 0.5, 0.02, 0.002)
NAMES = ("baseline", "pruned", "pruned-ort", "pruned-ort-fp16")


def reading(name: str, answer: Answer) -> Reading:
    return Reading(f"minilm/{name}", answer, TIMES, 1, RAN)


def answer(text: str, start: int = 0) -> Answer:
    return Answer(text, Span(start, start + len(text)) if text else None, 2.0, 1.0, 0.5)


def asking(answers: Mapping[str, Answer | None], samples: Samples | None = None) -> Asking:
    """A backend without an answer has failed."""
    outcomes = [
        Outcome(catalog.backend(name), reading(name, given), 0.04)
        if given
        else Outcome(catalog.backend(name), error="no")
        for name, given in answers.items()
    ]
    return Asking(Query("Where?", "In Rome."), MINILM, "cpu", outcomes, samples=samples or Samples())


def timed(speeds: Mapping[str, float], rounds: int = 12) -> Samples:
    """Runs of the backends that are so many times as fast as one another, with noise."""
    noise = np.random.default_rng(3).normal(1, 0.1, size=(len(speeds), rounds))
    times = {
        name: [StageTimes(0.0, 0.0, 0.02 / speed * float(each), 0.0) for each in row]
        for (name, speed), row in zip(speeds.items(), noise, strict=True)
    }
    return Samples(times, blocks=[1] * rounds)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (answer("Rome", 3), answer("Rome", 90), True),
        (answer("Rome", 3), answer("rome", 3), False),
        (answer(""), answer(""), True),
        (answer(""), answer("Rome"), False),
    ],
)
def test_the_same_answer_is_the_same_text_wherever_it_stands(one: Answer, other: Answer, same: bool) -> None:
    comparison = comparison_of(asking({"baseline": one, "pruned": other}))
    assert comparison.card("pruned").same_answer is same


def test_the_fastest_of_several_is_quoted_with_an_interval_that_holds_for_all_of_them() -> None:
    speeds = {"baseline": 1.0, "pruned": 1.5, "pruned-ort": 2.0, "pruned-ort-fp16": 1.9}
    state = asking({name: answer("Rome") for name in NAMES}, timed(speeds))
    comparison = comparison_of(state)
    assert comparison.fastest is not None and comparison.fastest.backend == "pruned-ort"
    alone, among = comparison.card("pruned-ort").speed_up, comparison.fastest.speed_up
    assert alone is not None
    assert among.value == alone.value
    assert among.low < alone.low and alone.high < among.high
    assert among == state.samples.speed_up("pruned-ort", "baseline", among=3)


def test_the_fastest_is_one_of_those_that_took_turns() -> None:
    """One that did not fit into the memory is no rival, and does not widen the interval."""
    state = asking({name: answer("Rome") for name in NAMES}, timed({"pruned": 1.5, "baseline": 1.0}))
    comparison = comparison_of(state)
    assert comparison.fastest is not None
    assert comparison.fastest.speed_up == comparison.card("pruned").speed_up
    assert comparison.card("pruned-ort").speed_up is None and comparison.card("pruned-ort").runs == 0
    assert comparison.card("pruned-ort").latency_ms == pytest.approx(23), "its one reading"


def test_nothing_is_said_of_speeds_without_turns_or_without_a_baseline_in_them() -> None:
    answers = {name: answer("Rome") for name in NAMES}
    for samples in (
        Samples(),
        timed(dict.fromkeys(NAMES, 1.0), rounds=4),
        timed({"pruned": 1.0, "pruned-ort": 1.0}),
    ):
        comparison = comparison_of(asking(answers, samples))
        assert comparison.fastest is None
        assert all(card.speed_up is None for card in comparison.cards)
        assert all(card.answered for card in comparison.cards)


def test_a_card_holds_what_is_known_of_its_backend() -> None:
    comparison = comparison_of(asking({"baseline": answer("Rome", 3), "pruned": None}))
    card, failed = comparison.cards
    assert (card.answer, card.span, card.cold_ms, card.wait_ms) == ("Rome", (3, 7), 40, 500)
    assert card.parts_ms == pytest.approx({"tokenise": 1, "model": 20, "decode": 2})
    assert card.ran == "Abacus, CPU, FP32, 2 threads, 12 fused operators, a note"
    assert (failed.answered, failed.error, failed.quality) == (False, "no", ())
    assert comparison.answered == [card] and comparison.baseline == card
    measured = {title: shipped_quality(MINILM, catalog.backend("baseline"), data=data) for data, title in SETS.items()}
    assert [(each.title, each.f1, each.device) for each in card.quality] == [
        (title, found.f1, "cpu") for title, found in measured.items() if found
    ]
    assert len(card.quality) == 3


def test_a_card_holds_the_paired_difference_of_its_f1() -> None:
    comparison = comparison_of(asking({name: answer("Rome") for name in NAMES}))
    for data, known in zip(SETS, comparison.card("pruned").quality, strict=True):
        measured = shipped_quality(MINILM, catalog.backend("pruned"), data=data)
        assert measured is not None and measured.f1_difference is not None
        assert known.f1_difference == measured.f1_difference and known.agreement == measured.agreement


def test_an_answer_as_json_is_plain_and_in_milliseconds() -> None:
    found = json.loads(json.dumps(answer_json(reading("pruned", answer("Rome", 3)), cold_s=0.04)))
    assert (found["backend"], found["answer"], found["span"]) == ("minilm/pruned", "Rome", [3, 7])
    assert found["times_ms"] == pytest.approx({"tokenise": 1, "wait": 500, "model": 20, "decode": 2, "total": 523})
    assert found["cold_ms"] == pytest.approx(40) and found["ran"]["fused_ops"]["Attention"] == 6
    nothing = answer_json(reading("pruned", answer("")), cold_s=0.04)
    assert nothing["answer"] is None and nothing["span"] is None


def test_weights_that_are_stored_in_fewer_bits_than_they_are_computed_in_are_said_so() -> None:
    assert arithmetic(catalog.backend("pruned-ort-fp16"), RAN) == "FP16 weights in FP32"
    assert arithmetic(catalog.backend("pruned-ort"), RAN) == "FP32"
    assert arithmetic(catalog.backend("pruned-ov-bf16"), replace(RAN, precision="BF16")) == "BF16"
