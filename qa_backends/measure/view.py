"""A comparison as plain values: what the page draws, the API returns and a recorded comparison keeps."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from qa_backends import catalog
from qa_backends.measure.results import shipped_accuracy
from qa_backends.measure.statistics import Ratio

if TYPE_CHECKING:
    from qa_backends.contract import Ran
    from qa_backends.measure.ask import Comparison, Outcome


@dataclass(frozen=True, slots=True)
class Card:
    """One backend's part of a comparison. Times in milliseconds, as shown.

    ``f1`` is in percent on SQuAD v2 dev, measured on ``f1_device``.
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

    @property
    def answered(self) -> bool:
        return self.latency_ms is not None


@dataclass(frozen=True, slots=True)
class View:
    """``recorded`` says on what machine and when, where this is not the visitor's own measurement."""

    question: str
    context: str
    family: str
    device: str
    cards: tuple[Card, ...]
    status: str = ""
    recorded: str | None = None

    @property
    def answered(self) -> list[Card]:
        return [card for card in self.cards if card.answered]

    @property
    def baseline(self) -> Card | None:
        return next((card for card in self.answered if card.backend == catalog.BASELINE), None)


def view_of(comparison: Comparison) -> View:
    """The comparison as it stands now; later measurements do not change the view."""
    return View(
        question=comparison.query.question,
        context=comparison.query.context,
        family=comparison.group.name,
        device=comparison.device,
        cards=tuple(_card(comparison, outcome) for outcome in comparison.outcomes),
        status=comparison.status,
    )


def _card(comparison: Comparison, outcome: Outcome) -> Card:
    name, title = outcome.row.name, outcome.row.title
    reading = outcome.reading
    if reading is None:
        return Card(name, title, outcome.row.summary, error=outcome.error)
    parts = comparison.parts(outcome)
    quality = shipped_accuracy(comparison.group, outcome.row, comparison.device)
    answer = reading.answer
    return Card(
        backend=name,
        title=title,
        summary=outcome.row.summary,
        answer=answer.text if answer.span else None,
        span=(answer.span.start, answer.span.end) if answer.span else None,
        confidence=answer.confidence,
        parts_ms={
            "tokenise": parts.tokenise_s * 1000,
            "model": parts.forward_s * 1000,
            "decode": parts.decode_s * 1000,
        },
        wait_ms=parts.wait_s * 1000,
        cold_ms=outcome.cold_s * 1000,
        latency_ms=comparison.latency_s(outcome) * 1000,
        runs=len(comparison.timed(outcome)),
        speed_up=comparison.speed_up(outcome),
        same_answer=comparison.same_answer(outcome),
        f1=quality["f1"] if quality else None,
        f1_device=quality["device"] if quality else None,
        engine=f"{reading.ran.provider}, {reading.ran.precision}",
        ran=ran_sentence(reading.ran),
        notices=reading.notices,
    )


def ran_sentence(ran: Ran) -> str:
    """What really ran, in a line."""
    fused = f"{sum(ran.fused_ops.values())} fused operators" if ran.fused_ops else ""
    threads = f"{ran.threads} thread{'s' if ran.threads != 1 else ''}" if ran.device == "CPU" else ""
    device = "" if ran.provider.endswith(ran.device) else ran.device
    return ", ".join(part for part in (ran.provider, device, ran.precision, threads, fused, *ran.notes) if part)


def as_dict(view: View) -> dict[str, Any]:
    return asdict(view)


def from_dict(content: dict[str, Any]) -> View:
    """The view that ``as_dict`` gave, read back from JSON."""
    cards = []
    for each in content["cards"]:
        ratio, span = each["speed_up"], each["span"]
        cards.append(
            Card(**each | {
                "speed_up": Ratio(**ratio) if ratio else None,
                "span": tuple(span) if span else None,
                "notices": tuple(each["notices"]),
            })
        )  # fmt: skip
    return View(**content | {"cards": tuple(cards)})
