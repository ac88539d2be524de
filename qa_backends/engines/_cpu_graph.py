"""A fused graph as a CPU computes it best: in FP32 whatever it is stored in, and without one of the fused operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import onnx

    from qa_backends.checkpoints.manifest import Manifest

SLOW = "SkipLayerNormalization"
"""On a CPU this operator takes longer than the two additions and the normalisation that it stands for: the pruned model
took 16.2 ms at 384 tokens with it and 14.0 ms without (ONNX Runtime 1.31; AMD EPYC,
2 cores: timed on no other processor)."""
EPSILON = 1e-12
"""The operator's, where it names none."""
AS_IT_STANDS = {"optimization.disable_specified_optimizers": "SkipLayerNormFusion"}
"""For the session's configuration, as in the runner: else ONNX Runtime would make that operator anew when it loads the
graph."""


def suits(manifest: Manifest) -> bool:
    """Whether the graph is as well for a CPU as it is built."""
    return manifest.precision != "FP16" and not any(manifest.fused_ops.values())


def for_cpu(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same answers from operators that suit a CPU; changes and returns ``model``."""
    return split_slow(upcast(model))


def split_slow(model: onnx.ModelProto) -> onnx.ModelProto:
    """Each ``SLOW`` as the additions and the normalisation that it was; changes and returns ``model``."""
    nodes: list[onnx.NodeProto] = []
    for node in model.graph.node:
        nodes += _apart(node) if node.op_type == SLOW and len(node.output) == 1 else [node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


def _apart(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """Inputs are what goes in, what is added to it, scale and, where there are any, shift and a bias on what goes in
    (ONNX Runtime's documentation, Contrib Operators)."""
    from onnx import helper

    given, skip, scale, shift, bias = [*node.input, "", ""][:5]
    (out,), nodes = node.output, []
    for number, added in enumerate(filter(None, (bias, skip))):
        total = f"{out}_sum_{number}"
        nodes.append(helper.make_node("Add", [given, added], [total]))
        given = total
    epsilon = next((each.f for each in node.attribute if each.name == "epsilon"), EPSILON)
    weights = list(filter(None, (scale, shift)))
    return [*nodes, helper.make_node("LayerNormalization", [given, *weights], [out], axis=-1, epsilon=epsilon)]


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
