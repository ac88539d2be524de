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

import numpy as np

from qa_backends.contract import BATCH_TOKENS, Reading
from qa_backends.errors import BackendFailed, QAError
from qa_backends.limits import limit_threads
from qa_backends.progress import Cancelled
from qa_backends.reader.reader import length_batches, run_in_batches
from qa_backends.reader.windows import apart
from qa_backends.runtime.telling import TELL_FROM_S, Telling, roughly
from qa_backends.runtime.warming import consecutive, first_of_each_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from qa_backends.catalog import Backend, Family
    from qa_backends.contract import Engine, IntArray, Query, SpanLogits, Windows
    from qa_backends.progress import Progress
    from qa_backends.reader.reader import Follow, Prepared, Read, Split
    from qa_backends.runtime.loading import Loaded, Runtime

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


def calling(engine: Engine, device: str, work: Callable[[], T]) -> T:
    """Does work that calls the engine's ``forward``: here, where it minds no change of threads. The way to another
    thread and back costs 0.1 ms, and 0.3 ms while that engine's own threads still spin."""
    return work() if device in engine.called_anywhere else on_engine_thread(work)


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

    def answer(self, family: Family, backend: Backend, prepared: Prepared, doing: str = "") -> Reading:
        """One backend's answer to one query, timed.

        With ``doing``, as in "Pruned is reading", ``progress`` is told how far a long reading is; what that takes is
        not in the times. Without, nothing is told, as a measurement wants it. Raises what ``answer_all`` raises.
        """
        follow = Telling(self.progress, doing) if doing else None
        loaded, read = self._read(family, backend, prepared, None, follow)
        name = f"{family.name}/{backend.name}"
        return Reading(name, read.answers[0], read.times, prepared.windows.n_windows, loaded.ran, prepared.notices)

    def answer_all(self, family: Family, backend: Backend, prepared: Prepared, split: Split | None = None) -> Read:
        """One backend's answers to all prepared queries, timed together; ``split`` as in ``Reader.read``.

        Raises:
            BackendFailed: the engine died while answering; it is unloaded, so that the next question starts it afresh.
            Cancelled: ``progress`` says to stop, which is looked for before every forward call.
        """
        return self._read(family, backend, prepared, split, None)[1]

    def logits(self, family: Family, backend: Backend, windows: Windows, split: Split | None = None) -> SpanLogits:
        """One backend's logits ``[n_windows, seq_len]``, of windows that the caller cut and will decode.

        Raises:
            BackendFailed: the engine failed. It stays loaded, since the windows may be to blame as well as the engine;
                ``runtime.drop`` unloads it.
            Cancelled: ``progress`` says to stop, which is looked for before every forward call.
        """
        loaded = self.runtime.get(family, backend, self.device, self.progress)
        batches = split or partial(self._batches, backend)
        with translated(f"{family.name}/{backend.name}", "answering"):
            return calling(
                loaded.engine,
                self.device,
                lambda: run_in_batches(loaded.engine.forward, windows, batches, lambda _done: self.progress.check())[0],
            )

    def _read(
        self, family: Family, backend: Backend, prepared: Prepared, split: Split | None, follow: Follow | None
    ) -> tuple[Loaded, Read]:
        """What answered, and its answers."""
        loaded = self.runtime.get(family, backend, self.device, self.progress)
        self.progress.check()  # loading may have taken long
        batches = split or partial(self._batches, backend)
        following = follow or (lambda _done, _of, _spent_s: self.progress.check())
        try:
            with translated(f"{family.name}/{backend.name}", "answering"):
                return loaded, calling(
                    loaded.engine,
                    self.device,
                    lambda: loaded.reader.read(
                        prepared, loaded.engine.forward, wait_s=self.wait_s, split=batches, follow=following
                    ),
                )
        except BackendFailed:
            self.runtime.drop(family, backend.name, self.device)
            raise

    def warm_answer(
        self,
        family: Family,
        backend: Backend,
        prepared: Prepared,
        known: Callable[[Reading], object] = lambda _cold: None,
    ) -> tuple[Reading, float]:
        """An answer of warm code, and the seconds of a cold one: the first run on a new shape is slower.

        Run cold is the first batch of each shape that the text makes. Of most texts that is all of it, and ``known`` is
        given that first reading, whose answer holds while the text is read again to be timed. A long text is not read
        twice: of what is left, no shape is new, so a cold answer would have taken as long for it as the timed one did.
        """
        firsts = first_of_each_shape(prepared.windows, self._batches(backend, prepared.windows))
        rows = np.concatenate(firsts)
        if len(rows) == prepared.windows.n_windows:
            cold = self.answer(family, backend, prepared, f"{backend.title} is reading")
            known(cold)
            warm = self.answer(family, backend, prepared, f"{backend.title} is timed, reading")
            return warm, cold.times.compute_s
        count = prepared.windows.n_windows
        self.progress.say(f"{backend.title} is warming up on {len(rows)} of {count} windows …")
        part = self.answer_all(family, backend, prepared.part(rows), lambda _: consecutive(firsts))
        whole_s = part.times.forward_s * count / len(rows)
        if whole_s > TELL_FROM_S:
            self.progress.say(f"{backend.title} is reading {count} windows, {roughly(whole_s)} left")
        warm = self.answer(family, backend, prepared, f"{backend.title} is reading")
        share = float(prepared.windows.lengths[rows].sum() / prepared.windows.lengths.sum())
        return warm, warm.times.compute_s - share * warm.times.forward_s + part.times.forward_s

    def _batches(self, backend: Backend, windows: Windows) -> Iterable[IntArray]:
        """Windows of like length together; of one query alone where others would change its logits, so that it has the
        same answer in any company."""
        most = backend.engine_class.batch_tokens if self.device == "cpu" else BATCH_TOKENS
        split = partial(length_batches, device=self.device, max_tokens=most)
        return apart(split, each=backend.scaled_by_batch)(windows)


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
            while ahead := self._place(ticket):
                waiting(ahead)  # without the lock: whoever is told may be slow, and others come and go
                with self._turns:
                    self._turns.wait_for(lambda: self._queue[0] is ticket, TELL_EVERY_S)
        except BaseException:
            with self._turns:
                self._queue.remove(ticket)
                self._turns.notify_all()
            raise

    def _place(self, ticket: object) -> int:
        with self._turns:
            return self._queue.index(ticket)

    def release(self) -> None:
        with self._turns:
            self._queue.popleft()
            self._turns.notify_all()


class Quiet:
    """Keeps the cores quiet for turns in which something may be timed: other threads' work waits until they end.

    Neither side starves: who waited for one turn to end goes before the next, and who comes later does not.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._timed = False
        self._working = self._waiting = 0

    @contextmanager
    def beside(self) -> Iterator[None]:
        """For work outside of turns, such as tokenising: begins once no turn is timed."""
        with self._changed:
            if self._timed:
                self._waiting += 1
                self._changed.wait_for(lambda: not self._timed)
                self._waiting -= 1
            self._working += 1
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._working -= 1
                self._changed.notify_all()

    @contextmanager
    def timed(self) -> Iterator[None]:
        """For the holder of a turn: begins once all such work has ended, which is short."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting)
            self._timed = True
            self._changed.wait_for(lambda: not self._working)
        try:
            yield
        finally:
            with self._changed:
                self._timed = False
                self._changed.notify_all()


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
            f"{name} failed while {doing}: {type(error).__name__}: {error}.",
            "The other backends are not affected; ask again to start it afresh.",
        ) from error
