"""The table of backends: a backend is a checkpoint, what is built from it, and the engine that runs that.

Everything people see of a backend derives from its row: a new engine is one file in ``engines/`` and one row here, and
the page, the command line, the measurements and the contract test then have it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from qa_backends.artefacts.steps import CHECKPOINT, chain_of, format_of
from qa_backends.contract import Choice, Engine
from qa_backends.engines import engine_class
from qa_backends.errors import UnknownBackend

BASELINE, PRUNED = "baseline", "pruned"


@dataclass(frozen=True, slots=True)
class CheckpointKind:
    """What a checkpoint of that name is in every family."""

    title: str
    summary: str


CHECKPOINTS = {
    BASELINE: CheckpointKind("Baseline", "the fine-tuned model"),
    PRUNED: CheckpointKind("Pruned", "heads and FFN columns removed"),
    "pruned-deep": CheckpointKind("Pruned deeper", "cut for milliseconds: a fifth of the encoder's time"),
    "distilled": CheckpointKind("Distilled", "fewer layers, taught by a larger model"),
}


@dataclass(frozen=True)
class Backend:
    """One row. ``checkpoint`` names one of the family's, ``artefact`` a build step or "checkpoint", ``engine`` a file.

    ``options`` are the engine's, as (option, value). ``devices``, where given, leave out some of those that the engine
    can use.
    """

    checkpoint: str
    artefact: str
    engine: str
    options: tuple[tuple[str, str], ...] = ()
    devices: tuple[str, ...] = ()

    @cached_property
    def name(self) -> str:
        """As in "pruned-ort-fp16": the checkpoint, and what engine, build step and options add to it."""
        step = []
        if self.artefact != CHECKPOINT:
            last, plain = chain_of(self.artefact)[-1], CHECKPOINT in self.engine_class.reads
            step = [last.short or (last.name if plain else "")]  # an engine that reads both must tell them apart
        parts = [self.checkpoint, self.engine_class.short, *step, *map(self._short, self.options)]
        return "-".join(part for part in parts if part)

    def _short(self, chosen: tuple[str, str]) -> str:
        """What an option's value adds to the name: itself, with the option where two options can take it."""
        option, value = chosen
        takers = [name for name, values in self.engine_class.options.items() if value in values]
        return value if len(takers) < 2 else f"{option}-{value}"

    @property
    def title(self) -> str:
        """As in "Pruned, fused, FP16"."""
        step = [chain_of(self.artefact)[-1].label] if self.artefact != CHECKPOINT else []
        parts = [self.kind.title, *step, self.engine_class.label, *(choice.label for choice in self.choices)]
        return ", ".join(part for part in parts if part)

    @property
    def summary(self) -> str:
        """What was done, and what runs it."""
        steps = [step.summary for step in chain_of(self.artefact)]
        options = [f"in {choice.label}" for choice in self.choices]
        return ", ".join([self.kind.summary, *steps, f"in {self.engine_class.title}", *options])

    @property
    def precision(self) -> str:
        """What the options ask for, else what the weights are stored in; a checkpoint is loaded as FP32."""
        chosen = [choice.precision for choice in self.choices if choice.precision]
        return chosen[-1] if chosen else self.stored

    @property
    def stored(self) -> str:
        """What the weights are stored in when the engine reads them."""
        return chain_of(self.artefact)[-1].precision if self.artefact != CHECKPOINT else "FP32"

    @property
    def tolerance(self) -> float:
        """Largest logit difference from the checkpoint in PyTorch, in FP32: what each step, the engine and its options
        may cause, together; relative to the largest logit where that is above 1."""
        steps = sum(step.tolerance for step in chain_of(self.artefact))
        return self.engine_class.tolerance + steps + sum(choice.tolerance for choice in self.choices)

    @property
    def scaled_by_batch(self) -> bool:
        """Whether a window's logits hang on what else is in its batch."""
        return any(step.scaled_by_batch for step in chain_of(self.artefact))

    @property
    def rounds(self) -> bool:
        """Whether a step changes logits by its nature, as INT8 does: then answers are compared too."""
        return any(step.least_agreement for step in chain_of(self.artefact))

    @property
    def engine_class(self) -> type[Engine]:
        """Raises UnknownBackend for an engine that is not there."""
        return engine_class(self.engine)

    @property
    def choices(self) -> list[Choice]:
        """What the options' values mean. Raises UnknownBackend for one that the engine does not take."""
        able = self.engine_class.options
        for option, value in self.options:
            if value not in able.get(option, {}):
                takes = ", ".join(f"{name}={each}" for name, values in able.items() for each in values) or "no options"
                raise UnknownBackend(f"{self.engine_class.title} takes no '{option}={value}', but {takes}.")
        return [able[option][value] for option, value in self.options]

    @property
    def kind(self) -> CheckpointKind:
        known = CHECKPOINTS.get(self.checkpoint)
        return known or CheckpointKind(self.checkpoint.capitalize(), f"the checkpoint '{self.checkpoint}'")

    @property
    def runs_on(self) -> tuple[str, ...]:
        """Devices it can use, if they are there."""
        able = [each for each in self.engine_class.devices if not self.devices or each in self.devices]
        return tuple(each for each in able if all(each in step.devices for step in chain_of(self.artefact)))

    @property
    def portable(self) -> bool:
        """Whether a folder can be made that answers without this project; what only GPUs do is not in its runner."""
        return self.engine_class.portable is not None and "cpu" in self.runs_on

    @property
    def fits(self) -> bool:
        """Whether the engine can read the artefact at all."""
        return format_of(self.artefact) in self.engine_class.reads


AMP = (("precision", "amp"),)
BF16 = (("precision", "bf16"),)
FP16 = (("precision", "fp16"),)
GRAPHS = (("replay", "graphs"),)
TENSORRT = (("provider", "tensorrt"),)
GPU = ("cuda",)

BACKENDS = (
    Backend(BASELINE, CHECKPOINT, "pytorch"),
    Backend(PRUNED, CHECKPOINT, "pytorch"),
    Backend(PRUNED, "onnx-fused-fp16", "onnxruntime"),
    Backend(PRUNED, "onnx", "onnxruntime"),
    Backend(PRUNED, "onnx-fused", "onnxruntime"),
    Backend(PRUNED, "onnx-int8-dynamic", "onnxruntime"),
    Backend(PRUNED, "onnx-int8", "onnxruntime"),
    Backend(PRUNED, "onnx", "openvino"),
    Backend(PRUNED, "onnx", "openvino", BF16),
    Backend(PRUNED, "onnx-int8", "openvino"),
    Backend(PRUNED, "onnx-int8", "openvino", BF16),
    Backend(PRUNED, CHECKPOINT, "pytorch", AMP),
    Backend(PRUNED, CHECKPOINT, "torchscript"),
    Backend(PRUNED, CHECKPOINT, "torchscript", AMP),
    Backend(PRUNED, CHECKPOINT, "torch_compile"),
    Backend(PRUNED, "onnx-fused-fp16", "onnxruntime", GRAPHS, GPU),
    Backend(PRUNED, "onnx", "onnxruntime", TENSORRT, GPU),
    Backend(BASELINE, CHECKPOINT, "deepspeed", FP16, GPU),
    Backend(PRUNED, "onnx-fused-fp16", "triton"),
    Backend("pruned-deep", CHECKPOINT, "pytorch"),
    Backend("pruned-deep", "onnx-fused-fp16", "onnxruntime"),
    Backend("pruned-deep", "onnx", "openvino", BF16),
    Backend("pruned-deep", "onnx-int8", "openvino"),
    Backend("pruned-deep", "onnx-int8", "openvino", BF16),
    Backend("distilled", CHECKPOINT, "pytorch"),
    Backend("distilled", "onnx-fused-fp16", "onnxruntime"),
    Backend("distilled", "onnx-int8", "openvino"),
)
"""What is offered without being asked for by name. Every other combination that fits can be named."""
OF_THEIR_OWN = frozenset(each.checkpoint for each in BACKENDS) - {BASELINE, PRUNED}
"""Checkpoints that have rows of their own. The rows of ``PRUNED`` are those of any other smaller one, and of these
where a family has nothing else that is smaller."""

PRESELECTED = (BASELINE, "pruned-ort-fp16")
FASTEST = "pruned-ov-int8"
"""What servers are measured with, and models pruned for, unless somebody chooses otherwise."""
