"""The page: its frame, and the tabs in it."""

from __future__ import annotations

import importlib.util
import os
from typing import TYPE_CHECKING, Any

import gradio as gr
from gradio.events import api

from qa_backends.paths import FAVICON, FRAME, STYLE
from qa_backends.web.accuracy.tab import AccuracyTab
from qa_backends.web.api import Endpoints
from qa_backends.web.ask.allowed import LOOPBACK, Allowed
from qa_backends.web.ask.tab import RUN_TOGETHER, AskTab
from qa_backends.web.benchmark.tab import BenchmarkTab
from qa_backends.web.bounds import SPARES, bound
from qa_backends.web.document import app_options
from qa_backends.web.mending import MEND
from qa_backends.web.shared.scripts import FOCUS, TABLES

if TYPE_CHECKING:
    from qa_backends.runtime import Runtime

TITLE = "Ask once, see every engine answer"
INTRODUCTION = (
    "One question, several ways to run the same model. See each answer beside the time it really took, and whether "
    "the faster ones still agree with the baseline."
)
FILES_KEPT_S = (3_600, 86_400)
"""How often uploads and downloads are looked through, and how old they get."""
MOST_UPLOADED = "64mb"
READABLE = {
    "button_primary_background_fill": "*primary_700",
    "button_primary_background_fill_hover": "*primary_800",
    "checkbox_label_background_fill_selected": "*primary_700",
    "block_title_background_fill": "transparent",
    "block_title_text_color": "var(--qa-soft)",
    "block_title_padding": "0",
    "block_title_text_weight": "600",
    "block_padding": "0.5rem 0.7rem",
    "layout_gap": "0.6rem",
    "button_secondary_background_fill_hover_dark": "*neutral_500",
    "input_border_width": "1px",
    "input_border_color": "var(--qa-edge)",
    "input_border_color_focus": "var(--qa-green)",
    "input_placeholder_color": "var(--qa-soft)",
    "checkbox_border_width": "1px",
    "checkbox_border_color": "var(--qa-edge)",
}
"""The theme's greens darkened, so that white text on them has a contrast above 4.5; boxes whose edges have one above 3;
labels that are no louder than what they name; room for a question and its result on one screen."""
SYSTEM_FONTS = ["system-ui", "sans-serif"]


def build_page(runtime: Runtime, host: str = "") -> gr.Blocks:
    """The whole page, as it is served on ``host``, by default Gradio's own. Its style goes to ``launch``, see
    ``launch_options``."""
    allowed = Allowed.where(host or os.environ.get("GRADIO_SERVER_NAME", LOOPBACK[0]))
    for name, value in SPARES.items():
        os.environ.setdefault(name, value)
    page = gr.Blocks(title=TITLE, analytics_enabled=False, fill_width=False, delete_cache=FILES_KEPT_S)
    with page:
        gr.HTML(f'<header class="qa-header"><h1>{TITLE}</h1><p>{INTRODUCTION}</p></header>')
        with gr.Tabs(selected="ask") as tabs:
            with gr.Tab("Ask", id="ask"):
                ask = AskTab(runtime, allowed)
            with gr.Tab("Benchmark", id="benchmark"):
                benchmark = BenchmarkTab(runtime)
            with gr.Tab("Accuracy", id="accuracy"):
                accuracy = AccuracyTab(runtime)
        ask.wire_own(page, [benchmark.family, accuracy.family])
        ask.wire_link(page)
        accuracy.wire_ask(ask, tabs)
        for each in (*ask.stops, *benchmark.stops, *accuracy.stops):
            page.unload(each.end)  # for whoever has left, nothing more is computed
        endpoints = Endpoints(runtime)
        api(endpoints.answer, api_name="answer", **RUN_TOGETHER)
        api(endpoints.ask, api_name="ask", **RUN_TOGETHER)
    bound(page)
    return page


def launch_options() -> dict[str, Any]:
    """What Gradio takes at launch: our style, and fonts that every system has, so that nothing is fetched.

    The endpoints are tools for language models too (Model Context Protocol), where its package is installed.
    """
    theme = gr.themes.Soft(
        primary_hue="emerald", font=SYSTEM_FONTS, font_mono=["ui-monospace", "monospace"], radius_size="md"
    )
    modes = {part: ("", "_dark") if hasattr(theme, f"{part}_dark") else ("",) for part in READABLE}
    readable = {f"{part}{mode}": value for part, value in READABLE.items() for mode in modes[part]}
    theme.set(body_background_fill="*neutral_50", **readable)  # setting anything makes the page white otherwise
    head = f"<style>{FRAME.read_text(encoding='utf-8')}</style>{MEND}{TABLES}{FOCUS}"
    return {
        "theme": theme,
        "css_paths": [STYLE],
        "favicon_path": FAVICON,
        "app_kwargs": app_options(TITLE, INTRODUCTION, head),
        "footer_links": ["api"],
        "ssr_mode": False,
        "mcp_server": importlib.util.find_spec("mcp") is not None,
        "show_error": True,
        "max_file_size": MOST_UPLOADED,
    }
