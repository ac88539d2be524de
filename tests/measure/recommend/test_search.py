"""What a search says of its candidates, on invented ones; and which wishes are searched for at all."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from helpers import soon
from measure.invented import MACHINE

from qa_backends import catalog
from qa_backends.catalog import lookup
from qa_backends.errors import InputError, QAError, UnknownBackend
from qa_backends.measure.recommend import recommend as module
from qa_backends.measure.recommend.recommend import recommend
from qa_backends.measure.recommend.search import F1, Candidate, Search, advice, frontier, timed
from qa_backends.measure.recommend.wish import Wish
from qa_backends.measure.timing.load import said_of
from qa_backends.measure.timing.statistics import Interval
from qa_backends.progress import UNWATCHED

if TYPE_CHECKING:
    from qa_backends.catalog import Family
    from qa_backends.runtime import Runtime

WISH = Wish("minilm", lengths=(32, 64), seconds=20)


def f1(value: float, data: str = "squad-v2-dev") -> F1:
    return F1(data, 24, value, Interval(value - 1, value + 1), None, whole=data != "own")


def candidate(name: str, ms: float | None, shipped: float | None = None, here: float = 50.0) -> Candidate:
    """One that was not timed has no milliseconds; the others have a third of them at the first length."""
    taken = {32: ms / 3, 64: 2 * ms / 3} if ms else {}
    return Candidate(name, name.title(), f1(shipped) if shipped else None, f1(here, "own"), ms=taken)


def search(*candidates: Candidate) -> Search:
    return Search(WISH, MACHINE, list(candidates))


SLOW, QUICK, UNTIMED, WORSE = (
    candidate("slow", 30.0, 75.0, 60.0),
    candidate("quick", 10.0, 70.0, 62.0),
    candidate("untimed", None),
    candidate("worse", 20.0, 69.0, 64.0),
)
UNSHIPPED = candidate("unshipped", 40.0, here=66.0)


def test_the_quickest_come_first_and_who_was_not_timed_last() -> None:
    found = search(SLOW, UNTIMED, QUICK, WORSE)
    assert [each.name for each in found.ranked] == ["quick", "worse", "slow", "untimed"]
    assert [each.name for each in found.raced] == ["quick", "worse", "slow"]
    beaten = search(SLOW, UNTIMED, QUICK, replace(WORSE, out="It was slower."))
    assert [each.name for each in beaten.ranked] == ["quick", "worse", "slow", "untimed"]
    assert [each.name for each in beaten.quickest] == ["quick", "slow"]


def test_all_are_charted_by_their_f1_on_the_same_data() -> None:
    assert [(each.name, f1.value) for each, f1 in search(SLOW, UNTIMED, QUICK, WORSE).charted] == [
        ("quick", 70.0), ("worse", 69.0), ("slow", 75.0),
    ]  # fmt: skip
    some = search(SLOW, UNSHIPPED, UNTIMED, QUICK).charted
    assert [(each.name, f1.value, f1.data) for each, f1 in some] == [
        ("quick", 70.0, "squad-v2-dev"), ("slow", 75.0, "squad-v2-dev"),
    ]  # fmt: skip
    other = replace(UNSHIPPED, name="other", ms={32: 1.0, 64: 1.0})
    by_own = search(UNSHIPPED, UNTIMED, other, replace(other, here=None)).charted
    assert [(each.name, f1.data) for each, f1 in by_own] == [("other", "own"), ("unshipped", "own")]


def test_of_whom_no_f1_on_squad_ships_is_said_where_it_ships_of_others() -> None:
    found = search(SLOW, UNSHIPPED, UNTIMED, QUICK)
    left_out = "Without F1 on SQuAD, and so neither charted nor on the frontier: Unshipped."
    assert timed(found).endswith(left_out)
    judged = "No F1 on SQuAD ships of it: what it loses was judged by the app's own questions alone."
    for name, said in (("unshipped", True), ("quick", False)):
        assert advice(replace(found, advised=name)).endswith(judged) is said
    none = search(UNSHIPPED, UNTIMED)
    assert "SQuAD" not in timed(none) + advice(replace(none, advised="unshipped"))


def test_the_frontier_names_those_that_no_other_beats_in_both_and_is_none_of_one_alone() -> None:
    assert frontier(search(SLOW, UNTIMED, QUICK, WORSE)) == (
        "The frontier, a question of 32 tokens and one of 64 together and F1 on SQuAD: quick (10.00 ms, 70.0), slow "
        "(30.00 ms, 75.0)."
    )
    unshipped = replace(UNSHIPPED, name="other", ms={32: 5.0, 64: 5.0}, here=f1(65.0, "own"))
    assert frontier(search(UNSHIPPED, unshipped)).endswith(
        "F1 on other texts: other (10.00 ms, 65.0), unshipped (40.00 ms, 66.0)."
    )
    assert frontier(search(QUICK, WORSE)) == frontier(search(QUICK, UNTIMED)) == frontier(search(UNTIMED)) == ""


def test_what_was_timed_is_said_with_the_machine_and_with_what_the_advised_one_was_checked_on() -> None:
    found = search(QUICK, UNTIMED)
    said = (
        f"Timed: {catalog.family('minilm').short}, a question of 32 tokens and one of 64, on {MACHINE.sentence('cpu')}."
    )
    assert timed(found) == said
    found.advised = "quick"
    assert timed(found) == f"{said} Answers were checked on 24 of the app's own questions."
    found.candidates[0] = replace(QUICK, here=None)
    assert timed(found) == said
    found.others = [None, 0.02, 0.4]
    assert timed(found) == f"{said} {said_of(found.others)}", "a busy machine may name another one"


def test_each_stands_where_it_came_to() -> None:
    tied, out = candidate("tied", 10.1), replace(WORSE, out="It was slower.")
    found = replace(search(QUICK, tied, out, UNTIMED), advised="quick", tied=("quick", "tied"))
    assert [found.standing(each) for each in found.candidates] == [
        "advised", "a tie with the advised one", "It was slower.", "",
    ]  # fmt: skip


def test_a_search_that_fails_leaves_nothing_loaded_that_was_not_before(
    runtime: Runtime, small: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [catalog.backend(name) for name in ("baseline", "pruned")]

    def failing(runtime: Runtime, *_: object) -> None:
        for each in rows:
            runtime.load(small, each, "cpu", UNWATCHED)
        raise QAError("The baseline broke.")

    monkeypatch.setattr(lookup, "BACKENDS", rows)
    monkeypatch.setattr(module, "AnswerCheck", failing)
    runtime.drop(small, "pruned", "cpu")
    runtime.load(small, rows[0], "cpu", UNWATCHED)
    with pytest.raises(QAError, match="The baseline broke"):
        recommend(runtime, replace(WISH, family=small.name))
    assert soon(lambda: "small/pruned" not in runtime.loaded("cpu"))
    assert "small/baseline" in runtime.loaded("cpu")


def test_a_family_that_is_forgotten_while_it_is_searched_is_searched_to_the_end(small: Family) -> None:
    wish = replace(WISH, family=small.name)
    wish.check()
    catalog.forget(small.name)
    assert "Timed: Small and random, " in timed(Search(wish, MACHINE))
    with pytest.raises(UnknownBackend, match="no family 'small'"):
        replace(wish).check()


def test_random_weights_are_not_advised(runtime: Runtime) -> None:
    with pytest.raises(InputError, match="answer nothing"):
        recommend(runtime, replace(WISH, family="bert-large-random"))


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        (Wish("nobody"), "no family"),
        (replace(WISH, device="abacus"), "no device"),
        (replace(WISH, lengths=()), "length"),
        (replace(WISH, lengths=(32, 32)), "once"),
        (replace(WISH, lengths=(16,)), "32 to 512"),
        (replace(WISH, batch=65), "1 to 64"),
        (replace(WISH, max_f1_loss=-1), "F1"),
        (replace(WISH, seconds=1), "seconds"),
        (replace(WISH, memory_mb=0), "megabytes"),
    ],
)
def test_a_wish_that_nothing_could_meet_is_refused(runtime: Runtime, wish: Wish, said: str) -> None:
    with pytest.raises(InputError, match=said):
        recommend(runtime, wish)


def test_the_command_asks_the_same_again() -> None:
    assert replace(WISH, memory_mb=64.5).command() == (
        "python -m qa_backends recommend --family minilm --device cpu --max-f1-loss 1 --lengths 32,64 --batch 1 "
        "--memory 64.5 --seconds 20"
    )
