"""Results made up for tests: records of a machine that nobody has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from qa_backends.contract import Ran
from qa_backends.measure.benchmark.plan import BenchmarkPlan
from qa_backends.measure.results.records import (
    Against,
    Benchmark,
    BenchmarkRecord,
    QualityRecord,
    Samples,
)
from qa_backends.measure.timing.machine import Machine
from qa_backends.measure.timing.statistics import Difference, Interval

MACHINE = Machine("Abacus", 2, 24, None, "Linux", "3.11", {"torch": "1.0"}, "2026-01-02")
RAN = Ran("CPU", "Abacus CPU", "FP32", 2, {}, "abc", {}, ("a", "b"))


def benchmark_record(p50_ms: float, **other: Any) -> BenchmarkRecord:
    """Eleven runs around ``p50_ms``; ``other`` replaces fields."""
    runs = tuple(p50_ms * (1 + step / 100) for step in range(-5, 6))
    record = BenchmarkRecord(
        backend="minilm/baseline", checkpoint="abc", device="cpu", tokens=128, batch=1, order="equal", questions=1,
        windows=1, padding=0.0, warm_up_runs=10, cold_ms=2 * p50_ms, runs=11, p50_ms=p50_ms, p90_ms=None, p99_ms=None,
        questions_per_second=1000 / p50_ms, unstable=False,
        against_baseline=Against(2.0, 1.5, 2.5, 11, "minilm/baseline"), against_previous=None, against_arrival=None,
        floor_ms=p50_ms / 3, bytes=45_000_000, stored="FP16", encoder_parameters=10_650_000, quality=None, ran=RAN,
        blocks=(1,) * 11, samples_ms=Samples(tokenise=(0.0,) * 11, forward=runs, decode=(0.0,) * 11),
    )  # fmt: skip
    return replace(record, **other)


def benchmark(*records: BenchmarkRecord, **other: Any) -> Benchmark:
    return replace(Benchmark(MACHINE, BenchmarkPlan("minilm"), True, records, (), ()), **other)


def quality_record(backend: str = "minilm/baseline", **other: Any) -> QualityRecord:
    spread = Interval(69.0, 71.0)
    record = QualityRecord(
        backend=backend, checkpoint="abc", device="cpu", data="mine.json", data_sha256="def", limit=None, seed=0, n=100,
        exact=66.0, f1=70.0, has_ans_f1=69.0, no_ans_f1=71.0, questions_per_second=50.0, exact_interval=spread,
        f1_interval=spread, has_ans_f1_interval=spread, no_ans_f1_interval=spread, agreement=82.0, ran=RAN,
        machine=MACHINE, f1_difference=Difference(-2.4, -3.1, -1.7),
    )  # fmt: skip
    return replace(record, **other)
