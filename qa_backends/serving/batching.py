"""Dynamic batching: concurrent questions to one backend share forward calls.

Who asks while a batch is being read waits for the next one, so batches grow with the load by themselves, and a lone
question waits for nobody. The libraries that were looked at do not promise enough: ``async-batcher`` 0.2.2 computes
what was given up, and then fails its whole batch in delivering it; ``batched`` 0.1.5 cannot take back what waits.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MOST_WAIT_MS = 1000
"""For so long the first of a batch may wait for others, at most."""
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class BatchSize:
    """How many items a batch holds, and how long the first of them waits for others.

    ``tokens`` are counted with every item's own windows; an item that has more makes a batch by itself.
    """

    items: int = 32
    tokens: int = 32 * 384
    wait_s: float = 0.0


@dataclass(slots=True)
class _Waiting(Generic[Item, Result]):
    item: Item
    tokens: int
    future: Future[Result] = field(default_factory=Future)
    since: float = field(default_factory=time.monotonic)


class Batcher(Generic[Item, Result]):
    """Calls ``read`` with what waits, on a thread of its own, and hands everyone the own result or the own error.

    ``read`` returns, in order, a result or an exception for each item; what it raises itself, all of its items get.
    """

    def __init__(
        self, read: Callable[[Sequence[Item]], Sequence[Result | Exception]], size: BatchSize, name: str
    ) -> None:
        self._read = read
        self._size = size
        self._waiting: deque[_Waiting[Item, Result]] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name=f"batches of {name}", daemon=True)
        self._thread.start()

    def ask(self, items: Sequence[tuple[Item, int]]) -> list[Future[Result]]:
        """Futures of the items, each given with its tokens. One that is cancelled before its batch begins is not read.

        Raises:
            RuntimeError: the batcher is closed.
        """
        waiting = [_Waiting[Item, Result](item, tokens) for item, tokens in items]
        with self._changed:
            if self._closed:
                raise RuntimeError("the batcher is closed")
            # What was given up takes memory that nobody counts any more: while a long batch is read, it goes here.
            kept = [each for each in self._waiting if not each.future.cancelled()]
            self._waiting = deque([*kept, *waiting])
            self._changed.notify()
        return [each.future for each in waiting]

    def waiting(self) -> int:
        """Items that wait for a batch."""
        with self._changed:
            return len(self._waiting)

    def close(self) -> None:
        """Answers what was asked already, and takes nothing more."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _work(self) -> None:
        while batch := self._next():
            results: Sequence[Result | Exception]
            try:
                results = self._read([each.item for each in batch])
            except Exception as error:  # whoever waits must hear of it, whatever it is
                results = [error] * len(batch)
            for each, result in zip(batch, results, strict=True):
                if isinstance(result, Exception):
                    each.future.set_exception(result)
                else:
                    each.future.set_result(result)

    def _next(self) -> list[_Waiting[Item, Result]]:
        """The oldest that wait, once there are any; none once the batcher is closed and all is answered."""
        batch: list[_Waiting[Item, Result]] = []
        with self._changed:
            while not batch:
                while not self._waiting and not self._closed:
                    self._changed.wait()
                if not self._waiting:
                    return []
                self._wait_for_others()
                if self._waiting:  # all may have been given up meanwhile
                    batch = [each for each in self._taken() if each.future.set_running_or_notify_cancel()]
        return batch

    def _wait_for_others(self) -> None:
        while self._waiting and not self._closed and len(self._waiting) < self._size.items:
            left = self._waiting[0].since + self._size.wait_s - time.monotonic()
            if left <= 0 or sum(each.tokens for each in self._waiting) >= self._size.tokens:
                return
            self._changed.wait(left)

    def _taken(self) -> list[_Waiting[Item, Result]]:
        taken = [self._waiting.popleft()]
        tokens = taken[0].tokens
        while self._waiting and len(taken) < self._size.items:
            tokens += self._waiting[0].tokens
            if tokens > self._size.tokens:
                break
            taken.append(self._waiting.popleft())
        return taken
