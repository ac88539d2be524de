"""One contract for every backend of the catalogue: it answers, or says why it cannot and how to mend that."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from helpers import BASELINE, QUESTION, ROOT, TEXT

from qa_backends import catalog
from qa_backends.contract import Query
from qa_backends.errors import BackendUnavailable, UnknownBackend
from qa_backends.runtime import Runtime

MINILM = catalog.family("minilm")


@pytest.mark.parametrize("row", catalog.BACKENDS, ids=lambda row: row.name)
def test_a_backend_answers_or_says_how_to_mend_it(row: catalog.Backend, runtime: Runtime) -> None:
    if missing := catalog.unavailable(row):
        assert missing.reason and "install" in missing.remedy.lower()
        return
    query = Query(QUESTION, TEXT)
    with runtime.turn("cpu") as turn:
        reading = turn.answer(MINILM, row, turn.prepare(MINILM, query))
    answer, times, ran = reading.answer, reading.times, reading.ran
    assert reading.backend == f"minilm/{row.name}"
    assert 0 <= answer.confidence <= 1
    assert np.isfinite([answer.score, answer.null_score]).all()
    if answer.span:
        assert TEXT[answer.span.start : answer.span.end] == answer.text != ""
    else:
        assert answer.text == ""
    assert min(times.tokenise_s, times.forward_s, times.decode_s) > 0
    assert ran.device == "CPU" and ran.precision == "FP32" and ran.threads >= 1
    assert len(ran.file_hash) == 64


@pytest.mark.parametrize("row", [row for row in catalog.BACKENDS if row.artefact != "checkpoint"], ids=lambda r: r.name)
def test_engines_agree_on_the_logits_of_the_same_checkpoint(row: catalog.Backend, runtime: Runtime) -> None:
    plain = next(each for each in catalog.BACKENDS if each.checkpoint == row.checkpoint and each.engine == "pytorch")
    queries = [Query(QUESTION, TEXT), Query("What bore fruit?", TEXT * 40)]
    with runtime.turn("cpu") as turn:
        for query in queries:
            windows = turn.prepare(MINILM, query).windows
            one, other = (runtime.get(MINILM, each, "cpu").engine.forward(windows) for each in (plain, row))
            real = windows.attention_mask.astype(bool)
            assert one.start.shape == other.start.shape == windows.input_ids.shape
            assert one.start.dtype == other.end.dtype == np.float32
            np.testing.assert_allclose(one.start[real], other.start[real], atol=2e-3)
            np.testing.assert_allclose(one.end[real], other.end[real], atol=2e-3)


@pytest.mark.parametrize("row", catalog.BACKENDS, ids=lambda row: row.name)
def test_a_window_gets_the_same_logits_alone_and_in_a_batch(row: catalog.Backend, runtime: Runtime) -> None:
    with runtime.turn("cpu") as turn:
        windows = turn.prepare(MINILM, Query(QUESTION, TEXT * 40)).windows
        engine = runtime.get(MINILM, row, "cpu").engine
        together = engine.forward(windows)
        assert windows.n_windows > 1
        for number in range(windows.n_windows):
            alone = engine.forward(windows.select(np.array([number])))
            length = alone.start.shape[1]
            np.testing.assert_allclose(alone.start[0], together.start[number, :length], atol=2e-3)


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = replace(catalog.ENGINES["pytorch"], packages=("a_package_nobody_has",), install="pip install it")
    monkeypatch.setitem(catalog.ENGINES, "pytorch", engine)
    row = catalog.backend("baseline")
    missing = catalog.unavailable(row)
    assert missing is not None
    assert "a_package_nobody_has" in missing.reason and "pip install it" in missing.remedy
    with pytest.raises(BackendUnavailable), Runtime().turn("cpu") as turn:
        turn.runtime.get(MINILM, row, "cpu")


def test_listing_backends_imports_nothing_heavy() -> None:
    script = (
        "import sys, json; from qa_backends import catalog;"
        "[catalog.unavailable(row) for row in catalog.BACKENDS];"
        "print(json.dumps([m for m in ('torch', 'onnxruntime', 'transformers', 'gradio') if m in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_names_resolve_to_family_and_backend() -> None:
    assert [each.name for each in catalog.resolve("pruned")] == [catalog.default_family(), "pruned"]
    assert [each.name for each in catalog.resolve("bert-large/pruned")] == ["bert-large", "pruned"]
    assert [each.name for each in catalog.resolve("pruned", "bert-large")] == ["bert-large", "pruned"]
    for name, family in (("nothing", None), ("nobody/pruned", None), ("minilm/pruned", "bert-large")):
        with pytest.raises(UnknownBackend, match=r"Choose one of|Leave one"):
            catalog.resolve(name, family)


def test_the_family_can_be_set_for_a_whole_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QA_FAMILY", "bert-large")
    assert catalog.default_family() == "bert-large"


def test_the_pruned_checkpoint_is_smaller_and_says_so() -> None:
    from qa_backends.artefacts.manifest import intact, read_manifest

    pruned = BASELINE.parent / "pruned"
    assert intact(BASELINE) and intact(pruned)
    before, after = read_manifest(BASELINE), read_manifest(pruned)
    assert after.encoder_parameters <= 0.5 * before.encoder_parameters
    assert after.bytes < before.bytes
    assert after.settings["teacher"] == before.files["model.safetensors"]


@pytest.mark.gpu
@pytest.mark.parametrize("row", catalog.BACKENDS, ids=lambda row: row.name)
def test_on_a_gpu_the_answer_is_the_cpus(row: catalog.Backend, runtime: Runtime) -> None:
    query = Query(QUESTION, TEXT)
    readings = {}
    for device in ("cpu", "cuda"):
        with runtime.turn(device) as turn:
            readings[device] = turn.answer(MINILM, row, turn.prepare(MINILM, query))
    on_gpu = readings["cuda"].ran
    assert on_gpu.device != "CPU" and "CPU" not in on_gpu.provider
    assert on_gpu.precision == ("FP16" if row.name.endswith("fp16") else "FP32")
    assert readings["cuda"].answer.span == readings["cpu"].answer.span
    assert readings["cuda"].answer.score == pytest.approx(readings["cpu"].answer.score, abs=0.05)
