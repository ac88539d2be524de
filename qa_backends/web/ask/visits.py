"""What visitors have asked so far, and the last results that outlive a reload of the page."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from qa_backends.web.ask import charts

if TYPE_CHECKING:
    from qa_backends.asking.comparison import Comparison

KEPT = 50
"""Questions of a visit that its chart shows; older ones are forgotten, so that a visit stays small."""
VISITS_KEPT = 64
"""Visits that can be shown again after a reload; of the others the link asks anew."""


def _key() -> str:
    """Too long to be guessed: whoever has it sees the text that was asked."""
    return secrets.token_urlsafe(24)


@dataclass(frozen=True, slots=True)
class Visit:
    """What one visitor has asked so far: the last comparison whole, of the others what the chart shows."""

    last: Comparison | None = None
    history: tuple[charts.Asked, ...] = ()
    races: int = 0
    key: str = field(default_factory=_key)

    def with_question(self, view: Comparison) -> Visit:
        history = (*self.history, charts.Asked.of(view))[-KEPT:]
        return replace(self, last=view, history=history, races=self.races + 1)


class Visits:
    """The visits that came last, each under the key that only its browser was told."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Visit] = OrderedDict()

    def keep(self, visit: Visit) -> None:
        """In place of what was kept of the visit before; the oldest visit makes room."""
        with self._lock:
            self._kept[visit.key] = visit
            self._kept.move_to_end(visit.key)
            while len(self._kept) > VISITS_KEPT:
                self._kept.popitem(last=False)

    def of(self, key: str, question: str, context: str) -> Visit | None:
        """The visit, if its last question was this one about this text."""
        with self._lock:
            visit = self._kept.get(key)
        if visit is None or visit.last is None or (visit.last.question, visit.last.context) != (question, context):
            return None
        return visit
