"""MPNet (Song et al. 2020): positions counted as RoBERTa's, and one table of relative positions that all layers share.

That table has a column for each head, so no layer can lose heads of its own; and onnxruntime's optimiser does not know
attention with such a table.
"""

from __future__ import annotations

from typing import ClassVar

from qa_backends.checkpoints.architectures import Architecture


class MpNet(Architecture):
    name: ClassVar = "MPNet"
    base: ClassVar = "mpnet."
    layers_known: ClassVar = False
    fused_attention: ClassVar = False
    first_position: ClassVar = 2


ARCHITECTURE = MpNet()
