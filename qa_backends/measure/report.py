"""The tables of the README and the model card, made of measured results and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qa_backends import catalog
from qa_backends.errors import InputError
from qa_backends.measure.machine import Machine
from qa_backends.measure.results import RESULTS, checkpoint_hash, read_results, shipped_accuracy

if TYPE_CHECKING:
    from pathlib import Path

LATENCY = RESULTS / "latency-cpu.json"
MODEL_CARD = "assets/models/minilm/README.md"
BEGIN = "<!-- measured: written by `python -m qa_backends report` -->"
END = "<!-- /measured -->"


def table(latency: dict[str, Any]) -> str:
    """Quality, size and latency of each measured backend, and under it the machine they were measured on."""
    rows = latency["rows"]
    lengths = sorted({row["tokens"] for row in rows})
    head = ["backend", "EM", "F1", "file, MB", "encoder parameters"]
    head += [f"{length} tokens, ms" for length in lengths] + ["against baseline"]
    lines = [" | ".join(head), " | ".join(["---"] + ["---:"] * (len(head) - 1))]
    for name in dict.fromkeys(row["backend"] for row in rows):
        own = {row["tokens"]: row for row in rows if row["backend"] == name}
        lines.append(" | ".join(_cells(name, own, lengths)))
    machine = Machine(**latency["machine"])
    versions = machine.versions
    runs = min(row["runs"] for row in rows)
    caption = (
        "Quality: SQuAD v2.0 dev, all questions, threshold 0. "
        "Latency: whole answers (tokenise, model, decode), batch 1, "
        f"median of at least {runs} runs taken in turns; ratio of medians at {lengths[-1]} tokens with its 95 % "
        f"bootstrap interval. Measured on {machine.sentence(rows[0]['device'])}; "
        f"torch {versions['torch']}, onnxruntime {versions.get('onnxruntime-gpu') or versions['onnxruntime']}. "
        "On a CPU the FP16 weights are computed in FP32."
    )
    return "\n".join(f"| {line} |" for line in lines) + f"\n\n{caption}"


def _cells(name: str, own: dict[int, dict[str, Any]], lengths: list[int]) -> list[str]:
    group, row = catalog.resolve(name)
    quality = shipped_accuracy(group, row)
    last = own[lengths[-1]]
    if last["checkpoint"] != checkpoint_hash(group, row):
        raise InputError(
            f"The latency of {name} was measured on other weights. Measure again: python -m qa_backends bench"
        )
    ratio = last["speed_up"]
    return [
        f"`{row.name}`",
        f"{quality['exact']:.1f}" if quality else "not measured",
        f"{quality['f1']:.1f}" if quality else "not measured",
        f"{last['bytes'] / 1e6:.1f} ({last['stored']})",
        f"{last['encoder_parameters'] / 1e6:.2f} M",
        *[f"{own[length]['p50_ms']:.1f}" for length in lengths],
        f"{ratio['value']:.2f}× [{ratio['low']:.2f}–{ratio['high']:.2f}]" if ratio else "1",
    ]


def quality_table() -> str:
    """Quality in detail of every backend of the embedded family that was measured on all of SQuAD v2 dev."""
    group = catalog.FAMILIES[0]
    head = "backend | questions | EM | F1 | F1, answerable | F1, unanswerable"
    lines = [head, " | ".join(["---"] + ["---:"] * 5)]
    for row in catalog.BACKENDS:
        if found := shipped_accuracy(group, row):
            parts = [f"{found[key]:.2f}" for key in ("exact", "f1", "has_ans_f1", "no_ans_f1")]
            lines.append(" | ".join([f"`{row.name}`", f"{found['n']:,}", *parts]))
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
    contents = {project / "README.md": table(read_results(LATENCY)), project / MODEL_CARD: quality_table()}
    return {path: with_table(path.read_text(encoding="utf-8"), content) for path, content in contents.items()}
