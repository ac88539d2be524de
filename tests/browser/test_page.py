"""The page in a real browser: Chromium of the system, driven by Playwright."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest
from helpers import QUESTION, TEXT

from qa_backends.progress import Cancelled, Progress

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Browser, Page

    Open = Callable[..., Page]


def ask(page: Page, *, question: str | None = None, context: str | None = None) -> None:
    """Asks and waits until the comparison is finished, which is when the replay appears."""
    before = page.locator("#qa-replay .qa-replay").evaluate_all("all => all.map(each => each.innerHTML).join()")
    if context is not None:
        page.fill("#qa-context textarea", context)
    if question is not None:
        page.fill("#qa-question textarea, #qa-question input", question)
    page.press("#qa-question textarea, #qa-question input", "Enter")
    page.wait_for_function(
        "before => { const now = [...document.querySelectorAll('#qa-replay .qa-replay')];"
        " return now.length && now.map(each => each.innerHTML).join() !== before; }",
        arg=before,
    )


def test_an_example_is_answered_with_cards_marks_and_a_chart(page: Page) -> None:
    page.click("button:has-text('The three little pigs')")
    ask(page)
    cards = page.locator("#qa-cards .qa-card")
    assert cards.count() == 2
    for number in range(2):
        assert "ms" in cards.nth(number).locator(".qa-time").inner_text()
        assert "confident" in cards.nth(number).inner_text()
    assert "the baseline" in cards.nth(0).inner_text()
    answered = [text for text in page.locator(".qa-answer").all_inner_texts() if text != "no answer in this text"]
    marks = "".join(page.locator("#qa-marked mark").all_inner_texts())
    assert all(text in marks for text in answered)
    assert page.locator("#qa-latency .bars path").count() >= 6, "three parts of two backends"
    assert page.locator("#qa-verdict").inner_text().strip()
    assert page.url.count("q=Who+worked") == 1


def test_asking_twice_makes_the_history_grow(page: Page) -> None:
    ask(page, context=TEXT, question=QUESTION)
    page.wait_for_selector("#qa-history .scatterlayer .point")
    once = page.locator("#qa-history .scatterlayer .point").count()
    ask(page, question="What bore fruit?")
    page.wait_for_function(
        "once => document.querySelectorAll('#qa-history .scatterlayer .point').length > once", arg=once
    )
    assert page.locator("#qa-history .scatterlayer .point").count() == 2 * once


@pytest.mark.parametrize(
    ("context", "question", "said"),
    [("", "Who?", "There is no text"), (TEXT, " ", "There is no question"), ("word " * 40_001, "Who?", "200,000")],
    ids=["no text", "no question", "too long"],
)
def test_bad_input_gets_a_sentence(page: Page, context: str, question: str, said: str) -> None:
    page.fill("#qa-context textarea", context)
    page.fill("#qa-question textarea, #qa-question input", question)
    page.click("#qa-ask")
    page.wait_for_selector(f".qa-problem:has-text('{said}')")


def test_no_backend_ticked_gets_a_sentence(page: Page) -> None:
    while page.locator("#qa-backends input:checked").count():
        page.locator("#qa-backends input:checked").first.uncheck()
    page.click("#qa-ask")
    page.wait_for_selector(".qa-problem:has-text('Tick at least one')")


def test_a_family_that_cannot_be_downloaded_gets_a_sentence_and_a_way_out(page: Page) -> None:
    page.click("#qa-family label:has-text('BERT-large')")
    page.click("#qa-ask")
    page.wait_for_selector(".qa-problem:has-text('Connect to the internet')")


def test_text_is_shown_as_text(page: Page) -> None:
    hits: list[str] = []
    page.on("dialog", lambda dialog: (hits.append(dialog.message), dialog.dismiss()))
    evil = "Ben said <script>alert('hit')</script><img src=x onerror=alert('hit')> ${6*7} {{6*7}} **bold** to Anna."
    ask(page, context=evil, question="<b>Who</b> said it?")
    assert "<script>alert('hit')</script>" in page.locator("#qa-marked .qa-text").inner_text()
    assert "${6*7} {{6*7}} **bold**" in page.locator("#qa-marked .qa-text").inner_text()
    assert page.locator("#qa-marked img, #qa-cards img, #qa-marked script").count() == 0
    assert hits == []


def test_a_link_reopens_the_question(open_page: Open) -> None:
    query = urlencode({"q": QUESTION, "c": TEXT, "family": "minilm", "backends": "baseline,pruned"})
    page = open_page(f"?{query}")
    page.wait_for_function("text => document.querySelector('#qa-context textarea').value === text", arg=TEXT)
    assert page.locator("#qa-backends input:checked").count() == 2
    assert page.locator("#qa-backends label:has(input:checked)").all_inner_texts() == ["Baseline", "Pruned"]


def test_a_question_that_pruning_changes_is_found_and_asked(page: Page) -> None:
    page.click("#qa-find")
    page.wait_for_selector("#qa-cards .qa-card:has-text('not the baseline')")
    assert page.locator("#qa-backends label:has(input:checked)").all_inner_texts() == ["Baseline", "Pruned"]
    first, second = page.locator("#qa-cards .qa-answer").all_inner_texts()
    assert first != second


def test_asking_ends_the_search_for_another_question(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    def search(*arguments: object) -> None:
        """A search that goes on until it is cancelled."""
        progress = arguments[-1]
        assert isinstance(progress, Progress)
        try:
            while True:
                progress.say("Looking for a question …")
                time.sleep(0.05)
        except Cancelled:
            ended.set()
            raise

    monkeypatch.setattr("qa_backends.web.ask.tab.find_difference", search)
    page.click("#qa-find")
    page.wait_for_selector("#qa-verdict:has-text('Looking for')")
    ask(page, context=TEXT, question=QUESTION)
    assert ended.wait(10)
    assert page.locator("#qa-question textarea, #qa-question input").input_value() == QUESTION
    assert page.locator("#qa-history .scatterlayer .point").count() == 2, "one question, two backends"


def test_it_fits_a_phone(phone: Page) -> None:
    ask(phone)
    width = phone.viewport_size["width"] if phone.viewport_size else 0
    assert phone.evaluate("document.documentElement.scrollWidth") <= width
    card = phone.locator("#qa-cards .qa-card").first.bounding_box()
    assert card is not None and card["x"] >= 0 and card["x"] + card["width"] <= width


READ = (
    ".qa-answer", ".qa-time b", ".qa-time span", ".qa-parts", ".qa-text", ".qa-legend li", ".qa-header p", "#qa-ask",
    "#qa-context label > span", "#qa-backends label:has(input:checked)", "#qa-backends label:not(:has(input:checked))",
    ".cm-content, .cm-content *", "label[data-testid=block-label]",
)  # fmt: skip
CONTRAST = """element => {
  const channel = byte => byte / 255 <= 0.03928 ? byte / 255 / 12.92 : ((byte / 255 + 0.055) / 1.055) ** 2.4;
  const luminance = colour => { const [r, g, b] = colour.match(/[0-9.]+/g).map(Number);
    return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b); };
  let behind = element;
  while (/rgba\\(.*, 0\\)|transparent/.test(getComputedStyle(behind).backgroundColor)) behind = behind.parentElement;
  const [one, other] = [getComputedStyle(element).color, getComputedStyle(behind).backgroundColor].map(luminance);
  return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_reads_well_in_light_and_dark(open_page: Open, theme: str) -> None:
    """Contrast of at least 4.5, the Web Content Accessibility Guidelines' level AA."""
    page = open_page(f"?__theme={theme}")
    ask(page)
    page.click("button:has-text('Copy as code')")
    page.wait_for_selector(".cm-content")
    for place in READ:
        shown = page.locator(f"{place} >> visible=true").all()
        assert shown, f"{place} is nowhere on the page"
        for element in shown:
            assert element.evaluate(CONTRAST) >= 4.5, place


def test_no_request_leaves_the_machine(browser: Browser, url: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(60_000)
    elsewhere: list[str] = []
    page.on("request", lambda request: None if local(request.url) else elsewhere.append(request.url))
    page.goto(url)
    page.wait_for_selector("#qa-latency .main-svg")
    ask(page)
    for tab in ("Benchmark", "Accuracy"):
        page.get_by_role("tab", name=tab).click()
        page.wait_for_timeout(500)
    context.close()
    assert elsewhere == []


def local(address: str) -> bool:
    return address.startswith(("http://127.0.0.1", "data:", "blob:"))
