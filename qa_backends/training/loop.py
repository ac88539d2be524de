"""One training loop for every recipe: fused AdamW, and checkpoints that a stopped run goes on from."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from qa_backends.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import torch

    from qa_backends.training.data import Batch

    Loss = Callable[[Batch, int], torch.Tensor]
    Progress = Callable[["Step"], None]

CHECKPOINT_EVERY_S = 300.0
WARM_UP_SHARE = 0.06
GRADIENT_CLIP = 1.0
WEIGHT_DECAY = 0.01
SCORE_RATE = 100.0
MOMENTS = ("exp_avg", "exp_avg_sq")
"""AdamW's state of each parameter, by PyTorch's names."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a run is; a folder holds one run, and a changed recipe needs another folder."""

    steps: int
    learning_rate: float
    weight_decay: float
    max_tokens: int
    seed: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What a person chooses of a run: its folder, ``passes`` over the questions, and how to step and where."""

    folder: Path
    passes: float
    learning_rate: float
    max_tokens: int
    seed: int
    device: str

    def recipe(self, steps: int) -> Recipe:
        return Recipe(steps, self.learning_rate, WEIGHT_DECAY, self.max_tokens, self.seed)

    def settings(self) -> dict[str, object]:
        """What a manifest keeps of it."""
        chosen = asdict(self)
        return {key: value for key, value in chosen.items() if key not in ("folder", "device")}


@dataclass(frozen=True, slots=True)
class Step:
    """What the progress shows after a step."""

    number: int
    of: int
    loss: float
    windows_per_second: float


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
    progress: Progress,
    *,
    scores: dict[str, torch.nn.Parameter] | None = None,
) -> None:
    """Runs the recipe from its beginning or from the last checkpoint in ``folder``.

    ``parameters`` are what is learned, by name; ``batches_from(n)`` yields the batches from number ``n`` on.
    ``scores``, for movement pruning, are learned ``SCORE_RATE`` times as fast as weights, and do not decay.

    Raises:
        InputError: the folder holds a run of another recipe.
    """
    import torch

    scores = scores or {}
    groups = [
        {"params": list(parameters.values()), "weight_decay": recipe.weight_decay, "pace": 1.0},
        {"params": list(scores.values()), "weight_decay": 0.0, "pace": SCORE_RATE},
    ]
    optimizer = torch.optim.AdamW([each for each in groups if each["params"]], lr=recipe.learning_rate, fused=True)
    state = Checkpoint(folder, recipe, parameters | scores, optimizer)
    first = state.resume()
    saved = started = time.monotonic()
    windows = 0
    running = 0.0
    for step, batch in enumerate(batches_from(first), start=first):
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step, recipe) * group["pace"]
        loss = loss_of(batch, step)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters.values(), GRADIENT_CLIP)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        windows += len(batch)
        value = loss.item()
        running = value if step == first else 0.98 * running + 0.02 * value
        now = time.monotonic()
        progress(Step(step + 1, recipe.steps, running, windows / (now - started)))
        if now - saved > CHECKPOINT_EVERY_S:
            state.save(step + 1)
            saved = now
    state.save(recipe.steps)


class Checkpoint:
    """Weights, AdamW's two moments and the step, as safetensors and JSON: nothing in it can run code when read."""

    def __init__(
        self,
        folder: Path,
        recipe: Recipe,
        parameters: dict[str, torch.nn.Parameter],
        optimizer: torch.optim.Optimizer,
    ) -> None:
        self._tensors = folder / "training.safetensors"
        self._recipe = folder / "training.json"
        self._wanted = asdict(recipe)
        self._parameters = parameters
        self._optimizer = optimizer

    def save(self, step: int) -> None:
        """Replaces the last checkpoint whole: a run stopped while saving goes on from the one before."""
        from safetensors.torch import save_file

        tensors = {}
        for name, parameter in self._parameters.items():
            tensors[f"weight.{name}"] = parameter.detach().contiguous()
            for moment in MOMENTS:
                tensors[f"{moment}.{name}"] = self._optimizer.state[parameter][moment]
        self._tensors.parent.mkdir(parents=True, exist_ok=True)
        partial = self._tensors.with_suffix(".partial")
        save_file(tensors, partial, metadata={"step": str(step)})
        partial.replace(self._tensors)
        self._recipe.write_text(json.dumps(self._wanted, indent=1) + "\n", encoding="utf-8")

    def resume(self) -> int:
        """Loads the checkpoint, if there is one, and returns the step to go on from."""
        import torch
        from safetensors import safe_open

        if not self._tensors.is_file():
            return 0
        found = json.loads(self._recipe.read_text(encoding="utf-8"))
        if found != self._wanted:
            raise InputError(
                f"{self._tensors.parent} holds a run with other settings ({found}). "
                "Go on with those, or name another folder."
            )
        with safe_open(self._tensors, framework="pt") as file:
            step = int(file.metadata()["step"])
            for name, parameter in self._parameters.items():
                parameter.data.copy_(file.get_tensor(f"weight.{name}"))
                moments = {key: file.get_tensor(f"{key}.{name}").to(parameter.device) for key in MOMENTS}
                count = torch.tensor(float(step), device=parameter.device)
                self._optimizer.state[parameter] = {"step": count, **moments}
        return step
