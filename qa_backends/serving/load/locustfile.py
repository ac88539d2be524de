"""What Locust runs: clients that send one prepared request after another, each from another place in the list.

``QA_LOAD_REQUESTS`` names the file of requests: a JSON list of ``path``, ``headers`` and ``body`` (base64).
"""

from __future__ import annotations

import base64
import itertools
import json
import os
from pathlib import Path

from locust import FastHttpUser, task

STRIDE = 7
"""Between the places that clients begin at; it has no divisor in common with the number of requests, a power of two."""

requests = [
    (each["path"], each["headers"], base64.b64decode(each["body"]))
    for each in json.loads(Path(os.environ["QA_LOAD_REQUESTS"]).read_text(encoding="utf-8"))
]
numbers = itertools.count()


class Asker(FastHttpUser):
    """Asks again as soon as it is answered."""

    def on_start(self) -> None:
        """Takes a place of its own."""
        self._next = STRIDE * next(numbers)

    @task
    def ask(self) -> None:
        """A request; an answer that is an error counts as a failure."""
        path, headers, body = requests[self._next % len(requests)]
        self._next += 1
        sent = {"data": body, "headers": headers, "catch_response": True, "name": "ask"}
        with self.client.post(path, **sent) as response:
            if response.status_code != 200 or b'"error"' in (response.content or b""):
                response.failure(f"status {response.status_code}")
