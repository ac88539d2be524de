"""Try your own model: a folder is loaded and asked, another under its name takes its place, a wrong one says why."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import quote_plus

import pytest
from helpers import QUESTION, TEXT
from kinds import answer, checkpoint_of

from qa_backends import catalog

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

    from qa_backends.runtime import Runtime

    Open = Callable[..., Page]


pytestmark = pytest.mark.usefixtures("own_forgotten")


def load(page: Page, folder: Path) -> None:
    page.locator("#qa-own textarea, #qa-own input").first.fill(str(folder))
    page.click("#qa-own-load")


def chosen(page: Page, among: str) -> str:
    return page.locator(f"{among} label:has(input:checked)").inner_text()


def asked(page: Page, question: str) -> str:
    page.locator("#qa-context textarea").fill(TEXT)
    page.locator("#qa-question input, #qa-question textarea").first.fill(question)
    page.click("#qa-ask")
    page.wait_for_selector(f"#qa-result:has-text('measured here') h2:has-text('{question}')")
    return page.locator("#qa-result .qa-answer").first.inner_text()


def own_answer(runtime: Runtime, question: str) -> str:
    """What the one model of one's own answers, which is not nothing."""
    (own,) = [each for each in catalog.families() if each.own]
    found = answer(runtime, own, "baseline", question).text
    assert found
    return found


def test_a_folder_a_second_one_under_its_name_and_a_refused_one(
    open_page: Open, runtime: Runtime, tmp_path: Path
) -> None:
    page = open_page()
    page.click("#qa-options > button")
    folder = checkpoint_of("roberta", tmp_path / "mine", seed=1)
    load(page, folder)
    page.wait_for_selector("#qa-own-status:has-text('mine, Roberta, 2 layers is loaded')")
    page.wait_for_selector("#qa-options > button:has-text('Baseline + Baseline, fused, FP16 · mine · CPU')")
    assert chosen(page, "#qa-family").startswith("mine, Roberta, 2 layers")
    page.wait_for_selector("#qa-result .qa-stale")  # what stands there is of another family
    assert asked(page, QUESTION) == own_answer(runtime, QUESTION)

    checkpoint_of("roberta", folder, seed=2)
    before = [each.name for each in catalog.families() if each.own]
    page.click("#qa-options > button")
    load(page, folder)
    page.wait_for_function("name => !document.querySelector('#qa-own-status').innerText.includes(name)", arg=before[0])
    page.wait_for_selector("#qa-own-status:has-text('is loaded')")
    assert len(page.locator("#qa-family label:has-text('mine')").all()) == 1, "the first is not offered any more"
    assert [each.name for each in catalog.families() if each.own] != before
    assert asked(page, "What bore fruit?") == own_answer(runtime, "What bore fruit?")
    (second,) = [each for each in catalog.families() if each.own]
    page.wait_for_function("name => location.href.includes(name)", arg=second.name)  # the link says which answered
    page.reload()
    page.wait_for_selector("#qa-options > button:has-text('Baseline + Baseline, fused, FP16 · mine · CPU')")
    assert asked(page, QUESTION) == own_answer(runtime, QUESTION), "asked of what the link names"
    page.wait_for_function("asked => location.href.includes(asked)", arg=quote_plus(QUESTION))
    another = open_page(f"?{page.url.partition('?')[2]}")
    another.wait_for_selector(f"#qa-result:has-text('measured here') h2:has-text('{QUESTION}')")
    assert another.locator("#qa-result .qa-name b").all_inner_texts() == ["Baseline", "Baseline, fused, FP16"]

    page.click("#qa-options > button")
    load(page, tmp_path)
    page.wait_for_selector("#qa-own-status .qa-problem:has-text('config.json cannot be read')")
    assert chosen(page, "#qa-family").startswith("mine"), "what was chosen stays"

    page.get_by_role("tab", name="Benchmark").click()
    page.click("#qa-bench-options > button")
    page.wait_for_selector("#qa-bench-family label:has-text('mine')")


def test_somebody_who_comes_later_finds_it_in_the_list(open_page: Open, tmp_path: Path) -> None:
    page = open_page()
    page.click("#qa-options > button")
    load(page, checkpoint_of("electra", tmp_path / "shared"))
    page.wait_for_selector("#qa-own-status:has-text('is loaded')")
    other = open_page()
    other.click("#qa-options > button")
    other.wait_for_selector("#qa-family label:has-text('shared, Electra')")
