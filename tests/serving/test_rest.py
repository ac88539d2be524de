"""The HTTP interface over a real socket: what programs get, and what they are told when they get nothing."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import uvicorn
from helpers import QUESTION, TEXT
from prometheus_client.parser import text_string_to_metric_families
from serving.moody import MOODY, POISON, Mood, moody
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from qa_backends import catalog
from qa_backends.runtime import Runtime
from qa_backends.serving.batching import BatchSize
from qa_backends.serving.bounds import LOG, MOST_BYTES, Bounded
from qa_backends.serving.log import Lines
from qa_backends.serving.server import application, service_of
from qa_backends.serving.service import Bounds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from qa_backends.catalog import Backend, Family
    from qa_backends.progress import Progress

    AddFile = Callable[[str, str], None]

PATIENCE_S, BUILT_WITHIN_S = 60.0, 300.0
SHORT = Bounds(seconds=1.0)
"""What a test waits for to pass: an answer that must come is asked for again where a busy machine takes longer."""
SMALL = "small/baseline-moody"
QUERY = {"question": QUESTION, "context": TEXT}
SECRET_WORD = "Quisquilloso"


@contextmanager
def serving(
    runtime: Runtime, of: Family, backends: Sequence[Backend], *, bounds: Bounds | None = None, key: str | None = None,
    size: BatchSize | None = None, page: bool = False, wait: bool = True,
) -> Iterator[httpx.Client]:  # fmt: skip
    """A server on a port of its own, and a client of it."""
    service = service_of(runtime, of, backends, "cpu", size or BatchSize(), bounds or Bounds())
    config = uvicorn.Config(application(service, key=key, page=page), port=0, log_config=None, access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    headers = {"Authorization": f"Bearer {key}".encode()} if key else {}
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S, headers=headers) as client:
        if wait:
            until(lambda: client.get("/ready").status_code == 200, BUILT_WITHIN_S)
        yield client
    server.should_exit = True
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


class Clients(threading.local):
    """A client for each thread that asks: one that threads share may close what another is about to use, since
    httpcore takes a connection for idle until the request that was given it is sent.
    """

    def __init__(self, like: httpx.Client) -> None:
        self.own = httpx.Client(base_url=like.base_url, timeout=PATIENCE_S)


@pytest.fixture
def mood(add_engine: AddFile) -> Iterator[Mood]:
    yield (found := moody(add_engine))
    found.let.set()
    # A server may be closed while its backends are being made ready, which would go on with the next test's engine.
    until(lambda: all(each.name != "getting ready" for each in threading.enumerate()))


@pytest.fixture
def client(mood: Mood, small_family: Family) -> Iterator[httpx.Client]:
    with serving(Runtime(), small_family, [MOODY]) as found:
        yield found


def ask(client: httpx.Client, *queries: dict[str, str], backend: str = SMALL) -> httpx.Response:
    return client.post("/v1/answer", json={"backend": backend, "queries": list(queries)})


def problem(response: httpx.Response) -> str:
    error = response.json()["error"]
    assert set(error) == {"code", "message"}
    return str(error["message"])


def metric(client: httpx.Client, name: str, **labels: str) -> float:
    families = text_string_to_metric_families(client.get("/metrics").text)
    samples = [each for family in families for each in family.samples if each.name == name]
    return sum(each.value for each in samples if labels.items() <= each.labels.items())


def until(holds: Callable[[], bool], within_s: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_text_asked_about_again_is_not_tokenised_again(mood: Mood, small_family: Family, encoded: list[str]) -> None:
    for kept_chars, times in ((10_000, 1), (0, 3)):
        with serving(Runtime(), small_family, [MOODY], bounds=Bounds(kept_chars=kept_chars)) as client:
            encoded.clear()
            answers = [ask(client, QUERY).json()["answers"] for _ in range(3)]
        assert encoded.count(QUERY["context"]) == times
        assert answers[0] == answers[1] == answers[2]


def test_the_embedded_models_answer(runtime: Runtime) -> None:
    minilm = catalog.family("minilm")
    with serving(runtime, minilm, [catalog.backend("baseline"), catalog.backend("pruned-ort")]) as client:
        given = ask(client, QUERY, {**QUERY, "question": "What does the bakery cost?"}, backend="pruned-ort").json()
        listed = client.get("/v1/backends").json()["backends"]
    assert given["backend"] == "minilm/pruned-ort"
    first, second = given["answers"]
    assert first["answer"] == "Ben" and TEXT[slice(*first["span"])] == "Ben" and 0 < first["confidence"] <= 1
    assert (first["n_windows"], first["notices"]) == (1, [])
    assert second["answer"] is None and second["span"] is None and second["null_score"] > second["score"]
    assert [each["name"] for each in listed] == ["minilm/baseline", "minilm/pruned-ort"]
    assert all(each["ready"] and each["f1"]["SQuAD"] > 70 and each["precision"] == "FP32" for each in listed)


def test_answers_come_in_order_and_each_query_has_its_own_error(
    client: httpx.Client, mood: Mood, small_family: Family
) -> None:
    from serving.test_together import word

    mood.poison = word(small_family, POISON)
    response = ask(
        client, {"question": "?", "context": "Alpha beta"}, {"question": "", "context": "Gamma"},
        {"question": "?", "context": f"{POISON} delta"}, {"question": "?", "context": "x" * 200_001},
        {"question": "?", "context": "Epsilon"},
    )  # fmt: skip
    assert response.status_code == 200
    first, second, third, fourth, fifth = response.json()["answers"]
    assert first["answer"] == "Alpha" and fifth["answer"] and "Epsilon".startswith(fifth["answer"])
    assert second["error"] == {"code": "input", "message": "There is no question. Type one about the text."}
    assert third["error"]["code"] == "backend" and "poisoned" in third["error"]["message"]
    assert "the limit is 200,000" in fourth["error"]["message"]
    assert mood.loaded == 1


def test_half_an_emoji_in_a_text_costs_nobody_an_answer(client: httpx.Client) -> None:
    halved = [{"question": "?", "context": f"\ud83d{word}"} for word in ("Alpha", "Beta")]
    body = json.dumps({"backend": SMALL, "queries": [*halved, {"question": "\ud83d?", "context": "Gamma"}]})
    response = client.post("/v1/answer", content=body, headers={"content-type": "application/json"})
    assert (
        response.status_code == 200 and [each["error"] for each in response.json()["answers"] if "error" in each] == []
    )


def test_what_nobody_can_answer_is_refused_at_once_though_somebody_is_timed(mood: Mood, small_family: Family) -> None:
    runtime = Runtime()
    with serving(runtime, small_family, [MOODY]) as client, runtime.turn("cpu"):
        (refused,) = ask(client, {"question": "?", "context": "x" * 200_001}).json()["answers"]
    assert "the limit is 200,000" in refused["error"]["message"] and mood.loaded == 1


def test_errors_say_what_to_do_in_json(client: httpx.Client) -> None:
    unknown = ask(client, QUERY, backend="nobody")
    assert unknown.status_code == 404 and SMALL in problem(unknown)
    for body in (b"", b"{", b"[]", b'{"backend": "baseline-moody"}', b'{"backend": 1, "queries": []}'):
        bad = client.post("/v1/answer", content=body, headers={"content-type": "application/json"})
        assert bad.status_code == 422 and problem(bad).startswith("The body cannot be used: body")
    for body, why in ((b"\xff", "not in UTF-8"), (b"[" * 100_000, "read as JSON"), (b"1" * 5_000, "read as JSON")):
        bad = client.post("/v1/answer", content=body, headers={"content-type": "application/json"})
        assert bad.status_code == 422 and why in problem(bad)
    assert ask(client).status_code == ask(client, *[QUERY] * 65).status_code == 422
    wrong = ask(client, {"question": SECRET_WORD, "context": SECRET_WORD, SECRET_WORD: "more"})
    assert wrong.status_code == 422 and problem(wrong).count(SECRET_WORD) == 1, "the field's name, not what it holds"
    many = {"backend": SMALL, "queries": [QUERY]} | {f"{SECRET_WORD}{number}": 1 for number in range(100)}
    named = problem(client.post("/v1/answer", json=many))
    assert named.count(SECRET_WORD) == 1 and "no field" in named, "an error for each of a body's names takes seconds"
    plain = client.post("/v1/answer", content=json.dumps({"backend": SMALL, "queries": [QUERY]}))
    assert plain.status_code == 422 and "Content-Type: application/json" in problem(plain)


def test_what_nobody_foresaw_is_an_error_like_the_others_and_logged(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("qa_backends.serving.rest.given", lambda _found: 1 / 0)
    broken = ask(client, QUERY)
    assert broken.status_code == 500 and "log" in problem(broken)
    until(lambda: "ZeroDivisionError" in caplog.text)


def check_paths(client: httpx.Client) -> None:
    """Other methods and other names below ours are errors of ours, with the page beside them or without."""
    for path, allowed in {"/v1/answer": "POST", "/v1/backends": "GET", "/ready": "GET, HEAD"}.items():
        for method in {"GET", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PROPFIND"} - set(allowed.split(", ")):
            refused = client.request(method, path, headers={"Origin": "http://localhost:3000"})
            assert refused.status_code == 405 and refused.headers["allow"] == allowed and allowed in problem(refused)
            assert "access-control-allow-origin" not in refused.headers
    for path in ("/v1/nothing", "/v1/backends/", "/v1/"):
        for method in ("GET", "PROPFIND"):
            nothing = client.request(method, path)
            assert nothing.status_code == 404 and "/docs" in problem(nothing)
    assert client.head("/health").status_code == client.head("/ready").status_code == 200


def test_other_paths_and_methods_are_refused_in_the_same_shape(client: httpx.Client) -> None:
    check_paths(client)
    assert client.get("/elsewhere").status_code == 404 and problem(client.get("/elsewhere"))


def test_more_queries_than_may_ever_wait_are_not_told_to_come_again(mood: Mood, small_family: Family) -> None:
    with serving(Runtime(), small_family, [MOODY], bounds=Bounds(accepted=3)) as client:
        refused = ask(client, *[QUERY] * 4)
        assert refused.status_code == 422 and "at most 3" in problem(refused)


def test_a_body_that_is_too_large_is_refused_whatever_its_header_says(client: httpx.Client) -> None:
    body = b" " * (MOST_BYTES + 1)
    announced = client.post("/v1/answer", content=body)
    assert announced.status_code == 413 and "8 MiB" in problem(announced)
    streamed = client.post("/v1/answer", content=(body[at : at + 65_536] for at in range(0, len(body), 65_536)))
    assert streamed.status_code == 413 and "8 MiB" in problem(streamed)


def test_a_body_is_bounded_under_a_prefix_too() -> None:
    """Ray leaves a route's prefix in the path."""
    body = b" " * (MOST_BYTES + 1)
    app = Starlette(routes=[Route("/v1/answer", lambda _request: Response(), methods=["POST"])])
    mounted = httpx.ASGITransport(Bounded(app, ("/v1/answer",), PATIENCE_S), root_path="/qa")

    async def asked() -> int:
        async with httpx.AsyncClient(transport=mounted, base_url="http://here") as there:
            return (await there.post("/qa/v1/answer", content=body)).status_code

    assert asyncio.run(asked()) == 413


def test_a_body_that_does_not_come_is_not_waited_for(mood: Mood, small_family: Family) -> None:
    with serving(Runtime(), small_family, [MOODY], bounds=SHORT) as client:
        head = (
            b"POST /v1/answer HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
        )
        with socket.create_connection((client.base_url.host, client.base_url.port or 80), PATIENCE_S) as slow:
            slow.sendall(head + b'{"backend":')
            told = b"".join(iter(lambda: slow.recv(65_536), b""))  # to the end: the connection is closed
        assert told.startswith(b"HTTP/1.1 408 ") and b"did not come in time" in told
        assert metric(client, "qa_requests_total", route="/v1/answer", status="408") == 1
        until(lambda: ask(client, QUERY).status_code == 200)


def in_background(client: httpx.Client, count: int = 1) -> list[threading.Thread]:
    """Requests of one query each, whose answers nobody looks at."""
    clients = Clients(client)
    threads = [threading.Thread(target=lambda: ask(clients.own, QUERY), daemon=True) for _ in range(count)]
    for each in threads:
        each.start()
    return threads


def answered(mood: Mood, waiting: Sequence[threading.Thread]) -> None:
    """Lets the requests that wait get their answers."""
    mood.let.set()
    for each in waiting:
        each.join(PATIENCE_S)


def test_a_full_queue_is_said_with_when_to_come_again(mood: Mood, small_family: Family) -> None:
    with serving(Runtime(), small_family, [MOODY], bounds=Bounds(accepted=3)) as client:
        mood.let.clear()
        waiting = in_background(client)
        until(lambda: len(mood.forwards) > 1)
        waiting += in_background(client)
        until(lambda: metric(client, "qa_waiting") == 1)
        full = ask(client, QUERY, QUERY)
        assert full.status_code == 503 and full.headers["retry-after"] == "1" and "2 questions" in problem(full)
        waiting += in_background(client)
        answered(mood, waiting)
        assert ask(client, QUERY, QUERY, QUERY).status_code == 200


def test_texts_that_wait_are_bounded_together(mood: Mood, small_family: Family) -> None:
    with serving(Runtime(), small_family, [MOODY], bounds=Bounds(accepted_chars=3 * len(QUESTION + TEXT))) as client:
        mood.let.clear()
        waiting = in_background(client)
        until(lambda: len(mood.forwards) > 1)
        full = ask(client, QUERY, QUERY, QUERY)
        assert full.status_code == 503 and full.headers["retry-after"] == "1" and "too much text" in problem(full)
        waiting += in_background(client)
        answered(mood, waiting)
        assert ask(client, QUERY, QUERY, QUERY).status_code == 200


def test_a_request_that_takes_too_long_is_ended(mood: Mood, small_family: Family) -> None:
    with serving(Runtime(), small_family, [MOODY], bounds=SHORT) as client:
        mood.let.clear()
        late = ask(client, QUERY)
        mood.let.set()
        assert late.status_code == 504 and "in time" in problem(late)
        until(lambda: ask(client, QUERY).status_code == 200)


def test_concurrent_questions_share_a_call_and_what_was_left_is_not_computed(client: httpx.Client, mood: Mood) -> None:
    mood.let.clear()
    threads = in_background(client)
    until(lambda: len(mood.forwards) > 1)
    threads += in_background(client, 4)
    until(lambda: metric(client, "qa_waiting", backend=SMALL) == 4)
    leave(client)
    until(lambda: metric(client, "qa_requests_total", status="499") == 1)
    mood.forwards.clear()
    mood.let.set()
    for each in threads:
        each.join(PATIENCE_S)
    assert sum(mood.forwards) == 4, "four that waited, and nothing of the one who left"
    assert len(mood.forwards) < 4 and metric(client, "qa_batch_questions_sum", backend=SMALL) == 5


def leave(client: httpx.Client) -> None:
    """Asks, waits until the question is accepted, and closes the connection."""
    before = metric(client, "qa_waiting")
    leave_at_once(client, lambda: until(lambda: metric(client, "qa_waiting") == before + 1))


def leave_at_once(client: httpx.Client, first: Callable[[], None] = lambda: None) -> None:
    """Asks, does what there is to do ``first``, and closes the connection without reading the answer."""
    body = json.dumps({"backend": SMALL, "queries": [QUERY]}).encode()
    head = f"POST /v1/answer HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    with socket.create_connection((client.base_url.host, client.base_url.port or 80)) as connection:
        connection.sendall(head.encode() + b"\r\n\r\n" + body)
        first()


def test_nothing_is_computed_while_somebody_is_timed(
    mood: Mood, small_family: Family, encoded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime, arrived = Runtime(), threading.Event()
    beside = runtime.beside

    def noting() -> AbstractContextManager[None]:
        arrived.set()
        return beside()

    monkeypatch.setattr(runtime, "beside", noting)
    with serving(runtime, small_family, [MOODY]) as client:
        mood.forwards.clear()
        encoded.clear()
        with runtime.turn("cpu"):
            (waiting,) = in_background(client)
            until(lambda: arrived.is_set() or bool(encoded))
            assert mood.forwards == [] and encoded == [], "neither read nor tokenised"
        waiting.join(PATIENCE_S)
        assert mood.forwards == [1] and QUERY["context"] in encoded


def test_a_server_that_is_not_ready_says_so(mood: Mood, small_family: Family) -> None:
    runtime = Runtime()
    with runtime.turn("cpu"), serving(runtime, small_family, [MOODY], wait=False) as client:
        assert client.get("/health").json() == {"status": "alive"}
        ready, early = client.get("/ready"), ask(client, QUERY)
        assert ready.status_code == early.status_code == 503 and ready.headers["retry-after"] == "1"
        assert "being made ready" in problem(ready) and "being made ready" in problem(early)


def test_a_backend_that_cannot_be_had_is_said_and_the_others_answer(mood: Mood, small_family: Family) -> None:
    broken = next(each for each in catalog.every_backend() if each.name == "baseline-deepspeed-fp16")
    with serving(Runtime(), small_family, [broken, MOODY]) as client:
        assert ask(client, QUERY).status_code == 200
        refused = ask(client, QUERY, backend=broken.name)
        listed = client.get("/v1/backends").json()["backends"]
        assert client.get("/ready").status_code == 200
    assert refused.status_code == 503 and problem(refused) == listed[0]["error"]
    assert "retry-after" not in refused.headers and "not tried again" in problem(refused)
    assert [each["ready"] for each in listed] == [False, True]


def test_a_server_that_none_of_its_backends_can_be_had_for_is_never_ready(mood: Mood, small_family: Family) -> None:
    broken = next(each for each in catalog.every_backend() if each.name == "baseline-deepspeed-fp16")
    with serving(Runtime(), small_family, [broken], wait=False) as client:
        until(lambda: "retry-after" not in client.get("/ready").headers)
        ready, listed = client.get("/ready"), client.get("/v1/backends").json()["backends"]
    assert ready.status_code == 503 and problem(ready) == listed[0]["error"]
    assert "being made ready" not in problem(ready)


def test_a_key_guards_the_interface_and_not_the_signs_of_life(mood: Mood, small_family: Family) -> None:
    with serving(Runtime(), small_family, [MOODY], key="schlüssel") as client:
        assert ask(client, QUERY).status_code == 200
        for key in ("", "Bearer wrong", "schlussel"):
            client.headers["Authorization"] = key
            refused = ask(client, QUERY)
            assert refused.status_code == 401 and "Bearer KEY" in problem(refused)
            assert client.get("/metrics").status_code == client.get("/v1/backends").status_code == 401
            assert client.get("/health").status_code == client.get("/ready").status_code == 200
        for body in (b"{", b" " * (MOST_BYTES + 1)):
            unread = client.post("/v1/answer", content=body, headers={"content-type": "application/json"})
            assert unread.status_code == 401 and "Bearer KEY" in problem(unread)


@pytest.mark.parametrize(
    ("told", "status"),
    [("Bearer schlüssel", 422), ("bearer  schlüssel", 422), ("Bearer schlussel", 401), ("Basic schlüssel", 401)],
)
@pytest.mark.parametrize("path", ["/v1/answer", "/v1/answer\n"], ids=["as it is", "as Starlette takes it too"])
def test_nothing_of_a_body_is_read_before_its_key_is_known(
    small_family: Family, told: str, status: int, path: str
) -> None:
    service = service_of(Runtime(), small_family, [catalog.backend("baseline")], "cpu", BatchSize(), Bounds())
    app, read, sent = application(service, key="schlüssel", page=False), list[bool](), list[dict[str, Any]]()

    async def receive() -> dict[str, Any]:
        read.append(True)
        return {"type": "http.request", "body": b"{"}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"content-type", b"application/json"), (b"authorization", told.encode())]
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers}
    asyncio.run(app(scope, receive, send))
    assert sent[0]["status"] == status and bool(read) is (status != 401)


def test_the_description_says_which_paths_a_key_guards(small_family: Family) -> None:
    service = service_of(Runtime(), small_family, [catalog.backend("baseline")], "cpu", BatchSize(), Bounds())
    for key, guarded in (("s3cret", {"/v1/answer", "/v1/backends", "/metrics"}), (None, set())):
        described = application(service, key=key, page=False).openapi()
        kinds = [each["scheme"] for each in described["components"].get("securitySchemes", {}).values()]
        assert kinds == ["bearer"] * bool(key)
        asked = {path: next(iter(each.values())) for path, each in described["paths"].items()}
        assert {path for path, each in asked.items() if each.get("security")} == guarded


def test_what_is_being_made_ready_ends_with_the_server(
    mood: Mood, small_family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = Runtime()
    service = service_of(runtime, small_family, [MOODY], "cpu", BatchSize(), Bounds())
    begun = threading.Event()

    def build(_family: object, _backend: object, _device: object, progress: Progress) -> None:
        begun.set()
        while True:
            progress.check()
            time.sleep(0.01)

    monkeypatch.setattr(runtime, "load", build)
    service.start()
    assert begun.wait(PATIENCE_S)
    service.close()
    until(lambda: all(each.name != "getting ready" for each in threading.enumerate()), PATIENCE_S)
    assert not service.ready and service.places[SMALL].error is None


def test_logs_are_lines_of_json_that_hold_no_text(client: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    ask(client, {"question": SECRET_WORD, "context": SECRET_WORD})
    ask(client, {"question": SECRET_WORD, "context": "", SECRET_WORD: ""})
    ask(client, QUERY, backend=SECRET_WORD)
    client.get(f"/{SECRET_WORD}")
    lines = [Lines().format(each) for each in caplog.records if each.name.startswith(("qa_backends", "uvicorn"))]
    told = [each for each in map(json.loads, lines) if each["logger"] == LOG]
    found = [each for each in told if each["path"] == "/v1/answer"]
    assert [(each["path"], each["status"]) for each in found] == [("/v1/answer", 200), ("/v1/answer", 422),
                                                                     ("/v1/answer", 404)]  # fmt: skip
    assert (found[0]["backend"], found[0]["queries"]) == (SMALL, 1) and found[0]["ms"] > 0
    assert not any(SECRET_WORD in each for each in lines)


def test_metrics_count_requests_batches_and_memory(client: httpx.Client) -> None:
    for _ in range(3):
        ask(client, QUERY)
    assert metric(client, "qa_requests_total", route="/v1/answer", status="200") == 3
    assert metric(client, "qa_request_seconds_count", route="/v1/answer") == 3
    assert metric(client, "qa_batch_questions_sum", backend=SMALL) == 3
    assert metric(client, "process_resident_memory_bytes") > 1e7
    client.get("/v1/made-up")
    assert metric(client, "qa_requests_total", route="/v1/made-up") == 0


def test_the_interface_describes_itself_without_other_hosts(client: httpx.Client) -> None:
    described = client.get("/openapi.json").json()
    assert {"/v1/answer", "/v1/backends", "/health", "/ready", "/metrics"} == set(described["paths"])
    assert {"401", "404", "413", "422", "503", "504"} <= set(described["paths"]["/v1/answer"]["post"]["responses"])
    page = client.get("/docs").text
    assert "//cdn" not in page and "https://" not in page
    for part in ("swagger-ui-bundle.js", "swagger-ui.css"):
        assert f"/swagger/{part}" in page and client.get(f"/swagger/{part}").status_code == 200
    assert client.options("/v1/answer", headers={"Origin": "https://elsewhere.example"}).headers.get(
        "access-control-allow-origin"
    ) is None  # fmt: skip


def test_the_page_stands_beside_the_interface(mood: Mood, small_family: Family) -> None:
    with serving(Runtime(), small_family, [MOODY], page=True) as client:
        page: Any = client.get("/")
        assert page.status_code == 200 and "Ask once, see every engine answer" in page.text
        check_paths(client)
        assert ask(client, QUERY).status_code == 200 and client.get("/openapi.json").json()["paths"]["/v1/answer"]
