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

LOOPBACK, EVERYWHERE = "127.0.0.1", ("0.0.0.0", "::")  # noqa: S104  (compared with, not listened on)


def service_of(
    runtime: Runtime, of: Family, backends: Sequence[Backend], device: str, size: BatchSize, bounds: Bounds
) -> Service:
    """A service of the family's backends, not started yet."""
    places = {place.name: place for place in (Place(of, each) for each in backends)}
    return Service(runtime, places, device, size, bounds, Metrics())


def application(service: Service, *, key: str | None, page: bool, host: str = "", local_url: str = "") -> FastAPI:
    """The interface, with the page on every other path where it is wanted.

    ``host`` is the address that is listened on, ``local_url`` where this process reaches itself, as its tools do.
    """
    app = build_app(service, key)
    if not page:
        return app
    from gradio import mount_gradio_app

    from qa_backends.web.page import build_page, launch_options

    blocks = build_page(service.runtime, host)
    mounted: FastAPI = mount_gradio_app(app, blocks, path="/", **launch_options())
    if blocks.mcp_server_obj and local_url:
        # Gradio sets it when it launches by itself. Told nothing, it would take the address of its tools from the
        # headers of the first request, and send everybody's questions there.
        blocks.mcp_server_obj._local_url = local_url
    return mounted


def serve(
    of: Family, backends: Sequence[Backend], device: str, *, size: BatchSize, bounds: Bounds, host: str, port: int,
    key: str | None, page: bool,
) -> None:  # fmt: skip
    """Serves until it is told to stop; then takes nothing new, and answers what it had accepted.

    Raises:
        InputError: the family's weights are random.
        BackendUnavailable: the port cannot be had.
    """
    of.check_answers()
    log_lines()
    runtime = Runtime(progress=Progress(logger.info))
    service = service_of(runtime, of, backends, device, size, bounds)
    local_url = f"http://{_in_address(LOOPBACK if host in EVERYWHERE else host)}:{port}/"
    app = application(service, key=key, page=page, host=host, local_url=local_url)
    patience = round(bounds.seconds) + 1
    server = uvicorn.Server(
        uvicorn.Config(app, host, port, log_config=None, access_log=False, timeout_graceful_shutdown=patience)
    )
    logger.info("serving on http://%s:%d", _in_address(host), port)
    try:
        server.run()
    except SystemExit as error:  # which is how uvicorn says that the address is taken
        reason = f"Port {port} of {host} cannot be had; the line above says why."
        raise BackendUnavailable(reason, "Choose another: --port NUMBER, --host NAME") from error


def _in_address(host: str) -> str:
    """The host as an address has it: IPv6 in brackets (RFC 3986)."""
    return f"[{host}]" if ":" in host else host
