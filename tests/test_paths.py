"""Where built models go: where one says, else among the user's own caches."""

from __future__ import annotations

from pathlib import Path

import pytest

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
