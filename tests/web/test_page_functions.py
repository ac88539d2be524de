"""What the page draws of a comparison: every sentence it can say, and nothing of a person's text as markup."""

from __future__ import annotations

import json
from dataclasses import replace
from urllib.parse import parse_qs

import pytest

from qa_backends.measure.statistics import Ratio
from qa_backends.measure.view import Card, View, as_dict, from_dict
from qa_backends.web import charts, render, share

EVIL = '<script>alert(1)</script> & "quotes" ${1+1} {{2+2}}'
PARTS = {"tokenise": 0.2, "model": 9.5, "decode": 0.3}
BASE = Card("baseline", "Baseline", answer="Ben", span=(46, 49), confidence=0.9, parts_ms=PARTS, latency_ms=10.0,
            runs=24, same_answer=True, f1=70.0, ran="PyTorch CPU")  # fmt: skip
FAST = replace(BASE, backend="pruned-ort-fp16", title="Pruned, fused, FP16", latency_ms=3.0,
               speed_up=Ratio(3.4, 3.2, 3.6, 24), f1=69.3)  # fmt: skip
TEXT = "Anna planted an apple tree behind the school. Ben watered it."


def view(*cards: Card, context: str = TEXT) -> View:
    return View("Who?", context, "minilm", "cpu", cards)


@pytest.mark.parametrize(
    ("cards", "sentence"),
    [
        ((BASE, FAST), "Pruned, fused, FP16 is 3.4× faster [3.2–3.6], 24 runs, with the same answer, "
                       "at 0.7 F1 less on SQuAD v2 (69.3 against 70.0)."),
        ((BASE, replace(FAST, same_answer=False)), "with a different answer"),
        ((BASE, replace(FAST, f1=None)), "has not been measured"),
        ((BASE, replace(FAST, speed_up=Ratio(1.02, 0.9, 1.1, 24))), "a tie with the baseline"),
        ((BASE, replace(FAST, speed_up=Ratio(0.5, 0.4, 0.6, 24))), "2.0× slower"),
        ((BASE, replace(FAST, speed_up=None, runs=0)), "one reading"),
        ((FAST,), "tick the baseline to compare"),
        ((BASE,), "answered in 10.0 ms"),
        ((replace(BASE, latency_ms=None, error="It broke."),), "No backend could answer"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else None,
)  # fmt: skip
def test_the_verdict_says_what_was_found(cards: tuple[Card, ...], sentence: str) -> None:
    assert sentence in render.verdict_text(view(*cards))


def test_a_backend_that_failed_shows_its_sentence_beside_the_others() -> None:
    html = render.cards(view(BASE, Card("pruned", "Pruned", error="pruned failed while answering. Ask again.")))
    assert "Ask again" in html and "Ben" in html


def test_no_answer_and_one_reading_are_said() -> None:
    html = render.cards(view(replace(BASE, answer=None, span=None), replace(FAST, speed_up=None, runs=0)))
    assert "no answer in this text" in html and "one reading" in html


def test_typed_text_is_never_markup() -> None:
    card = replace(BASE, answer=EVIL, span=(0, len(EVIL)), error=None, notices=(EVIL,))
    shown = view(card, replace(BASE, latency_ms=None, error=EVIL), context=EVIL + TEXT)
    shown = replace(shown, question=EVIL, status=EVIL)
    for html in (render.cards(shown), render.marked(shown), render.verdict(shown), render.problem(EVIL),
                 render.replay(shown, 1)):  # fmt: skip
        assert "<script" not in html
    assert "<script" not in charts.history([shown]).to_json().replace("\\u003c", "<")


def test_overlapping_answers_are_marked_in_place_and_the_text_stays_whole() -> None:
    from html import unescape
    from re import sub

    html = render.marked(view(replace(BASE, span=(13, 26)), replace(FAST, span=(16, 31))))
    text = html.split('<ul class="qa-legend">')[0]
    assert unescape(sub(r"<[^>]+>", "", text)) == TEXT
    assert [unescape(part) for part in _marks(text)] == [TEXT[13:16], TEXT[16:26], TEXT[26:31]]
    assert 'title="Baseline, Pruned, fused, FP16"' in html


def _marks(html: str) -> list[str]:
    from re import findall

    return list(findall(r"<mark[^>]*>([^<]*)</mark>", html))


def test_a_long_text_is_shortened_around_its_answers() -> None:
    context = "x" * 50_000 + "ANSWER" + "y" * 50_000
    html = render.marked(view(replace(BASE, span=(50_000, 50_006)), context=context))
    assert "ANSWER" in html and len(html) < 5_000
    assert html.count("characters …") == 2


def test_the_replay_keeps_the_proportions_measured() -> None:
    html = render.replay(view(BASE, FAST), 1)
    assert "4.00s linear" in html and "1.20s linear" in html


def test_charts_have_the_data() -> None:
    bars = charts.latency(view(BASE, FAST))
    assert sum(sum(trace.x) for trace in bars.data) == pytest.approx(20.0)
    lines = charts.history([view(BASE, FAST), view(BASE, FAST)])
    assert [len(trace.x) for trace in lines.data] == [2, 2]


def test_a_view_survives_json() -> None:
    shown = view(BASE, replace(FAST, notices=("cut",)))
    assert from_dict(json.loads(json.dumps(as_dict(shown)))) == shown


def test_a_link_reopens_the_question() -> None:
    query = share.link("Who & what?", TEXT + " é\r\n😀", "minilm", ["baseline", "pruned"])
    found = share.read_link({key: values[0] for key, values in parse_qs(query[1:]).items()})
    assert found == share.Shared("Who & what?", TEXT + " é\r\n😀", "minilm", ["baseline", "pruned"])


def test_a_link_leaves_out_a_long_text_and_a_strange_one_is_not_believed() -> None:
    assert len(share.link("Who?", "x" * 100_000, "minilm", ["baseline"])) < 200
    found = share.read_link({"q": "Who?", "family": "../../etc", "backends": "rm,pruned"})
    assert found is not None
    assert found.family == "minilm" and found.backends == ["pruned"]
    assert share.read_link({}) is None


def test_the_code_repeats_the_question(capsys: pytest.CaptureFixture[str]) -> None:
    code = share.as_python("Who watered 'it'?", TEXT, "minilm", ["baseline"])
    exec(compile(code, "copied", "exec"), {})
    assert capsys.readouterr().out.startswith("baseline ")
    shell = share.as_shell("Who watered 'it'?", TEXT, "minilm", ["baseline"])
    assert "'Who watered '\"'\"'it'\"'\"'?'" in shell
