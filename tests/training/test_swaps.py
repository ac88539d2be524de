"""Entity swaps: by construction, as far as rules can tell, the text does not answer the new question."""

from __future__ import annotations

import random

import pytest

from qa_backends.paths import OWN_QUESTIONS
from qa_backends.squad import GoldAnswer, Question, read_squad
from qa_backends.training.swaps import SHARE_WHERE_NONE, Swaps, possible, swap

TEXT = (
    "The composer Frédéric Chopin lived in Paris from 1831. "
    "His pupil Emilie von Gretsch came from Riga in 1842. "
    "A year later the publisher Maurice Schlesinger printed 12 studies. "
    "In spring the singer Pauline Viardot and George Sand went to Nohant."
)


def ask(question: str, answer: str = "", name: str = "q", text: str = TEXT) -> Question:
    golds = (GoldAnswer(answer, text.index(answer)),) if answer else ()
    return Question(name, "Chopin", question, text, golds)


def replacements(question: Question) -> set[str]:
    return {new for _, new in possible(question)}


def test_another_entity_of_the_text_takes_the_place_of_the_questions() -> None:
    asked = ask("In which city did Frédéric Chopin live?", "Paris")
    swapped = swap(asked, random.Random(1))
    assert swapped and swapped.answers == () and swapped.context == TEXT
    (new,) = [each for each in replacements(asked) if each in swapped.question]
    assert swapped.question == f"In which city did {new} live?"
    assert new in TEXT and new not in asked.question
    assert {"Maurice Schlesinger", "Pauline Viardot", "George Sand"} <= replacements(asked)


def test_a_number_becomes_a_number_and_a_year_a_year() -> None:
    assert replacements(ask("Where did Schumann live in 1831?", "Riga")) >= {"Maurice Schlesinger"}
    years = {(old.text, new) for old, new in possible(ask("Who printed 99 works in 1850?", "Maurice Schlesinger"))}
    assert years == {("1850", "1831"), ("1850", "1842")}, "12 stands in the answer's own sentence"


@pytest.mark.parametrize(
    ("question", "answer", "never"),
    [
        ("Where did Liszt live?", "Paris", "Paris"),
        ("Where did Liszt live?", "Paris", "Frédéric Chopin"),
        ("Who visited Pauline in Riga?", "George Sand", "Pauline Viardot"),
        ("Which publisher printed studies with Liszt?", "12 studies", "Maurice Schlesinger"),
        ("Which pupil came from Berlin?", "Paris", "Emilie"),
    ],
    ids=["the answer", "in the answer's sentence", "a word of the question", "its sentence", "a related sentence"],
)
def test_what_may_share_the_answer_is_never_put_in(question: str, answer: str, never: str) -> None:
    found = replacements(ask(question, answer))
    assert found and never not in found


@pytest.mark.parametrize(
    ("text", "question", "answer", "safe"),
    [
        (
            "The composer Chopin lived in Paris. The writer Sand lived in Nohant. A pupil came from Mr Gutmann.",
            "Where did Chopin live?", "Paris", {"Mr Gutmann"},
        ),
        (
            "In 1831 the team won three medals. It then won nine in 1842. A coach arrived in 1850.",
            "How many medals did they win in 1831?", "three", {"1850"},
        ),
        (
            "The treaty with Estonia was signed in 1920. The treaty with Latvia was signed in 1921. Kings visit Riga.",
            "When did Russia make peace with Estonia?", "1920", {"Riga"},
        ),
    ],
    ids=["a form of the question's verb", "a year", "no word of the question"],
)  # fmt: skip
def test_what_the_text_says_the_same_of_is_never_put_in(text: str, question: str, answer: str, safe: set[str]) -> None:
    found = replacements(ask(question, answer, text=text))
    assert found == safe, "what stands where nothing alike is said, and nothing else"


def test_a_word_of_the_same_stem_is_no_other_entity() -> None:
    text = "Estonia joined in 2004. The Estonian parliament and Latvian friends cheered. Its neighbours waited."
    assert replacements(ask("When did Estonia join?", "2004", text=text)) == {"Latvian"}


def test_the_first_word_of_a_question_or_sentence_is_no_entity() -> None:
    assert possible(ask("Where did he live?", "Paris")) == []
    assert {old.text for old, _ in possible(ask("Did Liszt live there?", "Paris"))} == {"Liszt"}
    assert not replacements(ask("Where did Liszt live?", "Paris")) & {"The", "His", "In"}


def test_a_name_is_not_split_at_the_start_of_a_question() -> None:
    text = "Later Pauline Viardot sang in Nohant. There was Mr Liszt from Riga."
    assert possible(ask("Pauline Viardot sang where?", "Nohant", text=text)) == []


def test_questions_are_drawn_by_the_seed_each_once() -> None:
    questions = read_squad(OWN_QUESTIONS)
    swaps = Swaps(questions)
    drawn = swaps.draw(10, random.Random(3))
    assert drawn == swaps.draw(10, random.Random(3)) != swaps.draw(10, random.Random(4))
    assert len({each.id for each in drawn}) == len(drawn)
    assert {each.id.removesuffix("-swap") for each in drawn} <= {each.id for each in questions if each.answers}


def test_every_swapped_question_differs_in_one_entity_of_its_text() -> None:
    questions = {each.id: each for each in read_squad(OWN_QUESTIONS)}
    drawn = Swaps(list(questions.values())).draw(len(questions), random.Random(0))
    assert len(drawn) > 10
    for each in drawn:
        before = questions[each.id.removesuffix("-swap")]
        (new,) = {
            new
            for old, new in possible(before)
            if each.question == before.question[: old.start] + new + before.question[old.end :]
        }
        assert new in each.context and new not in before.question
        assert not any(new in gold.text or gold.text in new for gold in before.answers)
        assert each.context == before.context and each.answers == ()


def test_most_are_drawn_where_unanswerable_questions_are_missing() -> None:
    with_none = [ask("Where did Frédéric Chopin live?", "Paris", f"a{n}") for n in range(10)]
    other = "There was none. " + TEXT
    elsewhere = [ask("Where did Frédéric Chopin live?", "Paris", f"b{n}", other) for n in range(10)]
    drawn = Swaps([*with_none, *elsewhere, ask("Why?", text=other)]).draw(5, random.Random(0))
    assert sum(each.id.startswith("a") for each in drawn) == round(5 * SHARE_WHERE_NONE)
    assert len(drawn) == 5


def test_where_none_are_unanswerable_all_are_drawn_there() -> None:
    questions = [ask("Where did Frédéric Chopin live?", "Paris", f"a{n}") for n in range(10)]
    assert [len(Swaps(questions).draw(count, random.Random(0))) for count in (5, 10, 20)] == [5, 10, 10]


def test_a_question_that_was_asked_is_not_made_again() -> None:
    text = "Mr Liszt went to Riga. There Mr Sand stayed. He met Mr Chopin in Paris long before."
    asked = ask("Where did Liszt go?", "Riga", text=text)
    names = replacements(asked)
    known = [ask(f"Where did {name} go?", "Paris", name, text) for name in names]
    assert names
    assert [each.id for each in Swaps([asked, *known]).draw(9, random.Random(0)) if each.id == "q-swap"] == []
