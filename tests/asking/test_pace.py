"""A slow machine gets its answers as soon as they are known, and an estimate; a busy one is told to be busy."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from helpers import QUESTION, TEXT
from paced import PACED, paced

from qa_backends import catalog
from qa_backends.asking.ask import LEAST_LIVE_SECONDS, Asking, ask
from qa_backends.asking.comparison import comparison_of
from qa_backends.contract import Query
from qa_backends.progress import Cancelled
from qa_backends.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from qa_backends.catalog import Backend, Family

    AddFile = Callable[[str, str], None]

QUERY = Query(QUESTION, TEXT)
BOTH = [catalog.backend("baseline"), catalog.backend("pruned")]


def asked(
    family: Family, query: Query = QUERY, *, seconds: float, backends: Sequence[Backend] = PACED
) -> tuple[Asking, list[Asking]]:
    """What was found in the end, and what was known at every step."""
    steps: list[Asking] = []
    found = ask(
        Runtime(), family, backends, query, "cpu", seconds=seconds, emit=lambda state: steps.append(state.copy())
    )
    return found, steps


@contextmanager
def burning_cores() -> Iterator[None]:
    """While as many programs as there are cores do nothing but use them."""
    cores = len(os.sched_getaffinity(0))
    programs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(cores)]
    try:
        yield
    finally:
        for each in programs:
            each.kill()
            each.wait()


def test_a_machine_too_slow_for_turns_gets_every_answer_and_one_warm_time_of_each(
    small_family: Family, add_engine: AddFile
) -> None:
    """As one whose answers take three of the fifteen seconds: what is left is an estimate, and no complaint."""
    paced(add_engine, window_s=0.2, cold_s=0.6)
    found, steps = asked(small_family, seconds=1.0)
    comparison = comparison_of(found)
    assert comparison.fastest is None and comparison.status == ""
    for card in comparison.cards:
        assert card.answered and card.answer and card.error is None and card.notices == ()
        assert (card.runs, card.speed_up) == (0, None)
        assert card.latency_ms is not None and 200 <= card.latency_ms < 800 <= card.cold_ms
    assert not [each.status for each in steps if "turns" in each.status or "fit" in each.status]


def test_a_machine_that_is_slow_at_first_takes_turns_all_the_same(small_family: Family, add_engine: AddFile) -> None:
    paced(add_engine, cold_s=0.3)
    found, _ = asked(small_family, seconds=5)
    assert found.outcomes[0].cold_s > 0.3 and len(found.samples.blocks) >= 5


def test_the_turns_end_when_more_of_them_would_not_say_more(small_family: Family, add_engine: AddFile) -> None:
    paced(add_engine, window_s=0.02)
    found, _ = asked(small_family, seconds=60)
    fastest = found.fastest()
    assert fastest is not None and fastest[1].narrow
    assert LEAST_LIVE_SECONDS <= found.samples.spent_s < 30


def test_where_turns_would_take_too_long_it_is_said_how_long(small_family: Family, add_engine: AddFile) -> None:
    paced(add_engine, window_s=0.2)
    found, _ = asked(small_family, seconds=1)
    assert not found.samples.blocks
    assert re.search(
        r"One reading of each: turns that tell more take about \d+ s, and 1 s", comparison_of(found).notice
    )


def test_where_a_machine_slows_down_in_its_turns_it_is_said_that_they_were_too_few(
    small_family: Family, add_engine: AddFile
) -> None:
    pace = paced(add_engine, window_s=0.01)

    def slowing(state: Asking) -> None:
        if state.status.startswith("Taking turns"):
            pace.window_s = 0.3

    found = ask(Runtime(), small_family, PACED, QUERY, "cpu", seconds=1.5, emit=slowing)
    assert len(found.samples.blocks) < 5
    assert "One reading of each: turns were slower than the first answers" in comparison_of(found).notice


def test_an_answer_that_took_long_is_shown_before_it_is_timed(small_family: Family, add_engine: AddFile) -> None:
    paced(add_engine, window_s=0.1, cold_s=1.1)
    found, steps = asked(small_family, seconds=0, backends=PACED[1:])
    early = [each for each in steps if each.outcomes[0].answer and not each.outcomes[0].reading]
    assert len(early) == 1
    assert re.fullmatch(r"Pruned has answered, and is timed on a second run, about \d+ s …", early[0].status)
    assert not comparison_of(early[0]).answered, "a cold run's time is no time to compare with"
    assert early[0].outcomes[0].answer == found.outcomes[0].answer
    assert found.outcomes[0].reading is not None and found.outcomes[0].reading.times.forward_s < 1.1


def test_a_long_text_tells_how_far_each_backend_is(small_family: Family, add_engine: AddFile) -> None:
    paced(add_engine, window_s=0.015)
    _, steps = asked(small_family, Query(QUESTION, TEXT * 1200), seconds=0)
    said = [each.status for each in steps]
    for number, title in enumerate(("Baseline", "Pruned"), 1):
        assert len([each for each in said if each.startswith(f"{number} of 2: {title} is reading window ")]) >= 2
    assert not [each.status for each in asked(small_family, seconds=0)[1] if "window" in each.status]


@pytest.mark.parametrize("when", ["at its first answer", "in its turns"])
def test_a_long_text_is_stopped_within_a_batch(small_family: Family, add_engine: AddFile, when: str) -> None:
    pace = paced(add_engine, window_s=0.001)
    wanted: list[int] = []

    def emit(state: Asking) -> None:
        if when == "at its first answer" or state.status.startswith("Taking turns"):
            wanted.append(len(pace.forwards) + 3)

    with pytest.raises(Cancelled):
        ask(
            Runtime(), small_family, PACED, Query(QUESTION, TEXT * 1200), "cpu", seconds=60, emit=emit,
            stopped=lambda: bool(wanted) and len(pace.forwards) >= wanted[0],
        )  # fmt: skip
    assert len(pace.forwards) == wanted[0]


def test_what_loading_cost_is_told_of_each_backend_also_when_it_was_loaded_before(
    small_family: Family, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QA_CACHE", str(tmp_path))
    runtime, backends = Runtime(), [BOTH[0], catalog.backend("pruned-ort")]
    first, again = (ask(runtime, small_family, backends, QUERY, "cpu", seconds=0).outcomes for _ in range(2))
    for outcome in first:
        assert outcome.load_s and outcome.memory_bytes is not None
    assert first[0].build_s == 0 < first[1].build_s
    assert [(each.load_s, each.memory_bytes, each.build_s) for each in again] == [
        (each.load_s, each.memory_bytes, each.build_s) for each in first
    ]


@pytest.mark.usefixtures("quick")
def test_a_machine_that_others_use_is_told_to_be_busy(small_family: Family) -> None:
    with burning_cores():
        found, _ = asked(small_family, seconds=2)
    assert len(found.samples.blocks) >= 5
    assert found.busy is not None and found.busy > 0.15 and found.disturbed


def test_where_no_turns_are_taken_the_first_answers_tell_how_busy_it_was(
    small_family: Family, add_engine: AddFile
) -> None:
    paced(add_engine, window_s=0.4)
    with burning_cores():
        found, _ = asked(small_family, seconds=0)
    assert found.busy is not None and found.disturbed


@pytest.mark.parametrize(("busy", "disturbed"), [(None, False), (0.1, False), (0.2, True)])
def test_a_little_company_is_no_disturbance(small_family: Family, busy: float | None, disturbed: bool) -> None:
    assert Asking(QUERY, small_family, "cpu", [], busy=busy).disturbed == disturbed


@pytest.mark.parametrize(("language", "flagged"), [("en", True), ("", False)])
def test_english_models_say_so_from_the_first_word_on(small_family: Family, language: str, flagged: bool) -> None:
    german = Query(
        "Wer goss den Baum?",
        "Anna hat hinter der Schule einen Apfelbaum gepflanzt. Ben wollte nicht, dass er vertrocknet, und so hat er "
        "ihn zwölf Jahre lang jeden Tag gegossen, bis es im Herbst auch Äpfel gab. Er ist noch heute stolz auf ihn.",
    )
    found, steps = asked(replace(small_family, language=language), german, seconds=0, backends=BOTH[:1])
    assert {"German" in each.language_notice for each in [*steps, found]} == {flagged}
    assert asked(replace(small_family, language=language), seconds=0, backends=BOTH[:1])[0].language_notice == ""
