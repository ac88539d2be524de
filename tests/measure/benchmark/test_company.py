"""Rule 2: engines of one process disturb each other unless their idle threads sleep."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

from qa_backends import catalog
from qa_backends.measure.inputs import own_questions, queries_of_length
from qa_backends.measure.plan import Plan
from qa_backends.measure.sweep import sweep

if TYPE_CHECKING:
    from qa_backends.runtime import Runtime

MINILM = catalog.family("minilm")
NAMES = ("baseline", "pruned-ort", "pruned-ort-fp16")
TRIES = 3


def test_an_engine_is_not_slowed_by_the_idle_threads_of_the_one_before(runtime: Runtime) -> None:
    """PyTorch right after ONNX Runtime, run by run, against PyTorch alone.

    On two cores it takes 1.1 times as long, and 3.5 times when ONNX Runtime's threads are left spinning. The best of
    three tries counts, so that other programs on the machine do not decide.
    """
    assert min(_company_over_alone(runtime) for _ in range(TRIES)) < 2


def _company_over_alone(runtime: Runtime) -> float:
    first, *others = (catalog.backend(name) for name in NAMES)
    with runtime.turn("cpu") as turn:
        (query,) = queries_of_length(runtime.reader(MINILM), own_questions(), 32, 1)
        prepared = turn.prepare(MINILM, query)

        def seconds(of: catalog.Backend) -> float:
            return turn.answer(MINILM, of, prepared).times.forward_s

        for row in (*others, first):
            for _ in range(10):
                seconds(row)
        alone = statistics.median(seconds(first) for _ in range(20))
        company = []
        for _ in range(20):
            for row in others:
                seconds(row)
            company.append(seconds(first))
    return statistics.median(company) / alone


def test_a_benchmark_says_how_alone_and_in_company_agree(runtime: Runtime) -> None:
    found = sweep(runtime, Plan("minilm", NAMES, ("cpu",), lengths=(32,), runs=12, seconds=30))
    ratios = {row["backend"]: row["ratio"] for row in found.alone}
    assert len(ratios) == len(NAMES)
    assert all(abs(math.log(ratio)) < math.log(3) for ratio in ratios.values()), ratios
    for row in found.alone:
        assert row["ratio"] == row["company_p50_ms"] / row["p50_ms"]
