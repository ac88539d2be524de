"""Dynamic batching: who asks together is read together, and everyone gets the own result."""

from __future__ import annotations

import threading
import time
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING

import pytest

from qa_backends.serving.batching import Batcher, BatchSize

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PATIENCE_S = 20.0


class Reads:
    """Doubles numbers, once it is let; ``batches`` are what it was given."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.begun = threading.Event()
        self.let = threading.Event()
        self.let.set()

    def __call__(self, items: Sequence[int]) -> list[int | Exception]:
        self.batches.append(list(items))
        self.begun.set()
        assert self.let.wait(PATIENCE_S)
        if 13 in items:
            raise RuntimeError("thirteen is not read")
        return [ValueError(f"{each} is odd") if each % 2 else 2 * each for each in items]

    def hold(self) -> None:
        self.begun.clear()
        self.let.clear()


@pytest.fixture
def reads() -> Iterator[Reads]:
    found = Reads()
    yield found
    found.let.set()


def batcher(reads: Reads, *, items: int = 32, tokens: int = 1_000, wait_s: float = 0.0) -> Batcher[int, int]:
    return Batcher(reads, BatchSize(items, tokens, wait_s), "numbers")


def busy(reads: Reads, asked: Batcher[int, int]) -> None:
    """Until ``reads`` is let, one batch is being read."""
    reads.hold()
    asked.ask([(0, 1)])
    assert reads.begun.wait(PATIENCE_S)
    reads.batches.clear()


def test_who_asks_while_a_batch_is_read_shares_the_next_one(reads: Reads) -> None:
    asked = batcher(reads)
    busy(reads, asked)
    futures = [asked.ask([(number, 1)])[0] for number in (2, 4, 6)]
    assert asked.waiting() == 3
    reads.let.set()
    assert [each.result(PATIENCE_S) for each in futures] == [4, 8, 12]
    assert reads.batches == [[2, 4, 6]]


def test_a_lone_question_waits_for_nobody(reads: Reads) -> None:
    began = time.monotonic()
    assert batcher(reads).ask([(2, 1)])[0].result(PATIENCE_S) == 4
    assert time.monotonic() - began < PATIENCE_S / 2


def test_batches_hold_so_many_items_and_tokens_and_one_that_has_more_is_read_alone(reads: Reads) -> None:
    asked = batcher(reads, items=3, tokens=10)
    busy(reads, asked)
    futures = asked.ask([(2, 4), (4, 4), (6, 4), (8, 50), (10, 1), (12, 1), (14, 1), (16, 1)])
    reads.let.set()
    assert [each.result(PATIENCE_S) for each in futures] == [4, 8, 12, 16, 20, 24, 28, 32]
    assert reads.batches == [[2, 4], [6], [8], [10, 12, 14], [16]]


def test_the_first_waits_for_others_as_long_as_it_is_told_to(reads: Reads) -> None:
    asked = batcher(reads, items=2, wait_s=PATIENCE_S)
    first = asked.ask([(2, 1)])[0]
    time.sleep(0.05)
    assert reads.batches == []
    second = asked.ask([(4, 1)])[0]
    assert (first.result(PATIENCE_S / 2), second.result(PATIENCE_S / 2)) == (4, 8), "a full batch waits no longer"
    assert reads.batches == [[2, 4]]


def test_a_batch_that_holds_as_many_tokens_as_it_may_waits_no_longer(reads: Reads) -> None:
    asked = batcher(reads, tokens=4, wait_s=PATIENCE_S)
    futures = asked.ask([(2, 2), (4, 2)])
    assert [each.result(PATIENCE_S / 2) for each in futures] == [4, 8]
    assert reads.batches == [[2, 4]]


def test_what_is_given_up_before_its_batch_is_not_read(reads: Reads) -> None:
    asked = batcher(reads)
    busy(reads, asked)
    kept, given_up = asked.ask([(2, 1), (4, 1)])
    assert given_up.cancel()
    reads.let.set()
    assert kept.result(PATIENCE_S) == 4
    assert reads.batches == [[2]]
    with pytest.raises(CancelledError):
        given_up.result(0)


def test_what_is_given_up_does_not_pile_up_behind_a_long_batch(reads: Reads) -> None:
    asked = batcher(reads)
    busy(reads, asked)
    (kept,) = asked.ask([(2, 1)])
    for number in range(100):
        assert asked.ask([(number, 1)])[0].cancel()
    assert asked.waiting() <= 2
    reads.let.set()
    assert kept.result(PATIENCE_S) == 4
    assert reads.batches == [[2]]


def test_what_is_given_up_while_it_waits_for_others_does_not_end_the_reading_of_what_comes_later(reads: Reads) -> None:
    asked = batcher(reads, items=2, wait_s=PATIENCE_S)
    (given_up,) = asked.ask([(2, 1)])
    time.sleep(0.05)
    assert given_up.cancel()
    assert asked.ask([]) == [] and asked.waiting() == 0
    time.sleep(0.05)
    later = asked.ask([(4, 1), (6, 1)])
    assert [each.result(PATIENCE_S / 2) for each in later] == [8, 12]


def test_one_that_fails_fails_alone_and_a_batch_that_fails_tells_all_of_its_own(reads: Reads) -> None:
    asked = batcher(reads)
    busy(reads, asked)
    good, bad = asked.ask([(2, 1), (3, 1)])
    reads.let.set()
    assert good.result(PATIENCE_S) == 4
    with pytest.raises(ValueError, match="3 is odd"):
        bad.result(PATIENCE_S)
    with pytest.raises(RuntimeError, match="thirteen"):
        asked.ask([(13, 1)])[0].result(PATIENCE_S)
    assert asked.ask([(2, 1)])[0].result(PATIENCE_S) == 4, "the next batch is read as ever"


def test_closing_answers_what_was_asked_and_takes_nothing_more(reads: Reads) -> None:
    asked = batcher(reads, items=1)
    busy(reads, asked)
    futures = asked.ask([(2, 1), (4, 1)])
    closing = threading.Thread(target=asked.close)
    closing.start()
    reads.let.set()
    closing.join(PATIENCE_S)
    assert [each.result(0) for each in futures] == [4, 8]
    with pytest.raises(RuntimeError, match="closed"):
        asked.ask([(2, 1)])
