"""Who takes part in a benchmark: backends and the reference, each loaded once, each asked in its own way."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from qa_backends import catalog
from qa_backends.artefacts.checkpoint import read_config
from qa_backends.errors import BackendFailed, QAError
from qa_backends.measure.floor import Floor, matmul_rate
from qa_backends.measure.plan import PIPELINE
from qa_backends.measure.reference import PipelineReference
from qa_backends.measure.rows import Contestant, Measured, row_of
from qa_backends.runtime import on_engine_thread, translated

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from qa_backends.catalog import Backend
    from qa_backends.contract import Query, StageTimes
    from qa_backends.measure.plan import Plan, Point
    from qa_backends.measure.rounds import Samples
    from qa_backends.reader.reader import Prepared, Reader
    from qa_backends.runtime import Loaded, Runtime, Turn

    LeaveOut = Callable[[str, str], None]


class Contestants:
    """The contestants of a plan; what cannot be loaded is left out from then on, and said once."""

    def __init__(self, runtime: Runtime, plan: Plan, leave_out: LeaveOut) -> None:
        self._runtime, self._plan, self._leave_out = runtime, plan, leave_out
        self._broken: set[tuple[str, str]] = set()
        self._pipelines: dict[str, PipelineReference] = {}
        self._configs: dict[str, dict[str, Any]] = {}

    def at(self, turn: Turn, point: Point) -> list[Contestant]:
        """Those that take part at the point, loaded. The reference is left out of mixed lengths: it batches itself."""
        orders = ("equal",) if point.tokens is not None else ("arrival", "sorted")
        names = [row.name for row in self._plan.rows]
        if self._plan.reference and point.tokens is not None:
            names.append(self._plan.reference)
        ready = [name for name in names if self._ready(turn, name)]
        return [Contestant(name, order) for name in ready for order in orders]

    def _ready(self, turn: Turn, name: str) -> bool:
        if (name, turn.device) in self._broken:
            return False
        try:
            self._load(turn, name)
        except QAError as error:
            self._broken.add((name, turn.device))
            self._leave_out(name, str(error))
            return False
        return True

    def _load(self, turn: Turn, name: str) -> None:
        if name != PIPELINE:
            self._runtime.get(self._plan.group, catalog.backend(name), turn.device, turn.say)
        elif turn.device not in self._pipelines:
            folder = catalog.checkpoint_folder(self._plan.group, catalog.BASELINE, turn.say)
            self._pipelines[turn.device] = PipelineReference(folder, turn.device)

    def reader(self, turn: Turn) -> Reader:
        return self._runtime.reader(self._plan.group, turn.say)

    def run_of(self, turn: Turn, contestant: Contestant, queries: list[Query]) -> Callable[[], StageTimes]:
        """One whole answer to all the queries, from text to text."""
        if contestant.name == PIPELINE:
            return partial(self._pipelines[turn.device], queries)
        row, group = catalog.backend(contestant.name), self._plan.group
        split = partial(contestant.split, device=turn.device)
        return lambda: turn.answer_all(group, row, self._prepare(turn, queries), split)[1]

    def _prepare(self, turn: Turn, queries: Sequence[Query]) -> Prepared:
        """As a person's question is prepared where it is one, and together where they are many."""
        reader = self.reader(turn)
        return reader.prepare(queries[0]) if len(queries) == 1 else reader.prepare_all(queries)

    def rows(
        self, turn: Turn, point: Point, entrants: Sequence[Contestant], samples: Samples, queries: list[Query]
    ) -> list[dict[str, Any]]:
        """What was measured at the point, a row a contestant."""
        prepared = self._prepare(turn, queries)
        measured = [Measured(self._plan.group, point, each, samples, prepared) for each in entrants]
        return [self._row(turn, each, entrants) for each in measured]

    def _row(self, turn: Turn, measured: Measured, entrants: Sequence[Contestant]) -> dict[str, Any]:
        if measured.contestant.name == PIPELINE:
            return row_of(measured, entrants, self._pipelines[turn.device].ran, None, None)
        row, group = catalog.backend(measured.contestant.name), self._plan.group
        loaded = self._runtime.get(group, row, turn.device)
        if row.checkpoint not in self._configs:
            self._configs[row.checkpoint] = read_config(catalog.checkpoint_folder(group, row.checkpoint, turn.say))
        return row_of(measured, entrants, loaded.ran, loaded.manifest, self._floor_of(turn, loaded, row))

    def _floor_of(self, turn: Turn, loaded: Loaded, row: Backend) -> Floor | None:
        """How to compute the floor of the backend; ``None`` where the rate cannot be had: a help and not a result."""
        try:
            with translated("the compute floor", "measuring the machine"):
                rate = on_engine_thread(lambda: matmul_rate(turn.device, loaded.ran.precision))
        except BackendFailed:
            return None
        return Floor(self._configs[row.checkpoint], rate) if rate else None
