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

from itertools import islice
from typing import TYPE_CHECKING

import torch
from torch.nn.functional import kl_div, log_softmax

from qa_backends.artefacts.checkpoint import load_model, save_model
from qa_backends.reader.tokens import WordPieces
from qa_backends.training.data import epoch_order, examples, stream
from qa_backends.training.finetune import compiled, learned, span_loss
from qa_backends.training.gates import Gates, choose, cut_down, encoder_parameters, layer_costs
from qa_backends.training.loop import Recipe, train

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from transformers import BertForQuestionAnswering

    from qa_backends.squad import Question
    from qa_backends.training.data import Batch
    from qa_backends.training.loop import Progress

    Logits = tuple[torch.Tensor, torch.Tensor]
    Model = Callable[[Batch], Logits]

METHODS = ("importance", "movement")
TEMPERATURE = 2.0
LABEL_SHARE = 0.1
STAGES = ((0.75, 0.1), (0.55, 0.15))
"""Of importance pruning: density to cut to, and the share of training that follows; what is left is at the target."""
IMPORTANCE_BATCHES = 32
SCORE_SCALE = 100.0
"""Scores are learned this many times as fast as weights."""
MASKING_SHARE = 0.5
"""Of movement pruning: the density falls to its target over this share of the steps and then stays."""


class Pruning:
    """One pruning run in ``folder``; a stopped run goes on where it was.

    ``density`` is the share of the encoder's parameters to keep, ``passes`` how often the questions are seen.
    """

    def __init__(
        self,
        questions: Sequence[Question],
        *,
        teacher: Path,
        folder: Path,
        density: float,
        passes: float,
        learning_rate: float,
        max_tokens: int,
        seed: int,
        progress: Progress,
    ) -> None:
        torch.manual_seed(seed)
        self.teacher = teacher
        self.folder = folder
        self.density = density
        self._words = WordPieces(teacher)
        self._data = examples(questions, self._words)
        self._rate = learning_rate
        self._max_tokens = max_tokens
        self._seed = seed
        self._progress = progress
        per_pass = len(epoch_order([len(each) for each in self._data], max_tokens=max_tokens, seed=seed))
        self._steps = round(per_pass * passes)
        self._teach = _runner(compiled(_plain(teacher).eval()))

    def run(self, method: str) -> Path:
        """Prunes by the method and returns the folder of the packed checkpoint."""
        return self._by_importance() if method == "importance" else self._by_movement()

    def _by_importance(self) -> Path:
        whole = encoder_parameters(_plain(self.teacher))
        before = self.teacher
        left = 1.0 - sum(share for _, share in STAGES)
        stages = [each for each in STAGES if each[0] > self.density]
        for number, (density, share) in enumerate([*stages, (self.density, left)]):
            stage = self.folder / f"stage-{number}"
            if not (stage / "model" / "model.safetensors").is_file():
                model = _plain(before)
                if not (stage / "cut" / "model.safetensors").is_file():
                    self._cut(model, round(whole * density))
                    save_model(model, stage / "cut", tokenizer_from=self.teacher, dtype=torch.float32)
                model = _plain(stage / "cut")
                torch._dynamo.reset()  # the graph compiled for the last stage has other shapes
                run = _runner(compiled(model))
                self._train(learned(model), lambda batch, _step, run=run: run(batch), round(self._steps * share), stage)
                save_model(model, stage / "model", tokenizer_from=self.teacher, dtype=torch.float32)
            before = stage / "model"
        return before

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
        for batch in islice(self._batches(0, IMPORTANCE_BATCHES), IMPORTANCE_BATCHES):
            found = torch.autograd.grad(self._loss(_runner(model)(batch), batch), tensors)
            for total, gradient in zip(sums, found, strict=True):
                total += gradient.square()
        gates.remove()
        return sums[: len(gates.heads)], sums[len(gates.heads) :]

    def _by_movement(self) -> Path:
        model = _plain(self.teacher)
        gates = Gates(model)
        counts = [len(each) for each in (*gates.heads, *gates.columns)]
        scores = {f"score.{number}": torch.nn.Parameter(torch.zeros(count)) for number, count in enumerate(counts)}
        heads = list(scores.values())[: len(gates.heads)]
        columns = list(scores.values())[len(gates.heads) :]
        run = _runner(model)

        def forward(batch: Batch, step: int) -> Logits:
            density = self._density_at(step)
            gates.heads = masks(heads, density)
            gates.columns = masks(columns, density)
            return run(batch)

        folder = self.folder / "movement"
        self._train(learned(model) | scores, forward, self._steps, folder)
        gates.remove()
        kept = [[each > 0 for each in masks(worths, self.density)] for worths in (heads, columns)]
        cut_down(model, *kept)
        save_model(model, folder / "model", tokenizer_from=self.teacher, dtype=torch.float32)
        return folder / "model"

    def _density_at(self, step: int) -> float:
        """From 1 to the target by the cubic schedule of Zhu and Gupta 2017."""
        done = min(1.0, step / max(1.0, self._steps * MASKING_SHARE))
        return self.density + (1.0 - self.density) * (1.0 - done) ** 3

    def _train(
        self,
        parameters: dict[str, torch.nn.Parameter],
        forward: Callable[[Batch, int], Logits],
        steps: int,
        folder: Path,
    ) -> None:
        recipe = Recipe(steps, self._rate, 0.01, self._max_tokens, self._seed)
        train(
            parameters,
            lambda batch, step: self._loss(forward(batch, step), batch),
            lambda skip: self._batches(skip, steps),
            recipe,
            folder,
            self._progress,
        )

    def _batches(self, skip: int, steps: int) -> Iterator[Batch]:
        return stream(self._data, self._words, max_tokens=self._max_tokens, seed=self._seed, steps=steps, skip=skip)

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
        found.append(mask + SCORE_SCALE * (each - each.detach()))
    return found


def _divergence(student: torch.Tensor, teacher: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
    """Kullback-Leibler divergence of softened distributions over real tokens (Hinton et al. 2015)."""
    low = -1e4
    one = log_softmax(student.float().masked_fill(padding, low) / TEMPERATURE, dim=-1)
    other = log_softmax(teacher.float().masked_fill(padding, low) / TEMPERATURE, dim=-1)
    return kl_div(one, other, log_target=True, reduction="batchmean") * TEMPERATURE**2


def _plain(folder: Path) -> BertForQuestionAnswering:
    """The model as it is trained: no dropout, attention in the form that is quick to differentiate on a CPU."""
    return load_model(folder, attention="eager", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def _runner(model: BertForQuestionAnswering) -> Model:
    def run(batch: Batch) -> Logits:
        with torch.autocast("cpu", torch.bfloat16):
            out = model(**batch.inputs)
        return out.start_logits, out.end_logits

    return run
