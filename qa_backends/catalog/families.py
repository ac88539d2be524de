"""Families: checkpoints of one tokenizer, so that their answers and times can stand side by side."""

from __future__ import annotations

import os
from dataclasses import dataclass

from qa_backends.checkpoints.sources import Source
from qa_backends.contract import DEFAULT_SETTINGS, ReaderSettings
from qa_backends.errors import InputError, UnknownBackend
from qa_backends.paths import MODELS

RANDOM = "-random"
"""Behind the name of a family: its shapes, with random weights."""


@dataclass(frozen=True, slots=True)
class Family:
    """``checkpoints`` by name, the baseline among them; ``settings`` are how its models read a text, ``language`` the
    one that they know, as ISO 639 abbreviates it ("en"), empty where they know several or it is not known."""

    name: str
    title: str
    checkpoints: tuple[tuple[str, Source], ...]
    settings: ReaderSettings = DEFAULT_SETTINGS
    language: str = ""

    @property
    def random(self) -> bool:
        """Whether its weights are random: it shows what a shape costs, and answers nothing."""
        return any(source.shape for _, source in self.checkpoints)

    @property
    def embedded(self) -> bool:
        """Whether nothing has to be downloaded."""
        return not any(source.remote for _, source in self.checkpoints)

    def has(self, checkpoint: str) -> bool:
        return checkpoint in dict(self.checkpoints)

    def source(self, checkpoint: str) -> Source:
        """Raises UnknownBackend, listing the family's checkpoints."""
        if not self.has(checkpoint):
            names = ", ".join(dict(self.checkpoints))
            raise UnknownBackend(f"The family '{self.name}' has no checkpoint '{checkpoint}', but these: {names}.")
        return dict(self.checkpoints)[checkpoint]


_families = {
    each.name: each
    for each in (
        Family(
            "minilm",
            "MiniLM, 6 layers (ships with the app)",
            (
                ("baseline", Source(folder=MODELS / "minilm" / "baseline")),
                ("pruned", Source(folder=MODELS / "minilm" / "pruned")),
            ),
            language="en",
        ),
        Family(
            "bert-large",
            "BERT-large, 24 layers (2.5 GB from the Hugging Face Hub on first use)",
            (
                # Its safetensors weights wait in a pull request, whose commit is known once it was fetched: see hub.py.
                ("baseline", Source(repository="madlag/bert-large-uncased-whole-word-masking-finetuned-squadv2")),
                # The commit in which the Hub's conversion service added safetensors weights.
                (
                    "pruned",
                    Source(
                        repository="madlag/bert-large-uncased-wwm-squadv2-x2.63-f82.6-d16-hybrid-v1",
                        revision="e2e6aed39024de75dcb95497f37b7b4cacdbb356",
                    ),
                ),
            ),
            language="en",
        ),
        Family(
            f"bert-large{RANDOM}",
            "BERT-large's shape with random weights (latency only)",
            (
                ("baseline", Source(shape="bert-large/baseline")),
                ("pruned", Source(shape="bert-large/pruned")),
            ),
        ),
    )
}


def families() -> list[Family]:
    """The families there are, those that came at run time behind."""
    return list(_families.values())


def register(family: Family) -> None:
    """Adds a family for as long as the process runs, in place of an earlier one of that name."""
    _families[family.name] = family


def family(name: str) -> Family:
    """Raises UnknownBackend, listing the families there are."""
    if name not in _families:
        raise UnknownBackend(f"There is no family '{name}'. Choose one of: {', '.join(_families)}.")
    return _families[name]


def with_random_weights(name: str) -> Family:
    """The family's shapes with random weights. Raises InputError where that would not spare anything."""
    if family(name).random:
        return family(name)
    if family(name).embedded:
        raise InputError(f"The family '{name}' ships with its weights. Leave --random-weights out.")
    return family(name + RANDOM)


def default_family() -> str:
    """``QA_FAMILY`` where it is set (a Space's setting), else the embedded one."""
    return family(os.environ.get("QA_FAMILY") or "minilm").name
