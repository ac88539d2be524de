"""What a benchmark asks: real questions about real text, cut to exact lengths."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from qa_backends.contract import Query
from qa_backends.measure.benchmark.plan import SHORTEST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qa_backends.reader.reader import Reader
    from qa_backends.squad import Question

TEXTS_JOINED = 8
"""So many of the project's short texts make one that is long enough for every length a benchmark offers."""
MIXED_SEED = 20


def queries_of_length(reader: Reader, questions: Sequence[Question], length: int, count: int) -> list[Query]:
    """``count`` different queries of exactly ``length`` tokens each, special tokens included.

    A length beyond the model's window counts the text once, however many windows it is then cut into.

    Raises:
        InputError: see ``Reader.of_length``.
    """
    return [reader.of_length(_long_query(questions, number), length) for number in range(count)]


def mixed_queries(reader: Reader, questions: Sequence[Question], count: int) -> list[Query]:
    """``count`` queries whose lengths spread evenly, on a logarithmic scale, over one window; always the same ones."""
    rng = random.Random(MIXED_SEED)
    longest = reader.settings.max_seq_len
    lengths = [round(SHORTEST * (longest / SHORTEST) ** rng.random()) for _ in range(count)]
    return [reader.of_length(_long_query(questions, number), length) for number, length in enumerate(lengths)]


def _long_query(questions: Sequence[Question], number: int) -> Query:
    """A question about its own text with the texts that follow it, from the beginning again after the last."""
    texts = list(dict.fromkeys(each.context for each in questions))
    first = number % len(texts)
    asked = [each for each in questions if each.context == texts[first]]
    joined = "\n\n".join((texts[first:] + texts[:first])[:TEXTS_JOINED])
    return Query(asked[number // len(texts) % len(asked)].question, joined)
