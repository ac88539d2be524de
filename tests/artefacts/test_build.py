"""Builds: checked against their parents, kept, noticed when broken, made once when two want them."""

from __future__ import annotations

import multiprocessing
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest

from qa_backends.artefacts import build as build_module
from qa_backends.artefacts import onnx_graph
from qa_backends.artefacts.build import STEPS, build, compare, probe_windows
from qa_backends.artefacts.cache import ensure
from qa_backends.artefacts.manifest import Manifest, file_hash, read_manifest
from qa_backends.artefacts.packing import pack
from qa_backends.errors import ArtefactError, DriftError
from qa_backends.runtime import reference_forward

if TYPE_CHECKING:
    from multiprocessing.queues import Queue
    from pathlib import Path


@pytest.fixture
def packed(tiny: Path) -> Path:
    """A checkpoint whose layers keep different numbers of heads and columns, as pruned ones do."""
    import torch

    from qa_backends.artefacts.checkpoint import load_model, save_model

    model = load_model(tiny)
    with torch.no_grad():
        model.bert.encoder.layer[0].attention.output.dense.weight[:, :16] = 0
        model.bert.encoder.layer[1].output.dense.weight[:, ::3] = 0
    save_model(pack(model), tiny, tokenizer_from=tiny, dtype=torch.float32)
    return tiny


def test_the_whole_chain_is_fused_and_agrees(packed: Path, tmp_path: Path) -> None:
    said: list[str] = []
    folder = build(packed, "onnx-fused-fp16", reference_forward, said.append, tmp_path / "cache")
    manifest = read_manifest(folder)
    assert manifest.fused_ops == {
        "EmbedLayerNormalization": 1,
        "Attention": 2,
        "SkipLayerNormalization": 4,
        "BiasGelu": 2,
    }
    assert manifest.precision == "FP16"
    assert manifest.largest_logit_difference is not None
    assert 0 < manifest.largest_logit_difference <= STEPS["onnx-fused-fp16"].limit
    assert [line.split()[0] for line in said] == ["exporting", "fusing", "storing"]
    said.clear()
    assert build(packed, "onnx-fused-fp16", reference_forward, said.append, tmp_path / "cache") == folder
    assert said == [], "a finished build is used again"


def test_fp16_halves_the_file(packed: Path, tmp_path: Path) -> None:
    whole, half = (
        read_manifest(build(packed, step, reference_forward, root=tmp_path / "cache"))
        for step in ("onnx-fused", "onnx-fused-fp16")
    )
    assert 0.45 < half.bytes / whole.bytes < 0.6


def test_a_step_that_drifts_fails_by_name_and_leaves_nothing(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bad(parent: Path, folder: Path) -> None:
        model = onnx.load(parent / "model.onnx")
        weight = max(model.graph.initializer, key=lambda each: len(each.raw_data) if each.data_type == 1 else 0)
        array = onnx.numpy_helper.to_array(weight) * np.float32(1.5)
        weight.CopyFrom(onnx.numpy_helper.from_array(array, weight.name))
        onnx.save(model, folder / "model.onnx")

    monkeypatch.setattr(onnx_graph, "to_fp16", bad)
    with pytest.raises(DriftError, match="onnx-fused-fp16") as caught:
        build(packed, "onnx-fused-fp16", reference_forward, root=tmp_path / "cache")
    assert caught.value.step == "onnx-fused-fp16"
    assert not list((tmp_path / "cache").glob("onnx-fused-fp16-*[!k]"))


def test_an_unfused_graph_is_refused(packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_graph, "expected_fusions", lambda layers: {"Attention": layers + 1})
    with pytest.raises(ArtefactError, match="fuse"):
        build(packed, "onnx-fused", reference_forward, root=tmp_path / "cache")


def test_not_a_number_counts_as_drift(packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_module, "logit_difference", lambda *_: float("nan"))
    with pytest.raises(DriftError):
        compare(STEPS["onnx"], packed, packed, reference_forward, probe_windows(packed))


def test_upcasting_leaves_no_fp16_behind(packed: Path, tmp_path: Path) -> None:
    folder = build(packed, "onnx-fused-fp16", reference_forward, root=tmp_path / "cache")
    model = onnx_graph.upcast(onnx.load(folder / "model.onnx"))
    assert not [each.name for each in model.graph.initializer if each.data_type == onnx.TensorProto.FLOAT16]
    onnx.checker.check_model(model, full_check=False)


def write(folder: Path, content: str) -> None:
    (folder / "model.onnx").write_text(content)
    files = {"model.onnx": file_hash(folder / "model.onnx")}
    manifest = Manifest(
        step="test", parent=None, precision="FP32", bytes=1, parameters=1, encoder_parameters=1, files=files
    )
    manifest.write(folder)


@pytest.mark.parametrize("damage", ["model.onnx", "manifest.json"])
def test_a_broken_entry_is_noticed_and_built_again(tmp_path: Path, damage: str) -> None:
    place = ensure("thing", {"version": 1}, lambda folder: write(folder, "right"), tmp_path)
    (place / damage).write_text("half a fi")
    again = ensure("thing", {"version": 1}, lambda folder: write(folder, "right"), tmp_path)
    assert again == place
    assert (again / "model.onnx").read_text() == "right"


def test_other_facts_are_another_entry(tmp_path: Path) -> None:
    one, two = (ensure("thing", {"version": v}, lambda folder: write(folder, "x"), tmp_path) for v in (1, 2))
    assert one != two and one.is_dir() and two.is_dir()


def test_a_failed_build_leaves_nothing_behind(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        write(folder, "half")
        raise ArtefactError("stopped")

    with pytest.raises(ArtefactError):
        ensure("thing", {}, fail, tmp_path)
    assert [each.name for each in tmp_path.iterdir() if each.is_dir()] == []


def slow_build(root: Path, built: Queue[str]) -> None:
    def make(folder: Path) -> None:
        built.put("built")
        time.sleep(0.5)
        write(folder, "x")

    ensure("thing", {}, make, root)


def test_two_processes_build_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    built: Queue[str] = context.Queue()
    workers = [context.Process(target=slow_build, args=(tmp_path, built)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert built.get(timeout=5) == "built" and built.empty()


def test_a_manifest_is_read_back(tmp_path: Path) -> None:
    write(tmp_path, "x")
    manifest = replace(read_manifest(tmp_path), settings={"opset": 17})
    manifest.write(tmp_path)
    assert read_manifest(tmp_path) == manifest
