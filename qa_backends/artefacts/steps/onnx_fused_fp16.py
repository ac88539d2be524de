"""FP16: weights and arithmetic in half precision; inputs stay int64 and outputs float32."""

from __future__ import annotations

from qa_backends.artefacts.graph import FILE, fused_in, precision_of, quiet, read_graph
from qa_backends.artefacts.steps import Making, Step


def make(making: Making) -> None:
    import onnx
    from onnxruntime.transformers.onnx_model import OnnxModel

    with quiet():
        model = OnnxModel(read_graph(making.parent))
        model.convert_float_to_float16(keep_io_types=True)
    onnx.save(model.model, making.folder / FILE)


STEP = Step(
    name="onnx-fused-fp16",
    parent="onnx-fused",
    short="fp16",
    label="fused, FP16",
    summary="stored as FP16",
    doing="storing as FP16",
    format="onnx-microsoft",
    files=(FILE,),
    precision="FP16",
    tolerance=1e-2,
    packages=("onnx", "onnxruntime"),
    opened_by="onnxruntime",
    make=make,
    precision_of=precision_of,
    fused_ops=fused_in,
    compared_on=("cpu", "cuda"),  # a CPU computes in FP32 on the rounded weights, a GPU in FP16
)
