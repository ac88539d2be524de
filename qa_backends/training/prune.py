"""Prune whole attention heads and FFN columns, with the fine-tuned model as teacher.

What goes are the heads and columns whose removal would change the loss least, by the squared gradient of a gate on each
(Michel et al. 2019; Theis et al. 2018), in stages with training between, the model smaller after each stage. What is
kept fits a number of parameters, or the milliseconds of a ``latency`` table.

What is left is trained to repeat the teacher's logits, see ``distil``; it can first be taught the hidden states behind
the teacher's layers too, as those of CoFi are (Xia et al. 2022).
"""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import TYPE_CHECKING

from qa_backends.checkpoints.architectures import architecture_of
from qa_backends.checkpoints.files import WEIGHTS
from qa_backends.checkpoints.load import read_config, save_model
from qa_backends.checkpoints.manifest import file_hash
from qa_backends.errors import InputError
from qa_backends.training.distil import hidden_loss, logits_loss
from qa_backends.training.gates import Gates, choose, cut_down, drop_emptied, encoder_parameters, layer_costs
from qa_backends.training.latency import choose_by_time
from qa_backends.training.material import Material
from qa_backends.training.model import frozen, learned, runner, showing, trainable
from qa_backends.training.provenance import check_layers_known, weights_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import torch
    from transformers import PreTrainedModel

    from qa_backends.squad import Question
    from qa_backends.training.data import Batch
    from qa_backends.training.latency import LatencyTable
    from qa_backends.training.loop import Loss, OnStep
    from qa_backends.training.settings import RunSettings
    from qa_backends.training.teaching import Teaching

STAGES = ((0.75, 0.1), (0.55, 0.15), (0.35, 0.15))
"""Stages before the last: the density to cut to, and the share of the steps that follow it. The
last stage cuts to the target and takes the steps that are left."""
WORTH_A_STAGE = 0.9
"""A stage cuts to this share of what there is, or less."""
IMPORTANCE_BATCHES = 64


class Pruning:
    """One pruning run; stopped, it goes on where it was, and changed, it needs another folder.

    ``density`` is the share of the teacher's encoder to keep: of its parameters or, with a ``latency`` table, of the
    time it takes. ``start`` is the checkpoint that is pruned, by default the teacher. Stages that would
    leave nearly all of it are left out; the last one always trains it on. In its first ``hidden_passes`` the teacher's
    hidden states are taught beside its logits, both by PyTorch; without these, layers that lost all they had go.
    """

    def __init__(
        self,
        questions: Sequence[Question],
        *,
        teaching: Teaching,
        density: float,
        run: RunSettings,
        on_step: OnStep,
        start: Path | None = None,
        latency: LatencyTable | None = None,
        hidden_passes: float = 0.0,
    ) -> None:
        """Loads the teacher.

        Raises:
            InputError: the folder holds a run with other settings, or ``start`` no checkpoint; the file of logits is
                not of these questions, or they change; the latency table is of another size of model; ``start`` has
                another tokenizer than the teacher or, where it shall learn hidden states, other layers; or these are to
                be learned for longer than the last stage.
            ArtefactError: the teacher is no checkpoint that can be read.
            QAError: its logits cannot be computed as was asked.
        """
        self.teacher = teaching.checkpoint
        check_layers_known(self.teacher)
        self.start = start or self.teacher
        weights_of(self.start)
        teaching.check(self.start, run.changes)
        self.density = density
        self._latency = latency
        self._run = run
        self._several = bool(teaching.others)
        self._material = Material(questions, self.teacher, run, on_step)
        self._hidden_steps = self._material.steps_of(hidden_passes) if hidden_passes else 0
        self._check()
        self._material.claim(
            **teaching.facts(),
            start=file_hash(self.start / WEIGHTS),
            density=density,
            latency=latency.hash if latency else None,
            hidden_steps=self._hidden_steps,
        )
        self._teacher = self._material.teacher(teaching)

    def _check(self) -> None:
        """Raises InputError where the models do not go together, or the latency table is not of their size."""
        config = read_config(self.teacher)
        if self._latency:
            self._latency.check(config)
        if not self._hidden_steps:
            return
        sizes = [(each["num_hidden_layers"], each["hidden_size"]) for each in (config, read_config(self.start))]
        if sizes[0] != sizes[1]:
            of, at = ("{} layers of {} values a token".format(*each) for each in sizes)
            raise InputError(
                f"The teacher has {of}, and {self.start} {at}: their hidden states are not alike. Leave out "
                "--hidden-passes."
            )
        *_, (_, begins, end) = self._stages
        if self._hidden_steps > end - begins:
            most = self._run.passes * (end - begins) / self._material.steps
            raise InputError(f"After the last cut come {most:.2g} passes. Choose fewer --hidden-passes.")

    def run(self) -> Path:
        """Prunes and returns the folder of the packed checkpoint."""
        before = self.start
        for number, (density, begins, end) in enumerate(self._stages):
            stage = self._run.folder / f"stage-{number}"
            if not (stage / "model" / WEIGHTS).is_file():
                self._stage(before, stage, density, begins, end)
            before = stage / "model"
        return before

    @cached_property
    def _stages(self) -> list[tuple[float, int, int]]:
        """The density that each stage cuts to, and the steps that follow it: from the one to before the other."""
        now = self._density_of(self._model(self.start))
        stages = [each for each in STAGES if self.density < each[0] < WORTH_A_STAGE * now]
        densities = [*(density for density, _ in stages), self.density]
        ends = [round(self._material.steps * each) for each in itertools.accumulate(share for _, share in stages)]
        return list(zip(densities, [0, *ends], [*ends, self._material.steps], strict=True))

    def _density_of(self, model: PreTrainedModel) -> float:
        """The share that the model is of the teacher's encoder, of its time or of its parameters."""
        if self._latency:
            blocks = architecture_of(model.config).blocks(model)
            return self._latency.of_model([(each.heads, each.up.out_features) for each in blocks])
        return encoder_parameters(model) / self._whole

    @cached_property
    def _whole(self) -> int:
        """Parameters of the teacher's encoder."""
        return encoder_parameters(self._model(self.teacher))

    def _stage(self, before: Path, stage: Path, density: float, begins: int, end: int) -> None:
        """Cuts the model down to ``density`` and trains what is left on the run's batches ``begins`` to ``end``."""
        import torch

        if not (stage / "cut" / WEIGHTS).is_file():
            model = self._model(before)
            self._cut(model, density, begins)
            save_model(model, stage / "cut", tokenizer_from=self.teacher, dtype=torch.float32)
        model = self._model(stage / "cut")
        torch.compiler.reset()  # the graph compiled for the last stage has other shapes
        hidden = self._hidden_steps if end == self._material.steps else 0
        self._material.train(self._learned(model), self._loss_of(model, hidden), stage, begins=begins, end=end)
        save_model(model, stage / "model", tokenizer_from=self.teacher, dtype=torch.float32)

    def _loss_of(self, model: PreTrainedModel, hidden_steps: int) -> Loss:
        """By the teacher's logits, and in the first steps by the hidden states behind its layers too."""
        import torch

        logits_of = runner(model, self._run.device, self._run.precision)
        if not hidden_steps:
            return lambda batch, _step: self._teacher.loss(logits_of(batch), batch)
        teacher = frozen(self.teacher, self._run.device)
        wanted, shown = (showing(each, self._run.device, self._run.precision) for each in (teacher, model))

        def loss_of(batch: Batch, step: int) -> torch.Tensor:
            if step >= hidden_steps:
                return self._teacher.loss(logits_of(batch), batch)
            with torch.no_grad():
                right, states = wanted(batch)
            logits, own = shown(batch)
            if self._several:  # whose mean is taught, of which the first's own are a part
                right = self._teacher.logits(batch)
            return logits_loss(logits, right, batch) + hidden_loss(own[1:], states[1:], batch)

        return loss_of

    def _cut(self, model: PreTrainedModel, density: float, step: int) -> None:
        """Cuts the model down, before the run's step of that number."""
        heads, columns = self._importance(model, step)
        if self._latency:
            cut_down(model, *choose_by_time(heads, columns, self._latency, density))
        else:
            keep = round(density * self._whole)
            cut_down(model, *choose(heads, columns, layer_costs(model), encoder_parameters(model) - keep))
        if not self._hidden_steps:  # which compare layer by layer
            drop_emptied(model)

    def _importance(self, model: PreTrainedModel, step: int) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Of each gate, the sum over batches of the squared gradient of the batch's mean loss. It has no unit, and is
        there to compare gates by: the larger, the more closing the gate is likely to add to the loss."""
        import torch

        model.train(mode=False)  # with dropout, gates would be judged by chance
        gates = Gates(model)
        tensors = [*gates.heads, *gates.columns]
        sums = [torch.zeros_like(each) for each in tensors]
        for each in tensors:
            each.requires_grad_()
        logits_of = runner(model, self._run.device, self._run.precision, compiling=False)
        doing = "finding what matters least"
        for batch in self._material.looked_at(IMPORTANCE_BATCHES, before=step, doing=doing):
            loss = self._teacher.loss(logits_of(batch), batch)
            found = torch.autograd.grad(loss, tensors, materialize_grads=True)  # some layers may have no gates left
            for total, gradient in zip(sums, found, strict=True):
                total += gradient.square()
        gates.remove()
        return sums[: len(gates.heads)], sums[len(gates.heads) :]

    def _model(self, folder: Path) -> PreTrainedModel:
        return trainable(folder, self._run.device, dropout=self._run.dropout)

    def _learned(self, model: PreTrainedModel) -> dict[str, torch.nn.Parameter]:
        return learned(model, freeze_embeddings=self._run.freeze_embeddings)
