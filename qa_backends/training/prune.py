"""Prune whole attention heads and FFN columns, with the fine-tuned model as teacher.

Two ways to decide what goes:

- ``importance``: heads and columns whose removal would change the loss least, by the squared gradient of a gate on each
  (Michel et al. 2019; Theis et al. 2018), removed in stages with training between, the model smaller after each stage.
- ``movement``: a score for each head and column is learned along with the weights; the mask keeps the highest, the
  gradient passes straight through it to the scores (Sanh et al. 2020), blocks as in Lagunas et al. 2021.

Both are trained to repeat the teacher's logits, see ``distil``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qa_backends.checkpoints.load import save_model
from qa_backends.checkpoints.manifest import WEIGHTS, file_hash
from qa_backends.errors import InputError
from qa_backends.reader.tokens import SubwordTokenizer
from qa_backends.training.cached import cached
from qa_backends.training.data import steps_of, stream
from qa_backends.training.distil import Teacher, live
from qa_backends.training.epochs import Epochs
from qa_backends.training.gates import Gates, choose, cut_down, encoder_parameters, layer_costs
from qa_backends.training.loop import begin, train
from qa_backends.training.model import compiled, learned, runner, trainable
from qa_backends.training.provenance import weights_of
from qa_backends.training.saved import claim
from qa_backends.training.settings import UNCHANGED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    import torch
    from transformers import PreTrainedModel

    from qa_backends.squad import Question
    from qa_backends.training.data import Batch
    from qa_backends.training.loop import OnStep
    from qa_backends.training.model import Logits
    from qa_backends.training.settings import RunSettings

METHODS = ("importance", "movement")
STAGES = ((0.75, 0.1), (0.55, 0.15))
"""Stages of importance pruning before the last: the density to cut to, and the share of the steps that follow it. The
last stage cuts to the target and takes the steps that are left."""
IMPORTANCE_BATCHES = 32
MASKING_SHARE = 0.5
"""Movement pruning's density falls to its target over this share of the steps, and then stays there."""


class Pruning:
    """One pruning run; stopped, it goes on where it was, and changed, it needs another folder.

    ``density`` is the share of the teacher's encoder to keep. ``start`` is the checkpoint that is pruned by importance,
    by default the teacher. Stages that would leave more than it has are left out; the last one always trains it on.
    With ``teacher_logits``, a file, the teacher runs once for all passes and its logits are kept there, see ``cached``.
    """

    def __init__(
        self,
        questions: Sequence[Question],
        *,
        method: str,
        teacher: Path,
        density: float,
        run: RunSettings,
        on_step: OnStep,
        start: Path | None = None,
        teacher_logits: Path | None = None,
    ) -> None:
        """Loads the teacher.

        Raises:
            InputError: the folder holds a run with other settings, or ``start`` no checkpoint; the file of logits is
                not of these questions, or they change.
            ArtefactError: ``teacher`` is no checkpoint that can be read.
        """
        begin(run)
        self.method = method
        self.teacher = teacher
        self.start = start or teacher
        self.density = density
        self._run = run
        self._tokenizer = SubwordTokenizer(teacher)
        self._epochs = Epochs(questions, self._tokenizer, run.changes, seed=run.seed)
        self._on_step = on_step
        self._steps = steps_of(self._epochs(0), passes=run.passes, max_tokens=run.max_tokens, seed=run.seed)
        self._claim_folder(kept=teacher_logits is not None)
        logits_of = live(teacher, run.device)
        self._teacher = Teacher(self._kept(logits_of, teacher_logits) if teacher_logits else logits_of)

    def _kept(self, logits_of: Callable[[Batch], Logits], file: Path) -> Callable[[Batch], Logits]:
        """The teacher's logits from the file."""
        run = self._run
        if run.changes != UNCHANGED:
            raise InputError(
                "A teacher's logits can be kept of questions that stay the same. Leave out --teacher-logits, or the "
                "options that change questions: --swaps, --lower-case, --cut, --join and --misplaced."
            )
        return cached(
            file,
            logits_of,
            self._epochs(0),
            self._tokenizer,
            weights=file_hash(weights_of(self.teacher)),
            max_tokens=run.max_tokens,
            device=run.device,
            on_step=self._on_step,
        )

    def _claim_folder(self, *, kept: bool) -> None:
        """Notes what this run is: finished stages of another are not taken for its own."""
        facts: dict[str, object] = {
            "method": self.method,
            "teacher": file_hash(weights_of(self.teacher)),
            "start": file_hash(weights_of(self.start)),
            "windows": len(self._epochs(0)),
            "density": self.density,
            "steps": self._steps,
            "teacher_logits": kept,
            **self._run.facts(),
        }
        claim(self._run.folder, facts)

    def run(self) -> Path:
        """Prunes and returns the folder of the packed checkpoint."""
        return self._by_importance() if self.method == "importance" else self._by_movement()

    def _by_importance(self) -> Path:
        whole = encoder_parameters(self._model(self.teacher))
        now = encoder_parameters(self._model(self.start)) / whole
        stages = [each for each in STAGES if self.density < each[0] < now]
        last = (self.density, 1.0 - sum(share for _, share in stages))
        before = self.start
        for number, (density, share) in enumerate([*stages, last]):
            stage = self._run.folder / f"stage-{number}"
            if not (stage / "model" / WEIGHTS).is_file():
                self._stage(before, stage, round(whole * density), round(self._steps * share))
            before = stage / "model"
        return before

    def _stage(self, before: Path, stage: Path, keep: int, steps: int) -> None:
        """Cuts the model down to ``keep`` encoder parameters and trains what is left."""
        import torch

        if not (stage / "cut" / WEIGHTS).is_file():
            model = self._model(before)
            self._cut(model, keep)
            save_model(model, stage / "cut", tokenizer_from=self.teacher, dtype=torch.float32)
        model = self._model(stage / "cut")
        torch.compiler.reset()  # the graph compiled for the last stage has other shapes
        logits_of = runner(compiled(model), self._run.device)
        self._train(self._learned(model), lambda batch, _step: logits_of(batch), steps, stage)
        save_model(model, stage / "model", tokenizer_from=self.teacher, dtype=torch.float32)

    def _cut(self, model: PreTrainedModel, keep: int) -> None:
        heads, columns = self._importance(model)
        cut_down(model, *choose(heads, columns, layer_costs(model), encoder_parameters(model) - keep))

    def _importance(self, model: PreTrainedModel) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Mean squared gradient of the loss by each gate: about twice what closing the gate would add to the loss."""
        import torch

        model.train(mode=False)  # with dropout, gates would be judged by chance
        gates = Gates(model)
        tensors = [*gates.heads, *gates.columns]
        sums = [torch.zeros_like(each) for each in tensors]
        for each in tensors:
            each.requires_grad_()
        logits_of = runner(model, self._run.device)
        for batch in self._batches(0, IMPORTANCE_BATCHES):
            found = torch.autograd.grad(self._teacher.loss(logits_of(batch), batch), tensors)
            for total, gradient in zip(sums, found, strict=True):
                total += gradient.square()
        gates.remove()
        return sums[: len(gates.heads)], sums[len(gates.heads) :]

    def _by_movement(self) -> Path:
        import torch

        model = self._model(self.teacher)
        gates = Gates(model)
        worths = [torch.nn.Parameter(torch.zeros_like(each)) for each in (*gates.heads, *gates.columns)]
        heads, columns = worths[: len(gates.heads)], worths[len(gates.heads) :]
        share = self._share_of_gates(model, gates)
        logits_of = runner(model, self._run.device)

        def forward(batch: Batch, step: int) -> Logits:
            kept = self._kept_at(step, share)
            gates.heads, gates.columns = masks(heads, kept), masks(columns, kept)
            return logits_of(batch)

        folder = self._run.folder / "movement"
        scores = {f"score.{number}": each for number, each in enumerate(worths)}
        self._train(self._learned(model), forward, self._steps, folder, scores)
        gates.remove()
        cut_down(model, *([each > 0 for each in masks(kind, share)] for kind in (heads, columns)))
        save_model(model, folder / "model", tokenizer_from=self.teacher, dtype=torch.float32)
        return folder / "model"

    def _share_of_gates(self, model: PreTrainedModel, gates: Gates) -> float:
        """Share of heads and of columns to keep for ``density`` of the encoder; norms and output biases all stay."""
        kinds = zip(layer_costs(model), (gates.heads, gates.columns), strict=True)
        prunable = sum(cost * sum(len(layer) for layer in kind) for cost, kind in kinds)
        whole = encoder_parameters(model)
        return max(0.0, 1.0 - (1.0 - self.density) * whole / prunable)

    def _kept_at(self, step: int, share: float) -> float:
        """Share of heads and columns kept at a step: falls to ``share`` by the cubic schedule of Zhu and Gupta 2017."""
        done = min(1.0, step / max(1.0, self._steps * MASKING_SHARE))
        return share + (1.0 - share) * (1.0 - done) ** 3

    def _model(self, folder: Path) -> PreTrainedModel:
        return trainable(folder, self._run.device, dropout=self._run.dropout)

    def _learned(self, model: PreTrainedModel) -> dict[str, torch.nn.Parameter]:
        return learned(model, freeze_embeddings=self._run.freeze_embeddings)

    def _train(
        self,
        parameters: dict[str, torch.nn.Parameter],
        forward: Callable[[Batch, int], Logits],
        steps: int,
        folder: Path,
        scores: dict[str, torch.nn.Parameter] | None = None,
    ) -> None:
        train(
            parameters,
            lambda batch, step: self._teacher.loss(forward(batch, step), batch),
            lambda skip: self._batches(skip, steps),
            self._run.recipe(steps),
            folder,
            self._on_step,
            scores=scores,
        )

    def _batches(self, skip: int, steps: int) -> Iterator[Batch]:
        run = self._run
        made = stream(self._epochs, self._tokenizer, max_tokens=run.max_tokens, seed=run.seed, steps=steps, skip=skip)
        return (batch.to(run.device) for batch in made)


def masks(scores: Sequence[torch.Tensor], density: float) -> list[torch.Tensor]:
    """1 for the highest ``density`` of all scores together, 0 for the rest; the highest of each layer always stays.

    The gradient of a mask goes to its score unchanged (the straight-through estimator, Bengio et al. 2013).
    """
    import torch

    everything = torch.cat([each.detach() for each in scores])
    keep = max(1, round(density * len(everything)))
    least = everything.kthvalue(len(everything) - keep + 1).values
    found = []
    for each in scores:
        mask = (each.detach() >= least).float()
        mask[each.argmax()] = 1.0
        found.append(mask + (each - each.detach()))
    return found
