"""What people run otherwise, measured beside the backends: each as its own documentation shows it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from helpers import QUESTION, TEXT
from kinds import TOKENS, family_of

from qa_backends import catalog
from qa_backends.contract import Query
from qa_backends.errors import InputError, QAError
from qa_backends.measure.benchmark.contestants import Reference
from qa_backends.measure.benchmark.plain import Plain
from qa_backends.measure.benchmark.plan import OPENVINO, REFERENCES, BenchmarkPlan
from qa_backends.measure.benchmark.sweep import sweep
from qa_backends.progress import UNWATCHED

if TYPE_CHECKING:
    from pathlib import Path

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


class Told(Plain):
    """What a graph is fed, that tells no segments apart; the answer is always the first token."""

    fed: dict[str, Any]

    def _open(self, graph: Path, device: str) -> None:
        self.takes = ["input_ids", "attention_mask"]

    def _logits(self, inputs: dict[str, Any]) -> tuple[Any, Any]:
        self.fed = inputs
        return inputs["attention_mask"], inputs["attention_mask"]

    def _unload(self) -> None:
        pass


def test_a_graph_is_fed_what_it_takes_and_no_longer_windows_than_the_model_reads(tmp_path: Path) -> None:
    family = family_of("bert", tmp_path)
    told = Told(tmp_path, tmp_path, "cpu", family.settings)
    told.answer([Query(QUESTION, 40 * TEXT)], 1)
    assert told.fed.keys() == {"input_ids", "attention_mask"} and told.fed["input_ids"].shape == (1, TOKENS)


def test_a_runtime_that_does_not_know_the_kind_of_model_is_left_out_with_a_sentence(
    runtime: Runtime,
) -> None:
    family = replace(catalog.family("minilm"), kind="deberta-v2")
    with pytest.raises(QAError, match=r"OpenVINO does not run models of the kind 'deberta-v2'\. Leave 'openvino' out"):
        Reference(family, OPENVINO).make_ready(runtime, "cpu", UNWATCHED)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["deberta-v2", "mpnet"])
def test_references_answer_models_of_other_kinds_with_fewer_positions(
    runtime: Runtime, tmp_path: Path, kind: str
) -> None:
    family = family_of(kind, tmp_path)
    catalog.register(family)
    plan = BenchmarkPlan(
        family.name, ("baseline",), lengths=(32, 512), batches=(1,), runs=5, seconds=20, reference="ort,openvino"
    )
    found = sweep(runtime, plan)
    left_out = ["openvino"] if kind == "deberta-v2" else []
    assert [each.backend for each in found.left_out] == left_out
    names = {"baseline", "ort", "openvino"} - set(left_out)
    assert {(each.name, each.tokens) for each in found.records} == {(name, at) for name in names for at in (32, 512)}


def test_a_reference_that_there_is_not_is_refused() -> None:
    plan = BenchmarkPlan("minilm", reference="hf-pipeline,magic")
    with pytest.raises(InputError, match="no reference 'magic'"):
        plan.check()
    replace(plan, reference="ort,openvino").check()
