"""Several backends on one data set: their figures, and the questions on which two of them differ."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from qa_backends import catalog
from qa_backends.errors import QAError
from qa_backends.measure import accuracy
from qa_backends.measure.results import accuracy_row
from qa_backends.measure.rounds import StoppedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from qa_backends.catalog import Backend, Family
    from qa_backends.measure.accuracy import Scored
    from qa_backends.measure.datasets import DataSet
    from qa_backends.runtime import Runtime
    from qa_backends.squad import Question

    Emit = Callable[["Evaluation"], None]
    Stopped = Callable[[], bool]

LOOK_AT_ONCE = 16
"""Questions that are read together when one is looked for on which two backends differ."""


@dataclass(frozen=True, slots=True)
class Result:
    """One backend on the data set; ``row`` is as a results file holds it."""

    backend: Backend
    row: dict[str, Any]
    scored: tuple[Scored, ...]


@dataclass(slots=True)
class Evaluation:
    """What is known so far. ``status`` is empty when nothing more will come; ``done`` of ``of`` counts answers."""

    data: str
    of: int
    done: int = 0
    left_s: float = 0.0
    status: str = ""
    results: list[Result] = field(default_factory=list)
    left_out: list[dict[str, str]] = field(default_factory=list)

    def copy(self) -> Evaluation:
        return replace(self, results=list(self.results), left_out=list(self.left_out))


@dataclass(frozen=True, slots=True)
class Difference:
    """A question that two backends answer differently."""

    one: Scored
    other: Scored


def evaluate_all(
    runtime: Runtime,
    group: Family,
    rows: Sequence[Backend],
    device: str,
    data: DataSet,
    *,
    limit: int | None = None,
    seed: int = 0,
    emit: Emit = lambda _: None,
    stopped: Stopped = lambda: False,
) -> Evaluation:
    """Each backend on the same questions, the baseline first so that the others can be compared with it.

    A backend that cannot run is left out with its sentence. Stopping keeps the backends that were finished.

    Raises:
        QAError: the family's tokenizer cannot be had.
    """
    state = Evaluation(data.name, of=min(limit or len(data.questions), len(data.questions)) * len(rows))
    job = _Job(runtime, group, device, data, limit, seed, state, emit, stopped)
    catalog.download(group, rows, job.say)
    with suppress(StoppedError):
        for row in sorted(rows, key=catalog.BACKENDS.index):
            job.measure(row)
    job.say("")
    return state


class _Job:
    """One evaluation: what it reads, and how far it is."""

    def __init__(
        self, runtime: Runtime, group: Family, device: str, data: DataSet, limit: int | None, seed: int,
        state: Evaluation, emit: Emit, stopped: Stopped,
    ) -> None:  # fmt: skip
        self._runtime, self._group, self._device = runtime, group, device
        self._data, self._limit, self._seed = data, limit, seed
        self._state, self._emit, self._stopped = state, emit, stopped
        self._questions = accuracy.sample(data.questions, limit, seed)
        self._baseline: list[str] | None = None
        self._began = time.perf_counter()

    def say(self, status: str) -> None:
        self._state.status = status
        self._emit(self._state)

    def _wait(self, status: str) -> None:
        """Told again and again while others have their turn, so that stopping works then too."""
        if self._stopped():
            raise StoppedError
        self.say(status)

    def measure(self, row: Backend) -> None:
        """One backend on all the questions; one that cannot run is left out."""
        before = self._state.done

        def progress(done: int, of: int) -> None:
            self._state.done = before + done
            spent_s = time.perf_counter() - self._began
            self._state.left_s = spent_s / self._state.done * (self._state.of - self._state.done)
            self.say(f"{row.title}: {done:,} of {of:,} questions")
            if self._stopped() and done < of:
                raise StoppedError

        if self._stopped():
            raise StoppedError
        try:
            with self._runtime.turn(self._device, self._wait):
                ran = self._runtime.get(self._group, row, self._device, self.say).ran
            self.say(f"{row.title}: reading the first questions …")
            answers = accuracy.through(self._runtime, self._group, row, self._device, self._wait)
            scored, seconds = accuracy.evaluate(answers, self._questions, progress)
        except QAError as error:
            self._state.left_out.append({"backend": row.title, "point": "", "why": str(error)})
            self._state.done = before + len(self._questions)
            return
        if row.name == catalog.BASELINE:
            self._baseline = [each.answer.text for each in scored]
        found = accuracy.summarise(scored, seconds, self._baseline)
        line = accuracy_row(self._group, row, self._device, ran, self._data, found, limit=self._limit, seed=self._seed)
        self._state.results.append(Result(row, line, tuple(scored)))


def differences(one: Sequence[Scored], other: Sequence[Scored]) -> list[Difference]:
    """The questions whose answers differ, those on which one is right and the other wrong first."""
    found = [Difference(*pair) for pair in zip(one, other, strict=True) if pair[0].answer.text != pair[1].answer.text]
    return sorted(found, key=lambda each: -abs(each.one.f1 - each.other.f1))


def find_difference(
    runtime: Runtime,
    group: Family,
    pair: tuple[Backend, Backend],
    device: str,
    questions: Sequence[Question],
    say: Callable[[str], None],
) -> Difference | None:
    """The first of the questions that the two backends answer differently; ``None`` where they agree on all.

    Raises:
        QAError: one of them cannot run.
    """
    catalog.download(group, pair, say)
    for first in range(0, len(questions), LOOK_AT_ONCE):
        part = questions[first : first + LOOK_AT_ONCE]
        say(f"Looking for a question that pruning changes: {first} of {len(questions)} read …")
        scored = [accuracy.evaluate(accuracy.through(runtime, group, row, device, say), part)[0] for row in pair]
        if found := differences(*scored):
            return found[0]
    return None
