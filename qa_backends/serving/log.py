"""Structured logs: one JSON object a line, on stderr."""

from __future__ import annotations

import json
import logging
import traceback
from datetime import UTC, datetime


class Lines(logging.Formatter):
    """``time``, ``level``, ``logger``, ``message``, and what the caller gave as ``fields``."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= getattr(record, "fields", {})
        if record.exc_info and record.exc_info[0]:
            # Where it was raised and what it was, without its message, in which libraries like to quote what was sent.
            line["error"] = record.exc_info[0].__name__
            line["traceback"] = "".join(traceback.format_tb(record.exc_info[2]))
        return json.dumps(line, ensure_ascii=False)


def log_lines() -> None:
    """Makes everything of this process that logs do so in lines; of the web server only what goes wrong."""
    handler = logging.StreamHandler()
    handler.setFormatter(Lines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.captureWarnings(True)
    # Gradio prints the errors of calls that it refuses, with all that was sent.
    traceback.print_exc = lambda *_args, **_kwargs: logging.getLogger("gradio").error("a call failed", exc_info=True)
    logging.getLogger("qa_backends").setLevel(logging.INFO)
    logging.getLogger("uvicorn.error").setLevel(logging.INFO)
