"""What the page keeps of its visitors."""

from __future__ import annotations

import gradio as gr
from gradio.events import api
from gradio_client import Client
from helpers import soon

from qa_backends.web.bounds import SESSIONS_KEPT, bound


def test_what_was_asked_is_forgotten_once_it_was_answered() -> None:
    def loud(text: str) -> str:
        return text.upper()

    with gr.Blocks() as page:
        api(loud, api_name="loud")
    bound(page)
    assert page.state_session_capacity == SESSIONS_KEPT
    _, url, _ = page.launch(prevent_thread_lock=True, quiet=True, server_name="127.0.0.1")
    try:
        assert Client(url, verbose=False).predict("a secret", api_name="/loud") == "A SECRET"
        events = page._queue.event_ids_to_events
        assert len(events) == 1
        assert soon(lambda: [each.data for each in events.values()] == [None])
    finally:
        page.close()
