"""Presets: what published comparisons report, measured in one run, and their figures beside ours."""

from __future__ import annotations

from dataclasses import replace

import pytest
from measure.invented import benchmark_record

from qa_backends import catalog
from qa_backends.errors import InputError
from qa_backends.measure.benchmark.plan import BenchmarkPlan
from qa_backends.measure.benchmark.presets import PRESETS, beside, plan_of

PLAN = BenchmarkPlan("minilm", runs=7, seconds=5)


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("family", ["minilm", "bert-large-random"])
def test_a_preset_can_be_measured_in_the_time_and_on_the_devices_given(name: str, family: str) -> None:
    plan = plan_of(name, replace(PLAN, family=family))
    plan.check()
    assert (plan.runs, plan.seconds, plan.devices, plan.family) == (7, 5, ("cpu",), family)
    assert [each.name for each in plan.chosen], "all of its backends are known"


def test_the_presets_measure_what_they_are_called_after() -> None:
    latency, throughput, batches, ladder = (plan_of(name, PLAN) for name in PRESETS)
    assert latency.batches == (1,) and len(latency.lengths) == 6
    assert len(latency.backends) == len(catalog.offered(catalog.family("minilm"), "cpu"))
    assert {8, 16} <= set(throughput.batches)
    assert {"baseline-amp", "baseline-ts-amp", "distilled", "distilled-ts-amp"} <= set(throughput.backends)
    assert batches.batches == (1, 2, 4, 8, 16, 32, 64) and batches.mixed
    assert ladder.backends[:3] == ("baseline", "pruned", "pruned-ort")


def test_a_family_has_the_ladder_of_what_suits_its_kind() -> None:
    def names(family: str, *devices: str) -> tuple[str, ...]:
        return plan_of("throughput", replace(PLAN, family=family, devices=devices)).backends

    assert names("roberta", "cuda", "cpu") == (
        "baseline", "baseline-amp", "baseline-ts-amp", "baseline-deepspeed-fp16", "baseline-ort", "baseline-ort-fp16",
        "distilled", "distilled-amp", "distilled-ts-amp", "distilled-ort", "distilled-ort-fp16",
    )  # fmt: skip
    assert "baseline-deepspeed-fp16" not in names("roberta", "cpu") + names("xlm-roberta", "cuda")
    assert names("distilbert", "cpu") == ("baseline", "baseline-amp", "baseline-ts-amp", "baseline-ort")


def test_there_is_no_other_preset() -> None:
    with pytest.raises(InputError, match="ladder"):
        plan_of("everything", PLAN)


def test_published_figures_stand_beside_ours_of_the_same_shape() -> None:
    ours = benchmark_record(9.0, backend="bert-large-random/pruned-ort-fp16")
    found = beside("ladder", [ours, replace(ours, batch=8)])
    bound = next(each for each in found if "IO binding" in each.published.what)
    assert bound.ours is ours and (bound.published.ms, bound.published.hardware) == (13.2, "NVIDIA T4")
    assert all(each.published.source.startswith("https://") for each in found)
    assert {each.ours for each in found if each.published.backend == "baseline"} == {None}, "it was not measured"
    assert beside("ladder", [benchmark_record(9.0)]) == [], "another shape"
    assert beside("latency", [ours]) == []


def test_of_another_model_the_steps_stand_beside_ours() -> None:
    ours = [
        replace(benchmark_record(time, backend=f"minilm/{name}"), batch=8)
        for name, time in (("baseline", 80.0), ("distilled-amp", 30.0))
    ]
    found = beside("throughput", [*ours, benchmark_record(9.0)])
    assert [(each.published.backend, each.ours) for each in found] == [
        ("baseline", ours[0]),
        ("distilled-amp", ours[1]),
    ]
    assert [each.step for each in found] == pytest.approx([1, 416.5 / 293.4])
    assert found[0].published.ms == pytest.approx(3.408, abs=0.001), "of one question in a batch of eight"
