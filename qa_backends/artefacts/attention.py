"""Attention's own product, of queries with keys, in INT8.

That of probabilities with values stays as it is: over a long text most probabilities are less than one of 255 steps,
and would be lost (2 F1 on other texts, of the shipped pruned model). On an x86 processor without the instructions for
sums of 8 bits neither is rounded: OpenVINO would take longer (5 % at 128 and at 384 tokens, of that model, held to AVX2
on an AMD EPYC; it takes 10 % less at 384 with them). On an Intel with AMX OpenVINO takes 3 to 9 % less by it where the
rest is in FP32, and 2 to 4 % more where that is in BF16: one graph serves both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    import onnx

BETWEEN = frozenset({"Add", "Div", "Mul", "Where"})
"""What stands between the product and the softmax: it is scaled and masked."""


def attention_products(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    """Products of two computed sides that are scaled and masked at most, and then go into a softmax."""
    made_by = {name: each for each in model.graph.node for name in each.output}
    found: dict[str, onnx.NodeProto] = {}
    waiting = [each.input[0] for each in model.graph.node if each.op_type == "Softmax"]
    while waiting:
        node = made_by.get(waiting.pop())
        if node is not None and node.op_type in BETWEEN:
            waiting += node.input
        elif node is not None and node.op_type == "MatMul" and all(name in made_by for name in node.input):
            found[node.name] = node
    return list(found.values())


def signs_of(products: Iterable[onnx.NodeProto]) -> dict[str, list[dict[str, Any]]]:
    """What ``quantize_static`` shall do with both sides, by the name of the tensor: signed and around zero, which
    OpenVINO 2026.4 multiplies within the kernel that the rest of attention is in."""
    from onnxruntime.quantization import QuantType

    sides = dict.fromkeys(name for each in products for name in each.input)
    return {name: [{"quant_type": QuantType.QInt8, "symmetric": True}] for name in sides}
