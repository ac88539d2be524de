"""The command line: ``list``, ``families``, ``answer``, ``evaluate``, ``build``, ``bench``, ``overhead``,
``long-texts``, ``recommend``, ``record``, ``report``, ``serve``, ``load``, ``export``, ``triton``, ``train``,
``cache``.

Exit codes: 0; 2 for bad usage or input; 1 for failure; 130 after Ctrl-C, unless what there is by then is shown. Errors
are one line on stderr; ``--debug`` shows the traceback.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated

import typer

from qa_backends import catalog
from qa_backends.commands import asking, benchmarking, building, caching, measuring, recommending, serving, training
from qa_backends.commands.terminal import errors, interrupted, watched
from qa_backends.errors import InputError, QAError

INTERRUPTED = 130
"""What Typer gives back after Ctrl-C: 128 and the signal's number, as shells have it."""

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
)
for commands in (asking, measuring, benchmarking, recommending, building, serving):
    app.add_typer(commands.app)
app.add_typer(training.app, name="train")
app.add_typer(caching.app, name="cache")


@app.callback()
def common(
    context: typer.Context,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error; works anywhere in the line.")
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            envvar="QA_MODEL",
            help="Your own model as the default family: a folder or a Hub id.",
        ),
    ] = None,
) -> None:
    """Ask a text a question on interchangeable backends, and measure what each costs."""
    del debug  # looked for by ``main``, which also finds it behind the command
    if model and context.invoked_subcommand != "cache":
        os.environ["QA_MODEL"] = model  # for processes that this one starts, too
        catalog.adopt_chosen(watched)


def main() -> None:
    """Runs the command line and exits the process."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what a terminal or a file cannot show does not end a command
            stream.reconfigure(encoding=stream.encoding if stream.isatty() else "utf-8", errors="backslashreplace")
    debug = "--debug" in sys.argv
    arguments = _model_first([each for each in sys.argv[1:] if each != "--debug"])
    try:
        code = app(arguments or ["--help"], standalone_mode=False)
    except (QAError, OSError, typer.TyperException) as error:
        if debug:
            raise
        message = error.format_message() if hasattr(error, "format_message") else str(error)
        errors.print(f"Error: {' '.join(message.split())}")
        sys.exit(2 if isinstance(error, InputError | typer.TyperException) else 1)
    if code == INTERRUPTED:
        interrupted.set()
    sys.exit(code if arguments else 2)


def _model_first(arguments: list[str]) -> list[str]:
    """``--model`` and its value in front of the command, wherever they stood."""
    for place, each in enumerate(arguments):
        if each == "--model" and each is arguments[-1]:
            return [each]  # and hears that its value is missing
        count = 2 if each == "--model" else 1 if each.startswith("--model=") else 0
        if count:
            return arguments[place : place + count] + arguments[:place] + arguments[place + count :]
    return arguments
