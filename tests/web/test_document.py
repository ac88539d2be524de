"""What the server sends before any script runs: what search engines, and those who draw links, read of the page."""

from __future__ import annotations

import io
import re
from urllib.request import Request, urlopen

import pytest
from browser.draw_preview import SAYS, said
from PIL import Image

from qa_backends.paths import FAVICON, PREVIEW, STYLE
from qa_backends.web.document import PREVIEW_AT, PREVIEW_SIZE
from qa_backends.web.page import INTRODUCTION, TITLE


def fetch(address: str, **headers: str) -> tuple[str, bytes]:
    """The content type and the content."""
    with urlopen(Request(address, headers=headers), timeout=30) as answer:
        return answer.headers["content-type"], answer.read()


def meta(document: str) -> dict[str, list[str]]:
    """What the document says of itself, by name; each name's contents as they come."""
    found: dict[str, list[str]] = {}
    for name, content in re.findall(r'<meta\s+(?:property|name)="([^"]+)"\s+content="([^"]*)"', document):
        found.setdefault(name, []).append(content)
    return found


def test_a_link_to_the_page_is_shown_with_its_name_and_picture(url: str) -> None:
    _, page = fetch(url)
    document = page.decode()
    told = meta(document)
    assert re.findall("<title>(.*?)</title>", document) == [TITLE]
    assert told["og:title"] == [TITLE]
    assert told["description"] == told["og:description"] == [INTRODUCTION]
    assert told["og:image"] == [url.rstrip("/") + PREVIEW_AT]
    assert told["twitter:card"] == ["summary_large_image"]
    assert "gradio.app" not in " ".join(content for contents in told.values() for content in contents)
    kind, picture = fetch(told["og:image"][0])
    assert kind == "image/png" and picture == PREVIEW.read_bytes()
    assert Image.open(io.BytesIO(picture)).size == PREVIEW_SIZE


def test_behind_a_proxy_the_picture_has_the_address_that_people_see(url: str) -> None:
    _, page = fetch(url, **{"x-forwarded-host": "ask.example", "x-forwarded-proto": "https"})
    assert meta(page.decode())["og:image"] == [f"https://ask.example{PREVIEW_AT}"]
    _, page = fetch(url, **{"x-forwarded-host": '"><script>alert(1)</script>'})
    assert "<script>alert(1)" not in page.decode()


def test_the_icon_is_ours(url: str) -> None:
    kind, icon = fetch(f"{url}favicon.ico")
    assert kind == "image/svg+xml" and icon == FAVICON.read_bytes()


@pytest.mark.parametrize("asked", [f"{PREVIEW_AT}?path=style.css", f"{PREVIEW_AT}/../style.css", "/style.css"])
def test_no_other_file_is_served_beside_the_picture(url: str, asked: str) -> None:
    try:
        _, content = fetch(url.rstrip("/") + asked)
    except OSError:
        return
    assert content == PREVIEW.read_bytes() or STYLE.read_bytes() not in content


def test_the_picture_says_what_was_recorded() -> None:
    """Where it does not: PYTHONPATH=.:tests python -m browser.draw_preview"""
    assert Image.open(PREVIEW).info[SAYS].split("\n") == list(said())
