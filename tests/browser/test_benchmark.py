"""The benchmark tab's controls in a real browser: in sight when they are wanted, at a desk and on a phone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from browser.conftest import SLOW_S
from helpers import NARROW, WIDE

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    Open = Callable[..., Page]

SIZES = pytest.mark.parametrize("size", [WIDE, NARROW], ids=["1280x900", "390x844"])


def seen(page: Page, selector: str) -> bool:
    """Whether the whole element can be seen without scrolling."""
    box, size = page.locator(selector).first.bounding_box(), page.viewport_size
    assert box is not None and size is not None
    return 0 <= box["y"] <= size["height"] - box["height"] and 0 <= box["x"] <= size["width"] - box["width"]


@SIZES
def test_what_is_chosen_start_and_what_ships_share_the_first_screen(open_page: Open, size: dict[str, int]) -> None:
    page = open_page(size=size)
    page.get_by_role("tab", name="Benchmark").click()
    page.wait_for_selector("#qa-bench-chart-0 .main-svg")
    for selector in ("#qa-bench-options", "#qa-bench-start", "#qa-bench-caption"):
        assert seen(page, selector), selector
    chart = page.locator("#qa-bench-chart-0").bounding_box()
    assert chart is not None and chart["y"] < size["height"] * 0.8
    page.click("#qa-bench-options > button")
    page.wait_for_selector("#qa-bench-backends >> visible=true")
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    page.locator("#qa-bench-lengths label", has_text="64").click()
    page.wait_for_selector("#qa-bench-options > button:has-text('32, 64, 128, 384 tokens')")


def test_the_charts_show_the_backends_that_are_chosen(open_page: Open) -> None:
    page = open_page(size=WIDE)
    page.get_by_role("tab", name="Benchmark").click()
    page.wait_for_selector("#qa-bench-chart-0 .main-svg")
    before = int(page.inner_text("#qa-bench-view > button").split(" of ")[0].split()[-1])
    page.click("#qa-bench-view > button")
    page.get_by_role("group", name="Backends in the charts").get_by_text("Pruned, TorchScript", exact=True).click()
    page.wait_for_selector("#qa-bench-chart-0 :text('TorchScript')")
    page.wait_for_selector(f"#qa-bench-view > button:has-text('{before + 1} of ')")


@SIZES
@pytest.mark.parametrize("slow_baseline", [SLOW_S / 4], indirect=True, ids=["slow enough to be watched"])
@pytest.mark.usefixtures("slow_baseline")
def test_progress_and_stop_stay_in_sight_while_it_measures(open_page: Open, size: dict[str, int]) -> None:
    page = open_page(size=size)
    page.get_by_role("tab", name="Benchmark").click()
    page.wait_for_selector("#qa-bench-chart-6 .main-svg")  # until then the page may be too short to scroll that far
    assert page.locator("#qa-bench-stop").count() == 0
    page.click("#qa-bench-start")
    page.wait_for_selector("#qa-bench-stop:enabled")
    assert page.locator("#qa-bench-start").is_disabled()
    assert seen(page, "#qa-bench-stop") and seen(page, "#qa-bench-progress")
    page.evaluate("scrollTo(0, 900)")
    page.wait_for_timeout(200)
    assert page.evaluate("scrollY") == 900
    assert seen(page, "#qa-bench-stop") and seen(page, "#qa-bench-progress")
    page.click("#qa-bench-stop")
    page.wait_for_selector("#qa-bench-stop", state="hidden")
    assert page.locator("#qa-bench-start").is_enabled()
