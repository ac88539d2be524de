"""Quality as HTML: the table of backends, and the questions on which two of them differ, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from qa_backends.catalog import BASELINE
from qa_backends.measure.quality.datasets import (
    EVERYDAY,
    OWN,
    SQUAD_DEV_QUESTIONS,
    SQUAD_V2_DEV,
    count_of,
    sha256_of,
)
from qa_backends.web.shared.html import engine_of, ran_in_full
from qa_backends.web.shared.palette import colour, title_of
from qa_backends.web.shared.tables import Cell, Column, number, table_of, text, with_interval
from qa_backends.web.shared.wording import count, set_title

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qa_backends.catalog import Backend
    from qa_backends.measure.quality.evaluation import Differing
    from qa_backends.measure.quality.scoring import Scored
    from qa_backends.measure.results.records import QualityRecord
    from qa_backends.measure.timing.statistics import Difference, Interval

HEAD = (
    Column("backend", number=False), Column("texts", number=False), Column("questions"), Column("EM,", "%"),
    Column("F1,", "%"), Column("F1, answerable,", "%"), Column("F1, un\u00adanswerable,", "%"),
    Column("F1 against baseline"), Column("same as baseline,", "%"), Column("speed,", "questions/s"),
    Column("what ran", number=False),
)  # fmt: skip
WIDE = 3.0
"""A difference whose interval is wider than this, in percent, and holds 0 is no tie: more questions could decide it."""
TERMS = {
    "EM": "Exact match: the share of answers that equal one of people's, in percent.",
    "F1": "How much of people's answer a backend's answer shares, word by word, on average, in percent. Both are "
    "counted as the official SQuAD 2.0 script does. “No answer” is given where it scores higher than every answer.",
    "[69.8–71.4]": "The interval that holds the true figure with 95 % confidence, found by drawing the questions "
    "again and again (bootstrap). Few questions make it wide; where there are fewer than 30, or all count alike, it "
    "has room for what was never seen.",
    "F1 against baseline": "The difference on the very same questions, with its interval, which the bar draws: its "
    f"line is no difference, its dot the figure. A tie: the interval holds 0. Undecided: it does, but is wider than "
    f"{WIDE:g}, so that more questions could tell.",
    "same as baseline": "Agreement: the share of questions to which the answer is the baseline's, word for word.",
    "speed": "Through the whole reader: tokenise, model, decode.",
}
AROUND = 90
"""Characters of the text shown on either side of an answer."""
MOST_SHOWN = 100


def table(records: Sequence[QualityRecord]) -> str:
    """A line a backend and data set; percentages with their bootstrap intervals."""
    if not records:
        return ""
    scale = _Scale.of([each.f1_difference for each in records if each.f1_difference])
    rows = [_cells(each, scale) for each in records]
    return table_of("accuracy", "Quality of each backend", "measurement", HEAD, rows) + ran_in_full(records)


@dataclass(frozen=True, slots=True)
class _Scale:
    """What the drawn intervals of a table reach over, 0 included, so that they can be compared by eye."""

    low: float
    high: float

    @classmethod
    def of(cls, differences: Sequence[Difference]) -> _Scale:
        return cls(min([0.0, *(each.low for each in differences)]), max([0.0, *(each.high for each in differences)]))

    def place(self, value: float) -> float:
        """In percent of the way from the low to the high end."""
        return 100 * (value - self.low) / (self.high - self.low) if self.high > self.low else 0.0


def _cells(record: QualityRecord, scale: _Scale) -> list[Cell]:
    return [
        text(title_of(record.name, record.device)),
        text(set_title(record)),
        number(record.n),
        _figure(record.exact, record.exact_interval),
        _figure(record.f1, record.f1_interval),
        _figure(record.has_ans_f1, record.has_ans_f1_interval),
        _figure(record.no_ans_f1, record.no_ans_f1_interval),
        _difference(None if record.name == BASELINE else record.f1_difference, scale),
        number(None if record.name == BASELINE else record.agreement, 1),
        number(record.questions_per_second, 0 if (record.questions_per_second or 0) >= 10 else 1),
        text(engine_of(record.ran)),
    ]


def _figure(value: float | None, interval: Interval | None) -> Cell:
    """A percentage with its interval; a dash where the data has no such question."""
    if value is None or interval is None:
        return number(None)
    return with_interval(interval.around(value), value)


def _difference(found: Difference | None, scale: _Scale) -> Cell:
    """The difference, what it amounts to, its interval in words and drawn; a dash where there is none."""
    if found is None:
        return number(None)
    figure, interval = found.spelt().split(" ", 1)
    amounts = (" <em>undecided</em>" if found.high - found.low > WIDE else " tie") if found.tie else ""
    low, width = scale.place(found.low), scale.place(found.high) - scale.place(found.low)
    drawn = (
        f'<i class="qa-forest" aria-hidden="true" style="--zero:{scale.place(0):.1f}%;--low:{low:.1f}%;'
        f'--width:{width:.1f}%;--at:{scale.place(found.value):.1f}%"></i>'
    )
    return Cell(f"{escape(figure)}{amounts} <small>{escape(interval)}</small>{drawn}", found.value)


def caption(records: Sequence[QualityRecord], whose: str, note: str = "") -> str:
    """Whose measurement it is, on what machine, what each data set is, and how closely it tells F1; then the note."""
    if not records:
        return ""
    sets = {set_title(each): each for each in records}
    least = min(_within(each) for each in sets.values())
    items = "".join(
        f"<li><b>{escape(title)}</b>: {escape(_described(each))}. F1 is known "
        f"{'only ' if _within(each) > 2 * least else ''}to within {_within(each):.1f} either way.</li>"
        for title, each in sets.items()
    )
    where = "; ".join(dict.fromkeys(each.machine.sentence(each.device) for each in records))
    noted = f"<p>{escape(note)}</p>" if note else ""
    return f'<div class="qa-caption"><p><b>{escape(whose)}</b> {escape(where)}.</p><ul>{items}</ul>{noted}</div>'


def _described(record: QualityRecord) -> str:
    """The record's data set, and how much of it was asked."""
    whole = record.limit is None or record.n < record.limit
    part = "all" if whole else f"{record.n:,} drawn at random (seed {record.seed}) of the"
    if record.data_sha256 == sha256_of(SQUAD_V2_DEV):
        return f"{part} {SQUAD_DEV_QUESTIONS:,} questions of SQuAD v2.0 dev, on Wikipedia"
    if record.data_sha256 == sha256_of(OWN):
        return f"{part} {count_of(OWN):,} questions that ship with the app, on texts of other kinds"
    if record.data_sha256 == sha256_of(EVERYDAY):
        return f"{part} {count_of(EVERYDAY):,} more of the app's, on letters, manuals, chat, reviews and recipes"
    return f"{part} questions in the file"


def _within(record: QualityRecord) -> float:
    """Half of the interval of F1."""
    return (record.f1_interval.high - record.f1_interval.low) / 2


def how_to_read() -> str:
    """What each figure means, once."""
    terms = "".join(f"<dt>{term}</dt><dd>{meaning}</dd>" for term, meaning in TERMS.items())
    return f'<dl class="qa-terms">{terms}</dl>'


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
        f'<p class="qa-soft" dir="auto">{_excerpt(question.context, place)}</p>'
        f'<dl><dt>People</dt><dd dir="auto">{escape(gold)}</dd>'
        f"{_answer(found.one, one)}{_answer(found.other, other)}</dl>"
        f'<button type="button" data-number="{number}">Ask it</button></li>'
    )


def _answer(scored: Scored, backend: Backend) -> str:
    text = escape(scored.answer.text) if scored.answer.span else "<em>no answer in this text</em>"
    verdict = "right" if scored.exact else "wrong" if scored.f1 == 0 else f"F1 {100 * scored.f1:.0f}"
    dot = f'<i style="background:{colour(backend.name)}"></i>'
    tone = {"right": "qa-right", "wrong": "qa-wrong"}.get(verdict, "qa-partly")
    return f'<dt>{dot}{escape(backend.title)}</dt><dd dir="auto">{text} <small class="{tone}">{verdict}</small></dd>'


def _place(scored: Scored) -> int:
    return scored.answer.span.start if scored.answer.span else 0


def _excerpt(context: str, place: int) -> str:
    """Whole words around the place."""
    start, end = max(0, place - AROUND), min(len(context), place + AROUND)
    before, after = "… " if start else "", " …" if end < len(context) else ""
    first = context[start:place].partition(" ")[2] if start else context[:place]
    last = context[place:end].rpartition(" ")[0] if after else context[place:]
    return escape(f"{before}{first}{last or context[place:end]}{after}")
