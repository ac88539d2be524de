"""What is loaded now: backends are loaded on first use, unloaded when memory runs short, and take turns."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil

from qa_backends import catalog
from qa_backends.artefacts.build import build
from qa_backends.artefacts.manifest import Manifest, read_manifest, weights_of
from qa_backends.contract import DEFAULT_SETTINGS, Query, ReaderSettings, Reading
from qa_backends.errors import BackendFailed, InputError, QAError
from qa_backends.reader.reader import Prepared, Reader
from qa_backends.reader.tokens import WordPieces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from qa_backends.catalog import Backend, Family
    from qa_backends.contract import Engine, Ran, SpanLogits, Windows

    Forward = Callable[[Windows], SpanLogits]
    Say = Callable[[str], None]

DEFAULT_MEMORY_SHARE = 0.5
"""Share of the machine's memory that loaded weights may take, unless a budget is given."""

BYTES_PER_PARAMETER = 4
"""Of loaded weights: FP32 is the most any engine computes in."""


@dataclass(slots=True)
class Loaded:
    """A loaded backend, what it was loaded from, and what that takes of the memory budget."""

    engine: Engine
    reader: Reader
    ran: Ran
    manifest: Manifest
    bytes: int


Key = tuple[str, str, str]
"""Family, backend, device."""


class Runtime:
    """All loaded backends of a process.

    Work happens within ``turn(device)``; who comes while another has the device waits, in order of arrival.
    """

    def __init__(
        self,
        *,
        budget_bytes: int | None = None,
        settings: ReaderSettings = DEFAULT_SETTINGS,
        say: Say = lambda _: None,
    ) -> None:
        self.budget_bytes = budget_bytes or int(psutil.virtual_memory().total * DEFAULT_MEMORY_SHARE)
        self.settings = settings
        self._say = say
        self._loaded: OrderedDict[Key, Loaded] = OrderedDict()
        self._readers: dict[str, Reader] = {}
        self._devices: dict[str, FairLock] = {"cpu": FairLock(), "cuda": FairLock()}
        self._bookkeeping = threading.RLock()

    def waiting(self, device: str) -> int:
        """How many turns are ahead of one that would be asked for now."""
        return self._devices[device].ahead()

    @contextmanager
    def turn(self, device: str, say: Say | None = None) -> Iterator[Turn]:
        """The device, alone. Entering waits for earlier turns; the time waited is the turn's ``wait_s``.

        ``say`` is told what is being prepared, in place of the runtime's own.

        Raises:
            InputError: there is no such device.
        """
        if device not in self._devices:
            raise InputError(f"There is no device '{device}'. Choose one of: {', '.join(self._devices)}.")
        began = time.perf_counter()
        with self._devices[device]:
            yield Turn(self, device, time.perf_counter() - began, say or self._say)

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
                self._loaded[key] = self._load(group, row, device, say or self._say)
            self._loaded.move_to_end(key)
            return self._loaded[key]

    def _load(self, group: Family, row: Backend, device: str, say: Say) -> Loaded:
        if missing := catalog.unavailable(row):
            raise missing
        reader = self.reader(group, say)
        checkpoint = catalog.checkpoint_folder(group, row.checkpoint, say)
        artefact = build(checkpoint, row.artefact, reference_forward, say)
        manifest = read_manifest(artefact)
        size = manifest.parameters * BYTES_PER_PARAMETER
        self._make_room(size, say)
        engine = catalog.open_engine(row)
        say(f"loading {group.name}/{row.name} on {device} …")
        with _translated(f"{group.name}/{row.name}", "loading"):
            engine.load(artefact, device)
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
        """One backend's answer, timed.

        Raises:
            BackendFailed: the engine died while answering; it is unloaded, so that the next question starts it afresh.
        """
        loaded = self.runtime.get(group, row, self.device, self.say)
        name = f"{group.name}/{row.name}"
        try:
            with _translated(name, "answering"):
                answer, times = loaded.reader.read(prepared, loaded.engine.forward, wait_s=self.wait_s)
        except BackendFailed:
            self.runtime.drop((group.name, row.name, self.device))
            raise
        return Reading(name, answer, times, prepared.windows.n_windows, loaded.ran, prepared.notices)

    def warm_answer(self, group: Family, row: Backend, prepared: Prepared) -> tuple[Reading, float]:
        """The second of two answers, and the seconds of the first: the first run on a new shape is slower."""
        cold = self.answer(group, row, prepared)
        return self.answer(group, row, prepared), cold.times.compute_s


class FairLock:
    """A lock that serves in order of arrival and knows how many are waiting."""

    def __init__(self) -> None:
        self._turns = threading.Condition()
        self._next = 0
        self._serving = 0

    def ahead(self) -> int:
        with self._turns:
            return self._next - self._serving

    def __enter__(self) -> None:
        with self._turns:
            ticket = self._next
            self._next += 1
            self._turns.wait_for(lambda: self._serving == ticket)

    def __exit__(self, *_: object) -> None:
        with self._turns:
            self._serving += 1
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
def _translated(name: str, doing: str) -> Iterator[None]:
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
