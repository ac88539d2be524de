"""The command line: ``list``, ``answer``, ``evaluate``, ``build``, ``bench``, ``recommend``, ``record``, ``report``,
``serve``, ``load``, ``export``, ``triton``, ``train``.

Exit codes: 0; 2 for bad usage or input; 1 for failure. Errors are one line on stderr; ``--debug`` shows the traceback.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from qa_backends.commands import asking, building, measuring, recommending, serving, training
from qa_backends.commands.terminal import errors
from qa_backends.errors import InputError, QAError

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
)
for commands in (asking, measuring, recommending, building, serving):
    app.add_typer(commands.app)
app.add_typer(training.app, name="train")


@app.callback()
def common(
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error; works anywhere in the line.")
    ] = False,
) -> None:
    """Ask a text a question on interchangeable backends, and measure what each costs."""
    del debug  # looked for by ``main``, which also finds it behind the command


def main() -> None:
    """Runs the command line and exits the process."""
    debug = "--debug" in sys.argv
    arguments = [each for each in sys.argv[1:] if each != "--debug"]
    try:
        code = app(arguments or ["--help"], standalone_mode=False)
    except (QAError, OSError, typer.TyperException) as error:
        if debug:
            raise
        message = error.format_message() if hasattr(error, "format_message") else str(error)
        errors.print(f"Error: {' '.join(message.split())}")
        sys.exit(2 if isinstance(error, InputError | typer.TyperException) else 1)
    sys.exit(code if arguments else 2)
