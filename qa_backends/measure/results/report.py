"""The tables of the README and the model card, made of measured results and nothing else."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from qa_backends import catalog
from qa_backends.errors import InputError
from qa_backends.measure.machine import Machine
from qa_backends.measure.plan import plan_from
from qa_backends.measure.results import (
    BENCHMARK,
    OVERHEAD,
    measured_on_current_weights,
    read_results,
    shipped_accuracy,
)

if TYPE_CHECKING:
    from pathlib import Path

MODEL_CARD = "assets/models/minilm/README.md"
BEGIN = "<!-- measured: written by `python -m qa_backends report` -->"
END = "<!-- /measured -->"
LENGTHS = (32, 128, 384)
"""Of those measured, the lengths that the README shows."""


def table(benchmark: dict[str, Any], overhead: dict[str, Any]) -> str:
    """Quality, size, latency and throughput of each backend, and under it the machine and how it was measured."""
    rows = [row for row in benchmark["rows"] if row["order"] == "equal"]
    head = ["backend", "EM", "F1", "same as baseline", "file, MB", "encoder parameters"]
    head += [f"{length} tokens, ms" for length in LENGTHS] + ["against baseline", "questions/s"]
    lines = [" | ".join(head), " | ".join(["---"] + ["---:"] * (len(head) - 1))]
    names = dict.fromkeys(row["backend"] for row in rows)
    lines += [" | ".join(_cells([row for row in rows if row["backend"] == name])) for name in names]
    return "\n".join(f"| {line} |" for line in lines) + f"\n\n{_caption(benchmark, rows)} {_overhead(overhead)}"


def _cells(own: list[dict[str, Any]]) -> list[str]:
    single = {row["tokens"]: row for row in own if row["batch"] == 1}
    last = single[LENGTHS[-1]]
    best = max((row for row in own if row["batch"] > 1), key=lambda row: float(row["questions_per_second"]))
    if not measured_on_current_weights(last):
        raise InputError(
            f"{last['backend']} was measured on other weights. Measure again: python -m qa_backends bench --save …"
        )
    quality, ratio = last["quality"], last["against_baseline"]
    agreement = quality and quality["agreement"]
    return [
        f"`{last['backend'].rpartition('/')[2]}`",
        f"{quality['exact']:.1f}" if quality else "",
        f"{quality['f1']:.1f} [{quality['f1_interval']['low']:.1f}–{quality['f1_interval']['high']:.1f}]"
        if quality
        else "",
        f"{agreement:.1f} %" if agreement is not None else "",
        f"{last['bytes'] / 1e6:.1f} ({last['stored']})" if last["bytes"] else "",
        f"{last['encoder_parameters'] / 1e6:.2f} M" if last["encoder_parameters"] else "",
        *[f"{single[length]['p50_ms']:.1f}" for length in LENGTHS],
        "1" if ratio is None else "a tie" if ratio["low"] <= 1 <= ratio["high"] else _interval(ratio),
        f"{best['questions_per_second']:.0f} (batches of {best['batch']})",
    ]


def _interval(ratio: dict[str, Any]) -> str:
    return f"{ratio['value']:.2f}× [{ratio['low']:.2f}–{ratio['high']:.2f}]"


def _caption(benchmark: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    machine = Machine(**benchmark["machine"])
    versions = machine.versions
    runs = min(row["runs"] for row in rows if row["batch"] == 1)
    at = plan_from(benchmark["plan"]).batches_at
    furthest = max(benchmark["alone"], key=lambda row: abs(math.log(row["ratio"])))
    shaky = sum(row["unstable"] for row in benchmark["rows"])
    return (
        "Quality: SQuAD v2.0 dev, all questions, threshold 0, 95 % bootstrap interval. Latency: whole answers "
        f"(tokenise, model, decode), batch 1, median of at least {runs} runs taken in turns; ratio of medians at "
        f"{LENGTHS[-1]} tokens with its interval. Questions a second: the best of the batch sizes, at {at} tokens. "
        "`hf-pipeline` is transformers' own question-answering pipeline on the baseline's weights. "
        f"Measured on {machine.sentence(rows[0]['device'])}; torch {versions['torch']}, "
        f"onnxruntime {versions.get('onnxruntime-gpu') or versions['onnxruntime']}. "
        f"Alone and in company the medians differ most for `{furthest['backend'].rpartition('/')[2]}`: "
        f"{furthest['p50_ms']:.1f} ms alone, {furthest['company_p50_ms']:.1f} ms in company. "
        f"{shaky} of {len(benchmark['rows'])} rows were unstable. On a CPU the FP16 weights are computed in FP32."
    )


def _overhead(overhead: dict[str, Any]) -> str:
    at = next(row for row in overhead["rows"] if row["tokens"] == 128)
    most = max(row["share_of_model"] for row in overhead["rows"])
    return (
        f"The app's own cost at 128 tokens is {at['own_ms']:.2f} ms a question, of which the tokenizer library's call "
        f"takes {at['tokenizer_call_ms']:.2f}; at no length is it more than {most:.1%} of the baseline's model time."
    )


def quality_table() -> str:
    """Quality in detail of every backend of the embedded family that was measured on all of SQuAD v2 dev."""
    group = catalog.FAMILIES[0]
    head = "backend | questions | EM | F1 | F1, answerable | F1, unanswerable | same answer as baseline"
    lines = [head, " | ".join(["---"] + ["---:"] * 6)]
    for row in catalog.BACKENDS:
        if found := shipped_accuracy(group, row):
            parts = [f"{found[key]:.2f}" for key in ("exact", "f1", "has_ans_f1", "no_ans_f1")]
            same = "" if found["agreement"] is None else f"{found['agreement']:.2f} %"
            lines.append(" | ".join([f"`{row.name}`", f"{found['n']:,}", *parts, same]))
    return "\n".join(f"| {line} |" for line in lines)


def with_table(document: str, content: str) -> str:
    """The document's text with the measured part replaced.

    Raises:
        InputError: the document has no place for it.
    """
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise InputError(f"The document has no part between '{BEGIN}' and '{END}'.")
    return f"{before}{BEGIN}\n{content}\n{END}{after}"


def refreshed(project: Path) -> dict[Path, str]:
    """What the project's documents should say, from the results that ship."""
    benchmark, overhead = read_results(BENCHMARK, "benchmark"), read_results(OVERHEAD, "overhead")
    try:
        measured = table(benchmark, overhead)
    except (KeyError, ValueError, StopIteration) as error:
        raise InputError(
            f"The results lack what the table shows ({type(error).__name__}: {error}). "
            "Measure with the commands that the README gives."
        ) from error
    contents = {project / "README.md": measured, project / MODEL_CARD: quality_table()}
    return {path: with_table(path.read_text(encoding="utf-8"), content) for path, content in contents.items()}
