"""What is loaded on each device, within a budget: the least recently used goes first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


class Closable(Protocol):
    def close(self) -> None:
        """Gives the memory back."""


K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Closable)


@dataclass(slots=True)
class _Resident(Generic[V]):
    value: V
    bytes: int


class Memory(Generic[K, V]):
    """One device's residents by key. Whoever is asked for becomes the most recently used."""

    def __init__(self, budget_bytes: int) -> None:
        self.budget_bytes = budget_bytes
        self._residents: OrderedDict[K, _Resident[V]] = OrderedDict()
        self._lock = threading.RLock()

    def keys(self) -> list[K]:
        """Least recently used first."""
        with self._lock:
            return list(self._residents)

    def get(self, key: K, size: Callable[[], int], load: Callable[[], V], evicting: Callable[[K], None]) -> V:
        """The resident, loaded if it is not there; ``evicting`` is told who goes to make room for it."""
        with self._lock:
            if (found := self.find(key)) is not None:
                return found
            needed = size()
            self._make_room(needed, evicting)
            value = load()
            self._residents[key] = _Resident(value, needed)
            return value

    def find(self, key: K) -> V | None:
        """The resident, where it is there."""
        with self._lock:
            if key not in self._residents:
                return None
            self._residents.move_to_end(key)
            return self._residents[key].value

    def _make_room(self, size: int, evicting: Callable[[K], None]) -> None:
        while self._residents and sum(each.bytes for each in self._residents.values()) + size > self.budget_bytes:
            key = next(iter(self._residents))
            evicting(key)
            self._residents.pop(key).value.close()

    def drop(self, key: K) -> None:
        """Unloads one, if it is loaded; who asks for it next loads it afresh."""
        with self._lock:
            if found := self._residents.pop(key, None):
                found.value.close()
