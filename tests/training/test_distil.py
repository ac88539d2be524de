"""Learning from a teacher: what the loss is made of."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import torch
from helpers import BASELINE

from qa_backends.checkpoints.load import load_model
from qa_backends.paths import OWN_QUESTIONS
from qa_backends.reader.tokens import SubwordTokenizer
from qa_backends.squad import read_squad
from qa_backends.training.data import collate, examples
from qa_backends.training.distil import LABEL_SHARE, TEMPERATURE, Teacher, divergence
from qa_backends.training.model import span_loss
from qa_backends.training.settings import BF16, FP32
from qa_backends.training.teaching import live

if TYPE_CHECKING:
    from pathlib import Path

    from qa_backends.training.data import Batch

PADDING = torch.tensor([[False, False, False, True], [False, False, False, False]])


@pytest.fixture(scope="module")
def batch() -> Batch:
    tokenizer = SubwordTokenizer(BASELINE)
    return collate(examples(read_squad(OWN_QUESTIONS)[:6], tokenizer), tokenizer)


def test_a_teacher_computes_at_the_precision_that_was_chosen(tiny: Path, batch: Batch) -> None:
    half, whole = (live(tiny, "cpu", precision)(batch) for precision in (BF16, FP32))
    plain = load_model(tiny, attention="eager").eval()(**batch.inputs)
    torch.testing.assert_close(whole, (plain.start_logits, plain.end_logits), atol=1e-4, rtol=0)
    assert half[0].dtype == torch.bfloat16
    assert 0 < (half[0].float() - whole[0]).abs().mean() < 0.1 * whole[0].abs().mean()


def test_a_student_that_repeats_its_teacher_learns_from_the_labels_alone(tiny: Path, batch: Batch) -> None:
    teacher = Teacher(live(tiny, "cpu", FP32))
    start, end = teacher.logits(batch)
    repeated = teacher.loss((start, end), batch)
    torch.testing.assert_close(repeated, LABEL_SHARE * span_loss((start, end), batch))
    moved = (start + torch.arange(start.shape[1]) % 3, end)
    other = teacher.loss(moved, batch)
    assert other - LABEL_SHARE * span_loss(moved, batch) > 1e-3


def test_what_is_not_taught_is_learned_from_the_labels_alone(tiny: Path, batch: Batch) -> None:
    teacher = Teacher(live(tiny, "cpu", FP32))
    student = tuple(each.float().flip(0) for each in teacher.logits(batch))
    logits = (student[0], student[1])
    untaught = replace(batch, taught=torch.zeros_like(batch.taught))
    torch.testing.assert_close(teacher.loss(logits, untaught), span_loss(logits, batch))
    first = torch.arange(len(batch)) == 0
    both = teacher.loss(logits, replace(batch, taught=first))
    alone = teacher.loss(logits, batch), span_loss(logits, batch)
    assert min(alone) < both < max(alone), "a mean over windows of both kinds"


def test_the_loss_moves_the_student_and_not_the_teacher(tiny: Path, batch: Batch) -> None:
    teacher = Teacher(live(tiny, "cpu", FP32))
    assert not any(each.requires_grad for each in teacher.logits(batch))
    student = tuple(each.float().flip(0).requires_grad_() for each in teacher.logits(batch))
    before = teacher.loss((student[0], student[1]), batch)
    gradients = torch.autograd.grad(before, student)
    nearer = [logits.detach() - gradient for logits, gradient in zip(student, gradients, strict=True)]
    assert teacher.loss((nearer[0], nearer[1]), batch) < before


def test_divergence_is_that_of_the_softened_distributions() -> None:
    student, teacher = torch.tensor([[0.0, 1.0, 3.0]]), torch.tensor([[2.0, -1.0, 0.5]])
    one, other = (torch.exp(each / TEMPERATURE) for each in (student, teacher))
    one, other = one / one.sum(), other / other.sum()
    expected = (other * (other / one).log()).sum() * TEMPERATURE**2
    nothing_padded = torch.zeros(1, 3, dtype=torch.bool)
    torch.testing.assert_close(divergence(student, teacher, nothing_padded), expected[None])


def test_padding_plays_no_part_in_divergence() -> None:
    torch.manual_seed(0)
    student, teacher = torch.randn(2, 4), torch.randn(2, 4)
    expected = divergence(student, teacher, PADDING)
    student[0, 3], teacher[0, 3] = 50.0, -50.0
    torch.testing.assert_close(divergence(student, teacher, PADDING), expected)
    assert expected.shape == (2,) and (expected > 0).all()
