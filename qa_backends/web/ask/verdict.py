"""What a comparison comes to, in one figure and a sentence, with what the speed costs beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from qa_backends import catalog
from qa_backends.web.shared.wording import milliseconds, percent

if TYPE_CHECKING:
    from qa_backends.asking.comparison import Card, Comparison, Fastest

GOOD, PLAIN, WARN = "good", "plain", "warn"
"""Tones: to be proud of, to be taken note of, to be careful with."""
ALIKE = 1.1
"""By single readings, what differs by less than 10 % is neither faster nor slower: one reading differs from the next by
as much."""
BEARABLE_LOSS = 2.0
"""F1, in percent: a loss of more that the interval does not exclude is said in amber."""


@dataclass(frozen=True, slots=True)
class Chip:
    """A short remark beside the figure."""

    text: str
    tone: str = PLAIN


@dataclass(frozen=True, slots=True)
class Verdict:
    """``figure`` is shown large, ``title`` says what it is, ``detail`` of whom and how surely."""

    figure: str
    title: str
    detail: str = ""
    tone: str = PLAIN
    chips: tuple[Chip, ...] = ()


def alike(ratio: float) -> bool:
    """Whether single readings whose times have this ratio tell neither way."""
    return 1 / ALIKE < ratio < ALIKE


def verdict_of(view: Comparison) -> Verdict:
    """As far as it is known; it never leads with a speed that is uncertain, or bought with another answer."""
    if not view.answered:
        if view.status:
            return Verdict("…", "the first answer is being timed" if view.told else "waiting for the first answer")
        return Verdict("No answer", "No backend could answer", "each one says why below", WARN)
    if view.baseline is None or len(view.cards) == 1:
        return _without_ratio(view)
    return _measured(view, view.fastest) if view.fastest else _estimated(view)


def _without_ratio(view: Comparison) -> Verdict:
    """One time, and why there is no ratio."""
    quickest = _quickest(view)
    title = f"{quickest.title} answered"
    asked = next((card for card in view.cards if card.backend == catalog.BASELINE), None)
    why = ""
    if view.baseline is not None and len(view.cards) > 1:
        why = "the next backend is at work" if view.status else "no other backend could answer"
    elif len(view.cards) > 1 or asked is None:
        why = "choose the baseline too, to compare with it"
    if asked is not None and asked.error:
        why = "the baseline could not answer, so there is nothing to compare with"
    elif asked is not None and not asked.answered:
        why = "the baseline is next"
    return Verdict(milliseconds(quickest.latency_ms or 0.0), title, why, chips=_disturbed(view))


def _estimated(view: Comparison) -> Verdict:
    """The quickest against the baseline by single readings: an estimate, and called one."""
    rivals = [card for card in view.answered if card is not view.baseline]
    quickest = min(rivals, key=lambda card: card.latency_ms or 0.0, default=None)
    ratio = view.estimate(quickest) if quickest else None
    if quickest is None or ratio is None:
        return _without_ratio(view)
    word, shown = ("faster", ratio) if ratio >= 1 else ("slower", 1 / ratio)
    figure, title = f"≈{shown:.1f}×", f"{word} than the baseline"
    speed = f"{figure} {word}"
    if alike(shown):
        figure, title, speed = "About as fast", "as the baseline", "about as fast as the baseline"
    how = "so far, by one reading of each" if view.status else "an estimate from one reading of each"
    detail, chips = f"{quickest.title} · {how}", _chips(quickest)
    if held_back := _held_back(view, quickest, speed, detail, chips):
        return held_back
    tone = PLAIN if view.status else WARN
    return Verdict(figure, title, detail, tone, chips)


def _measured(view: Comparison, fastest: Fastest) -> Verdict:
    """By the interval of the fastest, which holds for all candidates at once."""
    card, ratio = view.card(fastest.backend), fastest.speed_up
    chips = _chips(card)
    word, shown = ("faster", ratio) if ratio.value > 1 else ("slower", ratio.inverse)
    detail = f"{card.title} · {shown.interval()} times"
    if held_back := _held_back(view, card, f"{shown.figure()} {word}", detail, chips):
        return held_back
    if ratio.tie:
        return Verdict("A tie", "as fast as the baseline", f"{card.title} · {ratio.interval()} times", PLAIN, chips)
    if shown.vague:
        title = f"about {shown.figure()} {word} than the baseline, but the runs differ too much to say it surely"
        return Verdict("Too unsteady to tell", title, detail, WARN, chips)
    tone = GOOD if word == "faster" else WARN
    return Verdict(shown.figure(), f"{word} than the baseline", detail, tone, chips)


def _held_back(view: Comparison, card: Card, speed: str, detail: str, chips: tuple[Chip, ...]) -> Verdict | None:
    """What comes before any speed: that it was bought with another answer, or that others computed meanwhile."""
    if card.same_answer is False:
        title = f"{card.title} is {speed}, and says something else"
        return Verdict("The answers differ", title, detail, WARN, (*_disturbed(view), *chips))
    if view.busy is not None:
        title = f"so “{speed}” is not to be relied upon; measure again when it is quiet"
        return Verdict(_others_took(view.busy), title, detail, WARN, chips)
    return None


def _disturbed(view: Comparison) -> tuple[Chip, ...]:
    """Said where a time is shown all the same."""
    return () if view.busy is None else (Chip(_others_took(view.busy), WARN),)


def _others_took(share: float) -> str:
    return f"Others took {percent(share)} of this machine"


def _quickest(view: Comparison) -> Card:
    return min(view.answered, key=lambda card: card.latency_ms or 0.0)


def _chips(card: Card) -> tuple[Chip, ...]:
    """What the backend's speed costs: on this question, how often, and in F1."""
    found = []
    if card.same_answer is not None:
        found.append(Chip("Same answer here", GOOD) if card.same_answer else Chip("Another answer here", WARN))
    for known in card.quality:
        if known.f1_difference is not None:
            difference = known.f1_difference
            lost = difference.high < 0 or (difference.value < 0 and difference.low < -BEARABLE_LOSS)
            found.append(Chip(f"F1 on {known.title}: {difference.spelt()}", WARN if lost else PLAIN))
    agreements = [f"{known.agreement:.0f} % of {known.title}" for known in card.quality if known.agreement is not None]
    if agreements:
        found.append(Chip(f"agrees on {', '.join(agreements)}"))
    if not card.quality:
        found.append(Chip("F1 not measured for these weights"))
    return tuple(found)
