"""What engines do on a GPU, as far as it can be seen without one: what they ask of their runtimes, and refuse."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import pytest
import torch
from helpers import BASELINE

from qa_backends import catalog
from qa_backends.artefacts.build import build
from qa_backends.catalog import Backend
from qa_backends.checkpoints.architectures import LENGTHS
from qa_backends.checkpoints.load import load_model, save_model
from qa_backends.contract import Query, SpanLogits
from qa_backends.engines._buckets import POSITIONS
from qa_backends.engines._parts import in_parts
from qa_backends.engines._replay import MOST, Replay
from qa_backends.engines.deepspeed import AT_ONCE, DeepSpeed
from qa_backends.engines.onnxruntime import OnnxRuntime
from qa_backends.engines.pytorch import PyTorch
from qa_backends.errors import ArtefactError, BackendUnavailable
from qa_backends.paths import OWN_QUESTIONS
from qa_backends.progress import UNWATCHED
from qa_backends.reader.reader import Reader
from qa_backends.reader.tokens import SubwordTokenizer
from qa_backends.runtime.making import opened
from qa_backends.squad import read_squad
from qa_backends.training.gates import cut_down

if TYPE_CHECKING:
    from qa_backends.contract import Windows

READER = Reader(SubwordTokenizer(BASELINE))
ASKED = read_squad(OWN_QUESTIONS)


def windows(count: int) -> Windows:
    return READER.prepare_all([Query(each.question, each.context) for each in ASKED[:count]]).windows


@pytest.fixture
def graph(tiny: Path) -> Path:
    return build(tiny, "onnx", opened, UNWATCHED)


class TestReplay:
    """On a CPU nothing is recorded; shapes, padding and places in memory are the same."""

    @pytest.fixture
    def session(self, graph: Path) -> onnxruntime.InferenceSession:
        return onnxruntime.InferenceSession(str(graph / "model.onnx"), providers=["CPUExecutionProvider"])

    def feeds(self, session: onnxruntime.InferenceSession, count: int) -> dict[str, Any]:
        asked = windows(count)
        return {each.name: getattr(asked, each.name) for each in session.get_inputs()}

    def test_padding_to_a_recorded_length_changes_no_logit(self, session: onnxruntime.InferenceSession) -> None:
        replay = Replay(session, "cpu")
        for count in (1, 3, 1, 5):
            feeds = self.feeds(session, count)
            found = replay.run(feeds)
            start, end = session.run(["start_logits", "end_logits"], feeds)
            real = feeds["attention_mask"] == 1
            np.testing.assert_allclose(found.start[real], start[real], atol=1e-4)
            np.testing.assert_allclose(found.end[real], end[real], atol=1e-4)
            assert found.start.shape == start.shape
            assert found.shape[0] == count and found.shape[1] % LENGTHS == 0 and found.shape[1] >= start.shape[1]

    def test_a_later_call_does_not_change_what_an_earlier_one_gave(self, session: onnxruntime.InferenceSession) -> None:
        replay, feeds = Replay(session, "cpu"), self.feeds(session, 1)
        first = replay.run(feeds)
        kept = first.start.copy()
        replay.run(feeds | {"input_ids": feeds["input_ids"][:, ::-1].copy()})
        np.testing.assert_array_equal(first.start, kept)

    def test_only_so_many_shapes_are_recorded(
        self, session: onnxruntime.InferenceSession, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        numbers: list[str] = []

        class Options(onnxruntime.RunOptions):  # type: ignore[misc]  # onnxruntime leaves it untyped
            def add_run_config_entry(self, name: str, value: str) -> None:
                assert name == "gpu_graph_id"
                numbers.append(value)
                super().add_run_config_entry(name, value)

        monkeypatch.setattr(onnxruntime, "RunOptions", Options)
        replay, feeds = Replay(session, "cpu"), self.feeds(session, 1)
        for count in range(2, 30):
            replay.run({name: np.resize(each, (count, 8)) for name, each in feeds.items()})
        of_batches = numbers.count("-1")
        for length in range(LENGTHS, POSITIONS + 1, LENGTHS):
            replay.run({name: np.resize(each, (1, length)) for name, each in feeds.items()})
        assert numbers.count("-1") == of_batches, "a single window is recorded, however many batches came before"
        recorded = [each for each in numbers if each != "-1"]
        assert recorded == [str(number) for number in range(1, MOST + 1)]
        assert numbers.count("-1") > 0


class TestOnnxRuntimeOptions:
    @pytest.fixture
    def asked(self, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
        """The providers that sessions are asked for; all there is is the CPU's."""
        found: list[Any] = []

        def session(_graph: object, _options: object, providers: list[Any], **_: object) -> SimpleNamespace:
            found[:] = providers
            return SimpleNamespace(get_providers=lambda: ["CPUExecutionProvider"])

        monkeypatch.setattr(onnxruntime, "InferenceSession", session)
        return found

    def test_cuda_graphs_are_asked_for_only_where_they_were_chosen(self, graph: Path, asked: list[Any]) -> None:
        for options, expected in (({}, "0"), ({"replay": "graphs"}, "1")):
            with pytest.raises(BackendUnavailable, match="would have fallen back to CPUExecutionProvider"):
                OnnxRuntime(options).load(graph, "cuda")
            name, settings = asked[0]
            assert name == "CUDAExecutionProvider"
            assert settings == {"use_tf32": "0", "enable_cuda_graph": expected}

    def test_tensorrt_comes_first_with_fp16_and_an_engine_that_is_kept(self, graph: Path, asked: list[Any]) -> None:
        with pytest.raises(BackendUnavailable, match="could not use TensorRT"):
            OnnxRuntime({"provider": "tensorrt"}).load(graph, "cuda")
        name, settings = asked[0]
        assert name == "TensorrtExecutionProvider"
        assert settings["trt_fp16_enable"] == settings["trt_engine_cache_enable"] == "1"
        assert settings["trt_profile_opt_shapes"] == "input_ids:1x384,attention_mask:1x384,token_type_ids:1x384"
        assert [each[0] if isinstance(each, tuple) else each for each in asked[1:]] == [
            "CUDAExecutionProvider",
            "CPUExecutionProvider",
        ]

    @pytest.mark.parametrize("count", [1, 2, 5])
    def test_more_windows_than_tensorrt_takes_are_read_in_parts(self, graph: Path, count: int) -> None:
        session = onnxruntime.InferenceSession(str(graph / "model.onnx"), providers=["CPUExecutionProvider"])
        feeds = windows(count).inputs([each.name for each in session.get_inputs()])
        taken: list[int] = []

        def forward(part: dict[str, Any]) -> SpanLogits:
            taken.append(len(part["input_ids"]))
            return SpanLogits(*session.run(["start_logits", "end_logits"], part))

        found = in_parts(forward, feeds, 2)
        assert max(taken) <= 2 and sum(taken) == count
        start, end = session.run(["start_logits", "end_logits"], feeds)
        np.testing.assert_allclose(found.start, start, atol=1e-4)
        np.testing.assert_allclose(found.end, end, atol=1e-4)

    def test_tensorrt_reads_the_plain_graph_alone(self, tiny: Path, request: pytest.FixtureRequest) -> None:
        fused = build(tiny, "onnx-fused", opened, UNWATCHED)
        asked = request.getfixturevalue("asked")
        with pytest.raises(ArtefactError, match="Choose the backend of the plain graph"):
            OnnxRuntime({"provider": "tensorrt"}).load(fused, "cuda")
        assert asked == []

    @pytest.mark.parametrize(
        ("options", "reason"),
        [
            ({"replay": "graphs"}, "need an NVIDIA GPU"),
            ({"provider": "tensorrt"}, "need an NVIDIA GPU"),
        ],
    )
    def test_on_a_cpu_they_are_refused_with_the_reason(self, options: dict[str, str], reason: str) -> None:
        backend = Backend("pruned", "onnx", "onnxruntime", tuple(options.items()))
        refused = catalog.unavailable(backend, "cpu")
        assert refused is not None and reason in str(refused)

    def test_on_a_gpu_tensorrt_names_what_installs_it_and_keeps_away_from_graphs(self) -> None:
        refused = OnnxRuntime.refusal({"provider": "tensorrt"}, "cuda")
        assert refused is not None and "pip install 'tensorrt-cu13<11'" in refused[1]
        both = OnnxRuntime.refusal({"provider": "tensorrt", "replay": "graphs"}, "cuda")
        assert both is not None and "Choose them or TensorRT" in both[1]
        assert OnnxRuntime.refusal({"replay": "graphs"}, "cuda") is None


class TestDeepSpeed:
    @pytest.fixture
    def calls(self, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
        """A package of that name that replaces nothing and notes what it was asked for."""
        found: list[dict[str, Any]] = []

        def init_inference(model: torch.nn.Module, **settings: Any) -> SimpleNamespace:
            found.append(settings)
            return SimpleNamespace(module=model)

        package = ModuleType("deepspeed")
        package.init_inference = init_inference  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "deepspeed", package)
        return found

    @pytest.mark.parametrize(("options", "dtype"), [({}, torch.float32), ({"precision": "fp16"}, torch.half)])
    def test_its_kernels_are_asked_for_in_the_chosen_precision(
        self, tiny: Path, calls: list[dict[str, Any]], options: dict[str, str], dtype: torch.dtype
    ) -> None:
        engine = DeepSpeed(options)
        engine.load(tiny, "cpu")
        assert calls == [{"dtype": dtype, "replace_with_kernel_inject": True, "max_out_tokens": 512}]
        assert engine.forward(windows(1)).start.dtype == np.float32

    @pytest.mark.usefixtures("calls")
    def test_no_call_has_more_windows_than_the_first_one_made_room_for(
        self, tiny: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        engine, shapes = DeepSpeed({}), list[tuple[int, ...]]()
        prepared = DeepSpeed.by_place

        def watched(self: DeepSpeed, model: Any) -> Any:
            run = prepared(self, model)
            return lambda *inputs: (shapes.append(tuple(inputs[0].shape)), run(*inputs))[1]

        monkeypatch.setattr(DeepSpeed, "by_place", watched)
        engine.load(tiny, "cpu")
        asked = windows(2 * AT_ONCE + 3)
        found = engine.forward(asked)
        assert shapes[0][0] == max(count for count, *_ in shapes) == AT_ONCE
        plain = PyTorch({})
        plain.load(tiny, "cpu")
        np.testing.assert_allclose(found.start, plain.forward(asked).start, atol=1e-4)

    def test_a_model_without_all_its_heads_is_refused(
        self, tiny: Path, calls: list[dict[str, Any]], tmp_path: Path
    ) -> None:
        model = load_model(tiny)
        cut_down(model, [torch.arange(4) < 3] * 2, [torch.ones(48, dtype=torch.bool)] * 2)
        save_model(model, tmp_path / "cut", tokenizer_from=tiny, dtype=torch.float32)
        with pytest.raises(ArtefactError, match="Choose a checkpoint that was not pruned"):
            DeepSpeed({}).load(tmp_path / "cut", "cpu")
        assert calls == []

    def test_without_the_package_the_command_that_installs_it_is_named(self) -> None:
        refused = catalog.unavailable(Backend("baseline", "checkpoint", "deepspeed"), "cuda")
        assert refused is not None and "pip install --no-build-isolation deepspeed==" in str(refused)
