"""Questions read together: the answers are those of each alone, and what fails fails alone."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pytest
from helpers import QUESTION, ROOT, TEXT, soon
from serving.moody import MOODY, POISON, Mood, moody

from qa_backends import catalog
from qa_backends.catalog import Backend
from qa_backends.contract import Query
from qa_backends.errors import BackendFailed
from qa_backends.reader.tokens import SubwordTokenizer
from qa_backends.runtime import Runtime
from qa_backends.serving.batching import BatchSize
from qa_backends.serving.server import service_of
from qa_backends.serving.service import Bounds
from qa_backends.serving.together import Together
from qa_backends.squad import read_squad

if TYPE_CHECKING:
    from collections.abc import Callable

    from qa_backends.catalog import Family
    from qa_backends.contract import Answer

    AddFile = Callable[[str, str], None]

MINILM = catalog.family("minilm")


def asked(together: Together, *queries: Query) -> list[Answer | Exception]:
    return together.read([together.reader.prepare(each) for each in queries])


def test_answers_are_those_of_each_question_alone(runtime: Runtime) -> None:
    """Of texts of every length, one of them of several windows."""
    found = read_squad(ROOT / "assets" / "questions.json")[::9]
    queries = [Query(each.question, each.context) for each in found]
    queries.append(Query(QUESTION, "It rained. " * 400 + TEXT))
    together = Together(runtime, MINILM, catalog.backend("pruned-ort"), "cpu")
    alone = [asked(together, each)[0] for each in queries]
    for one, other in zip(asked(together, *queries), alone, strict=True):
        assert not isinstance(one, Exception) and not isinstance(other, Exception)
        assert (one.text, one.span) == (other.text, other.span)
        assert one.score == pytest.approx(other.score, abs=1e-3)
        assert one.confidence == pytest.approx(other.confidence, abs=1e-3)


def test_windows_joined_are_windows_cut_together(runtime: Runtime) -> None:
    reader = runtime.reader(MINILM)
    queries = [Query(QUESTION, TEXT), Query("Who sang?", "Ada sang. " * 200), Query(QUESTION, TEXT * 2)]
    joined, cut = reader.join([reader.prepare(each) for each in queries]), reader.prepare_all(queries)
    assert joined.queries == cut.queries
    for name in ("input_ids", "attention_mask", "token_type_ids", "offsets", "answerable", "query_index"):
        assert np.array_equal(getattr(joined.windows, name), getattr(cut.windows, name)), name


@pytest.fixture
def mood(add_engine: AddFile) -> Mood:
    return moody(add_engine)


@pytest.fixture
def together(mood: Mood, small_family: Family) -> Together:
    return Together(Runtime(), small_family, MOODY, "cpu")


def word(family: Family, text: str) -> int:
    """The token that stands for a word."""
    folder = family.source("baseline").folder
    assert folder is not None
    return int(SubwordTokenizer(folder).encode(text).ids[0])


GOOD = [Query(QUESTION, f"Word{number} is what stands first.") for number in range(7)]
BAD = Query(QUESTION, f"{POISON} is what stands first.")


def test_a_poisoned_question_fails_alone_and_unloads_nothing(
    together: Together, mood: Mood, small_family: Family
) -> None:
    mood.poison = word(small_family, POISON)
    found = asked(together, *GOOD[:3], BAD, *GOOD[3:])
    assert isinstance(found[3], BackendFailed) and "poisoned" in str(found[3])
    assert [each.text for each in (*found[:3], *found[4:]) if not isinstance(each, Exception)] == ["Word"] * len(GOOD)
    assert mood.loaded == 1


def test_a_question_that_kills_the_engine_fails_alone_too(together: Together, mood: Mood, small_family: Family) -> None:
    mood.poison, mood.kills = word(small_family, POISON), True
    found = asked(together, *GOOD[:3], BAD, *GOOD[3:])
    assert isinstance(found[3], BackendFailed) and "poisoned" in str(found[3])
    assert [each.text for each in (*found[:3], *found[4:]) if not isinstance(each, Exception)] == ["Word"] * len(GOOD)
    (after,) = asked(together, GOOD[0])
    assert not isinstance(after, Exception), "it was loaded afresh behind it"


def test_logits_that_are_not_numbers_fail_the_question_that_has_them(
    together: Together, mood: Mood, small_family: Family
) -> None:
    mood.overflow = word(small_family, POISON)
    first, second = asked(together, BAD, GOOD[0])
    assert isinstance(first, BackendFailed) and "not finite" in str(first)
    assert not isinstance(second, Exception)
    assert mood.loaded == 1


def test_an_engine_that_died_is_loaded_afresh_and_nothing_is_lost(together: Together, mood: Mood) -> None:
    mood.dies.set()
    found = asked(together, *GOOD)
    assert not any(isinstance(each, Exception) for each in found)
    assert mood.loaded == 2


def test_where_company_changes_logits_questions_are_read_one_by_one() -> None:
    alone = [each.name for each in catalog.BACKENDS if each.scaled_by_batch]
    assert "pruned-ort-int8-dynamic" in alone
    assert not {"baseline", "pruned-ort-fp16", "pruned-ort-int8"} & set(alone)


def test_a_server_puts_no_two_of_them_into_a_batch(
    mood: Mood, small_family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Backend, "scaled_by_batch", property(lambda _self: True))
    service = service_of(Runtime(), small_family, [MOODY], "cpu", BatchSize(), Bounds())
    service.start()
    while not service.ready:
        time.sleep(0.01)
    answers = asyncio.run(service.answer(MOODY.name, GOOD))
    service.close()
    assert len(answers) == len(GOOD) and not any(isinstance(each, Exception) for each in answers)
    told = service.metrics.text().decode()
    for what in ("sum", "count"):
        assert f'qa_batch_questions_{what}{{backend="small/{MOODY.name}"}} {len(GOOD):.1f}' in told


def test_others_get_a_turn_while_a_long_text_is_read(small_family: Family, mood: Mood) -> None:
    runtime = Runtime()
    together = Together(runtime, small_family, MOODY, "cpu")
    long = together.reader.prepare(
        Query("Who keeps the mill?", "The river is wide. " * 5_000 + "Marta keeps the mill.")
    )
    mood.forwards.clear()
    mood.let.clear()

    def go_on_once_a_turn_is_wanted() -> None:
        if soon(lambda: runtime.ahead() == 2):
            mood.let.set()

    with ThreadPoolExecutor(1) as reading:
        coming = reading.submit(together.read, [long])
        while not mood.forwards and not coming.done():
            time.sleep(0.01)
        threading.Thread(target=go_on_once_a_turn_is_wanted).start()
        with runtime.turn("cpu"):
            between = sum(mood.forwards)
            assert not coming.done()
        (answer,) = coming.result(60)
    assert not isinstance(answer, Exception)
    assert 0 < between < sum(mood.forwards) == long.windows.n_windows, "each window is read once"
