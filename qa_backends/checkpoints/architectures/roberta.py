"""RoBERTa (Liu et al. 2019): BERT's layers without segments, positions counted from behind the padding token's id."""

from __future__ import annotations

from typing import ClassVar

from qa_backends.checkpoints.architectures.bert import Bert


class Roberta(Bert):
    name: ClassVar = "Roberta"
    base: ClassVar = "roberta."
    first_position: ClassVar = 2
    fuses_embedding: ClassVar = False


ARCHITECTURE = Roberta()
