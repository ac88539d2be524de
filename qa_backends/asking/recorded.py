"""The comparison that was recorded for first sight: what the page shows before anybody asks."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from qa_backends import catalog
from qa_backends.asking.ask import ask
from qa_backends.asking.comparison import Comparison, comparison_of, known_quality
from qa_backends.contract import Query
from qa_backends.errors import BackendFailed, UnknownBackend
from qa_backends.measure.results.files import read_results
from qa_backends.measure.results.records import ResultsFile
from qa_backends.measure.results.shipped import checkpoint_hash, of_like_processor, ticked_anywhere
from qa_backends.measure.timing.machine import Machine, this_machine
from qa_backends.paths import AMD, EXAMPLES, RECORDED, measured_on

if TYPE_CHECKING:
    from pathlib import Path

    from qa_backends.catalog import Family
    from qa_backends.runtime import Runtime

MAIN = ("baseline", "pruned", "pruned-ort-fp16")
"""The three backends the project exists for."""


@dataclass(frozen=True, slots=True)
class Recorded(ResultsFile):
    """``checkpoints`` are the hashes of the weights that each backend ran on."""

    kind: ClassVar = "comparison"
    machine: Machine
    checkpoints: dict[str, str | None]
    view: Comparison


@cache
def examples() -> list[dict[str, str]]:
    """The texts and questions that the page offers to begin with."""
    return list(json.loads(EXAMPLES.read_text(encoding="utf-8")))


def record(runtime: Runtime, family: Family, device: str) -> Recorded:
    """Asks the first example of the three main backends, and of the fastest besides, of any kind of processor: where
    there is no recording of its own kind, this one is shown.

    Raises:
        BackendFailed: one of them did not answer, so that there is nothing to show beside the others.
    """
    backends = [catalog.backend(name) for name in dict.fromkeys([*MAIN, *ticked_anywhere(family, device)])]
    example = examples()[0]
    found = comparison_of(ask(runtime, family, backends, Query(example["question"], example["context"]), device))
    if failed := next((card for card in found.cards if card.error), None):
        raise BackendFailed(f"Nothing was recorded: {failed.error}")
    machine = this_machine()
    view = replace(found, recorded=machine.sentence(found.device))
    return Recorded(machine, {each.name: checkpoint_hash(family, each) for each in backends}, view)


@cache
def recorded_comparisons() -> tuple[Comparison, ...]:
    """The comparisons that ship, with the quality that ships: that of a processor like this one first, then the usual
    one and AMD's, each unless it is of other weights than those that ship."""
    files = dict.fromkeys((of_like_processor(RECORDED), RECORDED, measured_on(AMD, RECORDED)))
    return tuple(filter(None, map(_on_current_weights, files)))


def _on_current_weights(file: Path) -> Comparison | None:
    """The comparison of the file, unless its weights are not those that ship."""
    if not file.is_file():
        return None
    content = read_results(file, Recorded)
    try:
        family = catalog.family(content.view.family)
        shipped = {name: checkpoint_hash(family, catalog.backend(name)) for name in content.checkpoints}
    except UnknownBackend:
        return None
    if shipped != content.checkpoints or None in shipped.values():
        return None
    cards = [
        replace(card, quality=known_quality(family, catalog.backend(card.backend), content.view.device))
        for card in content.view.cards
    ]
    return replace(content.view, cards=tuple(cards))
