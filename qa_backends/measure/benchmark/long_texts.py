"""Texts of hundreds of thousands of characters: how long they take, and how much memory the process needs for it."""

from __future__ import annotations

import itertools
import statistics
import time
from typing import TYPE_CHECKING

from qa_backends.contract import Query
from qa_backends.errors import QAError
from qa_backends.measure.quality.datasets import own_questions
from qa_backends.measure.results.records import LongText, LongTexts
from qa_backends.measure.results.shipped import checkpoint_hash, current_shapes
from qa_backends.measure.timing.machine import this_machine
from qa_backends.reader.reader import MAX_CONTEXT_CHARS
from qa_backends.runtime.cost import peak_memory_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from qa_backends.catalog import Backend, Family
    from qa_backends.runtime import Runtime, Turn

CHARACTERS = (MAX_CONTEXT_CHARS // 4, MAX_CONTEXT_CHARS // 2, MAX_CONTEXT_CHARS)
"""In rising order: the most memory that a process ever held only grows."""
RUNS = 7


def long_texts(
    runtime: Runtime,
    family: Family,
    backend: Backend,
    device: str,
    *,
    progress: Callable[[int], None] = lambda _done: None,
) -> LongTexts:
    """A record for each of ``CHARACTERS``, of one backend, in rising order. Each is answered once more before, untimed.

    Raises:
        QAError: the backend had to be built, which takes more memory than any answer; or what loading and answering
            raise.
    """
    runtime.load(family, backend, device, runtime.progress)
    if runtime.build_s(family, backend, device):
        raise QAError(
            "It is built now, which took memory of its own. Run the same again, in a process that only answers."
        )
    questions = own_questions()
    text = "\n\n".join(dict.fromkeys(each.context for each in questions))
    rows = []
    with runtime.turn(device) as turn:
        for length in CHARACTERS:
            query = Query(questions[0].question, "".join(itertools.islice(itertools.cycle(text), length)))
            windows = turn.prepare(family, query).windows.n_windows
            _, *times = [_seconds(turn, family, backend, query) for _ in range(RUNS + 1)]
            rows.append(
                LongText(
                    backend=f"{family.name}/{backend.name}",
                    checkpoint=checkpoint_hash(family, backend),
                    device=device,
                    characters=length,
                    windows=windows,
                    runs=RUNS,
                    p50_ms=1000 * statistics.median(times),
                    peak_bytes=peak_memory_bytes(),
                    machine=this_machine(),
                    shapes=current_shapes(family, backend),
                )
            )
            progress(len(rows))
    return LongTexts(tuple(rows))


def _seconds(turn: Turn, family: Family, backend: Backend, query: Query) -> float:
    """Of one whole answer."""
    began = time.perf_counter()
    turn.answer(family, backend, turn.prepare(family, query))
    return time.perf_counter() - began
