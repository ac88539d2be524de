"""What the measuring tabs say: tables hold what must be said, progress how far it is, and nothing is markup."""

from __future__ import annotations

from dataclasses import replace

import pytest
from web.rows import FAST, QUALITY, RAN, RATIO, ROWS, row

from qa_backends import catalog
from qa_backends.asking.comparison import known_quality, quality_beside
from qa_backends.contract import Answer, Span
from qa_backends.measure.benchmark.compare import Change
from qa_backends.measure.benchmark.plan import BenchmarkPlan
from qa_backends.measure.benchmark.sweep import Sweep
from qa_backends.measure.quality.evaluation import Differing
from qa_backends.measure.quality.scoring import score
from qa_backends.measure.recommend.search import F1, Candidate, Search
from qa_backends.measure.recommend.wish import Wish
from qa_backends.measure.results.records import (
    AloneRecord,
    Benchmark,
    LeftOut,
)
from qa_backends.measure.results.shipped import shipped_quality
from qa_backends.measure.timing.machine import Machine
from qa_backends.measure.timing.statistics import Difference, Interval, Ratio
from qa_backends.squad import GoldAnswer, Question
from qa_backends.web.accuracy import html as accuracy_html
from qa_backends.web.benchmark import found as found_html
from qa_backends.web.benchmark import html

EVIL = "<img src=x onerror=alert(1)>"
MACHINE = Machine("Abacus", 2, 24, None, "Linux", "3.11", {}, "2026-01-02")
PLAN = BenchmarkPlan("minilm", ("baseline",))


def cells(table: str) -> list[list[str]]:
    """What the cells of a table's body say."""
    import re
    from html import unescape

    rows = re.findall(r"<tr>(.*?)</tr>", table.split("<tbody>")[1])
    return [[unescape(re.sub("<[^>]*>", "", each)) for each in re.findall(r"<td.*?>(.*?)</td>", line)] for line in rows]


def test_the_table_says_runs_interval_stability_quality_and_what_ran() -> None:
    (shown,) = cells(html.table([row("pruned", 32, 4.0, unstable=True, **FAST)]))
    assert shown[:8] == ["Pruned", "32", "1", "4.00", "4.80", "8.0", "250.0", "31 unstable"]
    f1 = "68.5 [67.7–69.3] −0.3 [−0.8 to +0.2] agrees 91 %"
    assert shown[8:] == [str(RATIO.ratio), f1, "–", "–", "PyTorch CPU, FP32"], "on the one set that is known"
    tie = row("pruned", 32, 4.0, against_baseline=replace(RATIO, low=0.98))
    alone = row("hf-pipeline", 32, 9.0, quality=None)
    of_tie, of_alone = cells(html.table([tie, alone]))
    assert of_tie[8] == str(replace(RATIO, low=0.98).ratio) and of_tie[8].startswith("tie")
    assert of_alone[8:12] == ["–"] * 4
    assert cells(html.table([row("pruned", 32, 4.0, device="cuda")]))[0][0] == "Pruned, GPU"


def test_f1_on_every_set_stands_side_by_side_with_interval_and_difference_and_sorts_by_the_figure() -> None:
    family, backend = catalog.resolve("minilm/pruned-deep")
    known = known_quality(family, backend, "cpu")
    shipped = shipped_quality(family, backend)
    assert shipped is not None and len(known) == 3
    table = html.table([row(backend.name, 32, 4.0, quality=shipped.short()), row("baseline", 32, 8.0, quality=None)])
    assert [each in table for each in ("F1, SQuAD,", "F1, other texts,", "F1, everyday texts,")] == [True] * 3
    shown, unknown = cells(table)
    for said, each in zip(shown[9:12], known, strict=True):
        assert each.f1_difference is not None
        agrees = f"agrees {each.agreement:.0f} %"
        assert said == f"{each.f1_interval.around(each.f1)} {each.f1_difference.spelt()} {agrees}"
        assert f'data-value="{each.f1}"' in table, "sorted by the figure"
    assert unknown[9:12] == ["–"] * 3, "it is not known of which weights these times are"


def test_what_a_search_found_says_f1_on_every_set_with_interval_and_difference() -> None:
    squad, own, everyday = (
        F1(data, n, value, Interval(value - 1, value + 1), Difference(-0.5, -0.9, -0.1), whole=True)
        for data, n, value in (("squad-v2-dev", 11_873, 70.0), ("own", 294, 78.0), ("everyday", 408, 62.0))
    )
    here = replace(own, n=40, value=75.0, interval=Interval(61.0, 85.0), whole=False)
    wish = Wish("minilm", lengths=(32,))
    every = Candidate("pruned", "Pruned", shipped=squad, shipped_besides=(own, everyday))
    found = Search(wish, MACHINE, [every, replace(every, here=here), Candidate("pruned-ort", "Unknown")])
    told, told_here, unknown = (line[3:6] for line in cells(found_html.table(found)))
    difference = " −0.5 [−0.9 to −0.1]"
    assert told == [f"{each}{difference}" for each in ("70.0 [69.0–71.0]", "78.0 [77.0–79.0]", "62.0 [61.0–63.0]")]
    assert told_here == [told[0], f"75.0 [61.0–85.0]{difference}", told[2]], (
        "what was found on this machine comes first"
    )
    assert unknown == ["–"] * 3
    assert every.known_f1 == [squad], "it is judged by SQuAD, and by what was found here"


def test_a_figure_of_other_weights_stands_without_those_that_ship() -> None:
    other, reference = quality_beside([row("pruned", 32, 4.0), row("hf-pipeline", 32, 9.0, quality=None)])
    assert [(each.title, each.f1) for each in other] == [("SQuAD", 68.5)] and reference == ()
    (somebodys,) = quality_beside([row("pruned", 32, 4.0, quality=replace(QUALITY, data="mine.json"))])
    assert [each.title for each in somebodys] == ["mine.json"]


def test_what_ran_is_told_in_full_once_for_all_it_is_true_of() -> None:
    note = replace(RAN, notes=("computed in FP32",))
    shown = html.table([*ROWS[:2], row("pruned-ort", 32, 3.0, ran=note)])
    assert "Baseline; Pruned</b>: PyTorch CPU, FP32, 2 threads<" in shown
    assert shown.count("computed in FP32") == 1


def test_progress_says_what_runs_and_how_long_it_takes() -> None:
    shown = html.progress(Sweep(PLAN, MACHINE, status="32 tokens: 7 runs of each", done=1, of=4, left_s=12.4))
    assert "32 tokens: 7 runs of each" in shown and "1 of 4 done, about 12 s left" in shown
    assert 'aria-valuenow="1.00"' in shown and 'aria-valuemax="4"' in shown
    stopped = html.progress(Sweep(PLAN, MACHINE, records=[ROWS[0]], left_out=[LeftOut("", EVIL, EVIL)], of=4))
    assert "Stopped; kept 1 measurement." in stopped and EVIL not in stopped
    nothing = html.progress(Sweep(PLAN, MACHINE, left_out=[LeftOut("", EVIL, EVIL)], done=4, of=4, complete=True))
    assert "Nothing could be measured." in nothing and "0 of 4 done" in nothing


def test_captions_name_machine_and_date_and_how_alone_and_beside_the_others_agree() -> None:
    alone = AloneRecord("minilm/pruned", "cpu", 128, 1, 31, 8.0, 8.25, 8.25 / 8)
    shown = html.caption(Benchmark(MACHINE, PLAN, True, tuple(ROWS), (alone,), ()), "Yours.")
    assert "Abacus, 2 cores, 24 GiB, 2026-01-02" in shown
    assert "8.00 ms alone, 8.25 ms beside the others, at" in shown and "<summary>Alone, and beside the others<" in shown
    off = replace(alone, company_p50_ms=12.0, ratio=1.5)
    shown_off = html.caption(Benchmark(MACHINE, PLAN, True, tuple(ROWS), (alone, off), ()), "Yours.")
    assert (
        "beside the others: 1 of 2 differ by more than 10 %<" in shown_off
        and "12.00 ms beside the others (50 % longer)" in shown_off
    )


def test_the_table_says_over_which_questions_f1_was_measured_and_where() -> None:
    shown = html.table(ROWS)
    assert "F1 over 11,873 questions of SQuAD;" in shown and "on the CPU" not in shown
    assert "of SQuAD, on the CPU" in html.table([row("pruned", 32, 4.0, device="cuda")])


@pytest.mark.parametrize(
    ("same_shapes", "said"), [(False, "of other shapes"), (None, "not known"), (True, "each run's own noise")]
)
def test_names_from_an_opened_file_are_never_markup(same_shapes: bool | None, said: str) -> None:
    then = Benchmark(replace(MACHINE, processor=EVIL), PLAN, True, (), (), ())
    now = row(EVIL, None, 8.0, device=EVIL, order=EVIL)
    change = Change(row("baseline", 32, 10.0), now, Ratio(1.25, 1.2, 1.3, 31), same_shapes)
    from html import unescape

    shown = html.compared(then, [change], EVIL + ".json")
    assert EVIL not in shown and said in unescape(shown) and "1.25×" in shown


def test_differing_questions_stand_side_by_side_with_peoples_answer() -> None:
    one, other = catalog.backend("baseline"), catalog.backend("pruned")
    question = Question("1", "", f"Where is {EVIL}?", f"In Rome, {EVIL}.", (GoldAnswer("Rome", 3),))
    right = score(question, Answer("Rome", Span(3, 7), 1.0, 0.0, 0.9))
    wrong = score(question, Answer("", None, 0.0, 1.0, 0.9))
    shown = accuracy_html.differing([Differing(right, wrong)], one, other, asked=40)
    assert "They differ on 1 of 40 questions" in shown and "Baseline is closer" in shown
    assert EVIL not in shown
    assert 'data-number="0"' in shown and "right" in shown and "wrong" in shown and "no answer in this text" in shown
    assert "agree on all 40 questions" in accuracy_html.differing([], one, other, asked=40)
    assert "agree on the one question asked" in accuracy_html.differing([], one, other, asked=1)
