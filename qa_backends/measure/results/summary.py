"""What the README tells of the measurements: the few backends that most will choose between, and what the best of
all reach on each processor. ``report`` and ``processors`` tell all of it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from qa_backends import catalog
from qa_backends.measure.benchmark.contestants import EQUAL
from qa_backends.measure.benchmark.plan import PIPELINE, REFERENCES, SHOWN_AT
from qa_backends.measure.quality.datasets import TITLES
from qa_backends.measure.results.document import lacking, listed, markdown, unbroken
from qa_backends.measure.results.processors import DETAILS, reached
from qa_backends.measure.results.report import (
    LENGTHS,
    UNSTABLE,
    answered_on,
    checked,
    data_sets,
    known_quality,
    of_earlier_weights,
    quality_cells,
    speed_cells,
    thresholds,
    written_apart,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qa_backends.measure.results.records import Benchmark, BenchmarkRecord

THREE = (catalog.BASELINE, "pruned", "pruned-ort-fp16")
"""The backends that the project is for."""


def summary(benchmark: Benchmark, elsewhere: Sequence[Benchmark]) -> str:
    """Both tables, and how to read them. ``elsewhere`` is what was measured on other processors.

    Raises:
        InputError: the results lack what is shown, or are of other shapes than those that ship.
    """
    records = [each for each in benchmark.rows if each.order == EQUAL]
    head = ["backend", *(f"F1, {title}" for title in TITLES.values()), "file, MB"]
    head += [*(f"{length} tokens, ms" for length in LENGTHS[1:]), "times as fast", "questions/s"]
    own = {name: [each for each in records if each.name == name] for name in _chosen(records)}
    if missing := [name for name, found in own.items() if not found]:
        raise lacking(" and ".join(missing))
    lines = [_cells(found) for found in own.values()]
    answered_by = answered_on([each for found in own.values() for each in found])
    return "\n\n".join(
        [markdown(head, lines), _how_to_read(benchmark, records, answered_by), reached([benchmark, *elsewhere])]
    )


def _chosen(records: Sequence[BenchmarkRecord]) -> list[str]:
    """Those that the project is for; behind them, of each checkpoint, the one of the least time for a question of each
    length, and transformers' pipeline."""
    took: defaultdict[str, float] = defaultdict(float)
    for each in records:
        if each.batch == 1 and each.tokens in LENGTHS and each.name not in REFERENCES:
            took[each.name] += each.p50_ms
    quickest = dict[str, str]()
    for name in sorted(took, key=took.__getitem__):
        quickest.setdefault(catalog.backend(name).checkpoint, name)
    return list(dict.fromkeys([*THREE, *(name for name in took if name in quickest.values()), PIPELINE]))


def _cells(own: list[BenchmarkRecord]) -> list[str]:
    first = checked(own[0])
    return [
        f"`{first.name}`",
        *("<br>".join(map(unbroken, filter(None, quality_cells(known_quality(first, data))))) for data in TITLES),
        f"{first.bytes / 1e6:.1f}" if first.bytes else "",
        *(cell.partition(" (")[0] for cell in speed_cells(own)[1:]),
    ]


def _how_to_read(benchmark: Benchmark, records: list[BenchmarkRecord], answered_by: str) -> str:
    lengths = listed([str(each) for each in LENGTHS])
    notes = [
        "Rows: the three that the project is for, of every checkpoint the backend that takes the least time for a "
        f"question of {lengths} tokens together, and transformers' own question-answering pipeline on the baseline's "
        f"weights. [All {len({each.name for each in records} - REFERENCES.keys())} backends and "
        f"{len(REFERENCES)} references]({DETAILS}) stand elsewhere.",
        f"{data_sets()}; the last two were written for this project, `own` as proper prose, `everyday` with slang and "
        f"slips. {written_apart()}In percent, at threshold {thresholds()} (how far ahead of the best span `no answer` "
        "must be), with 95 % intervals; under it the difference to the baseline's, of the same questions. "
        f"Answered on {answered_by}.",
        "Times: medians of whole answers, one question at a time, measured in turns on "
        f"{benchmark.machine.sentence(records[0].device)}; times as fast as the baseline at {LENGTHS[-1]} tokens, with "
        f"the interval; questions a second in batches, of {SHOWN_AT} tokens. {UNSTABLE} stands before what was "
        f"unstable. On a CPU the FP16 weights are computed in FP32.{of_earlier_weights(benchmark.rows)}",
    ]
    return "\n".join(f"- {each}" for each in notes)
