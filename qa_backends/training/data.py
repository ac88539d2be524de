"""SQuAD questions as training batches: windows with the answer's tokens, grouped by length."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from qa_backends.contract import DEFAULT_SETTINGS, IntArray, ReaderSettings
from qa_backends.errors import InputError
from qa_backends.reader.tokens import Tokens
from qa_backends.reader.windows import cut, pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import torch

    from qa_backends.contract import Windows
    from qa_backends.reader.tokens import SubwordTokenizer
    from qa_backends.squad import Question

    EpochOf = Callable[[int], Sequence["Example"]]

SEQ_LEN_MULTIPLE = 16
"""Batches are padded to a multiple of this, the tile width of bfloat16 matrix units."""
POOL_BATCHES = 64
"""Sequences are sorted by length within a shuffled pool of about so many batches: little padding, random order."""


@dataclass(frozen=True, slots=True)
class Example:
    """One training window: a question, a piece of its context, and the answer's tokens counted from the window's start.

    ``start`` and ``end`` (inclusive) are 0, the token that stands for "no answer", where the piece holds none.
    ``length`` counts the window's tokens, its frame included; ``number`` is the window's among those it was made with.
    One that is not ``taught`` is learned by its labels alone, whoever else teaches.
    """

    question: Tokens
    piece: Tokens
    start: int
    end: int
    length: int
    number: int
    taught: bool = True


def answer_tokens(offsets: IntArray, start: int, end: int) -> tuple[int, int] | None:
    """First and last (inclusive) token that overlap characters ``start:end``; ``None`` where no token does.

    ``offsets`` is ``[n, 2]``, the whole context's: what no token holds, a space or a mark at the answer's end, is not
    missing from it.
    """
    inside = np.flatnonzero((offsets[:, 0] < end) & (offsets[:, 1] > start))
    return (int(inside[0]), int(inside[-1])) if len(inside) else None


def examples(
    questions: Sequence[Question], tokenizer: SubwordTokenizer, settings: ReaderSettings = DEFAULT_SETTINGS
) -> list[Example]:
    """Every window of every question, labelled with its first gold answer; cut as ``settings`` say, to a length that
    padding leaves alone."""
    frame, longest = tokenizer.frame, settings.max_seq_len // SEQ_LEN_MULTIPLE * SEQ_LEN_MULTIPLE
    encoded = tokenizer.encode_pairs(questions, settings.max_question_tokens)
    found: list[Example] = []
    for each, (question, context) in zip(questions, encoded, strict=True):
        around = len(question) + frame.tokens
        gold = each.answers[0] if each.answers else None
        span = answer_tokens(context.offsets, gold.start, gold.start + len(gold.text)) if gold else None
        for piece in pieces(len(context), longest - around, settings.stride):
            tokens = context.part(piece.start, piece.stop)
            shift = frame.text_start(len(question)) - piece.start
            whole = span and piece.start <= span[0] and span[1] < piece.stop
            first, last = (span[0] + shift, span[1] + shift) if span and whole else (0, 0)
            found.append(Example(question, tokens, first, last, around + len(tokens), len(found)))
    return found


def hash_of(data: Sequence[Example]) -> str:
    """SHA-256 over the windows' tokens and labels, in order."""
    whole = hashlib.sha256()
    for each in data:
        for part in (each.question, each.piece):
            whole.update(len(part).to_bytes(4) + part.ids.tobytes())
        whole.update(each.start.to_bytes(4) + each.end.to_bytes(4))
    return whole.hexdigest()


@dataclass(frozen=True, slots=True)
class Batch:
    """Tensors of one step: ``inputs`` int64 ``[n, seq_len]`` by the model's argument names, labels int64 ``[n]``.

    ``taught``, bool ``[n]``, says of which windows a teacher's logits count. ``numbers`` are the windows', int64
    ``[n]``, and ``windows`` they themselves, as an engine takes them; both on the host.
    """

    inputs: dict[str, torch.Tensor]
    start: torch.Tensor
    end: torch.Tensor
    taught: torch.Tensor
    numbers: torch.Tensor
    windows: Windows

    def __len__(self) -> int:
        return len(self.start)

    def to(self, device: str) -> Batch:
        inputs = {name: each.to(device) for name, each in self.inputs.items()}
        start, end, taught = (each.to(device) for each in (self.start, self.end, self.taught))
        return Batch(inputs, start, end, taught, self.numbers, self.windows)


def epoch_order(lengths: Sequence[int], *, max_tokens: int, seed: int) -> list[list[int]]:
    """Indices of an epoch's batches: at most ``max_tokens`` with padding, alike in length, in the seed's order."""
    rng = random.Random(seed)
    order = list(range(len(lengths)))
    rng.shuffle(order)
    mean = max(1, sum(lengths) // max(1, len(lengths)))
    pool = POOL_BATCHES * max(1, max_tokens // mean)
    batches: list[list[int]] = []
    for at in range(0, len(order), pool):
        batch: list[int] = []
        for index in sorted(order[at : at + pool], key=lambda i: lengths[i]):
            if batch and (len(batch) + 1) * _padded(lengths[index]) > max_tokens:
                batches.append(batch)
                batch = []
            batch.append(index)
        batches.append(batch)
    rng.shuffle(batches)
    return batches


def steps_of(data: Sequence[Example], *, passes: float, max_tokens: int, seed: int) -> int:
    """Steps that so many passes over an epoch like this one take. Raises InputError where that is not one."""
    steps = round(len(epoch_order([each.length for each in data], max_tokens=max_tokens, seed=seed)) * passes)
    if steps < 1:
        raise InputError(f"{passes} passes over these questions do not make one step. Give more passes.")
    return steps


def _padded(length: int) -> int:
    return -(-length // SEQ_LEN_MULTIPLE) * SEQ_LEN_MULTIPLE


def collate(together: Sequence[Example], tokenizer: SubwordTokenizer) -> Batch:
    """The examples as one padded batch."""
    import torch

    windows = cut([(each.question, each.piece) for each in together], tokenizer.frame, DEFAULT_SETTINGS)
    extra = _padded(windows.seq_len) - windows.seq_len

    def padded(array: IntArray, value: int) -> torch.Tensor:
        return torch.from_numpy(np.pad(array, ((0, 0), (0, extra)), constant_values=value))

    inputs = {
        "input_ids": padded(windows.input_ids, tokenizer.frame.pad),
        "attention_mask": padded(windows.attention_mask, 0),
    }
    if windows.token_type_ids is not None:
        inputs["token_type_ids"] = padded(windows.token_type_ids, 0)
    start = torch.tensor([each.start for each in together])
    end = torch.tensor([each.end for each in together])
    taught = torch.tensor([each.taught for each in together])
    return Batch(inputs, start, end, taught, torch.tensor([each.number for each in together]), windows)


def stream(
    epochs: EpochOf, tokenizer: SubwordTokenizer, *, max_tokens: int, seed: int, steps: int, skip: int
) -> Iterator[Batch]:
    """Batches number ``skip`` to ``steps`` of an endless series of epochs; the same seed gives the same series."""
    done = 0
    epoch = 0
    while done < steps:
        data = epochs(epoch)
        lengths = [each.length for each in data]
        for indices in epoch_order(lengths, max_tokens=max_tokens, seed=seed + epoch):
            if skip <= done < steps:
                yield collate([data[i] for i in indices], tokenizer)
            done += 1
        epoch += 1
