"""Texts that were asked about last, as tokens: another question about one of them need not cut it into tokens again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from qa_backends.reader.tokens import Tokens


LEAST_CHARS = 100
"""What a text counts as at least: however short, it takes some 600 bytes."""


class KeptTexts:
    """Encodes texts, and keeps the tokens of those that were used last: as many as hold ``most_chars`` together.

    Tokens take some 6 bytes a character; a short text counts as one of ``LEAST_CHARS``. Any thread may ask.
    """

    def __init__(self, encode: Callable[[str], Tokens], most_chars: int) -> None:
        self._encode = encode
        self._most_chars = most_chars
        self._kept: OrderedDict[str, Tokens] = OrderedDict()
        self._chars = 0
        self._lock = threading.Lock()

    def __call__(self, text: str) -> Tokens:
        with self._lock:
            if (found := self._kept.get(text)) is not None:
                self._kept.move_to_end(text)
                return found
        made = self._encode(text)  # outside the lock: others need not wait for a long text
        with self._lock:
            if text not in self._kept:
                self._kept[text] = made
                self._chars += _counted(text)
            while self._chars > self._most_chars:
                oldest, _ = self._kept.popitem(last=False)
                self._chars -= _counted(oldest)
        return made


def _counted(text: str) -> int:
    return max(len(text), LEAST_CHARS)
