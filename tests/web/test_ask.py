"""What the page draws of a comparison: every sentence it can say, and nothing of a person's text as markup."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import parse_qs

import pytest

from qa_backends.asking.comparison import Card, Comparison, Fastest
from qa_backends.measure.timing.statistics import Difference, Ratio
from qa_backends.web.ask import charts, share
from qa_backends.web.ask import html as drawn
from qa_backends.web.shared.html import problem

EVIL = '<script>alert(1)</script> & "quotes" ${1+1} {{2+2}}'
PARTS = {"tokenise": 0.2, "model": 9.5, "decode": 0.3}
BASE = Card(
    "baseline", "Baseline", "the model", answer="Ben", span=(46, 49), confidence=0.9, parts_ms=PARTS, latency_ms=10.0,
    runs=24, same_answer=True, f1=70.0, f1_device="cpu", ran="PyTorch CPU",
)  # fmt: skip
FAST = replace(BASE, backend="pruned-ort-fp16", title="Pruned, fused, FP16", latency_ms=3.0,
               speed_up=Ratio(3.4, 3.2, 3.6, 24), f1=69.3, f1_difference=Difference(-0.7, -1.1, -0.3))  # fmt: skip
TEXT = "Anna planted an apple tree behind the school. Ben watered it."


def view(*cards: Card, context: str = TEXT) -> Comparison:
    fastest = next((Fastest(card.backend, card.speed_up) for card in cards if card.speed_up), None)
    return Comparison("Who?", context, "minilm", "cpu", cards, fastest=fastest)


@pytest.mark.parametrize(
    ("cards", "sentence"),
    [
        ((BASE, FAST), "Pruned, fused, FP16 is 3.4× faster [3.2–3.6], 24 runs, with the same answer, "
                       f"and F1 69.3 against 70.0 on SQuAD v2: {Difference(-0.7, -1.1, -0.3)}."),
        ((BASE, replace(FAST, same_answer=False)), "with a different answer"),
        ((BASE, replace(FAST, f1=None)), "has not been measured"),
        ((BASE, replace(FAST, speed_up=Ratio(1.02, 0.9, 1.1, 24))), "a tie with the baseline"),
        ((BASE, replace(FAST, speed_up=Ratio(0.5, 0.4, 0.6, 24))), "2.0× slower"),
        ((BASE, replace(FAST, speed_up=None, runs=0)), "one reading"),
        ((FAST,), "tick the baseline to compare"),
        ((BASE,), "answered in 10.0 ms"),
        ((replace(BASE, latency_ms=None, error="It broke."),), "No backend could answer"),
        ((replace(BASE, latency_ms=None, error="It broke."), FAST), "the baseline could not answer"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else None,
)  # fmt: skip
def test_the_verdict_says_what_was_found(cards: tuple[Card, ...], sentence: str) -> None:
    assert sentence in drawn.verdict_text(view(*cards))


def test_while_turns_are_still_to_come_the_verdict_claims_nothing() -> None:
    begun = replace(view(BASE, replace(FAST, speed_up=None, runs=0)), status="Taking turns to compare speeds …")
    assert "so far" in drawn.verdict_text(begun) and "did not fit" not in drawn.verdict_text(begun)
    pending = replace(view(replace(BASE, latency_ms=None), FAST), status="Baseline is answering …")
    assert "the baseline is next" in drawn.verdict_text(pending)


def test_a_slow_race_is_said_to_be_sped_up() -> None:
    assert "slowed down 400 times" in drawn.replay(view(BASE), 1)
    assert "sped up 3.0 times" in drawn.replay(view(replace(BASE, latency_ms=12_000.0)), 1)


def test_a_long_text_without_an_answer_still_shows_its_beginning() -> None:
    html = drawn.marked(view(replace(BASE, answer=None, span=None), context="The beginning." + "x" * 50_000))
    assert "The beginning." in html and len(html) < 5_000


def test_a_backend_that_failed_shows_its_sentence_beside_the_others() -> None:
    html = drawn.cards(
        view(BASE, Card("pruned", "Pruned", "smaller", error="pruned failed while answering. Ask again."))
    )
    assert "Ask again" in html and "Ben" in html


def test_no_answer_and_one_reading_are_said() -> None:
    html = drawn.cards(view(replace(BASE, answer=None, span=None), replace(FAST, speed_up=None, runs=0)))
    assert "no answer in this text" in html and "one reading" in html


def test_typed_text_is_never_markup() -> None:
    card = replace(BASE, answer=EVIL, span=(0, len(EVIL)), error=None, notices=(EVIL,))
    shown = view(card, replace(BASE, latency_ms=None, error=EVIL), context=EVIL + TEXT)
    shown = replace(shown, question=EVIL, status=EVIL)
    for html in (drawn.cards(shown), drawn.marked(shown), drawn.verdict(shown), problem(EVIL),
                 drawn.replay(shown, 1)):  # fmt: skip
        assert "<script" not in html
    asked = charts.Asked.of(shown, 1)
    assert "<script" not in charts.history([asked]).to_json().replace("\\u003c", "<")


def test_overlapping_answers_are_marked_in_place_and_the_text_stays_whole() -> None:
    from html import unescape
    from re import sub

    html = drawn.marked(view(replace(BASE, span=(13, 26)), replace(FAST, span=(16, 31))))
    text = html.split('<ul class="qa-legend">')[0]
    assert unescape(sub(r"<[^>]+>", "", text)) == TEXT
    assert [unescape(part) for part in _marks(text)] == [TEXT[13:16], TEXT[16:26], TEXT[26:31]]
    assert 'title="Baseline, Pruned, fused, FP16"' in html


def _marks(html: str) -> list[str]:
    from re import findall

    return list(findall(r"<mark[^>]*>([^<]*)</mark>", html))


def test_a_long_text_is_shortened_around_its_answers() -> None:
    context = "x" * 50_000 + "ANSWER" + "y" * 50_000
    html = drawn.marked(view(replace(BASE, span=(50_000, 50_006)), context=context))
    assert "ANSWER" in html and len(html) < 5_000
    assert html.count("characters …") == 2


def test_the_replay_keeps_the_proportions_measured() -> None:
    html = drawn.replay(view(BASE, FAST), 1)
    assert "4.00s linear" in html and "1.20s linear" in html


def test_charts_have_the_data() -> None:
    bars = charts.latency(view(BASE, FAST))
    assert sum(sum(trace.x) for trace in bars.data) == pytest.approx(20.0)
    lines = charts.history([charts.Asked.of(view(BASE, FAST), number) for number in (1, 2)])
    assert [len(trace.x) for trace in lines.data] == [2, 2]


def test_the_history_does_not_join_different_families() -> None:
    other = replace(view(BASE), family="bert-large")
    lines = charts.history([charts.Asked.of(view(BASE), 1), charts.Asked.of(other, 2)])
    assert [(list(trace.x), trace.name) for trace in lines.data] == [
        ([1], "Baseline"), ([2], "Baseline (bert-large, cpu)"),
    ]  # fmt: skip


def test_f1_measured_elsewhere_is_said() -> None:
    assert "measured on" not in drawn.cards(view(BASE))
    assert "measured on the GPU" in drawn.cards(view(replace(BASE, f1_device="cuda")))


def test_the_verdict_names_the_fastest_with_the_range_that_holds_for_all() -> None:
    other = replace(FAST, backend="pruned", title="Pruned", speed_up=Ratio(3.3, 3.1, 3.5, 24))
    found = replace(view(BASE, other, FAST), fastest=Fastest("pruned-ort-fp16", Ratio(3.4, 2.9, 3.9, 24)))
    assert drawn.verdict_text(found).startswith("Pruned, fused, FP16 is 3.4× faster [2.9–3.9], 24 runs")


def test_a_link_reopens_the_question() -> None:
    query = share.link("Who & what?", TEXT + " é\r\n😀", "minilm", ["baseline", "pruned"])
    found = share.read_link({key: values[0] for key, values in parse_qs(query[1:]).items()})
    assert found == share.Shared("Who & what?", TEXT + " é\r\n😀", "minilm", ["baseline", "pruned"])


def test_a_link_leaves_out_a_long_text_and_a_strange_one_is_not_believed() -> None:
    assert len(share.link("Who?", "x" * 100_000, "minilm", ["baseline"])) < 200
    assert len(share.link("Who?", "谁" * 4_000, "minilm", ["baseline"])) < 200, "encoded, it would be 36,000 bytes"
    found = share.read_link({"q": "Who?", "family": "../../etc", "backends": "rm,pruned"})
    assert found is not None
    assert found.family == "minilm" and found.backends == ["pruned"]
    assert share.read_link({}) is None


def test_the_code_repeats_the_question(capsys: pytest.CaptureFixture[str]) -> None:
    code = share.as_python("Who watered 'it'?", TEXT, "minilm", ["baseline"], "cpu")
    exec(compile(code, "copied", "exec"), {})
    assert capsys.readouterr().out.startswith("baseline ")
    shell = share.as_shell("Who watered 'it'?", TEXT, "minilm", ["baseline"], "cpu")
    assert "'Who watered '\"'\"'it'\"'\"'?'" in shell
    assert "--device cpu" in shell
    assert "--context-file" in share.as_shell("Who?", "x" * 150_000, "minilm", ["baseline"], "cpu")
