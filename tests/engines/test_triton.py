"""Triton's server is asked where it is named, and refused where that is no address."""

from __future__ import annotations

import pytest

from qa_backends.engines.triton import NAMED_BY, Triton


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://127.0.0.1", "http://[::1"])
def test_what_is_no_address_is_refused_with_what_one_is(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv(NAMED_BY, url)
    refusal = Triton.refusal({}, "cpu")
    assert refusal is not None
    assert f"{url}”, which is no address" in refusal[0] and "http://127.0.0.1:8000" in refusal[1]
