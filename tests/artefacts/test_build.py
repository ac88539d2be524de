"""Builds: checked against their parents, kept, and made again only when something of their own has changed."""

from __future__ import annotations

import logging
import shutil
import threading
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from helpers import random_bert

from qa_backends.artefacts.build import COMPARED, build, find, missing
from qa_backends.artefacts.graph import quiet
from qa_backends.artefacts.rounded import Runner, compare_with, kept_with
from qa_backends.artefacts.steps import step_of
from qa_backends.checkpoints.architectures.bert import Bert
from qa_backends.checkpoints.load import load_model, save_model
from qa_backends.checkpoints.manifest import file_hash, read_manifest, versions_of
from qa_backends.contract import SpanLogits, Windows
from qa_backends.engines._cpu_graph import AS_IT_STANDS, SLOW, for_cpu, split_slow, suits
from qa_backends.errors import ArtefactError, DriftError
from qa_backends.paths import MODELS
from qa_backends.progress import UNWATCHED, Cancelled, Progress
from qa_backends.runtime.making import opened
from qa_backends.training.gates import cut_down

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    AddStep = Callable[[str, str], None]

LAST = "onnx-fused-fp16"
SHIPPED = MODELS / "minilm" / "baseline"
CHAIN = ("onnx", "onnx-fused", LAST)


def built(root: Path, step: str) -> list[Path]:
    """Folders of the step in the cache; not those of steps whose names begin alike, nor lock files."""
    return [each for each in root.glob(f"{step}-*") if each.is_dir() and read_manifest(each).step == step]


def test_the_whole_chain_is_fused_and_agrees(packed: Path, empty: Path) -> None:
    said: list[str] = []
    folder = build(packed, LAST, opened, Progress(said.append))
    manifest = read_manifest(folder)
    assert manifest.fused_ops == {
        "EmbedLayerNormalization": 1,
        "Attention": 2,
        "SkipLayerNormalization": 4,
        "BiasGelu": 2,
    }
    assert manifest.precision == "FP16"
    assert manifest.largest_logit_difference is not None
    assert 0 < manifest.largest_logit_difference <= step_of(LAST).tolerance
    assert [line.split()[0] for line in said] == ["exporting", "fusing", "storing"]
    said.clear()
    assert build(packed, LAST, opened, Progress(said.append)) == folder
    assert said == [], "a finished build is used again"


@pytest.mark.parametrize(
    ("heads", "columns", "fused"),
    [
        ([4, 0], [48, 0], {"EmbedLayerNormalization": 1, "Attention": 1, "SkipLayerNormalization": 2, "BiasGelu": 1}),
        ([0, 2], [0, 32], {"EmbedLayerNormalization": 0, "Attention": 1, "SkipLayerNormalization": 2, "BiasGelu": 1}),
        ([1, 4], [0, 16], {"EmbedLayerNormalization": 1, "Attention": 2, "SkipLayerNormalization": 3, "BiasGelu": 1}),
    ],
)
def test_a_layer_without_heads_or_columns_is_exported_and_fused(
    tiny: Path, tmp_path: Path, empty: Path, heads: list[int], columns: list[int], fused: dict[str, int]
) -> None:
    model = load_model(tiny)
    cut_down(model, [torch.arange(4) < each for each in heads], [torch.arange(48) < each for each in columns])
    save_model(model, tmp_path / "cut", tokenizer_from=tiny, dtype=torch.float32)
    folder = build(tmp_path / "cut", LAST, opened, UNWATCHED)
    assert read_manifest(folder).fused_ops == fused
    assert read_manifest(folder).largest_logit_difference is not None


def test_only_the_exporters_are_silenced_while_they_build(caplog: pytest.LogCaptureFixture) -> None:
    with quiet():
        logging.getLogger("onnxruntime.quantization").warning("of no interest")
        logging.warning("from no name")  # as some do
        logging.getLogger("qa_backends.runtime").warning("exporting")
        asked = threading.Thread(target=logging.getLogger("uvicorn").warning, args=("asked meanwhile",))
        asked.start()
        asked.join()
        logging.getLogger("fusion_attention").error("broken")
    logging.getLogger("onnxruntime.quantization").warning("heard again")
    assert [each.message for each in caplog.records] == ["exporting", "asked meanwhile", "broken", "heard again"]


def test_a_manifest_names_the_parent_the_settings_and_the_steps_own_packages(packed: Path, full: Path) -> None:
    (plain,), (fused,) = built(full, "onnx"), built(full, "onnx-fused")
    assert read_manifest(plain).parent == file_hash(packed / "model.safetensors")
    assert read_manifest(plain).settings == {"opset": 17}
    assert read_manifest(fused).parent == file_hash(plain / "model.onnx")
    assert read_manifest(fused).versions == versions_of(["onnx", "onnxruntime"])
    assert read_manifest(plain).parameters == read_manifest(fused).parameters > 0


def test_fp16_halves_the_file(full: Path) -> None:
    (whole,), (half,) = built(full, "onnx-fused"), built(full, LAST)
    assert 0.45 < read_manifest(half).bytes / read_manifest(whole).bytes < 0.6


def test_a_finished_artefact_needs_none_of_its_parents(packed: Path, full: Path) -> None:
    for folder in (*built(full, "onnx"), *built(full, "onnx-fused")):
        shutil.rmtree(folder)
    said: list[str] = []
    assert missing(packed, LAST) == []
    assert [build(packed, LAST, opened, Progress(said.append))] == built(full, LAST)
    assert said == [] and built(full, "onnx") == []


def test_a_step_needs_its_parent_and_not_the_parents_parent(packed: Path, full: Path) -> None:
    for folder in (*built(full, "onnx"), *built(full, LAST)):
        shutil.rmtree(folder)
    said: list[str] = []
    assert [step.name for step in missing(packed, LAST)] == [LAST]
    build(packed, LAST, opened, Progress(said.append))
    assert [line.split()[0] for line in said] == ["storing"]
    assert built(full, "onnx") == []


def fake_version(folder: Path, distribution: str) -> None:
    """Another version of the distribution, in the dress of an installed one."""
    (folder / f"{distribution.replace('-', '_')}-99.0.dist-info").mkdir()
    metadata = folder / f"{distribution.replace('-', '_')}-99.0.dist-info" / "METADATA"
    metadata.write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 99.0\n")


def test_a_new_version_of_a_package_rebuilds_the_steps_that_use_it_and_no_other(
    packed: Path, full: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    for unrelated in ("plotly", "gradio", "tokenizers"):
        fake_version(tmp_path, unrelated)
    assert versions_of(["plotly"]) == {"plotly": "99.0"}
    assert [find(packed, step) is not None for step in CHAIN] == [True, True, True]
    (runtime,) = versions_of(["onnxruntime"])  # "onnxruntime" or "onnxruntime-gpu"
    fake_version(tmp_path, runtime)
    assert [find(packed, step) is not None for step in CHAIN] == [True, False, False]
    assert [step.name for step in missing(packed, LAST)] == ["onnx-fused", LAST]


def test_another_checkpoint_is_another_artefact(packed: Path, full: Path, tmp_path: Path) -> None:
    other = shutil.copytree(packed, tmp_path / "other")
    assert find(other, LAST) is not None, "the same contents elsewhere are the same"
    config = (other / "config.json").read_text()
    (other / "config.json").write_text(config.replace('"layer_norm_eps": 1e-12', '"layer_norm_eps": 1e-10'))
    assert find(other, LAST) is None


def test_a_build_that_is_stopped_keeps_finished_steps_and_leaves_no_half_one(packed: Path, empty: Path) -> None:
    said: list[str] = []
    with pytest.raises(Cancelled):
        build(packed, LAST, opened, Progress(said.append, stopped=lambda: any("fusing" in each for each in said)))
    assert [find(packed, step) is not None for step in CHAIN] == [True, False, False]
    assert [each.name for each in empty.iterdir() if each.is_dir()] == [each.name for each in built(empty, "onnx")]


# Steps that go wrong, each a file like any other.

DRIFTING = """
    from dataclasses import replace

    from qa_backends.artefacts.steps.onnx_fused_fp16 import STEP as FP16


    def make(making):
        import numpy as np
        import onnx

        model = onnx.load(making.parent / "model.onnx")
        for weight in model.graph.initializer:
            if weight.data_type == onnx.TensorProto.FLOAT:
                array = onnx.numpy_helper.to_array(weight) * np.float32({factor})
                weight.CopyFrom(onnx.numpy_helper.from_array(array, weight.name))
        onnx.save(model, making.folder / "model.onnx")


    STEP = replace(FP16, name="{name}", short="drifting", precision="{precision}", make=make)
"""


@pytest.mark.parametrize(("name", "factor"), [("onnx-scaled", "1.5"), ("onnx-broken", "np.nan")])
def test_a_step_that_drifts_or_makes_no_numbers_fails_by_name_and_leaves_nothing(
    packed: Path, full: Path, add_step: AddStep, name: str, factor: str
) -> None:
    add_step(name, DRIFTING.format(name=name, factor=factor, precision="FP32"))
    with pytest.raises(DriftError, match=f"'{name}'"):
        build(packed, name, opened, UNWATCHED)
    assert find(packed, name) is None
    assert built(full, name) == [] and not [each for each in full.glob(".*") if each.is_dir()]


def test_a_step_that_does_not_make_the_precision_it_promises_fails(packed: Path, full: Path, add_step: AddStep) -> None:
    add_step("onnx-promising", DRIFTING.format(name="onnx-promising", factor="1", precision="INT8"))
    with pytest.raises(ArtefactError, match=r"'onnx-promising' promises weights in INT8 and made them in FP32"):
        build(packed, "onnx-promising", opened, UNWATCHED)
    assert find(packed, "onnx-promising") is None


def test_a_step_that_makes_no_file_fails(packed: Path, full: Path, add_step: AddStep) -> None:
    source = """
        from dataclasses import replace

        from qa_backends.artefacts.steps.onnx_fused_fp16 import STEP as FP16

        STEP = replace(FP16, name="onnx-idle", make=lambda making: None)
    """
    add_step("onnx-idle", source)
    with pytest.raises(ArtefactError, match=r"'onnx-idle' made no model\.onnx"):
        build(packed, "onnx-idle", opened, UNWATCHED)


def test_weights_that_no_graph_holds_are_refused_before_they_are_exported(
    packed: Path, empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qa_backends.artefacts.steps.onnx.MOST_BYTES", 1_000)
    with pytest.raises(ArtefactError, match=r"In FP32 the weights take .* Choose a backend of PyTorch"):
        build(packed, "onnx", opened, UNWATCHED)


def test_an_unknown_step_is_refused_with_a_list_of_those_there_are(packed: Path, empty: Path) -> None:
    with pytest.raises(ArtefactError, match=r"no build step 'onnx-nothing'.*: onnx,.* onnx-fused-fp16\b"):
        build(packed, "onnx-nothing", opened, UNWATCHED)


def test_a_step_that_calls_itself_by_another_name_than_its_file_is_refused(add_step: AddStep) -> None:
    add_step("onnx-two", "from qa_backends.artefacts.steps.onnx import STEP")
    with pytest.raises(ArtefactError, match="'onnx-two' says it is 'onnx'"):
        step_of("onnx-two")


def test_an_unfused_graph_is_refused(tmp_path: Path, empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where nothing in the config tells beforehand that the optimiser will leave something out."""
    monkeypatch.setattr(Bert, "fuses", lambda *_: True)
    checkpoint = random_bert(tmp_path / "relu")
    config = (checkpoint / "config.json").read_text()
    assert '"hidden_act": "gelu"' in config
    (checkpoint / "config.json").write_text(config.replace('"hidden_act": "gelu"', '"hidden_act": "relu"'))
    with pytest.raises(ArtefactError, match=r"'onnx-fused'.*'BiasGelu': 0.*'BiasGelu': 2.*use the unfused 'onnx'"):
        build(checkpoint, "onnx-fused", opened, UNWATCHED)
    assert find(checkpoint, "onnx") is not None
    assert find(checkpoint, "onnx-fused") is None


def test_a_cpu_gets_no_fp16_and_no_operator_that_is_slow_there(full: Path, tmp_path: Path) -> None:
    (folder,) = built(full, LAST)
    stored = onnx.load(folder / "model.onnx")
    assert SLOW in {node.op_type for node in stored.graph.node}
    model = for_cpu(stored)
    assert not [each.name for each in model.graph.initializer if each.data_type == onnx.TensorProto.FLOAT16]
    onnx.checker.check_model(model, full_check=False)
    left = []
    for number, settings in enumerate((AS_IT_STANDS, {})):
        options = onnxruntime.SessionOptions()
        options.optimized_model_filepath = str(tmp_path / f"{number}.onnx")
        for key, value in settings.items():
            options.add_session_config_entry(key, value)
        onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        left.append(SLOW in {node.op_type for node in onnx.load(options.optimized_model_filepath).graph.node})
    assert left == [False, True], "ONNX Runtime would make it anew when it loads the graph"


@pytest.mark.parametrize("inputs", [3, 4, 5])
def test_the_slow_operator_taken_apart_computes_the_same(inputs: int) -> None:
    from onnx import TensorProto, helper, numpy_helper

    names = ["x", "skip", "scale", "shift", "bias"][:inputs]
    drawn = np.random.default_rng(3)
    weights = {name: drawn.normal(size=8).astype(np.float32) for name in names[2:]}
    node = helper.make_node(SLOW, names, ["y"], domain="com.microsoft", epsilon=1e-5)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3, 8]) for name in ("x", "skip", "y")]
    held = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(
        helper.make_graph([node], "one", ends[:2], ends[2:], held), opset_imports=opsets, ir_version=9
    )
    feeds = {name: drawn.normal(size=(2, 3, 8)).astype(np.float32) for name in ("x", "skip")}

    def run() -> Any:
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        return session.run(None, feeds)[0]

    before = run()
    parts = [each.op_type for each in split_slow(model).graph.node]
    assert parts == ["Add"] * (2 if inputs == 5 else 1) + ["LayerNormalization"]
    np.testing.assert_allclose(run(), before, atol=1e-5)


def test_a_graph_that_is_stored_in_fp16_is_refitted_whether_it_is_fused_or_not() -> None:
    def made(precision: str, fused: int) -> bool:
        return suits(replace(read_manifest(SHIPPED), precision=precision, fused_ops={SLOW: fused}))

    assert made("FP32", 0)
    assert not made("FP16", 0) and not made("FP32", 1)


# Arithmetic that differs by device is compared where it will run.


class Devices:
    """Opens artefacts on the CPU whatever device is asked for; "cuda" adds ``error`` to the logits of FP16 graphs."""

    def __init__(self, error: float) -> None:
        self.error = error
        self.asked: list[tuple[str, str]] = []

    @contextmanager
    def open_with(self, folder: Path, engine: str, device: str) -> Iterator[Callable[[Windows], SpanLogits]]:
        step = read_manifest(folder).step if (folder / "manifest.json").is_file() else "checkpoint"
        self.asked.append((step, device))
        off = self.error if device == "cuda" and step == LAST else 0.0
        with opened(folder, engine, "cpu") as forward:

            def distorted(windows: Windows) -> SpanLogits:
                logits = forward(windows)
                return SpanLogits(logits.start + np.float32(off), logits.end)

            yield distorted


def read_only(_path: Path, _text: str) -> None:
    """As a cache that another user built, which even root may write to."""
    raise PermissionError


def test_fp16_is_compared_on_the_gpu_before_its_first_use_there_and_once(packed: Path, full: Path) -> None:
    devices = Devices(error=1e-4)
    said: list[str] = []
    assert [step.name for step in missing(packed, LAST, "cuda")] == [LAST]
    folder = build(packed, LAST, devices.open_with, Progress(said.append), "cuda")
    assert devices.asked == [("onnx-fused", "cuda"), (LAST, "cuda")]
    assert len(said) == 1 and "comparing" in said[0]
    assert missing(packed, LAST, "cuda") == []
    assert build(packed, LAST, devices.open_with, Progress(said.append), "cuda") == folder
    assert len(devices.asked) == 2 and len(said) == 1


def test_a_comparison_that_cannot_be_noted_beside_the_artefact_is_not_made_again_by_this_process(
    packed: Path, full: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qa_backends.artefacts.notes.write_whole", read_only)
    devices = Devices(error=0)
    for _ in range(2):
        folder = build(packed, LAST, devices.open_with, UNWATCHED, "cuda")
    assert devices.asked == [("onnx-fused", "cuda"), (LAST, "cuda")] and not (folder / COMPARED).exists()


def test_answers_that_cannot_be_noted_beside_the_artefact_count_as_kept(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qa_backends.artefacts.notes.write_whole", read_only)

    def forward(windows: Windows) -> SpanLogits:
        found = np.sin(windows.input_ids).astype(np.float32)
        return SpanLogits(found, found)

    runner, other = (Runner("An engine", key, lambda _folder: nullcontext(forward)) for key in ("one", "other"))
    compare_with(runner, step_of("onnx-int8"), forward, tmp_path, packed, UNWATCHED)
    assert kept_with(tmp_path, runner) and not kept_with(tmp_path, other)


def test_fp16_that_drifts_on_the_gpu_is_refused_there_each_time_and_used_on_the_cpu(packed: Path, full: Path) -> None:
    devices = Devices(error=100.0)
    for _ in range(2):
        with pytest.raises(DriftError, match=LAST):
            build(packed, LAST, devices.open_with, UNWATCHED, "cuda")
    assert [build(packed, LAST, devices.open_with, UNWATCHED, "cpu")] == built(full, LAST)


def test_steps_of_the_same_arithmetic_everywhere_are_compared_on_the_cpu_alone(packed: Path, full: Path) -> None:
    devices = Devices(error=0)
    build(packed, "onnx-fused", devices.open_with, UNWATCHED, "cuda")
    assert devices.asked == []


def test_a_gpus_comparison_builds_the_parent_it_needs(packed: Path, full: Path) -> None:
    for folder in (*built(full, "onnx"), *built(full, "onnx-fused")):
        shutil.rmtree(folder)
    devices = Devices(error=0)
    build(packed, LAST, devices.open_with, UNWATCHED, "cuda")
    assert devices.asked[-2:] == [("onnx-fused", "cuda"), (LAST, "cuda")]


@pytest.mark.gpu
def test_on_a_gpu_fp16_is_compared_there(packed: Path, full: Path) -> None:
    asked: list[str] = []

    @contextmanager
    def open_with(folder: Path, engine: str, device: str) -> Iterator[Any]:
        asked.append(device)
        with opened(folder, engine, device) as forward:
            yield forward

    build(packed, LAST, open_with, UNWATCHED, "cuda")
    assert asked == ["cuda", "cuda"]
    assert missing(packed, LAST, "cuda") == []
