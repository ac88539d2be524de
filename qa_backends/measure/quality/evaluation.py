"""Several backends on one data set: their figures, and the questions on which two of them differ."""

from __future__ import annotations

import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING

from qa_backends import catalog
from qa_backends.contract import same_answer
from qa_backends.errors import QAError
from qa_backends.measure.quality import scoring
from qa_backends.measure.results.records import LeftOut, QualityRecord
from qa_backends.measure.results.shipped import checkpoint_hash
from qa_backends.measure.timing.machine import this_machine
from qa_backends.progress import Cancelled, Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from qa_backends.catalog import Backend, Family
    from qa_backends.contract import Ran
    from qa_backends.measure.quality.datasets import DataSet
    from qa_backends.measure.quality.scoring import Figures, Scored
    from qa_backends.runtime import Runtime
    from qa_backends.squad import Question

    Emit = Callable[["Evaluation"], None]

LOOK_AT_ONCE = 16
"""Questions that are read together when one is looked for on which two backends differ."""


@dataclass(frozen=True, slots=True)
class Evaluated:
    """One backend on the data set."""

    backend: Backend
    record: QualityRecord
    scored: tuple[Scored, ...]


@dataclass(slots=True)
class Evaluation:
    """What is known so far. ``status`` is empty when nothing more will come.

    ``done`` of ``of`` counts answers, with those that a backend left out will never give. ``left_s`` is the time left,
    in seconds, by what the answers so far have taken, without what is still to be downloaded, built or loaded.
    """

    of: int
    done: int = 0
    left_s: float = 0.0
    status: str = ""
    results: list[Evaluated] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)

    def copy(self) -> Evaluation:
        """The evaluation as it stands now; what is measured later does not change it."""
        return replace(self, results=list(self.results), left_out=list(self.left_out))


@dataclass(frozen=True, slots=True)
class Differing:
    """A question that two backends answer differently."""

    one: Scored
    other: Scored


@dataclass(frozen=True, slots=True)
class EvaluationTask:
    """What is evaluated: the data set, or ``limit`` of its questions drawn with ``seed``, and where."""

    family: Family
    device: str
    data: DataSet
    limit: int | None = None
    seed: int = 0


def evaluate_all(
    runtime: Runtime,
    task: EvaluationTask,
    backends: Sequence[Backend],
    *,
    emit: Emit = lambda _: None,
    stopped: Callable[[], bool] = lambda: False,
) -> Evaluation:
    """Each backend on the same questions, the baseline first so that the others can be compared with it.

    A backend that cannot run is left out with its sentence. Stopping keeps the backends that were finished.

    Raises:
        QAError: the family's tokenizer cannot be had.
    """
    evaluating = _Evaluating(runtime, task, len(backends), emit, stopped)
    evaluating.run(catalog.ladder(backends))
    return evaluating.state


class _Evaluating:
    """One evaluation: what it reads, and how far it is."""

    def __init__(
        self, runtime: Runtime, task: EvaluationTask, backends: int, emit: Emit, stopped: Callable[[], bool]
    ) -> None:
        self._runtime, self._task, self._emit = runtime, task, emit
        self._questions = scoring.sample(task.data.questions, task.limit, task.seed)
        self._progress = Progress(self._tell, stopped)
        self._baseline: list[str] | None = None
        self._answered, self._answering_s, self._since = 0, 0.0, 0.0
        self.state = Evaluation(of=len(self._questions) * backends)

    def _tell(self, status: str) -> None:
        self.state.status = status
        self._emit(self.state)

    def run(self, backends: Sequence[Backend]) -> None:
        with suppress(Cancelled):
            self._runtime.download(self._task.family, backends, self._progress)
            for each in backends:
                self._measure(each)
        self._tell("")

    def _measure(self, backend: Backend) -> None:
        """One backend on all the questions; one that cannot run is left out."""
        task, before = self._task, self.state.done

        def done(count: int, of: int) -> None:
            now = time.perf_counter()
            self._answering_s, self._since = self._answering_s + now - self._since, now
            self._answered += before + count - self.state.done
            self._count(before + count)
            if count < of:  # of the last ones is told with the figures
                self._progress.say(f"{backend.title}: {count:,} of {of:,} questions")

        self._progress.check()
        try:
            self._runtime.make_ready(task.family, backend, task.device, self._progress)
            with self._runtime.turn(task.device, self._progress) as turn:
                ran = self._runtime.get(task.family, backend, task.device, turn.progress).ran
            self._progress.say(f"{backend.title}: reading the first questions …")
            answers = scoring.through(self._runtime, task.family, backend, task.device, self._progress)
            self._since = time.perf_counter()
            scored, seconds = scoring.evaluate(answers, self._questions, done, here=backend.engine_class.computes_here)
        except QAError as error:
            self.state.left_out.append(LeftOut(backend.name, "", str(error)))
            self._count(before + len(self._questions))
            return
        if backend.name == catalog.BASELINE:
            self._baseline = [each.answer.text for each in scored]
        with ExitStack() as held:  # so that nobody is timed while figures are taken and drawn
            with suppress(Cancelled):  # whoever stops waits for nobody, and keeps what is finished
                held.enter_context(self._runtime.turn(task.device, self._progress, timed=False))
            found = quality_record(task, backend, ran, scoring.figures(scored, seconds, self._baseline))
            self.state.results.append(Evaluated(backend, found, tuple(scored)))
            self._tell(f"{backend.title}: {found.n:,} of {found.n:,} questions")

    def _count(self, done: int) -> None:
        """So many answers need not be waited for any more; the others take as long as those that were given."""
        self.state.done = done
        if self._answered:
            self.state.left_s = self._answering_s / self._answered * (self.state.of - done)


def quality_record(task: EvaluationTask, backend: Backend, ran: Ran, found: Figures) -> QualityRecord:
    """One backend's quality as it stands in a results file and in ``evaluate --json``."""
    values = {each.name: getattr(found, each.name) for each in fields(found)}
    whole = found.n == len(task.data.questions)
    return QualityRecord(
        backend=f"{task.family.name}/{backend.name}",
        checkpoint=checkpoint_hash(task.family, backend),
        device=task.device,
        data=task.data.name,
        data_sha256=task.data.sha256,
        limit=None if whole else task.limit,
        seed=0 if whole else task.seed,  # nothing was drawn
        ran=ran,
        machine=this_machine(),
        **values,
    )


def differences(one: Sequence[Scored], other: Sequence[Scored]) -> list[Differing]:
    """The questions whose answers differ, those on which one is right and the other wrong first."""
    pairs = zip(one, other, strict=True)
    found = [Differing(*pair) for pair in pairs if not same_answer(pair[0].answer, pair[1].answer)]
    return sorted(found, key=lambda each: -abs(each.one.f1 - each.other.f1))


def find_difference(
    runtime: Runtime,
    family: Family,
    pair: tuple[Backend, Backend],
    device: str,
    questions: Sequence[Question],
    progress: Progress,
) -> Differing | None:
    """Of the first questions that the two backends answer differently the one on which they are furthest apart;
    ``None`` where they agree on all.

    Raises:
        QAError: one of them cannot run.
        Cancelled: ``progress`` says to stop.
    """
    runtime.download(family, pair, progress)
    for each in pair:
        runtime.make_ready(family, each, device, progress)
    wanted = f"a question that {pair[0].title} and {pair[1].title} answer differently"
    for first in range(0, len(questions), LOOK_AT_ONCE):
        part = questions[first : first + LOOK_AT_ONCE]
        progress.say(f"Looking for {wanted}: {first} of {len(questions)} read …")
        answers = [scoring.through(runtime, family, each, device, progress) for each in pair]
        if found := differences(*(scoring.evaluate(each, part)[0] for each in answers)):
            return found[0]
    return None
