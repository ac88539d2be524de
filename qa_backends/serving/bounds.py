"""Around the HTTP interface, as plain ASGI: the key, bounds on bodies, one log line a request, and counting."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from qa_backends.serving.metrics import Metrics

MOST_BYTES = 8 * 1024 * 1024
"""Of a request's body: four texts of the greatest length, or more of usual ones."""
TOO_LARGE = f"The body is larger than {MOST_BYTES // 1024 // 1024} MiB. Ask in several requests."
NO_KEY = "The key is missing or wrong. Send it as: Authorization: Bearer KEY"
TOO_SLOW = "The body did not come in time. Send all of it at once, or ask less in it."
LOG = "qa_backends.requests"
OTHER = "other"
"""In place of a path that is none of ours."""

NAMED_ANEW = {413: "request_entity_too_large", 422: "unprocessable_entity"}
"""What Python up to 3.12 calls the statuses that RFC 9110 renamed."""

logger = logging.getLogger(LOG)


class Bounded:
    """Answers 413 as soon as a body of a path of ours is known to be too large, whatever its header says, and 408 where
    it has not come whole after so many ``seconds``."""

    def __init__(self, app: ASGIApp, paths: tuple[str, ...], seconds: float) -> None:
        self._app = app
        self._paths = paths
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or path_of(scope) not in self._paths:
            await self._app(scope, receive, send)
            return
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        if announced.isdigit() and int(announced) > MOST_BYTES:
            await problem(413, TOO_LARGE)(scope, receive, send)
            return
        taken, whole = 0, False
        until = asyncio.get_running_loop().time() + self._seconds

        async def counted() -> Message:
            nonlocal taken, whole
            try:
                # What comes after the body says that the client left, whenever that is.
                async with asyncio.timeout_at(None if whole else until):
                    message = await receive()
            except TimeoutError as error:
                raise HTTPException(408, TOO_SLOW, {"Connection": "close"}) from error
            whole = not message.get("more_body", False)
            taken += len(message.get("body", b""))
            if taken > MOST_BYTES:
                raise HTTPException(413, TOO_LARGE)  # which the application answers as it does its own errors
            return message

        await self._app(scope, counted, send)


class Keyed:
    """Answers 401 to who asks for a path that the key guards without it, before anything of the body is read."""

    def __init__(self, app: ASGIApp, paths: tuple[str, ...], key: str) -> None:
        self._app = app
        self._paths = paths
        self._key = key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and path_of(scope) in self._paths and not self._given(scope):
            await problem(401, NO_KEY, {"WWW-Authenticate": "Bearer"})(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _given(self, scope: Scope) -> bool:
        scheme, _, given = dict(scope["headers"]).get(b"authorization", b"").partition(b" ")
        return scheme.lower() == b"bearer" and secrets.compare_digest(given.strip(), self._key)


class Told:
    """Logs each request, without any of its content, and counts it."""

    def __init__(self, app: ASGIApp, paths: tuple[str, ...], metrics: Metrics) -> None:
        self._app = app
        self._paths = paths
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        status = 500
        told: dict[str, Any] = {}
        scope["told"] = told

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, sending)
        finally:
            seconds = time.perf_counter() - began
            path = path_of(scope) if path_of(scope) in self._paths else OTHER
            self._metrics.request(path, status, seconds)
            if path != OTHER:
                line = {"path": path, "method": scope["method"], "status": status, "ms": round(seconds * 1000, 2)}
                logger.info("request", extra={"fields": line | told})


def path_of(scope: Scope) -> str:
    """What is asked for, wherever the interface is mounted: a server may leave its prefix in the path (ASGI). A path
    that ends in a line's end is that without it, since Starlette's routes take it so."""
    return str(scope["path"]).removeprefix(scope.get("root_path", "")).removesuffix("\n")


def problem(status: int, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """An error as every part of the interface gives it; its code is the status's name, as in "not_found", and the same
    on every Python: 3.13 gave two of them the names of RFC 9110."""
    code = NAMED_ANEW.get(status) or (HTTPStatus(status).name.lower() if status in set(HTTPStatus) else "error")
    return JSONResponse({"error": {"code": code, "message": message}}, status, dict(headers or {}))
