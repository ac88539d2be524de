"""Prune whole attention heads and FFN columns, with the fine-tuned model as teacher.

Two ways to decide what goes:

- ``importance``: heads and columns whose removal would change the loss least, by the squared gradient of a gate on each
  (Michel et al. 2019; Theis et al. 2018), removed in stages with training between, the model smaller after each stage.
- ``movement``: a score for each head and column is learned along with the weights; the mask keeps the highest, the
  gradient passes straight through it to the scores (Sanh et al. 2020), blocks as in Lagunas et al. 2021.

Both are trained to repeat the teacher's logits, at temperature 2 and with a tenth of the loss from the labels, the
settings of Lagunas et al.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import torch
from torch.nn.functional import kl_div, log_softmax

from qa_backends.artefacts.checkpoint import save_model
from qa_backends.artefacts.manifest import file_hash
from qa_backends.errors import InputError
from qa_backends.reader.tokens import WordPieces
from qa_backends.training.data import examples, stream
from qa_backends.training.finetune import compiled, learned, runner, span_loss, steps_of, trainable
from qa_backends.training.gates import Gates, choose, cut_down, encoder_parameters, layer_costs
from qa_backends.training.loop import train

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from transformers import BertForQuestionAnswering

    from qa_backends.squad import Question
    from qa_backends.training.data import Batch
    from qa_backends.training.loop import Plan, Progress

    Logits = tuple[torch.Tensor, torch.Tensor]

METHODS = ("importance", "movement")
TEMPERATURE = 2.0
LABEL_SHARE = 0.1
STAGES = ((0.75, 0.1), (0.55, 0.15))
"""Of importance pruning: density to cut to, and the share of training that follows; what is left is at the target."""
IMPORTANCE_BATCHES = 32
MASKING_SHARE = 0.5
"""Of movement pruning: the density falls to its target over this share of the steps and then stays."""


class Pruning:
    """One pruning run; stopped, it goes on where it was, and changed, it needs another folder.

    ``density`` is the share of the teacher's encoder to keep. ``start`` is what is pruned by importance, the teacher by
    default; a checkpoint that is pruned already is cut down only as far as it is not yet, and trained on.
    """

    def __init__(
        self,
        questions: Sequence[Question],
        *,
        method: str,
        teacher: Path,
        density: float,
        plan: Plan,
        progress: Progress,
        start: Path | None = None,
    ) -> None:
        """Raises InputError where the folder holds a run with other settings."""
        torch.manual_seed(plan.seed)
        self.method = method
        self.teacher = teacher
        self.start = start or teacher
        self.density = density
        self._plan = plan
        self._words = WordPieces(teacher)
        self._data = examples(questions, self._words)
        self._progress = progress
        self._steps = steps_of(self._data, plan)
        self._teach = runner(compiled(trainable(teacher, plan.device).eval()), plan.device)
        self._claim_folder()

    def _claim_folder(self) -> None:
        """Notes what this run is, so that finished stages of another are never taken for its own."""
        mine = {
            "method": self.method,
            "teacher": file_hash(self.teacher / "model.safetensors"),
            "start": file_hash(self.start / "model.safetensors"),
            "windows": len(self._data),
            "density": self.density,
            "steps": self._steps,
            **self._plan.settings(),
        }
        note = self._plan.folder / "run.json"
        if note.is_file():
            if (found := json.loads(note.read_text(encoding="utf-8"))) != mine:
                raise InputError(f"{self._plan.folder} holds a run with other settings ({found}). Name another folder.")
            return
        self._plan.folder.mkdir(parents=True, exist_ok=True)
        note.write_text(json.dumps(mine, indent=1) + "\n", encoding="utf-8")

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
            stage = self._plan.folder / f"stage-{number}"
            if not (stage / "model" / "model.safetensors").is_file():
                self._stage(before, stage, round(whole * density), round(self._steps * share))
            before = stage / "model"
        return before

    def _stage(self, before: Path, stage: Path, keep: int, steps: int) -> None:
        """Cuts the model down to ``keep`` encoder parameters and trains what is left."""
        if not (stage / "cut" / "model.safetensors").is_file():
            model = self._model(before)
            self._cut(model, keep)
            save_model(model, stage / "cut", tokenizer_from=self.teacher, dtype=torch.float32)
        model = self._model(stage / "cut")
        torch._dynamo.reset()  # the graph compiled for the last stage has other shapes
        run = runner(compiled(model), self._plan.device)
        self._train(learned(model), lambda batch, _step: run(batch), steps, stage)
        save_model(model, stage / "model", tokenizer_from=self.teacher, dtype=torch.float32)

    def _cut(self, model: BertForQuestionAnswering, keep: int) -> None:
        heads, columns = self._importance(model)
        cut_down(model, *choose(heads, columns, layer_costs(model), encoder_parameters(model) - keep))

    def _importance(self, model: BertForQuestionAnswering) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Mean squared gradient of the loss by each gate: about twice what closing the gate would add to the loss."""
        gates = Gates(model)
        tensors = [*gates.heads, *gates.columns]
        sums = [torch.zeros_like(each) for each in tensors]
        for each in tensors:
            each.requires_grad_()
        run = runner(model, self._plan.device)
        for batch in self._batches(0, IMPORTANCE_BATCHES):
            found = torch.autograd.grad(self._loss(run(batch), batch), tensors)
            for total, gradient in zip(sums, found, strict=True):
                total += gradient.square()
        gates.remove()
        return sums[: len(gates.heads)], sums[len(gates.heads) :]

    def _by_movement(self) -> Path:
        model = self._model(self.teacher)
        gates = Gates(model)
        worths = [torch.nn.Parameter(torch.zeros_like(each)) for each in (*gates.heads, *gates.columns)]
        heads, columns = worths[: len(gates.heads)], worths[len(gates.heads) :]
        share = self._share_of_gates(model, gates)
        run = runner(model, self._plan.device)

        def forward(batch: Batch, step: int) -> Logits:
            kept = self._kept_at(step, share)
            gates.heads, gates.columns = masks(heads, kept), masks(columns, kept)
            return run(batch)

        folder = self._plan.folder / "movement"
        scores = {f"score.{number}": each for number, each in enumerate(worths)}
        self._train(learned(model), forward, self._steps, folder, scores)
        gates.remove()
        cut_down(model, *([each > 0 for each in masks(kind, share)] for kind in (heads, columns)))
        save_model(model, folder / "model", tokenizer_from=self.teacher, dtype=torch.float32)
        return folder / "model"

    def _share_of_gates(self, model: BertForQuestionAnswering, gates: Gates) -> float:
        """Share of heads and of columns to keep for ``density``: norms and the outputs' biases are never cut."""
        kinds = zip(layer_costs(model), (gates.heads, gates.columns), strict=True)
        prunable = sum(cost * sum(len(layer) for layer in kind) for cost, kind in kinds)
        whole = encoder_parameters(model)
        return max(0.0, 1.0 - (1.0 - self.density) * whole / prunable)

    def _kept_at(self, step: int, share: float) -> float:
        """From 1 to ``share`` by the cubic schedule of Zhu and Gupta 2017."""
        done = min(1.0, step / max(1.0, self._steps * MASKING_SHARE))
        return share + (1.0 - share) * (1.0 - done) ** 3

    def _model(self, folder: Path) -> BertForQuestionAnswering:
        return trainable(folder, self._plan.device)

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
            lambda batch, step: self._loss(forward(batch, step), batch),
            lambda skip: self._batches(skip, steps),
            self._plan.recipe(steps),
            folder,
            self._progress,
            scores=scores,
        )

    def _batches(self, skip: int, steps: int) -> Iterator[Batch]:
        plan = self._plan
        made = stream(self._data, self._words, max_tokens=plan.max_tokens, seed=plan.seed, steps=steps, skip=skip)
        return (batch.to(self._plan.device) for batch in made)

    def _loss(self, student: Logits, batch: Batch) -> torch.Tensor:
        with torch.no_grad():
            teacher = self._teach(batch)
        padding = batch.inputs["attention_mask"] == 0
        distilled = sum(_divergence(s, t, padding) for s, t in zip(student, teacher, strict=True)) / 2
        return LABEL_SHARE * span_loss(*student, batch) + (1 - LABEL_SHARE) * distilled


def masks(scores: Sequence[torch.Tensor], density: float) -> list[torch.Tensor]:
    """1 for the highest ``density`` of all scores together, 0 for the rest; the highest of each layer always stays.

    The gradient of a mask goes to its score unchanged (the straight-through estimator, Bengio et al. 2013).
    """
    everything = torch.cat([each.detach() for each in scores])
    keep = max(1, round(density * len(everything)))
    least = everything.kthvalue(len(everything) - keep + 1).values
    found = []
    for each in scores:
        mask = (each.detach() >= least).float()
        mask[each.argmax()] = 1.0
        found.append(mask + (each - each.detach()))
    return found


def _divergence(student: torch.Tensor, teacher: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
    """Kullback-Leibler divergence of softened distributions over real tokens (Hinton et al. 2015)."""
    low = -1e4
    one = log_softmax(student.float().masked_fill(padding, low) / TEMPERATURE, dim=-1)
    other = log_softmax(teacher.float().masked_fill(padding, low) / TEMPERATURE, dim=-1)
    return kl_div(one, other, log_target=True, reduction="batchmean") * TEMPERATURE**2
