"""Invented rows of a benchmark, with what pages and charts show of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from measure.invented import benchmark_record

from qa_backends.contract import Ran
from qa_backends.measure.results.records import Against, BenchmarkRecord, Quality, Samples
from qa_backends.measure.timing.statistics import Difference, Interval

RATIO = Against(2.0, 1.9, 2.1, 31, "minilm/baseline")
RAN = Ran("CPU", "PyTorch CPU", "FP32", 2, {}, "a", {})
FAST = {"against_baseline": RATIO, "against_previous": RATIO}
QUALITY = Quality("cpu", "dev-v2.0.json", 11_873, 65.0, Interval(64.0, 66.0), 68.5, Interval(67.7, 69.3), 91.25,
                  Difference(-0.3, -0.8, 0.2))  # fmt: skip


def row(name: str, tokens: int | None, p50: float, **other: Any) -> BenchmarkRecord:
    """31 runs of the backend around ``p50`` milliseconds."""
    samples = Samples((0.1,) * 31, (p50 - 0.3,) * 31, (0.2,) * 31)
    plain = {"backend": f"minilm/{name}", "tokens": tokens, "p90_ms": p50 * 1.2, "quality": QUALITY, "ran": RAN,
             "against_baseline": None, "runs": 31, "blocks": (1, *[3] * 10), "samples_ms": samples}  # fmt: skip
    return benchmark_record(p50, **{**plain, **other})


ROWS = [
    row("baseline", 32, 8.0), row("pruned", 32, 4.0, **FAST), row("hf-pipeline", 32, 9.0, quality=None, bytes=None),
    row("baseline", 128, 18.0), row("pruned", 128, 9.0, **FAST),
    row("pruned-ort", 128, 8.0, against_baseline=RATIO, against_previous=replace(RATIO, backend="minilm/pruned")),
    row("baseline", 128, 80.0, batch=8, questions=8, questions_per_second=100.0),
    row("baseline", None, 40.0, batch=4, questions=16, order="arrival", padding=0.4, questions_per_second=50.0),
    row("baseline", None, 30.0, batch=4, questions=16, order="sorted", padding=0.1, questions_per_second=70.0),
]  # fmt: skip
