"""What was measured on each kind of processor, and what the best backends reach there.

Weights are made anew more often than a processor of every kind is at hand. What was measured of weights of the same
shapes stands; what was measured of others still tells how engines compare there, so it stays too, and is marked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qa_backends import catalog
from qa_backends.measure.benchmark.compare import in_turns
from qa_backends.measure.benchmark.contestants import EQUAL
from qa_backends.measure.benchmark.plan import PIPELINE, REFERENCES
from qa_backends.measure.results.card import CARD_FAMILY
from qa_backends.measure.results.document import lacking, markdown, unbroken
from qa_backends.measure.results.report import (
    EARLIER,
    SPEED_HEAD,
    UNSTABLE,
    fastest_of,
    named,
    of_earlier_weights,
    speed_cells,
    unstable_of,
)
from qa_backends.measure.results.shipped import MOST_F1_LOST, of_current_shapes
from qa_backends.measure.timing.statistics import TAIL
from qa_backends.paths import AMD, AVX2, BENCHMARK, INTEL, measured_on

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qa_backends.measure.results.records import Benchmark, BenchmarkRecord

THEN = (
    "That was before `distilled` and `pruned-deep-ov-bf16` were there, before ONNX Runtime's threads were left awake "
    "between two runs, and before fused graphs were run on a CPU without the operator that is slower there: the `-ort` "
    "rows may be slower than they would be now."
)
"""What to know of those that were measured then."""
WITHOUT_DEEP_BF16 = "That was before `pruned-deep-ov-bf16` was there."
ELSEWHERE = {
    measured_on(AMD, BENCHMARK): WITHOUT_DEEP_BF16,
    measured_on(INTEL, BENCHMARK): f"{THEN} INT8 did not yet round what attention multiplies.",
    measured_on(AVX2, BENCHMARK): (
        f"{THEN} This processor does not add products of 8 bits up in one instruction (VNNI): INT8 has weights of 7 "
        f"bits there ([what is known of its answers](../assets/models/{CARD_FAMILY}/README.md))."
    ),
}
"""What was measured on other processors than the README's table, and what there is to know of each."""
AIMS = ((128, 1, 10), (384, 1, 10), (128, 8, 10))
"""Tokens, questions at once, and how many times as fast as transformers' pipeline an answer is meant to be."""
MIXED_AIM = 8
"""The same for questions of mixed lengths, each in its best way."""
F1_FOR_AIMS = 2.0
"""What the backends that count towards these may lose on SQuAD."""
DETAILS = "docs/processors.md"
"""Where all of what is summed up is told."""


def reached(benchmarks: Sequence[Benchmark]) -> str:
    """How many times as fast as transformers' pipeline the best backend is on each processor, beside what is aimed at;
    the same of those that lose as little as the page allows by itself; and how much of what was measured there was
    unstable.

    Raises:
        InputError: the results lack the pipeline or a backend at one of these.
    """
    machines = [each.machine for each in benchmarks]
    head = ["the pipeline's time over the best backend's", "aim", *(f"{m.processor}, {m.date}" for m in machines)]
    lines = []
    for tokens, batch, aim in AIMS:
        what = f"{tokens} tokens, {'one by one' if batch == 1 else f'batches of {batch}'}"
        lines.append([what, f"{aim}×", *(_times_the_pipeline(each, tokens, batch) for each in benchmarks)])
    lines.append(["mixed lengths", f"{MIXED_AIM}×", *(_times_the_pipeline(each, None) for each in benchmarks)])
    for tokens, batch, _ in AIMS[:2]:
        careful = (_times_the_pipeline(each, tokens, batch, MOST_F1_LOST) for each in benchmarks)
        lines.append([f"{tokens} tokens, one by one, at most {MOST_F1_LOST:g} F1 lost", "", *careful])
    lines.append(["unstable measurements", "", *map(unstable_of, benchmarks)])
    table = markdown(head, lines)
    marks = f" Of those marked{EARLIER} both the time and the F1 lost are those of weights that others have replaced."
    return (
        f"{table}\n\nThe best is the fastest of those that lose at most {F1_FOR_AIMS:g} F1 on SQuAD against the "
        f"baseline, or {MOST_F1_LOST:g}, which is what the page and `recommend` allow unless told otherwise. They are "
        "ranked by their medians, for mixed lengths by questions a second, each in the batches that suit it best. The "
        "interval is widened, since the best was picked of several; where there were too few rounds for one so wide, "
        "their number stands in its place. The aim is the project's own; it is missed where a "
        f"figure is below it. Each column bears its date, and the older ones may be faster now: "
        f"[what has changed since]({DETAILS}).{marks if EARLIER in table else ''}"
    )


def _times_the_pipeline(
    benchmark: Benchmark, tokens: int | None, batch: int | None = None, most_lost: float = F1_FOR_AIMS
) -> str:
    """At that length, ``None`` being mixed ones, and so many questions at once, ``None`` being any."""
    at = [
        each
        for each in benchmark.rows
        if each.tokens == tokens and (batch is None or (each.order, each.batch) == (EQUAL, batch))
    ]
    able = [each for each in at if _loses_at_most(most_lost, each)]
    pipelines = [each for each in at if each.name == PIPELINE]
    if not able or not pipelines:
        raise lacking(f"a backend and the pipeline at {tokens or 'mixed'} tokens")
    best, theirs = (max(of, key=_pace) for of in (able, pipelines))
    times, rounds = f"{_pace(best) / _pace(theirs):.1f}×", len(best.blocks)
    # The widest interval there is, from the least round to the greatest, holds a median but for 2 of 2**rounds cases.
    if 2.0 ** (1 - rounds) > 2 * TAIL / 100 / len(able):
        shown = unbroken(f"{times} in {rounds} rounds")
    else:
        shown = unbroken(str(in_turns(theirs, best, among=len(able)) or times))
    return f"{UNSTABLE if best.unstable or theirs.unstable else ''}{shown}<br>{named(best)}"


def _pace(record: BenchmarkRecord) -> float:
    """What the tables show, the more the better: by the median run of equal lengths, else questions a second."""
    return record.questions_per_second if record.tokens is None else 1 / record.p50_ms


def _loses_at_most(f1: float, record: BenchmarkRecord) -> bool:
    """Whether its F1 on SQuAD, on that processor, is known to be near the baseline's."""
    if record.name in REFERENCES or record.name == catalog.BASELINE:
        return record.name == catalog.BASELINE
    difference = record.quality.f1_difference if record.quality else None
    return difference is not None and -difference.value <= f1


def table_elsewhere(benchmark: Benchmark, note: str) -> str:
    """Latency and throughput on a processor of another kind, under its name and what there is to know of it.

    Raises:
        InputError: the results lack what the table shows.
    """
    records = [each for each in benchmark.rows if each.order == EQUAL]
    own = [
        [each for each in records if each.backend == name] for name in dict.fromkeys(each.backend for each in records)
    ]
    table = markdown(["backend", *SPEED_HEAD], [[named(each[0]), *speed_cells(each)] for each in own])
    about = " ".join(filter(None, (fastest_of(benchmark), note)))
    about += _of_earlier(benchmark) + of_earlier_weights(benchmark.rows)
    return f"## {benchmark.machine.processor}\n\n{about}\n\n{table}"


def _of_earlier(benchmark: Benchmark) -> str:
    """Of how many backends other shapes were measured than those that ship, as a sentence."""
    names = {each.backend for each in benchmark.rows}
    old = {each.backend for each in benchmark.rows if not of_current_shapes(each)}
    return (
        f" {len(old)} of these {len(names)} were measured with weights of other shapes than those that ship now, and "
        "are marked."
        if old
        else ""
    )
