"""INT8, static: weights and activations in 8 bits, scaled by what calibration texts made of them."""

from __future__ import annotations

from typing import Any

from qa_backends.artefacts.attention import attention_products, signs_of
from qa_backends.artefacts.graph import FILE, precision_of
from qa_backends.artefacts.quantise import LEAST_AGREEMENT, TOLERANCE, feeds, prepared, seven_bits
from qa_backends.artefacts.smoothing import MIGRATION, products_of
from qa_backends.artefacts.steps import Making, Step
from qa_backends.artefacts.texts import calibration_windows
from qa_backends.checkpoints.manifest import file_hash
from qa_backends.paths import CALIBRATION


def make(making: Making) -> None:
    """Puts QuantizeLinear and DequantizeLinear around what is computed in INT8, products with weights and, where the
    processor gains by it, those of queries with keys: every runtime reads those pairs in its own way. Products' results
    stay as they are, to be added to biases in FP32."""
    from onnxruntime.quantization import (
        CalibrationDataReader,
        CalibrationMethod,
        QuantFormat,
        QuantType,
        quantize_static,
    )

    class Texts(CalibrationDataReader):  # type: ignore[misc]  # onnxruntime leaves it untyped
        def __init__(self) -> None:
            self._feeds = feeds(model, windows, making.progress, "ranges")

        def get_next(self) -> dict[str, Any] | None:
            return next(self._feeds, None)

    windows = calibration_windows(making.checkpoint)
    with prepared(making, windows) as (graph, model):
        attention = [] if seven_bits() else attention_products(model)
        quantize_static(
            str(graph),
            str(making.folder / FILE),
            Texts(),
            quant_format=QuantFormat.QDQ,
            nodes_to_quantize=[each.name for each in (*products_of(model), *attention)],
            per_channel=True,
            reduce_range=seven_bits(),
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            calibrate_method=CalibrationMethod.MinMax,
            extra_options={
                "OpTypesToExcludeOutputQuantization": ["MatMul"],
                "TensorQuantOverrides": signs_of(attention),
            },
        )


STEP = Step(
    name="onnx-int8",
    parent="onnx",
    short="int8",
    label="INT8",
    summary="computed in INT8, calibrated",
    doing="calibrating INT8",
    format="onnx-qdq",
    files=(FILE,),
    precision="INT8",
    tolerance=TOLERANCE,
    least_agreement=LEAST_AGREEMENT,
    packages=("onnx", "onnxruntime"),
    opened_by="onnxruntime",
    make=make,
    precision_of=precision_of,
    settings={
        "attention": not seven_bits(), "calibration": file_hash(CALIBRATION), "per_channel": True,
        "ranges": "minimum and maximum", "seven_bits": seven_bits(), "smoothing": MIGRATION,
    },
)  # fmt: skip
