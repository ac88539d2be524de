"""A comparison as HTML. Everything a person typed passes ``escape``; nothing here runs or measures."""

from __future__ import annotations

import itertools
from html import escape
from typing import TYPE_CHECKING

from qa_backends.web.ask.verdict import Verdict, verdict_of
from qa_backends.web.shared.palette import PART_OPACITY, colour
from qa_backends.web.shared.wording import count, device_title, milliseconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qa_backends.asking.comparison import Card, Comparison

EXCERPT_CHARS = 500
"""Of a long text, so much is shown on either side of a marked answer."""
WHOLE_UP_TO = 6_000
"""Texts up to this length are shown whole."""
UNDERLINE_PX = 5
"""What each backend's underline takes below a marked answer, with the gap to the next."""
RACE_LASTS_S = 4.0
"""The slowest backend takes this long in the race; the others proportionally less."""
WIDEST = 100.0
"""Per cent of its lane that the slowest backend's bar takes."""


def result(view: Comparison, race: int = 0) -> str:
    """The whole comparison under its question: a headline, what it costs, and a row a backend.

    ``race`` counts the races run: from the first on, the bars grow as the backends ran, slowed down alike. Each number
    makes the animation a new one, so that the browser starts it again.
    """
    verdict = verdict_of(view)
    timed = view.answered
    slowest = max((card.latency_ms or 0.0 for card in timed), default=0.0)
    factor = RACE_LASTS_S * 1000 / slowest if slowest else 0.0
    rows = "".join(_row(card, view, slowest, factor if race else 0.0, race) for card in view.cards)
    status = f'<p class="qa-status" role="status">{escape(view.status)}</p>' if view.status else ""
    pace = f" They grew at {_pace(factor)}." if race and timed else ""
    return (
        f'<section class="qa-result" aria-label="Result"><header><h2 dir="auto">“{escape(view.question)}”</h2>'
        f'<p class="qa-soft">{escape(_facts(view))}</p></header>'
        f"{_headline(verdict)}{status}"
        f'<ol class="qa-race">{rows}</ol><p class="qa-soft">Bars: tokenise, model, decode.{pace}</p></section>'
    )


def pending(question: str, titles: Sequence[tuple[str, str]]) -> str:
    """What stands under a question that was just asked; ``titles`` are names and titles of the backends asked."""
    rows = "".join(
        f'<li class="qa-lane qa-pending"><div class="qa-name"><i style="background:{colour(name)}"></i>'
        f'<b>{escape(title)}</b></div><div class="qa-answer">…</div></li>'
        for name, title in titles
    )
    return (
        f'<section class="qa-result" aria-label="Result"><header><h2 dir="auto">“{escape(question)}”</h2>'
        f'<p class="qa-soft">asked just now</p></header><div class="qa-headline"><strong>…</strong></div>'
        f'<ol class="qa-race">{rows}</ol></section>'
    )


def remark(sentence: str, question: str = "") -> str:
    """A sentence where a result would stand: what is being looked for, or that something was cancelled."""
    heading = f'<header><h2 dir="auto">“{escape(question)}”</h2></header>' if question else ""
    return f'<section class="qa-result">{heading}<p class="qa-status" role="status">{escape(sentence)}</p></section>'


def trouble(sentence: str) -> str:
    """An error where a result would stand."""
    return f'<section class="qa-result qa-problem" role="alert"><p>{escape(sentence)}</p></section>'


def _facts(view: Comparison) -> str:
    """What the question is about and how it was measured, in a line."""
    runs = max((card.runs for card in view.answered), default=0)
    how = "one reading of each" if runs == 0 else f"{count(runs, 'run')} of each, in turns"
    where = f"recorded on {view.recorded}" if view.recorded else "measured here"
    tokens = f"{count(view.tokens, 'token')} · " if view.tokens else ""
    return f"{tokens}{where}, {how}" if view.answered else f"{tokens}{where}"


def _headline(verdict: Verdict) -> str:
    chips = "".join(f'<li class="qa-chip qa-{chip.tone}">{escape(chip.text)}</li>' for chip in verdict.chips)
    return (
        f'<div class="qa-headline qa-{verdict.tone}" aria-live="polite"><strong>{escape(verdict.figure)}</strong>'
        f"<div><b>{escape(verdict.title)}</b><span>{escape(verdict.detail)}</span></div>"
        f'<ul class="qa-chips">{chips}</ul></div>'
    )


def _row(card: Card, view: Comparison, slowest: float, factor: float, race: int) -> str:
    """One backend: its name, its answer, its time as a bar, its ratio and F1, and what ran behind a disclosure."""
    name = (
        f'<div class="qa-name"><i style="background:{colour(card.backend)}"></i><b>{escape(card.title)}</b>'
        f'<span class="qa-soft">{escape(card.engine or card.summary)}</span></div>'
    )
    if card.error:
        return f'<li class="qa-lane qa-failed">{name}<p class="qa-error">{escape(card.error)}</p></li>'
    if not card.answered or card.parts_ms is None or card.latency_ms is None:
        return f'<li class="qa-lane qa-pending">{name}<div class="qa-answer">…</div></li>'
    text = escape(card.answer) if card.answer is not None else "<em>no answer in this text</em>"
    other = " qa-other" if card.same_answer is False else ""
    width = WIDEST * card.latency_ms / slowest
    lasts = card.latency_ms * factor / 1000
    motion = f"animation:qa-race-{race % 2} {lasts:.2f}s linear backwards" if factor else ""
    parts = "".join(
        f'<i style="flex:{max(value, 0.0):.4f};background:{colour(card.backend)};opacity:{PART_OPACITY[part]}" '
        f'title="{part} {milliseconds(value)}"></i>'
        for part, value in card.parts_ms.items()
    )
    return (
        f'<li class="qa-lane">{name}<div class="qa-answer{other}" dir="auto">{text}</div>'
        f'<div class="qa-bar"><div class="qa-track"><div class="qa-fill" style="width:{width:.2f}%;{motion}">{parts}'
        f"</div></div><b>{milliseconds(card.latency_ms)}</b></div>"
        f'<div class="qa-ratio">{escape(_ratio(card, view))}</div><div class="qa-f1">{escape(_f1(card, view))}</div>'
        f"{''.join(f'<p class=qa-notice>{escape(notice)}</p>' for notice in card.notices)}"
        f"<details><summary>what ran</summary><p>{escape(_what_ran(card))}</p></details></li>"
    )


def _ratio(card: Card, view: Comparison) -> str:
    if card is view.baseline:
        return "1×"
    if card.speed_up is None:
        return ""
    return "a tie" if card.speed_up.tie else card.speed_up.figure()


def _f1(card: Card, view: Comparison) -> str:
    """F1 on SQuAD v2, and on which device where it was another."""
    if card.f1 is None:
        return ""
    elsewhere = "" if card.f1_device == view.device else f", on the {device_title(card.f1_device or '')}"
    return f"F1 {card.f1:.1f}{elsewhere}"


def _what_ran(card: Card) -> str:
    parts = ", ".join(f"{part} {milliseconds(value)}" for part, value in (card.parts_ms or {}).items())
    against = f"; against the baseline {card.speed_up}" if card.speed_up else ""
    wait = f"; waited {milliseconds(card.wait_ms)} for its turn" if card.wait_ms >= 1 else ""
    timed = f"median of {count(card.runs, 'run')}" if card.runs else "one reading, after one run to warm up"
    return (
        f"{card.title}: {card.summary}. {card.ran}. {parts} ({timed}){against}{wait}. The first run on this question "
        f"took {milliseconds(card.cold_ms)}. {card.confidence:.0%} confident."
    )


def _pace(factor: float) -> str:
    return f"a {factor:,.0f}th of their pace" if factor > 1 else f"{1 / factor:,.1f} times their pace"


def marked(view: Comparison) -> str:
    """The text with every answer underlined, once for all backends that gave it; overlapping ones below each other."""
    answers: dict[tuple[int, int], list[Card]] = {}
    for card in view.answered:
        if card.span is not None:
            answers.setdefault(card.span, []).append(card)
    edges = sorted({edge for span in answers for edge in span} | {0, len(view.context)})
    pieces = []
    for start, end in itertools.pairwise(edges):
        over = [cards for span, cards in answers.items() if span[0] <= start and end <= span[1]]
        text = escape(view.context[start:end])
        pieces.append(_mark(text, over) if over else _shortened(view.context, start, end))
    silent = [card for card in view.answered if card.span is None]
    legend = "".join(_named(cards, view) for cards in answers.values())
    legend += _named(silent, view, "no answer in this text: ") if silent else ""
    room = f"line-height:calc(1.6em + {UNDERLINE_PX * max(0, len(answers) - 1)}px)"
    text = f'<div class="qa-text" dir="auto" tabindex="0" style="{room}">{"".join(pieces)}</div>'
    return f'<div>{text}<ul class="qa-legend">{legend}</ul></div>'


def _named(cards: Sequence[Card], view: Comparison, says: str = "") -> str:
    """Who gave an answer, under the colour that marks it."""
    everybody = len(cards) == len(view.answered) > 1
    together = "both backends" if len(cards) == 2 else f"all {len(cards)} backends"
    names = together if everybody else ", ".join(card.title for card in cards)
    return f'<li><i style="background:{colour(cards[0].backend)}"></i>{escape(says + names)}</li>'


def _mark(text: str, over: Sequence[Sequence[Card]]) -> str:
    """Stacked underlines: one gradient an answer, three pixels high (in the style sheet), two apart."""
    inks = [colour(cards[0].backend) for cards in over]
    images = ",".join(f"linear-gradient({ink},{ink})" for ink in inks)
    places = ",".join(f"0 calc(100% - {UNDERLINE_PX * level}px)" for level in range(len(over)))
    style = f"background-image:{images};background-position:{places};padding-bottom:{UNDERLINE_PX * len(over) - 2}px"
    names = escape(", ".join(card.title for cards in over for card in cards), quote=True)
    return f'<mark style="{style}" title="{names}">{text}</mark>'


def _shortened(context: str, start: int, end: int) -> str:
    """Unmarked text; its middle left out where the whole text is long."""
    if len(context) <= WHOLE_UP_TO or end - start <= 2 * EXCERPT_CHARS:
        return escape(context[start:end])
    unmarked = start == 0 and end == len(context)
    head = context[start : start + EXCERPT_CHARS] if start or unmarked else ""
    tail = context[end - EXCERPT_CHARS : end] if end < len(context) else ""
    left_out = end - start - len(head) - len(tail)
    return f'{escape(head)}<span class="qa-gap"> … {left_out:,} characters … </span>{escape(tail)}'
