"""A student of fewer layers, in two steps: first it computes what the teacher's layers compute, then it answers alike.

It begins as some of the fine-tuned teacher's layers (Sanh et al. 2019), is taught the hidden states behind them (Jiao
et al. 2020), and then the teacher's logits, see ``distil``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qa_backends.checkpoints.architectures import architecture_of
from qa_backends.checkpoints.files import WEIGHTS
from qa_backends.checkpoints.load import read_config, save_model
from qa_backends.checkpoints.packing import keep_layers
from qa_backends.errors import InputError
from qa_backends.training.distil import hidden_loss
from qa_backends.training.material import Material
from qa_backends.training.model import frozen, learned, runner, showing, span_loss, trainable
from qa_backends.training.provenance import check_layers_known

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import torch
    from transformers import PreTrainedModel

    from qa_backends.squad import Question
    from qa_backends.training.data import Batch
    from qa_backends.training.loop import OnStep
    from qa_backends.training.settings import RunSettings
    from qa_backends.training.teaching import Teaching

    LossOf = Callable[[PreTrainedModel], Callable[[Batch, int], torch.Tensor]]

HIDDEN, LOGITS, LABELS = "hidden", "logits", "labels"
"""Folders of the steps, within the run's."""


class Distilling:
    """One run; stopped, it goes on where it was, and changed, it needs another folder.

    ``layers`` are those of the teacher's, from 0, that the student begins as. ``hidden_passes`` of the run's passes
    teach hidden states, the others logits. ``by_labels`` trains the same student as long on the labels alone: what the
    teacher is worth is seen beside that.
    """

    def __init__(
        self,
        questions: Sequence[Question],
        *,
        teaching: Teaching,
        layers: Sequence[int],
        hidden_passes: float,
        run: RunSettings,
        on_step: OnStep,
        by_labels: bool = False,
    ) -> None:
        """Raises:
        InputError: the folder holds a run with other settings, or passes and layers make no student; the file of logits
            is not of these questions, or they change.
        QAError: the teacher is no checkpoint that can be read, or its logits cannot be computed as was asked.
        """
        if not 0 < hidden_passes < run.passes:
            raise InputError("Both steps take some of the passes: --hidden-passes is above 0 and below --passes.")
        check_layers_known(teaching.checkpoint)
        teaching.check(teaching.checkpoint, run.changes)
        self._teacher, self._layers = teaching.checkpoint, tuple(layers)
        there = int(read_config(self._teacher)["num_hidden_layers"])
        if not layers or len(set(layers) & set(range(there))) < len(layers):
            raise InputError(f"The teacher has layers 0 to {there - 1}. Name some of them, each once, as in 1,3,5.")
        self._by_labels, self._run = by_labels, run
        self._material = Material(questions, self._teacher, run, on_step)
        self._hidden_steps = self._material.steps_of(hidden_passes)
        self._material.claim(
            **teaching.facts(), layers=list(layers), hidden_steps=self._hidden_steps, by_labels=by_labels
        )
        self._taught = None if by_labels else self._material.teacher(teaching)

    def run(self) -> Path:
        """Trains the student and returns its checkpoint's folder."""
        student = self._student()
        if self._by_labels:
            return self._step(LABELS, student, self._by_the_labels, 0, self._material.steps)
        if not self._made(HIDDEN):
            self._step(HIDDEN, student, self._by_hidden_states, 0, self._hidden_steps)
        start = trainable(self._run.folder / HIDDEN / "model", self._run.device, dropout=self._run.dropout)
        return self._step(LOGITS, start, self._by_logits, self._hidden_steps, self._material.steps)

    def _made(self, step: str) -> bool:
        return (self._run.folder / step / "model" / WEIGHTS).is_file()

    def _student(self) -> PreTrainedModel:
        model = trainable(self._teacher, self._run.device, dropout=self._run.dropout)
        keep_layers(model, self._layers)
        return model

    def _step(self, name: str, student: PreTrainedModel, loss_of: LossOf, first: int, last: int) -> Path:
        """Trains the student on the batches ``first`` to ``last``, writes it to the step's folder and returns that."""
        import torch

        folder = self._run.folder / name
        parameters = learned(student, freeze_embeddings=self._run.freeze_embeddings)
        if name == HIDDEN:  # which the output layer has no part in
            head = architecture_of(student.config).head
            parameters = {key: each for key, each in parameters.items() if not key.startswith(head)}
        torch.compiler.reset()
        self._material.train(parameters, loss_of(student), folder, begins=first, end=last)
        save_model(student, folder / "model", tokenizer_from=self._teacher, dtype=torch.float32)
        return folder / "model"

    def _by_the_labels(self, student: PreTrainedModel) -> Callable[[Batch, int], torch.Tensor]:
        logits_of = runner(student, self._run.device, self._run.precision)
        return lambda batch, _step: span_loss(logits_of(batch), batch)

    def _by_logits(self, student: PreTrainedModel) -> Callable[[Batch, int], torch.Tensor]:
        assert self._taught is not None, "there is a teacher unless labels teach"
        teacher, logits_of = self._taught, runner(student, self._run.device, self._run.precision)
        return lambda batch, _step: teacher.loss(logits_of(batch), batch)

    def _by_hidden_states(self, student: PreTrainedModel) -> Callable[[Batch, int], torch.Tensor]:
        import torch

        teacher = frozen(self._teacher, self._run.device)
        shown, asked = (showing(each, self._run.device, self._run.precision) for each in (teacher, student))

        def loss_of(batch: Batch, _step: int) -> torch.Tensor:
            with torch.no_grad():
                _, wanted = shown(batch)
            _, found = asked(batch)
            return hidden_loss(found[1:], [wanted[layer + 1] for layer in self._layers], batch)

        return loss_of
