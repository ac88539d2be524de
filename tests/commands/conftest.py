"""A command of the program, run in this process as a shell would."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from qa_backends.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., "Done"]


class Done:
    """What a command left behind."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    def command(*arguments: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["qa_backends", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        shown = capsys.readouterr()
        return Done(int(left.value.code or 0), shown.out, shown.err)

    return command
