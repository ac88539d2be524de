"""What the page draws of a comparison: every sentence it can say, and nothing of a person's text as markup."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import parse_qs

import pytest

from qa_backends.asking.comparison import Card, Comparison, Fastest, KnownQuality
from qa_backends.asking.recorded import examples
from qa_backends.errors import InputError
from qa_backends.measure.timing.statistics import Difference, Interval, Ratio
from qa_backends.runtime import Runtime
from qa_backends.web.ask import charts, share
from qa_backends.web.ask import html as drawn
from qa_backends.web.ask.answering import Answering
from qa_backends.web.ask.asked import first_asked, key, key_of
from qa_backends.web.ask.shown import deployed, first_sight
from qa_backends.web.ask.upload import read_text
from qa_backends.web.ask.verdict import Verdict, verdict_of
from qa_backends.web.ask.visits import Visit
from qa_backends.web.shared.choices import said

if TYPE_CHECKING:
    from pathlib import Path

EVIL = '<script>alert(1)</script> & "quotes" ${1+1} {{2+2}}'
PARTS = {"tokenise": 0.2, "model": 9.5, "decode": 0.3}
SQUAD = KnownQuality("SQuAD", 11_873, 70.0, Interval(69.2, 70.8), "cpu")
OTHER = KnownQuality("other texts", 294, 62.0, Interval(56.0, 68.0), "cpu")
BASE = Card(
    "baseline", "Baseline", "the model", answer="Ben", span=(46, 49), confidence=0.9, parts_ms=PARTS, latency_ms=10.0,
    runs=24, same_answer=True, quality=(SQUAD, OTHER), ran="PyTorch CPU",
)  # fmt: skip
FAST = replace(
    BASE, backend="pruned-ort-fp16", title="Pruned, fused, FP16", latency_ms=3.0, speed_up=Ratio(3.4, 3.2, 3.6, 24),
    quality=(
        replace(SQUAD, f1=69.3, f1_difference=Difference(-0.7, -1.1, -0.3), agreement=82.3),
        replace(OTHER, f1=60.0, f1_difference=Difference(-1.0, -1.9, 0.4), agreement=77.1),
    ),
)  # fmt: skip
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
    assert chips == [
        "Same answer here",
        "F1 on SQuAD: −0.7 [−1.1 to −0.3]",
        "F1 on other texts: −1.0 [−1.9 to +0.4]",
        "agrees on 82 % of SQuAD, 77 % of other texts",
    ]
    assert [chip.tone for chip in found.chips] == ["good", "warn", "plain", "plain"], "an F1 surely below is amber"


def test_a_loss_that_so_few_questions_cannot_exclude_is_said_in_amber() -> None:
    unsure = replace(OTHER, f1_difference=Difference(-3.4, -7.0, 0.3), agreement=76.9)
    (chip,) = [each for each in verdict(BASE, replace(FAST, quality=(unsure,))).chips if "F1" in each.text]
    assert (chip.text, chip.tone) == ("F1 on other texts: −3.4 [−7.0 to +0.3]", "warn")


def test_a_gain_is_not_said_in_amber_however_few_questions_show_it() -> None:
    gained = replace(OTHER, f1_difference=Difference(1.6, -2.4, 5.5), agreement=76.9)
    (chip,) = [each for each in verdict(BASE, replace(FAST, quality=(gained,))).chips if "F1" in each.text]
    assert (chip.text, chip.tone) == ("F1 on other texts: +1.6 [−2.4 to +5.5]", "plain")


def test_each_row_holds_f1_with_its_interval_and_agreement_on_both_sets() -> None:
    shown = drawn.result(view(BASE, FAST))
    baseline, fast = (
        [re.sub("<[^>]*>", "", cell) for cell in re.findall(r'<div class="qa-f1".*?</div>', lane)]
        for lane in shown.split('<li class="qa-lane">')[1:]
    )
    assert baseline == ["F1, SQuAD 70.0 [69.2–70.8]", "F1, other texts 62.0 [56.0–68.0]"]
    assert fast == ["F1, SQuAD 69.3 [69.2–70.8] agrees 82 %", "F1, other texts 60.0 [56.0–68.0] agrees 77 %"]
    assert "differences are told under “what ran”" in shown, "where a phone has no room for intervals"
    what_ran = shown.rpartition("<summary>what ran</summary>")[2]
    assert "F1 on SQuAD: 69.3 [69.2–70.8], against the baseline −0.7 [−1.1 to −0.3], 11,873 questions." in what_ran
    unknown = drawn.result(view(replace(BASE, quality=()), replace(FAST, quality=())))
    assert "F1:" not in unknown, "of a model whose quality nobody measured"


def test_the_wait_for_others_is_drawn_beside_the_bar_and_not_in_it() -> None:
    waited = drawn.result(view(BASE, replace(FAST, wait_ms=5.0)))
    assert "width:50.00%" in waited and "waited 5.00 ms" in waited and "not counted: the wait" in waited
    assert "qa-wait" not in drawn.result(view(BASE, FAST))


def test_an_example_that_is_a_trap_says_who_was_fooled() -> None:
    trap = next(each for each in examples() if not each["answer"])
    asked = replace(
        view(BASE, replace(FAST, answer=None, span=None)), question=trap["question"], context=trap["context"]
    )
    assert "the text does not say" in drawn.result(asked) and "Fooled: Baseline." in drawn.result(asked)
    saw = replace(asked, cards=(replace(BASE, answer=None, span=None),))
    assert "Nobody was fooled" in drawn.result(saw)
    assert "A trap" not in drawn.result(view(BASE, FAST))


@pytest.mark.parametrize(
    ("card", "figure", "said", "tone"),
    [
        (replace(FAST, same_answer=False), "The answers differ", "3.4× faster, and says something else", "warn"),
        (replace(FAST, speed_up=Ratio(15.5, 5.8, 38.0, 24)), "Too unsteady", "about 15.5× faster", "warn"),
        (replace(FAST, speed_up=Ratio(1.02, 0.9, 1.1, 24)), "A tie", "as fast as the baseline", "plain"),
        (replace(FAST, speed_up=Ratio(0.5, 0.4, 0.6, 24)), "2.0×", "slower than the baseline", "warn"),
        (replace(FAST, speed_up=None, runs=0), "≈3.3×", "faster than the baseline", "warn"),
    ],
    ids=["another answer", "noise", "a tie", "slower", "an estimate"],
)
def test_what_is_uncertain_or_costly_never_leads_in_green(card: Card, figure: str, said: str, tone: str) -> None:
    found = verdict(BASE, card)
    assert found.figure.startswith(figure) and said in found.title and found.tone == tone


@pytest.mark.parametrize("ratio", [Ratio(3.4, 3.2, 3.6, 24), Ratio(1.02, 0.9, 1.1, 24)], ids=["clear", "a tie"])
def test_a_busy_machine_is_said_before_any_speed(ratio: Ratio) -> None:
    found = verdict_of(replace(view(BASE, replace(FAST, speed_up=ratio)), busy=0.42))
    assert (found.figure, found.tone) == ("Others took 42 % of this machine", "warn")
    assert "not to be relied upon" in found.title
    single = verdict_of(replace(view(BASE, replace(FAST, speed_up=None, runs=0)), busy=0.42))
    assert single.figure == found.figure and "estimate" in single.detail


def test_a_busy_machine_is_said_before_a_first_estimate_too() -> None:
    single = replace(view(BASE, replace(FAST, speed_up=None, runs=0)), busy=0.6, status="Taking turns: 1 run of each")
    found = verdict_of(single)
    assert (found.figure, found.tone) == ("Others took 60 % of this machine", "warn")
    assert "“≈3.3× faster” is not to be relied upon" in found.title and "so far" in found.detail


def test_a_busy_machine_is_said_beside_a_time_alone_and_another_answer() -> None:
    for cards in ([FAST], [BASE, replace(FAST, same_answer=False)]):
        quiet, busy = (verdict_of(replace(view(*cards), busy=share)) for share in (None, 0.42))
        assert busy.figure == quiet.figure
        said = [chip.text for chip in busy.chips if chip not in quiet.chips]
        assert said == ["Others took 42 % of this machine"]


def test_an_answer_stands_there_before_its_time_is_known() -> None:
    early = Card("pruned", "Pruned", "smaller", answer="Ben", span=(46, 49), early=True)
    shown = drawn.result(view(BASE, early))
    assert shown.count("Ben") == 2 and "its time comes next" in shown
    assert "both backends" in drawn.marked(view(BASE, early))


def test_what_loading_took_stands_behind_the_disclosure() -> None:
    shown = drawn.result(view(replace(BASE, load_ms=812.0, memory_bytes=64_000_000), FAST))
    assert "Loading it took 812 ms; it takes 64 MB of memory." in shown and shown.count("Loading it took") == 1


def test_a_text_in_another_language_is_said() -> None:
    assert "looks like German" in drawn.result(replace(view(BASE), notice="This text looks like German."))


def test_an_estimate_is_called_one_and_is_no_more_than_that_while_turns_are_to_come() -> None:
    slow = replace(FAST, speed_up=None, runs=0)
    assert "estimate" in verdict(BASE, slow).detail
    begun = verdict_of(replace(view(BASE, slow), status="Taking turns: 1 run of each"))
    assert "so far" in begun.detail and begun.tone == "plain"
    assert drawn.result(view(BASE, slow)).count("≈3.3×") == 2, "in the headline, and in the row"


@pytest.mark.parametrize("latency_ms", [10.0, 9.8, 10.3, 9.2, 10.9])
def test_an_estimate_of_readings_about_alike_claims_no_direction(latency_ms: float) -> None:
    single = replace(FAST, speed_up=None, runs=0, latency_ms=latency_ms)
    found = verdict(BASE, single)
    assert (found.figure, found.title) == ("About as fast", "as the baseline")
    busy = verdict_of(replace(view(BASE, single), busy=0.42))
    assert "“about as fast as the baseline” is not to be relied upon" in busy.title


def test_an_answer_that_differs_is_told_by_more_than_its_colour() -> None:
    other = replace(FAST, answer="Anna", span=(0, 4), same_answer=False)
    assert drawn.result(view(BASE, other, replace(FAST, backend="pruned"))).count("Not what the baseline says:") == 1


def test_not_even_a_first_estimate_leads_with_speed_where_the_answers_differ() -> None:
    other = replace(FAST, speed_up=None, runs=0, answer="Anna", span=(0, 4), same_answer=False)
    begun = verdict_of(replace(view(BASE, other), status="Taking turns: 1 run of each"))
    assert (begun.figure, begun.tone) == ("The answers differ", "warn") and "≈3.3× faster" in begun.title


@pytest.mark.parametrize(
    ("cards", "said"),
    [
        ((FAST,), "choose the baseline too"),
        ((replace(BASE, latency_ms=None, error="It broke."), FAST), "the baseline could not answer"),
        ((BASE,), ""),
        ((BASE, replace(FAST, latency_ms=None, speed_up=None, error="It broke.")), "no other backend could answer"),
    ],
)
def test_without_a_baseline_to_compare_with_there_is_a_time_and_the_reason(cards: tuple[Card, ...], said: str) -> None:
    found = verdict(*cards)
    assert found.figure.endswith("ms") and said in found.detail


def test_when_nobody_answered_the_verdict_says_so() -> None:
    assert verdict(replace(BASE, latency_ms=None, error="It broke.")).title == "No backend could answer"
    waiting = replace(view(replace(BASE, latency_ms=None)), status="Reading the text …")
    assert verdict_of(waiting).title == "waiting for the first answer"
    early = replace(view(replace(BASE, latency_ms=None, early=True)), status="Baseline: once more, to be timed")
    assert verdict_of(early).title == "the first answer is being timed"
    first = replace(view(BASE, replace(FAST, latency_ms=None, speed_up=None)), status="Pruned is answering …")
    assert verdict_of(first).detail == "the next backend is at work"


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
    assert "1/400 of their pace" in drawn.result(view(BASE), 1)
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
    assert "PyTorch CPU" in disclosed and "tokenise 0.20 ms" in disclosed and "90 % confident" in disclosed


def test_typed_text_is_never_markup() -> None:
    card = replace(BASE, answer=EVIL, span=(0, len(EVIL)), error=None, notices=(EVIL,))
    shown = view(card, replace(BASE, latency_ms=None, error=EVIL), context=EVIL + TEXT)
    shown = replace(shown, question=EVIL, status=EVIL)
    for html in (drawn.result(shown, 1), drawn.marked(shown), drawn.trouble(EVIL), drawn.remark(EVIL, EVIL),
                 drawn.pending(EVIL, [("pruned", EVIL)], key_of(view(BASE)))):  # fmt: skip
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


def test_f1_measured_elsewhere_is_said() -> None:
    assert "on the GPU" not in drawn.result(view(BASE))
    assert "on the GPU" in drawn.result(view(replace(BASE, quality=(replace(SQUAD, device="cuda"),))))


def test_what_is_chosen_is_said_in_a_line() -> None:
    assert said(["baseline", "pruned"], "minilm", "cpu") == "Baseline + Pruned · MiniLM · CPU"
    assert said(["baseline", "pruned", "pruned-ort"], "minilm", "cpu") == "3 backends · MiniLM · CPU"
    assert said([], "minilm", "cpu").startswith("No backend")


def test_a_link_reopens_the_question() -> None:
    query = share.link("Who & what?", TEXT + " é\r\n😀", "minilm", ["baseline", "pruned"], "cpu")
    found = share.read_link({key: values[0] for key, values in parse_qs(query[1:]).items()})
    assert found == share.Shared("Who & what?", TEXT + " é\r\n😀", "minilm", ["baseline", "pruned"], "cpu")


def test_a_link_names_the_device_where_there_is_one_of_that_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CPU's comparison, opened where there is a GPU, is one of the CPU; a GPU's, where there is none, is not."""
    fields = {"q": "Who?", "family": "minilm", "backends": "baseline,pruned-ov-int8", "device": "cpu"}
    monkeypatch.setattr(share, "devices", lambda: ("cuda", "cpu"))
    found = share.read_link(fields)
    assert found is not None and (found.device, found.backends) == ("cpu", ["baseline", "pruned-ov-int8"])
    monkeypatch.setattr(share, "devices", lambda: ("cpu",))
    found = share.read_link(fields | {"device": "cuda"})
    assert found is not None and found.device == "cpu"


def test_a_link_leaves_out_a_long_text_and_a_strange_one_is_not_believed() -> None:
    assert len(share.link("Who?", "x" * 100_000, "minilm", ["baseline"], "cpu")) < 200
    assert len(share.link("Who?", "谁" * 4_000, "minilm", ["baseline"], "cpu")) < 200, (
        "encoded, it would be 36,000 bytes"
    )
    assert len(share.link("谁" * 2_000, TEXT, "minilm", ["baseline"], "cpu")) < 200, "nor would the question alone do"
    found = share.read_link({"q": "Who?", "family": "../../etc", "backends": "rm,pruned"})
    assert found is not None
    assert found.family == "minilm" and found.backends == ["pruned"]
    assert share.read_link({}) is None
    found = share.read_link({"q": "Who?", "family": "bert-large-random", "backends": "baseline,baseline"})
    assert found is not None and (found.family, found.backends) == ("minilm", ["baseline"]), "once, and what is offered"


def test_a_link_without_room_for_the_question_still_says_who_was_asked() -> None:
    query = share.link("谁" * 2_000, TEXT, "minilm", ["pruned"], "cpu")
    found = share.read_link({key: values[0] for key, values in parse_qs(query[1:]).items()})
    assert found == share.Shared("", "", "minilm", ["pruned"], "cpu")


def test_the_code_repeats_the_question(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = share.as_python("Who watered 'it'?", TEXT, "minilm", ["baseline"], "cpu", url)
    exec(compile(code, "copied", "exec"), {})
    assert capsys.readouterr().out.splitlines()[-1].startswith("baseline ")
    assert "qa_backends" not in code, "it runs where the project is not"
    shell = share.as_shell("Who watered 'it'?", TEXT, "minilm", ["baseline"], "cpu")
    assert "'Who watered '\"'\"'it'\"'\"'?'" in shell
    assert "--device cpu" in shell and "In the project's folder" in shell
    assert "--context-file" in share.as_shell("Who?", "x" * 150_000, "minilm", ["baseline"], "cpu")


@pytest.mark.parametrize(
    ("ratio", "latency_ms", "name"),
    [
        (Ratio(3.4, 3.2, 3.6, 24), 3.0, "pruned-ort-fp16"),
        (Ratio(0.98, 0.9, 1.05, 24), 10.2, "pruned-ort-fp16"),
        (Ratio(0.5, 0.4, 0.6, 24), 20.0, "baseline"),
        (None, 20.0, "baseline"),
        (None, 3.0, "pruned-ort-fp16"),
    ],
    ids=["faster", "a tie", "slower", "slower, by one reading", "faster, by one reading"],
)
def test_what_is_deployed_is_never_what_was_slower_or_failed(ratio: Ratio, latency_ms: float, name: str) -> None:
    other = replace(FAST, speed_up=ratio, latency_ms=latency_ms)
    failed = replace(BASE, backend="pruned", latency_ms=None, error="No memory left.")
    assert f'pipeline("{name}"' in deployed(view(BASE, other, failed))


def test_an_opened_file_is_not_kept_and_the_result_is_of_another_text(tmp_path: Path) -> None:
    """Nor is the sentence about a file that was opened before."""
    (tmp_path / "note.txt").write_text(TEXT)
    (tmp_path / "picture.txt").write_bytes(b"\xff\0")
    opened = Answering(Runtime()).open_text
    _, said, _ = opened(Visit(), str(tmp_path / "picture.txt"))
    assert "no text" in said
    text, result, marks = opened(Visit(), str(tmp_path / "note.txt"))
    asked = f'data-asked="{key(*first_asked())}"'
    assert text == TEXT and asked in result and asked in marks and "no text" not in result
    assert list(tmp_path.iterdir()) == []


def test_a_result_bears_the_key_to_all_that_was_asked_and_to_nothing_else() -> None:
    """By it the page dims what is of something else than the form holds."""
    shown = view(BASE, FAST)
    asked = key_of(shown)
    assert f'data-asked="{asked}"' in drawn.result(shown) and f'data-asked="{asked}"' in drawn.marked(shown)
    again = replace(shown, cards=(FAST, replace(BASE, latency_ms=99.0)), status="Taking turns", fastest=None)
    assert key_of(again) == asked, "the order and the times are not asked"
    others = [
        replace(shown, question="Where?"), replace(shown, context=f"{TEXT} "), replace(shown, family="bert-large"),
        replace(shown, device="cuda"), replace(shown, cards=(BASE,)),
    ]  # fmt: skip
    assert len({asked, *map(key_of, others)}) == 6
    recorded = first_sight()
    assert recorded is not None and key_of(recorded) == key(*first_asked()), "it stands for the form as it begins"


def test_what_is_deployed_is_the_fastest_and_only_what_can_be_taken_away_is() -> None:
    fast = share.as_deployed("minilm", "pruned-ort-fp16", "cpu")
    assert "export --backend pruned-ort-fp16 --family minilm --device cpu --to pruned-ort-fp16" in fast
    assert "serve --no-page --backends pruned-ort-fp16 --family minilm --device cpu" in fast
    assert "export" not in share.as_deployed("minilm", "pruned", "cpu")
    assert "export" not in share.as_deployed("minilm", "pruned-ort-tensorrt", "cuda")
    program = fast.partition("pipeline\n")[2]
    found: dict[str, Any] = {}
    exec(compile(f"from qa_backends import pipeline\n{program}", "copied", "exec"), found)
    assert found["answer"]["answer"] == "Ada"


@pytest.mark.parametrize(
    ("referer", "address"),
    [
        ("https://somebody-space.hf.space/?q=Who&c=secret", "https://somebody-space.hf.space/"),
        ("http://127.0.0.1:7999/qa/?__theme=dark", "http://127.0.0.1:7999/qa/"),
        ("javascript:alert(1)", "http://127.0.0.1:7860/"),
        ("", "http://127.0.0.1:7860/"),
    ],
)
def test_the_code_asks_the_app_that_the_visitor_sees(referer: str, address: str) -> None:
    class Request:
        headers: ClassVar[dict[str, str]] = {"referer": referer}

    assert share.page_address(Request()) == address  # type: ignore[arg-type]  # of a request, its headers are read


def test_a_text_file_becomes_the_text(tmp_path: Path) -> None:
    file = tmp_path / "notes.md"
    file.write_bytes("\ufeffAda came.\r\nBela stayed.".encode())
    assert read_text(file) == "Ada came.\nBela stayed."


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"\xff\xfe\x00", "no text in UTF-8"), (b"a\0b", "is no text"), (b"x" * 200_001, "200,001 characters"),
     (b"x" * 900_000, "too long")],
    ids=["latin", "binary", "long", "longer"],
)  # fmt: skip
def test_a_file_that_is_no_text_gets_a_sentence(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "mine.txt").write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_text(tmp_path / "mine.txt")
