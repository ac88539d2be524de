"""Draws ``assets/preview.png``, the picture that stands for the page where a link to it is shown.

It shows the recorded question, so it is drawn again when that is recorded again:
``PYTHONPATH=.:tests python -m browser.draw_preview``. What it says is kept inside the file, for the test that compares
it with what the page says.
"""

from __future__ import annotations

import io
from html import escape

from browser.conftest import CHROMIUM, QUIET
from PIL import Image, PngImagePlugin
from playwright.sync_api import sync_playwright

from qa_backends.asking.comparison import Card
from qa_backends.asking.recorded import recorded_comparisons
from qa_backends.paths import FAVICON, PREVIEW
from qa_backends.web.ask.verdict import verdict_of
from qa_backends.web.document import PREVIEW_SIZE
from qa_backends.web.page import TITLE
from qa_backends.web.shared.palette import colour
from qa_backends.web.shared.wording import milliseconds

SAYS = "Description"
"""Under which the file keeps what the picture says."""
SUBTITLE = "One question, several ways to run the same model:<br>each answer beside the time it really took."
STYLE = """
body { margin: 0; padding: 40px 72px; width: 1056px; height: 550px; display: flex; flex-direction: column;
  background: #f9fafb; color: #1f2937; font-family: system-ui, sans-serif; }
header { display: grid; grid-template-columns: 96px 1fr; gap: 8px 26px; align-items: end; }
header svg { grid-row: span 2; align-self: center; }
h1 { margin: 0; font-size: 44px; line-height: 1.1; }
p { margin: 0; align-self: start; color: #55606e; font-size: 24px; line-height: 1.3; }
main { margin-top: auto; background: white; border: 1px solid #d5dae1; border-radius: 18px; padding: 22px 40px; }
h2 { margin: 0; font-size: 34px; }
.verdict { display: flex; align-items: center; gap: 28px; margin: 12px 0 16px; font-size: 28px; color: #55606e; }
.verdict b { font-size: 88px; line-height: 1; color: #08704f; }
ol { list-style: none; margin: 0; padding: 0; font-size: 25px; }
li { display: grid; grid-template-columns: 290px 1fr 130px; gap: 20px; align-items: center; padding: 6px 0; }
li i { height: 26px; border-radius: 5px; }
li span { text-align: right; font-weight: 600; }
"""


def said() -> tuple[str, str, str]:
    """Of the recorded question: the question, the figure, and what it is."""
    view = next(iter(recorded_comparisons()), None)
    assert view is not None, "nothing is recorded; run: python -m qa_backends record"
    verdict = verdict_of(view)
    return view.question, verdict.figure, verdict.title


def document() -> str:
    """The picture as a page."""
    view = next(iter(recorded_comparisons()), None)
    assert view is not None
    slowest = max(card.latency_ms or 0.0 for card in view.answered)
    rows = "".join(_row(card, slowest) for card in view.answered)
    question, figure, title = map(escape, said())
    return (
        f"<style>{STYLE}</style><header>{FAVICON.read_text(encoding='utf-8')}<h1>{escape(TITLE)}</h1>"
        f'<p>{SUBTITLE}</p></header><main><h2>“{question}”</h2><div class="verdict"><b>{figure}</b>{title}</div>'
        f"<ol>{rows}</ol></main>"
    )


def _row(card: Card, slowest: float) -> str:
    latency = card.latency_ms or 0.0
    bar = f'<i style="background:{colour(card.backend)};width:{100 * latency / slowest:.1f}%"></i>'
    return f"<li>{escape(card.title)}{bar}<span>{milliseconds(latency)}</span></li>"


def draw() -> None:
    wide, high = PREVIEW_SIZE
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        page = browser.new_page(viewport={"width": wide, "height": high})
        page.set_content(document())
        picture = Image.open(io.BytesIO(page.screenshot())).convert("P", palette=Image.Palette.ADAPTIVE, colors=128)
        browser.close()
    notes = PngImagePlugin.PngInfo()
    notes.add_itxt(SAYS, "\n".join(said()))
    picture.save(PREVIEW, pnginfo=notes, optimize=True)


if __name__ == "__main__":
    draw()
