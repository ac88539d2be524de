"""One training loop for every recipe: fused AdamW, and a saved state that a stopped run goes on from."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qa_backends.engines.torch_compile import TorchCompile, compiler_errors
from qa_backends.errors import BackendUnavailable, InputError
from qa_backends.limits import keep_freed_memory, limit_threads
from qa_backends.training.average import Average
from qa_backends.training.saved import SavedState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import torch

    from qa_backends.training.data import Batch
    from qa_backends.training.settings import Recipe, RunSettings

    Loss = Callable[[Batch, int], torch.Tensor]
    OnStep = Callable[["StepReport"], None]

SAVE_EVERY_S = 300.0
WARM_UP_SHARE = 0.06
GRADIENT_CLIP = 1.0
LOSS_MEMORY = 0.98
"""How much of the loss that is shown stays from the step before."""


@dataclass(frozen=True, slots=True)
class StepReport:
    """What those who wait are told after a step: its number, of how many, and the smoothed loss.

    The loss is ``None`` where nothing is learned, and ``doing`` then says what is done instead.
    """

    number: int
    of: int
    loss: float | None
    windows_per_second: float
    doing: str = ""


def begin(run: RunSettings) -> None:
    """Starts a run: sets its seed, holds PyTorch to the threads that this process may use, and keeps its memory.

    Raises:
        BackendUnavailable: what a step compiles with is not there.
    """
    import torch

    if refused := TorchCompile.refusal({}, run.device):
        raise BackendUnavailable(*refused)
    limit_threads()
    keep_freed_memory()
    torch.manual_seed(run.seed)


def rate_at(step: int, recipe: Recipe) -> float:
    """Learning rate of a step: linear warm-up, then linear decay to nothing (Devlin et al. 2019)."""
    warm_up = max(1, round(recipe.steps * WARM_UP_SHARE))
    share = (step + 1) / warm_up if step < warm_up else (recipe.steps - step) / max(1, recipe.steps - warm_up)
    return recipe.learning_rate * share


def train(
    parameters: dict[str, torch.nn.Parameter],
    loss_of: Loss,
    batches_from: Callable[[int], Iterator[Batch]],
    recipe: Recipe,
    folder: Path,
    on_step: OnStep,
) -> None:
    """Runs the recipe from its beginning, or from the state that was saved in ``folder``.

    ``parameters`` are what is learned, by name; ``batches_from(n)`` yields the batches from number ``n`` on. In
    the end ``parameters`` are the average of their steps, where the recipe asks for one.

    Random numbers are drawn anew in each step, from the seed and the step's number, so that a run that goes on draws
    those it would have drawn.

    Raises:
        InputError: the folder holds a run of another recipe, or the loss or its gradient is no number any more.
    """
    import torch

    optimizer = torch.optim.AdamW(
        parameters.values(), recipe.learning_rate, weight_decay=recipe.weight_decay, fused=True
    )
    average = Average(parameters, recipe.ema) if recipe.ema else None
    state = SavedState(folder, recipe, parameters, optimizer, average)
    first = state.resume()
    saved = started = time.monotonic()
    windows = 0
    shown = 0.0
    for step, batch in enumerate(batches_from(first), start=first):
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step, recipe)
        torch.manual_seed((recipe.seed << 32 | step) % 2**63)
        with compiler_errors():  # the first batch compiles, and its backward pass once more
            loss = loss_of(batch, step)
            torch.autograd.backward(loss)
        norm = torch.nn.utils.clip_grad_norm_(parameters.values(), GRADIENT_CLIP)
        value = loss.item()
        if not (math.isfinite(value) and math.isfinite(norm)):
            raise InputError(
                f"The loss of step {step + 1} is {value}, its gradient {norm}: the run came apart. What was saved "
                f"before stays in {folder}; begin in another folder, with a lower --learning-rate or --precision fp32."
            )
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if average:
            average.update(step + 1)
        windows += len(batch)
        shown = value if step == first else LOSS_MEMORY * shown + (1 - LOSS_MEMORY) * value
        now = time.monotonic()
        try:
            on_step(StepReport(step + 1, recipe.steps, shown, windows / (now - started)))
        except KeyboardInterrupt:
            state.save(step + 1)  # the step is whole
            raise
        if now - saved > SAVE_EVERY_S:
            state.save(step + 1)
            saved = now
    if first < recipe.steps:
        state.save(recipe.steps)
    if average:
        average.put_in_place()
