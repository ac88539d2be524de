"""The tables of the README and the documents, made of measured results and nothing else."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from qa_backends import catalog
from qa_backends.checkpoints.manifest import read_manifest
from qa_backends.checkpoints.sources import local_folder
from qa_backends.errors import InputError
from qa_backends.measure.benchmark.contestants import ARRIVAL, EQUAL, ORDERS, SORTED
from qa_backends.measure.benchmark.plan import PIPELINE, REFERENCES, SHOWN_AT, BenchmarkPlan
from qa_backends.measure.benchmark.presets import beside
from qa_backends.measure.quality.datasets import SQUAD_V2_DEV, TITLES
from qa_backends.measure.results.card import CARD_FAMILY, card
from qa_backends.measure.results.document import lacking, markdown, with_table
from qa_backends.measure.results.files import read_benchmark, read_overhead
from qa_backends.measure.results.shipped import measured_on_current_weights, on_current_weights, quality_in
from qa_backends.paths import (
    ACCURACY,
    ACCURACY_AVX2,
    ASSETS,
    BENCHMARK,
    BENCHMARK_AVX2,
    BENCHMARK_INTEL,
    LADDER,
    MODELS,
    OVERHEAD,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from qa_backends.measure.results.records import Benchmark, BenchmarkRecord, Overhead, QualityRecord

MODEL_CARD = MODELS / CARD_FAMILY / "README.md"
README = ASSETS.parent / "README.md"
PUBLISHED = ASSETS.parent / "docs" / "published.md"
PROCESSORS = ASSETS.parent / "docs" / "processors.md"
LENGTHS = BenchmarkPlan(family="").lengths
"""Of those measured, the lengths that the README shows."""
SPEED_HEAD = [*(f"{length} tokens, ms" for length in LENGTHS), "times as fast as the baseline", "questions/s"]
EARLIER = (
    "That was before `distilled` was there, before ONNX Runtime's threads were left awake between two runs, and before "
    "fused graphs were run on a CPU without the operator that is slower there: the `-ort` rows may be slower than they "
    "would be now."
)
"""What to know of those that were measured then."""
ELSEWHERE = {
    BENCHMARK_INTEL: EARLIER,
    BENCHMARK_AVX2: (
        f"{EARLIER} This processor does not add products of 8 bits up in one instruction (VNNI): INT8 has weights of 7 "
        f"bits there ([what it answers then](../assets/models/{CARD_FAMILY}/README.md))."
    ),
}
"""What was measured on other processors than the README's table, and what there is to know of each."""
AIMS = ((128, 1, 10), (384, 1, 10), (128, 8, 10))
"""Tokens, questions at once, and how many times as fast as transformers' pipeline an answer is meant to be."""
MIXED_AIM = 8
"""The same for questions of mixed lengths, each in its best way."""
F1_FOR_AIMS = 2.0
"""What the backends that count towards these may lose on SQuAD."""
TOOLS = ("torch", "onnxruntime-gpu", "onnxruntime")
"""The packages whose versions it shows, where they were installed."""


def table(benchmark: Benchmark, overhead: Overhead) -> str:
    """Quality, size, latency and throughput of each backend, and under it the machine and how it was measured.

    Raises:
        InputError: the results lack what the table shows, or are of other weights than those that ship.
    """
    records = [each for each in benchmark.rows if each.order == EQUAL]
    head = ["backend", "same answer, SQuAD"]
    for title in TITLES.values():
        head += [f"F1, {title}", "less the baseline's"]
    head += ["file, MB", "encoder parameters"]
    head += SPEED_HEAD
    names = dict.fromkeys(each.backend for each in records)
    lines = [_cells([each for each in records if each.backend == name]) for name in names]
    return f"{markdown(head, lines)}\n\n{_caption(benchmark, records)} {_overhead(overhead)}"


def _cells(own: list[BenchmarkRecord]) -> list[str]:
    """One backend's line."""
    speed, first = _speed_cells(own), own[0]
    return [
        f"`{first.name}`",
        _same_answer(_known(first, SQUAD_V2_DEV)),
        *(cell for data in TITLES for cell in _quality_cells(_known(first, data))),
        f"{first.bytes / 1e6:.1f} ({first.stored})" if first.bytes else "",
        f"{first.encoder_parameters / 1e6:.2f} M" if first.encoder_parameters else "",
        *speed,
    ]


def _speed_cells(own: list[BenchmarkRecord]) -> list[str]:
    """One backend's latencies, its ratio to the baseline at the greatest length, and its throughput."""
    single = {each.tokens: each for each in own if each.batch == 1}
    batched = [each for each in own if each.batch > 1]
    if not batched or not single.keys() >= set(LENGTHS):
        raise lacking(f"{own[0].name} at {', '.join(map(str, LENGTHS))} tokens, one by one and in batches")
    last, best = single[LENGTHS[-1]], max(batched, key=lambda each: each.questions_per_second)
    if not measured_on_current_weights(last):
        raise InputError(
            f"{last.backend} was measured on other weights. Measure again: python -m qa_backends bench --save …"
        )
    return [
        *[f"{single[length].p50_ms:.1f}" for length in LENGTHS],
        str(last.against_baseline.ratio) if last.against_baseline else "1",
        f"{best.questions_per_second:.0f} (batches of {best.batch})",
    ]


def fastest_of(benchmark: Benchmark) -> str:
    """Which backend is the fastest of a whole benchmark, beside the pipeline, one question at a time and many, and how
    far to trust that.

    Raises:
        InputError: the results lack what is told.
    """
    at = [each for each in benchmark.rows if (each.order, each.tokens, each.batch) == (EQUAL, SHOWN_AT, 1)]
    ours = [each for each in at if each.name not in REFERENCES]
    pipelines = [each for each in at if each.name == PIPELINE]
    if not ours or not pipelines:
        raise lacking(f"a backend and the pipeline at {SHOWN_AT} tokens")
    best = min(ours, key=lambda each: each.p50_ms)
    shaky = sum(each.unstable for each in benchmark.rows)
    return (
        f"On {benchmark.machine.sentence(best.device)}, `{best.name}` has the lowest median at {SHOWN_AT} tokens, "
        f"{best.p50_ms:.1f} ms, where transformers' pipeline takes {pipelines[0].p50_ms:.1f} ms. {_mixed(benchmark)}"
        f"{shaky} of {len(benchmark.rows)} measurements were unstable{_absent(benchmark)}."
    )


def table_elsewhere(benchmark: Benchmark, note: str) -> str:
    """Latency and throughput on a processor of another kind, under its name and what there is to know of it.

    Raises:
        InputError: the results lack what the table shows.
    """
    current = on_current_weights(benchmark)
    replaced = _replaced(benchmark, current)
    records = [each for each in current.rows if each.order == EQUAL]
    names = dict.fromkeys(each.backend for each in records)
    lines = [[f"`{name.rpartition('/')[2]}`", *_speed_cells([each for each in records if each.backend == name])]
             for name in names]  # fmt: skip
    table = markdown(["backend", *SPEED_HEAD], lines)
    missing = f" Left out, since other weights ship now: {', '.join(replaced)}." if replaced else ""
    return f"## {benchmark.machine.processor}\n\n{fastest_of(current)} {note}{missing}\n\n{table}"


def _replaced(benchmark: Benchmark, current: Benchmark) -> list[str]:
    """Backends of the benchmark of which other weights ship now; ``current`` is what it holds of those that do."""
    names = {each.backend for each in current.rows}
    return list(dict.fromkeys(f"`{each.name}`" for each in benchmark.rows if each.backend not in names))


def _told_elsewhere(benchmark: Benchmark) -> str:
    """What the README tells of another processor."""
    current = on_current_weights(benchmark)
    replaced = _replaced(benchmark, current)
    but = f" That leaves out {len(replaced)} backends of which other weights ship now." if replaced else ""
    return f"{fastest_of(current)}{but} [All of it](docs/processors.md)."


def reached(benchmarks: Sequence[Benchmark]) -> str:
    """How many times as fast as transformers' pipeline the best backend is on each processor, beside what is aimed at.

    Raises:
        InputError: the results lack the pipeline or a backend at one of these.
    """
    head = ["the pipeline's time over the best backend's", "aim", *(each.machine.processor for each in benchmarks)]
    lines = []
    for tokens, batch, aim in AIMS:
        what = f"{tokens} tokens, {'one by one' if batch == 1 else f'batches of {batch}'}"
        lines.append([what, f"{aim}×", *(_times_the_pipeline(each, tokens, batch) for each in benchmarks)])
    lines.append(["mixed lengths", f"{MIXED_AIM}×", *(_times_the_pipeline(each, None) for each in benchmarks)])
    return (
        f"{markdown(head, lines)}\n\nThe best is the fastest of those that lose at most {F1_FOR_AIMS:g} F1 on SQuAD "
        "against the baseline: by median runs, or of mixed lengths by questions a second, each asked in its best way."
    )


def _times_the_pipeline(benchmark: Benchmark, tokens: int | None, batch: int | None = None) -> str:
    """At that length, ``None`` being mixed ones, and so many questions at once, ``None`` being any."""
    at = [
        each
        for each in benchmark.rows
        if each.tokens == tokens and (batch is None or (each.order, each.batch) == (EQUAL, batch))
    ]
    rounded = ACCURACY if "VNNI" in benchmark.machine.processor else ACCURACY_AVX2  # see ``shipped.shipped_quality``
    able = [each for each in at if _loses_little(each, rounded)]
    pipelines = [each for each in at if each.name == PIPELINE]
    if not able or not pipelines:
        raise lacking(f"a backend and the pipeline at {tokens or 'mixed'} tokens")
    best, theirs = (max(of, key=_pace) for of in (able, pipelines))
    return f"{_pace(best) / _pace(theirs):.1f}× (`{best.name}`)"


def _pace(record: BenchmarkRecord) -> float:
    """What the tables show, the more the better: by the median run of equal lengths, else questions a second."""
    return record.questions_per_second if record.tokens is None else 1 / record.p50_ms


def _loses_little(record: BenchmarkRecord, rounded: Path) -> bool:
    """Whether the F1 on SQuAD is known to be near the baseline's; of INT8, by the file ``rounded``."""
    if record.name in REFERENCES or record.name == catalog.BASELINE:
        return record.name == catalog.BASELINE
    family, backend = catalog.resolve(record.backend)
    known = quality_in(rounded if backend.rounds else ACCURACY, family, backend, record.device, SQUAD_V2_DEV)
    return known is not None and known.f1_difference is not None and -known.f1_difference.value <= F1_FOR_AIMS


def _absent(benchmark: Benchmark) -> str:
    """Which backends could not run, as the end of a sentence."""
    names = [f"`{each.backend}`" for each in benchmark.left_out if each.backend and not each.point]
    return f"; {', '.join(names)} cannot run there" if names else ""


def _known(record: BenchmarkRecord, data: str) -> QualityRecord | None:
    """What ships of the record's backend on the data set; a reference of somebody else's has none."""
    if record.name in REFERENCES:
        return None
    return quality_in(ACCURACY, *catalog.resolve(record.backend), record.device, data)


def _same_answer(known: QualityRecord | None) -> str:
    return "" if known is None or known.agreement is None else f"{known.agreement:.1f} %"


def _quality_cells(known: QualityRecord | None) -> list[str]:
    if known is None:
        return ["", ""]
    return [
        f"{known.f1:.1f} [{known.f1_interval.low:.1f}–{known.f1_interval.high:.1f}]",
        known.f1_difference.spelt() if known.f1_difference else "",
    ]


def _caption(benchmark: Benchmark, records: list[BenchmarkRecord]) -> str:
    if not records or not benchmark.alone:
        raise lacking("any backend, or any alone")
    machine, versions = benchmark.machine, benchmark.machine.versions
    tools = [f"{name.removesuffix('-gpu')} {versions[name]}" for name in TOOLS if name in versions]
    runs = min(each.runs for each in records if each.batch == 1)
    furthest = max(benchmark.alone, key=lambda each: abs(math.log(each.ratio)))
    shaky = sum(each.unstable for each in benchmark.rows)
    return (
        f"{_sets()}; threshold {_thresholds()}, 95 % bootstrap intervals, differences paired; answered on "
        f"{_answered_on(records)}. Latency: whole answers "
        f"(tokenise, model, decode), batch 1, median of at least {runs} runs taken in turns; ratio of medians at "
        f"{LENGTHS[-1]} tokens with its interval. Questions a second: the best of the batch sizes, at "
        f"{benchmark.plan.shown_at} tokens. "
        "`hf-pipeline` is transformers' own question-answering pipeline on the baseline's weights; `ort` and "
        "`openvino` are these runtimes called as their documentation shows, on the pruned weights' graph. "
        f"{_mixed(benchmark)}"
        f"Measured on {machine.sentence(records[0].device)}; {', '.join(tools)}. "
        f"By itself and beside the others the medians differ most for `{furthest.name}`: "
        f"{furthest.p50_ms:.1f} ms by itself, {furthest.company_p50_ms:.1f} ms beside them. "
        f"{shaky} of {len(benchmark.rows)} measurements were unstable. On a CPU the FP16 weights are computed in FP32."
    )


def _mixed(benchmark: Benchmark) -> str:
    """What the fastest backend does of mixed lengths, beside the pipeline, each in the best of its ways; nothing where
    one of them was not asked."""
    mixed = sorted((each for each in benchmark.rows if each.tokens is None), key=lambda each: each.questions_per_second)
    ours = [each for each in mixed if each.name not in REFERENCES]
    theirs = [each for each in mixed if each.name == PIPELINE]
    if not ours or not theirs:
        return ""
    best, other = ours[-1], theirs[-1]
    return (
        f"Of {best.questions} questions whose lengths are mixed, `{best.name}` answers {_rate(best)}, and the pipeline "
        f"{_rate(other)}. "
    )


def _rate(record: BenchmarkRecord) -> str:
    """As in "306 a second in batches of 4 sorted by length"."""
    batches = f"in batches of {record.batch} " if record.order in (ARRIVAL, SORTED) else ""
    return f"{record.questions_per_second:.0f} a second {batches}{ORDERS[record.order]}"


def _sets() -> str:
    """What the data sets are, by the baseline's records."""
    baseline = catalog.resolve(catalog.BASELINE, CARD_FAMILY)
    known = {title: quality_in(ACCURACY, *baseline, data=data) for data, title in TITLES.items()}
    named = [f"{title}: {found.data}, all {found.n:,} questions" for title, found in known.items() if found]
    return "F1 on " + "; ".join(named)


def _answered_on(records: list[BenchmarkRecord]) -> str:
    """The processors that gave the answers whose quality is shown."""
    known = [_known(each, data) for each in records for data in TITLES]
    return " and ".join(sorted({each.machine.processor for each in known if each}))


def _overhead(overhead: Overhead) -> str:
    at = [each for each in overhead.rows if each.tokens == SHOWN_AT]
    if not at:
        raise lacking(f"the app's own cost at {SHOWN_AT} tokens")
    costs = [
        f"{each.own_ms:.2f} ms a question beside `{each.backend.partition('/')[2]}` ({each.tokenise_ms:.2f} to "
        f"tokenise, {each.decode_ms:.2f} to decode, {each.bookkeeping_ms:.2f} around it)"
        for each in at
    ]
    first, machine = at[0], overhead.machine.sentence("cpu")
    most = max(each.share_of_model for each in overhead.rows if each.backend == first.backend)
    return (
        f"The app's own cost at {SHOWN_AT} tokens is {' and '.join(costs)}, measured on {machine}. The tokenizer "
        f"library would take {first.tokenizer_call_ms:.2f} ms to tokenise; a server that has had a question about the "
        f"same text takes {first.tokenise_kept_ms:.2f}. At no length is the own cost more than {most:.1%} of the "
        "baseline's model time."
    )


def _thresholds() -> str:
    """Of "no answer", of the checkpoints of the embedded family."""
    made = [read_manifest(local_folder(source)) for _, source in catalog.family(CARD_FAMILY).checkpoints]
    return " and ".join(sorted({f"{each.null_threshold:g}" for each in made}))


def published_table(benchmark: Benchmark) -> str:
    """What others published of BERT-large's ladder, beside the same shapes here; each against the same PyTorch."""
    head = ["published", "on", "tokens", "ms", "times as fast", "ours", "ms at 128 tokens", "times as fast"]
    found = beside("ladder", benchmark.rows)
    firsts = {each.published.source: each.published.ms for each in found if each.published.backend == catalog.BASELINE}
    lines = []
    for theirs, ours in ((each.published, each.ours) for each in found):
        first = firsts.get(theirs.source)
        cells = [
            f"[{theirs.what}]({theirs.source})",
            theirs.hardware,
            str(theirs.tokens or "not said"),
            f"{theirs.ms:g}",
        ]
        cells += [f"{first / theirs.ms:.1f}" if first else "", f"`{theirs.backend}`"]
        if ours:
            cells += [f"{ours.p50_ms:.0f}", str(ours.against_baseline.ratio) if ours.against_baseline else "1"]
        lines.append(cells if ours else [*cells, "not measured", ""])
    records = benchmark.rows
    return (
        f"{markdown(head, lines)}\n\nOurs: whole answers, tokenising and decoding included, one at a time, on "
        f"{benchmark.machine.sentence(records[0].device)}; ratios of medians with 95 % intervals. "
        f"{sum(each.unstable for each in records)} of {len(records)} measurements were unstable. The weights are "
        "random: a shape's time does not hang on them, and nothing is said of what they answer. The hardware differs, "
        "and the precision may: compare the steps, not the milliseconds."
    )


def refreshed() -> dict[Path, str]:
    """What the project's documents should say, from the results that ship.

    Raises:
        InputError: see ``table`` and ``with_table``.
    """
    elsewhere = [(read_benchmark(file), note) for file, note in ELSEWHERE.items()]
    usual = read_benchmark(BENCHMARK)
    measured = [table(usual, read_overhead(OVERHEAD))]
    measured += [_told_elsewhere(each) for each, _ in elsewhere]
    contents = {README: "\n\n".join(measured), MODEL_CARD: card()}
    everywhere = [
        usual,
        *(on_current_weights(each) for each, _ in elsewhere),
    ]  # ``table`` minds the usual one's weights
    tables = [table_elsewhere(each, note) for each, note in elsewhere]
    contents[PROCESSORS] = "\n\n".join([reached(everywhere), *tables])
    contents[PUBLISHED] = published_table(read_benchmark(LADDER))
    return {path: with_table(path.read_text(encoding="utf-8"), content) for path, content in contents.items()}
