"""A reload shows the visitor's own last result, and nobody else's."""

from __future__ import annotations

from qa_backends.asking.comparison import Comparison
from qa_backends.web.ask.visits import VISITS_KEPT, Visit, Visits

TEXT = "Ada sang."
BEGINNING = Visit()
"""Every visit begins as a copy of this one."""


def asked(question: str, visit: Visit = BEGINNING) -> Visit:
    return visit.with_question(Comparison(question, TEXT, "minilm", "cpu", ()))


def test_two_visitors_keep_a_result_each_which_the_others_key_does_not_open() -> None:
    visits, one, other = Visits(), asked("Who sang?"), asked("What did Ada do?")
    visits.keep(one)
    visits.keep(other)
    assert visits.of(one.key) == one and visits.of(other.key) == other and visits.of("") is None
    assert len(one.key) >= 32


def test_a_newer_question_of_a_visit_takes_the_place_of_the_one_before() -> None:
    visits, first = Visits(), asked("Who sang?")
    second = asked("What did Ada do?", first)
    visits.keep(first)
    visits.keep(second)
    assert second.key == first.key and len(second.history) == 2
    assert visits.of(first.key) == second


def test_the_oldest_visits_make_room() -> None:
    visits, kept = Visits(), [asked("Who sang?") for _ in range(VISITS_KEPT + 1)]
    for each in kept:
        visits.keep(each)
    assert [visits.of(each.key) is not None for each in kept] == [False] + [True] * VISITS_KEPT
