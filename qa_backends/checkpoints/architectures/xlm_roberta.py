"""XLM-RoBERTa (Conneau et al. 2020): RoBERTa, and its weights' names too, taught a hundred languages."""

from __future__ import annotations

from typing import ClassVar

from qa_backends.checkpoints.architectures.roberta import Roberta


class XlmRoberta(Roberta):
    name: ClassVar = "XLMRoberta"


ARCHITECTURE = XlmRoberta()
