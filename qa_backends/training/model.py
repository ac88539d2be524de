"""The model as it is trained: what of it learns, how it computes, and the loss that the labels make."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qa_backends.checkpoints.architectures import architecture_of
from qa_backends.checkpoints.load import load_model, read_config
from qa_backends.engines.torch_compile import compiler_errors
from qa_backends.training.settings import BF16

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    import torch
    from transformers import PreTrainedModel

    from qa_backends.training.data import Batch

    Logits = tuple[torch.Tensor, torch.Tensor]
    Hidden = tuple[torch.Tensor, ...]


def trainable(folder: Path, device: str, *, dropout: float = 0.0) -> PreTrainedModel:
    """The checkpoint's model in training mode; raises what ``load_model`` raises.

    By default it has no dropout: drawing its random numbers costs a CPU more time than the matrix products. It has
    plain attention: on CPUs the backward pass of that is quicker than the fused kernel's.
    """
    dropouts = architecture_of(read_config(folder)).dropouts
    model = load_model(folder, attention="eager", **dict.fromkeys(dropouts, dropout))
    model.to(device)  # type: ignore[arg-type]  # transformers' stub leaves out the device
    model.train()
    return model


def frozen(folder: Path, device: str) -> PreTrainedModel:
    """The checkpoint's model as it answers, to learn from; raises what ``load_model`` raises."""
    model = trainable(folder, device)
    model.train(mode=False)
    return model


def learned(model: PreTrainedModel, *, freeze_embeddings: bool = True) -> dict[str, torch.nn.Parameter]:
    """What is trained: everything, by default without the embedding tables.

    The tables are half of a small model's parameters, their gradients are slow to write, and pre-training has seen far
    more of each word than a question set shows.
    """
    for table in architecture_of(model.config).tables(model):
        table.weight.requires_grad = not freeze_embeddings
    return {name: each for name, each in model.named_parameters() if each.requires_grad}


def compiled(model: PreTrainedModel) -> Callable[..., Any]:
    """The model as one compiled graph for any batch shape: what lies between matrix products is fused."""
    import torch

    return torch.compile(model, dynamic=True)


def taking(model: PreTrainedModel) -> Callable[[Batch], dict[str, torch.Tensor]]:
    """What picks those of a batch's inputs that the model takes."""
    names = architecture_of(model.config).inputs(model)
    return lambda batch: {name: batch.inputs[name] for name in names if name in batch.inputs}


def computing(device: str, precision: str) -> torch.autocast:
    """What products are computed under, at one of ``settings.PRECISIONS``."""
    import torch

    return torch.autocast(device, torch.bfloat16, enabled=precision == BF16)


def runner(model: PreTrainedModel, device: str, precision: str, *, compiling: bool = True) -> Callable[[Batch], Logits]:
    """The model's start and end logits ``[n, seq_len]`` of a batch, computed at the precision."""
    forward, inputs_of = compiled(model) if compiling else model, taking(model)

    def run(batch: Batch) -> Logits:
        with compiler_errors(), computing(device, precision):
            out = forward(**inputs_of(batch))
        return out.start_logits, out.end_logits

    return run


def showing(model: PreTrainedModel, device: str, precision: str) -> Callable[[Batch], tuple[Logits, Hidden]]:
    """As ``runner``, with the hidden states ``[n, seq_len, hidden]``: the embeddings', and those behind every layer."""
    forward, inputs_of = compiled(model), taking(model)

    def run(batch: Batch) -> tuple[Logits, Hidden]:
        with compiler_errors(), computing(device, precision):
            out = forward(**inputs_of(batch), output_hidden_states=True)
        return (out.start_logits, out.end_logits), out.hidden_states

    return run


def span_loss(logits: Logits, batch: Batch) -> torch.Tensor:
    """Mean cross-entropy of the two positions, mean of windows; logits are ``[n, seq_len]``."""
    return span_losses(logits, batch).mean()


def span_losses(logits: Logits, batch: Batch) -> torch.Tensor:
    """Mean cross-entropy of the two positions, ``[n]``; logits are ``[n, seq_len]``."""
    from torch.nn.functional import cross_entropy

    start, end = (
        cross_entropy(each.float(), labels, reduction="none")
        for each, labels in zip(logits, (batch.start, batch.end), strict=True)
    )
    return (start + end) / 2
