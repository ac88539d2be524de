"""What the widgets of every tab, and the events between them, are made with."""

from __future__ import annotations

from typing import Any

Updates = tuple[Any, ...]
"""What an event changes: one update for each of its outputs, in their order."""
Changes = dict[Any, Any]
"""What an event changes, by widget; the others stay."""
PRIVATE: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}
"""Of events that are nobody's but the page's."""
FOLLOWED: dict[str, Any] = {"trigger_mode": "always_last", **PRIVATE}
"""For what a control shows at once: a change made while the last is drawn is drawn after it, not dropped."""
HIDDEN: Any = "hidden"
"""``visible`` of what is not there yet: what never was shown and is told ``False`` stays away for good. Not for a
``gr.Row``, which Gradio draws first and hides then, so that what is below it jumps."""
CODE_BOX: dict[str, Any] = {
    "language": None, "interactive": False, "wrap_lines": True, "lines": 1, "buttons": ["copy"],
}  # fmt: skip
"""How code to copy is shown: in one colour, since those of Gradio's editor have too little contrast on white."""
