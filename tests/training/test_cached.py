"""A teacher's kept logits: those of the live teacher, wherever a window comes again."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import torch
from helpers import BASELINE

from qa_backends.errors import InputError
from qa_backends.paths import OWN_QUESTIONS
from qa_backends.reader.tokens import SubwordTokenizer
from qa_backends.squad import read_squad
from qa_backends.training import cached as module
from qa_backends.training.cached import HIGHEST, CachedLogits, cached
from qa_backends.training.data import collate, examples
from qa_backends.training.distil import TEMPERATURE, Teacher
from qa_backends.training.settings import FP32
from qa_backends.training.teaching import live

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from qa_backends.training.data import Batch, Example
    from qa_backends.training.loop import StepReport
    from qa_backends.training.model import Logits

TOKENIZER = SubwordTokenizer(BASELINE)
DATA = examples(read_squad(OWN_QUESTIONS)[:24], TOKENIZER)


def keep(
    file: Path,
    teacher: Callable[[Batch], Logits],
    on_step: Callable[[StepReport], object] = lambda _: None,
    data: list[Example] = DATA,
    of: str = "teacher",
) -> CachedLogits:
    return cached(file, teacher, data, TOKENIZER, of=of, max_tokens=1024, device="cpu", on_step=on_step)


def shuffled() -> Batch:
    """The windows in another order and with more padding than they were computed with."""
    return collate(random.Random(1).sample(DATA, len(DATA)), TOKENIZER)


def exact(batch: Batch) -> Logits:
    """A teacher whose logits of a window hang on no other window and no padding, to the last bit."""
    ids = batch.inputs["input_ids"].float()
    place = torch.arange(ids.shape[1])
    return 9 * torch.sin(ids + 0.31 * place), 9 * torch.cos(3 * ids - 0.17 * place)


def test_kept_logits_equal_live_ones(tmp_path: Path) -> None:
    batch = shuffled()
    kept = keep(tmp_path / "teacher.safetensors", exact)(batch)
    padding = batch.inputs["attention_mask"] == 0
    for mine, theirs in zip(kept, exact(batch), strict=True):
        expected = theirs.masked_fill(padding, -1e4)
        best, places = expected.topk(HIGHEST, dim=1)
        torch.testing.assert_close(mine.gather(1, places), best, atol=0, rtol=1e-3)
        soft, real = ((each.masked_fill(padding, -1e4) / TEMPERATURE).softmax(1) for each in (mine, expected))
        torch.testing.assert_close(soft.gather(1, places), real.gather(1, places), atol=0, rtol=0.01)


def test_the_loss_by_kept_logits_is_that_by_live_ones(tiny: Path, tmp_path: Path) -> None:
    """Of a trained teacher: it is sure of few tokens, and the rest is little."""
    teacher = live(BASELINE, "cpu", FP32)
    batch = collate(DATA[:8], TOKENIZER)
    student = Teacher(live(tiny, "cpu", FP32)).logits(batch)
    by_live = Teacher(teacher).loss(student, batch)
    by_kept = Teacher(keep(tmp_path / "teacher.safetensors", teacher, data=DATA[:8])).loss(student, batch)
    torch.testing.assert_close(by_kept, by_live, atol=0, rtol=0.1)


def test_windows_that_are_not_taught_need_no_kept_logits(tmp_path: Path) -> None:
    kept = keep(tmp_path / "teacher.safetensors", exact, data=DATA[:4])
    untaught = [replace(each, taught=False) for each in DATA[4:9]]  # of higher numbers than the file has windows
    batch = collate([untaught[0], *DATA[:4], *untaught[1:]], TOKENIZER)
    taught = collate(DATA[:4], TOKENIZER)
    for mixed, alone in zip(kept(batch), kept(taught), strict=True):
        torch.testing.assert_close(mixed[1:5, : alone.shape[1]], alone)


def test_what_is_kept_is_not_computed_again(tiny: Path, tmp_path: Path) -> None:
    first = keep(tmp_path / "teacher.safetensors", live(tiny, "cpu", FP32))(shuffled())

    def refuse(_: Batch) -> Logits:
        raise AssertionError("the teacher ran again")

    second = keep(tmp_path / "teacher.safetensors", refuse)(shuffled())
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))


def test_a_stopped_computation_goes_on(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = keep(tmp_path / "whole.safetensors", live(tiny, "cpu", FP32))(shuffled())
    monkeypatch.setattr(module, "SAVE_EVERY_S", -1.0)
    steps: list[int] = []

    class Stopped(Exception):
        pass

    def stop(step: StepReport) -> None:
        steps.append(step.number)
        if step.number == 3:
            raise Stopped

    with pytest.raises(Stopped):
        keep(tmp_path / "halves.safetensors", live(tiny, "cpu", FP32), stop)
    halves = keep(tmp_path / "halves.safetensors", live(tiny, "cpu", FP32), lambda step: steps.append(step.number))(
        shuffled()
    )
    assert steps[:4] == [1, 2, 3, 3], "what was not saved is done again, and nothing else"
    assert all(torch.equal(one, other) for one, other in zip(whole, halves, strict=True))


def test_ctrl_c_keeps_the_batch_it_came_behind(tiny: Path, tmp_path: Path) -> None:
    whole = keep(tmp_path / "whole.safetensors", exact)(shuffled())
    steps: list[int] = []

    def stop(step: StepReport) -> None:
        steps.append(step.number)
        if step.number == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        keep(tmp_path / "halves.safetensors", exact, stop)
    halves = keep(tmp_path / "halves.safetensors", exact, lambda step: steps.append(step.number))(shuffled())
    assert steps == [*range(1, len(steps) + 1)] and len(steps) > 3
    assert all(torch.equal(one, other) for one, other in zip(whole, halves, strict=True))


@pytest.mark.parametrize("other", [{"of": "another"}, {"data": DATA[1:]}], ids=["teacher", "windows"])
def test_logits_of_another_teacher_or_of_other_windows_are_refused(
    tiny: Path, tmp_path: Path, other: dict[str, object]
) -> None:
    keep(tmp_path / "teacher.safetensors", live(tiny, "cpu", FP32))
    with pytest.raises(InputError, match="Name another file"):
        keep(tmp_path / "teacher.safetensors", live(tiny, "cpu", FP32), **other)  # type: ignore[arg-type]  # one of the two


def test_a_file_that_holds_no_logits_is_refused(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("Some words.")
    for file in (tmp_path / "note.txt", tiny / "model.safetensors"):
        with pytest.raises(InputError, match="Name another file"):
            keep(file, live(tiny, "cpu", FP32))
