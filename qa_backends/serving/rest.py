"""The HTTP interface: ``POST /v1/answer``, ``GET /v1/backends``, ``/health``, ``/ready``, ``/metrics``, ``/docs``.

Every error is ``{"error": {"code", "message"}}``, and the message says what to do.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.security import HTTPBearer
from fastapi.staticfiles import StaticFiles
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Route
from swagger_ui_bundle import swagger_ui_path

import qa_backends
from qa_backends.contract import Query
from qa_backends.errors import InputError, QAError, UnknownBackend
from qa_backends.serving.bounds import MOST_BYTES, Bounded, Keyed, Told, problem
from qa_backends.serving.schemas import AnswerRequest, Failed, Given, Served, ServedBackend, State, given, served
from qa_backends.serving.service import Full, NeverReady, NotReady, Service

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable

    from starlette.types import Receive, Scope, Send

    from qa_backends.contract import Answer
    from qa_backends.reader.reader import Prepared
    from qa_backends.serving.service import Place

ANSWER, BACKENDS = "/v1/answer", "/v1/backends"
HEALTH, READY, METRICS, DOCS, OPENAPI, SWAGGER = "/health", "/ready", "/metrics", "/docs", "/openapi.json", "/swagger"
BEARER = HTTPBearer(auto_error=False)
ALLOWED = {
    ANSWER: ("POST",),
    BACKENDS: ("GET",),
    METRICS: ("GET",),
    HEALTH: ("GET", "HEAD"),
    READY: ("GET", "HEAD"),
}
PATHS, GUARDED = tuple(ALLOWED), (ANSWER, BACKENDS, METRICS)
NOTHING = f"There is nothing here. {DOCS} describes what there is."
UNUSABLE = f"Send JSON, with Content-Type: application/json, as {DOCS} describes."
RETRY_AFTER_S = 1
GONE = 499
"""What nginx logs where the client closed the connection: nobody is there to read it."""
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Failed, "description": description}
    for status, description in {
        401: "The key is missing or wrong.",
        404: "No backend of that name is served.",
        408: "The body did not come in time.",
        413: f"The body is larger than {MOST_BYTES // 1024 // 1024} MiB.",
        422: "The body is not what it should be.",
        500: "Something here is broken, which the log says.",
        503: "Too many questions wait, or the backend is not ready: try again after Retry-After seconds. Without that "
        "header the backend could not be loaded, and is not tried again.",
        504: "There was no answer in time.",
    }.items()
}


class Gone(Exception):
    """The client closed the connection."""


def build_app(service: Service, key: str | None = None) -> FastAPI:
    """The interface alone; it starts the service, and closes it when it ends. ``key`` guards ``GUARDED``."""

    @asynccontextmanager
    async def life(_app: FastAPI) -> AsyncIterator[None]:
        service.start()
        yield
        await asyncio.to_thread(service.close)

    app = FastAPI(
        title="Answers from a text, on interchangeable backends", version=qa_backends.__version__, lifespan=life,
        docs_url=None, redoc_url=None, openapi_url=OPENAPI, redirect_slashes=False,
    )  # fmt: skip
    for router in (_asked(service, key), _state(service)):
        app.include_router(router)
    _close(app)
    _documented(app, next(iter(service.places)))
    failing(app)
    app.add_middleware(Bounded, paths=PATHS, seconds=service.bounds.seconds)
    if key:
        app.add_middleware(Keyed, paths=GUARDED, key=key)
    app.add_middleware(Told, paths=PATHS, metrics=service.metrics)
    return app


def _asked(service: Service, key: str | None) -> APIRouter:
    """What the key guards."""
    router = APIRouter(dependencies=[Depends(BEARER)] if key else [])  # which describes it; ``Keyed`` asks for it

    @router.post(ANSWER, responses=PROBLEMS)
    async def answer(request: Request, asked: AnswerRequest) -> Given:
        """Answers each query, or says why it has none; concurrent requests share the model's calls."""
        place = service.place(asked.backend)
        request.scope["told"].update(backend=place.name, queries=len(asked.queries))
        queries = [Query(each.question, each.context) for each in asked.queries]
        found = await _in_time(request, service.answer(place.name, queries), service.bounds.seconds)
        return Given(backend=place.name, answers=[given(each) for each in found])

    @router.get(BACKENDS, responses={401: PROBLEMS[401]})
    async def backends() -> Served:
        """What can be asked."""
        return Served(backends=[_served(each, service.device) for each in service.places.values()])

    @router.get(METRICS, responses={401: PROBLEMS[401]}, response_class=Response)
    async def metrics() -> Response:
        """For Prometheus."""
        return Response(service.metrics.text(), media_type=CONTENT_TYPE_LATEST)

    return router


def _state(service: Service) -> APIRouter:
    """What a supervisor asks, who has no key."""
    router = APIRouter()

    @router.head(HEALTH, include_in_schema=False)
    @router.get(HEALTH)
    async def health() -> State:
        """That the process answers."""
        return State(status="alive")

    @router.head(READY, include_in_schema=False)
    @router.get(READY, responses={503: PROBLEMS[503]})
    async def ready() -> State:
        """That its backends can be asked."""
        errors = [each.error for each in service.places.values() if each.error]
        if len(errors) == len(service.places):
            raise NeverReady("; ".join(errors))
        if not service.ready:
            raise NotReady("The backends are being made ready. Ask again in a moment.")
        return State(status="ready")

    return router


def _close(app: FastAPI) -> None:
    """What is left of our paths, so that none of it falls through to the page: other methods, other names below /v1."""
    for path, allowed in ALLOWED.items():
        able = ", ".join(allowed)
        app.router.routes.append(Route(path, _Refusing(405, f"Use another method: {able}.", {"Allow": able})))
    app.router.routes.append(Route("/v1/{_rest:path}", _Refusing(404, NOTHING)))


class _Refusing:
    """Refuses requests, whatever their method: an application of its own, since a route to a function takes GET alone
    unless all its methods are named, and clients make up others."""

    def __init__(self, status: int, said: str, headers: dict[str, str] | None = None) -> None:
        self._refusal = status, said, headers

    async def __call__(self, _scope: Scope, _receive: Receive, _send: Send) -> None:
        raise HTTPException(*self._refusal)


def _documented(app: FastAPI, backend: str) -> None:
    """The page of the OpenAPI description, its scripts from this machine, its example one that this server answers."""
    app.openapi()["components"]["schemas"][AnswerRequest.__name__]["example"] = {
        "backend": backend,
        "queries": [{"question": "Who watered the tree?", "context": "Anna planted a tree. Ben watered it."}],
    }
    app.mount(SWAGGER, StaticFiles(directory=swagger_ui_path))

    @app.get(DOCS, include_in_schema=False)
    async def docs(request: Request) -> Response:
        root = request.scope.get("root_path", "")
        return get_swagger_ui_html(
            openapi_url=root + OPENAPI, title=app.title, swagger_js_url=f"{root}{SWAGGER}/swagger-ui-bundle.js",
            swagger_css_url=f"{root}{SWAGGER}/swagger-ui.css", swagger_favicon_url=f"{root}{SWAGGER}/favicon-32x32.png",
        )  # fmt: skip


def failing(app: FastAPI) -> None:
    """Every error as JSON, with a status of its own and nothing of what was sent."""

    @app.exception_handler(QAError)
    async def ours(_request: Request, error: QAError) -> Response:
        retry = {"Retry-After": str(RETRY_AFTER_S)} if isinstance(error, Full | NotReady) else None
        return problem(_status(error), str(error), retry)

    @app.exception_handler(HTTPException)
    async def plain(_request: Request, error: HTTPException) -> Response:
        if isinstance(error.__cause__, ClientDisconnect):
            return Response(status_code=GONE)
        if error.status_code == 400:  # the framework's, for a body that it could not make JSON of
            why = "is not in UTF-8" if isinstance(error.__cause__, UnicodeDecodeError) else "cannot be read as JSON"
            return problem(422, f"The body cannot be used: it {why}. {UNUSABLE}")
        said = NOTHING if error.status_code == 404 else str(error.detail)
        return problem(error.status_code, said, error.headers)

    @app.exception_handler(RequestValidationError)
    async def unusable(_request: Request, error: RequestValidationError) -> Response:
        wrong = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
        return problem(422, f"The body cannot be used: {wrong[:1_000]}. {UNUSABLE}")

    @app.exception_handler(TimeoutError)
    async def late(_request: Request, _error: TimeoutError) -> Response:
        return problem(504, "There was no answer in time. Ask less at once, or again later.")

    @app.exception_handler(Exception)
    async def broken(_request: Request, _error: Exception) -> Response:  # which the server logs with its traceback
        return problem(500, "Something here is broken; the server's log says what. Please report it.")

    @app.exception_handler(Gone)
    async def gone(_request: Request, _error: Gone) -> Response:
        return Response(status_code=GONE)


def _status(error: QAError) -> int:
    match error:
        case UnknownBackend():
            return 404
        case InputError():
            return 422
        case Full() | NotReady() | NeverReady():
            return 503
        case _:
            return 500


async def _in_time(
    request: Request, work: Awaitable[list[tuple[Answer, Prepared] | QAError]], seconds: float
) -> list[tuple[Answer, Prepared] | QAError]:
    """What ``work`` gives, which is cancelled where nobody waits for it any more.

    Raises:
        TimeoutError: it took longer.
        Gone: the client closed the connection.
    """
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_left(request))
    try:
        done, _ = await asyncio.wait({working, leaving}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if working in done:
            return working.result()
        raise Gone if leaving in done else TimeoutError
    finally:
        working.cancel()
        leaving.cancel()


async def _left(request: Request) -> None:
    """Returns when the client closes the connection; the body was read before."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _served(place: Place, device: str) -> ServedBackend:
    found = served(place.family, place.backend, device)
    precision = place.asked.ran.precision if place.asked else found.precision
    return found.model_copy(update={"precision": precision, "ready": place.batcher is not None, "error": place.error})
