"""Every kind of model that can be read keeps the whole contract, and answers as the pipeline of transformers does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from contracts import check_backend
from helpers import ROOT
from kinds import CONFIGS, HEADS, LAYERS, SPECIAL, TOKENS, answer, checkpoint_of, family_of, same_weights

from qa_backends import catalog
from qa_backends.artefacts.build import build, find
from qa_backends.artefacts.graph import FILE, count_fused, quiet
from qa_backends.checkpoints.architectures import architecture, known
from qa_backends.checkpoints.load import load_model
from qa_backends.checkpoints.packing import pack_checkpoint
from qa_backends.contract import Query
from qa_backends.engines._cpu_graph import SLOW
from qa_backends.errors import ArtefactError, BackendUnavailable
from qa_backends.progress import UNWATCHED
from qa_backends.runtime.making import opened
from qa_backends.squad import read_squad

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from qa_backends.catalog import Family
    from qa_backends.runtime import Runtime

IN_LAYERS = {"Attention": LAYERS, "SkipLayerNormalization": 2 * LAYERS, "BiasGelu": LAYERS}
FUSED = {
    "bert": {"EmbedLayerNormalization": 1} | IN_LAYERS,
    "electra": {"EmbedLayerNormalization": 1} | IN_LAYERS,
    "roberta": IN_LAYERS,
    "xlm-roberta": IN_LAYERS,
}
"""What onnxruntime's optimiser makes of each kind that it knows."""
ENGINES = ("pytorch", "torchscript", "onnxruntime", "openvino")
"""torch.compile would take minutes for all of them, and is asked of one."""
N_QUESTIONS = 15
BY_CONFIG = "by-config"


@pytest.fixture(scope="module", params=sorted(CONFIGS))
def family(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Family:
    return family_of(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture
def registered() -> Iterator[Callable[[Family], None]]:
    """Makes a family called ``BY_CONFIG`` known, so that its backends have names, until the test ends."""
    yield catalog.register
    catalog.forget(BY_CONFIG)


def folder_of(family: Family) -> Path:
    folder = family.source(catalog.BASELINE).folder
    assert folder is not None
    return folder


def test_every_kind_is_tried_here() -> None:
    assert known() == sorted(CONFIGS)


@pytest.mark.slow
def test_every_backend_that_suits_the_kind_keeps_the_contract(family: Family, runtime: Runtime) -> None:
    offered = [each for each in catalog.offered(family, "cpu") if each.engine in ENGINES]
    assert {each.engine for each in offered} == {each for each in ENGINES if _knows(each, family.kind)}
    assert {each.checkpoint for each in offered} == {catalog.BASELINE}
    for backend in offered:
        check_backend(runtime, family, backend, "cpu")


def _knows(engine: str, kind: str) -> bool:
    return engine != "openvino" or kind != "deberta-v2"


@pytest.mark.slow
def test_fusion_is_counted_and_not_offered_where_it_would_be_one_in_name_only(family: Family, runtime: Runtime) -> None:
    fused = catalog.backend("baseline-ort-fused")
    if family.kind in FUSED:
        with runtime.turn("cpu"):
            ran = runtime.get(family, fused, "cpu").ran
        assert ran.fused_ops == {name: count for name, count in FUSED[family.kind].items() if name != SLOW}
        return
    assert not any("fused" in each.artefact for each in catalog.offered(family))
    with pytest.raises(ArtefactError, match="Choose a backend of the plain graph"):
        build(folder_of(family), fused.artefact, opened, UNWATCHED)
    assert _attentions_fused(build(folder_of(family), "onnx", opened, UNWATCHED)) < LAYERS, "or it could be offered"


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("bert", {"hidden_act": "relu"}),
        ("roberta", {"hidden_act": "gelu_new"}),
        ("bert", {"position_embedding_type": "relative_key"}),
    ],
)
def test_a_model_that_is_not_fused_by_its_config_is_offered_the_plain_graph(
    kind: str, changes: dict[str, object], tmp_path: Path, runtime: Runtime, registered: Callable[[Family], None]
) -> None:
    family = replace(family_of(kind, tmp_path, **changes), name=BY_CONFIG)
    assert catalog.usual(family) == ("baseline", "baseline-ort")
    assert not any("fused" in each.artefact for each in catalog.offered(family))
    registered(family)
    one, other = (answer(runtime, family, name) for name in ("baseline", None))
    assert one.span == other.span and same_weights(one, other)
    with pytest.raises(BackendUnavailable, match=r"Choose a backend of the plain graph, as baseline-ort\."):
        runtime.make_ready(family, catalog.backend("baseline-ort-fused"), "cpu", UNWATCHED)


def test_a_model_of_one_segment_with_a_tokenizer_of_two_runs_everywhere(
    tmp_path: Path, runtime: Runtime, registered: Callable[[Family], None]
) -> None:
    registered(family := replace(family_of("bert", tmp_path, type_vocab_size=1), name=BY_CONFIG))
    one, other = (answer(runtime, family, name) for name in catalog.usual(family))
    assert one.span == other.span and same_weights(one, other)


def _attentions_fused(folder: Path) -> int:
    from onnxruntime.transformers.optimizer import optimize_model

    with quiet():
        return count_fused(optimize_model(str(folder / FILE), model_type="bert", opt_level=0).model)["Attention"]


def test_an_engine_that_does_not_know_the_kind_says_so_before_anything_is_built(
    tmp_path: Path, runtime: Runtime
) -> None:
    family, openvino = family_of("deberta-v2", tmp_path), catalog.backend("baseline-ov")
    with pytest.raises(BackendUnavailable) as refusal:
        runtime.make_ready(family, openvino, "cpu", UNWATCHED)
    assert str(refusal.value) == (
        "OpenVINO does not run models of the kind 'deberta-v2'. Choose another backend, as baseline-ort."
    )
    assert find(folder_of(family), "onnx") is None


def test_answers_are_those_of_the_pipeline(family: Family, runtime: Runtime) -> None:
    """Where one window holds the text: over several, the pipeline's scores cannot be compared."""
    reader = runtime.reader(family)
    asked = [Query(each.question, each.context) for each in read_squad(ROOT / "assets" / "questions.json")]
    fitting = [each for each in asked if reader.prepare(each).windows.n_windows == 1][:N_QUESTIONS]
    assert len(fitting) == N_QUESTIONS
    theirs = _pipeline_answers(family, fitting)
    backend = catalog.backend(catalog.BASELINE)
    with runtime.turn("cpu") as turn:
        ours = [turn.answer(family, backend, turn.prepare(family, each)).answer for each in fitting]
    for query, one, other in zip(fitting, ours, theirs, strict=True):
        # Where a token holds the space before its word, the pipeline's answer begins with that.
        assert one.text == other["answer"].strip(), query
        space = len(other["answer"]) - len(other["answer"].lstrip())
        assert (one.span.start if one.span else 0) == other["start"] + space


def _pipeline_answers(family: Family, asked: list[Query]) -> list[dict[str, Any]]:
    from transformers import PreTrainedTokenizerFast, pipeline

    folder = folder_of(family)
    cls, sep, pad, _ = SPECIAL[family.kind]
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"), pad_token=pad, sep_token=sep, cls_token=cls,
        model_input_names=architecture(family.kind).inputs(load_model(folder)),
    )  # fmt: skip
    answer: Any = pipeline("question-answering", model=load_model(folder), tokenizer=tokenizer, device="cpu")
    found: list[dict[str, Any]] = answer(
        question=[each.question for each in asked],
        context=[each.context for each in asked],
        max_seq_len=family.settings.max_seq_len,
        doc_stride=family.settings.stride,
        max_answer_len=30,
        handle_impossible_answer=True,
        align_to_words=False,
    )
    return found


def test_windows_follow_the_models_own_length(family: Family, runtime: Runtime) -> None:
    assert family.settings.max_seq_len == TOKENS
    text = "Anna planted an apple tree behind the school. " * 80
    windows = runtime.reader(family).prepare(Query("Who planted a tree?", text)).windows
    assert windows.n_windows > 1
    assert windows.seq_len == TOKENS
    with runtime.turn("cpu") as turn:
        turn.answer(family, catalog.backend(catalog.BASELINE), turn.prepare(family, Query("Who planted?", text)))


PRUNABLE = [kind for kind in sorted(CONFIGS) if architecture(kind).layers_known]


@pytest.mark.parametrize("kind", PRUNABLE)
@pytest.mark.slow
def test_what_pruning_emptied_is_packed_away_and_nothing_else_changes(kind: str, tmp_path: Path) -> None:
    import torch

    from qa_backends.checkpoints.load import save_model

    folder = checkpoint_of(kind, tmp_path / "masked")
    model = load_model(folder)
    first, second = architecture(kind).blocks(model)
    with torch.no_grad():
        first.attention_output.weight[:, 8:16] = 0
        second.attention_output.weight[:] = 0
        first.down.weight[:] = 0
        second.down.weight[:, ::3] = 0
    save_model(model, folder, tokenizer_from=folder, dtype=torch.float32)
    pack_checkpoint(folder, tmp_path / "packed", {})  # which compares the logits
    packed = architecture(kind).blocks(load_model(tmp_path / "packed"))
    assert [block.heads for block in packed] == [HEADS - 1, 0]
    assert [block.up.out_features for block in packed] == [0, 32]
    artefact = "onnx-fused" if kind in FUSED else "onnx"
    build(tmp_path / "packed", artefact, opened, UNWATCHED)  # which compares them again, and counts what was fused


@pytest.mark.parametrize("kind", [each for each in sorted(CONFIGS) if each not in PRUNABLE])
def test_a_pruned_model_of_a_kind_whose_layers_are_not_known_is_refused(kind: str) -> None:
    with pytest.raises(ArtefactError, match=f"Pruned models of the kind '{kind}' cannot be read"):
        architecture(kind).model({"model_type": kind, **CONFIGS[kind], "pruned_heads": {0: [1]}}, "sdpa")


@pytest.mark.slow
@pytest.mark.programs
@pytest.mark.parametrize("kind", ["roberta", "deberta-v2"])
def test_kinds_that_number_positions_in_the_graph_are_compiled_too(kind: str, tmp_path: Path, runtime: Runtime) -> None:
    check_backend(runtime, family_of(kind, tmp_path), catalog.backend("baseline-compiled"), "cpu")
