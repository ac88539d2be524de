"""Every tested backend that can run here: made ready, checked on questions, raced, and one of them advised.

Whoever cannot win goes as early as can be: by what ships of its quality before it is built, by its answers before it is
timed, by two readings when it takes twice as long as the best, by ten rounds when its interval lies apart. What is
left takes turns with transformers' pipeline until the intervals part, or the time is over.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from qa_backends import catalog
from qa_backends.errors import QAError
from qa_backends.measure.quality.datasets import SQUAD_V2_DEV, TITLES
from qa_backends.measure.recommend.answers import AnswerCheck
from qa_backends.measure.recommend.race import HEATS, Race, unload_but
from qa_backends.measure.recommend.search import F1, Candidate, Search
from qa_backends.measure.results.shipped import shipped_quality, tested
from qa_backends.measure.timing.machine import this_machine
from qa_backends.progress import Cancelled, Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from qa_backends.catalog import Backend
    from qa_backends.measure.recommend.wish import Wish
    from qa_backends.runtime import Runtime

    Emit = Callable[[Search], None]


def recommend(
    runtime: Runtime, wish: Wish, *, emit: Emit = lambda _: None, stopped: Callable[[], bool] = lambda: False
) -> Search:
    """Finds the fastest backend that meets the wish; ``emit`` is given the search whenever it has something new.

    A backend that cannot run, or fails, is out with its sentence. A search that was stopped advises nothing. Of what it
    loads, only the advised one and those that tie with it stay loaded.

    Raises:
        InputError: nothing could meet the wish, or its time is too short for a race.
        QAError: the family's baseline cannot be had, or cannot run.
    """
    wish.check()
    search = Search(wish, this_machine())
    with suppress(Cancelled):
        _Searching(runtime, search, emit, stopped).run()
    search.status, search.left_s = "", 0.0
    emit(search)
    return search


class _Searching:
    """One search under way."""

    def __init__(self, runtime: Runtime, search: Search, emit: Emit, stopped: Callable[[], bool]) -> None:
        self._runtime, self._search, self._emit, self._wish = runtime, search, emit, search.wish
        self._progress = Progress(self._tell, stopped)

    def _tell(self, status: str) -> None:
        self._search.status = status
        self._emit(self._search)

    def run(self) -> None:
        backends = catalog.ladder(catalog.offered(self._wish.of, self._wish.device))
        self._search.candidates = [Candidate(each.name, each.title) for each in backends]
        for each in self._search.candidates:
            self._look_up(each)
        self._search.of = 2 * len(self._search.left) + HEATS
        self._runtime.download(
            self._wish.of, [catalog.backend(each.name) for each in self._search.left], self._progress
        )  # fmt: skip
        self._make_ready()
        loaded_before = self._runtime.loaded(self._wish.device)
        try:
            self._check_answers()
            if self._search.left:
                Race(self._runtime, self._search, self._progress, loaded_before).run()
        finally:  # also of a search that was stopped or failed
            self._unload_the_rest(loaded_before)
        self._search.done = self._search.of

    def _unload_the_rest(self, loaded_before: Collection[str]) -> None:
        """On a thread of its own: the turn that it takes may be behind those of others, and the search is over."""
        kept, device = list(self._search.tied), self._wish.device

        def unload() -> None:
            with self._runtime.turn(device, timed=False):
                unload_but(kept, self._runtime, self._search, loaded_before)

        staying = {f"{self._wish.of.name}/{each}" for each in kept}
        if set(self._runtime.loaded(device)) - {*loaded_before, *staying}:
            threading.Thread(target=unload, daemon=True).start()

    def _look_up(self, candidate: Candidate) -> None:
        """Whether it can run here, has run anywhere, and loses no more than wished by what ships."""
        backend = catalog.backend(candidate.name)
        known = {data: f1 for data in TITLES if (f1 := self._shipped(backend, data))}
        candidate.shipped = known.pop(SQUAD_V2_DEV, None)
        candidate.shipped_besides = tuple(known.values())
        if refusal := catalog.unavailable(backend, self._wish.device):
            candidate.out = str(refusal)
        elif not tested(backend):
            candidate.out = "It is untested: no result that ships comes from it."
        else:
            self._judge(candidate)

    def _shipped(self, backend: Backend, data: str) -> F1 | None:
        """What ships of its F1 on the data set; of all but the baseline, only beside the baseline's."""
        known = shipped_quality(self._wish.of, backend, self._wish.device, data)
        if known is None or (known.f1_difference is None and backend.name != catalog.BASELINE):
            return None
        return F1(data, known.n, known.f1, known.f1_interval, known.f1_difference, whole=True)

    def _judge(self, candidate: Candidate) -> None:
        """Puts it out where it loses more than wished."""
        lost = [each for each in candidate.known_f1 if each.loses_more_than(self._wish.max_f1_loss)]
        if lost:
            candidate.out = f"Its F1 against the baseline's is {lost[0].against_baseline}."

    def _make_ready(self) -> None:
        for each in self._search.left:
            try:
                backend = catalog.backend(each.name)
                self._runtime.make_ready(self._wish.of, backend, self._wish.device, self._progress)
            except QAError as error:
                each.out = str(error)
            self._search.done += 1

    def _check_answers(self) -> None:
        check = AnswerCheck(self._runtime, self._wish, self._progress)
        for each in self._search.left:
            self._progress.say(f"{each.title}: checking {len(check.questions)} answers …")
            try:
                check.check(each)
            except QAError as error:
                each.out = str(error)
            else:
                self._judge(each)
            self._search.done += 1
