"""Structured logs: one JSON object a line, on stderr."""

from __future__ import annotations

import json
import logging
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
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def log_lines() -> None:
    """Makes everything of this process that logs do so in lines; of the web server only what goes wrong."""
    handler = logging.StreamHandler()
    handler.setFormatter(Lines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("qa_backends").setLevel(logging.INFO)
    logging.getLogger("uvicorn.error").setLevel(logging.INFO)
