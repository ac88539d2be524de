"""The page in a real browser: Chromium of the system, driven by Playwright."""

from __future__ import annotations

import re
import threading
import time
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest
from helpers import NARROW, QUESTION, TEXT, WIDE

from qa_backends.progress import Cancelled, Progress

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    Open = Callable[..., Page]


BOX = "#qa-question textarea, #qa-question input"


def ask(page: Page, *, question: str | None = None, context: str | None = None) -> None:
    """Asks by Enter and waits until the comparison is finished."""
    if context is not None:
        page.fill("#qa-context textarea", context)
    if question is not None:
        page.fill(BOX, question)
    page.press(BOX, "Enter")
    finished(page, page.locator(BOX).input_value())


def finished(page: Page, question: str) -> None:
    """Waits until the result of that very question stands there, and nothing more comes."""
    page.wait_for_function(
        """question => {
          const heading = document.querySelector('#qa-result h2');
          const facts = document.querySelector('#qa-result header p');
          return heading && heading.innerText === `“${question}”` && /measured here, /.test(facts.innerText)
            && !document.querySelector('#qa-result [role=status]');
        }""",
        arg=question,
    )
    page.wait_for_selector("#qa-cancel", state="hidden")


def drawn_in_the_chart(page: Page, points: int) -> None:
    """Waits until so many answers of this visit are in the chart, which a question's end adds its own to."""
    page.wait_for_function(
        "points => document.querySelectorAll('#qa-history .scatterlayer .point').length === points", arg=points
    )


def in_sight(page: Page, selector: str) -> bool:
    """Whether the whole element can be seen without scrolling."""
    box, size = page.locator(selector).first.bounding_box(), page.viewport_size
    assert box is not None and size is not None
    return box["y"] >= 0 and box["y"] + box["height"] <= size["height"] and box["x"] >= 0


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["1280x900", "390x844"])
def test_question_button_verdict_and_race_share_one_screen(open_page: Open, size: dict[str, int]) -> None:
    page = open_page(size=size)
    seen = (BOX, "#qa-ask", "#qa-result h2", "#qa-result .qa-headline", "#qa-result li.qa-lane >> nth=1")
    assert [part for part in seen if not in_sight(page, part)] == [], "before anybody asked"
    ask(page, question="Who called at the straw house?")
    assert page.evaluate("scrollY") == 0
    assert [part for part in seen if not in_sight(page, part)] == [], "after asking"
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]


def test_on_a_tablet_too_every_part_of_a_row_is_in_sight(page: Page) -> None:
    ask(page, question=QUESTION, context=TEXT)
    assert page.locator("#qa-result .qa-f1 b").count() == 6
    for width in (620, 768, 1000, 1040):
        page.set_viewport_size({"width": width, "height": 1000})
        over = page.evaluate(
            """() => [...document.querySelectorAll('#qa-result .qa-lane:not(.qa-heads) *')]
                 .filter(each => each.getBoundingClientRect().width > 1)
                 .map(each => [each, each.closest('.qa-result')].map(one => one.getBoundingClientRect().right))
                 .filter(([right, most]) => right > most)"""
        )
        assert over == [], f"{width} wide"


def test_a_long_answer_leaves_a_narrow_row_its_name_and_its_bar(open_page: Open) -> None:
    page = open_page(size=NARROW)
    ask(page, question=QUESTION, context=TEXT)
    rows = page.evaluate(
        """() => [...document.querySelectorAll('#qa-result li.qa-lane')].map(row => {
             const parts = ['.qa-name b', '.qa-answer', '.qa-track'].map(each => row.querySelector(each));
             parts[1].textContent = 'the guard was gone, and so was the hat that Ben had brought';
             return parts.map(each => each.getBoundingClientRect().toJSON());
           })"""
    )
    assert len(rows) == 2
    for name, answer, track in rows:
        assert name["width"] > 40 and name["right"] <= answer["left"] and track["width"] > 40


def test_an_example_is_asked_at_once_and_compared(page: Page) -> None:
    page.click("button:has-text('Moons of Jupiter')")
    finished(page, "Which moon is wider than the planet Mercury?")
    lanes = page.locator("#qa-result li.qa-lane")
    assert lanes.count() == 2
    for number in range(2):
        assert "ms" in lanes.nth(number).locator(".qa-bar").inner_text()
    assert lanes.nth(0).locator(".qa-ratio").inner_text() == "1×"
    answered = [text for text in page.locator("#qa-result .qa-answer").all_inner_texts() if "no answer" not in text]
    marks = "".join(page.locator("#qa-marked mark").all_inner_texts())
    assert answered and all(text in marks for text in answered)
    assert page.locator("#qa-result .qa-chip").count() >= 3
    page.wait_for_function("location.href.includes('q=Which+moon')")
    assert page.url.count("q=") == 1
    times = [float(text.split()[0]) for text in page.locator("#qa-result .qa-bar b").all_inner_texts()]
    page.evaluate("document.getAnimations().forEach(each => each.finish())")  # the race is over
    widths = page.locator("#qa-result .qa-fill").evaluate_all(
        "all => all.map(each => each.getBoundingClientRect().width)"
    )
    assert widths[1] / widths[0] == pytest.approx(times[1] / times[0], rel=0.05), "bars end in proportion"


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["1280x900", "390x844"])
@pytest.mark.usefixtures("slow_baseline")  # else it may be answered before it is cancelled
def test_a_question_can_be_cancelled_and_can_be_read_meanwhile(
    open_page: Open, size: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = open_page(size=size)
    with monkeypatch.context() as patch:
        patch.setattr("qa_backends.web.ask.answering.LIVE_SECONDS", 60)
        page.fill(BOX, "Who called at the straw house?")
        page.click("#qa-ask")
        page.wait_for_selector("#qa-cancel:visible")
        field = page.locator(BOX).bounding_box()
        assert field is not None and field["width"] > size["width"] / 2
        page.click("#qa-cancel")
        page.wait_for_selector("#qa-result:has-text('Cancelled')")
    page.wait_for_selector("#qa-cancel", state="hidden")
    ask(page, question=QUESTION, context=TEXT)


def test_code_at_first_sight_asks_the_app_that_is_seen(page: Page, url: str) -> None:
    page.click("button:has-text('Copy as code')")
    page.wait_for_selector(f".cm-content:has-text({url!r})")


def test_asking_folds_the_choices_so_that_the_answer_is_seen(phone: Page) -> None:
    phone.click("#qa-options > button")
    phone.check("#qa-backends input[name='pruned-ort']")
    ask(phone, question=QUESTION, context=TEXT)
    assert in_sight(phone, "#qa-result .qa-headline strong")


def test_editing_dims_the_result_until_it_is_asked_again(page: Page) -> None:
    ask(page, context=TEXT, question=QUESTION)
    assert page.locator("#qa-result .qa-stale").count() == 0
    page.locator(BOX).press_sequentially(" now")
    page.wait_for_selector("#qa-result .qa-stale")
    ask(page)
    assert page.locator("#qa-result .qa-stale").count() == 0


DIMMED, BRIGHT = "#qa-result .qa-result.qa-stale", "#qa-result .qa-result:not(.qa-stale)"


def test_what_is_not_of_the_form_stays_dimmed_however_it_is_drawn_again(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Measured longer, raced, brought back after an error; an edit that is taken back makes it bright again. The text
    and the question are such as JavaScript and Python count differently."""
    monkeypatch.setattr("qa_backends.web.ask.answering.LONGER_SECONDS", 2.0)
    context, question = f"{TEXT} \U0001f333 è 谁\nBen slept.", f"{QUESTION} \U0001f333"
    ask(page, context=context, question=question)
    assert page.locator(BRIGHT).count() == 1
    page.click("#qa-options > button")
    page.check("#qa-backends input[name='pruned-ort']")
    page.wait_for_selector(DIMMED)
    page.uncheck("#qa-backends input[name='pruned-ort']")
    page.wait_for_selector(BRIGHT)
    page.fill(BOX, "Who slept?")
    page.wait_for_selector(DIMMED)
    assert page.locator("#qa-marked .qa-stale").count() == 1
    page.click("#qa-longer")
    drawn_in_the_chart(page, 4)
    finished(page, question)
    assert page.locator(DIMMED).count() == 1, "measured longer, and still of the question before"
    page.fill(BOX, " ")
    page.click("#qa-ask")
    page.wait_for_selector(".qa-problem")
    page.click("#qa-watch")
    page.wait_for_selector(DIMMED)
    page.fill(BOX, question)
    page.wait_for_selector(BRIGHT)


def test_ctrl_enter_asks_from_the_text(page: Page) -> None:
    page.fill("#qa-context textarea", TEXT)
    page.fill(BOX, QUESTION)
    page.press("#qa-context textarea", "Control+Enter")
    finished(page, QUESTION)


def test_the_marked_answer_is_in_sight_in_a_text_longer_than_its_box(phone: Page) -> None:
    phone.click("button:has-text('Release notes')")
    finished(phone, "Why are users advised to make a backup first?")
    inside = """mark => {
      const box = mark.closest('.qa-text'), frame = box.getBoundingClientRect(), at = mark.getBoundingClientRect();
      return [box.scrollTop > 0, at.top >= frame.top && at.bottom <= frame.bottom]; }"""
    phone.wait_for_timeout(300)
    assert phone.locator("#qa-marked mark").first.evaluate(inside) == [True, True]


def test_what_is_chosen_stands_in_one_line(page: Page) -> None:
    line = page.locator("#qa-options > button")
    assert line.inner_text().startswith("Baseline + Pruned, fused, FP16 · MiniLM · CPU")
    line.click()
    page.locator("#qa-backends label", has_text=re.compile(r"^\s*Pruned, ONNX\s")).click()
    page.wait_for_selector("#qa-options > button:has-text('3 backends · MiniLM · CPU')")


def test_asking_twice_makes_the_chart_grow(page: Page) -> None:
    ask(page, context=TEXT, question=QUESTION)
    drawn_in_the_chart(page, 2)
    ask(page, question="What bore fruit?")
    drawn_in_the_chart(page, 4)


def test_bad_input_gets_a_sentence(page: Page) -> None:
    for context, question, said in (
        ("", "Who?", "There is no text"), (TEXT, " ", "There is no question"), ("word " * 40_001, "Who?", "200,000")
    ):  # fmt: skip
        page.fill("#qa-context textarea", context)
        page.fill(BOX, question)
        page.click("#qa-ask")
        page.wait_for_selector(f".qa-problem:has-text('{said}')")


def test_no_backend_ticked_gets_a_sentence(page: Page) -> None:
    page.click("#qa-options > button")
    while page.locator("#qa-backends input:checked").count():
        page.locator("#qa-backends input:checked").first.uncheck()
    page.click("#qa-ask")
    page.wait_for_selector(".qa-problem:has-text('Tick at least one')")


def test_a_family_that_cannot_be_downloaded_gets_a_sentence_and_a_way_out(page: Page) -> None:
    page.click("#qa-options > button")
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
    assert page.locator("#qa-marked img, #qa-result img, #qa-marked script").count() == 0
    assert hits == []


def test_a_link_asks_by_itself_and_keeps_the_theme(open_page: Open) -> None:
    query = urlencode({"__theme": "dark", "q": QUESTION, "c": TEXT, "family": "minilm", "backends": "baseline,pruned"})
    page = open_page(f"?{query}")
    finished(page, QUESTION)
    assert page.locator("#qa-context textarea").input_value() == TEXT
    assert page.locator("#qa-result .qa-name b").all_inner_texts() == ["Baseline", "Pruned"]
    page.click("button:has-text('Copy as code')")
    page.wait_for_selector(f".cm-content:has-text('{QUESTION}')")
    page.wait_for_function("sessionStorage.getItem('qa-kept')")  # written with the address
    assert "__theme=dark" in page.url and "q=Who+watered" in page.url


def test_a_question_that_pruning_changes_is_found_and_asked(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qa_backends.web.ask.answering.random.shuffle", lambda _questions: None)
    page.click("#qa-find")
    page.wait_for_selector("#qa-result .qa-chip:has-text('Another answer here')")
    line = page.locator("#qa-options > button").inner_text()
    assert line.startswith("Baseline + Pruned, fused, FP16 · "), "the ticks are left as they were"
    first, second = page.locator("#qa-result .qa-answer").all_inner_texts()
    assert first != second.removeprefix("≠").strip()
    page.wait_for_selector("#qa-result .qa-headline.qa-warn")


def test_the_copied_python_asks_the_app_where_it_is_seen(page: Page, url: str) -> None:
    seen = url.replace("127.0.0.1", "localhost")
    page.goto(f"{seen}?{urlencode({'q': QUESTION, 'c': TEXT})}")
    finished(page, QUESTION)
    page.click("button:has-text('Copy as code')")
    page.wait_for_selector(f".cm-content:has-text('Client(\\'{seen}')")


def open_file(page: Page, path: Path) -> None:
    """As a person does: through the button and the browser's own window."""
    with page.expect_file_chooser() as chooser:
        page.click("#qa-open")
    chooser.value.set_files(path)


def test_a_text_file_fills_the_text_and_another_file_gets_a_sentence(page: Page, tmp_path: Path) -> None:
    note, picture = tmp_path / "note.md", tmp_path / "picture.txt"
    note.write_text(TEXT)
    picture.write_bytes(b"\x89PNG\xff\0")
    open_file(page, note)
    page.wait_for_function("text => document.querySelector('#qa-context textarea').value === text", arg=TEXT)
    page.wait_for_selector("#qa-result .qa-stale")  # the result is no longer of this text
    open_file(page, picture)
    page.wait_for_selector("#qa-result [role=alert]:has-text('picture.txt is no text')")
    assert page.locator("#qa-context textarea").input_value() == TEXT


@pytest.mark.parametrize("question", [QUESTION, "谁" * 900], ids=["text", "text-and-question"])
def test_a_reload_shows_the_result_again_although_it_is_too_long_for_the_address(page: Page, question: str) -> None:
    context = f"{TEXT} {'The sun shone on the roofs of the town. ' * 160}"
    ask(page, context=context, question=question)
    page.wait_for_function("sessionStorage.getItem('qa-kept')")  # written with the address, after the result is drawn
    assert "c=" not in page.url.partition("?")[2] and ("q=" in page.url) is (question == QUESTION)
    measured, marks = page.inner_text("#qa-result"), page.locator("#qa-marked mark").count()
    page.reload()
    finished(page, question)
    assert page.locator("#qa-context textarea").input_value() == context
    assert page.locator(BOX).input_value() == question
    assert page.inner_text("#qa-result") == measured, "shown again, not measured again"
    page.wait_for_function("marks => document.querySelectorAll('#qa-marked mark').length === marks", arg=marks)


def test_each_backend_is_explained_where_it_is_chosen(page: Page) -> None:
    page.click("#qa-options > button")
    page.wait_for_selector("#qa-backends label:visible")
    labels = page.locator("#qa-backends label").all_inner_texts()
    for name, label in zip(("baseline", "pruned", "pruned-ort-fp16", "pruned-ort"), labels, strict=False):
        title, what, costs = label.strip().splitlines()
        assert title and what.endswith(".") and costs.startswith(f"{name} · ")
        for said in ("MB on disk", "on SQuAD", "on other texts", "on everyday texts"):
            assert said in costs


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """When the search for a question, which goes on until it is cancelled, is over."""
    found = threading.Event()

    def search(*arguments: object) -> None:
        progress = arguments[-1]
        assert isinstance(progress, Progress)
        try:
            while True:
                progress.say("Looking for a question …")
                time.sleep(0.05)
        except Cancelled:
            found.set()
            raise

    monkeypatch.setattr("qa_backends.web.ask.answering.find_difference", search)
    return found


def test_typing_ends_the_search_that_would_take_its_place(page: Page, ended: threading.Event) -> None:
    page.click("#qa-find")
    page.wait_for_selector("#qa-result:has-text('Looking for')")
    page.locator(BOX).press_sequentially(" Why?")
    page.wait_for_selector("#qa-result .qa-stale:has-text('Cancelled')")
    assert ended.wait(10)
    assert " Why?" in page.locator(BOX).input_value()


def test_asking_ends_the_search_for_another_question(page: Page, ended: threading.Event) -> None:
    page.click("#qa-find")
    page.wait_for_selector("#qa-result:has-text('Looking for')")
    ask(page, context=TEXT, question=QUESTION)
    assert ended.wait(10)
    assert page.locator(BOX).input_value() == QUESTION
    drawn_in_the_chart(page, 2)


READ = (
    "#qa-result h2", ".qa-soft", ".qa-headline strong", ".qa-headline span", ".qa-chip", ".qa-answer", ".qa-bar b",
    ".qa-ratio", ".qa-f1", ".qa-text", ".qa-legend li", ".qa-header p", "#qa-ask", "#qa-context label > span",
    "#qa-options > button", "#qa-backends label:has(input:checked)", "#qa-backends label:not(:has(input:checked))",
    "button[role=tab][aria-selected=true]", ".cm-content, .cm-content *", "label[data-testid=block-label]",
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
    page.click("#qa-options > button")
    page.click("button:has-text('Copy as code')")
    page.wait_for_selector(".cm-content:visible")
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
    page.wait_for_selector("#qa-history .main-svg")
    ask(page)
    for tab in ("Benchmark", "Accuracy"):
        page.get_by_role("tab", name=tab).click()
        page.wait_for_timeout(500)
    context.close()
    assert elsewhere == []


def local(address: str) -> bool:
    return address.startswith(("http://127.0.0.1", "data:", "blob:"))
