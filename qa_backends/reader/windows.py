"""Texts longer than the model: overlapping windows, so that every token lies in at least one."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from qa_backends.contract import IntArray, ReaderSettings, Windows
from qa_backends.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from qa_backends.reader.frame import Frame
    from qa_backends.reader.tokens import Tokens


def pieces(n_context: int, capacity: int, stride: int) -> Iterator[range]:
    """Half-open token ranges of at most ``capacity`` that cover ``n_context`` tokens, neighbours sharing ``stride``.

    Starts are ``capacity - stride`` apart, as in the reference implementation of BERT for SQuAD (Devlin et al. 2019),
    so each window's contents can be compared with other readers'.

    Raises:
        InputError: the stride is as long as what a window holds.
    """
    step = capacity - stride
    if step <= 0:
        raise InputError(
            f"A stride of {stride} leaves no room to advance in windows that hold {capacity} tokens of the text. "
            "Lower it, or raise the window's length."
        )
    start = 0
    while True:
        end = min(start + capacity, n_context)
        yield range(start, end)
        if end == n_context:
            return
        start += step


def cut(pairs: Sequence[tuple[Tokens, Tokens]], frame: Frame, settings: ReaderSettings) -> Windows:
    """All windows of all (question, context) pairs, in order, padded to the longest of them.

    Questions must already be cut to ``settings.max_question_tokens``.
    """
    plan = [
        (query, question, piece)
        for query, (question, context) in enumerate(pairs)
        for piece in pieces(len(context), settings.max_seq_len - len(question) - frame.tokens, settings.stride)
    ]
    seq_len = max(len(question) + len(piece) + frame.tokens for _, question, piece in plan)
    shape = (len(plan), seq_len)
    windows = Windows(
        input_ids=np.full(shape, frame.pad, dtype=np.int64),
        attention_mask=np.zeros(shape, dtype=np.int64),
        token_type_ids=np.zeros(shape, dtype=np.int64) if frame.segments else None,
        offsets=np.zeros((*shape, 2), dtype=np.int64),
        answerable=np.zeros(shape, dtype=bool),
        query_index=np.asarray([query for query, _, _ in plan], dtype=np.int64),
    )
    for row, (query, question, piece) in enumerate(plan):
        context = pairs[query][1]
        first = frame.text_start(len(question))
        last = first + len(piece)
        end = last + len(frame.behind)
        ids = windows.input_ids[row]
        ids[: len(frame.before)] = frame.before
        ids[len(frame.before) : first - len(frame.between)] = question.ids
        ids[first - len(frame.between) : first] = frame.between
        ids[first:last] = context.ids[piece.start : piece.stop]
        ids[last:end] = frame.behind
        windows.attention_mask[row, :end] = 1
        if windows.token_type_ids is not None:
            windows.token_type_ids[row, first:end] = 1
        windows.offsets[row, first:last] = context.offsets[piece.start : piece.stop]
        windows.answerable[row, first:last] = True
    return windows


def joined(parts: Sequence[Windows], pad: int) -> Windows:
    """All windows in order, padded with the token ``pad`` to the longest; queries are counted on from part to part."""
    if len(parts) == 1:
        return parts[0]
    seq_len = max(each.seq_len for each in parts)

    def stacked(name: str, fill: int) -> NDArray[Any]:
        arrays = [getattr(each, name) for each in parts]
        shape = (sum(len(each) for each in arrays), seq_len, *arrays[0].shape[2:])
        whole = np.full(shape, fill, dtype=arrays[0].dtype)
        for end, each in zip(np.cumsum([len(each) for each in arrays]), arrays, strict=True):
            whole[end - len(each) : end, : each.shape[1]] = each
        return whole

    firsts = np.cumsum([0, *(int(each.query_index[-1]) + 1 for each in parts)])
    return Windows(
        input_ids=stacked("input_ids", pad),
        attention_mask=stacked("attention_mask", 0),
        token_type_ids=None if parts[0].token_type_ids is None else stacked("token_type_ids", 0),
        offsets=stacked("offsets", 0),
        answerable=stacked("answerable", 0),
        query_index=np.concatenate([each.query_index + first for each, first in zip(parts, firsts, strict=False)]),
    )


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


def by_query(windows: Windows, split: Callable[[Windows], Iterable[IntArray]]) -> Iterator[IntArray]:
    """Rows as ``split`` puts them together, those of each query apart from those of others."""
    for query in np.unique(windows.query_index):
        rows = np.flatnonzero(windows.query_index == query)
        for part in split(windows.select(rows)):
            yield rows[part]


def apart(split: Callable[[Windows], Iterable[IntArray]], *, each: bool) -> Callable[[Windows], Iterable[IntArray]]:
    """The split itself, or, for what answers otherwise in company, ``each`` query by itself."""
    return partial(by_query, split=split) if each else split


def padding_share(windows: Windows, computed: Iterable[tuple[int, int]]) -> float:
    """Share of the tokens that a model computed in vain; ``computed`` are the batches' ``(n_windows, seq_len)``."""
    return 1.0 - float(windows.lengths.sum()) / sum(n_windows * seq_len for n_windows, seq_len in computed)
