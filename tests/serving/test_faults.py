"""A thousand requests, with everything going wrong that can: nothing is lost, and nobody gets another's answer."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from helpers import BASELINE
from serving.moody import MOODY, POISON, Mood, moody
from serving.test_rest import SMALL, Clients, ask, leave_at_once, metric, serving, until
from serving.test_together import word

from qa_backends.measure.timing.machine import this_machine
from qa_backends.paths import write_whole
from qa_backends.runtime import Runtime
from qa_backends.serving.bounds import MOST_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import httpx

    from qa_backends.catalog import Family

pytestmark = pytest.mark.slow
REQUESTS = int(os.environ.get("QA_FAULT_REQUESTS", "1000"))
REPORT = os.environ.get("QA_FAULT_REPORT", "")
"""A file to write what happened to, as ``assets/results/faults.json`` after ten thousand requests."""
CLIENTS, DEATHS = 32, 5
FAULTS = {"good": 78, "poison": 5, "empty": 5, "left": 4, "unknown": 2, "garbage": 2, "large": 2, "slow": 2}
"""Kinds of requests, by weight."""
CHUNK = b" " * 65_536
ANSWERED = ("good", "poison", "empty", "slow")
"""Those whose questions are read, but for what is wrong with them."""
SLOW_S = 0.02
MOST_GROWTH = 60e6
"""Bytes that memory may grow by from the middle of the run to its end."""


def words() -> list[str]:
    """Words that are one token each, so that the fake engine's answer, the first token, is the whole first word."""
    vocabulary = (BASELINE / "vocab.txt").read_text(encoding="utf-8").split("\n")
    return [each for each in vocabulary if each.isascii() and each.isalpha() and len(each) > 3 and each != POISON][
        :2_000
    ]


def one(client: httpx.Client, kind: str, names: list[str]) -> str:
    """Sends one request and says what was wrong with its answer; nothing, as a rule."""
    good = [{"question": "Who?", "context": f"{name} is what stands first. " * 3} for name in names]
    match kind:
        case "left":
            leave_at_once(client)
            return ""
        case "unknown":
            status = ask(client, *good, backend="nobody").status_code
            return "" if status == 404 else f"unknown: {status}"
        case "garbage" | "large":
            large = (CHUNK for _ in range(MOST_BYTES // len(CHUNK) + 1))
            body, expected = (b"{", 422) if kind == "garbage" else (large, 413)
            status = client.post("/v1/answer", content=body).status_code
            return "" if status == expected else f"{kind}: {status}"
        case "slow":
            return read_slowly(client, good, names)
    bad = {"poison": {"question": "Who?", "context": POISON}, "empty": {"question": "", "context": "Ada"}}.get(kind)
    response = ask(client, *good, *([bad] if bad else []))
    if response.status_code != 200:
        return f"{kind}: {response.status_code}"
    answers = response.json()["answers"]
    if bad and "error" not in answers.pop():
        return f"{kind}: answered"
    found = [each.get("answer") or each for each in answers]
    return "" if found == names else f"{kind}: {found} for {names}"


def read_slowly(client: httpx.Client, queries: list[dict[str, str]], names: list[str]) -> str:
    """Sends and reads as one whose connection is a bad one: a few bytes at a time."""
    asked = json.dumps({"backend": SMALL, "queries": queries}).encode()

    def sent() -> Iterator[bytes]:
        for first in range(0, len(asked), 64):
            time.sleep(SLOW_S)
            yield asked[first : first + 64]

    headers = {"Content-Type": "application/json"}
    with client.stream("POST", "/v1/answer", content=sent(), headers=headers) as response:
        body = b""
        for part in response.iter_raw(chunk_size=64):
            time.sleep(SLOW_S)
            body += part
    if response.status_code != 200:
        return f"slow: {response.status_code}"
    found = [each["answer"] for each in json.loads(body)["answers"]]
    return "" if found == names else f"slow: {found} for {names}"


def test_nothing_is_lost_or_mixed_up_whatever_goes_wrong(
    add_engine: Callable[[str, str], None], small_family: Family
) -> None:
    mood: Mood = moody(add_engine)
    mood.poison = word(small_family, POISON)
    chance, known = random.Random(7), words()
    kinds = chance.choices(list(FAULTS), weights=list(FAULTS.values()), k=REQUESTS)
    asked = [(kind, chance.sample(known, chance.randint(1, 4))) for kind in kinds]
    done: Counter[str] = Counter()
    memory: list[int] = []
    counting = threading.Lock()

    with serving(Runtime(), small_family, [MOODY]) as client:
        clients = Clients(client)

        def send(number: int) -> str:
            kind, names = asked[number]
            if number % (REQUESTS // DEATHS) == REQUESTS // DEATHS // 2:
                mood.dies.set()
            wrong = one(clients.own, kind, names)
            with counting:
                done[kind] += 1
                if sum(done.values()) in (REQUESTS // 2, REQUESTS):
                    memory.append(psutil.Process().memory_info().rss)
            return wrong

        with ThreadPoolExecutor(CLIENTS) as senders:
            wrong = [each for each in senders.map(send, range(REQUESTS)) if each]
        until(lambda: metric(client, "qa_waiting", backend=SMALL) == 0)
        batches = metric(client, "qa_batch_questions_count", backend=SMALL)
        questions = metric(client, "qa_batch_questions_sum", backend=SMALL)
    if REPORT:
        report = {
            "requests": REQUESTS,
            "clients": CLIENTS,
            "kinds": dict(sorted(done.items())),
            "wrong": wrong,
            "engine_died": mood.loaded - 1,
            "questions_read": int(questions),
            "batches": int(batches),
            "memory_mib": {"half_way": round(memory[0] / 2**20), "at_the_end": round(memory[1] / 2**20)},
            "machine": asdict(this_machine()),
        }
        write_whole(Path(REPORT), json.dumps(report, indent=1) + "\n")
    assert wrong == []
    assert sum(done.values()) == REQUESTS and set(done) == set(FAULTS)
    assert mood.loaded > 1, "it died and was loaded again"
    answerable = sum(len(names) + (kind == "poison") for kind, names in asked if kind in ANSWERED)
    assert answerable <= questions <= answerable + done["left"] and batches < questions
    assert memory[1] - memory[0] < MOST_GROWTH
