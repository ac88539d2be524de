"""Who teaches a run, and what computes the teachers' logits: training's own PyTorch, or a faster backend."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from qa_backends.catalog import BASELINE, family_of
from qa_backends.checkpoints.manifest import file_hash
from qa_backends.errors import InputError
from qa_backends.progress import UNWATCHED, Progress
from qa_backends.runtime import Runtime
from qa_backends.training.model import frozen, runner
from qa_backends.training.provenance import check_read_alike, check_taught, weights_of
from qa_backends.training.settings import UNCHANGED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import torch

    from qa_backends.catalog import Backend
    from qa_backends.contract import FloatArray
    from qa_backends.training.data import Batch
    from qa_backends.training.model import Logits
    from qa_backends.training.settings import Changes


@dataclass(frozen=True)
class Teaching:
    """The fine-tuned ``checkpoint`` that teaches, alone or with ``others``, and how its logits are had.

    Several teach the mean of their logits: an ensemble errs less than each of its members (Hinton et al. 2015, section
    3). ``backend``, where given, is one whose build steps and engine compute them, whatever checkpoint is its own: the
    smaller the student, the more of its step is its teacher's time. With ``kept``, a file, they are computed once for
    all passes, see ``cached``. ``progress`` hears of what the backend has to build.
    """

    checkpoint: Path
    backend: Backend | None = None
    kept: Path | None = None
    progress: Progress = UNWATCHED
    others: tuple[Path, ...] = ()

    @property
    def checkpoints(self) -> tuple[Path, ...]:
        """All that teach."""
        return (self.checkpoint, *self.others)

    @cached_property
    def weights(self) -> list[str]:
        """File hashes of the checkpoints'. Raises InputError where one has none."""
        return [file_hash(weights_of(each)) for each in self.checkpoints]

    @property
    def by(self) -> str:
        """The backend's name on this checkpoint; empty for PyTorch."""
        return replace(self.backend, checkpoint=BASELINE).name if self.backend else ""

    def name(self, precision: str) -> str:
        """Which logits these are, by the weights and what computes them, which is a backend, or PyTorch at the
        ``precision``; raises what ``weights`` raises."""
        return " ".join([*self.weights, self.by or precision])

    def check(self, student: Path, changes: Changes) -> None:
        """Raises InputError where a teacher was not taught itself, or reads otherwise than the student, or logits are
        to be kept of questions that change."""
        for each in self.checkpoints:
            check_taught(each)
            check_read_alike(student, each)
        if self.kept and changes != UNCHANGED:
            raise InputError(
                "A teacher's logits can be kept of questions that stay the same. Leave out --teacher-logits, or the "
                "options that change questions: --swaps, --lower-case, --cut, --join and --misplaced."
            )

    def facts(self) -> dict[str, object]:
        """What of it decides a run's result, for manifests and notes; raises what ``weights`` raises."""
        first, *others = self.weights
        facts: dict[str, object] = {"teacher": first, "teacher_logits": self.kept is not None}
        facts |= {"other_teachers": others} if others else {}
        return facts | ({"teacher_backend": self.by} if self.by else {})

    def logits_of(self, device: str, precision: str) -> Callable[[Batch], Logits]:
        """What computes start and end logits ``[n, seq_len]`` of a batch; ``precision`` is for PyTorch.

        Raises:
            ArtefactError: a checkpoint cannot be read.
            QAError: the backend cannot be built from one, or cannot run here.
        """
        return mean_of([self._one(each, device, precision) for each in self.checkpoints])

    def _one(self, checkpoint: Path, device: str, precision: str) -> Callable[[Batch], Logits]:
        if self.backend:
            return through(self.backend, checkpoint, device, self.progress)
        return live(checkpoint, device, precision)


def mean_of(teachers: Sequence[Callable[[Batch], Logits]]) -> Callable[[Batch], Logits]:
    """The mean of what they say of a batch, start and end logits ``[n, seq_len]`` each."""
    import torch

    def logits_of(batch: Batch) -> Logits:
        starts, ends = zip(*(each(batch) for each in teachers), strict=True)
        return torch.stack(starts).mean(dim=0), torch.stack(ends).mean(dim=0)

    return logits_of


def live(checkpoint: Path, device: str, precision: str) -> Callable[[Batch], Logits]:
    """A fine-tuned checkpoint in PyTorch, loaded to the device; raises what ``load_model`` raises."""
    return runner(frozen(checkpoint, device), device, precision)


def through(backend: Backend, checkpoint: Path, device: str, progress: Progress) -> Callable[[Batch], Logits]:
    """A fine-tuned checkpoint as the backend would run it; raises what ``Runtime.make_ready`` raises."""
    import torch
    from torch.nn.functional import pad

    runtime, of = Runtime(), family_of(checkpoint, "teacher", "Teacher")
    alone = replace(backend, checkpoint=BASELINE)
    runtime.make_ready(of, alone, device, progress)

    def logits_of(batch: Batch) -> Logits:
        with runtime.turn(device, timed=False) as turn:
            found = turn.logits(of, alone, batch.windows)
        seq_len = batch.inputs["input_ids"].shape[1]

        def padded(logits: FloatArray) -> torch.Tensor:
            return pad(torch.from_numpy(logits), (0, seq_len - logits.shape[1])).to(device)

        return padded(found.start), padded(found.end)

    return logits_of
