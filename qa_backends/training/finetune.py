"""Fine-tune an encoder, or a checkpoint further, to find answer spans (Devlin et al. 2019, section 4.3).

By the labels, or by teachers as large as itself, which a student may surpass (Furlanello et al. 2018).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qa_backends.checkpoints.load import save_model
from qa_backends.checkpoints.manifest import file_hash
from qa_backends.training.material import Material
from qa_backends.training.model import learned, runner, span_loss, trainable
from qa_backends.training.provenance import weights_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import torch

    from qa_backends.squad import Question
    from qa_backends.training.data import Batch
    from qa_backends.training.loop import OnStep
    from qa_backends.training.settings import RunSettings
    from qa_backends.training.teaching import Teaching


def finetune(
    questions: Sequence[Question],
    *,
    start_from: Path,
    run: RunSettings,
    on_step: OnStep,
    teaching: Teaching | None = None,
) -> Path:
    """Trains on the questions and writes the checkpoint to ``model`` in the run's folder, which is returned.

    An encoder gets a fresh output layer; a checkpoint that was fine-tuned before keeps its own.

    Raises:
        InputError: the folder holds a run with other settings, or ``start_from`` no weights; or see ``Teaching.check``.
        ArtefactError: ``start_from`` is no checkpoint that can be read.
        QAError: the teachers' logits cannot be computed as was asked.
    """
    import torch

    start = file_hash(weights_of(start_from))
    if teaching:
        teaching.check(start_from, run.changes)
    material = Material(questions, start_from, run, on_step)
    material.claim(start=start, **(teaching.facts() if teaching else {}))
    loss = material.teacher(teaching).loss if teaching else span_loss
    torch.manual_seed(run.seed)  # for a fresh output layer, whatever a teacher's build has drawn
    model = trainable(start_from, run.device, dropout=run.dropout)
    logits_of = runner(model, run.device, run.precision)

    def loss_of(batch: Batch, _step: int) -> torch.Tensor:
        return loss(logits_of(batch), batch)

    material.train(learned(model, freeze_embeddings=run.freeze_embeddings), loss_of, run.folder)
    save_model(model, run.folder / "model", tokenizer_from=start_from, dtype=torch.float16)
    return run.folder / "model"
