"""Chromium of the system, driven by Playwright; tests that need it skip, with the command, where there is none."""

from __future__ import annotations

import shutil
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from helpers import NARROW, WIDE

from qa_backends import catalog
from qa_backends.engines.pytorch import PyTorch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from playwright.sync_api import Browser, BrowserContext, Page

    from qa_backends.contract import SpanLogits, Windows

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--no-first-run", "--disable-quic", "--process-per-site"]  # fmt: skip
PATIENCE = 120_000
SLOW_S = 1.0


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


@pytest.fixture(scope="session")
def context_of(browser: Browser, url: str) -> Callable[..., BrowserContext]:
    """The browser context with these options, in which one tab of the app's site stays open: Chromium ends a site's
    process with its last tab, and the page takes three times as long in a process that has not run it yet."""

    @cache
    def context_with(**options: Any) -> BrowserContext:
        context = browser.new_context(**options)
        context.new_page().goto(f"{url}theme.css")
        return context

    return context_with


@pytest.fixture
def open_page(browser: Browser, context_of: Callable[..., BrowserContext], url: str) -> Iterator[Callable[..., Page]]:
    """Opens the app, at an address with this query, in a window of this size, in a browser so many times slower.

    ``prepare`` is a script that runs before the page's own; with it, or slowed down, the browser has never seen the
    page before. ``options`` are those of a browser context.
    """
    opened: list[Page | BrowserContext] = []

    def open_it(
        query: str = "", size: dict[str, int] = WIDE, prepare: str = "", slower: int = 1, **options: Any
    ) -> Page:
        if prepare or slower > 1:
            context = browser.new_context(**options)
            opened.append(context)
        else:
            context = context_of(**options)
            context.clear_cookies()
            context.pages[0].evaluate("localStorage.clear()")
        page = context.new_page()
        opened.append(page)
        page.set_default_timeout(PATIENCE)
        page.set_viewport_size(size)  # type: ignore[arg-type]  # a size
        page.add_init_script(prepare)
        context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": slower})
        page.goto(url + query)
        page.wait_for_selector("#qa-history .main-svg")  # the last to be drawn
        return page

    yield open_it
    for each in reversed(opened):
        each.close()


@pytest.fixture
def page(open_page: Callable[..., Page]) -> Page:
    return open_page()


@pytest.fixture
def phone(open_page: Callable[..., Page]) -> Page:
    return open_page(size=NARROW)


@pytest.fixture
def slow_baseline(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch takes a second, or as much as a test says, more for every forward call: a large model, an old machine."""
    quick, more_s = PyTorch.forward, getattr(request, "param", SLOW_S)

    def slowly(engine: PyTorch, windows: Windows) -> SpanLogits:
        time.sleep(more_s)
        return quick(engine, windows)

    monkeypatch.setattr(PyTorch, "forward", slowly)
