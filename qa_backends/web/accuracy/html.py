"""Quality as HTML: the table of backends, and the questions on which two of them differ, side by side."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from qa_backends.asking.comparison import ran_sentence
from qa_backends.catalog import BASELINE
from qa_backends.web.shared.html import table_of
from qa_backends.web.shared.palette import colour, title_of
from qa_backends.web.shared.wording import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qa_backends.catalog import Backend
    from qa_backends.measure.quality.evaluation import Differing
    from qa_backends.measure.quality.scoring import Scored
    from qa_backends.measure.results.records import QualityRecord
    from qa_backends.measure.timing.statistics import Interval

HEAD = ("backend", "questions", "EM [95 %]", "F1 [95 %]", "F1, answerable [95 %]", "F1, unanswerable [95 %]",
        "F1 against baseline [95 %]", "same as baseline", "questions/s", "what ran")  # fmt: skip
AROUND = 90
"""Characters of the text shown on either side of an answer."""
MOST_SHOWN = 100


def table(records: Sequence[QualityRecord]) -> str:
    """A line a backend; percentages with their bootstrap intervals."""
    return table_of(HEAD, [_cells(each) for each in records], "Quality of each backend") if records else ""


def _cells(record: QualityRecord) -> list[str]:
    return [
        escape(title_of(record.name, record.device)),
        f"{record.n:,}",
        _figure(record.exact, record.exact_interval),
        _figure(record.f1, record.f1_interval),
        _figure(record.has_ans_f1, record.has_ans_f1_interval),
        _figure(record.no_ans_f1, record.no_ans_f1_interval),
        escape(str(record.f1_difference)) if record.f1_difference and record.name != BASELINE else "–",
        f"{record.agreement:.1f} %" if record.agreement is not None else "–",
        f"{record.questions_per_second:.0f}",
        escape(ran_sentence(record.ran)),
    ]


def _figure(value: float | None, interval: Interval | None) -> str:
    """A percentage with its interval; a dash where the data has no such question."""
    if value is None or interval is None:
        return "–"
    return f"{value:.2f} [{interval.low:.1f}–{interval.high:.1f}]"


def caption(records: Sequence[QualityRecord], whose: str) -> str:
    if not records:
        return ""
    first = records[0]
    part = "" if first.limit is None else f", {first.n:,} of its questions drawn at random"
    sentence = f"{first.data}{part}, at the fixed threshold 0; {first.machine.sentence(first.device)}."
    return f'<div class="qa-caption"><p><b>{escape(whose)}</b> {escape(sentence)}</p></div>'


def differing(found: Sequence[Differing], one: Backend, other: Backend, asked: int) -> str:
    """The questions side by side, each with a button that asks it; ``data-number`` is its place in ``found``."""
    if not found:
        all_of_them = "the one question asked" if asked == 1 else f"all {asked:,} questions"
        return f'<p class="qa-status">{escape(one.title)} and {escape(other.title)} agree on {all_of_them}.</p>'
    better = sum(each.one.f1 > each.other.f1 for each in found)
    worse = sum(each.one.f1 < each.other.f1 for each in found)
    more = f" The first {MOST_SHOWN} are shown." if len(found) > MOST_SHOWN else ""
    summary = (
        f"They differ on {len(found):,} of {count(asked, 'question')}: {one.title} is closer to people's answers on "
        f"{better:,}, {other.title} on {worse:,}, neither on {len(found) - better - worse:,}.{more}"
    )
    cards = "".join(_card(number, each, one, other) for number, each in enumerate(found[:MOST_SHOWN]))
    return f'<p class="qa-status">{escape(summary)}</p><ol class="qa-differences">{cards}</ol>'


def _card(number: int, found: Differing, one: Backend, other: Backend) -> str:
    question = found.one.question
    golds = list(dict.fromkeys(gold.text for gold in question.answers))
    gold = " / ".join(golds) or "no answer in the text"
    place = question.answers[0].start if question.answers else (_place(found.one) or _place(found.other))
    return (
        f'<li class="qa-card"><p class="qa-question" dir="auto">{escape(question.question)}</p>'
        f'<p class="qa-parts" dir="auto">{_excerpt(question.context, place)}</p>'
        f'<dl><dt>people</dt><dd dir="auto">{escape(gold)}</dd>'
        f"{_answer(found.one, one)}{_answer(found.other, other)}</dl>"
        f'<button type="button" data-number="{number}">Ask it</button></li>'
    )


def _answer(scored: Scored, backend: Backend) -> str:
    text = escape(scored.answer.text) if scored.answer.span else "<em>no answer in this text</em>"
    verdict = "right" if scored.exact else "wrong" if scored.f1 == 0 else f"F1 {100 * scored.f1:.0f}"
    dot = f'<i style="background:{colour(backend.name)}"></i>'
    return f'<dt>{dot}{escape(backend.title)}</dt><dd dir="auto">{text} <small>{verdict}</small></dd>'


def _place(scored: Scored) -> int:
    return scored.answer.span.start if scored.answer.span else 0


def _excerpt(context: str, place: int) -> str:
    start, end = max(0, place - AROUND), min(len(context), place + AROUND)
    before, after = "… " if start else "", " …" if end < len(context) else ""
    return escape(f"{before}{context[start:end]}{after}")
