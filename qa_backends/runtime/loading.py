"""Backends ready to answer: downloaded, built, loaded, unloaded when memory runs short.

Downloads hold no turn. Packing and every build step take a turn each, so that others get theirs between them. Loading
happens in the turn of whoever asks.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qa_backends import catalog
from qa_backends.artefacts.build import missing
from qa_backends.checkpoints import sources
from qa_backends.checkpoints.admission import BYTES_PER_PARAMETER
from qa_backends.checkpoints.cache import used
from qa_backends.checkpoints.manifest import Manifest, read_manifest
from qa_backends.errors import BackendUnavailable, InputError
from qa_backends.limits import devices, memory_budget
from qa_backends.progress import UNWATCHED, Progress
from qa_backends.reader.reader import Reader
from qa_backends.reader.tokens import SubwordTokenizer
from qa_backends.runtime.cost import LoadCost, load_measured
from qa_backends.runtime.making import Maker, checkpoint_of, runner_of
from qa_backends.runtime.memory import Closable, Memory
from qa_backends.runtime.turns import FairLock, Quiet, Turn, on_engine_thread, translated

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from qa_backends.catalog import Backend, Family
    from qa_backends.contract import Engine, Ran

logger = logging.getLogger(__name__)

READERS = 8
"""Tokenizers that are kept: one of a hundred languages takes as much memory as a small model. What is loaded has its
own in any case."""
Key = tuple["Family", str]
"""What is loaded on a device: a family, and a backend's name or a reference's."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A loaded backend, and what it was loaded from."""

    engine: Engine
    reader: Reader
    ran: Ran
    manifest: Manifest
    cost: LoadCost

    def close(self) -> None:
        """On the thread that loaded it: some runtimes mind. A GPU that failed fails at this too, and why it is closed
        says more."""
        try:
            on_engine_thread(self.engine.close)
        except RuntimeError:
            logger.warning("closing %s failed", self.engine.title, exc_info=True)


class Runtime:
    """All loaded backends of a process.

    Work happens within ``turn(device)``; who comes while another works waits, in order of arrival.
    """

    def __init__(self, *, budget_bytes: int | None = None, progress: Progress = UNWATCHED) -> None:
        """``budget_bytes`` of weights on each device; by default what ``limits.memory_budget`` says of it.
        ``progress`` hears of what is prepared for those who brought none of their own."""
        self.progress = progress
        self._memory: dict[str, Memory[Key, Closable]] = {
            device: Memory(budget_bytes or memory_budget(device)) for device in devices()
        }
        self._readers: OrderedDict[Family, Reader] = OrderedDict()
        self._maker = Maker()
        self._lock = FairLock()
        self._quiet = Quiet()

    def ahead(self) -> int:
        """How many turns there are before one that would be asked for now."""
        return self._lock.ahead()

    @contextmanager
    def turn(self, device: str, progress: Progress | None = None, *, timed: bool = True) -> Iterator[Turn]:
        """The machine, alone, to work on ``device``. Waiting for earlier turns is the turn's ``wait_s``.

        ``progress`` is told how many are ahead, and what is being prepared, which else the runtime's own is told: many
        ask a server at once, and who waits for whom is none of its log's. Unless the turn is ``timed``, others may
        prepare their own meanwhile, see ``beside``.

        Raises:
            InputError: there is no such device here.
            Cancelled: ``progress`` says to stop.
        """
        check_device(device)
        watched = progress or self.progress
        began = time.perf_counter()

        def waiting(ahead: int) -> None:
            watched.check()
            if progress:
                progress.say(f"Waiting: {ahead} question{'s' if ahead > 1 else ''} ahead of yours …")

        self._lock.acquire(waiting)
        try:
            with self._quiet.timed() if timed else nullcontext():
                yield Turn(self, device, time.perf_counter() - began, watched)
        finally:
            self._lock.release()

    def beside(self) -> AbstractContextManager[None]:
        """For work that needs no turn, such as tokenising: waits while a turn is timed, and holds up the next."""
        return self._quiet.beside()

    def loaded(self, device: str) -> list[str]:
        """Names, as in ``family/backend``, of what is loaded on the device, least recently used first."""
        return [f"{family.name}/{name}" for family, name in self._memory[device].keys()]  # noqa: SIM118 (not a mapping)

    def reader(self, family: Family, progress: Progress | None = None) -> Reader:
        """The family's reader; the baseline's tokenizer serves the whole family."""
        if (found := self._readers.get(family)) is not None:
            with suppress(KeyError):  # another thread may just have let it go
                self._readers.move_to_end(family)
            return found
        with translated(family.name, "getting ready"):
            folder = checkpoint_of(family.source(catalog.BASELINE), progress or self.progress)
            made = self._readers[family] = Reader(SubwordTokenizer(folder), family.settings)
        if len(self._readers) > READERS:
            self._readers.popitem(last=False)
        return made

    def download(self, family: Family, backends: Sequence[Backend], progress: Progress) -> None:
        """Fetches what the backends need from the Hub, so that nobody's turn is held meanwhile.

        Raises:
            BackendUnavailable: the baseline cannot be had, whose tokenizer every backend of the family needs. Another
                checkpoint that cannot is reported when a backend is made ready.
        """
        sources.download(family.source(catalog.BASELINE), progress)
        for name in dict.fromkeys(each.checkpoint for each in backends):
            try:
                sources.download(family.source(name), progress)
            except BackendUnavailable:
                if name == catalog.BASELINE:
                    raise

    def make_ready(self, family: Family, backend: Backend, device: str, progress: Progress) -> Path:
        """Downloads, packs and builds what the backend runs, where that was not done before; call it outside turns.

        Raises:
            InputError: there is no such device here.
            BackendUnavailable, ArtefactError, BackendFailed: it cannot run here, or its making failed.
            Cancelled: ``progress`` says to stop; what was finished is kept.
        """
        check_device(device)
        if refusal := catalog.unavailable(backend, device, family):
            raise refusal
        with translated(f"{family.name}/{backend.name}", "getting ready"):
            source = family.source(backend.checkpoint)
            checkpoint = sources.download(source, progress)
            if checkpoint is None:
                with self.turn(device, progress):
                    checkpoint = checkpoint_of(source, progress)
            runner = runner_of(backend, device)
            for compared_by in (None, runner):  # what the runner is compared with is built, or was and may be gone
                for step in missing(checkpoint, backend.artefact, device, compared_by):
                    by = compared_by if step.name == backend.artefact else None
                    with self.turn(device, progress), self._maker.charged(family, backend, device):
                        self._maker.build(checkpoint, step.name, device, progress, by)
            used(checkpoint)  # as long as somebody asks of it, however long ago it was loaded
            return used(self._maker.build(checkpoint, backend.artefact, device, progress, runner))

    def load(self, family: Family, backend: Backend, device: str, progress: Progress) -> Loaded:
        """Makes the backend ready, then loads it in a turn of its own; raises what ``make_ready`` and ``get`` raise."""
        self.make_ready(family, backend, device, progress)
        with self.turn(device, progress):
            return self.get(family, backend, device, progress)

    def get(self, family: Family, backend: Backend, device: str, progress: Progress | None = None) -> Loaded:
        """The backend, loaded if it is not; call it within a turn of the device.

        What ``make_ready`` was not called for is made within the turn.

        Raises:
            BackendUnavailable, ArtefactError: see ``Engine.load`` and ``artefacts.build``.
            BackendFailed: the engine failed in a way of its own.
        """
        found = self._memory[device].find((family, backend.name))
        if found is None:
            watched = progress or self.progress
            found = self.hold(
                family,
                backend.name,
                device,
                size=lambda: self._size(family, backend, device, watched),
                load=lambda: self._load(family, backend, device, watched),
                progress=watched,
            )
        assert isinstance(found, Loaded)
        return found

    def hold(
        self,
        family: Family,
        name: str,
        device: str,
        *,
        size: Callable[[], int],
        load: Callable[[], Closable],
        progress: Progress,
    ) -> Closable:
        """What ``load`` gives, kept within the device's memory budget of which it takes ``size()`` bytes."""

        def evicting(key: Key) -> None:
            progress.tell(f"unloading {key[0].name}/{key[1]} to stay within the memory budget …")

        with translated(f"{family.name}/{name}", "getting ready"):
            return self._memory[device].get((family, name), size, load, evicting)

    def fitting(self, sizes: Sequence[int], device: str) -> list[bool]:
        """Whether each of what takes so many bytes, in order, can be loaded at the same time as those before it.

        The first always can: what is larger than the budget is loaded alone.
        """
        left = self._memory[device].budget_bytes
        fit: list[bool] = []
        for number, size in enumerate(sizes):
            fit.append(number == 0 or size <= left)
            left -= size if fit[-1] else 0
        return fit

    def budget_bytes(self, device: str) -> int:
        """Of loaded weights on the device."""
        return self._memory[device].budget_bytes

    def size_of(self, family: Family, backend: Backend, device: str) -> int:
        """Bytes that the backend takes of the budget; it is made for that, if it was not."""
        return self._size(family, backend, device, self.progress)

    def build_s(self, family: Family, backend: Backend, device: str) -> float:
        """Seconds that building what the backend runs took this process, without downloads and packing; 0 where it was
        there. A step that others need as well is charged to the first who needed it, and waiting for another process
        that makes the same counts as building."""
        return self._maker.seconds(family, backend, device)

    def drop(self, family: Family, name: str, device: str) -> None:
        """Unloads a backend, if it is loaded; the next question loads it afresh."""
        self._memory[device].drop((family, name))

    def _size(self, family: Family, backend: Backend, device: str, progress: Progress) -> int:
        artefact = self._maker.artefact(family, backend, device, progress)
        return read_manifest(artefact).parameters * BYTES_PER_PARAMETER

    def _load(self, family: Family, backend: Backend, device: str, progress: Progress) -> Loaded:
        artefact = used(self._maker.artefact(family, backend, device, progress))
        used(checkpoint_of(family.source(backend.checkpoint), progress))
        reader = self.reader(family, progress).with_settings(family.reads(backend.checkpoint))
        engine = backend.engine_class(dict(backend.options))
        progress.say(f"loading {family.name}/{backend.name} on {device} …")
        cost = on_engine_thread(lambda: load_measured(engine, artefact, device))
        return Loaded(engine, reader, on_engine_thread(engine.describe), read_manifest(artefact), cost)


def check_device(device: str) -> None:
    """Raises InputError for a device that this machine has not got."""
    if device not in devices():
        raise InputError(f"There is no device '{device}' here. Choose one of: {', '.join(devices())}.")
