"""Tables in a real browser: sorted, filtered and scrolled, also while they grow."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
from browser.test_accessibility import COLOURS
from helpers import NARROW, WIDE

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

BENCHMARK, ACCURACY = "#qa-bench-table", "#qa-accuracy-table"
TABS = {BENCHMARK: "Benchmark", ACCURACY: "Accuracy"}
P50, AGAINST, WHAT_RAN = "p50", "against baseline", "what ran"


def opened(page: Page, table: str) -> Locator:
    """The table, on its tab, once its script has seen it."""
    page.get_by_role("tab", name=TABS[table]).click()
    page.wait_for_selector(f"{table} .qa-table[data-arranged]")
    return page.locator(f"{table} .qa-table").first


def head(table: Locator, title: str) -> Locator:
    return table.locator("th", has_text=title).locator("button")


def column(table: Locator, title: str) -> list[str]:
    """What the rows in sight say in that column, from top to bottom."""
    found: list[str] = table.evaluate(
        """(table, title) => {
          const place = [...table.querySelectorAll('th')].findIndex(each => each.textContent.includes(title));
          return [...table.querySelectorAll('tbody tr')].filter(row => row.checkVisibility())
            .map(row => row.cells[place].textContent);
        }""",
        title,
    )
    return found


def number(said: str) -> float:
    return float(said.split("×")[0].replace(",", ""))


def hidden(said: str) -> float:
    """The most that rounding to the digits that are shown can have taken away or added."""
    return 0.5 * 10.0 ** -len(said.partition(".")[2])


def sorted_by(table: Locator) -> list[str | None]:
    return [each.get_attribute("aria-sort") for each in table.locator("th").all()]


def test_a_column_of_numbers_sorts_as_numbers_up_then_down_then_as_it_was(page: Page) -> None:
    table = opened(page, BENCHMARK)
    before = column(table, P50)
    assert sorted(before) != sorted(before, key=number), "as text, 9 would come behind 10"
    head(table, P50).click()
    assert column(table, P50) == sorted(before, key=number)
    assert sorted_by(table).count("ascending") == 1
    head(table, P50).click()
    assert column(table, P50) == sorted(before, key=number, reverse=True)
    assert sorted_by(table).count("descending") == 1 and "ascending" not in sorted_by(table)
    head(table, P50).click()
    assert column(table, P50) == before
    assert set(sorted_by(table)) == {None}


def test_what_has_no_value_comes_last_whichever_way(page: Page) -> None:
    table = opened(page, BENCHMARK)
    without = column(table, AGAINST).count("–")
    assert without > 0
    for reverse in (False, True):
        head(table, AGAINST).click()
        said = column(table, AGAINST)
        assert said[-without:] == ["–"] * without
        shown = [each.split("×")[0] for each in said[:-without] if not each.startswith("tie")]
        rising = shown[::-1] if reverse else shown
        for low, high in itertools.pairwise(rising):
            assert number(low) <= number(high) + hidden(low) + hidden(high), "but for what rounding hides"


def test_a_key_sorts_and_the_focus_stays(page: Page) -> None:
    table = opened(page, BENCHMARK)
    head(table, "backend").focus()
    page.keyboard.press("Tab")
    for key, order in (("Enter", "ascending"), ("Space", "descending")):
        page.keyboard.press(key)
        assert "aria-sort" in page.evaluate("document.activeElement.parentElement.getAttributeNames()")
        assert sorted_by(table)[1] == order


def test_a_filter_narrows_as_one_types_and_says_so(page: Page) -> None:
    table = opened(page, BENCHMARK)
    everything = len(column(table, P50))
    field = table.get_by_label("Filter")
    field.press_sequentially("fused 64")
    left = column(table, "backend")
    assert 0 < len(left) < everything and all("fused" in each for each in left)
    assert table.get_by_role("status").inner_text() == f"{len(left)} of {everything} shown"
    head(table, P50).click()
    assert column(table, P50) == sorted(column(table, P50), key=number), "what is left is sorted too"
    assert len(column(table, P50)) == len(left)
    field.press_sequentially(" nonsense")
    assert column(table, P50) == []
    assert table.get_by_role("status").inner_text() == f"0 of {everything} shown"
    assert table.get_by_text("Nothing matches").is_visible()
    field.fill("")
    assert len(column(table, P50)) == everything
    assert not table.get_by_text("Nothing matches").is_visible()
    assert table.get_by_role("status").inner_text() == f"{everything} measurements"


def test_a_filter_finds_a_number_as_it_is_shown(page: Page) -> None:
    table = opened(page, ACCURACY)
    table.get_by_label("Filter").fill("11,873 baseline")
    assert column(table, "texts") == ["SQuAD"] and column(table, "backend") == ["Baseline"]


def measured(page: Page, limit: int) -> None:
    """Two backends are measured on a few of the app's own questions."""
    if not page.locator("#qa-accuracy-limit input").is_visible():
        page.click("#qa-accuracy-options > button")
    page.locator("#qa-accuracy-limit input").fill(str(limit))
    page.click("#qa-accuracy-start")
    page.wait_for_function(
        """limit => {
          const questions = [...document.querySelectorAll('#qa-accuracy-table tbody td')].map(each => each.textContent);
          const said = document.querySelector('#qa-accuracy-progress').textContent;
          return questions.includes(limit) && said.includes('Done');
        }""",
        arg=str(limit),
        timeout=180_000,
    )


def test_sort_and_filter_survive_an_update(page: Page) -> None:
    table = opened(page, ACCURACY)
    table.get_by_label("Filter").fill("other")
    left = column(table, "backend")
    for _ in range(2):
        head(table, "backend").click()
    assert len(column(table, "backend")) == len(left)
    measured(page, limit=8)
    assert column(table, "backend") == ["Pruned, fused, FP16", "Baseline"]
    assert column(table, "questions") == ["8", "8"]
    assert sorted_by(table)[0] == "descending"
    assert table.get_by_label("Filter").input_value() == "other"
    assert table.get_by_role("status").inner_text() == "2 of 2 shown"
    table.get_by_label("Filter").fill("fp16")
    measured(page, limit=9)
    assert column(table, "questions") == ["9"]
    assert table.get_by_role("status").inner_text() == "1 of 2 shown"


def test_what_was_folded_below_a_table_stays_so_when_it_is_drawn_again(page: Page) -> None:
    opened(page, ACCURACY)
    ran = page.locator("#qa-accuracy-table details.qa-ran")
    assert ran.get_attribute("open") is not None
    ran.locator("summary").click()
    measured(page, limit=8)
    page.wait_for_selector("#qa-accuracy-caption:has-text('Your measurement')")
    assert ran.get_attribute("open") is None


def box(table: Locator) -> Locator:
    return table.locator(".qa-scroll")


def scrolled(table: Locator, x: int, y: int) -> None:
    box(table).evaluate("(box, [x, y]) => box.scrollTo({left: x, top: y, behavior: 'instant'})", [x, y])
    table.page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


WHERE = """(box, selector) => {
  const cell = box.querySelector(selector), at = cell.getBoundingClientRect(), frame = box.getBoundingClientRect();
  const top = document.elementFromPoint(at.x + at.width / 2, at.y + at.height / 2);
  return {x: at.x - frame.x, y: at.y - frame.y, shown: cell.contains(top),
          ground: getComputedStyle(cell).backgroundColor};
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_first_column_and_the_head_stay_in_place_and_nothing_shows_through(open_page: Any, theme: str) -> None:
    table = opened(open_page(f"?__theme={theme}", NARROW), BENCHMARK)
    first, above = "tbody tr:nth-child(12) td", "th:nth-child(7)"
    table.scroll_into_view_if_needed()
    places = []
    for at in ((0, 400), (300, 400), (300, 500)):
        scrolled(table, *at)
        places.append((box(table).evaluate(WHERE, first), box(table).evaluate(WHERE, above)))
    assert {round(cell["x"]) for cell, _ in places} == {1}, "the box's edge is one pixel"
    assert {round(top["y"]) for _, top in places} == {1}
    moved = [top["x"] for _, top in places]
    assert moved[0] - moved[1] == 300, "the other columns do scroll"
    for cell, top in places[1:]:
        for each in (cell, top):
            assert each["shown"] and each["ground"].startswith("rgb("), "an opaque ground"


def cues(table: Locator) -> set[str]:
    """The sides on which a shadow is drawn."""
    found: list[str] = table.locator(".qa-frame").evaluate(
        """frame => {
          const sizes = getComputedStyle(frame, '::after').backgroundSize.split(', ').map(each => each.split(' '));
          const drawn = {left: sizes[0][0], above: sizes[1][1], right: sizes[2][0], below: sizes[3][1]};
          return Object.keys(drawn).filter(side => parseFloat(drawn[side]) > 0);
        }"""
    )
    return set(found)


def test_a_cue_is_where_the_table_goes_on_and_nowhere_else(phone: Page) -> None:
    table = opened(phone, BENCHMARK)
    phone.wait_for_selector(f"{BENCHMARK} .qa-frame[data-right][data-below]")  # once the table has its size
    assert cues(table) == {"right", "below"}
    scrolled(table, 200, 200)
    assert cues(table) == {"left", "right", "above", "below"}
    scrolled(table, 100_000, 100_000)
    assert cues(table) == {"left", "above"}
    scrolled(table, 0, 0)
    table.get_by_label("Filter").fill("pipeline 512")
    assert cues(table) == {"right"}, "a row is left, which needs no scrolling down"


def test_a_table_fits_a_desk_and_then_has_no_cue_at_its_sides(page: Page) -> None:
    for table in (BENCHMARK, ACCURACY):
        page.set_viewport_size(WIDE)
        shown = opened(page, table)
        page.wait_for_function("table => !document.querySelector(table + ' .qa-frame[data-right]')", arg=table)
        assert not cues(shown) & {"left", "right"}
        assert box(shown).evaluate("box => box.scrollWidth - box.clientWidth") == 0
        page.set_viewport_size({"width": 800, "height": 900})
        page.wait_for_function("table => document.querySelector(table + ' .qa-frame[data-right]')", arg=table)
        assert "right" in cues(shown)


def test_numbers_end_at_the_same_place_with_digits_of_one_width(page: Page) -> None:
    for table in (BENCHMARK, ACCURACY):
        numbers_end_together(opened(page, table))


def numbers_end_together(shown: Locator) -> None:
    ends = shown.evaluate(
        """table => [...table.querySelectorAll('th.qa-number')].map(th => {
          const right = node => {
            const range = document.createRange();
            range.selectNodeContents(node);
            const parts = [...range.getClientRects()].filter(each => each.width);
            return Math.round(Math.max(...parts.map(each => each.right)));
          };
          const cells = [...table.querySelectorAll('tbody tr')].map(row => row.cells[th.cellIndex]);
          return [...new Set([th.querySelector('button'), ...cells].map(right))];
        })"""
    )
    assert len(ends) >= 8 and all(max(each) - min(each) <= 1 for each in ends), ends
    assert shown.locator("td").nth(3).evaluate("cell => getComputedStyle(cell).fontVariantNumeric") == "tabular-nums"
    assert shown.locator("td").first.evaluate("cell => getComputedStyle(cell).textAlign") == "left"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_is_soft_or_amber_in_a_table_can_be_read(open_page: Any, theme: str) -> None:
    """Also what axe leaves undecided, since the cues lie over it."""
    page = open_page(f"?__theme={theme}")
    for table in (BENCHMARK, ACCURACY):
        found = opened(page, table).evaluate(
            f"""table => {{
              {COLOURS}
              const kinds = ['td', 'td small', 'td em', 'th button', 'th span', 'td:last-child', '.qa-shown', 'label'];
              return kinds.map(kind => table.querySelector(kind))
                .map(each => contrast(getComputedStyle(each).color, ground(each)));
            }}"""
        )
        assert min(found) >= 4.5, found
