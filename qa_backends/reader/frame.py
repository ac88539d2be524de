"""The frame of a window: the special tokens before, between and behind question and text.

BERT writes ``[CLS] question [SEP] text [SEP]``, RoBERTa ``<s> question </s></s> text </s>``. Which tokens these are is
read from the tokenizer itself, by letting it frame a pair of words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PAD_TOKENS = ("[PAD]", "<pad>")


@dataclass(frozen=True, slots=True)
class Frame:
    """Token ids around question and text. ``segments`` says whether the text has segment 1, and not 0 like the rest."""

    before: tuple[int, ...]
    between: tuple[int, ...]
    behind: tuple[int, ...]
    pad: int
    segments: bool

    @property
    def tokens(self) -> int:
        """How many tokens of a window are neither question nor text."""
        return len(self.before) + len(self.between) + len(self.behind)

    def text_start(self, question_tokens: int) -> int:
        """Place of the text's first token in a window, after a question of so many tokens."""
        return len(self.before) + question_tokens + len(self.between)


def read_frame(tokenizer: Tokenizer) -> Frame:
    """The frame that the tokenizer puts around a pair.

    Raises:
        ValueError: it puts none around it, or has no token to pad with.
    """
    pair = tokenizer.encode("a", "b", add_special_tokens=True)
    places = pair.sequence_ids
    first, second = places.index(0), places.index(1)
    first_end, second_end = len(places) - places[::-1].index(0), len(places) - places[::-1].index(1)
    pad = next((found for token in PAD_TOKENS if (found := tokenizer.token_to_id(token)) is not None), None)
    if first == 0 or pad is None:
        raise ValueError("it frames a pair without a first token for 'no answer', or has no padding token")
    return Frame(
        before=tuple(pair.ids[:first]),
        between=tuple(pair.ids[first_end:second]),
        behind=tuple(pair.ids[second_end:]),
        pad=int(pad),
        segments=pair.type_ids[second] == 1,
    )
