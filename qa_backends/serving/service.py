"""The backends that a server answers with: made ready behind it, asked by many at once, bounded in what may wait."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from qa_backends.contract import Answer, Query
from qa_backends.errors import BackendFailed, InputError, QAError, UnknownBackend
from qa_backends.progress import Cancelled, Progress
from qa_backends.reader.reader import check
from qa_backends.serving.batching import Batcher, BatchSize
from qa_backends.serving.together import Together

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from qa_backends.catalog import Backend, Family
    from qa_backends.reader.reader import Prepared
    from qa_backends.runtime import Runtime
    from qa_backends.serving.metrics import Metrics

T = TypeVar("T")
MOST_SECONDS = 86_400
"""That a request may be given."""


class Full(QAError):
    """As many questions wait as may wait."""


class NotReady(QAError):
    """The backend is still being built or loaded."""


class NeverReady(QAError):
    """The backend could not be built or loaded, and is not tried again."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a server takes on: questions accepted and not answered yet, seconds that one request may take, characters
    of texts whose tokens each backend keeps for the next question about them, and characters of the questions accepted
    and their texts: room for any one request, of 64 queries about the longest texts, and for some others beside it."""

    accepted: int = 256
    seconds: float = 30.0
    kept_chars: int = 2_000_000
    accepted_chars: int = 16_000_000


@dataclass(slots=True)
class Place:
    """A backend in the service: ``asked`` once it is ready, ``error`` if it cannot be."""

    family: Family
    backend: Backend
    asked: Together | None = None
    batcher: Batcher[Prepared, Answer] | None = None
    error: str | None = None

    @property
    def name(self) -> str:
        return f"{self.family.name}/{self.backend.name}"


@dataclass(slots=True)
class Service:
    """Answers queries by name of the backend; one model of each, whoever asks."""

    runtime: Runtime
    places: dict[str, Place]
    device: str
    size: BatchSize
    bounds: Bounds
    metrics: Metrics
    _accepted: int = 0
    _accepted_chars: int = 0
    _over: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Gets the backends ready, one after the other, on a thread of its own."""
        threading.Thread(target=self._prepare, name="getting ready", daemon=True).start()

    def close(self) -> None:
        """Answers what was accepted, and ends."""
        self._over.set()
        for place in self.places.values():
            if place.batcher:
                place.batcher.close()

    @property
    def ready(self) -> bool:
        """Whether every backend can be asked, or is known to be unable to."""
        return all(place.batcher or place.error for place in self.places.values()) and any(
            place.batcher for place in self.places.values()
        )

    def place(self, name: str) -> Place:
        """By ``family/backend``, or the backend's name alone where one family has it.

        Raises:
            UnknownBackend: it is not served here.
        """
        return by_name(self.places, name)

    async def answer(self, name: str, queries: Sequence[Query]) -> list[tuple[Answer, Prepared] | QAError]:
        """An answer, with what was read, or an error for each query. Cancelled, it leaves nothing to be read.

        Raises:
            UnknownBackend: no such backend is served.
            InputError: there are more queries than may ever wait.
            NotReady, Full: it cannot be asked now.
            NeverReady: it cannot be asked of this server.
        """
        place = self.place(name)
        if place.error:
            raise NeverReady(place.error)
        if place.asked is None or place.batcher is None:
            raise NotReady(f"{place.name} is being made ready. Ask again in a moment.")
        refused = [each for each in map(_refusal, queries) if each]
        if len(refused) == len(queries):  # what nobody can answer waits for nothing
            return [*refused]
        with self._accepting(len(queries), sum(len(each.question) + len(each.context) for each in queries)):
            waiting = deque(queries)
            try:
                prepared = await asyncio.to_thread(self._tokenised, place.asked, waiting)
            finally:
                waiting.clear()  # a thread that still waits holds no texts
            readable = [each for each in prepared if not isinstance(each, QAError)]
            answers = iter(await _all(place.batcher.ask([(each, tokens_of(each)) for each in readable])))
            return [each if isinstance(each, QAError) else _paired(next(answers), each) for each in prepared]

    @contextmanager
    def _accepting(self, count: int, chars: int) -> Iterator[None]:
        """Runs on the event loop alone, so that counting needs no lock."""
        if count > self.bounds.accepted:
            raise InputError(
                f"{count} queries are more than may wait here. Ask at most {self.bounds.accepted} at once."
            )
        if self._accepted + count > self.bounds.accepted:
            raise Full(f"{self._accepted} questions are waiting already. Ask again in a moment.")
        if self._accepted_chars + chars > self.bounds.accepted_chars:
            raise Full("Questions about too much text are waiting already. Ask again in a moment.")
        self._accepted += count
        self._accepted_chars += chars
        try:
            yield
        finally:
            self._accepted -= count
            self._accepted_chars -= chars

    def _tokenised(self, asked: Together, waiting: deque[Query]) -> list[Prepared | InputError]:
        """In a thread, which goes on when the request is over: then nothing is ``waiting`` any more."""
        found: list[Prepared | InputError] = []
        while waiting:
            with self.runtime.beside():
                try:
                    query = waiting.popleft()
                except IndexError:
                    break
                try:
                    found.append(asked.reader.prepare(query))
                except InputError as error:
                    found.append(error)
        return found

    def _prepare(self) -> None:
        progress = Progress(self.runtime.progress.tell, self._over.is_set)
        for place in self.places.values():
            if self._over.is_set():
                return
            try:
                place.asked = Together(
                    self.runtime, place.family, place.backend, self.device, kept_chars=self.bounds.kept_chars,
                    progress=progress,
                )  # fmt: skip
            except QAError as error:
                said = error.reason if isinstance(error, BackendFailed) else str(error)
                place.error = f"{said} It is not tried again here: mend that, and start the server again."
                continue
            except Cancelled:
                return
            place.batcher = self._batcher(place.asked)

    def _batcher(self, asked: Together) -> Batcher[Prepared, Answer]:
        def read(prepared: Sequence[Prepared]) -> Sequence[Answer | Exception]:
            began = time.perf_counter()
            found = asked.read(prepared)
            self.metrics.batch(asked.name, len(prepared), time.perf_counter() - began)
            return found

        batcher = Batcher(read, BatchSize(items=1) if asked.backend.scaled_by_batch else self.size, asked.name)
        self.metrics.watch(asked.name, batcher.waiting)
        return batcher


def _refusal(query: Query) -> InputError | None:
    """Why no backend can answer it, where none can."""
    try:
        check(query)
    except InputError as error:
        return error
    return None


def by_name(served: Mapping[str, T], name: str) -> T:
    """What is served under the name of a family and a backend, or of the backend alone where one family has it.

    Raises:
        UnknownBackend: nothing is.
    """
    found = [each for full, each in served.items() if name in (full, full.partition("/")[2])]
    if len(found) != 1:
        raise UnknownBackend(f"There is no backend '{name[:80]}' here. Choose one of: {', '.join(served)}.")
    return found[0]


async def _all(futures: Sequence[Future[Answer]]) -> list[Answer | BaseException]:
    """Results or errors of all; cancelled, it cancels those whose batch has not begun."""
    return await asyncio.gather(*map(asyncio.wrap_future, futures), return_exceptions=True)


def _paired(answer: Answer | BaseException, prepared: Prepared) -> tuple[Answer, Prepared] | QAError:
    if isinstance(answer, QAError):
        return answer
    if isinstance(answer, BaseException):
        raise answer
    return answer, prepared


def tokens_of(prepared: Prepared) -> int:
    """What ``BatchSize`` counts."""
    return int(prepared.windows.lengths.sum())
