"""Where built models go: where one says, else among the user's own caches; what is written as a whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from helpers import ROOT

from qa_backends.paths import cache_root


@pytest.mark.parametrize(
    ("told", "caches", "root"),
    [
        ("/told", "/caches", "/told"),
        (None, "/caches", "/caches/qa_backends"),
        ("", "/caches", "/caches/qa_backends"),
        (None, None, "/home/ada/.cache/qa_backends"),
        (None, "", "/home/ada/.cache/qa_backends"),
    ],
)
def test_the_cache_is_where_one_says_or_among_the_users_own(
    monkeypatch: pytest.MonkeyPatch, told: str | None, caches: str | None, root: str
) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    for name, value in (("QA_CACHE", told), ("XDG_CACHE_HOME", caches)):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    assert cache_root() == Path(root)


def test_a_pipe_is_written_to_by_the_name_of_its_link() -> None:
    script = (
        "from pathlib import Path; from qa_backends.paths import write_whole; write_whole(Path('/dev/stdout'), 'x')"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("x", "")
