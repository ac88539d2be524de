"""The training loop: its learning rate, and going on after it was stopped at any moment."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import safetensors.torch
import torch

from qa_backends.errors import InputError
from qa_backends.training import loop
from qa_backends.training.data import Batch
from qa_backends.training.loop import rate_at, train
from qa_backends.training.settings import Recipe

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS = 3
FILE_OPERATIONS = (
    (os, "mkdir"),
    (os, "replace"),
    (os, "rename"),
    (os, "unlink"),
    (Path, "write_text"),
    (Path, "write_bytes"),
    (safetensors.torch, "save_file"),
)


class Killed(BaseException):
    """Stands for the end of the process."""


def kill_after(count: int, patch: pytest.MonkeyPatch) -> None:
    """Lets ``count`` operations that change files happen, and ends the process right after the last of them."""
    left = itertools.count(count - 1, -1)

    def deadly(operation: Callable[..., Any]) -> Callable[..., Any]:
        def operate(*args: Any, **options: Any) -> Any:
            found = operation(*args, **options)
            if next(left) == 0:
                raise Killed
            return found

        return operate

    for owner, name in FILE_OPERATIONS:
        patch.setattr(owner, name, deadly(getattr(owner, name)))


def train_a_little(folder: Path, *, learning_rate: float = 0.1) -> tuple[torch.Tensor, list[int]]:
    """Three steps of three weights, saved after each: what became of the weights, and which steps were done."""
    weights = torch.nn.Parameter(torch.tensor([1.0, -2.0, 3.0]))
    batch = Batch({}, torch.zeros(1), torch.zeros(1))
    done: list[int] = []
    train(
        {"weights": weights},
        lambda _batch, step: ((weights - step) ** 2).sum(),
        lambda skip: iter([batch] * (STEPS - skip)),
        Recipe(STEPS, learning_rate, weight_decay=0.01, max_tokens=1, seed=0),
        folder,
        lambda report: done.append(report.number),
    )
    return weights.detach(), done


@pytest.fixture
def saved_after_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "SAVE_EVERY_S", -1.0)


def test_the_rate_warms_up_and_falls_to_nothing() -> None:
    recipe = Recipe(steps=1000, learning_rate=1.0, weight_decay=0.0, max_tokens=1, seed=0)
    rates = [rate_at(step, recipe) for step in range(1000)]
    assert max(rates) == 1.0 and rates.index(1.0) == 59
    assert rates[0] < 0.05 and rates[-1] < 0.01


@pytest.mark.usefixtures("saved_after_every_step")
def test_a_run_killed_after_any_change_of_a_file_goes_on(tmp_path: Path) -> None:
    expected, _ = train_a_little(tmp_path / "whole")
    killed = 0
    for count in itertools.count(1):
        folder = tmp_path / f"killed-{count}"
        with pytest.MonkeyPatch.context() as patch:
            kill_after(count, patch)
            try:
                train_a_little(folder)
                break
            except Killed:
                killed += 1
        weights, done = train_a_little(folder)
        assert torch.equal(weights, expected)
        assert done == list(range(STEPS - len(done) + 1, STEPS + 1)), "no step is left out"
    assert killed > STEPS, "it was killed in every step's saving"


@pytest.mark.usefixtures("saved_after_every_step")
def test_a_run_killed_while_it_writes_goes_on_from_what_was_saved_before(tmp_path: Path) -> None:
    expected, _ = train_a_little(tmp_path / "whole")
    write = safetensors.torch.save_file

    def write_half(tensors: dict[str, torch.Tensor], file: Path, **options: Any) -> None:
        if saves.append(file) or len(saves) < STEPS:
            return write(tensors, file, **options)
        Path(file).write_bytes(b"half")
        raise Killed

    saves: list[Path] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(safetensors.torch, "save_file", write_half)
        with pytest.raises(Killed):
            train_a_little(tmp_path / "killed")
    weights, done = train_a_little(tmp_path / "killed")
    assert torch.equal(weights, expected)
    assert done == [STEPS]


def test_a_finished_run_is_not_run_again_and_another_recipe_is_refused(tmp_path: Path) -> None:
    weights, _ = train_a_little(tmp_path)
    again, done = train_a_little(tmp_path)
    assert torch.equal(again, weights) and done == []
    with pytest.raises(InputError, match="other settings"):
        train_a_little(tmp_path, learning_rate=0.2)
