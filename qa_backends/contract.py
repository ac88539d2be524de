"""The words of the field, as types: what goes into a backend and what comes out of it.

Offsets are Python string indices (code points), half-open. Times are seconds, in fields ending ``_s``.
Array shapes are written ``[n_windows, seq_len]``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float32]
BATCH_TOKENS = 16 * 384
"""Tokens of one forward call, padding included: enough to fill a GPU, few enough to bound memory. On a CPU each engine
has its own, see ``Engine.batch_tokens``."""


@dataclass(frozen=True, slots=True)
class Query:
    """One question about one text."""

    question: str
    context: str


@dataclass(frozen=True, slots=True)
class Span:
    """Half-open character offsets into the context."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ReaderSettings:
    """How a text is cut and how an answer is chosen; by default as SQuAD v2 models are usually measured."""

    max_seq_len: int = 384
    stride: int = 128
    max_question_tokens: int = 64
    max_answer_tokens: int = 30
    null_threshold: float = 0.0
    """No answer when ``null_score - score > null_threshold``."""
    temperature: float = 1.0
    """What scores are divided by before they become a confidence (Guo et al. 2017); it changes no answer."""

    @property
    def always_answers(self) -> bool:
        """Whether "no answer" is never the answer, as for models that were only taught questions that have one."""
        return self.null_threshold >= ALWAYS_ANSWERS


ALWAYS_ANSWERS = 1e6
"""As ``null_threshold``: more than any null score is ahead of a span's."""


DEFAULT_SETTINGS = ReaderSettings()


@dataclass(frozen=True, slots=True)
class Windows:
    """Questions with a piece of their context each, framed by special tokens (see ``reader.frame``) and padded.

    The first token of every window stands for "no answer": its logits make the null score.

    ``input_ids``, ``attention_mask`` and ``token_type_ids`` are int64 ``[n_windows, seq_len]``; ``token_type_ids`` is
    ``None`` for models without segments. ``offsets`` is int64 ``[n_windows, seq_len, 2]``: the characters of the
    context each token stands for, white space left out (see ``reader.tokens``). ``answerable`` is bool ``[n_windows,
    seq_len]``: true where the token belongs to the context, so that a span may start or end there. ``query_index`` is
    int64 ``[n_windows]``: whose window it is.
    """

    input_ids: IntArray
    attention_mask: IntArray
    token_type_ids: IntArray | None
    offsets: IntArray
    answerable: NDArray[np.bool_]
    query_index: IntArray

    @property
    def n_windows(self) -> int:
        return int(self.input_ids.shape[0])

    @property
    def seq_len(self) -> int:
        return int(self.input_ids.shape[1])

    @property
    def lengths(self) -> IntArray:
        """``[n_windows]``: tokens of each window without its padding."""
        return np.asarray(self.attention_mask.sum(axis=1), dtype=np.int64)

    def inputs(self, names: Iterable[str]) -> dict[str, IntArray]:
        """The arrays that a model with these inputs takes, each in one piece.

        Where a model tells segments apart and its tokenizer does not, all of it is the first.
        """
        arrays = {name: getattr(self, name) for name in names}
        return {
            name: np.zeros_like(self.input_ids) if each is None else np.ascontiguousarray(each)
            for name, each in arrays.items()
        }

    def select(self, rows: IntArray) -> Windows:
        """The windows ``rows``, in that order, cut to the longest of them."""
        seq_len = int(self.attention_mask[rows].sum(axis=1).max(initial=1))
        return Windows(
            input_ids=self.input_ids[rows, :seq_len],
            attention_mask=self.attention_mask[rows, :seq_len],
            token_type_ids=None if self.token_type_ids is None else self.token_type_ids[rows, :seq_len],
            offsets=self.offsets[rows, :seq_len],
            answerable=self.answerable[rows, :seq_len],
            query_index=self.query_index[rows],
        )


@dataclass(frozen=True, slots=True)
class SpanLogits:
    """What an engine makes of windows: float32 ``[n_windows, seq_len]`` on the host, for span starts and ends.

    ``computed`` is the shape that the engine really computed, where it padded the windows for itself.
    """

    start: FloatArray
    end: FloatArray
    computed: tuple[int, int] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """``(n_windows, seq_len)`` of the batch that was computed, all padding included."""
        return self.computed or (int(self.start.shape[0]), int(self.start.shape[1]))


@dataclass(frozen=True, slots=True)
class Answer:
    """What the reader makes of the logits of all windows of one query.

    ``score`` is start logit + end logit of the best span over all windows, ``null_score`` the same of "no answer" (the
    ``[CLS]`` token), its minimum over windows (Devlin et al. 2019, section 4.3). ``span`` is ``None`` and ``text``
    empty when the text holds no answer: a result, not an error. ``confidence`` in 0..1 is the softmax, over every
    window's best spans and the null score, of the one chosen, at the checkpoint's temperature.
    """

    text: str
    span: Span | None
    score: float
    null_score: float
    confidence: float

    @property
    def json_score(self) -> float | None:
        """``score``, which is ``-inf`` where the text holds no span at all, as JSON can say it."""
        return self.score if math.isfinite(self.score) else None


@dataclass(frozen=True, slots=True)
class StageTimes:
    """Where the time of one question went, in seconds."""

    tokenise_s: float
    wait_s: float
    forward_s: float
    decode_s: float

    @property
    def compute_s(self) -> float:
        """Tokenise + forward + decode: the work, without waiting for other people's."""
        return self.tokenise_s + self.forward_s + self.decode_s

    @property
    def total_s(self) -> float:
        return self.compute_s + self.wait_s


@dataclass(frozen=True, slots=True)
class Ran:
    """What really ran, as the engine itself reports it after loading.

    ``threads`` is 0 where another process runs it, or a runtime takes as many as it likes.
    """

    device: str
    provider: str
    precision: str
    threads: int
    fused_ops: dict[str, int]
    file_hash: str
    versions: dict[str, str]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """One backend's answer to one query, with its cost."""

    backend: str
    answer: Answer
    times: StageTimes
    n_windows: int
    ran: Ran
    notices: tuple[str, ...] = ()


def same_answer(one: Answer, other: Answer) -> bool:
    """Whether two answers count as the same: the same text, or both "no answer".

    The text and not the span, wherever answers are compared: files of predictions hold nothing else, and a text that
    names a thing twice gives the same answer twice.
    """
    return one.text == other.text


def valid_text(text: str) -> str:
    """The text with "?" for each half of a surrogate pair, which JSON can hold and UTF-8 cannot: every offset stays in
    its place."""
    return text.encode("utf-8", "replace").decode("utf-8")


@dataclass(frozen=True, slots=True)
class Choice:
    """A value that an engine's option can take: what it adds to a backend's title and to its tolerance, and the
    precision it makes the engine compute in, where that is not the artefact's."""

    label: str
    tolerance: float = 0.0
    precision: str = ""


class Engine(ABC):
    """One runtime. Windows in, logits out; everything else (cutting, choosing the answer, timing) is shared.

    ``forward`` returns arrays on the host, so the device's work has ended when it returns and one clock is fair to
    every engine. All methods are called one at a time and, unless ``called_anywhere`` allows more, on one thread. A
    module of ``engines/`` holds one class, and importing it imports none of the engine's packages: that happens in
    ``load``.
    """

    title: ClassVar[str]
    short: ClassVar[str]
    """What the engine adds to a backend's name; empty for the plain one."""
    label: ClassVar[str] = ""
    """What it adds to a backend's title."""
    packages: ClassVar[tuple[str, ...]]
    """Importable names of what the engine cannot do without."""
    install: ClassVar[str] = "pip install -r requirements.txt"
    """The command that installs them."""
    portable: ClassVar[tuple[str, str] | None] = None
    """What installs all that its artefacts need, on a CPU and on a GPU, where ``serving.runner`` can run them without
    this project."""
    devices: ClassVar[tuple[str, ...]] = ("cuda", "cpu")
    kinds: ClassVar[tuple[str, ...]] = ()
    """Kinds of model that it knows, see ``checkpoints.architectures``; none where it takes any."""
    reads: ClassVar[tuple[str, ...]]
    """Formats of artefacts it can load, see ``artefacts.steps``; "checkpoint" for the checkpoint itself."""
    options: ClassVar[Mapping[str, Mapping[str, Choice]]] = {}
    """Values of each option; the default is not among them, and is what no option means."""
    tolerance: ClassVar[float] = 1e-4
    """Logit difference from PyTorch in FP32, on the same weights, that its arithmetic may cause: relative to the
    largest logit where that is above 1."""

    batch_tokens: ClassVar[int] = 4 * 384
    """Tokens of one forward call on a CPU, unless a measurement wants it otherwise; as many as it was measured to be
    quickest with. Of the windows of a long text, most engines compute one in the same time from two to eight together,
    8 to 14 % sooner than one by one; four take 0.1 GB less than sixteen do."""
    called_anywhere: ClassVar[tuple[str, ...]] = ()
    """Devices on which ``forward`` minds no change of threads, and is called on whichever thread asks."""
    computes_here: ClassVar[bool] = True
    """Whether this process does the work: that of another cannot be told from what strangers take of the machine."""

    @classmethod
    def refusal(cls, options: Mapping[str, str], device: str | None) -> tuple[str, str] | None:
        """Why this machine cannot run it with these options though its packages are there, and what mends that: two
        sentences. Asked for lists of what there is, so it imports none of the packages; ``device`` is ``None`` for any.
        """
        return None

    def __init__(self, options: Mapping[str, str]) -> None:
        self.chosen = dict(options)

    @abstractmethod
    def load(self, artefact: Path, device: str) -> None:
        """Reads the artefact and makes it ready on ``device`` (``"cpu"`` or ``"cuda"``).

        Raises:
            ArtefactError: the files are missing or not what the engine needs.
            BackendUnavailable: the device or a package is missing.
        """

    @abstractmethod
    def forward(self, windows: Windows) -> SpanLogits:
        """float32 ``[n_windows, seq_len]`` start and end logits of all windows in one batch."""

    @abstractmethod
    def describe(self) -> Ran:
        """What ran: known only after ``load``."""

    @abstractmethod
    def close(self) -> None:
        """Gives back memory at once, what is held in cycles too; the engine can be loaded again afterwards."""
