"""The process behind ``python -m qa_backends serve``: the HTTP interface, and the page beside it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import uvicorn

from qa_backends.errors import BackendUnavailable
from qa_backends.progress import Progress
from qa_backends.runtime import Runtime
from qa_backends.serving.log import log_lines
from qa_backends.serving.metrics import Metrics
from qa_backends.serving.rest import build_app
from qa_backends.serving.service import Bounds, Place, Service

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastapi import FastAPI

    from qa_backends.catalog import Backend, Family
    from qa_backends.serving.batching import BatchSize

logger = logging.getLogger(__name__)


def service_of(
    runtime: Runtime, of: Family, backends: Sequence[Backend], device: str, size: BatchSize, bounds: Bounds
) -> Service:
    """A service of the family's backends, not started yet."""
    places = {place.name: place for place in (Place(of, each) for each in backends)}
    return Service(runtime, places, device, size, bounds, Metrics())


def application(service: Service, *, key: str | None, page: bool) -> FastAPI:
    """The interface, with the page on every other path where it is wanted."""
    app = build_app(service, key)
    if not page:
        return app
    from gradio import mount_gradio_app

    from qa_backends.web.page import build_page, launch_options

    mounted: FastAPI = mount_gradio_app(app, build_page(service.runtime), path="/", **launch_options())
    return mounted


def serve(
    of: Family, backends: Sequence[Backend], device: str, *, size: BatchSize, bounds: Bounds, host: str, port: int,
    key: str | None, page: bool,
) -> None:  # fmt: skip
    """Serves until it is told to stop; then takes nothing new, and answers what it had accepted.

    Raises:
        BackendUnavailable: the port cannot be had.
    """
    log_lines()
    runtime = Runtime(progress=Progress(logger.info))
    app = application(service_of(runtime, of, backends, device, size, bounds), key=key, page=page)
    patience = round(bounds.seconds) + 1
    server = uvicorn.Server(
        uvicorn.Config(app, host, port, log_config=None, access_log=False, timeout_graceful_shutdown=patience)
    )
    logger.info("serving on http://%s:%d", host, port)
    try:
        server.run()
    except SystemExit as error:  # which is how uvicorn says that the address is taken
        raise BackendUnavailable(f"Port {port} of {host} cannot be had.", "Choose another: --port NUMBER") from error
