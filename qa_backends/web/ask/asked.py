"""What the form holds to begin with, and the key to what was asked: by it the page tells whether a result is still of
what the form holds."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from qa_backends import catalog
from qa_backends.asking.recorded import examples
from qa_backends.limits import devices
from qa_backends.web.shared.choices import preselected

if TYPE_CHECKING:
    from collections.abc import Iterable

    from qa_backends.asking.comparison import Comparison


def first_asked() -> tuple[str, str, str, list[str], str]:
    """What the form holds to begin with: question, text, family, backends ticked, device."""
    first, family, device = examples()[0], catalog.default_family(), devices()[0]
    return first["question"], first["context"], family, preselected(family, device), device


def key(question: str, context: str, family: str, backends: Iterable[str], device: str) -> str:
    """A short sum of all that a question is made of, in whatever order the backends are; ``scripts.LISTEN`` makes the
    same of the form."""
    asked = "|".join((family, device, ",".join(sorted(backends)), question, context))
    return f"{zlib.crc32(asked.encode('utf-8', 'replace')):x}"


def key_of(view: Comparison) -> str:
    """Of what was asked there; what was recorded stands for what the form holds to begin with, on whatever device and
    of however many of its backends it was recorded."""
    if view.recorded:
        return key(*first_asked())
    return key(view.question, view.context, view.family, (card.backend for card in view.cards), view.device)
