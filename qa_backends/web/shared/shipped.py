"""The benchmark that ships, for what the page shows before anybody measured."""

from __future__ import annotations

from functools import cache

from qa_backends.measure.results.files import read_benchmark
from qa_backends.measure.results.records import Benchmark
from qa_backends.measure.results.shipped import measured_on_current_weights
from qa_backends.paths import BENCHMARK


@cache
def shipped_benchmark() -> Benchmark | None:
    """``None`` where the project holds none of the weights it ships."""
    if not BENCHMARK.is_file():
        return None
    found = read_benchmark(BENCHMARK)
    return found if all(measured_on_current_weights(each) for each in found.rows) else None
