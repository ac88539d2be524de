"""The training loop: its learning rate, and going on after it was stopped at any moment."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import safetensors.torch
import torch
from filelock import FileLock, Timeout
from torch._dynamo.exc import BackendCompilerFailed

from qa_backends.contract import Windows
from qa_backends.errors import ArtefactError, InputError
from qa_backends.training import loop
from qa_backends.training.average import Average
from qa_backends.training.data import Batch
from qa_backends.training.loop import rate_at, train
from qa_backends.training.saved import LOCK, NAME, NOTE, claim
from qa_backends.training.settings import Recipe

if TYPE_CHECKING:
    from collections.abc import Callable

    from qa_backends.training.loop import OnStep, StepReport

STEPS = 3
ONE_TOKEN = np.zeros((1, 1), dtype=np.int64)
WINDOWS = Windows(ONE_TOKEN, ONE_TOKEN, None, ONE_TOKEN[..., None], ONE_TOKEN == 0, ONE_TOKEN[0])
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


def train_a_little(
    folder: Path, *, learning_rate: float = 0.1, ema: float = 0.5, on_step: OnStep = lambda _report: None,
    trouble: Exception | None = None,
) -> tuple[torch.Tensor, list[int]]:  # fmt: skip
    """Three steps of three weights, with noise: what became of the weights' average, and which steps were done."""
    weights = torch.nn.Parameter(torch.tensor([1.0, -2.0, 3.0]))
    batch = Batch({}, torch.zeros(1), torch.zeros(1), torch.ones(1), torch.zeros(1), WINDOWS)
    done: list[int] = []

    def loss(_batch: Batch, step: int) -> torch.Tensor:
        if trouble:
            raise trouble
        return ((weights - step + torch.rand(3)) ** 2).sum()

    def note(report: StepReport) -> None:
        done.append(report.number)
        on_step(report)

    train(
        {"weights": weights},
        loss,
        lambda skip: iter([batch] * (STEPS - skip)),
        Recipe(STEPS, learning_rate, weight_decay=0.01, max_tokens=1, seed=0, ema=ema),
        folder,
        note,
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
def test_a_loss_that_is_no_number_ends_the_run_and_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="The loss of step 2 is inf"):
        train_a_little(tmp_path, learning_rate=1e30)
    with safetensors.safe_open(tmp_path / NAME, framework="pt") as file:
        assert file.metadata()["step"] == "1"


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


def test_ctrl_c_behind_a_step_keeps_it_and_the_run_goes_on_from_there(tmp_path: Path) -> None:
    expected, _ = train_a_little(tmp_path / "whole")

    def interrupt(report: StepReport) -> None:
        if report.number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_a_little(tmp_path / "stopped", on_step=interrupt)
    weights, done = train_a_little(tmp_path / "stopped")
    assert torch.equal(weights, expected)
    assert done == [STEPS]


def test_a_step_that_cannot_be_compiled_says_what_to_delete(tmp_path: Path) -> None:
    """As half a library that a process left that was stopped while it compiled."""

    def fail(_report: StepReport) -> None:
        raise AssertionError("a step was done")

    broken = BackendCompilerFailed("inductor", OSError("file too short"), None)
    with pytest.raises(ArtefactError, match=r"torch\.compile failed \(OSError\).* delete .*, and try again"):
        train_a_little(tmp_path, on_step=fail, trouble=broken)


def test_an_average_lies_behind_the_last_weights(tmp_path: Path) -> None:
    """The loss pulls two of the weights one way at every step; what is averaged has moved less."""
    last, _ = train_a_little(tmp_path / "last", ema=0.0)
    average, _ = train_a_little(tmp_path / "average", ema=0.9)
    start = torch.tensor([1.0, -2.0, 3.0])
    assert ((average - start).abs() < (last - start).abs())[1:].all()
    assert ((average - start).abs() > 0).all()


def test_an_average_keeps_the_share_it_is_told() -> None:
    weight = torch.nn.Parameter(torch.tensor([1.0]))
    average = Average({"weight": weight}, decay=0.75)
    weight.data.fill_(5.0)
    average.update(steps=1000)
    torch.testing.assert_close(average.weights["weight"], torch.tensor([0.75 * 1 + 0.25 * 5]))
    average.put_in_place()
    assert weight.item() == 2.0


def test_an_average_soon_forgets_where_it_began() -> None:
    weight = torch.nn.Parameter(torch.tensor([0.0]))
    average = Average({"weight": weight}, decay=0.999)
    weight.data.fill_(1.0)
    for step in range(100):
        average.update(step + 1)
    assert average.weights["weight"].item() > 0.99, "by decay alone it would be below 0.1"


def test_a_finished_run_is_not_run_again_and_another_recipe_is_refused(tmp_path: Path) -> None:
    weights, _ = train_a_little(tmp_path)
    again, done = train_a_little(tmp_path)
    assert torch.equal(again, weights) and done == []
    with pytest.raises(InputError, match=r"other settings \(learning_rate 0\.1\)"):
        train_a_little(tmp_path, learning_rate=0.2)


def test_a_note_of_which_nothing_came_gives_way(tmp_path: Path) -> None:
    """A run whose teacher could not run leaves its note, and is begun again with another."""
    for passes in (1, 2):
        claim(tmp_path, {"passes": passes, "seed": 0})
    train_a_little(tmp_path)
    claim(tmp_path, {"passes": 2, "seed": 0})
    with pytest.raises(InputError, match=r"other settings \(passes 2\)\. Go on"):
        claim(tmp_path, {"passes": 3, "seed": 0})


@pytest.mark.parametrize("fact", ["windows", "sha256", "steps"])
def test_of_a_difference_that_no_option_sets_by_itself_it_is_said_which_ones_decide(tmp_path: Path, fact: str) -> None:
    claim(tmp_path, {"max_tokens": 1, fact: 1})
    (tmp_path / NAME).touch()
    with pytest.raises(InputError, match=rf"\({fact} 1\)\. Of those, --data, --also, --hold-out, .* decide"):
        claim(tmp_path, {"max_tokens": 1, fact: 2})
    with pytest.raises(InputError, match=rf"\(max_tokens 1, {fact} 1\)\. Go on with those"):
        claim(tmp_path, {"max_tokens": 2, fact: 2})


def test_a_folder_that_another_process_trains_in_is_refused_until_that_ends(tmp_path: Path) -> None:
    with FileLock(tmp_path / LOCK), pytest.raises(InputError, match="Another process trains in"):
        claim(tmp_path, {"seed": 0})
    assert not (tmp_path / NOTE).exists()
    for _ in range(2):
        claim(tmp_path, {"seed": 0})
    with pytest.raises(Timeout):
        FileLock(tmp_path / LOCK).acquire(timeout=0)
