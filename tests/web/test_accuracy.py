"""What the accuracy tab draws: both data sets, how sure each difference is, and what was chosen."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import gradio as gr
import numpy as np
import pytest
from helpers import calls_of
from measure.invented import quality_record

from qa_backends import catalog
from qa_backends.contract import Answer, Span
from qa_backends.measure.quality.datasets import EVERYDAY, OWN, SQUAD_V2_DEV, TITLES, sha256_of
from qa_backends.measure.quality.evaluation import Differing, Evaluated, Evaluation
from qa_backends.measure.quality.scoring import score
from qa_backends.measure.results.records import QualityRecord
from qa_backends.measure.timing.statistics import Difference, Interval, interval_of_mean, paired_difference
from qa_backends.runtime import Runtime
from qa_backends.squad import GoldAnswer, Question
from qa_backends.web.accuracy import html
from qa_backends.web.accuracy.shown import OWN_FILE, Shown, said_of, shipped, shipped_commands
from qa_backends.web.accuracy.tab import AccuracyTab
from qa_backends.web.page import build_page

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from qa_backends.progress import Progress

EVIL = "<img src=x onerror=alert(1)>"


def plain(shown: str) -> str:
    """What a reader sees of it."""
    return " ".join(unescape(re.sub("<[^>]*>", " ", shown)).split())


def squad(**other: Any) -> QualityRecord:
    return quality_record("minilm/pruned", data_sha256=sha256_of(SQUAD_V2_DEV), n=11_873, **other)


def own(**other: Any) -> QualityRecord:
    return quality_record("minilm/pruned", data_sha256=sha256_of(OWN), n=294, f1_interval=Interval(64.0, 75.0), **other)


def test_the_caption_says_which_set_is_which_and_how_closely_each_tells_f1() -> None:
    said = plain(html.caption([squad(), own()], "Ours."))
    assert "Ours. Abacus, 2 cores, 24 GiB, 2026-01-02." in said
    assert "SQuAD : all 11,873 questions of SQuAD v2.0 dev" in said and "known to within 1.0 either way" in said
    assert "other texts : all 294 questions that ship" in said and "known only to within 5.5 either way" in said
    part = plain(html.caption([replace(own(), limit=60, seed=3, n=60)], "Yours."))
    assert "60 drawn at random (seed 3) of the 294 questions" in part
    assert "all questions in the file" in plain(html.caption([quality_record(data=EVIL)], "Yours."))
    assert EVIL not in html.caption([quality_record(data=EVIL)], "Yours.")
    assert html.caption([], "Ours.") == ""


@pytest.mark.parametrize(
    ("difference", "said"),
    [
        (Difference(-0.3, -0.8, 0.3), "−0.3 tie [−0.8 to +0.3]"),
        (Difference(-3.4, -7.0, 0.3), "−3.4 undecided [−7.0 to +0.3]"),
        (Difference(-2.4, -3.1, -1.7), "−2.4 [−3.1 to −1.7]"),
    ],
)
def test_a_wide_interval_around_nothing_is_no_tie(difference: Difference, said: str) -> None:
    shown = plain(html.table([squad(f1_difference=difference)]))
    assert said in shown
    assert sum(word in shown for word in ("tie", "undecided")) == (said.split()[1] in ("tie", "undecided"))


def test_three_questions_settle_nothing() -> None:
    """All right, and as the baseline answers them: neither certainty nor a tie."""
    right = np.full(3, 100.0)
    spread, difference = interval_of_mean(right), paired_difference(right, right)
    found = quality_record(
        "minilm/pruned", n=3, exact=100.0, f1=100.0, exact_interval=spread, f1_interval=spread,
        f1_difference=difference,
    )  # fmt: skip
    assert "100.0 [29.2–100.0]" in plain(html.table([found])) and "0.0 undecided" in plain(html.table([found]))
    assert "within 35.4 either way" in plain(html.caption([found], "Yours."))


def test_intervals_are_drawn_to_one_scale() -> None:
    shown = html.table([squad(f1_difference=Difference(-1, -2, 0)), own(f1_difference=Difference(-4, -8, 2))])
    drawn = re.findall(r"--zero:([\d.]+)%;--low:([\d.]+)%;--width:([\d.]+)%;--at:([\d.]+)%", shown)
    assert drawn == [("80.0", "60.0", "20.0", "70.0"), ("80.0", "0.0", "100.0", "40.0")]


def test_a_baseline_is_not_compared_with_itself_and_names_are_no_markup() -> None:
    shown = html.table([quality_record(f1_difference=Difference(0, 0, 0), agreement=100.0), quality_record(EVIL)])
    assert EVIL not in shown
    first = shown.split("<tbody>")[1].split("</tr>")[0]
    assert "100.0" not in plain(first) and plain(first).count("–") >= 2


def test_what_ships_stands_one_data_set_beside_the_other() -> None:
    records = shipped()
    names = (SQUAD_V2_DEV, OWN, EVERYDAY)
    assert [each.data_sha256 for each in records[:6]] == [sha256_of(each) for each in names] * 2
    assert [each.name for each in records[:6]] == ["baseline"] * 3 + ["pruned"] * 3


def test_the_lines_that_repeat_what_ships_read_every_data_set_by_every_backend(tmp_path: Path) -> None:
    calls = calls_of(shipped_commands(shipped()), tmp_path)
    data_and_backend = {(each["--data"], each["--backend"]) for each in calls}
    names = {sha256_of(each): each for each in TITLES}
    assert data_and_backend == {(names[each.data_sha256], each.name) for each in shipped()}
    assert len(calls) == len(shipped())
    assert shipped_commands([]) == "", "of a family of which nothing was measured"


def test_a_stop_while_the_questions_are_downloaded_gives_the_buttons_back(monkeypatch: pytest.MonkeyPatch) -> None:
    request: Any = SimpleNamespace(session_hash="somebody")
    with gr.Blocks():
        tab = AccuracyTab(Runtime())

    def download(_name: str, progress: Progress) -> None:
        tab._bar.stop(request)
        progress.say("half of it has come")

    monkeypatch.setattr("qa_backends.web.accuracy.tab.data_set", download)
    *_, last = tab.start(["baseline"], "minilm", "cpu", SQUAD_V2_DEV, None, 0, request)
    shown = {getattr(widget, "elem_id", ""): update for widget, update in last.items()}
    assert "no backend was finished" in shown["qa-accuracy-progress"]
    assert shown["qa-accuracy-start"].interactive and not shown["qa-accuracy-stop"].visible


def test_the_page_of_a_family_of_which_nothing_was_measured_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QA_FAMILY", "bert-large")
    assert build_page(Runtime()).fns


@pytest.mark.parametrize(("family", "ships"), [("minilm", True), ("bert-large", False)])
def test_a_table_that_is_empty_is_not_said_to_show_what_ships(
    monkeypatch: pytest.MonkeyPatch, family: str, ships: bool
) -> None:
    monkeypatch.setenv("QA_FAMILY", family)
    with gr.Blocks():
        tab = AccuracyTab(Runtime())
    assert bool(tab._table.value) is ships
    assert ("shows what ships" in tab._bar.progress.value) is ships


def test_what_is_chosen_is_said_in_a_line() -> None:
    chosen = (["baseline", "pruned"], "minilm", "cpu")
    assert said_of(*chosen, OWN, 60) == "Baseline + Pruned · MiniLM · CPU · 60 of the app's own 294 questions"
    assert said_of(*chosen, OWN, None) == "Baseline + Pruned · MiniLM · CPU · the app's own 294 questions"
    assert said_of(*chosen, OWN, 500) == said_of(*chosen, OWN, 294) == said_of(*chosen, OWN, None), "all there are"
    assert said_of(*chosen, OWN_FILE, 0).endswith("the questions of a file of mine")


def test_where_two_backends_differ_is_shown_and_asked_as_it_was_evaluated() -> None:
    alike = Question("1", "", "Who sang?", "Anna sang.", (GoldAnswer("Anna", 0),))
    apart = Question("2", "", "Who slept?", "Ben slept while Anna sang.", (GoldAnswer("Ben", 0),))
    ben, anna = Answer("Ben", Span(0, 3), 1.0, 0.0, 0.9), Answer("Anna", Span(16, 20), 1.0, 0.0, 0.9)
    first = score(alike, Answer("Anna", Span(0, 4), 1.0, 0.0, 0.9))
    measured = Shown(
        tuple(
            Evaluated(catalog.backend(name), quality_record(f"minilm/{name}"), (first, score(apart, answer)))
            for name, answer in (("baseline", ben), ("pruned", anna))
        )
    )
    with gr.Blocks():
        tab = AccuracyTab(Runtime())
    shown = plain(tab.show(measured, "baseline", "pruned"))
    assert "Who slept?" in shown and "Who sang?" not in shown
    assert tab.show(measured, "baseline", "distilled") == "", "chosen in an evaluation before"
    assert tab.show(None, "baseline", "pruned") == ""
    click = gr.EventData(None, {"number": 0})
    _, context, question, ticked, family, device, _ = tab.ask_it(measured, "baseline", "pruned", click)
    assert (context, question, family, device) == (apart.context, apart.question, "minilm", "cpu")
    assert ticked.value == ["baseline", "pruned"]
    nowhere = tab.ask_it(measured, "baseline", "pruned", gr.EventData(None, {"number": 1}))
    assert len(nowhere) == 7 and all(each == gr.skip() for each in nowhere)


@pytest.mark.parametrize("ids", ["12", "11"])
def test_predictions_are_offered_unless_questions_share_an_id(monkeypatch: pytest.MonkeyPatch, ids: str) -> None:
    questions = [Question(each, "", "Who sang?", "Anna sang.", (GoldAnswer("Anna", 0),)) for each in ids]
    scored = tuple(score(each, Answer("Anna", Span(0, 4), 1.0, 0.0, 0.9)) for each in questions)
    result = Evaluated(catalog.backend("baseline"), quality_record("minilm/baseline"), scored)
    with gr.Blocks():
        tab = AccuracyTab(Runtime())

    def evaluate(_runtime: Runtime, *_: Any, emit: Callable[[Evaluation], None], **__: Any) -> None:
        emit(Evaluation(of=2, done=2, results=[result]))

    monkeypatch.setattr("qa_backends.web.accuracy.tab.evaluate_all", evaluate)
    *states, _ = tab.start(["baseline"], "minilm", "cpu", OWN, None, 0, SimpleNamespace(session_hash="me"))
    shown = {getattr(widget, "elem_id", ""): update for widget, update in states[-1].items()}
    apart = ids == "12"
    assert shown["qa-accuracy-predictions"].visible is apart
    assert ("--predictions" in shown["qa-accuracy-command"]) is apart
    assert ("share an id" in shown["qa-accuracy-caption"]) is not apart


def test_a_shown_excerpt_begins_and_ends_with_whole_words() -> None:
    context = "before " * 50 + "Rome" + " behind" * 50
    question = Question("1", "", "Where?", context, (GoldAnswer("Rome", context.index("Rome")),))
    right = score(question, Answer("Rome", Span(350, 354), 1.0, 0.0, 0.9))
    pair = catalog.backend("baseline"), catalog.backend("pruned")
    shown = html.differing([Differing(right, score(question, Answer("", None, 0.0, 1.0, 0.9)))], *pair, asked=1)
    excerpt = plain(shown.split('class="qa-soft" dir="auto"')[1].split("</p>")[0].partition(">")[2])
    assert set(excerpt.split()) == {"…", "before", "Rome", "behind"}
