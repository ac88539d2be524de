"""ALBERT (Lan et al. 2020): one layer's weights, used by every layer.

What one layer loses all would lose, so it is not pruned; of the layer that is run again and again, onnxruntime's
optimiser fuses the attention once.
"""

from __future__ import annotations

from typing import ClassVar

from qa_backends.checkpoints.architectures import Architecture


class Albert(Architecture):
    name: ClassVar = "Albert"
    base: ClassVar = "albert."
    layers_known: ClassVar = False


ARCHITECTURE = Albert()
