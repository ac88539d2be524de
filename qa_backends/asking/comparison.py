"""A comparison as plain values: what the page draws and a recorded comparison keeps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from qa_backends import catalog
from qa_backends.errors import UnknownBackend
from qa_backends.measure.quality.datasets import TITLES, title_of_file
from qa_backends.measure.results.shipped import of_current_shapes, shipped_quality
from qa_backends.measure.timing.statistics import Difference, Interval, Ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qa_backends.asking.ask import Asking, Outcome
    from qa_backends.catalog import Backend, Family
    from qa_backends.contract import Ran, Span
    from qa_backends.measure.results.records import BenchmarkRecord, Quality, QualityRecord

BITS = {"FP32": 32, "FP16": 16, "BF16": 16, "INT8": 8}


@dataclass(frozen=True, slots=True)
class KnownQuality:
    """What is known of a backend on a whole data set of ``n`` questions, which people call ``title``.

    ``f1`` is in percent, measured on ``device``; ``f1_difference`` is to the baseline's, paired, and ``agreement`` the
    share of the questions, in percent, on which the answer is the baseline's.
    """

    title: str
    n: int
    f1: float
    f1_interval: Interval
    device: str
    f1_difference: Difference | None = None
    agreement: float | None = None

    @property
    def said(self) -> str:
        """As in "69.8 [69.0–70.6]"."""
        return self.f1_interval.around(self.f1)


@dataclass(frozen=True, slots=True)
class Card:
    """One backend's part of a comparison. Times in milliseconds, as shown; ``quality`` on each set measured.

    ``early`` says that the answer is known and its times are not yet. ``load_ms`` and ``memory_bytes`` are what loading
    it took, and what it takes since, where the system tells; ``build_ms`` is what building it took, 0 where it was
    built before.
    """

    backend: str
    title: str
    summary: str
    error: str | None = None
    answer: str | None = None
    span: tuple[int, int] | None = None
    confidence: float = 0.0
    parts_ms: dict[str, float] | None = None
    wait_ms: float = 0.0
    cold_ms: float = 0.0
    latency_ms: float | None = None
    runs: int = 0
    speed_up: Ratio | None = None
    same_answer: bool | None = None
    engine: str = ""
    ran: str = ""
    notices: tuple[str, ...] = ()
    quality: tuple[KnownQuality, ...] = ()
    early: bool = False
    load_ms: float | None = None
    memory_bytes: int | None = None
    build_ms: float = 0.0

    @property
    def answered(self) -> bool:
        return self.latency_ms is not None


@dataclass(frozen=True, slots=True)
class Fastest:
    """The backend that is fastest against the baseline; its interval holds for all candidates at once."""

    backend: str
    speed_up: Ratio


@dataclass(frozen=True, slots=True)
class Comparison:
    """``recorded`` says on what machine and when, where this is not the visitor's own measurement.

    ``busy`` is the share of the machine's cores that others took meanwhile, where it was so much that the times are not
    to be relied upon. ``notice`` is what there is to say of the text and of how it was measured.
    """

    question: str
    context: str
    family: str
    device: str
    cards: tuple[Card, ...]
    status: str = ""
    recorded: str | None = None
    fastest: Fastest | None = None
    tokens: int = 0
    busy: float | None = None
    notice: str = ""

    @property
    def answered(self) -> list[Card]:
        return [card for card in self.cards if card.answered]

    @property
    def told(self) -> list[Card]:
        """Those whose answer is known, with times or without."""
        return [card for card in self.cards if card.answered or card.early]

    @property
    def baseline(self) -> Card | None:
        return next((card for card in self.answered if card.backend == catalog.BASELINE), None)

    def estimate(self, card: Card) -> float | None:
        """How many times as fast as the baseline the card is, by the times at hand; ``None`` without both."""
        base = self.baseline
        return base.latency_ms / card.latency_ms if base and base.latency_ms and card.latency_ms else None

    def card(self, backend: str) -> Card:
        """The card of the backend of that name, which must be one of those asked."""
        return next(card for card in self.cards if card.backend == backend)


def comparison_of(asking: Asking) -> Comparison:
    """What is known as it stands now; later measurements do not change it."""
    return Comparison(
        question=asking.query.question,
        context=asking.query.context,
        family=asking.family.name,
        device=asking.device,
        cards=tuple(_card(asking, outcome) for outcome in asking.outcomes),
        status=asking.status,
        fastest=_fastest(asking),
        tokens=asking.tokens,
        busy=asking.busy if asking.disturbed else None,
        notice=" ".join(filter(None, (asking.language_notice, asking.turns_notice))),
    )


def _fastest(asking: Asking) -> Fastest | None:
    found = asking.fastest()
    return Fastest(found[0].backend.name, found[1]) if found else None


def _card(asking: Asking, outcome: Outcome) -> Card:
    backend, reading, early = outcome.backend, outcome.reading, outcome.early
    if reading is None:
        text = early.text if early and early.span else None
        span = span_of(early.span) if early else None
        return Card(backend.name, backend.title, backend.summary, outcome.error, text, span, early=early is not None)
    parts = asking.parts(outcome)
    answer = reading.answer
    return Card(
        backend=backend.name,
        title=backend.title,
        summary=backend.summary,
        answer=answer.text if answer.span else None,
        span=span_of(answer.span),
        confidence=answer.confidence,
        parts_ms={
            "tokenise": parts.tokenise_s * 1000,
            "model": parts.forward_s * 1000,
            "decode": parts.decode_s * 1000,
        },
        wait_ms=parts.wait_s * 1000,
        cold_ms=outcome.cold_s * 1000,
        latency_ms=asking.latency_s(outcome) * 1000,
        runs=len(asking.timed(outcome)),
        speed_up=asking.speed_up(outcome),
        same_answer=asking.same_answer(outcome),
        engine=f"{reading.ran.provider}, {arithmetic(backend, reading.ran)}",
        ran=ran_sentence(reading.ran),
        notices=(*reading.notices, *outcome.notices),
        quality=known_quality(asking.family, backend, asking.device),
        load_ms=None if outcome.load_s is None else outcome.load_s * 1000,
        memory_bytes=outcome.memory_bytes,
        build_ms=outcome.build_s * 1000,
    )


def known_quality(family: Family, backend: Backend, device: str) -> tuple[KnownQuality, ...]:
    """What ships of the backend's quality, a figure a data set that it was measured on with these very weights."""
    found = [(title, shipped_quality(family, backend, device, data)) for data, title in TITLES.items()]
    return tuple(_known(title, each) for title, each in found if each)


def quality_beside(records: Sequence[BenchmarkRecord]) -> list[tuple[KnownQuality, ...]]:
    """What is known of the weights that each record was timed with, on every data set."""
    look_up = cache(_shipped)  # which takes milliseconds; a benchmark has dozens of records of a backend
    return [_of_the_same_weights(each, look_up(each.backend, each.device)) for each in records]


def _shipped(backend: str, device: str) -> tuple[KnownQuality, ...]:
    try:
        return known_quality(*catalog.resolve(backend), device)
    except UnknownBackend:  # a reference, or of a family that was given up since
        return ()


def _of_the_same_weights(record: BenchmarkRecord, shipped: tuple[KnownQuality, ...]) -> tuple[KnownQuality, ...]:
    """What ships of the record's backend; but where the record's own figure is another than any of it, that alone."""
    if record.quality is None:
        return shipped if of_current_shapes(record) else ()
    own = _known(title_of_file(record.quality.data), record.quality)
    return shipped if own in shipped else (own,)


def _known(title: str, of: Quality | QualityRecord) -> KnownQuality:
    return KnownQuality(title, of.n, of.f1, of.f1_interval, of.device, of.f1_difference, of.agreement)


def arithmetic(backend: Backend, ran: Ran) -> str:
    """What was computed in; and what the weights are stored in, where that is less."""
    stored = backend.stored
    if BITS.get(stored, 0) < BITS.get(ran.precision, 0):
        return f"{stored} weights in {ran.precision}"
    return ran.precision


def span_of(span: Span | None) -> tuple[int, int] | None:
    """As plain numbers."""
    return (span.start, span.end) if span else None


def ran_sentence(ran: Ran) -> str:
    """What really ran, in a line."""
    fused = f"{sum(ran.fused_ops.values())} fused operators" if ran.fused_ops else ""
    threads = f"{ran.threads} thread{'s' if ran.threads != 1 else ''}" if ran.device == "CPU" and ran.threads else ""
    device = "" if ran.provider.endswith(ran.device) else ran.device
    return ", ".join(part for part in (ran.provider, device, ran.precision, threads, fused, *ran.notes) if part)
