"""INT8, dynamic: weights in 8 bits; activations are scaled anew for every text. Calibration texts only say which
channels are smoothed."""

from __future__ import annotations

from qa_backends.artefacts.graph import FILE, precision_of
from qa_backends.artefacts.quantise import LEAST_AGREEMENT, TOLERANCE, prepared, seven_bits
from qa_backends.artefacts.smoothing import MIGRATION, products_of
from qa_backends.artefacts.steps import Making, Step
from qa_backends.artefacts.texts import calibration_windows
from qa_backends.checkpoints.manifest import file_hash
from qa_backends.paths import CALIBRATION


def make(making: Making) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with prepared(making, calibration_windows(making.checkpoint)) as (graph, model):
        quantize_dynamic(
            str(graph), str(making.folder / FILE), per_channel=True, weight_type=QuantType.QInt8,
            nodes_to_quantize=[each.name for each in products_of(model)], reduce_range=seven_bits(),
        )  # fmt: skip


STEP = Step(
    name="onnx-int8-dynamic",
    parent="onnx",
    short="int8-dynamic",
    label="INT8, dynamic",
    summary="weights rounded to INT8",
    doing="rounding weights to INT8",
    format="onnx-dynamic",
    files=(FILE,),
    precision="INT8",
    tolerance=1.5 * TOLERANCE,  # all activations of a batch share one scale, and padding has its part in it
    least_agreement=LEAST_AGREEMENT,
    packages=("onnx", "onnxruntime"),
    opened_by="onnxruntime",
    make=make,
    precision_of=precision_of,
    devices=("cpu",),  # of its operators ONNX Runtime has none for CUDA, and would copy to the CPU and back at each
    scaled_by_batch=True,
    settings={
        "calibration": file_hash(CALIBRATION),
        "per_channel": True,
        "seven_bits": seven_bits(),
        "smoothing": MIGRATION,
    },
)
