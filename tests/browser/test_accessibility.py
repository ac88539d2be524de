"""The page for everybody: by the rules of WCAG 2.2 AA, by keyboard, by ear, from right to left."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import axe_playwright_python
import pytest
from browser.test_measuring import open_tab
from browser.test_page import BOX, ask
from helpers import NARROW, QUESTION, TEXT, WIDE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Page

    Open = Callable[..., Page]

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
EXCEPTIONS: dict[tuple[str, str], str] = {}
"""Rule and selector of what may stay, with the reason. There is nothing."""
HEBREW, HEBREW_QUESTION = "דנה שתלה עץ תפוח מאחורי בית הספר. יואב השקה אותו כל יום.", "מי השקה את העץ?"
LOOKS = pytest.mark.parametrize(
    ("theme", "size"), [("light", WIDE), ("dark", NARROW)], ids=["light-wide", "dark-narrow"]
)
"""Both themes and both sizes: colours do not hang on the size, nor places on the theme."""
THEMES = pytest.mark.parametrize("theme", ["light", "dark"])
COLOURS = """
  const channel = byte => byte / 255 <= 0.04045 ? byte / 255 / 12.92 : ((byte / 255 + 0.055) / 1.055) ** 2.4;
  const luminance = colour => { const [r, g, b] = colour.match(/[0-9.]+/g).map(Number);
    return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b); };
  const contrast = (one, other) => { const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05); };
  const ground = element => { let behind = element;
    while (/rgba\\(.*, 0\\)|transparent/.test(getComputedStyle(behind).backgroundColor)) behind = behind.parentElement;
    return getComputedStyle(behind).backgroundColor; };
"""
"""Contrast as WCAG defines it, and the colour that an element stands on."""


@LOOKS
def test_no_rule_of_wcag_is_broken_in_any_state(open_page: Open, theme: str, size: dict[str, int]) -> None:
    page = open_page(f"?__theme={theme}", size, reduced_motion="reduce")
    page.evaluate(AXE)
    broken = {state: found for state in states(page) if (found := violations(page))}
    assert broken == {}


def states(page: Page) -> Iterator[str]:
    """Brings the page into each of its states, and says which."""
    yield "first sight"
    ask(page, question="Who called at the straw house?")
    yield "after an answer"
    page.locator(BOX).press_sequentially("!")
    page.wait_for_selector("#qa-result .qa-stale")
    yield "after an edit"
    page.click("#qa-options > button")
    for name in ("How to read this", "Copy as code"):
        page.click(f"button:has-text('{name}') >> visible=true")
    page.locator("#qa-result summary").first.click()
    page.wait_for_selector(".cm-content:visible")
    yield "all unfolded"
    page.fill(BOX, " ")
    page.click("#qa-ask")
    page.wait_for_selector(".qa-problem")
    yield "an error"
    for name in ("Benchmark", "Accuracy"):
        open_tab(page, name)
        page.wait_for_timeout(500)
        unfold_all(page)  # what is in sight folded is in sight then too
        yield f"{name}, unfolded"


def unfold_all(page: Page) -> None:
    """Opens every fold in sight, and waits until what is in them is there."""
    for fold in page.locator("button.label-wrap[aria-expanded=false] >> visible=true").element_handles():
        fold.click()
    page.wait_for_selector("fieldset >> visible=true")
    page.wait_for_timeout(500)


def violations(page: Page) -> list[str]:
    """What axe finds: rule, place and reason of each element."""
    found: list[dict[str, Any]] = page.evaluate(
        "async values => (await axe.run({runOnly: {type: 'tag', values}, resultTypes: ['violations']})).violations",
        RULES,
    )
    places = ((rule["id"], " ".join(map(str, node["target"])), node) for rule in found for node in rule["nodes"])
    return [
        f"{rule}: {place}: {node['failureSummary']}" for rule, place, node in places if (rule, place) not in EXCEPTIONS
    ]


FOCUSED = (
    """() => {"""
    + COLOURS
    + """
  const element = document.activeElement;
  if (element === document.body) return null;
  const shown = (element.matches('[type=checkbox], [type=radio]') && element.closest('label')) || element;
  const style = getComputedStyle(shown), box = shown.getBoundingClientRect();
  const out = parseFloat(style.outlineOffset) + parseFloat(style.outlineWidth);
  const ring = {left: box.left - out, top: box.top - out, right: box.right + out, bottom: box.bottom + out};
  const outside = (frame, x, y) => x && (ring.left < frame.left - 0.5 || ring.right > frame.right + 0.5)
    || y && (ring.top < frame.top - 0.5 || ring.bottom > frame.bottom + 0.5);
  const faults = [];
  let opacity = getComputedStyle(shown).opacity;
  for (let each = shown.parentElement; each !== document.body; each = each.parentElement) {
    const {opacity: share, overflowX, overflowY} = getComputedStyle(each);
    opacity *= share;
    if (outside(each.getBoundingClientRect(), overflowX !== 'visible', overflowY !== 'visible'))
      faults.push(`its ring is cut by ${each.tagName} ${each.id || each.className}`);
  }
  if (opacity < 0.9 || !box.width || !shown.checkVisibility({visibilityProperty: true})) faults.push('cannot be seen');
  const whole = {left: 0, top: 0, right: innerWidth, bottom: innerHeight};
  if (outside(whole, true, box.height < innerHeight)) faults.push('is out of sight');
  if (style.outlineStyle !== 'solid' || parseFloat(style.outlineWidth) < 2) faults.push('has no ring');
  const difference = contrast(style.outlineColor, ground(out > 0 ? shown.parentElement : shown));
  if (difference < 3) faults.push(`has a ring of contrast ${difference.toFixed(1)}`);
  const text = (element.innerText || element.value || '').trim().slice(0, 30);
  return {name: `${element.tagName} ${element.id} “${text}”`, faults,
          left: box.left + scrollX, top: box.top + scrollY, bottom: box.bottom + scrollY};
}"""
)
"""The focused element, or the label that shows its focus: where it is, and what keeps its ring from being seen: one of
two pixels at least, whole, with a contrast of at least 3 to what it stands on (1.4.11, 2.4.13)."""


@LOOKS
@pytest.mark.parametrize("tab", ["Ask", "Benchmark", "Accuracy"])
def test_the_tab_key_goes_where_the_eye_goes_and_is_seen_there(
    open_page: Open, tab: str, theme: str, size: dict[str, int]
) -> None:
    page = open_page(f"?__theme={theme}", size, reduced_motion="reduce")
    if tab != "Ask":
        open_tab(page, tab)
        page.wait_for_timeout(1000)
    unfold_all(page)
    page.mouse.click(1, 1)
    stops = list(tab_stops(page))
    assert stops[0]["name"].endswith("“Ask”"), "the tabs come first, and once"
    assert [each for each in stops if each["name"].startswith("INPUT")], "what is unfolded is reached"
    assert [f"{each['name']} {fault}" for each in stops for fault in each["faults"]] == []
    backwards = [
        f"{one['name']} before {other['name']}"
        for one, other in itertools.pairwise(stops)
        if other["bottom"] <= one["top"] and other["left"] <= one["left"]
    ]
    assert backwards == [], "the order is the one of reading"


def tab_stops(page: Page) -> list[dict[str, Any]]:
    """Each element that the tab key comes to, from the top of the page to its end, where it begins again."""
    stops: list[dict[str, Any]] = []
    for _ in range(300):
        page.keyboard.press("Tab")
        stop = page.evaluate(FOCUSED)
        if stops and stop and stop["name"] == stops[0]["name"]:
            return stops
        if stop:  # else the focus is between the page's end and its beginning, or on a chart that is drawn anew
            stops.append(stop)
    raise AssertionError("the tab key never comes to the page's end")


BOXES = {
    "Ask": ("#qa-context textarea", "#qa-question :is(input, textarea)", "#qa-backends input:not(:checked)",
            "#qa-family input:not(:checked)"),
    "Benchmark": ("#qa-fastest-loss input", "#qa-bench-runs input", "#qa-bench-backends input:not(:checked)",
                  "input[role=combobox]"),
}  # fmt: skip
FOLDS = {"Ask": ("#qa-options",), "Benchmark": ("#qa-fastest", "#qa-bench-options", "#qa-bench-view")}
EDGE = (
    """element => {"""
    + COLOURS
    + """
  while (getComputedStyle(element).borderStyle === 'none') element = element.parentElement;  // Gradio frames a wrapper
  return contrast(getComputedStyle(element).borderColor, ground(element.parentElement));
}"""
)
TEXT_ON_GROUND = f"""([element, part]) => {{ {COLOURS}
  return contrast(getComputedStyle(element, part).color, ground(element)); }}"""


@THEMES
def test_boxes_have_edges_that_can_be_seen(open_page: Open, theme: str) -> None:
    """A contrast of at least 3 where a box is told by its edge (1.4.11), of 4.5 for what stands in it."""
    page = open_page(f"?__theme={theme}", reduced_motion="reduce")
    for tab, boxes in BOXES.items():
        if tab != "Ask":
            open_tab(page, tab)
        for fold in FOLDS[tab]:
            page.click(f"{fold} > button")
        for box in boxes:
            element = page.locator(f"{box} >> visible=true").first
            assert element.evaluate(EDGE) >= 3, box
        tab_button = page.get_by_role("tab", selected=True).element_handle()
        assert page.evaluate(TEXT_ON_GROUND, [tab_button, None]) >= 4.5
    page.get_by_role("tab", name="Ask").click()
    for box in BOXES["Ask"][:2]:
        element = page.locator(box).first.element_handle()
        assert page.evaluate(TEXT_ON_GROUND, [element, "::placeholder"]) >= 4.5, box


def direction(page: Page, selector: str) -> tuple[str, str]:
    """Which way an element's text runs, and at which side it begins."""
    found = page.locator(selector).first.evaluate(
        "element => [getComputedStyle(element).direction, getComputedStyle(element).textAlign]"
    )
    return found[0], found[1]


def test_text_from_right_to_left_begins_at_the_right(page: Page) -> None:
    boxes = ("#qa-context textarea", BOX)
    assert [direction(page, box) for box in boxes] == [("ltr", "start")] * 2
    ask(page, context=HEBREW, question=HEBREW_QUESTION)
    results = ("#qa-result h2", "#qa-marked .qa-text")
    assert [direction(page, part) for part in (*boxes, *results)] == [("rtl", "start")] * 4
    open_tab(page, "Accuracy")
    page.get_by_role("tab", name="Ask").click()
    page.wait_for_function("document.querySelectorAll('#qa-form [dir=auto]').length >= 2")  # set a frame after drawing
    assert [direction(page, box) for box in boxes] == [("rtl", "start")] * 2, "also when it is drawn anew"
    ask(page, context=TEXT, question=QUESTION)
    assert [direction(page, part) for part in (*boxes, *results)] == [("ltr", "start")] * 4


@pytest.mark.usefixtures("slow_baseline")
@pytest.mark.parametrize(
    ("tab", "begins", "ends"), [("Ask", "qa-ask", "qa-cancel"), ("Benchmark", "qa-bench-start", "qa-bench-stop")]
)
def test_who_ends_work_by_keyboard_goes_on_from_what_starts_it(
    page: Page, tab: str, begins: str, ends: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qa_backends.web.ask.answering.LIVE_SECONDS", 60)
    if tab != "Ask":
        open_tab(page, tab)
    page.press(f"#{begins}", "Enter")
    page.press(f"#{ends}:enabled", "Enter")
    page.wait_for_selector(f"#{ends}", state="hidden")
    page.wait_for_function("begins => document.activeElement.id === begins", arg=begins)


HEAR = """
  window.heard = [];
  const live = '[role=status]:not([aria-live=off]), [role=alert], [aria-live=polite], [aria-live=assertive]';
  new MutationObserver(changes => {
    const touched = changes.map(each => (each.target.closest ? each.target : each.target.parentElement)?.closest(live));
    const added = changes.flatMap(each => [...each.addedNodes].flatMap(node => !node.querySelectorAll ? []
      : [...(node.matches(live) ? [node] : []), ...node.querySelectorAll(live)]));
    for (const region of new Set([...touched, ...added].filter(Boolean)))
      if (region.innerText.trim()) window.heard.push(region.innerText);
  }).observe(document, {subtree: true, childList: true, characterData: true});
"""


def test_the_verdict_is_said_once_when_it_is_final(open_page: Open) -> None:
    page = open_page(prepare=HEAR)
    assert page.evaluate("window.heard") == [], "what is there from the beginning is read, not announced"
    ask(page, context=TEXT, question=QUESTION)
    page.wait_for_timeout(500)
    (heard,) = page.evaluate("window.heard")
    figure = page.locator("#qa-result .qa-headline strong").inner_text()
    assert QUESTION in heard and figure in heard
    page.click("#qa-watch")
    page.wait_for_timeout(500)
    assert len(page.evaluate("window.heard")) == 1, "a race that is watched again is no news"


def test_the_page_says_what_it_is(page: Page) -> None:
    assert page.locator("html").get_attribute("lang") == "en"
    assert page.title() == page.locator("h1").inner_text() == "Ask once, see every engine answer"
    assert [page.locator(part).count() for part in ("main", "body footer")] == [1, 1]
    assert page.get_by_role("group", name="Backends").count() == 0, "they are folded away"
    fold = page.locator("#qa-options > button")
    assert fold.get_attribute("aria-expanded") == "false"
    fold.click()
    page.get_by_role("group", name="Backends").wait_for()  # drawn and named only now, and once: two would be refused
    page.wait_for_selector("#qa-options > button[aria-expanded=true]")
