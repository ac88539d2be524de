"""What a search has found: every candidate, why it is out if it is, and which one is advised."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from qa_backends.measure.quality.datasets import TITLES
from qa_backends.measure.timing.load import said_of
from qa_backends.measure.timing.statistics import on_frontier

if TYPE_CHECKING:
    from qa_backends.measure.recommend.wish import Wish
    from qa_backends.measure.timing.machine import Machine
    from qa_backends.measure.timing.statistics import Difference, Interval, Ratio

MEMORY_NOISE = 0.1
"""Share by which two readings of a backend's memory may differ for nothing, see ``runtime.cost``."""


@dataclass(frozen=True, slots=True)
class F1:
    """A candidate's F1 in percent over ``n`` questions of ``data``, one of ``datasets.TITLES``, which is ``whole`` or a
    part of it, and its paired difference to the baseline's, which has none to itself."""

    data: str
    n: int
    value: float
    interval: Interval
    difference: Difference | None
    whole: bool

    def loses_more_than(self, points: float) -> bool:
        """By all of a data set; by the few questions that there was time for, only where they show it."""
        if self.difference is None:
            return False
        return -(self.difference.value if self.whole else self.difference.high) > points

    @property
    def against_baseline(self) -> str:
        """As in "−0.3 [−0.8 to +0.3] on SQuAD"; empty of the baseline."""
        return f"{self.difference.spelt()} on {TITLES[self.data]}" if self.difference else ""


@dataclass(slots=True)
class Candidate:
    """A backend that was looked at, and what is known of it so far.

    ``shipped`` is its F1 on SQuAD as it ships with the project, ``shipped_besides`` that on the other sets, which is
    told and judges nothing; ``here`` is that on the app's own questions on this machine, of which ``agreement``, in
    percent, are answered as by the same weights in PyTorch. ``ms``, by length, are medians of ``turns``, or the better
    of two first readings where it took no turns. ``speed_up`` is against transformers' pipeline; ``behind`` says how
    many times as slow it is as the fastest, by the last heat that it took part in, or of those as fast as the advised
    one. ``memory_bytes`` and ``load_ms`` are as in ``runtime.cost``.
    ``out`` says why it is out, ``slower_than`` because of whom, where it is out for its pace.
    """

    name: str
    title: str
    shipped: F1 | None = None
    here: F1 | None = None
    shipped_besides: tuple[F1, ...] = ()
    agreement: float | None = None
    ms: dict[int, float] = field(default_factory=dict)
    turns: int = 0
    speed_up: Ratio | None = None
    behind: Ratio | None = None
    memory_bytes: int | None = None
    load_ms: float | None = None
    out: str = ""
    slower_than: str = ""

    def lose_to(self, other: Candidate, why: str) -> None:
        """Puts it out for its pace."""
        self.out, self.slower_than = why, other.name

    def lighter_than(self, other: Candidate) -> bool:
        """Whether it takes clearly less memory, loaded."""
        if not self.memory_bytes or not other.memory_bytes:
            return False
        return self.memory_bytes < (1 - MEMORY_NOISE) * other.memory_bytes

    @property
    def known_f1(self) -> list[F1]:
        """What its quality is judged by: all of SQuAD dev where that ships, and the app's own questions, here."""
        return [each for each in (self.shipped, self.here) if each]

    def f1_on(self, data: str) -> F1 | None:
        """What was found here; where nothing was, what ships."""
        return next((f1 for f1 in (*self.known_f1[::-1], *self.shipped_besides) if f1.data == data), None)

    @property
    def whole_ms(self) -> float:
        """A question, or a batch, of each length."""
        return sum(self.ms.values())


@dataclass(slots=True)
class Search:
    """All that is found so far. ``status`` is empty when nothing more will come; ``timing`` says that what follows is
    timed, and not to be disturbed; ``done`` of ``of`` counts steps.

    ``advised`` and ``tied`` are names: the backend to use, and all those, it included, that are as fast as the fastest.
    ``others`` are the shares of the cores that others took during each heat, where that tells anything.
    """

    wish: Wish
    machine: Machine
    candidates: list[Candidate] = field(default_factory=list)
    advised: str = ""
    tied: tuple[str, ...] = ()
    others: list[float | None] = field(default_factory=list)
    done: float = 0.0
    of: int = 0
    left_s: float = 0.0
    status: str = ""
    timing: bool = False

    def copy(self) -> Search:
        """The search as it stands now; what is found later does not change it."""
        candidates = [replace(each, ms=dict(each.ms)) for each in self.candidates]
        return replace(self, candidates=candidates, others=list(self.others))

    def candidate(self, name: str) -> Candidate:
        """The candidate of that name, which there is."""
        return next(each for each in self.candidates if each.name == name)

    @property
    def left(self) -> list[Candidate]:
        """Those that are not out."""
        return [each for each in self.candidates if not each.out]

    @property
    def quickest(self) -> list[Candidate]:
        """Those that are not out, the quickest first."""
        return [each for each in self.raced if not each.out]

    @property
    def raced(self) -> list[Candidate]:
        """Those that were timed, the quickest first."""
        return sorted((each for each in self.candidates if each.ms), key=lambda each: each.whole_ms)

    @property
    def ranked(self) -> list[Candidate]:
        """All of them: those that were timed, the quickest first, before the others."""
        return sorted(self.candidates, key=lambda each: (not each.ms, each.whole_ms))

    @property
    def charted(self) -> list[tuple[Candidate, F1]]:
        """Those that were timed and have an F1 on the same data, with that, the quickest first: on SQuAD, where it
        ships of any of them, else on the app's own questions."""
        shipped = any(each.shipped for each in self.raced)
        return [(each, f1) for each in self.raced if (f1 := each.shipped if shipped else each.here)]

    @property
    def unshipped(self) -> list[Candidate]:
        """Those that were timed, the quickest first, of which no F1 on SQuAD ships, where it does of others."""
        without = [each for each in self.raced if not each.shipped]
        return without if len(without) < len(self.raced) else []

    def standing(self, candidate: Candidate) -> str:
        """Why it is out, if it is, or what it came to."""
        if candidate.name == self.advised:
            return "advised"
        return candidate.out or ("a tie with the advised one" if candidate.name in self.tied else "")


def advice(search: Search) -> str:
    """The answer, in a sentence or two; empty while it is not known."""
    if search.advised:
        best = search.candidate(search.advised)
        said = f"On this machine: {best.title}, {_speed(search, best)}{_quality(best)}."
        if best in search.unshipped:
            said += " No F1 on SQuAD ships of it: what it loses was judged by the app's own questions alone."
        return f"{said} {_tie(search, best)}" if len(search.tied) > 1 else said
    if search.status or search.left or not search.candidates:
        return ""
    return "No backend can be advised here: each is out, for the reason beside it."


def frontier(search: Search) -> str:
    """Which backends no other is both quicker and better than, the quickest first; empty where there is one alone."""
    charted = search.charted
    best = on_frontier([(each.whole_ms, f1.value) for each, f1 in charted])
    named = [f"{each.name} ({each.whole_ms:.2f} ms, {f1.value:.1f})" for each, f1 in (charted[index] for index in best)]
    if len(named) < 2:
        return ""
    _, f1 = charted[0]
    return f"The frontier, {search.wish.raced_on} together and F1 on {TITLES[f1.data]}: {', '.join(named)}."


def timed(search: Search) -> str:
    """What was timed, and whether others disturbed it; where something is advised, on how many questions its answers
    were checked; and who is not ``charted`` beside the others."""
    here = search.candidate(search.advised).here if search.advised else None
    checked = f"Answers were checked on {here.n} of the app's own questions." if here else ""
    what = f"{search.wish.of.short}, {search.wish.raced_on}"
    without = "; ".join(each.title for each in search.unshipped)
    left_out = f"Without F1 on SQuAD, and so neither charted nor on the frontier: {without}." if without else ""
    disturbed = said_of(search.others)
    said = [f"Timed: {what}, on {search.machine.sentence(search.wish.device)}.", disturbed, checked, left_out]
    return " ".join(each for each in said if each)


def _speed(search: Search, best: Candidate) -> str:
    ratio = best.speed_up
    if ratio is None:
        return f"{best.whole_ms:.1f} ms for {search.wish.raced_on}"
    if ratio.tie:
        return f"as fast as the transformers pipeline {ratio.bracketed()}"
    return f"{ratio} the speed of the transformers pipeline"


def _quality(best: Candidate) -> str:
    figures = [f1.against_baseline for f1 in best.known_f1 if f1.difference]
    return f", F1 {', '.join(figures)}" if figures else ", with the baseline's own F1"


def _tie(search: Search, best: Candidate) -> str:
    others = [search.candidate(name) for name in search.tied if name != best.name]
    named = "; ".join(f"{each.title} {each.behind.bracketed()}" for each in others if each.behind)
    if all(best.lighter_than(each) for each in others):
        why = "it takes less memory"
    elif any(each.lighter_than(best) for each in others):
        first = best is search.quickest[0]
        reason = "is the fastest by its median" if first else "takes less memory than the fastest"
        less = "less memory" if first else "still less"
        why = f"it {reason}, and more seconds may tell whether one that takes {less} is as fast"
    else:
        why = "no other takes clearly less memory"
    return f"It is a tie with {named}, which may be within 2 %, {best.turns} turns of each; {why}."
