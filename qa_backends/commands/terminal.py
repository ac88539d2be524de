"""What commands share: options, the two streams, progress.

A command's result goes to stdout; what is being prepared, how far it is, and errors go to stderr.
"""

from __future__ import annotations

import json
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import progress as drawn
from rich.console import Console
from rich.table import Column, Table

from qa_backends import catalog
from qa_backends.errors import InputError
from qa_backends.limits import devices
from qa_backends.progress import Progress
from qa_backends.runtime.loading import check_device

if TYPE_CHECKING:
    from qa_backends.catalog import Backend, Family

WIDTH_OF_A_FILE = 120
"""Columns of a table that goes to a file or a pipe, which has no width of its own."""
DRAW_EVERY_S = 0.1
LINE_EVERY_S = 20.0
"""How often a line of progress comes where there is no bar."""
PACE_OVER_S = 600.0
"""Time left is told by the pace of so many seconds; it takes two steps within them."""
errors = Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)
console = Console(
    highlight=False, markup=False, emoji=False, soft_wrap=True, width=None if sys.stdout.isatty() else WIDTH_OF_A_FILE
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
FamilyName = Annotated[str | None, typer.Option("--family", help="Family of models; QA_FAMILY or minilm by default.")]
Device = Annotated[str | None, typer.Option("--device", help="cpu or cuda; a GPU by default where there is one.")]
BackendName = Annotated[
    str | None, typer.Option("--backend", help="A name from `list`, or family/name; the usual faster one by default.")
]


def show(value: dict[str, Any] | list[dict[str, Any]]) -> None:
    """JSON on stdout; Unicode as it is."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=1) + "\n")
    sys.stdout.flush()  # a full disk or a closed pipe is an error of this command, not of the interpreter's end


def table_of(*heads: str) -> Table:
    """A table that cuts nothing off: what is too long for its column goes on in the next line."""
    return Table(*(Column(each, overflow="fold") for each in heads))


def say(message: str) -> None:
    """What is being prepared, on stderr, so that stdout stays a result."""
    errors.print(message)


interrupted = threading.Event()
"""Ctrl-C has ended the command: what its other threads are still at ends as soon as that looks here."""
watched = Progress(say, interrupted.is_set)
"""For long jobs of a command: stderr is told what they do."""


def pick_device(wanted: str | None) -> str:
    """Raises InputError for a device that this machine has not got."""
    if wanted is None:
        return devices()[0]
    check_device(wanted)
    return wanted


def asked_of(backend: str | None, family: str | None) -> tuple[Family, Backend]:
    """Who is to answer, by name, as ``catalog.resolve`` has it. Raises InputError for weights that answer nothing."""
    of, chosen = catalog.resolve(backend, family)
    of.check_answers()
    return of, chosen


def numbers(option: str, text: str, example: str = "1,8,32") -> tuple[int, ...]:
    """Whole numbers with commas between. Raises InputError for anything else."""
    if not all(each.strip().isdecimal() for each in text.split(",")):
        raise InputError(f"'{text}' is no list of numbers. Write them as in {option} {example}.")
    return tuple(int(each) for each in text.split(","))


def names(text: str) -> tuple[str, ...]:
    """Names with commas between; nothing between two commas is none."""
    return tuple(each.strip() for each in text.split(",") if each.strip())


def check_writable(*files: Path | None) -> None:
    """Raises InputError for what cannot be written to: before the work whose result would be lost."""
    for file in filter(None, files):
        if file.is_dir():
            raise InputError(f"{file} is a folder. Name a file.")
        if file.exists() and not file.is_file():
            continue  # as /dev/stdout, see ``write_whole``
        folder = file.resolve().parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise InputError(f"{file} cannot be written: {error.strerror}. Name another file.") from error


@contextmanager
def bar(what: str, total: int | None) -> Iterator[Any]:
    """A progress bar on stderr; gives the function that sets how much is done, with a note, and of how much.

    Where less is done than was, another part of the work has begun, whose time is its own. A file or a pipe cannot
    redraw a bar; there, a line of the same content comes now and then.
    """
    note, left = drawn.TextColumn("{task.fields[note]}", markup=False), drawn.TimeRemainingColumn()
    columns = (
        drawn.TextColumn("{task.description}", markup=False),
        drawn.BarColumn(),
        drawn.MofNCompleteColumn(),
        left,
        note,
    )
    redrawn = errors.is_terminal
    # Drawn when something is told: a thread that draws ten times a second would do so beside what is timed.
    with drawn.Progress(
        *columns, console=errors, disable=not redrawn, speed_estimate_period=PACE_OVER_S, auto_refresh=False
    ) as progress:
        task = progress.add_task(what, total=total, note="")
        last_line = last_drawn = time.monotonic()

        def advance(done: float, note: str = "", of: int | None = total) -> None:
            nonlocal last_line, last_drawn
            if done < progress.tasks[0].completed:
                progress.reset(task)  # which also takes back that it was finished
            progress.update(task, completed=done, note=note, total=of)
            if time.monotonic() - last_drawn >= DRAW_EVERY_S:
                last_drawn = time.monotonic()
                progress.refresh()
            if not redrawn and time.monotonic() - last_line >= LINE_EVERY_S:
                last_line = time.monotonic()
                errors.print(what, f"{int(done):,}/{of or '?'}", left.render(progress.tasks[0]), note, markup=False)

        yield advance


MEASURING = "Stopping after this run. Ctrl-C again ends the program and loses what was measured."


@contextmanager
def interruptible(said: str = MEASURING) -> Iterator[Callable[[], bool]]:
    """Ctrl-C once tells the work to end and keep what there is, which is ``said``; twice ends the program."""
    stop = threading.Event()

    def interrupt(_number: int, _frame: object) -> None:
        stop.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        say(said)

    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield stop.is_set
    finally:
        signal.signal(signal.SIGINT, before)
