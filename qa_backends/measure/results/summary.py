"""What the README tells of the measurements: the few backends that most will choose between, and what the best of
all reach on each processor. ``report`` and ``processors`` tell all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qa_backends import catalog
from qa_backends.measure.benchmark.contestants import EQUAL
from qa_backends.measure.benchmark.plan import PIPELINE, REFERENCES, SHOWN_AT
from qa_backends.measure.quality.datasets import TITLES
from qa_backends.measure.results.document import markdown
from qa_backends.measure.results.processors import reached
from qa_backends.measure.results.report import (
    LENGTHS,
    checked,
    data_sets,
    known_quality,
    quality_cells,
    speed_cells,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qa_backends.measure.results.records import Benchmark, BenchmarkRecord

THREE = (catalog.BASELINE, "pruned", "pruned-ort-fp16")
"""The backends that the project is for."""
DETAILS = "docs/processors.md"
"""Where all of it is told."""


def summary(benchmark: Benchmark, elsewhere: Sequence[Benchmark]) -> str:
    """Both tables, and how to read them. ``elsewhere`` is what was measured on other processors.

    Raises:
        InputError: the results lack what is shown, or are of other weights than those that ship.
    """
    records = [each for each in benchmark.rows if each.order == EQUAL]
    head = ["backend", *(f"F1, {title}" for title in TITLES.values()), "file, MB"]
    head += [*(f"{length} tokens, ms" for length in LENGTHS[1:]), "times as fast", "questions/s"]
    lines = [_cells([each for each in records if each.name == name]) for name in _chosen(records)]
    return "\n\n".join([markdown(head, lines), _how_to_read(benchmark, records), reached([benchmark, *elsewhere])])


def _chosen(records: Sequence[BenchmarkRecord]) -> list[str]:
    """Those that the project is for; behind them the fastest of each checkpoint, and transformers' pipeline."""
    at = [each for each in records if (each.tokens, each.batch) == (SHOWN_AT, 1)]
    quickest = dict[str, str]()
    for each in sorted(at, key=lambda each: each.p50_ms):
        if each.name not in REFERENCES:
            quickest.setdefault(catalog.backend(each.name).checkpoint, each.name)
    others = [each.name for each in at if each.name in (*quickest.values(), PIPELINE) and each.name not in THREE]
    return [*THREE, *others]


def _cells(own: list[BenchmarkRecord]) -> list[str]:
    first = checked(own[0])
    return [
        f"`{first.name}`",
        *("<br>".join(map(_unbroken, filter(None, quality_cells(known_quality(first, data))))) for data in TITLES),
        f"{first.bytes / 1e6:.1f}" if first.bytes else "",
        *(cell.partition(" (")[0] for cell in speed_cells(own)[1:]),
    ]


def _unbroken(cell: str) -> str:
    return cell.replace(" ", "&nbsp;")


def _how_to_read(benchmark: Benchmark, records: Sequence[BenchmarkRecord]) -> str:
    return (
        f"{data_sets()}, in percent with 95 % intervals; under it the difference to the baseline's, of the same "
        "questions. Times are medians of whole answers, one question at a time, measured in turns on "
        f"{benchmark.machine.sentence(records[0].device)}; times as fast as the baseline at {LENGTHS[-1]} tokens, with "
        f"its interval; questions a second in batches, of {SHOWN_AT} tokens. `{PIPELINE}` is transformers' own "
        "question-answering pipeline on the baseline's weights. On a CPU the FP16 weights are computed in FP32. "
        f"[All {len({each.name for each in records})} rows]({DETAILS}), and how far to trust them."
    )
