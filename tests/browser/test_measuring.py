"""The benchmark and the accuracy tab in a real browser."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from helpers import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Page

BENCHMARK = ROOT / "assets" / "results" / "benchmark-cpu.json"


def open_tab(page: Page, name: str) -> None:
    page.get_by_role("tab", name=name).click()
    page.wait_for_selector({"Benchmark": "#qa-bench-start", "Accuracy": "#qa-accuracy-start"}[name])


def points(page: Page) -> int:
    return page.locator("#qa-bench-chart-0 .scatterlayer .point").count()


def saved(page: Page, button: str, folder: Path) -> Path:
    with page.expect_download() as download:
        page.click(button)
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def test_results_that_ship_are_shown_with_machine_and_date(page: Page) -> None:
    open_tab(page, "Benchmark")
    content = json.loads(BENCHMARK.read_text(encoding="utf-8"))
    caption = page.locator("#qa-bench-caption").inner_text()
    assert "Ships with the app" in caption
    assert content["machine"]["processor"] in caption and content["machine"]["date"] in caption
    page.wait_for_selector("#qa-bench-chart-0 .scatterlayer .point")
    assert page.locator("#qa-bench-table tbody tr").count() == len(content["rows"])
    assert "python -m qa_backends bench" in page.locator("#qa-bench-command").inner_text()
    open_tab(page, "Accuracy")
    assert "dev-v2.0.json" in page.locator("#qa-accuracy-caption").inner_text()
    assert page.locator("#qa-accuracy-table tbody tr").count() >= 3


def test_a_benchmark_is_started_watched_stopped_and_downloaded(page: Page, tmp_path: Path) -> None:
    open_tab(page, "Benchmark")
    page.locator("#qa-bench-backends label", has_text="Pruned, fused, FP16").click()
    page.locator("#qa-bench-runs input").fill("5")
    page.click("#qa-bench-start")
    page.wait_for_selector("#qa-bench-caption:has-text('Your measurement')")
    page.wait_for_selector("#qa-bench-progress:has-text('left')")
    seen = points(page)
    page.wait_for_function(
        "seen => document.querySelectorAll('#qa-bench-chart-0 .scatterlayer .point').length > seen", arg=seen
    )
    page.click("#qa-bench-stop")
    page.wait_for_selector("#qa-bench-progress:has-text('Stopped; kept')")
    rows = page.locator("#qa-bench-table tbody tr").count()
    assert rows >= 2
    content = json.loads(saved(page, "#qa-bench-json", tmp_path).read_text())
    assert not content["complete"] and len(content["rows"]) == rows
    assert {row["backend"] for row in content["rows"]} == {"minilm/baseline"}
    assert all(row["samples_ms"]["forward"] for row in content["rows"])
    with saved(page, "#qa-bench-csv", tmp_path).open(newline="") as file:
        assert [row["p50_ms"] for row in csv.DictReader(file)] == [str(row["p50_ms"]) for row in content["rows"]]
    page.locator("input[type=file]").first.set_input_files(BENCHMARK)
    page.wait_for_selector("#qa-bench-comparison:has-text('now against then')")


def test_a_file_that_is_no_benchmark_gets_a_sentence(page: Page, tmp_path: Path) -> None:
    open_tab(page, "Benchmark")
    (tmp_path / "mine.json").write_text('{"schema": 2, "kind": "<b>evil</b>"}')
    page.locator("input[type=file]").first.set_input_files(tmp_path / "mine.json")
    page.wait_for_selector("#qa-bench-comparison .qa-problem:has-text('mine.json holds no benchmark')")


@pytest.mark.parametrize(
    ("box", "said"), [("#qa-bench-lengths", "No length is chosen"), ("#qa-bench-batches", "No batch size is chosen")]
)
def test_nothing_chosen_gets_a_sentence(page: Page, box: str, said: str) -> None:
    open_tab(page, "Benchmark")
    while page.locator(f"{box} input:checked").count():
        page.locator(f"{box} input:checked").first.uncheck()
    page.click("#qa-bench-start")
    page.wait_for_selector(f"#qa-bench-progress .qa-problem:has-text('{said}')")


def test_quality_is_measured_and_a_differing_question_is_asked_with_one_click(page: Page) -> None:
    open_tab(page, "Accuracy")
    page.locator("#qa-accuracy-limit input").fill("60")
    page.click("#qa-accuracy-start")
    page.wait_for_selector("#qa-differing .qa-differences button")
    assert "Your measurement" in page.locator("#qa-accuracy-caption").inner_text()
    lines = page.locator("#qa-accuracy-table tbody tr").all_inner_texts()
    assert len(lines) == 2 and all("60" in line for line in lines)
    first = page.locator(".qa-differences li").first
    question = first.locator(".qa-question").inner_text()
    assert first.locator("dd").count() == 3, "people's answer and two backends'"
    first.locator("button").click()
    page.wait_for_selector(f"#qa-result h2:has-text({json.dumps(question)})")
    page.wait_for_selector("#qa-result .qa-chip:has-text('Another answer here')")
    assert page.locator("#qa-question textarea, #qa-question input").first.input_value() == question
    assert page.evaluate("scrollY") == 0, "the result is in sight"


def test_a_broken_upload_gets_a_sentence(page: Page, tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text('{"data": [{"title": "<script>alert(1)</script>"}]}')
    open_tab(page, "Accuracy")
    page.locator("#qa-accuracy-data label", has_text="file of mine").click()
    page.click("#qa-accuracy-start")
    page.wait_for_selector("#qa-accuracy-progress .qa-problem:has-text('There is no file')")
    page.locator("#qa-accuracy-file input[type=file]").set_input_files(tmp_path / "broken.json")
    page.wait_for_selector("#qa-accuracy-file :text('broken')")
    page.click("#qa-accuracy-start")
    page.wait_for_selector("#qa-accuracy-progress .qa-problem:has-text('broken.json is not in SQuAD format')")


def test_both_tabs_fit_a_phone(phone: Page) -> None:
    for name in ("Benchmark", "Accuracy"):
        open_tab(phone, name)
        phone.wait_for_timeout(500)
        assert phone.evaluate("document.documentElement.scrollWidth") <= 390
