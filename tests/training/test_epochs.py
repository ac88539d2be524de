"""What an epoch is made of: changed anew each time, and the same again for the same seed."""

from __future__ import annotations

from dataclasses import replace

from helpers import BASELINE

from qa_backends.paths import OWN_QUESTIONS
from qa_backends.reader.tokens import SubwordTokenizer
from qa_backends.squad import GoldAnswer, Question, read_squad
from qa_backends.training.data import Example, examples
from qa_backends.training.epochs import Epochs
from qa_backends.training.settings import UNCHANGED, Changes

QUESTIONS = read_squad(OWN_QUESTIONS)[:80]
TOKENIZER = SubwordTokenizer(BASELINE)
NOISY = Changes(swaps=10, lower_case=0.3, cut=0.3, join=0.2, misplaced=0.2)


def ids_and_labels(found: list[Example]) -> list[tuple[object, ...]]:
    return [(each.question.ids.tolist(), each.piece.ids.tolist(), each.start, each.end) for each in found]


def test_nothing_is_changed_unless_asked_for() -> None:
    epochs = Epochs(QUESTIONS, TOKENIZER, UNCHANGED, seed=1)
    assert epochs.questions(0) == epochs.questions(5) == QUESTIONS
    assert ids_and_labels(epochs(3)) == ids_and_labels(examples(QUESTIONS, TOKENIZER))


def test_every_epoch_is_changed_anew_and_comes_again_for_the_same_seed() -> None:
    epochs = Epochs(QUESTIONS, TOKENIZER, NOISY, seed=1)
    first, second = (ids_and_labels(epochs(number)) for number in (0, 1))
    again = Epochs(QUESTIONS, TOKENIZER, NOISY, seed=1)
    assert ids_and_labels(again(1)) == second != first == ids_and_labels(epochs(0))
    assert Epochs(QUESTIONS, TOKENIZER, NOISY, seed=2).questions(0) != epochs.questions(0)


def test_further_questions_stand_behind_as_often_as_was_asked_unchanged_and_untaught() -> None:
    learned, also = QUESTIONS[:60], QUESTIONS[60:]
    epochs = Epochs(learned, TOKENIZER, NOISY, seed=1, also=also, also_times=3)
    without = Epochs(learned, TOKENIZER, NOISY, seed=1)
    for number in (0, 1):
        found, own = epochs(number), without(number)
        assert ids_and_labels(found[: len(own)]) == ids_and_labels(own) and all(each.taught for each in own)
        assert ids_and_labels(found[len(own) :]) == 3 * ids_and_labels(examples(also, TOKENIZER))
        assert not any(each.taught for each in found[len(own) :])


def test_swapped_questions_come_on_top() -> None:
    found = Epochs(QUESTIONS, TOKENIZER, Changes(swaps=7), seed=1).questions(0)
    assert found[: len(QUESTIONS)] == QUESTIONS
    assert [each.answers for each in found[len(QUESTIONS) :]] == [()] * 7


def test_a_swapped_question_keeps_its_text_to_itself() -> None:
    """The paragraph beside it may answer what its own does not."""
    article = [replace(each, title="T") for each in QUESTIONS]
    found = Epochs(article, TOKENIZER, Changes(swaps=7, join=1.0), seed=1).questions(0)
    contexts = {each.context for each in article}
    assert not {each.context for each in found[: len(article)]} & contexts
    assert {each.context for each in found[len(article) :]} <= contexts


def test_shares_are_of_all_questions() -> None:
    lower = Epochs(QUESTIONS, TOKENIZER, Changes(lower_case=0.5), seed=1).questions(0)
    changed = [each != before for each, before in zip(lower, QUESTIONS, strict=True)]
    assert 0.3 < sum(changed) / len(QUESTIONS) < 0.7
    assert all(each.question.islower() for each, differs in zip(lower, changed, strict=True) if differs)


def test_a_text_is_changed_in_one_way() -> None:
    article = [
        Question("1", "T", "Who came?", "Anna came. It rained.", (GoldAnswer("Anna", 0),)),
        Question("2", "T", "Who left?", "Ben left. It snowed.", (GoldAnswer("Ben", 0),)),
    ]
    changes = Changes(cut=0.3, join=0.4, misplaced=0.3)
    texts = {each.context for seed in range(60) for each in Epochs(article, TOKENIZER, changes, seed=seed).questions(0)}
    anna, ben = (each.context for each in article)
    assert texts == {
        anna,
        ben,
        f"{anna}\n{ben}",
        "Anna came.",
        "Ben left.",
    }
