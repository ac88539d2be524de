"""The benchmark and the accuracy tab in a real browser."""

from __future__ import annotations

import csv
import json
import shlex
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browser.conftest import SLOW_S
from browser.test_page import BOX, finished
from helpers import ROOT
from typer.testing import CliRunner

from qa_backends.cli import app
from qa_backends.paths import OWN_QUESTIONS
from qa_backends.web.accuracy import tab as accuracy
from qa_backends.web.benchmark import fastest
from qa_backends.web.benchmark import tab as benchmark

if TYPE_CHECKING:
    from playwright.sync_api import Page

BUILT_AND_MEASURED = 180_000
"""Milliseconds within which a backend is built, and a few questions are read, on any machine."""
UPLOADED = "#qa-accuracy-file .file-preview"
"""The file that Start would measure; while it is still on its way, its name stands elsewhere."""
BENCHMARK = ROOT / "assets" / "results" / "benchmark-cpu.json"


LOGARITHMIC = (
    "[...document.querySelectorAll('.js-plotly-plot')].flatMap(({layout}) => [layout.xaxis, layout.yaxis])"
    ".filter(axis => axis?.type === 'log')"
)
"""Axes of the charts that are shown."""


SEEN_FOR_A_MOMENT = """selector => {
  window.seen = false;
  new MutationObserver(() => {
    const found = document.querySelector(selector);
    if (found?.checkVisibility({visibilityProperty: true})) window.seen = true;
  }).observe(document, {subtree: true, childList: true, attributes: true});
}"""
"""From now on ``window.seen`` tells whether what is selected was ever visible."""


def open_tab(page: Page, name: str) -> None:
    page.get_by_role("tab", name=name).click()
    page.wait_for_selector({"Benchmark": "#qa-bench-start", "Accuracy": "#qa-accuracy-start"}[name])


def unfold(page: Page, options: str) -> None:
    """Shows what there is to choose from."""
    page.click(f"{options} > button")
    page.wait_for_selector(f"{options} input[type=checkbox]")


def points(page: Page) -> int:
    return page.locator("#qa-bench-chart-0 .scatterlayer .point").count()


def saved(page: Page, button: str, folder: Path) -> Path:
    with page.expect_download() as download:
        page.click(button)
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def chosen(page: Page, button: str, path: Path) -> None:
    with page.expect_file_chooser() as chooser:
        page.click(button)
    chooser.value.set_files(path)


def test_results_that_ship_are_shown_with_machine_and_date(page: Page) -> None:
    open_tab(page, "Benchmark")
    content = json.loads(BENCHMARK.read_text(encoding="utf-8"))
    caption = page.locator("#qa-bench-caption").inner_text()
    assert "Ships with the app" in caption
    assert content["machine"]["processor"] in caption and content["machine"]["date"] in caption
    page.wait_for_selector("#qa-bench-chart-0 .scatterlayer .point")
    assert page.locator("#qa-bench-table tbody tr").count() == len(content["rows"])
    page.wait_for_selector("#qa-bench-command .cm-content:has-text('python -m qa_backends bench')")
    open_tab(page, "Accuracy")
    caption = page.locator("#qa-accuracy-caption").inner_text()
    for said in ("Ships with the app", "11,873 questions of SQuAD v2.0 dev", "all 294 questions that ship", "only to"):
        assert said in caption, said
    shown = page.locator("#qa-accuracy-table tbody tr").all_inner_texts()
    for data in ("SQuAD", "other texts", "everyday texts"):
        assert sum(data in each for each in shown) >= 5, f"the main ones on {data}"


@pytest.mark.parametrize("slow_baseline", [SLOW_S / 10], indirect=True, ids=["slow enough to be watched"])
@pytest.mark.usefixtures("slow_baseline")
def test_a_benchmark_is_started_watched_stopped_and_downloaded(page: Page, tmp_path: Path) -> None:
    open_tab(page, "Benchmark")
    unfold(page, "#qa-bench-options")
    page.locator("#qa-bench-backends input[name='pruned-ort-fp16']").uncheck()
    page.locator("#qa-bench-runs input").fill("5")
    page.click("#qa-bench-view > button")
    page.click("#qa-bench-start")
    page.wait_for_selector("#qa-bench-progress [role=progressbar]")
    page.get_by_label("Logarithmic latency").check()
    page.wait_for_selector("#qa-bench-caption:has-text('Your measurement')")
    measured = page.locator("#qa-bench-names input[name]")
    assert measured.evaluate_all("all => all.map(each => [each.name, each.checked])") == [["baseline", True]]
    page.wait_for_selector("#qa-bench-progress:has-text('left')")
    seen = points(page)
    page.wait_for_function(
        "seen => document.querySelectorAll('#qa-bench-chart-0 .scatterlayer .point').length > seen", arg=seen
    )
    early = json.loads(saved(page, "#qa-bench-json", tmp_path).read_text())
    assert {row["backend"] for row in early["rows"]} == {"minilm/baseline"}, "what is shown so far, not what ships"
    page.click("#qa-bench-stop")
    page.wait_for_selector("#qa-bench-progress:has-text('Stopped; kept')")
    page.wait_for_selector("#qa-bench-stop", state="hidden")  # drawn for the last time
    page.wait_for_function(f"{LOGARITHMIC}.length > 0")
    page.get_by_label("Logarithmic latency").uncheck()
    page.wait_for_function(f"{LOGARITHMIC}.length === 0")
    rows = page.locator("#qa-bench-table tbody tr").count()
    assert rows >= 2
    content = json.loads(saved(page, "#qa-bench-json", tmp_path).read_text())
    assert not content["complete"] and len(content["rows"]) == rows
    assert {row["backend"] for row in content["rows"]} == {"minilm/baseline"}
    assert all(row["samples_ms"]["forward"] for row in content["rows"])
    with saved(page, "#qa-bench-csv", tmp_path).open(newline="") as file:
        assert [row["p50_ms"] for row in csv.DictReader(file)] == [str(row["p50_ms"]) for row in content["rows"]]
    chosen(page, "#qa-bench-open", BENCHMARK)
    page.wait_for_selector("#qa-bench-comparison:has-text('now against then')")


def test_what_ships_can_be_downloaded_compared_with_and_downloaded_again(page: Page, tmp_path: Path) -> None:
    open_tab(page, "Benchmark")
    first = saved(page, "#qa-bench-json", tmp_path)
    chosen(page, "#qa-bench-open", first)
    page.wait_for_selector("#qa-bench-comparison:has-text('now against then')")
    assert saved(page, "#qa-bench-json", tmp_path / "again").read_bytes() == first.read_bytes()


def test_a_file_that_is_no_benchmark_gets_a_sentence(page: Page, tmp_path: Path) -> None:
    open_tab(page, "Benchmark")
    (tmp_path / "mine.json").write_text('{"schema": 2, "kind": "<b>evil</b>"}')
    chosen(page, "#qa-bench-open", tmp_path / "mine.json")
    page.wait_for_selector("#qa-bench-comparison .qa-problem:has-text('mine.json holds no benchmark')")


def test_nothing_chosen_gets_a_sentence(page: Page) -> None:
    open_tab(page, "Benchmark")
    unfold(page, "#qa-bench-options")
    for box, said in (("#qa-bench-batches", "No batch size is chosen"), ("#qa-bench-lengths", "No length is chosen")):
        while page.locator(f"{box} input:checked").count():
            page.locator(f"{box} input:checked").first.uncheck()
        page.click("#qa-bench-start")
        page.wait_for_selector(f"#qa-bench-progress .qa-problem:has-text('{said}')")


def measure(page: Page, limit: int, *, uploaded: Path | None = None, also: str = "") -> None:
    """Measures the backends that are ticked, and ``also`` that one, on a few of the app's own questions or a file's."""
    open_tab(page, "Accuracy")
    unfold(page, "#qa-accuracy-options")
    page.locator("#qa-accuracy-limit input").fill(str(limit))
    if also:
        page.locator("#qa-accuracy-backends input[name='" + also + "']").check()
    if uploaded:
        page.locator("#qa-accuracy-data label", has_text="file of mine").click()
        page.locator("#qa-accuracy-file input[type=file]").set_input_files(uploaded)
        page.wait_for_selector(f"{UPLOADED}:has-text('{uploaded.stem}')")
    page.click("#qa-accuracy-start")
    page.wait_for_selector("#qa-accuracy-progress:has-text('Done')", timeout=BUILT_AND_MEASURED)
    page.wait_for_selector("#qa-differing :is(.qa-differences, .qa-status)")


def figures(page: Page) -> dict[str, list[str]]:
    """The table's EM and F1, in percent, by backend."""
    return {
        line.locator("td").nth(0).inner_text(): [
            line.locator("td").nth(place).inner_text().split()[0] for place in (3, 4)
        ]
        for line in page.locator("#qa-accuracy-table tbody tr").all()
    }


TITLES = {"minilm/baseline": "Baseline", "minilm/pruned": "Pruned", "minilm/pruned-ort-fp16": "Pruned, fused, FP16"}


def test_an_evaluation_is_downloaded_as_it_is_shown(page: Page, tmp_path: Path) -> None:
    measure(page, limit=8, also="pruned")
    shown = figures(page)
    assert len(shown) == 3
    content = json.loads(saved(page, "#qa-accuracy-json", tmp_path).read_text())
    assert content["kind"] == "accuracy" and len(content["questions"]) == 8
    for record in content["rows"]:
        answers = [each["predicted"][record["backend"]] for each in content["questions"]]
        exact, f1 = (100 * sum(each[figure] for each in answers) / 8 for figure in ("exact", "f1"))
        assert shown[TITLES[record["backend"]]] == [f"{exact:.1f}", f"{f1:.1f}"]
        assert (record["limit"], record["n"]) == (8, 8)
    assert all(each["id"] and "gold" in each for each in content["questions"])
    with saved(page, "#qa-accuracy-csv", tmp_path).open(newline="") as file:
        flat = {TITLES[row["backend"]]: row for row in csv.DictReader(file)}
    assert {name: [f"{float(row[key]):.1f}" for key in ("exact", "f1")] for name, row in flat.items()} == shown
    with zipfile.ZipFile(saved(page, "#qa-accuracy-predictions", tmp_path)) as archive:
        predicted = json.loads(archive.read("minilm-baseline.json"))
    assert predicted == {each["id"]: each["predicted"]["minilm/baseline"]["text"] for each in content["questions"]}


def test_what_ships_can_be_downloaded_before_anything_is_measured(page: Page, tmp_path: Path) -> None:
    open_tab(page, "Accuracy")
    rows = page.locator("#qa-accuracy-table tbody tr").count()
    assert len(json.loads(saved(page, "#qa-accuracy-json", tmp_path).read_text())["rows"]) == rows
    with saved(page, "#qa-accuracy-csv", tmp_path).open(newline="") as file:
        assert len(list(csv.DictReader(file))) == rows
    assert not page.locator("#qa-accuracy-predictions").is_visible()


def test_the_printed_commands_repeat_what_was_chosen(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uploaded = tmp_path / "mine.json"
    uploaded.write_bytes(OWN_QUESTIONS.read_bytes())
    measure(page, limit=8, uploaded=uploaded)
    shown = figures(page)
    lines = page.locator("#qa-accuracy-command .cm-line").all_inner_texts()
    monkeypatch.chdir(tmp_path)
    for line, backend in zip(lines, ("baseline", "pruned-ort-fp16"), strict=True):
        program, options = shlex.split(line)[:4], shlex.split(line)[4:]
        assert program == ["python", "-m", "qa_backends", "evaluate"]
        told = dict(zip(options[::2], options[1::2], strict=True))
        expected = {"--data": "mine.json", "--limit": "8", "--seed": "0", "--family": "minilm", "--device": "cpu"}
        assert expected.items() <= told.items() and told["--backend"] == backend
        assert CliRunner().invoke(app, [*program[3:], *options], catch_exceptions=False).exit_code == 0
    repeated = json.loads((tmp_path / "accuracy.json").read_text())["rows"]
    assert {TITLES[row["backend"]]: [f"{row[key]:.1f}" for key in ("exact", "f1")] for row in repeated} == shown


def test_after_an_error_that_nobody_foresaw_it_can_be_started_again(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("nobody foresaw this")

    monkeypatch.setattr(accuracy, "evaluate_all", broken)
    monkeypatch.setattr(benchmark, "sweep", broken)
    monkeypatch.setattr(fastest, "recommend", broken)
    for tab, work in (("Accuracy", "qa-accuracy"), ("Benchmark", "qa-bench"), ("", "qa-fastest")):
        if tab:
            open_tab(page, tab)
        else:
            page.click(f"#{work} > button")
        page.click(f"#{work}-start")
        page.wait_for_selector(f"#{work}-progress .qa-problem")
        assert "Start it again" in page.locator(f"#{work}-progress").inner_text()
        assert page.is_enabled(f"#{work}-start") and not page.is_visible(f"#{work}-stop")


def test_after_an_error_that_nobody_foresaw_it_can_be_asked_again(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("nobody foresaw this")

    with monkeypatch.context() as patch:
        patch.setattr("qa_backends.web.ask.answering.ask", broken)
        patch.setattr("qa_backends.catalog.adopt", broken)
        page.click("#qa-ask")
        page.wait_for_selector("#qa-result [role=alert]:has-text('Start it again')")
        page.wait_for_selector("#qa-cancel", state="hidden")
        page.click("#qa-options > button")
        page.fill("#qa-own input, #qa-own textarea", "somebody/model")
        page.click("#qa-own-load")
        page.wait_for_selector("#qa-own-status .qa-problem:has-text('Start it again')")
        page.wait_for_selector("#qa-own-stop", state="hidden")
    page.click("#qa-ask")
    finished(page, page.locator(BOX).input_value())


@pytest.mark.parametrize("slow_baseline", [SLOW_S / 4], indirect=True, ids=["slow enough to be watched"])
@pytest.mark.usefixtures("slow_baseline")
def test_progress_is_told_to_everybody_and_moves_nothing(phone: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qa_backends.measure.quality.scoring.QUESTIONS_AT_ONCE", 16)
    page = phone
    open_tab(page, "Accuracy")
    unfold(page, "#qa-accuracy-options")
    page.locator("#qa-accuracy-limit input").fill("96")
    page.click("#qa-accuracy-options > button")
    page.wait_for_selector("#qa-accuracy-limit", state="hidden")
    page.wait_for_selector("#qa-accuracy-options > button:has-text('96')")  # the server's line, which may be longer now
    page.evaluate(
        """() => {
          const at = document.querySelector('#qa-accuracy-caption');
          window.seen = {places: new Set(), bars: []};
          const look = () => {
            window.seen.places.add(Math.round(at.getBoundingClientRect().y + scrollY));
            const bar = document.querySelector('#qa-accuracy-progress [role=progressbar]');
            if (bar) window.seen.bars.push([...bar.attributes].map(each => [each.name, each.value]));
            requestAnimationFrame(look);
          };
          look();
        }"""
    )
    page.click("#qa-accuracy-start")
    page.wait_for_selector("#qa-accuracy-progress:has-text('Done')", timeout=BUILT_AND_MEASURED)
    seen = page.evaluate("({places: [...seen.places], bars: seen.bars})")
    bars = [dict(each) for each in seen["bars"]]
    known = [each for each in bars if "aria-valuenow" in each]
    told = sorted({float(each["aria-valuenow"]) for each in known})
    assert len(told) > 2 and told[-1] == 192
    assert {(each["aria-valuemin"], each["aria-valuemax"]) for each in known} == {("0", "192")}
    assert all(each["aria-label"] for each in bars)
    assert any("of 192 answers, about" in each["aria-valuetext"] for each in known)
    assert not page.locator("#qa-accuracy-progress progress").count()
    assert len(seen["places"]) == 1, "nothing below it jumps"


def test_two_backends_can_be_compared_also_after_one_was_measured_alone(page: Page) -> None:
    open_tab(page, "Accuracy")
    unfold(page, "#qa-accuracy-options")
    page.locator("#qa-accuracy-backends input[name='baseline']").uncheck()
    page.click("#qa-accuracy-options > button")
    page.locator("#qa-accuracy-limit input").wait_for(state="hidden")
    unfold(page, "#qa-accuracy-options")
    page.locator("#qa-accuracy-limit input").fill("10")
    page.evaluate(SEEN_FOR_A_MOMENT, "#qa-accuracy-one")
    page.click("#qa-accuracy-start")
    page.wait_for_selector("#qa-accuracy-progress:has-text('Done')", timeout=BUILT_AND_MEASURED)
    page.wait_for_selector("#qa-accuracy-start:enabled")
    assert page.locator("#qa-accuracy-table tbody tr").count() == 1
    assert not page.locator("#qa-accuracy-one").is_visible()
    assert not page.evaluate("window.seen"), "nothing below it jumps"
    page.locator("#qa-accuracy-backends input[name='baseline']").check()
    page.click("#qa-accuracy-start")
    page.wait_for_selector("#qa-accuracy-one", state="visible")
    assert page.locator("#qa-accuracy-table tbody tr").count() == 2


def test_quality_is_measured_and_a_differing_question_is_asked_with_one_click(page: Page) -> None:
    measure(page, limit=24)
    assert "Your measurement" in page.locator("#qa-accuracy-caption").inner_text()
    lines = page.locator("#qa-accuracy-table tbody tr").all_inner_texts()
    assert len(lines) == 2 and all("24" in line for line in lines)
    first = page.locator(".qa-differences li").first
    question = first.locator(".qa-question").inner_text()
    assert first.locator("dd").count() == 3, "people's answer and two backends'"
    first.locator("button").click()
    page.wait_for_selector(f"#qa-result h2:has-text({json.dumps(question, ensure_ascii=False)})")
    page.wait_for_selector("#qa-result .qa-chip:has-text('Another answer here')")
    assert page.locator("#qa-question textarea, #qa-question input").first.input_value() == question
    assert page.evaluate("scrollY") == 0, "the result is in sight"


def test_a_broken_upload_gets_a_sentence(page: Page, tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text('{"data": [{"title": "<script>alert(1)</script>"}]}')
    open_tab(page, "Accuracy")
    unfold(page, "#qa-accuracy-options")
    page.locator("#qa-accuracy-data label", has_text="file of mine").click()
    page.click("#qa-accuracy-start")
    page.wait_for_selector("#qa-accuracy-progress .qa-problem:has-text('There is no file')")
    page.locator("#qa-accuracy-file input[type=file]").set_input_files(tmp_path / "broken.json")
    page.wait_for_selector(f"{UPLOADED}:has-text('broken')")
    page.click("#qa-accuracy-start")
    page.wait_for_selector("#qa-accuracy-progress .qa-problem:has-text('broken.json is not in SQuAD format')")


def test_both_tabs_fit_a_phone(phone: Page) -> None:
    for name in ("Benchmark", "Accuracy"):
        open_tab(phone, name)
        phone.wait_for_timeout(500)
        assert phone.evaluate("document.documentElement.scrollWidth") <= 390
