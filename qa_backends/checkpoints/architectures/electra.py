"""ELECTRA (Clark et al. 2020): BERT's layers behind embeddings that may be narrower, without a pooling layer."""

from __future__ import annotations

from typing import ClassVar

from qa_backends.checkpoints.architectures.bert import Bert


class Electra(Bert):
    name: ClassVar = "Electra"
    base: ClassVar = "electra."
    fused_attention: ClassVar = False


ARCHITECTURE = Electra()
