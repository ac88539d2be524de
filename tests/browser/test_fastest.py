"""Find the fastest in a real browser: of two backends, since building and racing all of them takes minutes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from qa_backends import catalog
from qa_backends.catalog import lookup
from qa_backends.measure.recommend import answers

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

TWO = ("baseline", "pruned-ort-fp16")


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = tuple(catalog.backend(name) for name in TWO)
    monkeypatch.setattr(lookup, "BACKENDS", rows)
    monkeypatch.setattr(answers, "CHECK_S", 1.0)


@pytest.fixture
def opened(open_page: Callable[..., Page]) -> Page:
    page = open_page()
    page.get_by_role("tab", name="Benchmark").click()
    page.click("#qa-fastest > button")
    page.wait_for_selector("#qa-fastest-start")
    page.locator("#qa-fastest-seconds input").fill("25")  # in fewer, a busy machine has none left for the pipeline
    return page


def test_the_fastest_is_found_and_the_others_reasons_are_shown(opened: Page) -> None:
    opened.locator("#qa-fastest-loss input").fill("3")
    opened.click("#qa-fastest-start")
    opened.wait_for_selector("#qa-fastest-progress [role=progressbar]")
    opened.wait_for_selector("#qa-fastest-verdict:has-text('On this machine: Pruned, fused, FP16,')")
    verdict = opened.locator("#qa-fastest-verdict").inner_text()
    assert "F1 −" in verdict and "on SQuAD" in verdict
    assert "Timed: MiniLM, a question of 128 tokens and one of 384" in verdict
    standing = {each.split("\t")[0]: each for each in opened.locator("#qa-fastest-table tbody tr").all_inner_texts()}
    assert "advised" in standing["Pruned, fused, FP16"]
    assert "as long" in standing["Baseline"], "raced, or not for want of time, it says how much slower it is"
    opened.wait_for_selector("#qa-fastest-chart .scatterlayer .point")
    opened.wait_for_selector("#qa-fastest-command .cm-content:has-text('recommend')")  # comes last, and with it the end
    command = opened.locator("#qa-fastest-command").inner_text()
    assert "recommend" in command and "--max-f1-loss 3" in command and "--seconds 25" in command
    opened.wait_for_selector("#qa-fastest-stop", state="hidden")
    assert opened.locator("#qa-fastest-start").is_enabled()
    opened.locator("#qa-fastest-seconds input").fill("3000")
    opened.click("#qa-fastest-start")
    opened.wait_for_selector("#qa-fastest-progress [role=alert]:has-text('a race takes at most 120 seconds')")
    assert opened.locator("#qa-fastest-verdict").inner_text() == verdict, "a refusal takes nothing away"


def test_a_search_can_be_stopped(opened: Page) -> None:
    opened.click("#qa-fastest-start")
    opened.wait_for_selector("#qa-fastest-stop:not([disabled])")
    opened.click("#qa-fastest-stop")
    opened.wait_for_selector("#qa-fastest-progress:has-text('Stopped; nothing is advised.')")
    assert opened.locator("#qa-fastest-verdict").count() == 0 or not opened.locator("#qa-fastest-verdict").is_visible()
