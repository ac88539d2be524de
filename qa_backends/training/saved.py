"""What a stopped run goes on from: one file with its weights, AdamW's moments, its step and its recipe; and a note of
what the run is."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from qa_backends.checkpoints.tensors import save_tensors
from qa_backends.errors import InputError
from qa_backends.paths import write_whole

if TYPE_CHECKING:
    from pathlib import Path

    import torch

    from qa_backends.training.average import Average
    from qa_backends.training.settings import Recipe

NAME = "training.safetensors"
NOTE, LOCK = "run.json", ".lock"
MOMENTS = ("exp_avg", "exp_avg_sq")
"""AdamW's state of each parameter, by PyTorch's names."""
OF_THE_DATA = {"windows", "sha256", "steps"}
"""Facts that no option sets by itself; where others differ too, those decide."""
_held: dict[Path, FileLock] = {}


def claim(folder: Path, facts: dict[str, object]) -> None:
    """Notes what the folder's run is, so that what is done of another is never taken for its own, and holds the folder
    until this process ends.

    A note of which nothing came, since its teacher could not run, say, gives way.

    Raises:
        InputError: the folder holds a run with other facts, or another process is at it.
    """
    _hold(folder)
    note = folder / NOTE
    if note.is_file() and any(each.name not in (NOTE, LOCK) for each in folder.iterdir()):
        _check(folder, json.loads(note.read_text(encoding="utf-8")), facts)
    write_whole(note, json.dumps(facts, indent=1) + "\n")


def _hold(folder: Path) -> None:
    """Raises InputError where another process holds it: both would write the same state."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = _held.setdefault(folder.resolve(), FileLock(folder / LOCK))
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise InputError(f"Another process trains in {folder}. Wait for it, or name another folder.") from error


def _check(folder: Path, found: dict[str, object], wanted: dict[str, object]) -> None:
    """Raises InputError where a folder's run was ``found`` to have other settings, and says which."""
    differing = {key: found.get(key) for key in {**found, **wanted} if found.get(key) != wanted.get(key)}
    if differing:
        told = ", ".join(f"{key} {value}" for key, value in differing.items())
        decided = " Of those, --data, --also, --hold-out, --hold-out-seed and --passes decide."
        of = decided if differing.keys() <= OF_THE_DATA else ""
        raise InputError(
            f"{folder} holds a run with other settings ({told}).{of} Go on with those, or name another folder."
        )


class SavedState:
    """A run's state on disk.

    Step and recipe stand in the file's metadata, so that no moment of saving leaves one without the other.
    """

    def __init__(
        self,
        folder: Path,
        recipe: Recipe,
        parameters: dict[str, torch.nn.Parameter],
        optimizer: torch.optim.Optimizer,
        average: Average | None = None,
    ) -> None:
        self._file = folder / NAME
        self._recipe = asdict(recipe)
        self._parameters = parameters
        self._optimizer = optimizer
        self._average = average.weights if average else {}

    def save(self, step: int) -> None:
        """Replaces the saved state whole: a run stopped while saving goes on from the one before."""
        tensors = {}
        for name, parameter in self._parameters.items():
            tensors[f"weight.{name}"] = parameter.detach().contiguous()
            for moment in MOMENTS:
                tensors[f"{moment}.{name}"] = self._optimizer.state[parameter][moment]
        tensors |= {f"average.{name}": each.contiguous() for name, each in self._average.items()}
        save_tensors(tensors, self._file, {"step": str(step), "recipe": json.dumps(self._recipe)})

    def resume(self) -> int:
        """Loads the saved state, if there is one, and returns the step to go on from.

        Raises:
            InputError: it is that of a run with another recipe.
        """
        import torch
        from safetensors import safe_open

        if not self._file.is_file():
            return 0
        with safe_open(self._file, framework="pt") as file:
            metadata = file.metadata()
            _check(self._file.parent, json.loads(metadata.get("recipe", "{}")), self._recipe)
            step = int(metadata["step"])
            for name, parameter in self._parameters.items():
                parameter.data.copy_(file.get_tensor(f"weight.{name}"))
                moments = {key: file.get_tensor(f"{key}.{name}").to(parameter.device) for key in MOMENTS}
                count = torch.tensor(float(step), device=parameter.device)
                self._optimizer.state[parameter] = {"step": count, **moments}
            for name, weight in self._average.items():
                weight.copy_(file.get_tensor(f"average.{name}"))
        return step
