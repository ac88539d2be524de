"""Texts longer than the model: overlapping windows, so that every token lies in at least one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from qa_backends.contract import IntArray, ReaderSettings, Windows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from qa_backends.reader.tokens import SpecialIds, Tokens

FRAME_TOKENS = 3
"""[CLS], and a [SEP] behind the question and behind the piece of context."""


def pieces(n_context: int, capacity: int, stride: int) -> Iterator[range]:
    """Half-open token ranges of at most ``capacity`` that cover ``n_context`` tokens, neighbours sharing ``stride``.

    Starts are ``capacity - stride`` apart, as in the reference implementation of BERT for SQuAD (Devlin et al. 2019),
    so each window's contents can be compared with other readers'.
    """
    step = capacity - stride
    if step <= 0:
        raise ValueError(f"stride {stride} leaves no room to advance in windows of {capacity} context tokens")
    start = 0
    while True:
        end = min(start + capacity, n_context)
        yield range(start, end)
        if end == n_context:
            return
        start += step


def cut(
    pairs: Sequence[tuple[Tokens, Tokens]], special: SpecialIds, settings: ReaderSettings, *, segments: bool = True
) -> Windows:
    """All windows of all (question, context) pairs, in order, padded to the longest of them.

    Questions must already be cut to ``settings.max_question_tokens``.
    """
    plan = [
        (query, question, piece)
        for query, (question, context) in enumerate(pairs)
        for piece in pieces(len(context), settings.max_seq_len - len(question) - FRAME_TOKENS, settings.stride)
    ]
    seq_len = max(len(question) + len(piece) + FRAME_TOKENS for _, question, piece in plan)
    shape = (len(plan), seq_len)
    windows = Windows(
        input_ids=np.full(shape, special.pad, dtype=np.int64),
        attention_mask=np.zeros(shape, dtype=np.int64),
        token_type_ids=np.zeros(shape, dtype=np.int64) if segments else None,
        offsets=np.zeros((*shape, 2), dtype=np.int64),
        answerable=np.zeros(shape, dtype=bool),
        query_index=np.asarray([query for query, _, _ in plan], dtype=np.int64),
    )
    for row, (query, question, piece) in enumerate(plan):
        context = pairs[query][1]
        first = len(question) + 2
        last = first + len(piece)
        ids = windows.input_ids[row]
        ids[0] = special.cls
        ids[1 : first - 1] = question.ids
        ids[first - 1] = special.sep
        ids[first:last] = context.ids[piece.start : piece.stop]
        ids[last] = special.sep
        windows.attention_mask[row, : last + 1] = 1
        if windows.token_type_ids is not None:
            windows.token_type_ids[row, first : last + 1] = 1
        windows.offsets[row, first:last] = context.offsets[piece.start : piece.stop]
        windows.answerable[row, first:last] = True
    return windows


def by_tokens(windows: Windows, *, max_tokens: int, max_padding: float = 1.0) -> Iterator[IntArray]:
    """Rows to run together, longest first: at most ``max_tokens`` a batch, ``max_padding`` of them padding.

    A row that is too long for any batch makes one by itself. Sorting by length keeps padding small; the longest batch
    comes first so that memory, if it runs out, does so early. What fits into one batch stays in its order.
    """
    lengths = windows.lengths
    computed = windows.n_windows * windows.seq_len
    if computed <= max_tokens and computed - lengths.sum() <= max_padding * computed:
        yield np.arange(windows.n_windows)
        return
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        longest = int(lengths[order[start]])
        rows = order[start : start + max(1, max_tokens // longest)]
        computed_by = longest * np.arange(1, len(rows) + 1)
        little_padding = computed_by - np.cumsum(lengths[rows]) <= max_padding * computed_by
        count = int(little_padding.sum())  # longest first, each row adds a greater share of padding than the last
        yield rows[:count]
        start += count


def by_count(windows: Windows, *, size: int, sort: bool) -> Iterator[IntArray]:
    """Rows in batches of ``size``: in the order they came, or sorted by length so that like lengths share a batch."""
    order = np.argsort(-windows.lengths, kind="stable") if sort else np.arange(windows.n_windows)
    for start in range(0, len(order), size):
        yield order[start : start + size]


def padding_share(windows: Windows, groups: Iterable[IntArray]) -> float:
    """Share of the tokens that a model computes in vain: padding, over all tokens of all batches."""
    lengths = windows.lengths
    computed = sum(len(rows) * int(lengths[rows].max()) for rows in groups)
    return 1.0 - float(lengths.sum()) / computed
