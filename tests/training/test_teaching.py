"""Who teaches: a teacher that a backend runs says what it says in PyTorch, and a run notes which it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from helpers import BASELINE, encoder_of, random_bert

from qa_backends import catalog
from qa_backends.checkpoints.files import WEIGHTS
from qa_backends.errors import ArtefactError, InputError
from qa_backends.paths import OWN_QUESTIONS
from qa_backends.reader.tokens import SubwordTokenizer
from qa_backends.squad import read_squad
from qa_backends.training.data import Batch, collate, examples
from qa_backends.training.settings import BF16, FP32, UNCHANGED
from qa_backends.training.teaching import Teaching

if TYPE_CHECKING:
    from pathlib import Path

    from qa_backends.catalog import Family


@pytest.fixture(scope="module")
def batch() -> Batch:
    tokenizer = SubwordTokenizer(BASELINE)
    return collate(examples(read_squad(OWN_QUESTIONS)[:7], tokenizer), tokenizer)


def test_a_backend_computes_the_teachers_logits_of_every_real_token(small_family: Family, batch: Batch) -> None:
    tiny = small_family.source(catalog.BASELINE).folder
    assert tiny is not None
    lengths = batch.inputs["attention_mask"].sum(dim=1)
    assert len(set(lengths.tolist())) > 1 and lengths.max() < batch.inputs["input_ids"].shape[1], "padded in both ways"
    real = batch.inputs["attention_mask"] == 1
    by_pytorch = Teaching(tiny).logits_of("cpu", FP32)(batch)
    by_backend = Teaching(tiny, catalog.backend("pruned-ort")).logits_of("cpu", FP32)(batch)
    for one, other in zip(by_backend, by_pytorch, strict=True):
        assert one.shape == other.shape
        torch.testing.assert_close(one[real], other[real], atol=1e-4, rtol=0)


def test_a_run_tells_teachers_apart_by_weights_and_by_what_runs_them(tiny: Path) -> None:
    alone, fast = Teaching(tiny), Teaching(tiny, catalog.backend("pruned-ort"))
    assert fast.facts() == alone.facts() | {"teacher_backend": "baseline-ort"} != alone.facts()
    names = [each.name(FP32) for each in (alone, fast, Teaching(BASELINE))]
    assert len({*names, alone.name(BF16)}) == 4 and fast.name(BF16) == fast.name(FP32)


def test_several_teach_the_mean_of_their_logits(tiny: Path, tmp_path: Path, batch: Batch) -> None:
    other = random_bert(tmp_path / "other", seed=1)
    one, two, both = (Teaching(tiny), Teaching(other), Teaching(tiny, others=(other,)))
    said = [each.logits_of("cpu", FP32)(batch) for each in (one, two, both)]
    for first, second, mean in zip(*said, strict=True):
        assert not torch.allclose(first, second)
        torch.testing.assert_close(mean, (first + second) / 2)
    assert len({each.name(FP32) for each in (one, two, both)}) == 3
    assert both.facts() == one.facts() | {"other_teachers": [two.facts()["teacher"]]}


def test_each_of_them_must_read_as_the_student_does(tiny: Path, tmp_path: Path) -> None:
    stranger = random_bert(tmp_path / "stranger", seed=1)
    (stranger / "tokenizer.json").write_text("{}")
    Teaching(tiny, others=(BASELINE,)).check(tiny, UNCHANGED)
    with pytest.raises(InputError, match="same tokenizer"):
        Teaching(tiny, others=(stranger,)).check(tiny, UNCHANGED)


def test_nobody_teaches_who_was_not_taught(tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"never taught to find answers.*train finetune"):
        Teaching(tiny, others=(encoder_of(tiny),)).check(tiny, UNCHANGED)
    with pytest.raises(InputError, match=r"holds no model\.safetensors\. Name a folder"):
        Teaching(tmp_path).check(tiny, UNCHANGED)


def test_a_teacher_whose_weights_are_damaged_is_named(tiny: Path, tmp_path: Path) -> None:
    damaged = random_bert(tmp_path / "damaged")
    (damaged / WEIGHTS).write_bytes(b"\xff" * 64)
    with pytest.raises(ArtefactError, match=r"damaged/model\.safetensors cannot be read"):
        Teaching(damaged).check(tiny, UNCHANGED)
