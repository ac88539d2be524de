"""Charts in a real browser: one font, names that can be read at a desk and on a phone, nothing hidden or empty."""

from __future__ import annotations

import io
import itertools
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from helpers import NARROW, WIDE
from PIL import Image

from qa_backends.measure.results.shipped import shipped_benchmark
from qa_backends.web.ask.charts import Asked, visit
from qa_backends.web.benchmark import charts
from qa_backends.web.shared.palette import colour

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Locator, Page

    from qa_backends.measure.results.records import BenchmarkRecord

    Open = Callable[..., Page]

SIZES = pytest.mark.parametrize("size", [WIDE, NARROW], ids=["1280x900", "390x844"])
TABS = ("Ask", "Benchmark", "Accuracy")
SIX = ("baseline", "pruned", "pruned-ort", "pruned-ort-fused", "pruned-ort-fp16", "hf-pipeline")
DRAWN = ".js-plotly-plot >> visible=true"
LAST_DRAWN = {"Ask": "#qa-history .scatterlayer .point", "Benchmark": "#qa-bench-chart-6 .barlayer .point"}
"""What is there on a tab once all of its charts are drawn."""
NAMED_AT_THEIR_ENDS = ("#qa-bench-chart-0", "#qa-bench-chart-4", "#qa-bench-chart-5")
"""The benchmark's charts that have a name at the end of each line."""
TOUCHING_PX = 1.5
MEASURED_WITHIN_MS = 240_000
"""Three measurements of at most a minute each."""
TEXTS = """plot => [...plot.querySelectorAll('.main-svg text')]
.filter(each => each.textContent.trim() && each.checkVisibility()).map(each => {
  const {x, y, right, bottom} = each.getBoundingClientRect();
  return {text: each.textContent, box: [x, y, right, bottom], size: parseFloat(getComputedStyle(each).fontSize),
          font: getComputedStyle(each).fontFamily};
})"""
FRAME = "plot => { const {x, y, right, bottom} = plot.getBoundingClientRect(); return [x, y, right, bottom]; }"
CONTRASTS = """plot => {
  const channel = share => share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  const shares = said => { const numbers = said.match(/[0-9.]+/g).map(Number).slice(0, 3);
    return said.startsWith('color(') ? numbers : numbers.map(each => each / 255); };
  const luminance = said => { const [r, g, b] = shares(said).map(channel);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  let behind = plot;
  while (/rgba\\(.*, 0\\)|transparent/.test(getComputedStyle(behind).backgroundColor)) behind = behind.parentElement;
  const ground = luminance(getComputedStyle(behind).backgroundColor);
  return [...plot.querySelectorAll('.main-svg text, .main-svg tspan')].filter(each => each.textContent.trim())
    .filter(each => !each.querySelector('tspan')).map(each => {
      const ink = luminance(getComputedStyle(each).fill);
      return [(Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05), each.textContent];
    });
}"""


def on_tab(page: Page, name: str) -> list[Locator]:
    """The charts in sight on that tab, once their lines are drawn."""
    page.get_by_role("tab", name=name).click()
    page.wait_for_timeout(300)
    if name in LAST_DRAWN:
        page.wait_for_selector(LAST_DRAWN[name])
    return page.locator(DRAWN).all()


def on_tabs(page: Page, *names: str) -> Iterator[Locator]:
    """The charts of one tab after the other."""
    for name in names:
        yield from on_tab(page, name)


def show_all(page: Page) -> None:
    """Ticks every backend there is to be drawn, where the benchmark's charts begin with a few."""
    on_tab(page, "Benchmark")
    bars = page.locator(LAST_DRAWN["Benchmark"]).count()
    page.click("#qa-bench-view > button")
    page.locator("#qa-bench-names").get_by_title("Select/Deselect All").check()
    page.wait_for_selector("#qa-bench-view > button:has-text('all backends')")
    page.wait_for_function(
        """([charts, last, bars]) => {
          const all = document.querySelectorAll('#qa-bench-names input[name]').length;
          return charts.every(chart => document.querySelectorAll(`${chart} .annotation`).length === all)
            && document.querySelectorAll(last).length > bars;
        }""",
        arg=[NAMED_AT_THEIR_ENDS, LAST_DRAWN["Benchmark"], bars],
    )


def boxes(plot: Locator) -> list[tuple[str, list[float]]]:
    return [(each["text"], each["box"]) for each in plot.evaluate(TEXTS)]


def overlap(one: list[float], other: list[float]) -> bool:
    across = min(one[2], other[2]) - max(one[0], other[0])
    down = min(one[3], other[3]) - max(one[1], other[1])
    return across > TOUCHING_PX and down > TOUCHING_PX


def whole_and_apart(plot: Locator) -> None:
    left, top, right, bottom = plot.evaluate(FRAME)
    texts = boxes(plot)
    assert len(texts) > 5
    for text, box in texts:
        assert left <= box[0] and box[2] <= right and top <= box[1] and box[3] <= bottom, text
    lying = [(one, other) for (one, at), (other, there) in itertools.combinations(texts, 2) if overlap(at, there)]
    assert lying == []


def near(shown: tuple[int, ...], ink: tuple[int, ...]) -> bool:
    return all(abs(one - other) <= 3 for one, other in zip(shown, ink, strict=True))


def shipped_of_six() -> list[BenchmarkRecord]:
    """Six backends' records, of which some lie on each other."""
    shipped = shipped_benchmark()
    assert shipped is not None
    return [each for each in shipped.rows if each.name in SIX]


def draw(page: Page, figure: Any) -> Locator:
    """Draws another figure where the visit's chart is."""
    plot = page.locator("#qa-history .js-plotly-plot")
    plot.evaluate(
        "(plot, {data, layout}) => Plotly.react(plot, data, {...layout, autosize: true})", json.loads(figure.to_json())
    )
    page.wait_for_timeout(300)
    return plot


def test_every_chart_has_the_pages_font_in_a_size_that_can_be_read(page: Page) -> None:
    wanted = page.locator(".qa-header h1").evaluate("each => getComputedStyle(each).fontFamily")
    for tab, least in zip(TABS, (1, 7, 0), strict=True):
        plots = on_tab(page, tab)
        assert len(plots) >= least
        for plot in plots:
            texts = plot.evaluate(TEXTS)
            assert {each["font"] for each in texts} == {wanted}
            assert min(each["size"] for each in texts) >= 12


@SIZES
def test_what_a_chart_of_all_backends_says_is_whole_and_apart_and_each_line_named_at_its_end(
    open_page: Open, size: dict[str, int]
) -> None:
    """No title, number or name is cut off by the chart's edge, and none lies on another."""
    shipped = shipped_benchmark()
    assert shipped is not None
    page = open_page(size=size)
    show_all(page)
    for plot in on_tabs(page, "Ask", "Benchmark"):
        whole_and_apart(plot)
    for chart in NAMED_AT_THEIR_ENDS:
        plot = page.locator(chart)
        names = plot.locator(".annotation").all_text_contents()
        assert len(names) == len({each.name for each in shipped.rows}) and any(
            "Pruned, fused," in each for each in names
        )
        assert plot.locator(".legend").count() == 0
        ends = plot.locator(".cartesianlayer .gridlayer").first.bounding_box()
        assert ends is not None
        for name in plot.locator(".annotation").all():
            box = name.bounding_box()
            assert box is not None and ends["x"] + ends["width"] <= box["x"] + 1 <= ends["x"] + ends["width"] + 30


def test_nothing_stands_over_a_chart_until_it_is_pointed_at(page: Page) -> None:
    for plot in on_tabs(page, "Ask", "Benchmark"):
        page.mouse.move(1, 1)
        shown = "button => button.checkVisibility({opacityProperty: true})"
        buttons = plot.locator(".modebar-btn")
        page.wait_for_timeout(300)
        assert not any(button.evaluate(shown) for button in buttons.all())
        plot.scroll_into_view_if_needed()
        plot.hover(position={"x": 5, "y": 5})
        page.wait_for_timeout(400)
        seen = [button.get_attribute("aria-label") for button in buttons.all() if button.evaluate(shown)]
        assert seen == ["Download plot as a PNG"]


def test_on_a_touch_screen_nothing_stands_over_a_chart(open_page: Open) -> None:
    page = open_page(size=NARROW, is_mobile=True, has_touch=True)
    for plot in on_tabs(page, "Ask", "Benchmark"):
        plot.tap(position={"x": 100, "y": 100})
        assert not any(each.is_visible() for each in plot.locator(".modebar-btn").all())


@SIZES
def test_every_line_can_be_seen_also_where_lines_coincide(open_page: Open, size: dict[str, int]) -> None:
    """Counts the pixels of each backend's colour between the names and the axis."""
    rows, page = shipped_of_six(), open_page(size=size)
    for figure in (charts.latency(rows, log=False), charts.throughput(rows)):
        plotted = draw(page, figure).locator(".draglayer .nsewdrag").first
        plotted.scroll_into_view_if_needed()
        page.mouse.move(1, 1)
        page.wait_for_timeout(300)
        box = plotted.bounding_box()
        assert box is not None
        image = Image.open(io.BytesIO(page.screenshot(clip=box))).convert("RGB")  # type: ignore[arg-type]  # a box
        found = image.getcolors(maxcolors=2**24)
        assert found is not None
        for name in SIX:
            ink = tuple(int(colour(name)[at : at + 2], 16) for at in (1, 3, 5))
            pixels = sum(count for count, shown in found if isinstance(shown, tuple) and near(shown, ink))
            assert pixels >= box["width"] / 3, name


@SIZES
def test_many_lines_are_named_apart_too(open_page: Open, size: dict[str, int]) -> None:
    """Twelve in the benchmark, and a visit's seven backends, of which three take the same time."""
    shipped = shipped_benchmark()
    assert shipped is not None
    rows = [replace(each, device=device) for each in shipped_of_six() for device in ("cpu", "cuda")]
    names = ("baseline", "pruned", "pruned-ort", "pruned-ort-fused", "pruned-ort-fp16", "baseline-ort", "pruned-fake")
    times = (60.0, 31.0, 25.4, 25.4, 25.5, 49.0, 2.0)
    asked = [Asked("Who?", tokens, {("minilm", name, "cpu"): ms * tokens / 268
                                    for name, ms in zip(names, times, strict=True)})
             for tokens in (268, 40, 96, 180, 268)]  # fmt: skip
    page = open_page(size=size)
    for figure, count in ((charts.throughput(rows), 12), (visit(asked, shipped), 7)):
        plot = draw(page, figure)
        assert plot.locator(".annotation").count() == count
        whole_and_apart(plot)


FITTED = """() => {
  const plots = [...document.querySelectorAll('.js-plotly-plot')].filter(each => each.checkVisibility());
  return plots.length === 7 && plots.every(each => each.clientWidth === each.querySelector('.main-svg').clientWidth);
}"""


def test_a_chart_has_the_width_of_its_place_also_when_the_window_changed_on_another_tab(page: Page) -> None:
    """Plotly does not follow the window where it is not shown."""
    on_tab(page, "Benchmark")
    page.get_by_role("tab", name="Ask").click()
    page.set_viewport_size(NARROW)  # type: ignore[arg-type]  # a size
    page.wait_for_timeout(1_000)
    on_tab(page, "Benchmark")
    page.wait_for_function(FITTED)


def test_there_is_no_empty_frame_before_anybody_asked(page: Page) -> None:
    grid = "#qa-history .gridlayer path"
    assert page.locator("#qa-history .scatterlayer .point").count() >= 2, "what is recorded is drawn"
    assert page.locator(grid).count() > 0
    plot = draw(page, visit([], None))
    assert page.locator(grid).count() == 0 and plot.locator(".xtick, .ytick").count() == 0
    assert "Ask something" in " ".join(text for text, _ in boxes(plot))


def test_charts_of_what_was_not_measured_are_left_out_with_a_sentence(page: Page) -> None:
    assert len(on_tab(page, "Benchmark")) == 7
    page.click("#qa-bench-options > button")
    for box, kept in (("#qa-bench-lengths", "32"), ("#qa-bench-batches", "1")):
        page.wait_for_selector(f"{box} label")  # drawn only when it is unfolded
        for label in page.locator(f"{box} label:has(input)").all():
            label.locator("input").set_checked(label.inner_text().strip() == kept)
    page.locator("#qa-bench-runs input").fill("5")
    page.locator("#qa-bench-seconds input").fill("60")
    page.click("#qa-bench-start")
    page.wait_for_selector("#qa-bench-to-fill:has-text('two batch sizes or more')", timeout=MEASURED_WITHIN_MS)
    page.wait_for_selector("#qa-bench-stop", state="hidden", timeout=MEASURED_WITHIN_MS)
    page.wait_for_function(  # they are drawn once more with the last word
        """() => {
          const plots = [...document.querySelectorAll('.js-plotly-plot')].filter(each => each.checkVisibility());
          return plots.length === 4 && plots.every(each => each.querySelector('.trace, .point'));
        }"""
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_charts_read_well_in_light_and_dark(open_page: Open, theme: str) -> None:
    """Contrast of at least 4.5, the Web Content Accessibility Guidelines' level AA."""
    page = open_page(f"?__theme={theme}")
    for plot in on_tabs(page, "Ask", "Benchmark"):
        found = plot.evaluate(CONTRASTS)
        assert len(found) > 5
        assert [text for contrast, text in found if contrast < 4.5] == []
