"""Who works now: one turn at a time for the whole process, one thread for all engines.

There is one turn for the process and not one a device: a GPU's backends tokenise, decode and launch on the same cores
that the CPU's are timed on.
"""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from qa_backends.contract import Reading
from qa_backends.errors import BackendFailed, QAError
from qa_backends.limits import limit_threads
from qa_backends.progress import Cancelled
from qa_backends.reader.reader import length_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from qa_backends.catalog import Backend, Family
    from qa_backends.contract import Query
    from qa_backends.progress import Progress
    from qa_backends.reader.reader import Prepared, Read, Split
    from qa_backends.runtime.loading import Runtime

T = TypeVar("T")
TELL_EVERY_S = 0.5
"""Who waits is told so this often, and can give up then."""

_engines = ThreadPoolExecutor(max_workers=1, thread_name_prefix="engines", initializer=limit_threads)


def on_engine_thread(work: Callable[[], T]) -> T:
    """Does the work on the one thread that all engines run on, and waits for it.

    OpenMP gives every thread that calls PyTorch a team of its own. With two teams there are more threads than cores,
    and the teams then sleep instead of spin between operators, which slows PyTorch and nobody else. Timing happens
    inside the work, so the way there and back is not in it.
    """
    return _engines.submit(work).result()


@dataclass(frozen=True, slots=True)
class Turn:
    """A device held by one caller, who waited ``wait_s`` seconds for it."""

    runtime: Runtime
    device: str
    wait_s: float
    progress: Progress

    def prepare(self, family: Family, query: Query) -> Prepared:
        """Tokenises and cuts the query once for all backends of the family."""
        return self.runtime.reader(family, self.progress).prepare(query)

    def answer(self, family: Family, backend: Backend, prepared: Prepared) -> Reading:
        """One backend's answer to one query, timed. Raises what ``answer_all`` raises."""
        read = self.answer_all(family, backend, prepared)
        ran = self.runtime.get(family, backend, self.device, self.progress).ran
        name = f"{family.name}/{backend.name}"
        return Reading(name, read.answers[0], read.times, prepared.windows.n_windows, ran, prepared.notices)

    def answer_all(self, family: Family, backend: Backend, prepared: Prepared, split: Split | None = None) -> Read:
        """One backend's answers to all prepared queries, timed together; ``split`` as in ``Reader.read``.

        Raises:
            BackendFailed: the engine died while answering; it is unloaded, so that the next question starts it afresh.
            Cancelled: ``progress`` says to stop.
        """
        loaded = self.runtime.get(family, backend, self.device, self.progress)
        self.progress.check()  # loading may have taken long
        batches = split or partial(length_batches, device=self.device)
        try:
            with translated(f"{family.name}/{backend.name}", "answering"):
                return on_engine_thread(
                    lambda: loaded.reader.read(prepared, loaded.engine.forward, wait_s=self.wait_s, split=batches)
                )
        except BackendFailed:
            self.runtime.drop(family, backend.name, self.device)
            raise

    def warm_answer(self, family: Family, backend: Backend, prepared: Prepared) -> tuple[Reading, float]:
        """The second of two answers, and the seconds of the first: the first run on a new shape is slower."""
        cold = self.answer(family, backend, prepared)
        return self.answer(family, backend, prepared), cold.times.compute_s


class FairLock:
    """A lock that serves in order of arrival, and tells who waits how many are ahead."""

    def __init__(self) -> None:
        self._turns = threading.Condition()
        self._queue: deque[object] = deque()

    def ahead(self) -> int:
        """How many hold it or wait for it."""
        with self._turns:
            return len(self._queue)

    def acquire(self, waiting: Callable[[int], None]) -> None:
        """Waits for everybody ahead, calling ``waiting(how many)`` again and again; what it raises gives up."""
        ticket = object()
        with self._turns:
            self._queue.append(ticket)
            try:
                while self._queue[0] is not ticket:
                    waiting(self._queue.index(ticket))
                    self._turns.wait(TELL_EVERY_S)
            except BaseException:
                self._queue.remove(ticket)
                self._turns.notify_all()
                raise

    def release(self) -> None:
        with self._turns:
            self._queue.popleft()
            self._turns.notify_all()


@contextmanager
def translated(name: str, doing: str) -> Iterator[None]:
    """Turns whatever an engine raises into a sentence, once, with the engine's own error as its cause.

    Our own errors are sentences already, and being cancelled is no failure: both pass.
    """
    try:
        yield
    except (QAError, Cancelled):
        raise
    except Exception as error:  # engines are other people's code and raise what they like
        raise BackendFailed(
            f"{name} failed while {doing}: {type(error).__name__}: {error}. The other backends are not affected; "
            "ask again to start it afresh."
        ) from error
