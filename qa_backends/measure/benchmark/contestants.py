"""Who takes part in a benchmark: backends and references, each asked in its own way, measured in the same."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from qa_backends import catalog
from qa_backends.artefacts.build import find
from qa_backends.checkpoints import sources
from qa_backends.checkpoints.architectures import architecture_of
from qa_backends.checkpoints.load import read_config
from qa_backends.errors import BackendFailed, QAError
from qa_backends.measure.benchmark.floor import Floor, matmul_rate
from qa_backends.measure.benchmark.pipeline import LoadedPipeline
from qa_backends.measure.benchmark.plain import Plain, PlainOnnxRuntime, PlainOpenVino
from qa_backends.measure.benchmark.plan import MIXED_BATCH, OPENVINO, ORT, PIPELINE, REFERENCES
from qa_backends.measure.results.shipped import checkpoint_hash, current_shapes, shipped_quality
from qa_backends.reader.reader import MAX_PADDING
from qa_backends.reader.windows import apart, by_count, by_tokens
from qa_backends.runtime.turns import on_engine_thread, translated

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from qa_backends.catalog import Backend, Family
    from qa_backends.checkpoints.manifest import Manifest
    from qa_backends.contract import IntArray, Query, Ran, StageTimes, Windows
    from qa_backends.measure.benchmark.plan import BenchmarkPlan
    from qa_backends.measure.results.records import Quality
    from qa_backends.progress import Progress
    from qa_backends.reader.reader import Prepared, Reader, Split
    from qa_backends.runtime import Runtime, Turn

EQUAL, ARRIVAL, SORTED, SINGLY = "equal", "arrival", "sorted", "one by one"
"""How batches are made: of equal lengths; of mixed lengths as they come; of mixed lengths, like with like; not."""
AS_ASKED = "as asked"
"""In whatever calls the app itself would answer them."""
ORDERS = {
    ARRIVAL: "as they come", SORTED: "sorted by length", AS_ASKED: "as the app batches them", SINGLY: "one by one",
}  # fmt: skip
"""What is done with mixed lengths, in words."""


@dataclass(frozen=True, slots=True)
class Answered:
    """One timed answer to all queries; ``computed`` are the batches' ``(n_windows, seq_len)``, where they are known,
    and ``prepared`` the windows they were made of."""

    times: StageTimes
    prepared: Prepared | None = None
    computed: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a contestant besides its times; ``manifest`` and ``floor`` where it has such."""

    ran: Ran
    checkpoint: str | None
    shapes: str | None
    quality: Quality | None = None
    manifest: Manifest | None = None
    floor: Floor | None = None


class ContestantFailedError(Exception):
    """One contestant failed while it was timed; the others can repeat that without it."""

    def __init__(self, name: str, cause: QAError) -> None:
        super().__init__(str(cause))
        self.name = name


@contextmanager
def charged_to(name: str) -> Iterator[None]:
    """Says of whatever fails whose failure it is."""
    try:
        yield
    except QAError as error:
        raise ContestantFailedError(name, error) from error


class Contestant(ABC):
    """One side of a benchmark. ``measured_alone`` says whether it is also measured without company, ``computes_here``
    whether this process does its work, whose clocks tell then what others took."""

    name: str
    measured_alone: bool = True
    computes_here: bool = True

    @abstractmethod
    def orders(self, *, mixed: bool) -> tuple[str, ...]:
        """The orders in which it can make its batches, of mixed lengths or of equal ones; none where it cannot."""

    def step_before(self, among: Sequence[str]) -> str | None:
        """The name of the step of optimisation before, of those named; a reference has none."""
        return None

    @abstractmethod
    def make_ready(self, runtime: Runtime, device: str, progress: Progress) -> None:
        """Downloads and builds what it needs; called outside turns. Raises QAError where it cannot take part."""

    @abstractmethod
    def bytes(self, runtime: Runtime, device: str) -> int:
        """What it takes of the device's memory budget, once it is made ready."""

    @abstractmethod
    def load(self, turn: Turn) -> None:
        """Loads it, if it is not. Raises QAError."""

    @abstractmethod
    def answer(self, turn: Turn, queries: Sequence[Query], order: str) -> Answered:
        """One whole answer to all the queries, from text to text, timed.

        Raises:
            QAError: it failed, and is unloaded, so that ``load`` starts it afresh.
        """

    @abstractmethod
    def facts(self, turn: Turn) -> Facts:
        """What ran, and on what."""


class BackendContestant(Contestant):
    """A backend of the catalogue."""

    def __init__(self, family: Family, backend: Backend) -> None:
        self.name = backend.name
        self.backend = backend
        self.computes_here = backend.engine_class.computes_here
        self._family = family

    def orders(self, *, mixed: bool) -> tuple[str, ...]:
        return (ARRIVAL, SORTED, AS_ASKED) if mixed else (EQUAL,)

    def step_before(self, among: Sequence[str]) -> str | None:
        return catalog.nearest(self.backend, among)

    def make_ready(self, runtime: Runtime, device: str, progress: Progress) -> None:
        runtime.make_ready(self._family, self.backend, device, progress)

    def bytes(self, runtime: Runtime, device: str) -> int:
        return runtime.size_of(self._family, self.backend, device)

    def load(self, turn: Turn) -> None:
        turn.runtime.get(self._family, self.backend, turn.device, turn.progress)

    def answer(self, turn: Turn, queries: Sequence[Query], order: str) -> Answered:
        prepared = prepare(turn.runtime.reader(self._family, turn.progress), queries)
        read = turn.answer_all(self._family, self.backend, prepared, self._split(order, turn.device))
        return Answered(read.times, prepared, read.computed)

    def _split(self, order: str, device: str) -> Split | None:
        """How windows are put together; ``None`` as the app does it. What answers otherwise in company is asked each
        question apart, as its quality was measured."""
        if order == AS_ASKED:
            return None
        return apart(partial(split, order=order, device=device), each=self.backend.scaled_by_batch)

    def facts(self, turn: Turn) -> Facts:
        loaded = turn.runtime.get(self._family, self.backend, turn.device, turn.progress)
        folder = sources.make_ready(self._family.source(self.backend.checkpoint), turn.progress)
        found = shipped_quality(self._family, self.backend, turn.device)
        return Facts(
            loaded.ran,
            checkpoint_hash(self._family, self.backend),
            current_shapes(self._family, self.backend),
            found.short() if found else None,
            loaded.manifest,
            _floor(turn, read_config(folder), loaded.ran.precision),
        )


class Reference(Contestant):
    """What people run otherwise, on some backend's weights and files: transformers' question-answering pipeline on the
    baseline's, runtimes as documented on the pruned ones, or on what the family has for them.

    Its whole answer is one time, in no parts: how it cuts and pads is its own affair. Of mixed lengths, which none of
    them sorts, it may be faster without batches, so both ways are measured.
    """

    measured_alone = False

    def __init__(self, family: Family, name: str) -> None:
        self.name = name
        self._family = family
        self._backend = catalog.backend(catalog.in_family(family, REFERENCES[name].runs))

    def orders(self, *, mixed: bool) -> tuple[str, ...]:
        return (ARRIVAL, SINGLY) if mixed else (EQUAL,)

    def make_ready(self, runtime: Runtime, device: str, progress: Progress) -> None:
        if not catalog.suits(self._backend, self._family):
            raise QAError(
                f"{self._backend.engine_class.title} does not run models of the kind '{self._family.kind}'. Leave "
                f"'{self.name}' out of the references."
            )
        runtime.make_ready(self._family, self._backend, device, progress)

    def bytes(self, runtime: Runtime, device: str) -> int:
        return runtime.size_of(self._family, self._backend, device)

    def load(self, turn: Turn) -> None:
        self._loaded(turn)

    def answer(self, turn: Turn, queries: Sequence[Query], order: str) -> Answered:
        loaded, batch = self._loaded(turn), {ARRIVAL: MIXED_BATCH, SINGLY: 1}.get(order, len(queries))
        try:
            with translated(self.name, "answering"):
                return Answered(on_engine_thread(lambda: loaded.answer(queries, batch)))
        except BackendFailed:
            turn.runtime.drop(self._family, self.name, turn.device)
            raise

    def facts(self, turn: Turn) -> Facts:
        weights, shapes = (of(self._family, self._backend) for of in (checkpoint_hash, current_shapes))
        return Facts(self._loaded(turn).ran, weights, shapes)

    def _loaded(self, turn: Turn) -> LoadedPipeline | Plain:
        found = turn.runtime.hold(
            self._family,
            self.name,
            turn.device,
            size=lambda: self.bytes(turn.runtime, turn.device),
            load=lambda: on_engine_thread(lambda: self._load(turn)),
            progress=turn.progress,
        )
        assert isinstance(found, LoadedPipeline | Plain)
        return found

    def _load(self, turn: Turn) -> LoadedPipeline | Plain:
        folder = sources.make_ready(self._family.source(self._backend.checkpoint), turn.progress)
        artefact = find(folder, self._backend.artefact)
        assert artefact is not None, "it was made ready"
        return LOADS[self.name](folder, artefact, turn.device, self._family.settings)


LOADS: dict[str, type[LoadedPipeline | Plain]] = {
    PIPELINE: LoadedPipeline, ORT: PlainOnnxRuntime, OPENVINO: PlainOpenVino,
}  # fmt: skip


def contestants_of(plan: BenchmarkPlan) -> list[Contestant]:
    """The plan's backends, as steps of optimisation, and its references behind them."""
    return [
        *(BackendContestant(plan.of, each) for each in plan.chosen),
        *(Reference(plan.of, name) for name in dict.fromkeys(plan.references)),
    ]


def prepare(reader: Reader, queries: Sequence[Query]) -> Prepared:
    """As a person's question is prepared where it is one, and together where they are many."""
    return reader.prepare(queries[0]) if len(queries) == 1 else reader.prepare_all(queries)


def split(windows: Windows, order: str, device: str) -> Iterable[IntArray]:
    """Rows of each forward call; equal lengths make one, and a second for the shorter windows of long texts."""
    if order == EQUAL:
        return by_tokens(windows, max_tokens=windows.n_windows * windows.seq_len, max_padding=MAX_PADDING[device])
    return by_count(windows, size=MIXED_BATCH, sort=order == SORTED)


def _floor(turn: Turn, config: dict[str, Any], precision: str) -> Floor | None:
    """How to compute the backend's floor; ``None`` where the device's rate at the precision cannot be measured, or not
    all of the model's products are known.

    A benchmark without its floor is still one, so a failure here is no failure of the backend.
    """
    if not architecture_of(config).layers_known:
        return None
    try:
        with translated("the compute floor", "measuring the machine"):
            rate = on_engine_thread(lambda: matmul_rate(turn.device, precision))
    except BackendFailed:
        return None
    return Floor(config, rate) if rate else None
