"""What a model's card on the Hub says of it: languages, training sets, and the F1 that its makers report."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from qa_backends.checkpoints.download import CARD

if TYPE_CHECKING:
    from pathlib import Path

    from huggingface_hub import ModelCardData

TASK, METRIC = "question-answering", "f1"
SQUAD, SQUAD_V2 = "squad", "squad_v2"
"""What the Hub calls both versions of SQuAD."""
LANGUAGE = re.compile("[a-z]{2,3}")
MOST_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Card:
    """``f1`` is in percent, on the development set of ``f1_on`` ("squad" or "squad_v2"); ``None`` where no card tells.

    ``language`` is empty where the card names none or several. ``taught`` are the data sets it names.
    """

    language: str = ""
    f1: float | None = None
    f1_on: str = ""
    taught: tuple[str, ...] = ()

    @property
    def always_answers(self) -> bool:
        """Whether it was taught questions that all have an answer, by its card."""
        return SQUAD in self.taught and SQUAD_V2 not in self.taught


def read_card(checkpoint: Path) -> Card:
    """What the card in the checkpoint's folder says; nothing where there is none, or none that can be read."""
    from huggingface_hub import ModelCardData
    from huggingface_hub.repocard import metadata_load
    from yaml import YAMLError

    file = checkpoint / CARD
    if not file.is_file() or file.stat().st_size > MOST_BYTES:
        return Card()
    try:
        told = {} if _repeats(file) else metadata_load(file) or {}
        return _said(ModelCardData(**told, ignore_metadata_errors=True))
    except (YAMLError, ValueError, TypeError, KeyError, AttributeError, OSError, RecursionError):
        return Card()  # somebody's text: a card that cannot be read is no reason to refuse the model


def _said(data: ModelCardData) -> Card:
    languages = [each for each in _listed(data.language) if LANGUAGE.fullmatch(each)]
    taught = tuple(map(_bare, _listed(data.datasets)))
    found = [each for each in data.eval_results or () if each.task_type == TASK and each.metric_type == METRIC]
    best = next((each for name in (SQUAD_V2, SQUAD) for each in found if _bare(each.dataset_type) == name), None)
    language = languages[0] if len(languages) == 1 else ""
    if best is None or not isinstance(best.metric_value, int | float) or not 1 < best.metric_value <= 100:
        return Card(language, taught=taught)
    return Card(language, float(best.metric_value), _bare(best.dataset_type), taught)


def _repeats(card: Path) -> bool:
    """Whether the card's YAML refers to parts of itself: a few lines that do so can stand for billions."""
    import yaml
    from huggingface_hub.repocard import REGEX_YAML_BLOCK

    found = REGEX_YAML_BLOCK.search(card.read_text(encoding="utf-8"))
    return found is not None and any(isinstance(each, yaml.AliasEvent) for each in yaml.parse(found[2]))


def _bare(data: object) -> str:
    """A data set without its owner: the Hub calls "squad_v2" also "rajpurkar/squad_v2"."""
    return str(data).rpartition("/")[2]


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else [each for each in value or () if isinstance(each, str)]
