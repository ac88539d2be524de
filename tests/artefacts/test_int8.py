"""INT8 keeps the answers: outliers are smoothed without changing what is computed; a step that breaks answers fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from qa_backends import catalog
from qa_backends.artefacts import quantise
from qa_backends.artefacts.attention import attention_products
from qa_backends.artefacts.compare import compare_answers
from qa_backends.artefacts.smoothing import largest_inputs, products_of, smooth
from qa_backends.artefacts.steps import Making, onnx_int8, step_of
from qa_backends.artefacts.texts import calibration_windows
from qa_backends.checkpoints.manifest import file_hash, read_manifest
from qa_backends.contract import SpanLogits, Windows
from qa_backends.errors import AnswersError
from qa_backends.paths import CALIBRATION
from qa_backends.progress import UNWATCHED, Cancelled, Progress

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from qa_backends.runtime import Runtime

    Forward = Callable[[Windows], SpanLogits]

OUTLIER = 3


def two_products(rng: np.random.Generator) -> onnx.ModelProto:
    """Two products that share an input, as an attention layer's do, and one behind them."""
    shapes = {"query": (8, 6), "key": (8, 6), "output": (6, 4)}
    weights = [
        numpy_helper.from_array(rng.normal(size=shape).astype(np.float32), name) for name, shape in shapes.items()
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "query"], ["a"], name="query"),
        helper.make_node("MatMul", ["x", "key"], ["b"], name="key"),
        helper.make_node("Add", ["a", "b"], ["c"], name="add"),
        helper.make_node("MatMul", ["c", "output"], ["y"], name="output"),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", size]) for name, size in (("x", 8), ("y", 4))]
    graph = helper.make_graph(nodes, "two", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def run(model: onnx.ModelProto, feed: dict[str, np.ndarray]) -> np.ndarray:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(["y"], feed)[0])


def test_weights_that_several_inputs_share_are_smoothed_once() -> None:
    """As ALBERT's are, whose layers all have the same."""
    rng = np.random.default_rng(1)
    model, x = two_products(rng), rng.normal(size=(20, 8)).astype(np.float32)
    graph = model.graph
    node, ends = graph.node[2], graph.output[0]
    graph.node.remove(graph.node[3])
    graph.node.extend([
        helper.make_node("Concat", ["c", "a_two"], ["wide"], name="wide", axis=1),
        helper.make_node("MatMul", ["wide", "query"], ["y"], name="again"),
    ])  # fmt: skip
    graph.node.insert(2, helper.make_node("Slice", ["a", "from", "to", "axis"], ["a_two"], name="slice"))
    graph.initializer.extend(
        numpy_helper.from_array(np.array([number]), name) for name, number in (("from", 0), ("to", 2), ("axis", 1))
    )
    ends.type.tensor_type.shape.dim[1].dim_value = 6
    x[:, OUTLIER] *= 50
    before = run(model, {"x": x})
    smooth(model, largest_inputs(model, [{"x": x}]))
    assert node.name == "add"
    assert run(model, {"x": x}) == pytest.approx(before, rel=1e-3, abs=1e-3)


def test_smoothing_shrinks_an_outlying_channel_and_computes_the_same() -> None:
    rng = np.random.default_rng(0)
    model, x = two_products(rng), rng.normal(size=(20, 8)).astype(np.float32)
    x[:, OUTLIER] *= 50
    before, largest = run(model, {"x": x}), largest_inputs(model, [{"x": x[:10]}, {"x": x[10:]}])
    assert largest["x"] == pytest.approx(np.abs(x).max(axis=0)), "over all that was fed"
    smooth(model, largest)
    onnx.checker.check_model(model)
    assert run(model, {"x": x}) == pytest.approx(before, rel=1e-4, abs=1e-4)
    after = largest_inputs(model, [{"x": x}])
    (smoothed,) = [values for name, values in after.items() if name.startswith("x")]
    assert smoothed[OUTLIER] / np.median(smoothed) < 0.2 * largest["x"][OUTLIER] / np.median(largest["x"])
    assert [each.name for each in products_of(model)] == ["query", "key", "output"]


@pytest.mark.parametrize(
    ("flags", "signed"),
    [({"sse2", "avx512_vnni"}, 4), ({"sse2", "avx2"}, 0)],
    ids=["VNNI", "AVX2"],
)
def test_queries_and_keys_are_rounded_where_that_is_quicker_and_probabilities_never(
    flags: set[str], signed: int, packed: Path, full: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quantise, "cpu_flags", lambda: frozenset(flags))
    monkeypatch.setattr(onnx_int8, "calibration_windows", lambda folder: calibration_windows(folder)[:3])
    (parent,) = [each for each in full.glob("onnx-*") if each.is_dir() and read_manifest(each).step == "onnx"]
    onnx_int8.make(Making(parent, packed, tmp_path, UNWATCHED))
    graph = onnx.load(tmp_path / "model.onnx").graph
    made_by = {name: each for each in graph.node for name in each.output}
    rounded = [each for each in graph.node if each.op_type == "QuantizeLinear"]
    zeros = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    assert [zeros[each.input[2]].dtype for each in rounded].count(np.dtype(np.int8)) == signed, "of 2 layers"
    assert all(zeros[each.input[2]] == 0 for each in rounded if zeros[each.input[2]].dtype == np.int8)
    assert "Softmax" not in {made_by[each.input[0]].op_type for each in rounded if each.input[0] in made_by}


def test_int8_is_made_on_as_many_threads_as_everything_else_takes(
    packed: Path, full: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads, plain = list[int](), onnxruntime.SessionOptions

    class Noting(onnxruntime.InferenceSession):  # type: ignore[misc]  # onnxruntime leaves it untyped
        def __init__(self, model: object, options: onnxruntime.SessionOptions | None = None, **others: object) -> None:
            options = others.pop("sess_options", options)
            threads.append(options.intra_op_num_threads if options else 0)
            super().__init__(model, options, **others)

    monkeypatch.setattr(onnxruntime, "InferenceSession", Noting)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr(onnx_int8, "calibration_windows", lambda folder: calibration_windows(folder)[:1])
    (parent,) = [each for each in full.glob("onnx-*") if each.is_dir() and read_manifest(each).step == "onnx"]
    onnx_int8.make(Making(parent, packed, tmp_path, UNWATCHED))
    assert len(threads) == 3 and set(threads) == {1}, "one to fold constants, one for outliers, one for ranges"
    assert onnxruntime.SessionOptions is plain


def test_what_is_not_scaled_and_masked_alone_before_a_softmax_is_no_product_of_attention() -> None:
    """As DeBERTa's products with positions, whose results are gathered, and its probabilities, which are reshaped."""
    nodes = [
        helper.make_node("Add", ["x", "x"], ["q"]),
        helper.make_node("Mul", ["x", "x"], ["k"]),
        helper.make_node("MatMul", ["q", "k"], ["scores"], name="scores"),
        helper.make_node("MatMul", ["k", "q"], ["by_position"], name="by_position"),
        helper.make_node("GatherElements", ["by_position", "places"], ["gathered"]),
        helper.make_node("Div", ["scores", "root"], ["scaled"]),
        helper.make_node("Add", ["scaled", "gathered"], ["biased"]),
        helper.make_node("Softmax", ["biased"], ["probabilities"]),
        helper.make_node("Reshape", ["probabilities", "shape"], ["turned"]),
        helper.make_node("MatMul", ["turned", "k"], ["y"], name="mixed"),
    ]
    model = helper.make_model(helper.make_graph(nodes, "attention", [], []))
    assert [each.name for each in attention_products(model)] == ["scores"]


def test_what_a_normalisation_gives_is_smoothed_by_its_own_weights() -> None:
    rng = np.random.default_rng(4)
    model, x = two_products(rng), rng.normal(size=(20, 8)).astype(np.float32)
    graph = model.graph
    for name in ("scale", "shift"):
        values = rng.normal(size=8).astype(np.float32)
        values[OUTLIER] *= 50
        graph.initializer.append(numpy_helper.from_array(values, name))
    node = helper.make_node(
        "LayerNormalization", ["x", "scale", "shift"], ["normal"], name="norm", axis=-1, epsilon=1e-5
    )
    graph.node.insert(0, node)
    graph.node[1].input[0] = graph.node[2].input[0] = "normal"
    before = run(model, {"x": x})
    smooth(model, largest_inputs(model, [{"x": x}]))
    onnx.checker.check_model(model, full_check=True)
    kinds = [each.op_type for each in graph.node]
    assert kinds.count("LayerNormalization") == 2 and kinds.count("Mul") == 1, "before the last product there is none"
    assert run(model, {"x": x}) == pytest.approx(before, rel=1e-3, abs=1e-3)
    after = largest_inputs(model, [{"x": x}])["normal_smoothed"]
    assert after[OUTLIER] < 5 * np.median(after)


@pytest.mark.parametrize(
    ("flags", "needed"),
    [({"sse2", "avx2", "avx512f"}, True), ({"sse2", "avx2", "avx_vnni"}, False), ({"asimd"}, False), (set(), False)],
    ids=["AVX-512 without VNNI", "VNNI", "Arm", "unknown"],
)
def test_weights_keep_to_seven_bits_where_sums_of_eight_would_overflow(
    flags: set[str], needed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quantise, "cpu_flags", lambda: frozenset(flags))
    assert quantise.seven_bits() is needed


def test_what_int8_is_calibrated_on_is_part_of_its_key() -> None:
    assert step_of("onnx-int8").settings["calibration"] == file_hash(CALIBRATION)


def forward(sign: float) -> Forward:
    """Logits made of the token ids, the same for the same window; with the other sign all answers are others."""

    def logits(windows: Windows) -> SpanLogits:
        found = sign * np.sin(windows.input_ids * 0.7 + np.arange(windows.seq_len)).astype(np.float32)
        return SpanLogits(found, found)

    return logits


def test_a_step_that_breaks_the_answers_fails_by_name_with_how_many(packed: Path) -> None:
    step = step_of("onnx-int8")
    assert compare_answers(step, forward(1), forward(1), packed, UNWATCHED) == 1
    with pytest.raises(AnswersError, match=r"'onnx-int8' changed 2\d\d of 294 answers on this machine.*90 %"):
        compare_answers(step, forward(1), forward(-1), packed, UNWATCHED)


def test_what_answers_otherwise_in_company_is_compared_question_by_question(packed: Path) -> None:
    together = list[int]()

    def counting(windows: Windows) -> SpanLogits:
        together.append(len(set(windows.query_index.tolist())))
        return forward(1)(windows)

    assert compare_answers(step_of("onnx-int8-dynamic"), forward(1), counting, packed, UNWATCHED) == 1
    assert set(together) == {1}


def test_comparing_answers_can_be_stopped(packed: Path) -> None:
    with pytest.raises(Cancelled):
        compare_answers(step_of("onnx-int8"), forward(1), forward(1), packed, Progress(stopped=lambda: True))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pruned-ort-int8", "pruned-ort-int8-dynamic"])
def test_int8_of_the_shipped_weights_says_how_often_it_keeps_their_answers(name: str, runtime: Runtime) -> None:
    backend = catalog.backend(name)
    made = read_manifest(runtime.make_ready(catalog.family("minilm"), backend, "cpu", UNWATCHED))
    assert made.precision == "INT8"
    assert step_of(backend.artefact).least_agreement <= (made.agreement or 0) < 1
    assert 0 < (made.largest_logit_difference or 0) <= step_of(backend.artefact).tolerance
