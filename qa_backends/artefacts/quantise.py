"""What steps that make INT8 share: a graph prepared for it, calibration texts, and weights that no processor's sums
overflow with."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from qa_backends.artefacts.graph import FILE, quiet
from qa_backends.artefacts.smoothing import largest_inputs, smooth
from qa_backends.limits import cpu_flags, thread_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import onnx

    from qa_backends.artefacts.steps import Making
    from qa_backends.contract import Windows
    from qa_backends.progress import Progress

EIGHT_BIT_SUMS = frozenset({"avx512_vnni", "avx_vnni", "amx_int8"})
"""x86 instructions, by Linux's names, that add products of 8 bits up in 32. Without them two products are first added
in 16 bits, which overflow with weights of 8 bits (onnxruntime's documentation, quantisation, "reduce_range")."""
PREPARED = "prepared.onnx"
TOLD_EVERY = 25
"""Texts between two words to those who wait."""
TOLERANCE, LEAST_AGREEMENT = 0.2, 0.9
"""What eight bits may change of the logits, and the share of the answers that they must keep."""


def seven_bits() -> bool:
    """Whether weights must keep to 7 bits on this machine; processors other than x86 do not say "sse2"."""
    return "sse2" in cpu_flags() and not cpu_flags() & EIGHT_BIT_SUMS


@contextmanager
def prepared(making: Making, windows: Sequence[Windows]) -> Iterator[tuple[Path, onnx.ModelProto]]:
    """The parent's graph with shapes inferred and constants folded, as quantising wants it, and with the channels
    smoothed that are outlying in ``windows``: as a file that is gone afterwards, and as what that holds. What
    onnxruntime computes within it keeps to our threads."""
    import onnx
    from onnxruntime.quantization.shape_inference import quant_pre_process

    path = making.folder / PREPARED
    with quiet(), _on_our_threads():
        quant_pre_process(str(making.parent / FILE), str(path), skip_symbolic_shape=True)
        model = onnx.load(path)
        smooth(model, largest_inputs(model, feeds(model, windows, making.progress, "outliers")))
        onnx.save(model, path)
        yield path, model
    path.unlink()


@contextmanager
def _on_our_threads() -> Iterator[None]:
    """Sessions that onnxruntime's own tools open meanwhile compute on as many threads as everything else: the tools
    take no options for them, and by themselves they would take all of the host's cores."""
    import onnxruntime

    plain = onnxruntime.SessionOptions

    class Ours(plain):  # type: ignore[misc, valid-type]  # onnxruntime leaves it untyped
        def __init__(self) -> None:
            super().__init__()
            self.intra_op_num_threads = thread_count()

    onnxruntime.SessionOptions = Ours
    try:
        yield
    finally:
        onnxruntime.SessionOptions = plain


def feeds(
    model: onnx.ModelProto, windows: Sequence[Windows], progress: Progress, what: str
) -> Iterator[dict[str, Any]]:
    """The windows as the graph takes them, one by one."""
    names = [each.name for each in model.graph.input]
    for number, window in enumerate(windows):
        if number % TOLD_EVERY == 0:
            progress.say(f"calibrating INT8, {what}: {number} of {len(windows)} texts …")
        yield window.inputs(names)
