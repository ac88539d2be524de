"""What is loaded now: backends are loaded on first use, unloaded when memory runs short, and take turns.

There is one turn at a time for the whole process, not one a device: a GPU's backends tokenise, decode and launch on the
same cores that the CPU's are timed on.
"""

from __future__ import annotations

import importlib.util
import os
import threading
import time
from collections import OrderedDict, deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from qa_backends import catalog
from qa_backends.artefacts.build import build
from qa_backends.artefacts.manifest import Manifest, read_manifest, weights_of
from qa_backends.contract import DEFAULT_SETTINGS, Query, ReaderSettings, Reading
from qa_backends.errors import BackendFailed, InputError, QAError
from qa_backends.limits import memory_bytes, thread_count
from qa_backends.reader.reader import Prepared, Reader, length_batches
from qa_backends.reader.tokens import WordPieces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from qa_backends.catalog import Backend, Family
    from qa_backends.contract import Answer, Engine, Ran, SpanLogits, StageTimes, Windows
    from qa_backends.reader.reader import Split

    Forward = Callable[[Windows], SpanLogits]
    Say = Callable[[str], None]

DEFAULT_MEMORY_SHARE = 0.5
"""Share of the memory that loaded weights may take, unless ``QA_MEMORY_GB`` or a budget says otherwise."""

BYTES_PER_PARAMETER = 4
"""Of loaded weights: FP32 is the most any engine computes in."""


def _set_threads() -> None:
    """PyTorch counts the host's cores unless told otherwise, whoever calls it."""
    if importlib.util.find_spec("torch") is not None:
        import torch

        torch.set_num_threads(thread_count())


_engines = ThreadPoolExecutor(max_workers=1, thread_name_prefix="engines", initializer=_set_threads)
T = TypeVar("T")
TELL_EVERY_S = 0.5
"""Who waits is told so this often, and can give up then."""


def on_engine_thread(work: Callable[[], T]) -> T:
    """Does the work on the one thread that all engines run on, and waits for it.

    OpenMP gives every thread that calls PyTorch a team of its own. With two teams there are more threads than cores,
    and the teams then sleep instead of spin between operators, which slows PyTorch and nobody else. Timing happens
    inside the work, so the way there and back is not in it.
    """
    return _engines.submit(work).result()


@dataclass(slots=True)
class Loaded:
    """A loaded backend, what it was loaded from, and what that takes of the memory budget."""

    engine: Engine
    reader: Reader
    ran: Ran
    manifest: Manifest
    bytes: int


def default_budget() -> int:
    """Bytes of loaded weights: ``QA_MEMORY_GB`` where it is set, else half of the memory there is.

    Raises:
        InputError: ``QA_MEMORY_GB`` is no number above 0.
    """
    wanted = os.environ.get("QA_MEMORY_GB", "")
    if not wanted:
        return int(memory_bytes() * DEFAULT_MEMORY_SHARE)
    try:
        budget = int(float(wanted) * 1e9)
    except ValueError:
        budget = 0
    if budget <= 0:
        raise InputError(f"QA_MEMORY_GB is '{wanted}'; set it to a number of gigabytes above 0, or leave it out.")
    return budget


Key = tuple[str, str, str]
"""Family, backend, device."""


class Runtime:
    """All loaded backends of a process.

    Work happens within ``turn(device)``; who comes while another works waits, in order of arrival.
    """

    def __init__(
        self,
        *,
        budget_bytes: int | None = None,
        settings: ReaderSettings = DEFAULT_SETTINGS,
        say: Say = lambda _: None,
    ) -> None:
        self.budget_bytes = budget_bytes or default_budget()
        self.settings = settings
        self._say = say
        self._loaded: OrderedDict[Key, Loaded] = OrderedDict()
        self._readers: dict[str, Reader] = {}
        self._lock = FairLock()
        self._bookkeeping = threading.RLock()

    def ahead(self) -> int:
        """How many turns there are before one that would be asked for now."""
        return self._lock.ahead()

    @contextmanager
    def turn(self, device: str, say: Say | None = None) -> Iterator[Turn]:
        """The machine, alone, to work on ``device``. Waiting for earlier turns is the turn's ``wait_s``.

        ``say`` is told how many are ahead and what is being prepared, in place of the runtime's own.

        Raises:
            InputError: there is no such device here.
        """
        if device not in catalog.devices():
            raise InputError(f"There is no device '{device}' here. Choose one of: {', '.join(catalog.devices())}.")
        tell = say or self._say
        began = time.perf_counter()
        self._lock.acquire(lambda ahead: tell(f"Waiting: {ahead} question{'s' if ahead > 1 else ''} ahead of yours …"))
        try:
            yield Turn(self, device, time.perf_counter() - began, tell)
        finally:
            self._lock.release()

    def loaded(self) -> list[Key]:
        """What is loaded, least recently used first."""
        with self._bookkeeping:
            return list(self._loaded)

    def reader(self, group: Family, say: Say | None = None) -> Reader:
        """The family's reader; the baseline's tokenizer serves the whole family."""
        with self._bookkeeping:
            if group.name not in self._readers:
                folder = catalog.checkpoint_folder(group, catalog.BASELINE, say or self._say)
                self._readers[group.name] = Reader(WordPieces(folder), self.settings)
            return self._readers[group.name]

    def get(self, group: Family, row: Backend, device: str, say: Say | None = None) -> Loaded:
        """The backend, loaded if it is not; call it within a turn of the device.

        Raises:
            BackendUnavailable, ArtefactError: see ``Engine.load`` and ``artefacts.build``.
            BackendFailed: the engine failed in a way of its own.
        """
        key = (group.name, row.name, device)
        with self._bookkeeping:
            if key not in self._loaded:
                with translated(f"{group.name}/{row.name}", "getting ready"):
                    self._loaded[key] = self._load(group, row, device, say or self._say)
            self._loaded.move_to_end(key)
            return self._loaded[key]

    def _load(self, group: Family, row: Backend, device: str, say: Say) -> Loaded:
        if missing := catalog.unavailable(row):
            raise missing
        reader = self.reader(group, say)
        checkpoint = catalog.checkpoint_folder(group, row.checkpoint, say)
        artefact = on_engine_thread(lambda: build(checkpoint, row.artefact, reference_forward, say))
        manifest = read_manifest(artefact)
        size = manifest.parameters * BYTES_PER_PARAMETER
        self._make_room(size, say)
        engine = catalog.open_engine(row)
        say(f"loading {group.name}/{row.name} on {device} …")
        on_engine_thread(lambda: engine.load(artefact, device))
        return Loaded(engine, reader, engine.describe(), manifest, size)

    def _make_room(self, size: int, say: Say) -> None:
        while self._loaded and sum(each.bytes for each in self._loaded.values()) + size > self.budget_bytes:
            key, oldest = self._loaded.popitem(last=False)
            say(f"unloading {'/'.join(key[:2])} to stay within the memory budget …")
            oldest.engine.close()

    def drop(self, key: Key) -> None:
        """Unloads a backend, if it is loaded; the next question loads it afresh."""
        with self._bookkeeping:
            if found := self._loaded.pop(key, None):
                found.engine.close()


@dataclass(frozen=True, slots=True)
class Turn:
    """A device held by one caller."""

    runtime: Runtime
    device: str
    wait_s: float
    say: Say

    def prepare(self, group: Family, query: Query) -> Prepared:
        """Tokenises and cuts the query once for all backends of the family."""
        return self.runtime.reader(group, self.say).prepare(query)

    def answer(self, group: Family, row: Backend, prepared: Prepared) -> Reading:
        """One backend's answer to one query, timed. Raises what ``answer_all`` raises."""
        (answer,), times = self.answer_all(group, row, prepared)
        ran = self.runtime.get(group, row, self.device, self.say).ran
        return Reading(f"{group.name}/{row.name}", answer, times, prepared.windows.n_windows, ran, prepared.notices)

    def answer_all(
        self, group: Family, row: Backend, prepared: Prepared, split: Split | None = None
    ) -> tuple[list[Answer], StageTimes]:
        """One backend's answers to all prepared queries, timed together; ``split`` as in ``Reader.read``.

        Raises:
            BackendFailed: the engine died while answering; it is unloaded, so that the next question starts it afresh.
        """
        loaded = self.runtime.get(group, row, self.device, self.say)
        split = split or partial(length_batches, device=self.device)
        try:
            with translated(f"{group.name}/{row.name}", "answering"):
                return on_engine_thread(
                    lambda: loaded.reader.read(prepared, loaded.engine.forward, wait_s=self.wait_s, split=split)
                )
        except BackendFailed:
            self.runtime.drop((group.name, row.name, self.device))
            raise

    def warm_answer(self, group: Family, row: Backend, prepared: Prepared) -> tuple[Reading, float]:
        """The second of two answers, and the seconds of the first: the first run on a new shape is slower."""
        cold = self.answer(group, row, prepared)
        return self.answer(group, row, prepared), cold.times.compute_s


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
def reference_forward(folder: Path) -> Iterator[Forward]:
    """A checkpoint or built artefact, opened on the CPU in FP32 to compare logits with."""
    kind = "onnxruntime" if weights_of(folder).suffix == ".onnx" else "pytorch"
    engine = catalog.open_engine(next(row for row in catalog.BACKENDS if row.engine == kind))
    engine.load(folder, "cpu")
    try:
        yield engine.forward
    finally:
        engine.close()


@contextmanager
def translated(name: str, doing: str) -> Iterator[None]:
    """Turns whatever an engine raises into a sentence, once, with the engine's own error as its cause."""
    try:
        yield
    except QAError:
        raise
    except Exception as error:  # engines are other people's code and raise what they like
        raise BackendFailed(
            f"{name} failed while {doing}: {type(error).__name__}: {error}. The other backends are not affected; "
            "ask again to start it afresh."
        ) from error
