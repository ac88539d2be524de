"""A comparison as HTML. Everything a person typed passes ``escape``; nothing here runs or measures."""

from __future__ import annotations

import itertools
from html import escape
from typing import TYPE_CHECKING

from qa_backends import catalog
from qa_backends.web.shared.palette import colour
from qa_backends.web.shared.wording import device_title, milliseconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qa_backends.asking.comparison import Card, Comparison

EXCERPT_CHARS = 500
"""Of a long text, so much is shown on either side of a marked answer."""
WHOLE_UP_TO = 6_000
"""Texts up to this length are shown whole."""
UNDERLINE_PX = 5
"""What each backend's underline takes below a marked answer, with the gap to the next."""
REPLAY_LASTS_S = 4.0
"""The slowest backend takes this long in the replay; the others proportionally less."""


def verdict(view: Comparison) -> str:
    """One sentence: which backend, how much faster, same answer or not, at what cost in F1."""
    label = f'<p class="qa-recorded">Recorded on {escape(view.recorded)}:</p>' if view.recorded else ""
    status = f'<p class="qa-status">{escape(view.status)}</p>' if view.status else ""
    hint = '<p class="qa-status">Press Ask to measure it here.</p>' if view.recorded else ""
    sentence = escape(verdict_text(view))
    return f'<div class="qa-verdict" aria-live="polite">{label}<p>{sentence}</p>{status}{hint}</div>'


def verdict_text(view: Comparison) -> str:
    timed = view.answered
    if not timed:
        return "Waiting for the first answer …" if view.status else "No backend could answer; the cards say why."
    best = min(timed, key=lambda card: card.latency_ms or 0.0)
    quickest = f"{best.title} answered in {milliseconds(best.latency_ms or 0)}"
    if view.baseline is None:
        return f"{quickest}; {_why_no_ratio(view)}."
    if view.fastest is None:
        if len(view.cards) == 1:
            return f"{quickest}."
        why = " so far" if view.status else ": five rounds of turns did not fit in the time"
        return f"{quickest}, in one reading{why}."
    fastest = view.card(view.fastest.backend)
    same = "the same answer" if fastest.same_answer else "a different answer"
    return f"{fastest.title} is {view.fastest.speed_up.sentence()}, with {same}, {_quality(fastest, view.baseline)}."


def _why_no_ratio(view: Comparison) -> str:
    asked = next((card for card in view.cards if card.backend == catalog.BASELINE), None)
    if asked is None:
        return "tick the baseline to compare"
    return (
        "the baseline could not answer, so there is nothing to compare with" if asked.error else "the baseline is next"
    )


def _quality(card: Card, baseline: Card) -> str:
    """What the speed costs in F1: the paired difference, where it was measured."""
    if card.f1 is None or baseline.f1 is None:
        return "at a cost in F1 that has not been measured for these weights"
    difference = f": {card.f1_difference}" if card.f1_difference else ""
    return f"and F1 {card.f1:.1f} against {baseline.f1:.1f} on SQuAD v2{difference}"


def cards(view: Comparison) -> str:
    """A card for every backend asked."""
    return f'<div class="qa-cards">{"".join(_card(card, view) for card in view.cards)}</div>'


def _card(card: Card, view: Comparison) -> str:
    head = (
        f'<h3><i style="background:{colour(card.backend)}"></i>{escape(card.title)}</h3>'
        f'<p class="qa-parts">{escape(card.engine or card.summary)}</p>'
    )
    if card.error:
        return f'<article class="qa-card qa-failed">{head}<p class="qa-error">{escape(card.error)}</p></article>'
    if not card.answered or card.parts_ms is None:
        return f'<article class="qa-card qa-pending">{head}<p class="qa-answer">…</p></article>'
    text = escape(card.answer) if card.answer is not None else "<em>no answer in this text</em>"
    parts = " · ".join(f"{name} {milliseconds(value)}" for name, value in card.parts_ms.items())
    wait = f" · waited {milliseconds(card.wait_ms)}" if card.wait_ms >= 1 else ""
    return (
        f'<article class="qa-card">{head}'
        f'<p class="qa-answer" dir="auto">{text}</p>'
        f'<p class="qa-time"><b>{milliseconds(card.latency_ms or 0)}</b> <span>{_pace(card, view)}</span></p>'
        f'<p class="qa-parts">{parts}{wait}</p>'
        f'<p class="qa-parts">{card.confidence:.0%} confident{_same(card, view)}{_f1(card, view)}</p>'
        f"{''.join(f'<p class=qa-notice>{escape(notice)}</p>' for notice in card.notices)}"
        f"<details><summary>what ran</summary><p>{escape(card.summary)}: {escape(card.ran)}; the first run on this "
        f"question took {milliseconds(card.cold_ms)}; time shown: {_how_timed(card)}.</p></details></article>"
    )


def _pace(card: Card, view: Comparison) -> str:
    if card.speed_up is not None:
        return escape(card.speed_up.sentence())
    if card is view.baseline:
        return f"the baseline, {card.runs} runs" if card.runs else "the baseline, one reading"
    return f"{card.runs} runs" if card.runs else "one reading"


def _how_timed(card: Card) -> str:
    return f"median of {card.runs} runs" if card.runs else "one reading, after one run to warm up"


def _same(card: Card, view: Comparison) -> str:
    if card.same_answer is None or card is view.baseline:
        return ""
    return " · same answer as the baseline" if card.same_answer else " · <b>not the baseline's answer</b>"


def _f1(card: Card, view: Comparison) -> str:
    if card.f1 is None:
        return ""
    elsewhere = "" if card.f1_device == view.device else f", measured on the {device_title(card.f1_device or '')}"
    return f" · F1 {card.f1:.1f} on SQuAD v2{elsewhere}"


def marked(view: Comparison) -> str:
    """The text with every backend's span underlined in its colour, overlapping ones one below the other."""
    spans = [(card.span, card) for card in view.answered if card.span is not None]
    edges = sorted({edge for span, _ in spans for edge in span} | {0, len(view.context)})
    pieces = []
    for start, end in itertools.pairwise(edges):
        over = [card for span, card in spans if span[0] <= start and end <= span[1]]
        text = escape(view.context[start:end])
        pieces.append(_mark(text, over) if over else _shortened(view.context, start, end))
    legend = "".join(
        f'<li><i style="background:{colour(card.backend)}"></i>{escape(card.title)}: '
        f"{'characters {}–{}'.format(*card.span) if card.span else 'no answer'}</li>"
        for card in view.answered
    )
    room = f"line-height:calc(1.65em + {UNDERLINE_PX * len(spans)}px)"
    text = f'<div class="qa-text" dir="auto" tabindex="0" style="{room}">{"".join(pieces)}</div>'
    return f'{text}<ul class="qa-legend">{legend}</ul>'


def _mark(text: str, over: Sequence[Card]) -> str:
    """Stacked underlines: one gradient a backend, three pixels high (in the style sheet), two apart."""
    images = ",".join(f"linear-gradient({colour(card.backend)},{colour(card.backend)})" for card in over)
    places = ",".join(f"0 calc(100% - {UNDERLINE_PX * level}px)" for level in range(len(over)))
    style = f"background-image:{images};background-position:{places};padding-bottom:{UNDERLINE_PX * len(over)}px"
    names = escape(", ".join(card.title for card in over), quote=True)
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


def replay(view: Comparison, number: int) -> str:
    """A race in slow motion: each backend's dot takes its measured time, stretched by one factor for all.

    ``number`` makes each replay's animation a new one, so that the browser starts it again.
    """
    timed = view.answered
    if not timed:
        return ""
    slowest = max(card.latency_ms or 0.0 for card in timed)
    factor = REPLAY_LASTS_S * 1000 / slowest
    lanes = "".join(
        f'<li><span>{escape(card.title)}</span><div class="qa-lane"><i style="background:{colour(card.backend)};'
        f'animation:qa-race-{number % 2} {(card.latency_ms or 0) * factor / 1000:.2f}s linear forwards"></i></div>'
        f"<b>{milliseconds(card.latency_ms or 0)}</b></li>"
        for card in timed
    )
    return (
        f'<div class="qa-replay"><ul>{lanes}</ul><p class="qa-parts">One answer each, {_pace_of_replay(factor)}; '
        "the times are those measured.</p></div>"
    )


def _pace_of_replay(factor: float) -> str:
    return f"slowed down {factor:,.0f} times" if factor > 1 else f"sped up {1 / factor:,.1f} times"
