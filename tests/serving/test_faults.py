"""A thousand requests, with everything going wrong that can: nothing is lost, and nobody gets another's answer."""

from __future__ import annotations

import random
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import psutil
import pytest
from helpers import BASELINE
from serving.moody import MOODY, POISON, Mood, moody
from serving.test_rest import SMALL, ask, leave_at_once, metric, serving, until
from serving.test_together import word

from qa_backends.runtime import Runtime
from qa_backends.serving.bounds import MOST_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from qa_backends.catalog import Family

pytestmark = pytest.mark.slow
REQUESTS, CLIENTS, DEATHS = 1_000, 32, 5
FAULTS = {"good": 80, "poison": 5, "empty": 5, "left": 4, "unknown": 2, "garbage": 2, "large": 2}
"""Kinds of requests, by weight."""
CHUNK = b" " * 65_536
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
    bad = {"poison": {"question": "Who?", "context": POISON}, "empty": {"question": "", "context": "Ada"}}.get(kind)
    response = ask(client, *good, *([bad] if bad else []))
    if response.status_code != 200:
        return f"{kind}: {response.status_code}"
    answers = response.json()["answers"]
    if bad and "error" not in answers.pop():
        return f"{kind}: answered"
    found = [each.get("answer") or each for each in answers]
    return "" if found == names else f"{kind}: {found} for {names}"


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

        def send(number: int) -> str:
            kind, names = asked[number]
            if number % (REQUESTS // DEATHS) == REQUESTS // DEATHS // 2:
                mood.dies.set()
            wrong = one(client, kind, names)
            with counting:
                done[kind] += 1
                if sum(done.values()) in (REQUESTS // 2, REQUESTS):
                    memory.append(psutil.Process().memory_info().rss)
            return wrong

        with ThreadPoolExecutor(CLIENTS) as clients:
            wrong = [each for each in clients.map(send, range(REQUESTS)) if each]
        until(lambda: metric(client, "qa_waiting", backend=SMALL) == 0)
        batches = metric(client, "qa_batch_questions_count", backend=SMALL)
        questions = metric(client, "qa_batch_questions_sum", backend=SMALL)
    assert wrong == []
    assert sum(done.values()) == REQUESTS and min(done.values()) > 0
    assert mood.loaded > 1, "it died and was loaded again"
    answerable = sum(len(names) + (kind == "poison") for kind, names in asked if kind in ("good", "poison", "empty"))
    assert answerable <= questions <= answerable + done["left"] and batches < questions
    assert memory[1] - memory[0] < MOST_GROWTH
