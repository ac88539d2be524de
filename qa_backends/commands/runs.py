"""The options that every training run has."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import typer

from qa_backends.checkpoints.manifest import file_hash
from qa_backends.commands.terminal import Device, pick_device, watched
from qa_backends.errors import InputError
from qa_backends.measure.quality.datasets import data_set
from qa_backends.measure.results.records import HELD_OUT
from qa_backends.squad import Question, read_squad
from qa_backends.training.heldout import ARTICLES, Split, split
from qa_backends.training.settings import BATCH_TOKENS, LEARNING_RATE, Changes, RunSettings, faster_precision

Data = Annotated[Path, typer.Option("--data", help="SQuAD-format training questions, plain or .xz.")]
Out = Annotated[Path, typer.Option("--out", help="Folder of the run; a stopped run in it goes on.")]
MOST_PASSES = 1_000
Passes = Annotated[float, typer.Option("--passes", min=0.0, max=MOST_PASSES, help="How often every question is seen.")]
Rate = Annotated[float, typer.Option("--learning-rate", min=0.0, max=1.0)]
Tokens = Annotated[int, typer.Option("--batch-tokens", min=1, help="Tokens a step, padding included.")]
Seed = Annotated[int, typer.Option("--seed")]
HoldOut = Annotated[
    int, typer.Option("--hold-out", min=0, help="How many articles are kept apart: nothing is trained on them.")
]
HoldOutSeed = Annotated[
    int, typer.Option("--hold-out-seed", help="Which articles; the same for all runs that are compared.")
]
Also = Annotated[
    list[str] | None,
    typer.Option("--on", help="Also about these: `own`, `everyday`, `squad-v2-dev`, a SQuAD-format file."),
]
Dropout = Annotated[
    float, typer.Option("--dropout", min=0.0, max=0.9, help="Share of values dropped at random; slow on a CPU.")
]
Freeze = Annotated[
    bool, typer.Option("--freeze-embeddings/--no-freeze-embeddings", help="Keep word and position tables as they are.")
]
Precision = Annotated[
    str | None,
    typer.Option("--precision", help="bf16 or fp32; bf16 by default where the device multiplies in it by itself."),
]
Ema = Annotated[
    float, typer.Option("--ema", min=0.0, max=0.99999, help="Decay of the weights' average, as 0.999; 0 for none.")
]
Swapped = Annotated[
    int,
    typer.Option(
        "--swaps", min=0, help="Unanswerable questions added to each epoch, made by swapping a name or number."
    ),
]
LowerCase = Annotated[
    float, typer.Option("--lower-case", min=0.0, max=1.0, help="Share of questions without capitals and question mark.")
]
Cut = Annotated[float, typer.Option("--cut", min=0.0, max=1.0, help="Share asked of some sentences of their text.")]
Join = Annotated[
    float, typer.Option("--join", min=0.0, max=1.0, help="Share asked of their text and the paragraph beside it.")
]
Misplaced = Annotated[
    float, typer.Option("--misplaced", min=0.0, max=1.0, help="Share asked of another paragraph: unanswerable.")
]
MoreData = Annotated[
    Path | None,
    typer.Option("--also", help="More SQuAD-format questions, of other kinds of text, learned by their labels alone."),
]
Times = Annotated[int, typer.Option("--also-times", min=1, help="How often a pass holds each of --also.")]


def asked_about(held_out: Sequence[Question], also: Sequence[str] | None) -> dict[str, Sequence[Question]]:
    """Sets of questions by what they are called: those of the held-out articles, and the others that were named.

    Raises:
        InputError: two are called alike, or one is not there.
        BackendUnavailable: one cannot be downloaded.
    """
    sets: dict[str, Sequence[Question]] = {HELD_OUT: held_out}
    for found in (data_set(name, watched) for name in also or ()):
        if found.name in sets:
            raise InputError(f"Two sets of questions are called '{found.name}'. Name each once, or rename a file.")
        sets[found.name] = found.questions
    return sets


@dataclass(frozen=True)
class Chosen:
    """What every run is told: its settings, the file of questions, and how many articles of it are held out."""

    run: RunSettings
    data: Path
    hold_out: int
    hold_out_seed: int

    @cached_property
    def parts(self) -> Split:
        """The questions to learn, and those held out; read when they are first asked for.

        Raises:
            InputError: a file of questions cannot be read, or ``--also`` holds questions of articles held out.
        """
        parts = split(read_squad(self.data), self.hold_out, self.hold_out_seed)
        _ = self._hashes  # of what was just read
        if shared := sorted({each.title for each in self._also}.intersection(parts.articles)):
            raise InputError(
                f"{shared[0]!r} is held out, and --also would have it trained on. Leave it out there, or hold out "
                "other articles: --hold-out-seed."
            )
        return parts

    @cached_property
    def _also(self) -> Sequence[Question]:
        """The further questions, as they were before anything was learned: a run takes hours, and the file may grow."""
        return read_squad(self.run.also) if self.run.also else ()

    @cached_property
    def _hashes(self) -> dict[str, str]:
        """SHA-256 of the files of questions, which may change, and keep their names, while a run learns from them."""
        files = {"data_sha256": self.data, "also_sha256": self.run.also}
        return {name: file_hash(each) for name, each in files.items() if each}

    def facts(self) -> dict[str, Any]:
        """What of it goes to the manifest."""
        also = {"also_questions": len(self._also)} if self.run.also else {}
        learned = len(self.parts.learned)
        return {**self.run.facts(), **also, "data": self.data.name, "questions": learned, **self._hashes}


def of_a_run(
    passes: float, seed: int, learning_rate: float = LEARNING_RATE
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command the options that every run has, and its function, as ``chosen``, what they make."""

    def options(
        data: Data,
        out: Out,
        passes: Passes = passes,
        learning_rate: Rate = learning_rate,
        batch_tokens: Tokens = BATCH_TOKENS,
        seed: Seed = seed,
        hold_out: HoldOut = ARTICLES,
        hold_out_seed: HoldOutSeed = 0,
        dropout: Dropout = 0.0,
        freeze_embeddings: Freeze = True,
        precision: Precision = None,
        ema: Ema = 0.0,
        swaps: Swapped = 0,
        lower_case: LowerCase = 0.0,
        cut: Cut = 0.0,
        join: Join = 0.0,
        misplaced: Misplaced = 0.0,
        also: MoreData = None,
        also_times: Times = 1,
        device: Device = None,
    ) -> Chosen:
        device, changes = pick_device(device), Changes(swaps, lower_case, cut, join, misplaced)
        run = RunSettings(
            out, passes, learning_rate, batch_tokens, seed, device, ema, dropout, freeze_embeddings, changes,
            precision or faster_precision(device), also, also_times,
        )  # fmt: skip
        return Chosen(run, data, hold_out, hold_out_seed)

    shared = inspect.signature(options, eval_str=True).parameters

    def decorated(function: Callable[..., None]) -> Callable[..., None]:
        def command(**given: Any) -> None:
            chosen = options(**{name: given.pop(name) for name in shared})
            function(chosen=chosen, **given)

        own = inspect.signature(function, eval_str=True).parameters
        together = {**shared, **{name: each for name, each in own.items() if name != "chosen"}}
        command.__doc__ = function.__doc__
        command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # what Typer reads options from
            [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in together.values()]
        )
        command.__annotations__ = {name: each.annotation for name, each in together.items()}
        return command

    return decorated
