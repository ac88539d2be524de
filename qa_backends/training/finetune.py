"""Fine-tune an encoder to find answer spans (Devlin et al. 2019, section 4.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qa_backends.artefacts.checkpoint import load_model, save_model
from qa_backends.reader.tokens import WordPieces
from qa_backends.training.data import epoch_order, examples, stream
from qa_backends.training.loop import train

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import torch
    from transformers import BertForQuestionAnswering

    from qa_backends.squad import Question
    from qa_backends.training.data import Batch, Example
    from qa_backends.training.loop import Plan, Progress

    Logits = tuple[torch.Tensor, torch.Tensor]


def span_loss(start: torch.Tensor, end: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Mean cross-entropy of the two positions; logits are ``[n, seq_len]``."""
    from torch.nn.functional import cross_entropy

    return (cross_entropy(start.float(), batch.start) + cross_entropy(end.float(), batch.end)) / 2


def learned(model: BertForQuestionAnswering) -> dict[str, torch.nn.Parameter]:
    """What is trained: everything but the embedding tables.

    The tables are half of a small model's parameters, their gradients are slow to write, and pre-training has seen far
    more of each word than a question set shows.
    """
    for table in (model.bert.embeddings.word_embeddings, model.bert.embeddings.position_embeddings):
        table.weight.requires_grad = False
    return {name: each for name, each in model.named_parameters() if each.requires_grad}


def compiled(model: BertForQuestionAnswering) -> BertForQuestionAnswering:
    """The model as one compiled graph for any batch shape: what lies between matrix products is fused."""
    import torch

    return torch.compile(model, dynamic=True)  # type: ignore[return-value]


def trainable(folder: Path, device: str) -> BertForQuestionAnswering:
    """The model as it is trained.

    No dropout: drawing its random numbers costs a CPU more time than the matrix products. Plain attention: on CPUs its
    backward pass is quicker than that of the fused kernel.
    """
    model = load_model(folder, attention="eager", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    return model.to(device).train()  # type: ignore[arg-type]


def runner(model: BertForQuestionAnswering, device: str) -> Callable[[Batch], Logits]:
    """The model's start and end logits ``[n, seq_len]`` of a batch, computed under bfloat16 autocast."""
    import torch

    def run(batch: Batch) -> Logits:
        with torch.autocast(device, torch.bfloat16):
            out = model(**batch.inputs)
        return out.start_logits, out.end_logits

    return run


def finetune(questions: Sequence[Question], *, start_from: Path, plan: Plan, progress: Progress) -> Path:
    """Trains on the questions and writes the checkpoint to ``model`` in the plan's folder, which is returned.

    Raises:
        InputError: the folder holds a run with other settings.
        ArtefactError: ``start_from`` is no BERT checkpoint.
    """
    import torch

    torch.manual_seed(plan.seed)
    model = trainable(start_from, plan.device)
    words = WordPieces(start_from)
    data = examples(questions, words)
    recipe = plan.recipe(steps_of(data, plan))
    run = runner(compiled(model), plan.device)

    def loss_of(batch: Batch, _step: int) -> torch.Tensor:
        batch = batch.to(plan.device)
        return span_loss(*run(batch), batch)

    train(
        learned(model),
        loss_of,
        lambda skip: stream(data, words, max_tokens=plan.max_tokens, seed=plan.seed, steps=recipe.steps, skip=skip),
        recipe,
        plan.folder,
        progress,
    )
    save_model(model, plan.folder / "model", tokenizer_from=start_from, dtype=torch.float16)
    return plan.folder / "model"


def steps_of(data: Sequence[Example], plan: Plan) -> int:
    """Steps that so many passes take."""
    return round(
        len(epoch_order([len(each) for each in data], max_tokens=plan.max_tokens, seed=plan.seed)) * plan.passes
    )
