"""Rule 2: engines of one process disturb each other unless their idle threads sleep."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

import pytest

from qa_backends import catalog
from qa_backends.measure.benchmark.inputs import queries_of_length
from qa_backends.measure.benchmark.plan import BenchmarkPlan
from qa_backends.measure.benchmark.sweep import sweep
from qa_backends.measure.quality.datasets import own_questions

if TYPE_CHECKING:
    from qa_backends.catalog import Backend
    from qa_backends.runtime import Runtime

MINILM = catalog.family("minilm")
NAMES = ("baseline", "pruned-ort", "pruned-ort-fp16")
TRIES = 3


@pytest.mark.slow
def test_an_engine_is_not_slowed_by_the_idle_threads_of_the_one_before(runtime: Runtime) -> None:
    """PyTorch right after ONNX Runtime, run by run, against PyTorch alone.

    On two cores it takes 1.1 times as long, and 3.5 times when ONNX Runtime's threads are left spinning. The best of
    three tries counts, so that other programs on the machine do not decide.
    """
    assert any(_company_over_alone(runtime) < 2 for _ in range(TRIES))


def _company_over_alone(runtime: Runtime) -> float:
    first, *others = (catalog.backend(name) for name in NAMES)
    with runtime.turn("cpu") as turn:
        (query,) = queries_of_length(runtime.reader(MINILM), own_questions(), 32, 1)
        prepared = turn.prepare(MINILM, query)

        def seconds(of: Backend) -> float:
            return turn.answer(MINILM, of, prepared).times.forward_s

        for each in (*others, first):
            for _ in range(10):
                seconds(each)
        alone = statistics.median(seconds(first) for _ in range(20))
        company = []
        for _ in range(20):
            for each in others:
                seconds(each)
            company.append(seconds(first))
    return statistics.median(company) / alone


@pytest.mark.slow
def test_a_benchmark_says_how_alone_and_in_company_agree(runtime: Runtime) -> None:
    found = sweep(runtime, BenchmarkPlan("minilm", NAMES, ("cpu",), lengths=(32,), batches=(1,), runs=12, seconds=30))
    ratios = {each.backend: each.ratio for each in found.alone}
    assert len(ratios) == len(NAMES)
    assert all(abs(math.log(ratio)) < math.log(3) for ratio in ratios.values()), ratios
    company = {each.backend: each.p50_ms for each in found.records}
    for each in found.alone:
        assert each.ratio == each.company_p50_ms / each.p50_ms
        assert each.company_p50_ms == company[each.backend]
