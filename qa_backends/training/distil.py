"""Distil: a student learns from a fine-tuned teacher, and a little from the labels (Hinton et al. 2015)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qa_backends.training.model import span_losses

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import torch

    from qa_backends.training.data import Batch
    from qa_backends.training.model import Logits

TEMPERATURE = 2.0
LABEL_SHARE = 0.1
"""Of the loss; the rest is the divergence from the teacher. Share and temperature are those of Lagunas et al. 2021."""
LOWEST_LOGIT = -1e4
"""What stands for padding: no share of the softmax, and small enough for half precision."""


class Teacher:
    """What a student learns to repeat: a checkpoint's logits, see ``Teaching``, or those that were ``cached``."""

    def __init__(self, logits_of: Callable[[Batch], Logits]) -> None:
        self._logits_of = logits_of

    def logits(self, batch: Batch) -> Logits:
        """Start and end logits ``[n, seq_len]`` of a batch on the teacher's device, without gradients."""
        import torch

        with torch.no_grad():
            return self._logits_of(batch)

    def loss(self, student: Logits, batch: Batch) -> torch.Tensor:
        """What the student is trained on, given its logits ``[n, seq_len]`` of the batch."""
        return logits_loss(student, self.logits(batch), batch)


def logits_loss(student: Logits, teacher: Logits, batch: Batch) -> torch.Tensor:
    """``LABEL_SHARE`` of the labels' loss, and for the rest the divergence of starts and ends; of windows that are not
    taught, the labels' loss alone; mean of windows."""
    starts, ends = zip(student, teacher, strict=True)
    padding = batch.inputs["attention_mask"] == 0
    distilled = (divergence(*starts, padding) + divergence(*ends, padding)) / 2
    by_teacher = (1 - LABEL_SHARE) * batch.taught
    return ((1 - by_teacher) * span_losses(student, batch) + by_teacher * distilled).mean()


def divergence(student: torch.Tensor, teacher: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
    """Kullback-Leibler divergence of the student's distribution over real tokens from the teacher's, ``[n]``.

    Logits are ``[n, seq_len]``, ``padding`` is bool of that shape. Both distributions are softened by ``TEMPERATURE``;
    its square makes up for the smaller gradients.
    """
    from torch.nn.functional import kl_div, log_softmax

    one = log_softmax(student.float().masked_fill(padding, LOWEST_LOGIT) / TEMPERATURE, dim=-1)
    other = log_softmax(teacher.float().masked_fill(padding, LOWEST_LOGIT) / TEMPERATURE, dim=-1)
    return kl_div(one, other, log_target=True, reduction="none").sum(dim=-1) * TEMPERATURE**2


def hidden_loss(student: Sequence[torch.Tensor], teacher: Sequence[torch.Tensor], batch: Batch) -> torch.Tensor:
    """Mean squared difference of hidden states ``[n, seq_len, hidden]``, over all pairs of layers and the real tokens
    of windows that are taught; nothing where none are."""
    import torch

    real = batch.inputs["attention_mask"].bool() & batch.taught[:, None]
    apart = [one[real].float() - other[real].float() for one, other in zip(student, teacher, strict=True)]
    return torch.stack([each.square().sum() / max(1, each.numel()) for each in apart]).mean()
