"""What was measured, as types: one record for each line of a results file.

The fields are the keys of the files, documented in ``assets/results/README.md``. They are checked when a file is read,
since it may be anybody's; so each type here is one that pydantic understands.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field, JsonValue

from qa_backends.contract import Ran
from qa_backends.measure.benchmark.plan import MOST_RUNS, BenchmarkPlan
from qa_backends.measure.timing.load import said_of
from qa_backends.measure.timing.machine import Machine
from qa_backends.measure.timing.rounds import RUNS_PER_BLOCK
from qa_backends.measure.timing.statistics import UNSTABLE_ABOVE, Difference, Interval, Ratio

Milliseconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
PartMilliseconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
Blocks = Annotated[tuple[Annotated[int, Field(ge=1, le=RUNS_PER_BLOCK)], ...], Field(max_length=MOST_RUNS)]
PartSamples = Annotated[tuple[PartMilliseconds, ...], Field(min_length=1, max_length=MOST_RUNS + RUNS_PER_BLOCK)]

HELD_OUT = "held-out articles"
"""What their questions are called beside other data sets."""


class ResultsFile:
    """A record that is the whole of a results file, which carries its ``kind``."""

    __slots__ = ()
    kind: ClassVar[str]


class OfBackend:
    """A record of one backend, which it calls ``backend``, family/name."""

    __slots__ = ()
    backend: str

    @property
    def name(self) -> str:
        """The backend's, without its family."""
        return self.backend.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What could not be measured, and why; ``backend`` or ``point`` is empty where all of them are meant."""

    backend: str
    point: str
    why: str


@dataclass(frozen=True, slots=True)
class Against:
    """A ratio, and the backend it is against."""

    value: Milliseconds
    low: Milliseconds
    high: Milliseconds
    runs: int
    backend: str

    @property
    def ratio(self) -> Ratio:
        return Ratio(self.value, self.low, self.high, self.runs)


@dataclass(frozen=True, slots=True)
class Quality:
    """What a latency record carries of its backend's quality; ``f1_difference`` is to the baseline's, paired."""

    device: str
    data: str
    n: int
    exact: float
    exact_interval: Interval
    f1: float
    f1_interval: Interval
    agreement: float | None
    f1_difference: Difference | None = None


@dataclass(frozen=True, slots=True)
class Samples:
    """Every run, in milliseconds, by part."""

    tokenise: PartSamples
    forward: PartSamples
    decode: PartSamples

    def wholes(self) -> list[float]:
        """Whole answers: the sums of the parts."""
        return [sum(parts) for parts in zip(self.tokenise, self.forward, self.decode, strict=True)]


@dataclass(frozen=True, slots=True)
class BenchmarkRecord(OfBackend):
    """What one backend did at one point, with all that is needed to judge it."""

    backend: str
    checkpoint: str | None
    device: str
    tokens: int | None
    batch: int
    order: str
    questions: int
    windows: int | None
    padding: Share | None
    warm_up_runs: int
    cold_ms: Milliseconds
    runs: int
    p50_ms: Milliseconds
    p90_ms: Milliseconds | None
    p99_ms: Milliseconds | None
    questions_per_second: float
    unstable: bool
    against_baseline: Against | None
    against_previous: Against | None
    against_arrival: Against | None
    floor_ms: Milliseconds | None
    bytes: int | None
    stored: str | None
    encoder_parameters: int | None
    quality: Quality | None
    ran: Ran
    blocks: Blocks
    samples_ms: Samples
    shapes: str | None = None
    others: Share | None = None

    def __post_init__(self) -> None:
        """Raises ValueError where the samples of the parts and the blocks are not as many, or take no time."""
        counts = {len(self.samples_ms.tokenise), len(self.samples_ms.forward), len(self.samples_ms.decode)}
        if counts != {sum(self.blocks)}:
            raise ValueError("samples that no benchmark takes: not as many of each part as the blocks hold")
        if not all(0 < whole < math.inf for whole in self.samples_ms.wholes()):
            raise ValueError("samples that no benchmark takes: a whole answer in no time, or in endless time")

    @property
    def place(self) -> tuple[str, str, int | None, int, str]:
        """What tells records of one benchmark apart."""
        return self.backend, self.device, self.tokens, self.batch, self.order


@dataclass(frozen=True, slots=True)
class AloneRecord(OfBackend):
    """A backend measured by itself beside what it took in company; ``ratio`` is company over alone."""

    backend: str
    device: str
    tokens: int | None
    batch: int
    runs: int
    p50_ms: Milliseconds
    company_p50_ms: Milliseconds
    ratio: Milliseconds

    @property
    def differs(self) -> bool:
        """Whether company, or what else changed on the machine until then, made a difference of more than 10 %."""
        return abs(self.ratio - 1) > UNSTABLE_ABOVE


@dataclass(frozen=True, slots=True)
class Benchmark(ResultsFile):
    """A whole benchmark."""

    kind: ClassVar = "benchmark"
    machine: Machine
    plan: BenchmarkPlan
    complete: bool
    rows: tuple[BenchmarkRecord, ...]
    alone: tuple[AloneRecord, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def disturbed(self) -> str:
        """Where others took much of the cores, as a sentence; empty where nobody is known to have."""
        return said_of([each.others for each in self.rows])


@dataclass(frozen=True, slots=True)
class QualityRecord(OfBackend):
    """One backend's quality on a data set, in percent over ``n`` questions; parts without a question are ``None``.

    ``agreement`` is the share of answers that equal the baseline's, ``f1_difference`` the paired difference to its F1;
    both are ``None`` where the baseline's answers were not at hand. ``parent_difference`` is the paired difference to
    the F1 of the same weights in FP32, of weights that are rounded, where its answers were at hand.
    """

    backend: str
    checkpoint: str | None
    device: str
    data: str
    data_sha256: str
    limit: int | None
    seed: int
    n: int
    exact: float
    f1: float
    has_ans_f1: float | None
    no_ans_f1: float | None
    questions_per_second: float | None
    exact_interval: Interval
    f1_interval: Interval
    has_ans_f1_interval: Interval | None
    no_ans_f1_interval: Interval | None
    agreement: float | None
    ran: Ran
    machine: Machine
    f1_difference: Difference | None = None
    parent_difference: Difference | None = None

    @property
    def place(self) -> tuple[str, str, str, int | None, int]:
        """What a newer measurement replaces an older one by."""
        return self.backend, self.device, self.data_sha256, self.limit, self.seed

    def short(self) -> Quality:
        """What a latency record carries of it."""
        return Quality(
            self.device, self.data, self.n, self.exact, self.exact_interval, self.f1, self.f1_interval, self.agreement,
            self.f1_difference,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class QualityTable(ResultsFile):
    """The file that keeps quality: a record a backend, device and data set."""

    kind: ClassVar = "accuracy"
    rows: tuple[QualityRecord, ...]


@dataclass(frozen=True, slots=True)
class Predicted:
    """A backend's answer to a question, empty where it found none; ``f1`` is 0 to 1."""

    text: str
    exact: bool
    f1: float


@dataclass(frozen=True, slots=True)
class Answered:
    """A question, people's answers (none where the text holds none), and each backend's, by family/backend."""

    id: str
    question: str
    gold: tuple[str, ...]
    predicted: dict[str, Predicted]


@dataclass(frozen=True, slots=True)
class WholeEvaluation(QualityTable):
    """A results file of quality that also holds every answer; either can be read as the other."""

    questions: tuple[Answered, ...] = ()


@dataclass(frozen=True, slots=True)
class OverheadRecord(OfBackend):
    """The app's own cost beside the model of ``backend``, at one length: medians over ``runs`` answers, in ms."""

    backend: str
    tokens: int
    runs: int
    own_ms: Milliseconds
    tokenise_ms: Milliseconds
    decode_ms: Milliseconds
    bookkeeping_ms: float
    tokenizer_call_ms: Milliseconds
    tokenise_kept_ms: Milliseconds
    model_ms: Milliseconds
    share_of_model: float


@dataclass(frozen=True, slots=True)
class Overhead(ResultsFile):
    """The app's own cost, on a machine."""

    kind: ClassVar = "overhead"
    machine: Machine
    rows: tuple[OverheadRecord, ...]


@dataclass(frozen=True, slots=True)
class LongText(OfBackend):
    """What a text of so many ``characters``, cut into ``windows``, takes ``backend``: the median of ``runs`` whole
    answers, and the most memory that was resident in the process until then, libraries and weights included, in bytes;
    ``None`` where the system does not tell."""

    backend: str
    checkpoint: str | None
    device: str
    characters: int
    windows: int
    runs: int
    p50_ms: Milliseconds
    peak_bytes: int | None
    machine: Machine
    shapes: str | None = None


@dataclass(frozen=True, slots=True)
class LongTexts(ResultsFile):
    """The file of long texts: a record a backend, device and length, each backend's from a process of its own."""

    kind: ClassVar = "long texts"
    rows: tuple[LongText, ...]


@dataclass(frozen=True, slots=True)
class Technique:
    """A run that did something ``otherwise`` than the one it is compared with, with all its ``settings``, and what its
    checkpoint answers of ``data``, in percent over ``n`` questions, at its own ``null_threshold``.

    ``f1_difference`` is to the F1 of the first run on the same questions, paired; ``None`` for the first.
    """

    otherwise: str
    step: str
    settings: dict[str, JsonValue]
    null_threshold: float
    n: int
    f1: float
    f1_interval: Interval
    has_ans_f1: float | None
    no_ans_f1: float | None
    f1_difference: Difference | None
    data: str = HELD_OUT


@dataclass(frozen=True, slots=True)
class Techniques(ResultsFile):
    """Runs that began as the checkpoint whose weights have the hash ``parent``, and held out the same ``articles``; the
    first is what the others are compared with. They may have been asked about other sets of questions besides.

    ``seen_before`` is whether that checkpoint, or who taught one of the runs, may have been trained on some of the
    articles.
    """

    kind: ClassVar = "techniques"
    machine: Machine
    parent: str | None
    articles: tuple[str, ...]
    seen_before: bool
    rows: tuple[Technique, ...]
