"""The app's own cost: what a question takes beside the model, and how much of that is the tokenizer library's call."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

from tokenizers import Tokenizer

from qa_backends import catalog
from qa_backends.measure.inputs import own_questions, queries_of_length
from qa_backends.measure.machine import this_machine
from qa_backends.measure.rounds import WARM_UP_RUNS

if TYPE_CHECKING:
    from collections.abc import Callable

    from qa_backends.catalog import Family
    from qa_backends.contract import Query, StageTimes
    from qa_backends.runtime import Runtime, Turn

LENGTHS = (32, 64, 128, 256, 384, 512)
RUNS = 200


def overhead(
    runtime: Runtime,
    group: Family,
    device: str,
    *,
    runs: int = RUNS,
    progress: Callable[[int], None] = lambda _done: None,
) -> dict[str, Any]:
    """A results file's content: a row a length, medians in milliseconds, measured on the baseline.

    ``own_ms`` is all that is not the model: tokenise, decode, and ``bookkeeping_ms``, which is what the clock shows
    around the whole answer beyond the parts that an answer reports.
    """
    rows = []
    with runtime.turn(device) as turn:
        reader = runtime.reader(group)
        for number, length in enumerate(LENGTHS):
            (query,) = queries_of_length(reader, own_questions(), length, 1)
            rows.append(_row(turn, group, query, length, runs))
            progress(number + 1)
    return {"kind": "overhead", "machine": this_machine().as_dict(), "backend": f"{group.name}/baseline", "rows": rows}


def _row(turn: Turn, group: Family, query: Query, length: int, runs: int) -> dict[str, Any]:
    for _ in range(WARM_UP_RUNS):
        _answer(turn, group, query)
    found = [_answer(turn, group, query) for _ in range(runs)]
    tokenizer = Tokenizer.from_file(
        str(catalog.checkpoint_folder(group, catalog.BASELINE, turn.say) / "tokenizer.json")
    )
    library = []
    for _ in range(runs):
        _answer(turn, group, query)  # so that the model has used the caches before, as it has in an answer
        library.append(_tokenizer_call(tokenizer, query))

    def median_ms(values: list[float]) -> float:
        return 1000 * statistics.median(values)

    return {
        "tokens": length,
        "runs": runs,
        "own_ms": median_ms([whole - times.forward_s for whole, times in found]),
        "tokenise_ms": median_ms([times.tokenise_s for _, times in found]),
        "decode_ms": median_ms([times.decode_s for _, times in found]),
        "bookkeeping_ms": median_ms([whole - times.compute_s for whole, times in found]),
        "tokenizer_call_ms": median_ms(library),
        "model_ms": median_ms([times.forward_s for _, times in found]),
        "share_of_model": statistics.median((whole - times.forward_s) / times.forward_s for whole, times in found),
    }


def _answer(turn: Turn, group: Family, query: Query) -> tuple[float, StageTimes]:
    """The whole answer by the clock, as a person's question goes, and the parts it reports."""
    began = time.perf_counter()
    reading = turn.answer(group, catalog.backend(catalog.BASELINE), turn.prepare(group, query))
    return time.perf_counter() - began, reading.times


def _tokenizer_call(tokenizer: Tokenizer, query: Query) -> float:
    began = time.perf_counter()
    tokenizer.encode(query.question, add_special_tokens=False)
    tokenizer.encode(query.context, add_special_tokens=False)
    return time.perf_counter() - began
