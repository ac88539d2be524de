"""Measurements by name: what published comparisons report, and their figures to put beside ours."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from qa_backends import catalog
from qa_backends.errors import InputError
from qa_backends.measure.benchmark.contestants import EQUAL
from qa_backends.measure.benchmark.plan import BATCHES, LENGTHS, PIPELINE, BenchmarkPlan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qa_backends.measure.results.records import BenchmarkRecord

TRYOLABS = "https://tryolabs.com/blog/2022/11/24/transformer-based-model-for-faster-inference"
TENSORRT = "https://github.com/NVIDIA/TensorRT/blob/007c3470/demo/BERT/README.md"
PARYKIN = "https://donderom.com/posts/transformers-pipeline-inference-optimization/"
T4, A100, RTX_4090 = "NVIDIA T4", "NVIDIA A100 40 GB", "NVIDIA RTX 4090"
BERT_LARGE = "bert-large"


@dataclass(frozen=True, slots=True)
class Published:
    """A figure that somebody published: the milliseconds of one question of a batch, what computed it, on what
    hardware, and where it stands.

    ``family`` is ours of the same shape; empty, the figure is of another model, and its steps alone compare. ``tokens``
    is ``None`` where that is not said; then it is put beside 128.
    """

    family: str
    backend: str
    what: str
    ms: float
    tokens: int | None
    hardware: str
    source: str
    batch: int = 1


@dataclass(frozen=True, slots=True)
class Beside:
    """A published figure; ``step``, how many times as fast it is as the same source's PyTorch, where that tells; and
    our record at that place, where there is one."""

    published: Published
    step: float | None
    ours: BenchmarkRecord | None


@dataclass(frozen=True, slots=True)
class Preset:
    """``backends`` is empty for all that are offered."""

    says: str
    lengths: tuple[int, ...]
    batches: tuple[int, ...]
    backends: tuple[str, ...] = ()
    mixed: bool = False
    reference: str | None = None
    published: tuple[Published, ...] = ()


def _ladder() -> tuple[Published, ...]:
    steps = (
        ("baseline", "PyTorch, FP32", 140.5), ("pruned", "pruned, PyTorch", 90.8), ("pruned-ort", "ONNX", 76.7),
        ("pruned-ort-fused", "ONNX, optimised", 73.9), ("pruned-ort-fp16", "ONNX, optimised, FP16", 18.2),
        ("pruned-ort-fp16", "ONNX, optimised, FP16, IO binding", 13.2),
    )  # fmt: skip
    dense = (("baseline-ort-fp16", T4, 5.53), ("baseline-ort-fp16", A100, 1.64))
    return (
        *(Published(BERT_LARGE, name, what, ms, None, T4, TRYOLABS) for name, what, ms in steps),
        *(Published(BERT_LARGE, name, "dense, TensorRT, FP16", ms, 128, on, TENSORRT) for name, on, ms in dense),
    )


def _throughput() -> tuple[Published, ...]:
    """RoBERTa-base and DistilRoBERTa-base on SQuAD 1.1's validation questions, in transformers' pipeline."""
    questions_per_second = (
        ("baseline", "PyTorch", 293.4), ("baseline-amp", "mixed precision", 347.2),
        ("baseline-ts-amp", "TorchScript, mixed precision", 379.8), ("baseline-ort-fp16", "ONNX Runtime, FP16", 429.6),
        ("distilled", "distilled, PyTorch", 384.2), ("distilled-amp", "distilled, mixed precision", 416.5),
        ("distilled-ts-amp", "distilled, TorchScript, mixed precision", 446.3),
        ("distilled-ort-fp16", "distilled, ONNX Runtime, FP16", 477.7),
    )  # fmt: skip
    return tuple(
        Published("", name, f"RoBERTa-base, {what}", 1000 / each, None, RTX_4090, PARYKIN, batch=8)
        for name, what, each in questions_per_second
    )


PRESETS = {
    "latency": Preset("latency by length, one question at a time", LENGTHS, (1,), reference=PIPELINE),
    "throughput": Preset(
        "questions a second at batches of 8 and 16", (128,), (1, 8, 16),
        ("baseline", "baseline-amp", "baseline-ts-amp", "baseline-deepspeed-fp16", "baseline-ort", "baseline-ort-fp16",
         "pruned", "pruned-amp", "pruned-ts-amp", "pruned-ort", "pruned-ort-fp16",
         "distilled", "distilled-amp", "distilled-ts-amp", "distilled-ort", "distilled-ort-fp16"), reference=PIPELINE,
        published=_throughput(),
    ),
    "batches": Preset(
        "milliseconds a question at batches of 1 to 64, and mixed lengths in three ways", (128,), BATCHES,
        ("baseline", "baseline-ts", "baseline-ort"), mixed=True,
    ),
    "ladder": Preset(
        "step by step, from the baseline to FP16", (128, 384), (1,),
        ("baseline", "pruned", "pruned-ort", "pruned-ort-fused", "pruned-ort-fp16", "baseline-ort-fp16"),
        published=_ladder(),
    ),
}  # fmt: skip


def preset(name: str) -> Preset:
    """Raises InputError, listing the presets."""
    if name not in PRESETS:
        listed = "; ".join(f"{each}: {found.says}" for each, found in PRESETS.items())
        raise InputError(f"There is no preset '{name}'. Choose one of these. {listed}.")
    return PRESETS[name]


def plan_of(name: str, plan: BenchmarkPlan) -> BenchmarkPlan:
    """The plan with what the preset measures, on the plan's family and devices and in its time."""
    found = preset(name)
    offered = tuple(each.name for each in catalog.offered_on(plan.of, plan.devices))
    named = (catalog.backend(catalog.in_family(plan.of, each)) for each in found.backends)
    able = (each for each in named if catalog.suits(each, plan.of) and set(each.runs_on) & set(plan.devices))
    chosen = tuple(dict.fromkeys(each.name for each in able))
    return replace(
        plan, lengths=found.lengths, batches=found.batches, backends=chosen or offered, mixed=found.mixed,
        reference=found.reference,
    )  # fmt: skip


def beside(name: str, records: Sequence[BenchmarkRecord]) -> list[Beside]:
    """The preset's published figures, each with ours: those of a shape that was measured, and of other models those
    whose backend was."""
    published = preset(name).published
    first_ms = {each.source: each.ms for each in published if each.backend == catalog.BASELINE}
    on_gpu_first = sorted(records, key=lambda each: each.device != "cuda")
    families = {_family(each) for each in records}
    found = []
    for each in published:
        ours = next((record for record in on_gpu_first if _same(each, record)), None)
        if each.family in families or (ours and not each.family):
            step = first_ms[each.source] / each.ms if each.source in first_ms else None
            found.append(Beside(each, step, ours))
    return found


def _same(published: Published, record: BenchmarkRecord) -> bool:
    place = (record.backend.rpartition("/")[2], record.tokens, record.batch, record.order)
    wanted = (published.backend, published.tokens or 128, published.batch, EQUAL)
    return published.family in ("", _family(record)) and place == wanted


def _family(record: BenchmarkRecord) -> str:
    return record.backend.rpartition("/")[0].removesuffix(catalog.RANDOM)
