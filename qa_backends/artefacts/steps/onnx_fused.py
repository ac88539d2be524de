"""Fuse: embedding, attention, residual and GELU each as one operator of ONNX Runtime's."""

from __future__ import annotations

from qa_backends.artefacts.graph import FILE, FUSED_DOMAIN, FUSED_OPS, count_fused, fused_in, precision_of, quiet
from qa_backends.artefacts.steps import Making, Step
from qa_backends.checkpoints.architectures import architecture_of
from qa_backends.checkpoints.load import read_config
from qa_backends.errors import ArtefactError


def make(making: Making) -> None:
    """Raises ArtefactError where some part was not recognised, or the model is known not to be: the result would be
    "optimised" in name only."""
    import onnx
    from onnxruntime.transformers.optimizer import optimize_model

    config = read_config(making.checkpoint)
    architecture = architecture_of(config)
    if not architecture.fuses(config):
        which = "this model, by its config," if architecture.fusion else "models"
        raise ArtefactError(
            f"ONNX Runtime's optimiser does not fuse {which} of the kind '{config['model_type']}'. "
            "Choose a backend of the plain graph, which ONNX Runtime optimises when it loads it."
        )
    with quiet():
        optimised = optimize_model(str(making.parent / FILE), model_type=architecture.fusion, opt_level=0)
    counts = count_fused(optimised.model)
    expected = architecture.expected_fusions(config)
    if counts != expected:
        raise ArtefactError(
            f"The step 'onnx-fused' made {counts} of the graph, where {expected} was expected; nothing was kept. "
            "Install the pinned versions (pip install -r requirements.txt), or use the unfused 'onnx'."
        )
    if all(each.domain != FUSED_DOMAIN for each in optimised.model.opset_import):
        optimised.model.opset_import.append(onnx.helper.make_opsetid(FUSED_DOMAIN, 1))
    onnx.save(optimised.model, making.folder / FILE)


STEP = Step(
    name="onnx-fused",
    parent="onnx",
    short="fused",
    label="fused",
    summary="operators fused",
    doing="fusing operators",
    format="onnx-microsoft",
    files=(FILE,),
    precision="FP32",
    tolerance=1e-4,
    packages=("onnx", "onnxruntime"),
    opened_by="onnxruntime",
    make=make,
    precision_of=precision_of,
    fused_ops=fused_in,
    fuses=True,
    settings={"operators": list(FUSED_OPS)},
)
