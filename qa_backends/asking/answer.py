"""An answer as JSON: what ``answer --json`` prints and what programs get from the running app."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from qa_backends.asking.comparison import span_of

if TYPE_CHECKING:
    from qa_backends.contract import Reading


def answer_json(reading: Reading, cold_s: float) -> dict[str, Any]:
    """The reading as plain values; times in milliseconds. ``cold_s`` is what the first run on the question took."""
    answer, times = reading.answer, reading.times
    span = span_of(answer.span)
    return {
        "backend": reading.backend,
        "answer": answer.text if span else None,
        "span": list(span) if span else None,
        "confidence": answer.confidence,
        "score": answer.json_score,
        "null_score": answer.null_score,
        "n_windows": reading.n_windows,
        "times_ms": {
            "tokenise": times.tokenise_s * 1000,
            "wait": times.wait_s * 1000,
            "model": times.forward_s * 1000,
            "decode": times.decode_s * 1000,
            "total": times.total_s * 1000,
        },
        "cold_ms": cold_s * 1000,
        "notices": list(reading.notices),
        "ran": asdict(reading.ran),
    }
