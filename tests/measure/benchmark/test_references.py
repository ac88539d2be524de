"""What people run otherwise, measured beside the backends: each as its own documentation shows it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from qa_backends.errors import InputError
from qa_backends.measure.benchmark.plan import REFERENCES, BenchmarkPlan
from qa_backends.measure.benchmark.sweep import sweep

if TYPE_CHECKING:
    from qa_backends.catalog import Family
    from qa_backends.runtime import Runtime


@pytest.mark.slow
def test_every_reference_is_measured_on_the_weights_it_says(runtime: Runtime, small: Family) -> None:
    plan = BenchmarkPlan(
        small.name, ("baseline", "pruned"), lengths=(32, 384), batches=(1, 2), runs=5, seconds=60,
        reference=",".join(REFERENCES),
    )  # fmt: skip
    found = sweep(runtime, plan)
    assert found.left_out == []
    weights = {each.name: each.checkpoint for each in found.records}
    assert weights["hf-pipeline"] == weights["baseline"] != weights["pruned"] == weights["ort"] == weights["openvino"]
    ran = {each.name: each.ran for each in found.records}
    assert ran["ort"].precision == "FP32" and "CPUExecutionProvider" in ran["ort"].provider
    assert ran["openvino"].precision in ("FP32", "BF16"), "told nothing, it takes what the processor has"
    assert all(each.against_baseline is not None for each in found.records if each.name != "baseline")
    assert {(each.tokens, each.batch) for each in found.records if each.name == "ort"} == {(32, 1), (384, 1), (32, 2)}


def test_a_reference_that_there_is_not_is_refused() -> None:
    plan = BenchmarkPlan("minilm", reference="hf-pipeline,magic")
    with pytest.raises(InputError, match="no reference 'magic'"):
        plan.check()
    replace(plan, reference="ort,openvino").check()
