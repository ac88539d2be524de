"""The app: prepares the preselected backends, then serves the page. Also what a Hugging Face Space runs."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable

# Before Gradio is imported: a page that loads nothing from elsewhere, from a server that reports to nobody.
os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

from qa_backends import catalog
from qa_backends.errors import QAError
from qa_backends.limits import devices
from qa_backends.measure.results.shipped import preselection
from qa_backends.progress import Cancelled, Progress
from qa_backends.runtime import Runtime
from qa_backends.web.bounds import SESSIONS_KEPT, THREADS
from qa_backends.web.page import build_page, launch_options


def say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def prepare(runtime: Runtime, names: Iterable[str], progress: Progress) -> None:
    """Builds and loads the backends of the default family, unless that would download them."""
    family, device = catalog.family(catalog.default_family()), devices()[0]
    if not family.embedded:
        return
    for backend in catalog.offered(family, device):
        if backend.name in names:
            try:
                runtime.load(family, backend, device, progress)
            except QAError as error:
                say(f"{backend.name} is not ready: {error}")
            except Cancelled:
                return


def main() -> None:
    say("preparing the page …")
    over = threading.Event()
    progress = Progress(say, over.is_set)
    try:
        catalog.adopt_chosen(progress)
        runtime = Runtime(progress=progress)
        usual = catalog.usual(catalog.family(catalog.default_family()))
        prepare(runtime, usual, progress)
        page = build_page(runtime)
        ticked = preselection(catalog.family(catalog.default_family()), devices()[0])
    except QAError as error:
        sys.exit(f"Error: {error}")
    # The others may take a minute to build, step by step; the page is there meanwhile, and takes its turns.
    others = set(ticked) - set(usual)
    threading.Thread(target=prepare, args=(runtime, others, progress), daemon=True).start()
    try:
        page.launch(**launch_options(), max_threads=THREADS, state_session_capacity=SESSIONS_KEPT)
    finally:
        over.set()


if __name__ == "__main__":
    main()
