"""The app's own cost: what a question takes beside the model, and what the tokenizer library would take of that."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

from tokenizers import Tokenizer

from qa_backends import catalog
from qa_backends.checkpoints import sources
from qa_backends.measure.benchmark.inputs import queries_of_length
from qa_backends.measure.benchmark.plan import LENGTHS
from qa_backends.measure.quality.datasets import own_questions
from qa_backends.measure.results.records import Overhead, OverheadRecord
from qa_backends.measure.results.shipped import preselection
from qa_backends.measure.timing.machine import this_machine
from qa_backends.measure.timing.rounds import WARM_UP_RUNS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from qa_backends.catalog import Backend, Family
    from qa_backends.contract import Query, StageTimes
    from qa_backends.runtime import Runtime, Turn

RUNS = 200


def overhead(
    runtime: Runtime,
    family: Family,
    backends: Sequence[Backend],
    device: str,
    *,
    runs: int = RUNS,
    progress: Callable[[int], None] = lambda _done: None,
) -> Overhead:
    """A record for each backend and length, medians in milliseconds.

    ``own_ms`` is all that is not the model: tokenise, decode, and ``bookkeeping_ms``, which is what the clock shows
    around the whole answer beyond the parts that an answer reports. Apart from these: ``tokenizer_call_ms`` is the
    library's time for the texts that ``Words`` splits, and ``tokenise_kept_ms`` what is left of ``tokenise_ms`` for a
    server that still has the text as tokens.
    """
    records = []
    for each in backends:
        runtime.load(family, each, device, runtime.progress)
    with runtime.turn(device) as turn:
        reader, questions = runtime.reader(family), own_questions()
        queries = {length: queries_of_length(reader, questions, length, 1)[0] for length in LENGTHS}
        for backend in backends:
            for length, query in queries.items():
                records.append(_record(turn, family, backend, query, length, runs))
                progress(len(records))
    return Overhead(this_machine(), tuple(records))


def companions(family: Family, device: str) -> list[Backend]:
    """Beside which the own cost is measured: the baseline, and the fastest that is preselected. The larger a model, the
    less its pass leaves in the processor's caches of what the app needs next."""
    names = dict.fromkeys((catalog.BASELINE, preselection(family, device)[-1]))
    return [catalog.backend(name) for name in names]


def _record(turn: Turn, family: Family, backend: Backend, query: Query, length: int, runs: int) -> OverheadRecord:
    def answer() -> tuple[float, StageTimes]:
        """The whole answer by the clock, as a person's question goes, and the parts it reports."""
        began = time.perf_counter()
        reading = turn.answer(family, backend, turn.prepare(family, query))
        return time.perf_counter() - began, reading.times

    for _ in range(WARM_UP_RUNS):
        answer()
    found = [answer() for _ in range(runs)]
    folder = sources.make_ready(family.source(catalog.BASELINE), turn.progress)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()  # the file may ask for both, and this project for neither
    tokenizer.no_padding()
    keeping = turn.runtime.reader(family).keeping(len(query.context))
    keeping.prepare(query)
    library, kept = [], []
    for _ in range(runs):
        answer()  # so that the model has used the caches before, as it has in an answer
        library.append(_tokenizer_call(tokenizer, query))
        answer()
        kept.append(keeping.prepare(query).tokenise_s)

    def median_ms(values: list[float]) -> float:
        return 1000 * statistics.median(values)

    return OverheadRecord(
        backend=f"{family.name}/{backend.name}",
        tokens=length,
        runs=runs,
        own_ms=median_ms([whole - times.forward_s for whole, times in found]),
        tokenise_ms=median_ms([times.tokenise_s for _, times in found]),
        decode_ms=median_ms([times.decode_s for _, times in found]),
        bookkeeping_ms=median_ms([whole - times.compute_s for whole, times in found]),
        tokenizer_call_ms=median_ms(library),
        tokenise_kept_ms=median_ms(kept),
        model_ms=median_ms([times.forward_s for _, times in found]),
        share_of_model=statistics.median((whole - times.forward_s) / times.forward_s for whole, times in found),
    )


def _tokenizer_call(tokenizer: Tokenizer, query: Query) -> float:
    began = time.perf_counter()
    tokenizer.encode(query.question, add_special_tokens=False)
    tokenizer.encode(query.context, add_special_tokens=False)
    return time.perf_counter() - began
