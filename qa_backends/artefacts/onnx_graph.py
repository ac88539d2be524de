"""What is done to an ONNX graph: export, fuse, store as FP16, read back as FP32. Each is a file or model to another."""

from __future__ import annotations

import logging
import warnings
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from qa_backends.artefacts.checkpoint import load_model, read_config
from qa_backends.errors import ArtefactError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import onnx

OPSET = 17
FUSED_DOMAIN = "com.microsoft"
FUSED_OPS = ("EmbedLayerNormalization", "Attention", "SkipLayerNormalization", "BiasGelu")


def export(checkpoint: Path, folder: Path) -> None:
    """The checkpoint as ``model.onnx``, with free batch and sequence sizes.

    Attention is exported in its plain form, the one ONNX Runtime's optimiser knows how to fuse.
    """
    from optimum.exporters.onnx import onnx_export_from_model

    model = load_model(checkpoint, attention="eager")
    with _quiet():
        onnx_export_from_model(
            model, folder, opset=OPSET, task="question-answering", do_validation=False, do_constant_folding=True
        )
    (folder / "config.json").unlink(missing_ok=True)


def fuse(parent: Path, folder: Path, checkpoint: Path) -> None:
    """``model.onnx`` with embedding, attention, residual and GELU each as one operator.

    Raises:
        ArtefactError: some part of the graph was not recognised, so that the result would be "optimised" in name only.
    """
    import onnx
    from onnxruntime.transformers.optimizer import optimize_model

    with _quiet():
        optimised = optimize_model(str(parent / "model.onnx"), model_type="bert", opt_level=0)
    counts = count_fused(optimised.model)
    expected = expected_fusions(int(read_config(checkpoint)["num_hidden_layers"]))
    if counts != expected:
        raise ArtefactError(
            f"The step 'fuse' made {counts} of the graph, where {expected} was expected; nothing was kept. "
            "Install the pinned versions: pip install -r requirements.txt"
        )
    if all(each.domain != FUSED_DOMAIN for each in optimised.model.opset_import):
        optimised.model.opset_import.append(onnx.helper.make_opsetid(FUSED_DOMAIN, 1))
    onnx.save(optimised.model, folder / "model.onnx")


def to_fp16(parent: Path, folder: Path) -> None:
    """``model.onnx`` with weights and arithmetic in FP16; inputs stay int64 and outputs float32."""
    import onnx
    from onnxruntime.transformers.onnx_model import OnnxModel

    with _quiet():
        model = OnnxModel(onnx.load(parent / "model.onnx"))
        model.convert_float_to_float16(keep_io_types=True)
    onnx.save(model.model, folder / "model.onnx")


def upcast(model: onnx.ModelProto) -> onnx.ModelProto:
    """An FP16 graph computing in FP32 on the same, rounded weights; changes and returns ``model``.

    CPUs have no FP16 arithmetic worth the name in ONNX Runtime: it would cast before and after every operator.
    """
    from onnx import TensorProto, numpy_helper

    for weight in model.graph.initializer:
        if weight.data_type == TensorProto.FLOAT16:
            weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight).astype(np.float32), weight.name))
    for node in model.graph.node:
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT16:
                attribute.i = TensorProto.FLOAT
            if attribute.HasField("t") and attribute.t.data_type == TensorProto.FLOAT16:
                attribute.t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(attribute.t).astype(np.float32)))
    for value in (*model.graph.value_info, *model.graph.input, *model.graph.output):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT16:
            value.type.tensor_type.elem_type = TensorProto.FLOAT
    return model


def count_fused(model: onnx.ModelProto) -> dict[str, int]:
    """How often each operator of ``FUSED_OPS`` occurs."""
    counts = Counter(node.op_type for node in model.graph.node)
    return {name: counts[name] for name in FUSED_OPS}


def expected_fusions(layers: int) -> dict[str, int]:
    """What a BERT of so many layers consists of when all of it was fused."""
    return dict(zip(FUSED_OPS, (1, layers, 2 * layers, layers), strict=True))


@contextmanager
def _quiet() -> Iterator[None]:
    """Silences exporters that warn of what is checked afterwards anyway: fused counts and logits."""
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
