"""What visitors have asked so far, and the last results that outlive a reload of the page."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qa_backends.web.ask import charts

if TYPE_CHECKING:
    from qa_backends.asking.comparison import Comparison

KEPT = 50
"""Questions of a visit that its chart shows; older ones are forgotten, so that a visit stays small."""
KEY_BYTES = 24
VISITS_KEPT = 64
"""Visits that can be shown again after a reload; of the others the link asks anew."""


@dataclass(frozen=True, slots=True)
class Visit:
    """What one visitor has asked so far: the last comparison whole, of the others what the chart shows.

    ``key`` is empty until something was asked: visits begin as copies of one and the same. Then it is too long to be
    guessed, since whoever has it sees what was asked.
    """

    last: Comparison | None = None
    history: tuple[charts.Asked, ...] = ()
    races: int = 0
    key: str = ""

    def with_question(self, view: Comparison) -> Visit:
        history = (*self.history, charts.Asked.of(view))[-KEPT:]
        key = self.key or secrets.token_urlsafe(KEY_BYTES)
        return Visit(view, history, self.races + 1, key)


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

    def of(self, key: str) -> Visit | None:
        """The visit of that key, if it is still kept."""
        with self._lock:
            return self._kept.get(key)
