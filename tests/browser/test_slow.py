"""The page on a slow machine: a slow engine behind it, or a slow browser in front of it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from browser.conftest import SLOW_S
from browser.test_page import BOX, ask, finished, in_sight
from helpers import QUESTION, TEXT, WIDE

from qa_backends.web.shared.stops import UNFORESEEN

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from qa_backends.runtime import Runtime

    Open = Callable[..., Page]

THROTTLED = 6
"""Times slower than it is: what Chrome's own tools take for a cheap phone."""


SEEN = """(said) => {
    window.qaSeen = false;
    const look = () => { window.qaSeen ||= document.querySelector('#qa-result').innerText.includes(said); };
    new MutationObserver(look).observe(document.querySelector('#qa-result'), {childList: true, subtree: true});
}"""
"""Notes whether the result ever says so."""


def ask_of_a_long_text(page: Page) -> None:
    """Until it is seen to be answered, which goes on for half a minute."""
    page.fill("#qa-context textarea", "It rained all day. " * 6000 + TEXT)  # four windows a call, each of SLOW_S
    page.fill(BOX, QUESTION)
    page.press(BOX, "Enter")
    page.wait_for_selector("#qa-result [role=status]:has-text('window'):has-text('left')")


@pytest.mark.usefixtures("slow_baseline")
def test_where_time_is_too_short_for_turns_an_estimate_is_given_and_called_one(page: Page) -> None:
    ask(page, context=TEXT, question=QUESTION)
    headline = page.locator("#qa-result .qa-headline")
    assert headline.locator("strong").inner_text().startswith(("≈", "Others took"))  # whatever else computes here
    assert "an estimate from one reading of each" in headline.inner_text()
    assert "qa-warn" in (headline.get_attribute("class") or "")
    assert page.locator("#qa-history .scatterlayer .point").count() == 2


@pytest.mark.usefixtures("slow_baseline")
def test_while_a_slow_backend_answers_the_page_says_so_and_can_be_stopped(page: Page) -> None:
    ask_of_a_long_text(page)
    began = time.monotonic()
    page.click("#qa-cancel")
    page.wait_for_selector("#qa-result:has-text('Cancelled')")
    ask(page, context=TEXT, question=QUESTION)
    assert time.monotonic() - began < 20 * SLOW_S, "the long text does not go on behind"


@pytest.mark.usefixtures("slow_baseline")
def test_a_newer_question_replaces_the_one_that_is_being_answered(page: Page) -> None:
    ask_of_a_long_text(page)
    page.evaluate(SEEN, UNFORESEEN[:30])
    began = time.monotonic()
    ask(page, context=TEXT, question="What bore fruit?")
    assert time.monotonic() - began < 20 * SLOW_S, "it does not wait for the long text"
    assert not page.evaluate("window.qaSeen"), "that it was replaced is no failure"
    assert page.locator("#qa-result h2").all_inner_texts() == ["“What bore fruit?”"]


@pytest.mark.usefixtures("slow_baseline")
def test_who_closes_the_page_keeps_nobody_waiting(
    open_page: Open, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qa_backends.web.ask.answering.LIVE_SECONDS", 60)
    page = open_page()
    page.fill("#qa-context textarea", TEXT)
    page.fill(BOX, QUESTION)
    page.press(BOX, "Enter")
    page.wait_for_selector("#qa-result [role=status]:has-text('Taking turns')")
    began = time.monotonic()
    page.close()
    with runtime.turn("cpu"):
        assert time.monotonic() - began < 30


@pytest.mark.parametrize("when", ["is answering", "Taking turns"])
@pytest.mark.usefixtures("slow_baseline")
def test_cancelling_brings_back_the_last_result_with_its_own_marks_and_dims_it(
    page: Page, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(page, question=QUESTION, context=TEXT)
    monkeypatch.setattr("qa_backends.web.ask.answering.LIVE_SECONDS", 60)
    verdict, marks = page.inner_text("#qa-result .qa-headline"), page.locator("#qa-marked mark").all_inner_texts()
    page.fill("#qa-context textarea", "Cara rode home, and Dora stayed for the night.")
    page.fill(BOX, "Who rode home?")
    page.press(BOX, "Enter")
    page.wait_for_selector(f"#qa-result [role=status]:has-text('{when}')")
    page.click("#qa-cancel")
    page.wait_for_selector("#qa-result:has-text('Cancelled')")
    page.wait_for_timeout(1000)
    assert page.inner_text("#qa-result h2") == f"“{QUESTION}”"
    assert page.inner_text("#qa-result .qa-headline") == verdict
    assert page.locator("#qa-marked mark").all_inner_texts() == marks
    assert page.locator("#qa-result .qa-stale, #qa-marked .qa-stale").count() == 2, "the form holds another question"


@pytest.mark.usefixtures("slow_baseline")
def test_measuring_longer_and_cancelling_at_first_sight_leaves_the_recorded_verdict(page: Page) -> None:
    before = page.inner_text("#qa-result .qa-headline")
    page.click("#qa-longer")
    page.wait_for_selector("#qa-result [role=status]:has-text('Taking turns')")
    assert not page.is_visible("#qa-longer") and not page.is_visible("#qa-watch"), "of what would they be?"
    page.click("#qa-cancel")
    page.wait_for_selector("#qa-result:has-text('Cancelled')")
    page.wait_for_selector("#qa-longer:visible")
    assert page.inner_text("#qa-result .qa-headline") == before
    assert page.locator(".qa-stale").count() == 0, "it is of the question in the form"


@pytest.mark.parametrize("slow_baseline", [SLOW_S / 10], indirect=True, ids=["many rounds"])
@pytest.mark.usefixtures("slow_baseline")
def test_what_is_unfolded_and_typed_meanwhile_outlasts_the_next_drawing(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qa_backends.web.ask.answering.LIVE_SECONDS", 10)
    page.fill("#qa-context textarea", TEXT)
    page.fill(BOX, QUESTION)
    page.press(BOX, "Enter")
    page.wait_for_selector("#qa-result [role=status]:has-text('Taking turns')")
    page.evaluate("[...document.querySelectorAll('#qa-result summary')].at(-1).click()")  # whole, between two drawings
    page.locator(BOX).press_sequentially(" now")
    page.wait_for_selector("#qa-result header p:has-text('measured here')")
    assert page.locator("#qa-result details").evaluate_all("all => all.map(each => each.open)") == [False, True]
    assert page.locator("#qa-result .qa-stale").count() == 1, "it is not of the question in the form"


def test_a_slow_browser_shows_the_same(open_page: Open) -> None:
    page = open_page()
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": THROTTLED})
    ask(page, context=TEXT, question=QUESTION)
    for part in (BOX, "#qa-ask", "#qa-result h2", "#qa-result .qa-headline", "#qa-result li.qa-lane >> nth=1"):
        assert in_sight(page, part), part
    page.evaluate(
        """titles => titles.forEach(title => [...document.querySelectorAll('#qa-examples button')]
             .find(each => each.textContent.includes(title)).click())""",
        ["Moons of Jupiter", "Three little pigs"],  # the second before the page has heard of the first
    )
    finished(page, "Who worked a little bit harder?")
    assert page.evaluate("document.documentElement.scrollWidth") <= WIDE["width"]
