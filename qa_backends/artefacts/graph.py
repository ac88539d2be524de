"""What steps on ONNX graphs share: reading off a graph what it holds, and keeping exporters quiet."""

from __future__ import annotations

import logging
import math
import threading
import warnings
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from qa_backends.errors import ArtefactError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import onnx

FILE = "model.onnx"
FUSED_DOMAIN = "com.microsoft"
OURS, WITH_HANDLERS = "qa_backends", ("optimum", "transformers")
"""What our own loggers' names begin with; exporters whose log does not go by the root's handlers."""
FUSED_OPS = ("EmbedLayerNormalization", "Attention", "SkipLayerNormalization", "BiasGelu")


def read_graph(folder: Path) -> onnx.ModelProto:
    """Raises ArtefactError where the folder holds no ONNX graph."""
    import onnx
    from google.protobuf.message import DecodeError

    try:
        return onnx.load(folder / FILE)
    except (OSError, DecodeError) as error:
        raise ArtefactError(f"{folder / FILE} cannot be read ({error}). Build the artefact again.") from error


def precision_of(folder: Path) -> str:
    """The precision that most of the graph's weights are stored in: "FP32", "FP16", "BF16" or "INT8"."""
    from onnx import TensorProto

    names = {
        TensorProto.FLOAT: "FP32",
        TensorProto.FLOAT16: "FP16",
        TensorProto.BFLOAT16: "BF16",
        TensorProto.INT8: "INT8",
        TensorProto.UINT8: "INT8",
    }
    sizes: Counter[str] = Counter()
    for weight in read_graph(folder).graph.initializer:
        if weight.data_type in names and "embeddings" not in weight.name:
            sizes[names[weight.data_type]] += math.prod(weight.dims)
    return sizes.most_common(1)[0][0]


def fused_in(folder: Path) -> dict[str, int]:
    """How often each operator of ``FUSED_OPS`` occurs in the graph."""
    return count_fused(read_graph(folder))


def count_fused(model: onnx.ModelProto) -> dict[str, int]:
    counts = Counter(node.op_type for node in model.graph.node)
    return {name: counts[name] for name in FUSED_OPS}


@contextmanager
def quiet() -> Iterator[None]:
    """Silences exporters that warn of what is checked afterwards anyway, fused counts and logits; others, as a server
    that answers meanwhile, are heard."""
    builder = threading.get_ident()

    def heard(record: logging.LogRecord) -> bool:
        ours = record.thread != builder or record.name.startswith(OURS)
        return ours or record.levelno >= logging.ERROR

    handlers = [each for name in (None, *WITH_HANDLERS) for each in logging.getLogger(name).handlers]
    handlers += [logging.lastResort] if logging.lastResort else []
    for each in handlers:
        each.addFilter(heard)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for each in handlers:
            each.removeFilter(heard)
