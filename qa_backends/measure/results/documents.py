"""Every document that is written from results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qa_backends.measure.benchmark.presets import beside
from qa_backends.measure.results.card import CARD_FAMILY, card
from qa_backends.measure.results.document import markdown, with_table
from qa_backends.measure.results.files import read_benchmark, read_results
from qa_backends.measure.results.long_texts import long_texts_table
from qa_backends.measure.results.processors import ELSEWHERE, table_elsewhere
from qa_backends.measure.results.records import LongTexts, Overhead
from qa_backends.measure.results.report import UNSTABLE, of_earlier_weights, ratio_of, table, unstable_of, unsteady
from qa_backends.measure.results.shipped import benchmark_in
from qa_backends.measure.results.summary import summary
from qa_backends.paths import ASSETS, BENCHMARK, LADDER, LONG_TEXTS, MODELS, OVERHEAD, THROUGHPUT

if TYPE_CHECKING:
    from pathlib import Path

    from qa_backends.measure.results.records import Benchmark

MODEL_CARD = MODELS / CARD_FAMILY / "README.md"
README = ASSETS.parent / "README.md"
PUBLISHED = ASSETS.parent / "docs" / "published.md"
PROCESSORS = ASSETS.parent / "docs" / "processors.md"


def refreshed() -> dict[Path, str]:
    """What the project's documents should say, from the results that ship.

    Raises:
        InputError: the results lack what is shown, or are of other shapes than those that ship; or a document has no
            place for it.
    """
    usual = benchmark_in(BENCHMARK)
    elsewhere = [(benchmark_in(file), note) for file, note in ELSEWHERE.items()]
    processors = [
        f"## {usual.machine.processor}\n\n{table(usual, read_results(OVERHEAD, Overhead))}",
        long_texts_table(read_results(LONG_TEXTS, LongTexts)),
        *(table_elsewhere(each, note) for each, note in elsewhere),
    ]
    contents = {
        README: summary(usual, [each for each, _ in elsewhere]),
        MODEL_CARD: card(),
        PROCESSORS: "\n\n".join(processors),
        PUBLISHED: f"{published_table(read_benchmark(LADDER))}\n\n{throughput_table(read_benchmark(THROUGHPUT))}",
    }
    return {path: with_table(path.read_text(encoding="utf-8"), content) for path, content in contents.items()}


def published_table(benchmark: Benchmark) -> str:
    """What others published of BERT-large's ladder, beside the same shapes here; each against the same PyTorch."""
    head = ["published", "on", "tokens", "ms", "times as fast", "ours", "ms at 128 tokens", "times as fast"]
    lines = []
    for each in beside("ladder", benchmark.rows):
        theirs, ours = each.published, each.ours
        cells = [
            f"[{theirs.what}]({theirs.source})",
            theirs.hardware,
            str(theirs.tokens or "not said"),
            f"{theirs.ms:g}",
        ]
        cells += [f"{each.step:.1f}" if each.step else "", f"`{theirs.backend}`"]
        if ours:
            cells += [
                unsteady(ours, f"{ours.p50_ms:.0f}"),
                ratio_of(ours),
            ]
        lines.append(cells if ours else [*cells, "not measured", ""])
    records = benchmark.rows
    return (
        f"{markdown(head, lines)}\n\nOurs: whole answers, tokenising and decoding included, one at a time, on "
        f"{benchmark.machine.sentence(records[0].device)}; ratios of medians with 95 % intervals. "
        f"{unstable_of(benchmark)} measurements were unstable; {UNSTABLE} stands before those that are shown. The "
        "weights are random: times depend on the shapes alone, and nothing is said of what they answer. The hardware "
        "differs, and the precision may: compare the steps, not the milliseconds."
    )


def throughput_table(benchmark: Benchmark) -> str:
    """What another published of questions a second, beside the same steps of our weights."""
    head = ["published", "on", "questions a second", "times as fast", "ours", "questions a second", "times as fast"]
    lines, compared = [], beside("throughput", benchmark.rows)
    for each in compared:
        theirs, ours = each.published, each.ours
        assert ours is not None, "of another model, what was not measured here is not put beside"
        lines.append(
            [
                f"[{theirs.what}]({theirs.source})",
                theirs.hardware,
                f"{1000 / theirs.ms:.1f}",
                f"{each.step:.2f}" if each.step else "",
                f"`{theirs.backend}`",
                unsteady(ours, f"{ours.questions_per_second:.0f}"),
                ratio_of(ours),
            ]
        )
    where = benchmark.machine.sentence(benchmark.rows[0].device)
    runs = min(each.ours.runs for each in compared if each.ours)
    return (
        f"{markdown(head, lines)}\n\nTheirs: transformers' pipeline, batches of 8, SQuAD 1.1's validation questions. "
        f"Ours: whole answers about texts of 128 tokens, batches of 8, on {where}; ratios of medians with 95 % "
        f"intervals, of {runs} runs each or more. {UNSTABLE} stands before what was unstable. Model and hardware "
        f"differ: compare the steps.{of_earlier_weights(benchmark.rows)}"
    )
