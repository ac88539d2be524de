"""A comparison as plain values: what the page draws and a recorded comparison keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from qa_backends import catalog
from qa_backends.measure.results.shipped import shipped_quality
from qa_backends.measure.timing.statistics import Difference, Ratio

if TYPE_CHECKING:
    from qa_backends.asking.ask import Asking, Outcome
    from qa_backends.contract import Ran, Span


@dataclass(frozen=True, slots=True)
class Card:
    """One backend's part of a comparison. Times in milliseconds, as shown.

    ``f1`` is in percent on SQuAD v2 dev, measured on ``f1_device``; ``f1_difference`` is to the baseline's, paired, and
    ``agreement`` the share of those questions, in percent, on which the answer is the baseline's.
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
    f1: float | None = None
    f1_device: str | None = None
    engine: str = ""
    ran: str = ""
    notices: tuple[str, ...] = ()
    f1_difference: Difference | None = None
    agreement: float | None = None

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
    """``recorded`` says on what machine and when, where this is not the visitor's own measurement."""

    question: str
    context: str
    family: str
    device: str
    cards: tuple[Card, ...]
    status: str = ""
    recorded: str | None = None
    fastest: Fastest | None = None
    tokens: int = 0

    @property
    def answered(self) -> list[Card]:
        return [card for card in self.cards if card.answered]

    @property
    def baseline(self) -> Card | None:
        return next((card for card in self.answered if card.backend == catalog.BASELINE), None)

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
    )


def _fastest(asking: Asking) -> Fastest | None:
    found = asking.fastest()
    return Fastest(found[0].backend.name, found[1]) if found else None


def _card(asking: Asking, outcome: Outcome) -> Card:
    backend, reading = outcome.backend, outcome.reading
    if reading is None:
        return Card(backend.name, backend.title, backend.summary, error=outcome.error)
    parts = asking.parts(outcome)
    quality = shipped_quality(asking.family, backend, asking.device)
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
        f1=quality.f1 if quality else None,
        f1_device=quality.device if quality else None,
        engine=f"{reading.ran.provider}, {reading.ran.precision}",
        ran=ran_sentence(reading.ran),
        notices=(*reading.notices, *outcome.notices),
        f1_difference=quality.f1_difference if quality else None,
        agreement=quality.agreement if quality else None,
    )


def span_of(span: Span | None) -> tuple[int, int] | None:
    """As plain numbers."""
    return (span.start, span.end) if span else None


def ran_sentence(ran: Ran) -> str:
    """What really ran, in a line."""
    fused = f"{sum(ran.fused_ops.values())} fused operators" if ran.fused_ops else ""
    threads = f"{ran.threads} thread{'s' if ran.threads != 1 else ''}" if ran.device == "CPU" else ""
    device = "" if ran.provider.endswith(ran.device) else ran.device
    return ", ".join(part for part in (ran.provider, device, ran.precision, threads, fused, *ran.notes) if part)
