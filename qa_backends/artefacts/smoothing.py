"""SmoothQuant (Xiao et al. 2023): outlying channels of activations made smaller, their weights larger by as much.

One channel of a layer's input may be twenty times the others. With one scale for all, INT8 then leaves the others a few
steps. What a product computes stays the same where each channel is divided by a factor that its weights are multiplied
by; the factor shares the trouble between the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from qa_backends.limits import thread_count

if TYPE_CHECKING:
    from collections.abc import Iterable

    import onnx

    from qa_backends.contract import FloatArray

MIGRATION = 0.8
"""How much of the trouble goes over to the weights, from 0 to 1: the paper's alpha, which it has between 0.5 and 0.9,
the more the worse the outliers."""
LEAST = 1e-5
"""A channel that is never larger is left as it is."""


def products_of(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    """Products with constant weights, of the encoder: attention's own have none, and the output layer is too small to
    be worth what it would lose."""
    constants = {each.name: each.dims[-1] for each in model.graph.initializer if len(each.dims) == 2}
    return [each for each in model.graph.node if each.op_type == "MatMul" and constants.get(each.input[1], 0) > 2]


def largest_inputs(model: onnx.ModelProto, feeds: Iterable[dict[str, Any]]) -> dict[str, FloatArray]:
    """Of each product's input, the largest absolute value of every channel over all the feeds."""
    import onnx
    import onnxruntime

    names = list(dict.fromkeys(each.input[0] for each in products_of(model)))
    watched = onnx.ModelProto()
    watched.CopyFrom(model)
    watched.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in names)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = thread_count()
    session = onnxruntime.InferenceSession(watched.SerializeToString(), options, providers=["CPUExecutionProvider"])
    largest: dict[str, FloatArray] = {}
    for feed in feeds:
        for name, values in zip(names, session.run(names, feed), strict=True):
            found = np.abs(values).reshape(-1, values.shape[-1]).max(axis=0)
            largest[name] = np.maximum(largest.get(name, found), found)
    return largest


def smooth(model: onnx.ModelProto, largest: dict[str, FloatArray]) -> None:
    """Changes the model: each product's input is multiplied by channel, its weights hold the inverse."""
    from onnx import numpy_helper

    graph = model.graph
    weights = {each.name: each for each in graph.initializer}
    for products in _bound_together(products_of(model)):
        tensors = dict.fromkeys(each.input[0] for each in products)
        sharing = [weights[name] for name in dict.fromkeys(each.input[1] for each in products)]
        highest = np.max([largest[tensor] for tensor in tensors], axis=0)
        factors = factors_of(highest, [numpy_helper.to_array(each) for each in sharing])
        for weight in sharing:
            weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight) * factors[:, None], weight.name))
        for tensor in tensors:
            own = [each for each in products if each.input[0] == tensor]
            place = list(graph.node).index(own[0])  # a graph's nodes stand in the order they run
            for each in own:
                each.input[0] = f"{tensor}_smoothed"
            graph.node.insert(place, _multiplied(graph, tensor, np.float32(1) / factors))


def _multiplied(graph: onnx.GraphProto, tensor: str, by: FloatArray) -> onnx.NodeProto:
    """The node that makes ``<tensor>_smoothed`` of the tensor, its weights put into the graph.

    What a normalisation gives is normalised again, by weights that are multiplied already. OpenVINO 2026.4 sees that
    both do the same up to these, and does it once: the shipped pruned model takes 2 % less time.
    """
    from onnx import helper, numpy_helper

    def put(array: FloatArray, kind: str) -> str:
        weight = numpy_helper.from_array(array, f"{tensor}_{kind}")
        graph.initializer.append(weight)
        return str(weight.name)

    name = f"{tensor}_smoothed"
    made_by = next((each for each in graph.node if tensor in each.output), None)
    held = {each.name: each for each in graph.initializer}
    given, *weights = made_by.input if made_by else [tensor]  # of a normalisation, then scale and shift
    if made_by is None or made_by.op_type != "LayerNormalization" or not held.keys() >= set(weights):
        return helper.make_node("Mul", [tensor, put(by, "by_channel")], [name], name=name)
    scaled = [put(numpy_helper.to_array(held[each]) * by, f"{n}_by_channel") for n, each in enumerate(weights)]
    node = helper.make_node("LayerNormalization", [given, *scaled], [name], name=name)
    node.attribute.extend(made_by.attribute)
    return node


def _bound_together(products: list[onnx.NodeProto]) -> list[list[onnx.NodeProto]]:
    """The products in groups that must share their factors: by an input, or by weights, as all layers of ALBERT do."""
    groups: list[tuple[set[str], list[onnx.NodeProto]]] = []
    for each in products:
        names, together = set(each.input[:2]), [each]
        for group in [group for group in groups if group[0] & names]:
            groups.remove(group)
            names, together = names | group[0], [*group[1], *together]
        groups.append((names, together))
    return [together for _, together in groups]


def factors_of(largest: FloatArray, weights: list[FloatArray]) -> FloatArray:
    """What each channel is divided by: the paper's equation 4, for all products that share the input, whose weights are
    ``[in, out]``."""
    heaviest = np.max([np.abs(each).max(axis=1) for each in weights], axis=0)
    usable = (largest > LEAST) & (heaviest > LEAST)
    one, other = np.maximum(largest, LEAST) ** MIGRATION, np.maximum(heaviest, LEAST) ** (1 - MIGRATION)
    return np.where(usable, one / other, 1.0).astype(np.float32)
