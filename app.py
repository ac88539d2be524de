"""The app: prepares the preselected backends, then serves the page. Also what a Hugging Face Space runs."""

from __future__ import annotations

import os
import sys

# Before Gradio is imported: a page that loads nothing from elsewhere, from a server that reports to nobody.
os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

from qa_backends import catalog
from qa_backends.errors import QAError
from qa_backends.runtime import Runtime
from qa_backends.web.page import build_page, launch_options


def say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def prepare(runtime: Runtime) -> None:
    """Builds and loads the preselected backends, unless that would download them."""
    group = catalog.family(catalog.default_family())
    if not group.embedded:
        return
    device = catalog.devices()[0]
    for name in catalog.PRESELECTED:
        try:
            with runtime.turn(device):
                runtime.get(group, catalog.backend(name), device)
        except QAError as error:
            say(f"{name} is not ready: {error}")


def main() -> None:
    say("preparing the page …")
    try:
        runtime = Runtime(say=say)
        prepare(runtime)
        page = build_page(runtime)
    except QAError as error:
        sys.exit(f"Error: {error}")
    page.launch(**launch_options())


if __name__ == "__main__":
    main()
