"""What a page that stays up for months keeps of its visitors: by itself Gradio 6.17 keeps nearly everything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import gradio as gr

MOST_IN_QUEUE = 64
"""Questions that may wait for a place; who comes later is told at once that the app is busy."""
SESSIONS_KEPT = 500
"""Pages whose values the server knows; each takes some hundred kilobytes. Gradio keeps 10,000."""
THREADS = 128
"""More than all long work that may be under way at once: each holds a thread, and Cancel needs one too."""
NEVER = str(10**9)
SPARES = {"GRADIO_ANALYTICS_CACHE_FREQUENCY": NEVER}
"""After so many events Gradio makes a table of all there were, though none of it is shown here; by default after each,
while others are timed."""


def bound(page: gr.Blocks) -> None:
    """Gives the page its queue, which forgets what was asked once that was answered, and keeps few sessions.

    Gradio's queue holds every event it ever ran, and with it the whole text. The event stays, since others may look for
    it, without what was sent.
    """
    page.state_session_capacity = SESSIONS_KEPT
    page.max_threads = THREADS
    page.queue(max_size=MOST_IN_QUEUE)
    process = page._queue.process_events

    async def forgetting(events: list[Any], batch: bool, begin_time: float) -> None:
        try:
            await process(events, batch, begin_time)
        finally:
            for each in events:
                each.data = None

    setattr(page._queue, "process_events", forgetting)  # noqa: B010 - a method, to mypy
