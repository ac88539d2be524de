"""A comparison as HTML. Everything a person typed passes ``escape``; nothing here runs or measures."""

from __future__ import annotations

import itertools
from html import escape
from typing import TYPE_CHECKING

from qa_backends.asking.recorded import examples
from qa_backends.web.ask.asked import key_of
from qa_backends.web.ask.verdict import Verdict, alike, verdict_of
from qa_backends.web.shared.palette import PART_OPACITY, colour
from qa_backends.web.shared.wording import count, device_title, milliseconds, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qa_backends.asking.comparison import Card, Comparison, KnownQuality

EXCERPT_CHARS = 500
"""Of a long text, so much is shown on either side of a marked answer."""
WHOLE_UP_TO = 6_000
"""Texts up to this length are shown whole."""
UNLIKE = '<span role="img" aria-label="Not what the baseline says:" title="Not what the baseline says">≠</span> '
UNDERLINE_PX = 5
"""What each backend's underline takes below a marked answer, with the gap to the next."""
RACE_LASTS_S = 4.0
"""The slowest backend takes this long in the race; the others proportionally less."""
WIDEST = 100.0
"""Per cent of its lane that the slowest backend's bar takes."""


def result(view: Comparison, race: int = 0, *, note: str = "") -> str:
    """The whole comparison under its question: a headline, what it costs, and a row a backend.

    ``note`` is said beside the question. ``race`` counts the races run: from the first on, the bars grow as the
    backends ran, slowed down alike. Each number makes the animation a new one, so that the browser starts it again.
    """
    verdict = verdict_of(view)
    timed = view.answered
    slowest = max((card.latency_ms or 0.0 for card in timed), default=0.0)
    factor = RACE_LASTS_S * 1000 / slowest if slowest else 0.0
    sets = _sets(view)
    rows = "".join(_row(card, view, sets, slowest, factor if race else 0.0, race) for card in view.cards)
    facts = f'<p class="qa-soft">{f"<b>{escape(note)}</b> " if note else ""}{escape(_facts(view))}</p>'
    status = f'<p class="qa-status" role="status" aria-live="off">{escape(view.status)}</p>'
    # In a line that stands there anyway, so that nothing moves when it comes.
    notice = f'<span class="qa-notice">{escape(view.notice)}</span> ' if view.notice else ""
    pace = f'<span class="qa-pace"> They grew at {_pace(factor)}.</span>' if race and timed else ""
    return (
        f'<section class="qa-result" data-asked="{key_of(view)}" aria-label="Result">'
        f'<header><h2 dir="auto">“{escape(view.question)}”</h2>'
        f"{status if view.status else facts}</header>{_headline(verdict)}"
        f'<div class="qa-lane qa-heads" aria-hidden="true">{_heads(sets)}</div><ol class="qa-race">{rows}</ol>'
        f'{_trap(view)}<p class="qa-soft">{notice}Bars: {_parts_named(view)}.{pace}{_where_f1(sets)}</p></section>'
    )


def _sets(view: Comparison) -> list[str]:
    """The data sets that any of the backends was measured on."""
    return list(dict.fromkeys(known.title for card in view.cards for known in card.quality))


def _heads(sets: Sequence[str]) -> str:
    """What the columns of a row are, for those who see them; each cell says it too."""
    named = ("backend", "answer", "time", "speed", *(f"F1, {each}" for each in sets))
    return "".join(f"<span>{escape(each)}</span>" for each in named)


def _where_f1(sets: Sequence[str]) -> str:
    return " F1: intervals and differences are told under “what ran”." if sets else ""


def _parts_named(view: Comparison) -> str:
    waited = any(card.wait_ms >= 1 for card in view.answered)
    hatched = "; hatched, and not counted: the wait for other people's questions" if waited else ""
    return f"tokenise, model, decode{hatched}"


def pending(question: str, titles: Sequence[tuple[str, str]], asked: str) -> str:
    """What stands under a question that was just asked; ``titles`` are names and titles of the backends asked, and
    ``asked`` is the key to it all."""
    rows = "".join(
        f'<li class="qa-lane qa-pending"><div class="qa-name"><i style="background:{colour(name)}"></i>'
        f'<b>{escape(title)}</b></div><div class="qa-answer">…</div></li>'
        for name, title in titles
    )
    return (
        f'<section class="qa-result" data-asked="{asked}" aria-label="Result">'
        f'<header><h2 dir="auto">“{escape(question)}”</h2>'
        f'<p class="qa-soft qa-asked">asked just now</p></header><div class="qa-headline"><strong>…</strong></div>'
        f'<div class="qa-lane qa-heads" aria-hidden="true">{_heads(())}</div><ol class="qa-race">{rows}</ol></section>'
    )


def remark(sentence: str, question: str = "", *, looking: bool = False) -> str:
    """A sentence where a result would stand: that something was cancelled, or what is missing; or how the search for a
    question goes, ``looking``, which ends when somebody types another one."""
    heading = f'<header><h2 dir="auto">“{escape(question)}”</h2></header>' if question else ""
    said = f'<p class="qa-status" role="status">{escape(sentence)}</p>'
    return f'<section class="qa-result{" qa-looking" if looking else ""}">{heading}{said}</section>'


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
        f'<div class="qa-headline qa-{verdict.tone}"><strong>{escape(verdict.figure)}</strong>'
        f"<div><b>{escape(verdict.title)}</b><span>{escape(verdict.detail)}</span></div>"
        f'<ul class="qa-chips">{chips}</ul></div>'
    )


def _notice(sentence: str) -> str:
    return f'<p class="qa-notice">{escape(sentence)}</p>'


def _trap(view: Comparison) -> str:
    """That an example's text does not hold the answer, and who gave one all the same."""
    asked = next(
        (each for each in examples() if (each["question"], each["context"]) == (view.question, view.context)), None
    )
    if asked is None or asked["answer"] or not view.answered:
        return ""
    fooled = [card.title for card in view.answered if card.answer is not None]
    who = f"Fooled: {', '.join(fooled)}." if fooled else "Nobody was fooled."
    return _notice(f"A trap: the text does not say, so the right answer is none. {who}")


def _row(card: Card, view: Comparison, sets: Sequence[str], slowest: float, factor: float, race: int) -> str:
    """One backend: its name, its answer, its time as a bar, its ratio and F1, and what ran behind a disclosure."""
    name = (
        f'<div class="qa-name"><i style="background:{colour(card.backend)}"></i><b>{escape(card.title)}</b>'
        f'<span class="qa-soft">{escape(card.engine or card.summary)}</span></div>'
    )
    if card.error:
        return f'<li class="qa-lane qa-failed">{name}<p class="qa-error">{escape(card.error)}</p></li>'
    text = escape(card.answer) if card.answer is not None else "<em>no answer in this text</em>"
    if not card.answered or card.parts_ms is None or card.latency_ms is None:
        early = f'{text}</div><div class="qa-soft">its time comes next' if card.early else "…"
        return f'<li class="qa-lane qa-pending">{name}<div class="qa-answer" dir="auto">{early}</div></li>'
    other, mark = (" qa-other", UNLIKE) if card.same_answer is False else ("", "")
    width = WIDEST * card.latency_ms / slowest
    lasts = card.latency_ms * factor / 1000
    motion = f"animation:qa-race-{race % 2} {lasts:.2f}s linear backwards" if factor else ""
    parts = "".join(
        f'<i style="flex:{max(value, 0.0):.4f};background:{colour(card.backend)};opacity:{PART_OPACITY[part]}" '
        f'title="{part} {milliseconds(value)}"></i>'
        for part, value in card.parts_ms.items()
    )
    return (
        f'<li class="qa-lane">{name}<div class="qa-answer{other}" dir="auto">{mark}{text}</div>'
        f'<div class="qa-bar"><div class="qa-track"><div class="qa-fill" style="width:{width:.2f}%;{motion}">{parts}'
        f"</div>{_wait(card, slowest)}</div><b>{milliseconds(card.latency_ms)}</b></div>"
        f'<div class="qa-ratio">{escape(_ratio(card, view))}</div>'
        f'<div class="qa-sets">{"".join(_known(card, each, view.device) for each in sets)}</div>'
        f"{''.join(map(_notice, card.notices))}"
        f"<details><summary>what ran</summary><p>{escape(_what_ran(card))}</p></details></li>"
    )


def _wait(card: Card, slowest: float) -> str:
    """What the backend waited for its turn, to the same scale as far as the lane is long."""
    if card.wait_ms < 1:
        return ""
    width = min(WIDEST, WIDEST * card.wait_ms / slowest)
    return f'<div class="qa-wait" style="width:{width:.2f}%" title="waited {milliseconds(card.wait_ms)}"></div>'


def _ratio(card: Card, view: Comparison) -> str:
    if card is view.baseline:
        return "1×"
    if card.speed_up is None:
        estimate = view.estimate(card)
        return ("≈1×" if alike(estimate) else f"≈{estimate:.1f}×") if estimate else ""
    return "a tie" if card.speed_up.tie else card.speed_up.figure()


def _known(card: Card, title: str, device: str) -> str:
    """F1 on one data set with its interval, and the share of equal answers, with the device where it was measured on
    another; on a phone the intervals are left to what ran."""
    known = next((each for each in card.quality if each.title == title), None)
    if known is None:
        return '<div class="qa-f1"></div>'
    elsewhere = "" if known.device == device else f", on the {device_title(known.device)}"
    agrees = "" if known.agreement is None else f" <span>agrees {known.agreement:.0f} %</span>"
    said = f'<span class="qa-unseen"><span class="qa-unseen">F1, </span>{escape(title)} </span>'
    figure, interval = known.said.split(" ", 1)
    return (
        f'<div class="qa-f1" title="{escape(_in_full(known), quote=True)}"><b>{said}{figure}</b>{escape(elsewhere)}'
        f" <span>{interval}</span>{agrees}</div>"
    )


def _in_full(known: KnownQuality) -> str:
    """F1 on one data set with all that is known of it."""
    against = f", against the baseline {known.f1_difference.spelt()}" if known.f1_difference else ""
    return f"F1 on {known.title}: {known.said}{against}, {known.n:,} questions."


def _what_ran(card: Card) -> str:
    parts = ", ".join(f"{part} {milliseconds(value)}" for part, value in (card.parts_ms or {}).items())
    against = f"; against the baseline {card.speed_up}" if card.speed_up else ""
    wait = f"; waited {milliseconds(card.wait_ms)} for its turn" if card.wait_ms >= 1 else ""
    timed = f"median of {count(card.runs, 'run')}" if card.runs else "one reading, after one run to warm up"
    known = "".join(f" {_in_full(each)}" for each in card.quality)
    memory = f"; it takes {card.memory_bytes / 1e6:,.0f} MB of memory" if card.memory_bytes is not None else ""
    loaded = f" Loading it took {milliseconds(card.load_ms)}{memory}." if card.load_ms is not None else ""
    built = f" Building it, once, took {milliseconds(card.build_ms)}." if card.build_ms else ""
    return (
        f"{card.title}: {card.summary}. {card.ran}. {parts} ({timed}){against}{wait}. The first run on this question "
        f"took {milliseconds(card.cold_ms)}.{built}{loaded} {percent(card.confidence)} confident.{known}"
    )


def _pace(factor: float) -> str:
    return f"1/{factor:,.0f} of their pace" if factor > 1 else f"{1 / factor:,.1f} times their pace"


def marked(view: Comparison) -> str:
    """The text with every answer underlined, once for all backends that gave it; overlapping ones below each other."""
    answers: dict[tuple[int, int], list[Card]] = {}
    for card in view.told:
        if card.span is not None:
            answers.setdefault(card.span, []).append(card)
    edges = sorted({edge for span in answers for edge in span} | {0, len(view.context)})
    pieces = []
    for start, end in itertools.pairwise(edges):
        over = [cards for span, cards in answers.items() if span[0] <= start and end <= span[1]]
        text = escape(view.context[start:end])
        pieces.append(_mark(text, over) if over else _shortened(view.context, start, end))
    silent = [card for card in view.told if card.span is None]
    legend = "".join(_named(cards, view) for cards in answers.values())
    legend += _named(silent, view, "no answer in this text: ") if silent else ""
    room = f"line-height:calc(1.6em + {UNDERLINE_PX * max(0, len(answers) - 1)}px)"
    text = (
        f'<div class="qa-text" dir="auto" tabindex="0" role="region" aria-label="Text with the answers marked" '
        f'style="{room}">{"".join(pieces)}</div>'
    )
    return f'<div data-asked="{key_of(view)}">{text}<ul class="qa-legend">{legend}</ul></div>'


def _named(cards: Sequence[Card], view: Comparison, says: str = "") -> str:
    """Who gave an answer, under the colour that marks it."""
    everybody = len(cards) == len(view.told) > 1
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
