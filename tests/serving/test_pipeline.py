"""``from qa_backends import pipeline``: what a program gets where it asked transformers' pipeline before."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest
from helpers import BASELINE, QUESTION, ROOT, TEXT
from serving.moody import MOODY, moody

from qa_backends import pipeline
from qa_backends.catalog import Backend, Family
from qa_backends.contract import Query
from qa_backends.errors import BackendFailed, InputError, UnknownBackend
from qa_backends.runtime import Runtime
from qa_backends.serving.pipeline import Options, QuestionAnswering
from qa_backends.squad import Question, read_squad

FIRST = 60
OPTIONS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "answers or none": {"handle_impossible_answer": True, "max_answer_len": 30},
    "three answers": {"top_k": 3, "align_to_words": False},
    "three answers or none, whole words": {"top_k": 3, "handle_impossible_answer": True},
}


@pytest.fixture(scope="module")
def ours() -> Any:
    return pipeline("baseline", device="cpu")


@pytest.fixture(scope="module")
def theirs() -> Any:
    from transformers import AutoTokenizer
    from transformers import pipeline as of_transformers

    from qa_backends.checkpoints.load import load_model

    tokenizer = AutoTokenizer.from_pretrained(BASELINE)
    return of_transformers("question-answering", model=load_model(BASELINE), tokenizer=tokenizer, device="cpu")


@pytest.fixture(scope="module")
def questions() -> list[Question]:
    """Of every text two, so that kinds of text differ; all fit one window, over which scores can be compared."""
    found = read_squad(ROOT / "assets" / "questions.json")
    return [each for number, each in enumerate(found) if number % 4 < 2 and len(each.context) < 1_200][:FIRST]


def as_list(found: Any) -> list[dict[str, Any]]:
    return found if isinstance(found, list) else [found]


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_answers_and_scores_are_those_of_the_pipeline(
    ours: Any, theirs: Any, questions: list[Question], options: dict[str, Any]
) -> None:
    asked = {"question": [each.question for each in questions], "context": [each.context for each in questions]}
    mine, others = ours(**asked, **options), theirs(**asked, **options)
    assert len(mine) == len(others) == len(questions)
    for one, other in zip(mine, others, strict=True):
        assert len(as_list(one)) == len(as_list(other))
        for a, b in zip(as_list(one), as_list(other), strict=True):
            assert {key: a[key] for key in ("answer", "start", "end")} == {
                key: b[key] for key in ("answer", "start", "end")
            }
            assert a["score"] == pytest.approx(b["score"], abs=2e-4)


def test_every_form_of_asking_gives_the_same(ours: Any) -> None:
    pair = {"question": QUESTION, "context": TEXT}
    alone = ours(question=QUESTION, context=TEXT)
    assert alone["answer"] == "Ben" and TEXT[alone["start"] : alone["end"]] == "Ben" and 0 < alone["score"] <= 1
    assert ours(pair) == ours(QUESTION, TEXT) == ours([pair]) == ours(question=[QUESTION], context=TEXT) == alone
    together = ours(question=[QUESTION, "What was planted?"], context=TEXT)
    assert ours([pair, {"question": "What was planted?", "context": TEXT}]) == together
    assert ours(pair, {"question": "What was planted?", "context": TEXT}) == together
    assert together[0]["answer"] == "Ben" and "apple tree" in together[1]["answer"]
    assert ours(iter([pair])) == ours({"question": [QUESTION], "context": [TEXT]}) == alone
    assert ours(**pair, batch_size=1, padding=True) == pytest.approx(alone)


def test_a_generator_is_answered_as_it_is_read(ours: Any) -> None:
    endless = ({"question": QUESTION, "context": f"{TEXT} {number}."} for number in count())
    assert [each["answer"] for each in islice(ours(endless), 3)] == ["Ben"] * 3
    assert next(endless)["context"].endswith(" 3."), "nothing was read ahead"


def test_a_long_text_is_searched_whole_and_its_scores_share_one_softmax(ours: Any) -> None:
    filler = "The committee met on a grey morning and spoke about roads, bridges and the price of paper. "
    text = filler * 60 + TEXT + filler * 60
    assert ours(question=QUESTION, context=text)["answer"] == "Ben"
    found = ours(question=QUESTION, context=text, top_k=5, handle_impossible_answer=True)
    assert "" in [each["answer"] for each in found] and "Ben" in [each["answer"] for each in found]
    assert [each["score"] for each in found] == sorted((each["score"] for each in found), reverse=True)
    assert sum(each["score"] for each in found) <= 1.0 + 1e-6


def test_no_answer_is_an_empty_one_where_that_is_allowed(ours: Any) -> None:
    found = ours(question="What does the bakery cost?", context=TEXT, handle_impossible_answer=True)
    assert (found["answer"], found["start"], found["end"]) == ("", 0, 0)
    assert ours(question="What does the bakery cost?", context=TEXT)["answer"] != ""


def test_where_company_changes_logits_no_two_questions_share_a_call(
    add_engine: Callable[[str, str], None], small_family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Backend, "scaled_by_batch", property(lambda _self: True))
    mood = moody(add_engine)
    asked = QuestionAnswering(Runtime(), small_family, MOODY, "cpu", Options())
    mood.forwards.clear()  # of warming up
    asked(question=[QUESTION, "What was planted?", "Who?"], context=TEXT, batch_size=2)
    assert mood.forwards == [1, 1, 1]


def test_an_engine_that_died_is_said_and_the_next_question_starts_it_afresh(
    add_engine: Callable[[str, str], None], small_family: Family
) -> None:
    mood = moody(add_engine)
    asked = QuestionAnswering(Runtime(), small_family, MOODY, "cpu", Options())
    mood.dies.set()
    with pytest.raises(BackendFailed, match="the engine is dead"):
        asked(question=QUESTION, context=TEXT)
    assert asked(question=QUESTION, context=TEXT)["answer"] == "Anna"
    assert mood.loaded == 2


def test_logits_that_are_no_numbers_are_no_empty_answer(
    add_engine: Callable[[str, str], None], small_family: Family
) -> None:
    mood = moody(add_engine)
    runtime = Runtime()
    asked = QuestionAnswering(runtime, small_family, MOODY, "cpu", Options())
    mood.overflow = int(runtime.reader(small_family).prepare(Query("Who?", "arsenic")).windows.input_ids[0, -2])
    with pytest.raises(BackendFailed, match="logits are not finite"):
        asked(question="Who ate arsenic?", context=TEXT)
    assert asked(question=QUESTION, context=TEXT)["answer"] == "Anna"


def test_options_given_when_it_is_made_are_defaults() -> None:
    assert len(pipeline("baseline", device=-1, top_k=3)(question=QUESTION, context=TEXT)) == 3


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "Give question= and context="),
        ({"question": QUESTION}, "Give question= and context="),
        ({"question": "", "context": TEXT}, "The question is empty"),
        ({"question": QUESTION, "context": ["a b", "c d"]}, "Give question= and context="),
        ({"question": [QUESTION, "\u200b"], "context": TEXT}, "The question holds no letters"),
        ({"question": [QUESTION, QUESTION], "context": [TEXT, "\u200b"]}, "The text holds no letters"),
        ({"question": [QUESTION, QUESTION], "context": [TEXT, " "]}, "There is no text"),
        ({"question": [QUESTION], "context": [TEXT, TEXT]}, "There are 1 questions and 2 contexts"),
        ({"question": QUESTION, "context": TEXT, "top_k": 0}, "top_k is 0"),
        ({"question": QUESTION, "context": TEXT, "top_k": "2"}, "top_k is '2'; give a whole number"),
        ({"question": QUESTION, "context": TEXT, "max_seq_len": 100.0}, "max_seq_len is 100.0"),
        ({"question": QUESTION, "context": TEXT, "doc_stride": -5}, "doc_stride is -5; give 0 or more"),
        ({"question": QUESTION, "context": TEXT, "topk": 2}, "There is no option 'topk'"),
        ({"question": QUESTION, "context": TEXT, "max_seq_len": 4096}, "512 positions"),
        ({"question": QUESTION, "context": TEXT, "max_seq_len": 64, "doc_stride": 60}, "leaves no room"),
        ({"question": QUESTION, "context": TEXT, "max_seq_len": 64, "doc_stride": 65}, "larger than max_seq_len"),
    ],
)
def test_what_cannot_be_asked_is_said_in_a_sentence(ours: Any, asked: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said) as raised:
        ours(**asked)
    assert isinstance(raised.value, InputError)


def test_no_such_backend_or_device() -> None:
    with pytest.raises(UnknownBackend, match="pruned-ort-fp16"):
        pipeline("question-answering")
    with pytest.raises(InputError, match="7 is no backend's name"):
        pipeline(7)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="device 'cuda:7'"):
        pipeline("baseline", device=7)


def test_random_weights_are_not_asked() -> None:
    with pytest.raises(InputError, match="answer nothing"):
        pipeline("baseline", family="bert-large-random")


def test_the_documents_lines_run_as_they_stand() -> None:
    document = (Path(ROOT) / "docs" / "library.md").read_text(encoding="utf-8")
    blocks = [each.partition("```")[0] for each in document.split("```python\n")[1:]]
    assert len(blocks) == 2
    exec(compile("\n".join(blocks), "docs/library.md", "exec"), {})


def test_importing_the_package_imports_nothing_heavy() -> None:
    import subprocess
    import sys

    code = "import qa_backends, sys; print(sorted({'torch', 'numpy', 'gradio', 'transformers'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(ROOT), capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
