"""DeBERTa version 2 and 3 (He et al. 2021, 2023): attention to contents and to relative positions apart.

Its three products of attention scores are neither pruned here nor fused by onnxruntime's optimiser.
"""

from __future__ import annotations

from typing import ClassVar

from qa_backends.checkpoints.architectures import Architecture


class DebertaV2(Architecture):
    name: ClassVar = "DebertaV2"
    base: ClassVar = "deberta."
    layers_known: ClassVar = False
    fused_attention: ClassVar = False


ARCHITECTURE = DebertaV2()
