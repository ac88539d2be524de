"""What a run is taught from: its questions as batches, epoch after epoch, and a teacher's logits of them."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from qa_backends.checkpoints.architectures import architecture_of
from qa_backends.checkpoints.load import read_config
from qa_backends.reader.tokens import SubwordTokenizer
from qa_backends.squad import read_squad
from qa_backends.training.cached import cached
from qa_backends.training.data import hash_of, steps_of, stream
from qa_backends.training.distil import Teacher
from qa_backends.training.epochs import Epochs
from qa_backends.training.loop import StepReport, begin, train
from qa_backends.training.saved import claim

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import torch

    from qa_backends.squad import Question
    from qa_backends.training.data import Batch
    from qa_backends.training.loop import Loss, OnStep
    from qa_backends.training.settings import RunSettings
    from qa_backends.training.teaching import Teaching


class Material:
    """The batches of one run, always the same ones, cut as its model reads them.

    Making it begins the run: what is drawn at random comes after. Raises InputError where the file of the run's
    further questions cannot be read.
    """

    def __init__(self, questions: Sequence[Question], tokenizer_from: Path, run: RunSettings, on_step: OnStep) -> None:
        begin(run)
        self.tokenizer = SubwordTokenizer(tokenizer_from)
        self._run = run
        self._on_step = on_step
        config = read_config(tokenizer_from)
        reads = architecture_of(config).reads(config)
        also = read_squad(run.also) if run.also else ()
        self._epochs = Epochs(
            questions, self.tokenizer, run.changes, seed=run.seed, reads=reads, also=also, also_times=run.also_times
        )
        self.steps = self.steps_of(run.passes)

    def steps_of(self, passes: float) -> int:
        """Raises InputError where so many passes do not make one step."""
        return steps_of(self._epochs(0), passes=passes, max_tokens=self._run.max_tokens, seed=self._run.seed)

    def claim(self, **facts: object) -> None:
        """Notes what the run in the folder is: what is finished of another is not taken for its own.

        Raises:
            InputError: the folder holds a run with other settings.
        """
        windows = self._epochs(0)
        taught = {"windows": len(windows), "sha256": hash_of(windows), "steps": self.steps}
        claim(self._run.folder, taught | facts | self._run.facts())

    def batches(self, skip: int, steps: int) -> Iterator[Batch]:
        """Those number ``skip`` to ``steps`` of the whole run, on its device."""
        run = self._run
        made = stream(self._epochs, self.tokenizer, max_tokens=run.max_tokens, seed=run.seed, steps=steps, skip=skip)
        return (batch.to(run.device) for batch in made)

    def looked_at(self, steps: int, *, before: int, doing: str) -> Iterator[Batch]:
        """The run's first ``steps`` batches, of which nothing is learned ``before`` the step of that number; after
        each, those who wait are told what it is for, ``doing``."""
        started, windows = time.monotonic(), 0
        for number, batch in enumerate(self.batches(0, steps), start=1):
            yield batch
            windows += len(batch)
            pace = windows / (time.monotonic() - started)
            self._on_step(StepReport(before, self.steps, None, pace, f"{doing}, batch {number} of {steps}"))

    def train(
        self,
        parameters: dict[str, torch.nn.Parameter],
        loss_of: Loss,
        folder: Path,
        *,
        begins: int = 0,
        end: int | None = None,
    ) -> None:
        """Trains on the batches ``begins`` to ``end``, by default all, as the run's settings say: see ``loop.train``,
        whose state goes to ``folder``, and which says what is raised. Steps are told as those of the whole run."""
        last = self.steps if end is None else end

        def on_step(step: StepReport) -> None:
            self._on_step(replace(step, number=begins + step.number, of=self.steps))

        train(
            parameters,
            loss_of,
            lambda skip: self.batches(begins + skip, last),
            self._run.recipe(last - begins),
            folder,
            on_step,
        )

    def teacher(self, teaching: Teaching) -> Teacher:
        """Who teaches these batches.

        Raises:
            InputError: the file of logits is not of these questions.
            QAError: see ``Teaching.logits_of``.
        """
        run = self._run
        logits_of = teaching.logits_of(run.device, run.precision)
        if teaching.kept is None:
            return Teacher(logits_of)
        taught = [each for each in self._epochs(0) if each.taught]
        return Teacher(
            cached(
                teaching.kept, logits_of, taught, self.tokenizer, of=teaching.name(run.precision),
                max_tokens=run.max_tokens, device=run.device, on_step=self._on_step,
            )
        )  # fmt: skip
