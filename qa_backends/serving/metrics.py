"""What Prometheus reads at /metrics; each server counts in a registry of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
QUESTIONS = (1, 2, 4, 8, 16, 32, 64)


class Metrics:
    """Requests and their times by route and status; batches by backend; what waits; the process's memory."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._requests = Counter("qa_requests", "Requests answered.", ("route", "status"), registry=self._registry)
        self._seconds = Histogram(
            "qa_request_seconds", "From a request to its answer.", ("route",), buckets=SECONDS, registry=self._registry
        )
        self._batch_questions = Histogram(
            "qa_batch_questions", "Questions read together.", ("backend",), buckets=QUESTIONS, registry=self._registry
        )
        self._batch_seconds = Histogram(
            "qa_batch_seconds", "Reading them, waiting for the device included.", ("backend",), buckets=SECONDS,
            registry=self._registry,
        )  # fmt: skip
        self._waiting = Gauge("qa_waiting", "Questions waiting for a batch.", ("backend",), registry=self._registry)

    def request(self, route: str, status: int, seconds: float) -> None:
        """Counts one request; ``route`` is a path of ours, never one that a request made up."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def batch(self, backend: str, questions: int, seconds: float) -> None:
        """Counts one batch."""
        self._batch_questions.labels(backend).observe(questions)
        self._batch_seconds.labels(backend).observe(seconds)

    def watch(self, backend: str, waiting: Callable[[], int]) -> None:
        """Asks ``waiting`` whenever Prometheus asks."""
        self._waiting.labels(backend).set_function(waiting)

    def text(self) -> bytes:
        """Everything, in Prometheus's text format."""
        return generate_latest(self._registry)
