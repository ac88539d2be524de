"""Chromium of the system, driven by Playwright; tests that need it skip, with the command, where there is none."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from helpers import NARROW, WIDE

from qa_backends import catalog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--no-first-run", "--disable-quic"]  # fmt: skip
PATIENCE = 120_000


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    for each in items:
        if each.path.is_relative_to(Path(__file__).parent):
            each.add_marker("slow")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium here; install one: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield started
        started.close()


@pytest.fixture(scope="session", autouse=True)
def short_turns() -> Iterator[None]:
    """Turns of at most two seconds, and the two usual backends ticked: tests wait for many answers, and none for a
    narrow interval or for INT8 to be built."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("qa_backends.web.shared.choices.preselection", lambda family, _device: catalog.usual(family))
        patch.setattr("qa_backends.web.ask.answering.LIVE_SECONDS", 2.0)
        yield


@pytest.fixture
def open_page(browser: Browser, url: str) -> Iterator[Callable[..., Page]]:
    """Opens the app, at an address with this query, in a window of this size, in a browser so many times slower.

    ``prepare`` is a script that runs before the page's own; options are those of a browser context.
    """
    contexts = []

    def open_it(
        query: str = "", size: dict[str, int] = WIDE, prepare: str = "", slower: int = 1, **options: Any
    ) -> Page:
        context = browser.new_context(viewport=size, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.add_init_script(prepare)
        context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": slower})
        page.goto(url + query)
        page.wait_for_selector("#qa-history .main-svg")  # the last to be drawn
        return page

    yield open_it
    for context in contexts:
        context.close()


@pytest.fixture
def page(open_page: Callable[..., Page]) -> Page:
    return open_page()


@pytest.fixture
def phone(open_page: Callable[..., Page]) -> Page:
    return open_page(size=NARROW)
