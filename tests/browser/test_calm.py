"""The page keeps still: while it loads, while it measures, and for who asked for no motion."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from browser.test_measuring import open_tab
from browser.test_page import BOX, ask, finished
from helpers import NARROW, QUESTION, WIDE

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    Open = Callable[..., Page]

MOST_SHIFT = 0.1
"""Cumulative layout shift up to which a page is called good: https://web.dev/articles/cls."""
THROTTLED = 6
"""Times slower than it is: what Chrome's own tools take for a cheap phone."""
SIZES = pytest.mark.parametrize("size", [WIDE, NARROW], ids=["1280x900", "390x844"])
WATCH_MOTION = """
  window.moved = new Set();
  const look = () => {
    for (const each of document.getAnimations()) window.moved.add(each.animationName ?? each.transitionProperty);
    for (const each of document.querySelectorAll('[data-testid=status-tracker] g'))
      if (getComputedStyle(each).transform !== 'none') window.moved.add('loader');
    requestAnimationFrame(look);
  };
  look();
"""
WIDTHS = "all => all.map(each => each.getBoundingClientRect().width)"


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_nothing_moves_for_who_asked_for_that_and_nothing_is_lost(open_page: Open, motion: str) -> None:
    """With motion it is seen to move, so the watching works; without, the bars stand at their ends at once."""
    page = open_page(reduced_motion=motion, prepare=WATCH_MOTION)
    ask(page, question="Who called at the straw house?")
    page.click("#qa-watch")
    page.wait_for_timeout(300)
    times = [number(text) for text in page.locator("#qa-result .qa-bar b").all_inner_texts()]
    widths = page.locator("#qa-result .qa-fill").evaluate_all(WIDTHS)
    at_end = widths[1] / widths[0] == pytest.approx(times[1] / times[0], rel=0.05)
    page.locator("#qa-options > button").focus()
    page.keyboard.press("Enter")
    open_tab(page, "Benchmark")
    page.wait_for_timeout(300)
    moved = page.evaluate("[...window.moved]")
    assert (moved == [], at_end) == (motion == "reduce", motion == "reduce"), moved


def number(text: str) -> float:
    """As in "1,234 ms"."""
    return float(text.split()[0].replace(",", ""))


COUNT_SHIFTS = """
  window.shifts = [];
  new PerformanceObserver(list => {
    for (const {value, hadRecentInput, sources} of list.getEntries())
      if (!hadRecentInput) window.shifts.push([value, sources.map(each => each.node?.id || each.node?.className)]);
  }).observe({type: 'layout-shift', buffered: true});
"""


@SIZES
def test_nothing_jumps_while_the_page_loads_or_measures(open_page: Open, size: dict[str, int]) -> None:
    page = open_page(size=size, prepare=COUNT_SHIFTS)
    page.wait_for_timeout(3000)
    loading = page.evaluate("window.shifts")
    assert sum(value for value, _ in loading) < MOST_SHIFT, loading
    ask(page, question="Who called at the straw house?")
    page.wait_for_timeout(1000)
    asking = page.evaluate("window.shifts")[len(loading) :]
    assert sum(value for value, _ in asking) < MOST_SHIFT, asking


WATCH_THE_TABLE = """
  window.tops = new Set();
  const look = () => {
    const {y, height} = document.querySelector('#qa-bench-table')?.getBoundingClientRect() ?? {};
    if (height) window.tops.add(Math.round(y + scrollY));
    requestAnimationFrame(look);
  };
  look();
"""


@SIZES
def test_what_is_below_the_benchmarks_charts_stands_there_before_they_are_drawn(
    open_page: Open, size: dict[str, int]
) -> None:
    page = open_page(size=size, prepare=WATCH_THE_TABLE)
    open_tab(page, "Benchmark")
    page.wait_for_selector("#qa-bench-chart-6 .barlayer .point")
    page.wait_for_timeout(300)
    tops = page.evaluate("[...window.tops]")
    assert len(tops) == 1, tops


TYPE_AT_ONCE = f"""
  const typeIt = () => {{
    const box = document.querySelector('{BOX}');
    box?.focus();
    if (!box || document.activeElement !== box) return requestAnimationFrame(typeIt);
    box.select();
    document.execCommand('insertText', false, '{QUESTION}');
  }};
  typeIt();
"""


def test_what_is_typed_in_the_first_moment_is_kept_on_a_slow_machine(open_page: Open) -> None:
    """Gradio builds the form before it listens to it; until then the form cannot be reached."""
    page = open_page(prepare=TYPE_AT_ONCE, slower=THROTTLED)
    assert page.locator(BOX).input_value() == QUESTION
    page.press(BOX, "Enter")
    finished(page, QUESTION)
