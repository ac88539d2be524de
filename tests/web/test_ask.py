"""What the page draws of a comparison: every sentence it can say, and nothing of a person's text as markup."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import parse_qs

import pytest

from qa_backends.asking.comparison import Card, Comparison, Fastest
from qa_backends.measure.timing.statistics import Difference, Ratio
from qa_backends.web.ask import charts, share
from qa_backends.web.ask import html as drawn
from qa_backends.web.ask.verdict import Verdict, verdict_of
from qa_backends.web.shared.choices import said
from qa_backends.web.shared.shipped import shipped_benchmark

EVIL = '<script>alert(1)</script> & "quotes" ${1+1} {{2+2}}'
PARTS = {"tokenise": 0.2, "model": 9.5, "decode": 0.3}
BASE = Card(
    "baseline", "Baseline", "the model", answer="Ben", span=(46, 49), confidence=0.9, parts_ms=PARTS, latency_ms=10.0,
    runs=24, same_answer=True, f1=70.0, f1_device="cpu", ran="PyTorch CPU",
)  # fmt: skip
FAST = replace(BASE, backend="pruned-ort-fp16", title="Pruned, fused, FP16", latency_ms=3.0,
               speed_up=Ratio(3.4, 3.2, 3.6, 24), f1=69.3, f1_difference=Difference(-0.7, -1.1, -0.3),
               agreement=82.3)  # fmt: skip
TEXT = "Anna planted an apple tree behind the school. Ben watered it."


def view(*cards: Card, context: str = TEXT) -> Comparison:
    fastest = next((Fastest(card.backend, card.speed_up) for card in cards if card.speed_up), None)
    return Comparison("Who?", context, "minilm", "cpu", cards, fastest=fastest)


def verdict(*cards: Card) -> Verdict:
    return verdict_of(view(*cards))


def test_the_verdict_is_one_figure_with_its_cost_beside_it() -> None:
    found = verdict(BASE, FAST)
    assert (found.figure, found.title, found.tone) == ("3.4×", "faster than the baseline", "good")
    assert found.detail == "Pruned, fused, FP16 · 3.2 to 3.6 times"
    chips = [chip.text for chip in found.chips]
    assert chips == ["Same answer here", "agrees on 82 % of SQuAD", f"F1 on SQuAD: {FAST.f1_difference}"]
    assert found.chips[-1].tone == "warn", "an F1 surely below the baseline's is said in amber"


@pytest.mark.parametrize(
    ("card", "figure", "said", "tone"),
    [
        (replace(FAST, same_answer=False), "The answers differ", "3.4× faster, and says something else", "warn"),
        (replace(FAST, speed_up=Ratio(15.5, 5.8, 38.0, 24)), "≈15.5×", "too unsteady here to say how much", "warn"),
        (replace(FAST, speed_up=Ratio(1.02, 0.9, 1.1, 24)), "A tie", "as fast as the baseline", "plain"),
        (replace(FAST, speed_up=Ratio(0.5, 0.4, 0.6, 24)), "2.0×", "slower than the baseline", "warn"),
        (replace(FAST, speed_up=None, runs=0), "≈3.3×", "faster than the baseline", "warn"),
    ],
    ids=["another answer", "noise", "a tie", "slower", "an estimate"],
)
def test_what_is_uncertain_or_costly_never_leads_in_green(card: Card, figure: str, said: str, tone: str) -> None:
    found = verdict(BASE, card)
    assert found.figure.startswith(figure) and said in found.title and found.tone == tone


def test_an_estimate_is_called_one_and_is_no_more_than_that_while_turns_are_to_come() -> None:
    slow = replace(FAST, speed_up=None, runs=0)
    assert "estimate" in verdict(BASE, slow).detail
    begun = verdict_of(replace(view(BASE, slow), status="Taking turns: 1 run of each"))
    assert "so far" in begun.detail and begun.tone == "plain"


@pytest.mark.parametrize(
    ("cards", "said"),
    [
        ((FAST,), "choose the baseline too"),
        ((replace(BASE, latency_ms=None, error="It broke."), FAST), "the baseline could not answer"),
        ((BASE,), ""),
    ],
)
def test_without_a_baseline_to_compare_with_there_is_a_time_and_the_reason(cards: tuple[Card, ...], said: str) -> None:
    found = verdict(*cards)
    assert found.figure.endswith("ms") and said in found.detail


def test_when_nobody_answered_the_verdict_says_so() -> None:
    assert verdict(replace(BASE, latency_ms=None, error="It broke.")).title == "No backend could answer"
    waiting = replace(view(replace(BASE, latency_ms=None)), status="Reading the text …")
    assert verdict_of(waiting).title == "waiting for the first answer"


def test_the_verdict_names_the_fastest_with_the_range_that_holds_for_all() -> None:
    other = replace(FAST, backend="pruned", title="Pruned", speed_up=Ratio(3.3, 3.1, 3.5, 24))
    found = replace(view(BASE, other, FAST), fastest=Fastest("pruned-ort-fp16", Ratio(3.4, 2.9, 3.9, 24)))
    assert verdict_of(found).detail == "Pruned, fused, FP16 · 2.9 to 3.9 times"


def test_the_question_heads_its_result_and_bars_end_in_proportion() -> None:
    shown = drawn.result(view(BASE, FAST), 1)
    assert "“Who?”" in shown and "24 runs of each, in turns" in shown
    assert "width:100.00%" in shown and "width:30.00%" in shown
    assert "4.00s linear" in shown and "1.20s linear" in shown, "the race keeps the proportions measured"
    assert "animation" not in drawn.result(view(BASE, FAST)), "no race before there is one to watch"


def test_a_slow_race_is_said_to_be_sped_up() -> None:
    assert "a 400th of their pace" in drawn.result(view(BASE), 1)
    assert "3.0 times their pace" in drawn.result(view(replace(BASE, latency_ms=12_000.0)), 1)


def test_a_long_text_without_an_answer_still_shows_its_beginning() -> None:
    html = drawn.marked(view(replace(BASE, answer=None, span=None), context="The beginning." + "x" * 50_000))
    assert "The beginning." in html and len(html) < 5_000


def test_a_backend_that_failed_shows_its_sentence_beside_the_others() -> None:
    shown = drawn.result(view(BASE, Card("pruned", "Pruned", "smaller", error="pruned failed. Ask again.")))
    assert "Ask again" in shown and "Ben" in shown and "qa-failed" in shown


def test_no_answer_is_said_and_what_ran_stands_behind_a_disclosure() -> None:
    shown = drawn.result(view(replace(BASE, answer=None, span=None), FAST))
    assert "no answer in this text" in shown
    disclosed = shown.split("<details>")[1]
    assert "PyTorch CPU" in disclosed and "tokenise 0.20 ms" in disclosed and "90% confident" in disclosed


def test_typed_text_is_never_markup() -> None:
    card = replace(BASE, answer=EVIL, span=(0, len(EVIL)), error=None, notices=(EVIL,))
    shown = view(card, replace(BASE, latency_ms=None, error=EVIL), context=EVIL + TEXT)
    shown = replace(shown, question=EVIL, status=EVIL)
    for html in (drawn.result(shown, 1), drawn.marked(shown), drawn.trouble(EVIL), drawn.remark(EVIL, EVIL),
                 drawn.pending(EVIL, [("pruned", EVIL)])):  # fmt: skip
        assert "<script" not in html
    asked = charts.Asked.of(shown)
    assert "<script" not in charts.visit([asked], None).to_json().replace("\\u003c", "<")


def test_overlapping_answers_are_marked_in_place_and_the_text_stays_whole() -> None:
    from html import unescape
    from re import sub

    html = drawn.marked(view(replace(BASE, span=(13, 26)), replace(FAST, span=(16, 31))))
    text = html.split('<ul class="qa-legend">')[0]
    assert unescape(sub(r"<[^>]+>", "", text)) == TEXT
    assert [unescape(part) for part in _marks(text)] == [TEXT[13:16], TEXT[16:26], TEXT[26:31]]
    assert 'title="Baseline, Pruned, fused, FP16"' in html


def test_backends_that_agree_share_one_mark() -> None:
    shown = drawn.marked(view(BASE, FAST))
    assert shown.count("linear-gradient") == 1 and "both backends" in shown


def _marks(html: str) -> list[str]:
    from re import findall

    return list(findall(r"<mark[^>]*>([^<]*)</mark>", html))


def test_a_long_text_is_shortened_around_its_answers() -> None:
    context = "x" * 50_000 + "ANSWER" + "y" * 50_000
    html = drawn.marked(view(replace(BASE, span=(50_000, 50_006)), context=context))
    assert "ANSWER" in html and len(html) < 5_000
    assert html.count("characters …") == 2


def test_the_chart_has_a_point_a_question_and_the_shipped_benchmark_behind() -> None:
    one, two = (replace(view(BASE, FAST), tokens=tokens) for tokens in (40, 90))
    figure = charts.visit([charts.Asked.of(one), charts.Asked.of(two)], shipped_benchmark())
    points = {trace.name: list(trace.x) for trace in figure.data if trace.mode == "markers"}
    assert points == {"Baseline": [40, 90], "Pruned, fused, FP16": [40, 90]}
    lines = [list(trace.x) for trace in figure.data if trace.mode == "lines"]
    assert lines and all(each == sorted(each) and len(each) > 3 for each in lines)


def test_the_chart_does_not_mix_families() -> None:
    other = replace(view(BASE), family="bert-large")
    figure = charts.visit([charts.Asked.of(view(BASE)), charts.Asked.of(other)], None)
    assert [trace.name for trace in figure.data] == ["Baseline", "Baseline (bert-large)"]


def test_f1_measured_elsewhere_is_said() -> None:
    assert "on the GPU" not in drawn.result(view(BASE))
    assert "on the GPU" in drawn.result(view(replace(BASE, f1_device="cuda")))


def test_what_is_chosen_is_said_in_a_line() -> None:
    assert said(["baseline", "pruned"], "minilm", "cpu") == "Baseline + Pruned · MiniLM · CPU"
    assert said(["baseline", "pruned", "pruned-ort"], "minilm", "cpu") == "3 backends · MiniLM · CPU"
    assert said([], "minilm", "cpu").startswith("No backend")


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
