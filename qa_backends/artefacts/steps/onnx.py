"""Export: the checkpoint as an ONNX graph, with free batch and sequence sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qa_backends.artefacts.graph import FILE, precision_of, quiet
from qa_backends.artefacts.steps import CHECKPOINT, Making, Step
from qa_backends.checkpoints.admission import BYTES_PER_PARAMETER
from qa_backends.checkpoints.architectures import architecture_of
from qa_backends.checkpoints.load import load_model
from qa_backends.errors import ArtefactError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

OPSET = 17
MOST_BYTES = 2**31
"""Of a graph with its weights in one file: protobuf takes no more."""


def make(making: Making) -> None:
    """Attention is exported in its plain form, the one that ONNX Runtime's optimiser knows how to fuse.

    Raises:
        ArtefactError: the weights do not fit into a graph's file.
    """
    from optimum.exporters.onnx import onnx_export_from_model

    model = load_model(making.checkpoint, attention="eager")
    _tell_no_segments_apart(model)
    size = BYTES_PER_PARAMETER * sum(each.numel() for each in model.parameters())
    if size >= MOST_BYTES:
        raise ArtefactError(
            f"In FP32 the weights take {size / 1e9:.1f} GB, and a file of an ONNX graph holds {MOST_BYTES / 1e9:.1f}. "
            "Choose a backend of PyTorch, as baseline or baseline-amp."
        )
    with quiet():
        onnx_export_from_model(
            model, making.folder, opset=OPSET, task="question-answering", do_validation=False, do_constant_folding=True
        )
    (making.folder / "config.json").unlink(missing_ok=True)


def _tell_no_segments_apart(model: PreTrainedModel) -> None:
    """Of a model that knows one segment, in place, makes a second that is the same: its exported graph takes segments
    all the same, and is given those of its tokenizer."""
    from torch import nn

    if getattr(model.config, "type_vocab_size", 0) == 1:
        embeddings: Any = model.get_submodule(f"{architecture_of(model.config).base}embeddings")
        first = embeddings.token_type_embeddings.weight.data
        embeddings.token_type_embeddings = nn.Embedding(2, first.shape[1], _weight=first.repeat(2, 1))


STEP = Step(
    name="onnx",
    parent=CHECKPOINT,
    short="",
    label="ONNX",
    summary="exported",
    doing="exporting to ONNX",
    format="onnx",
    files=(FILE,),
    precision="FP32",
    tolerance=1e-4,
    packages=("torch", "transformers", "optimum", "onnx"),
    opened_by="onnxruntime",
    make=make,
    precision_of=precision_of,
    settings={"opset": OPSET},
)
