"""A text longer than the model loses nothing: every token is read, in windows framed as the model was trained."""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qa_backends.contract import IntArray, ReaderSettings, Windows
from qa_backends.reader.frame import Frame
from qa_backends.reader.tokens import Tokens
from qa_backends.reader.windows import by_count, by_tokens, cut, padding_share, pieces

BERT = Frame(before=(101,), between=(102,), behind=(102,), pad=0, segments=True)
ROBERTA = Frame(before=(0,), between=(2, 2), behind=(2,), pad=1, segments=False)


def tokens(n: int, first_id: int) -> Tokens:
    """``n`` tokens, each with its own id and its own two characters, one apart from the next."""
    at = np.arange(n, dtype=np.int64)
    return Tokens(first_id + at, np.stack([3 * at, 3 * at + 2], axis=-1))


@dataclass(frozen=True)
class Cut:
    """What was cut, and what came out."""

    pairs: list[tuple[Tokens, Tokens]]
    settings: ReaderSettings
    frame: Frame
    windows: Windows


def shapes(windows: Windows, batches: list[IntArray]) -> list[tuple[int, int]]:
    """Of each batch, as an engine computes it that does not pad for itself."""
    return [(len(rows), windows.select(rows).seq_len) for rows in batches]


@st.composite
def cuts(draw: st.DrawFn) -> Cut:
    max_seq_len = draw(st.integers(12, 40))
    sizes = draw(st.lists(st.tuples(st.integers(1, 7), st.integers(0, 120)), min_size=1, max_size=5))
    frame = draw(st.sampled_from([BERT, ROBERTA]))
    smallest_capacity = max_seq_len - max(n_question for n_question, _ in sizes) - frame.tokens
    stride = draw(st.integers(0, smallest_capacity - 1))
    pairs = [(tokens(n_question, 1_000), tokens(n, 10_000 * (k + 1))) for k, (n_question, n) in enumerate(sizes)]
    options = ReaderSettings(max_seq_len=max_seq_len, stride=stride)
    return Cut(pairs, options, frame, cut(pairs, frame, options))


@given(n_context=st.integers(0, 2_000), capacity=st.integers(1, 400), data=st.data())
def test_pieces_cover_the_text_and_share_exactly_the_stride(n_context: int, capacity: int, data: st.DataObject) -> None:
    stride = data.draw(st.integers(max(0, capacity - 50), capacity - 1))
    found = list(pieces(n_context, capacity, stride))
    assert found[0].start == 0
    assert found[-1].stop == n_context
    assert all(len(piece) <= capacity for piece in found)
    assert all(len(piece) == capacity for piece in found[:-1])
    for one, following in pairwise(found):
        assert len(set(one) & set(following)) == stride
        assert following.stop > one.stop, "a window that holds nothing new is wasted work"


@pytest.mark.parametrize(("capacity", "stride"), [(10, 10), (10, 11), (0, 0), (-3, 0)])
def test_a_stride_that_leaves_no_room_is_refused_instead_of_looping_forever(capacity: int, stride: int) -> None:
    with pytest.raises(ValueError, match=f"stride of {stride} .* {capacity} tokens"):
        list(pieces(50, capacity, stride))


def test_a_question_so_long_that_the_windows_cannot_advance_is_refused() -> None:
    options = ReaderSettings(max_seq_len=32, stride=16)
    assert cut([(tokens(12, 1_000), tokens(90, 10_000))], BERT, options).n_windows > 1
    with pytest.raises(ValueError, match="stride of 16"):
        cut([(tokens(13, 1_000), tokens(90, 10_000))], BERT, options)


@given(cuts())
def test_every_token_of_every_text_can_be_answered_with(made: Cut) -> None:
    windows = made.windows
    for query, (_, context) in enumerate(made.pairs):
        rows = np.flatnonzero(windows.query_index == query)
        seen = {
            (int(token), int(start), int(end))
            for row in rows
            for token, (start, end), inside in zip(
                windows.input_ids[row], windows.offsets[row], windows.answerable[row], strict=True
            )
            if inside
        }
        assert seen == {
            (int(token), int(start), int(end)) for token, (start, end) in zip(context.ids, context.offsets, strict=True)
        }


@given(cuts())
def test_neighbouring_windows_of_one_text_share_exactly_the_stride(made: Cut) -> None:
    windows = made.windows
    inside = [set(windows.input_ids[row][windows.answerable[row]].tolist()) for row in range(windows.n_windows)]
    for row in range(1, windows.n_windows):
        shared = len(inside[row - 1] & inside[row])
        assert shared == (made.settings.stride if windows.query_index[row - 1] == windows.query_index[row] else 0)


@given(cuts())
def test_no_window_is_longer_than_the_model_and_none_is_padded_without_need(made: Cut) -> None:
    windows = made.windows
    assert windows.lengths.max() <= made.settings.max_seq_len
    assert windows.seq_len == windows.lengths.max()
    assert windows.input_ids.shape == windows.attention_mask.shape == windows.answerable.shape
    assert windows.offsets.shape == (windows.n_windows, windows.seq_len, 2)


@given(cuts())
def test_each_window_is_question_and_piece_within_the_models_frame_then_padding(made: Cut) -> None:
    windows, frame = made.windows, made.frame
    assert windows.query_index.tolist() == sorted(windows.query_index.tolist())
    assert (windows.token_type_ids is not None) == frame.segments
    for row in range(windows.n_windows):
        question, context = made.pairs[windows.query_index[row]]
        inside = windows.answerable[row]
        n_piece = int(inside.sum())
        n_padding = windows.seq_len - len(question) - n_piece - frame.tokens
        piece = windows.input_ids[row][inside]
        assert windows.input_ids[row].tolist() == [
            *frame.before, *question.ids, *frame.between, *piece, *frame.behind, *[frame.pad] * n_padding
        ]  # fmt: skip
        real = windows.seq_len - n_padding
        assert windows.attention_mask[row].tolist() == [1] * real + [0] * n_padding
        before = len(frame.before) + len(question) + len(frame.between)
        assert inside.tolist() == [False] * before + [True] * n_piece + [False] * (len(frame.behind) + n_padding)
        if windows.token_type_ids is not None:
            segments = [0] * before + [1] * (n_piece + len(frame.behind)) + [0] * n_padding
            assert windows.token_type_ids[row].tolist() == segments
        at = int(piece[0] - context.ids[0]) if n_piece else 0
        assert piece.tolist() == context.ids[at : at + n_piece].tolist()
        assert windows.offsets[row][inside].tolist() == context.offsets[at : at + n_piece].tolist()
        assert not windows.offsets[row][~inside].any(), "a question's characters are not the text's"


@given(made=cuts(), data=st.data())
def test_select_keeps_the_rows_asked_for_and_drops_only_padding(made: Cut, data: st.DataObject) -> None:
    windows = made.windows
    rows = np.asarray(data.draw(st.lists(st.integers(0, windows.n_windows - 1), min_size=1, max_size=8)))
    chosen = windows.select(rows)
    assert chosen.n_windows == len(rows)
    assert chosen.seq_len == windows.lengths[rows].max()
    assert chosen.lengths.tolist() == windows.lengths[rows].tolist()
    for field in fields(Windows):
        whole, part = getattr(windows, field.name), getattr(chosen, field.name)
        if whole is None:
            assert part is None
        elif whole.ndim == 1:
            assert part.tolist() == whole[rows].tolist()
        else:
            assert part.tolist() == whole[rows][:, : chosen.seq_len].tolist()


@given(made=cuts(), max_tokens=st.integers(1, 400))
def test_batches_hold_every_window_once_and_stay_within_their_tokens(made: Cut, max_tokens: int) -> None:
    windows = made.windows
    found = list(by_tokens(windows, max_tokens=max_tokens))
    assert sorted(np.concatenate(found).tolist()) == list(range(windows.n_windows))
    for rows in found:
        part = windows.select(rows)
        assert len(rows) == 1 or part.n_windows * part.seq_len <= max_tokens


@given(made=cuts(), max_tokens=st.integers(1, 400))
def test_the_longest_batch_comes_first_so_that_memory_runs_out_early_or_not_at_all(made: Cut, max_tokens: int) -> None:
    longest = [int(made.windows.lengths[rows].max()) for rows in by_tokens(made.windows, max_tokens=max_tokens)]
    assert longest == sorted(longest, reverse=True)


def test_batches_are_filled_as_far_as_they_may_be() -> None:
    windows = cut([(tokens(2, 1_000), tokens(15, 10_000))] * 7, BERT, ReaderSettings(max_seq_len=20, stride=0))
    assert [len(rows) for rows in by_tokens(windows, max_tokens=60)] == [3, 3, 1]
    assert [len(rows) for rows in by_tokens(windows, max_tokens=59)] == [2, 2, 2, 1]
    assert [len(rows) for rows in by_tokens(windows, max_tokens=19)] == [1] * 7


@given(made=cuts(), max_tokens=st.integers(1, 400), max_padding=st.floats(0, 1))
def test_batches_hold_no_more_padding_than_allowed_and_could_not_hold_the_next_window(
    made: Cut, max_tokens: int, max_padding: float
) -> None:
    windows = made.windows

    def padding(rows: IntArray) -> float:
        return padding_share(windows.select(rows), shapes(windows, [rows]))

    found = list(by_tokens(windows, max_tokens=max_tokens, max_padding=max_padding))
    assert sorted(np.concatenate(found).tolist()) == list(range(windows.n_windows))
    for rows, following in zip(found, [*found[1:], None], strict=True):
        assert padding(rows) <= max_padding + 1e-9
        if following is not None:
            more = np.append(rows, following[0])
            too_long = len(more) * windows.lengths[more].max() > max_tokens
            assert too_long or padding(more) > max_padding - 1e-9


def test_a_text_a_little_too_long_for_one_window_is_not_computed_as_two_whole_ones() -> None:
    pair = (tokens(2, 1_000), tokens(20, 10_000))
    windows = cut([pair], BERT, ReaderSettings(max_seq_len=20, stride=5))
    assert windows.lengths.tolist() == [20, 15]
    assert [rows.tolist() for rows in by_tokens(windows, max_tokens=100, max_padding=0.08)] == [[0], [1]]
    assert [rows.tolist() for rows in by_tokens(windows, max_tokens=100, max_padding=1.0)] == [[0, 1]]


def test_batches_of_a_count_come_as_they_are_or_sorted_and_sorting_saves_padding() -> None:
    sizes = (3, 15, 4, 14, 5, 13, 6)
    windows = cut(
        [(tokens(2, 1_000), tokens(size, 10_000)) for size in sizes], BERT, ReaderSettings(max_seq_len=20, stride=0)
    )
    arrival = list(by_count(windows, size=2, sort=False))
    by_length = list(by_count(windows, size=2, sort=True))
    assert [rows.tolist() for rows in arrival] == [[0, 1], [2, 3], [4, 5], [6]]
    assert [rows.tolist() for rows in by_length] == [[1, 3], [5, 6], [4, 2], [0]]
    # Each window has five more tokens than its context; arrival computes 2 * (20 + 19 + 18) + 11 tokens.
    real = sum(sizes) + 5 * len(sizes)
    assert padding_share(windows, shapes(windows, arrival)) == pytest.approx(1 - real / (2 * (20 + 19 + 18) + 11))
    assert padding_share(windows, shapes(windows, by_length)) == pytest.approx(1 - real / (2 * (20 + 18 + 10) + 8))
