"""Quantisation-aware training: a checkpoint is trained on while it computes as INT8 does, and so learns weights that
lose little when they are rounded, see ``rounded``. It is a checkpoint like any other, for every engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qa_backends.artefacts.texts import calibration_windows
from qa_backends.checkpoints.architectures import architecture_of
from qa_backends.checkpoints.load import save_model
from qa_backends.checkpoints.manifest import file_hash
from qa_backends.training.material import Material
from qa_backends.training.model import learned, runner, trainable
from qa_backends.training.provenance import check_layers_known, weights_of
from qa_backends.training.rounded import round_products

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import torch
    from transformers import PreTrainedModel

    from qa_backends.squad import Question
    from qa_backends.training.loop import OnStep
    from qa_backends.training.settings import RunSettings
    from qa_backends.training.teaching import Teaching


def quantise(
    questions: Sequence[Question], *, start: Path, teaching: Teaching, run: RunSettings, on_step: OnStep
) -> Path:
    """Trains ``start`` on, by the teacher's logits, and writes the checkpoint to ``model`` in the run's folder, which
    is returned.

    Raises:
        InputError: the folder holds a run with other settings, or ``start`` no weights, another tokenizer than the
            teacher or layers that are not known; the file of logits is not of these questions, or they change.
        QAError: a checkpoint cannot be read, or the teacher's logits cannot be computed as was asked.
    """
    import torch

    check_layers_known(start)
    start_hash = file_hash(weights_of(start))
    teaching.check(start, run.changes)
    material = Material(questions, start, run, on_step)
    material.claim(start=start_hash, **teaching.facts())
    teacher = material.teacher(teaching)
    model = trainable(start, run.device, dropout=run.dropout)
    parameters = learned(model, freeze_embeddings=run.freeze_embeddings)
    round_products(model, calibration_of(start, model))
    logits_of = runner(model, run.device, run.precision)
    material.train(parameters, lambda batch, _step: teacher.loss(logits_of(batch), batch), run.folder)
    save_model(model, run.folder / "model", tokenizer_from=start, dtype=torch.float32)
    return run.folder / "model"


def calibration_of(start: Path, model: PreTrainedModel) -> Iterator[dict[str, torch.Tensor]]:
    """What INT8 is calibrated on, as the model takes it."""
    import torch

    names = architecture_of(model.config).inputs(model)
    for window in calibration_windows(start):
        yield {name: torch.from_numpy(each).to(model.device) for name, each in window.inputs(names).items()}
