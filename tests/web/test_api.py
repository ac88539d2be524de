"""The app's named endpoints, through ``gradio_client``."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError
from helpers import QUESTION, TEXT

from qa_backends import catalog
from qa_backends.asking.ask import Asking
from qa_backends.contract import Query
from qa_backends.progress import Cancelled
from qa_backends.web import api
from qa_backends.web.api import Endpoints

if TYPE_CHECKING:
    from collections.abc import Callable

    from qa_backends.catalog import Backend, Family
    from qa_backends.runtime import Runtime

PATIENCE_S = 30.0


@pytest.fixture(scope="module")
def client(url: str) -> Client:
    return Client(url, verbose=False)


def test_the_endpoints_have_names(client: Client) -> None:
    endpoints = client.view_api(return_format="dict")["named_endpoints"]
    assert set(endpoints) == {"/answer", "/ask"}
    for each in endpoints.values():
        assert not [part["label"] for part in each["returns"] if part["label"].startswith("value_")]


def test_answer_gives_json(client: Client) -> None:
    found = client.predict(QUESTION, TEXT, "baseline", api_name="/answer")
    assert found["answer"] == TEXT[slice(*found["span"])]
    assert found["backend"] == "minilm/baseline" and found["ran"]["device"] == "CPU"
    assert set(found["times_ms"]) == {"tokenise", "wait", "model", "decode", "total"} and found["times_ms"]["model"] > 0


def test_ask_gives_the_comparison(client: Client) -> None:
    found = client.predict(QUESTION, TEXT, ["pruned", "baseline"], seconds=1, api_name="/ask")
    assert [card["backend"] for card in found["cards"]] == ["baseline", "pruned"]
    assert all(card["answer"] in TEXT and card["latency_ms"] > 0 for card in found["cards"])
    assert found["question"] == QUESTION and found["tokens"] > 0
    assert {each["title"] for each in found["cards"][1]["quality"]} == {"SQuAD", "other texts", "everyday texts"}


def test_half_an_emoji_can_be_asked_about(runtime: Runtime) -> None:
    asked = Endpoints(runtime)
    *_, found = asked.ask("\ud83d Who?", f"\ud83d{TEXT}\ude00", ["baseline"], seconds=0)
    *_, answer = asked.answer("\ud83d Who?", f"\ud83d{TEXT}\ude00")
    for each in (found, answer):
        assert json.dumps(each, ensure_ascii=False).encode(), "as it is sent"
    assert found and found["context"] == f"?{TEXT}?"


def test_a_name_that_is_repeated_is_looked_up_once(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[str] = []
    resolve = catalog.resolve

    def noting(name: str, family: str | None = None) -> tuple[Family, Backend]:
        looked_up.append(name)
        return resolve(name, family)

    monkeypatch.setattr(catalog, "resolve", noting)
    *_, found = Endpoints(runtime).ask(QUESTION, TEXT, ["baseline"] * 1_000, seconds=0)
    assert found and len(found["cards"]) == len(looked_up) == 1


def test_what_a_client_asked_that_left_is_ended(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    began, ended = threading.Event(), threading.Event()

    def endless(_runtime: Runtime, of: Family, *_given: Any, emit: Callable[[Asking], None], **_named: Any) -> None:
        began.set()
        try:
            while True:
                emit(Asking(Query(QUESTION, TEXT), of, "cpu", []))
                time.sleep(0.05)
        except Cancelled:
            ended.set()
            raise

    monkeypatch.setattr(api, "ask", endless)
    call = f"{url}gradio_api/call/ask"
    event = httpx.post(call, json={"data": [QUESTION, TEXT, ["baseline"], "", "", 60]}).json()["event_id"]
    with httpx.stream("GET", f"{call}/{event}"):
        assert began.wait(PATIENCE_S) and not ended.is_set()
    assert ended.wait(PATIENCE_S)


@pytest.mark.parametrize(
    ("backends", "seconds", "said"),
    [
        ([], 0, "No backend is chosen"),
        (["baseline"], 600, "0 to 60 seconds"),
        (["minilm/baseline", "bert-large/pruned"], 0, "several families"),
    ],
)
def test_what_cannot_be_asked_together_gets_a_sentence(
    client: Client, backends: list[str], seconds: float, said: str
) -> None:
    with pytest.raises(AppError, match=said):
        client.predict(QUESTION, TEXT, backends, seconds=seconds, api_name="/ask")


@pytest.mark.parametrize(
    ("question", "context", "backend", "said"),
    [
        ("", TEXT, "baseline", "There is no question"),
        (QUESTION, " \n", "baseline", "There is no text"),
        (QUESTION, "x" * 200_001, "baseline", "200,000"),
        (QUESTION, TEXT, "nobody", "Choose one of"),
        (QUESTION, TEXT, "bert-large/baseline", "Hub could not be reached"),
    ],
    ids=lambda value: value[:20],
)
def test_trouble_is_a_sentence(client: Client, question: str, context: str, backend: str, said: str) -> None:
    with pytest.raises(AppError, match=said):
        client.predict(question, context, backend, api_name="/answer")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [({"context": None}, "'context' cannot be read"), ({"backends": "baseline"}, "'backends' cannot be read"),
     ({"backends": [5]}, "'backend' cannot be read"),
     ({"seconds": "soon"}, "'seconds' cannot be read")],
)  # fmt: skip
def test_values_of_another_kind_get_a_sentence(client: Client, wrong: dict[str, object], said: str) -> None:
    given = {"question": QUESTION, "context": TEXT, "backends": ["baseline"], "seconds": "0"}
    assert client.predict(**given, api_name="/ask")["cards"], "a number may come as text"
    with pytest.raises(AppError, match=said):
        client.predict(**given | wrong, api_name="/ask")


def test_two_people_at_once_get_their_own_answers(client: Client) -> None:
    names = ["Ada", "Bela", "Cyrus", "Dora", "Emil", "Fatima"]

    def ask(name: str) -> dict[str, object]:
        return dict(
            client.predict("Who came to the door?", f"{name} came to the door.", "baseline", api_name="/answer")
        )

    with ThreadPoolExecutor(len(names)) as pool:
        found = list(pool.map(ask, names))
    for name, each in zip(names, found, strict=True):
        text = f"{name} came to the door."
        assert each["answer"] is None or str(each["answer"]) in text
    spans = {name: each["span"] for name, each in zip(names, found, strict=True)}
    assert any(spans.values()), "a trained model finds at least one of them"
