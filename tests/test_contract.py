"""One contract for every backend that is offered: it answers as the row says, or says how to mend that it cannot."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from contracts import check_backend
from helpers import QUESTION, TEXT

from qa_backends import catalog
from qa_backends.artefacts.steps import chain_of
from qa_backends.catalog import Backend, Family
from qa_backends.catalog.backends import PRUNED
from qa_backends.contract import Query
from qa_backends.errors import BackendFailed
from qa_backends.limits import has_bf16
from qa_backends.progress import UNWATCHED
from qa_backends.runtime import Runtime

MINILM = catalog.family("minilm")
FAKES = [each for each in catalog.every_backend() if each.engine == "fake" and each.checkpoint == catalog.BASELINE]
COVERED = (*catalog.BACKENDS, *FAKES)
SLOW = ("torch_compile",)
"""Engines that take a minute to load."""


def slow(backend: Backend) -> bool:
    """Whether its test is in the slow group: INT8 is gated by all shipped questions when it is built, and the chains of
    further checkpoints are built there anyway."""
    steps = chain_of(backend.artefact)
    further = steps and backend.checkpoint not in (catalog.BASELINE, PRUNED)
    return bool(further or backend.engine in SLOW or any(step.least_agreement for step in steps))


CASES = [
    pytest.param(
        backend,
        device,
        id=f"{backend.name} on {device}",
        marks=[pytest.mark.gpu] * (device == "cuda") + [pytest.mark.slow] * slow(backend),
    )
    for backend in COVERED
    for device in backend.runs_on
]


@pytest.mark.parametrize(("backend", "device"), CASES)
def test_a_backend_keeps_the_contract(backend: Backend, device: str, runtime: Runtime) -> None:
    ran = check_backend(runtime, MINILM, backend, device)
    without = backend.engine == "triton" or (dict(backend.options).get("precision") == "bf16" and not has_bf16("cpu"))
    assert ran or device == "cuda" or without, "a CPU that has what it needs runs it"


def test_the_contract_covers_all_that_is_offered() -> None:
    covered = {(each.artefact, each.engine, each.options) for each in COVERED}
    for family in catalog.families():
        assert {(each.artefact, each.engine, each.options) for each in catalog.offered(family)} <= covered
    assert {each.name for each in FAKES} == {"baseline-fake", "baseline-fake-last"}


WRONG = """
    from qa_backends.engines.pytorch import PyTorch


    class Wrong(PyTorch):
        short = "wrong"

        def forward(self, windows):
            logits = super().forward(windows)
            {damage}
            return logits

        def describe(self):
            from dataclasses import replace

            return replace(super().describe(), {ran})
"""


@pytest.mark.parametrize(
    ("damage", "ran", "check"),
    [
        ("logits.start[:] += 1", "", "_agrees_with_pytorch"),
        ("logits.end[:] = float('nan')", "", "_answers_from_the_text"),
        ("logits.start[:] += windows.n_windows == 2", "", "_answers_the_same_in_any_company"),
        (
            "logits.start[:] *= 1.00008 if windows.n_windows > 2 else 0.99992",
            "",
            "_computes_a_window_the_same_alone_and_in_a_batch",
        ),
        ("pass", "precision='INT8'", "_says_what_ran"),
        ("pass", "device='GPU of another kind'", "_says_what_ran"),
        ("pass", "file_hash='0' * 64", "_says_what_ran"),
    ],
    ids=[
        "other logits", "no numbers", "company that matters", "a batch that matters, though each is near PyTorch's",
        "another precision", "another device", "another file",
    ],
)  # fmt: skip
def test_an_engine_that_breaks_the_contract_is_caught_by_the_check_of_what_it_breaks(
    small_family: Family, add_engine: Callable[[str, str], None], damage: str, ran: str, check: str
) -> None:
    add_engine("wrong", WRONG.format(damage=damage, ran=ran))
    with pytest.raises((AssertionError, BackendFailed)) as caught:
        check_backend(Runtime(), small_family, Backend("baseline", "checkpoint", "wrong"), "cpu")
    assert check in [each.name for each in caught.traceback]


@pytest.mark.gpu
@pytest.mark.parametrize(
    "backend", [each for each in catalog.BACKENDS if len(each.runs_on) > 1], ids=lambda each: each.name
)
def test_on_a_gpu_the_answer_is_the_cpus(backend: Backend, runtime: Runtime) -> None:
    answers = {}
    for device in ("cpu", "cuda"):
        runtime.make_ready(MINILM, backend, device, UNWATCHED)
        with runtime.turn(device) as turn:
            answers[device] = turn.answer(MINILM, backend, turn.prepare(MINILM, Query(QUESTION, TEXT))).answer
    one, other = answers["cpu"], answers["cuda"]
    assert one.span == other.span
    assert np.isclose(one.score, other.score, atol=2 * backend.tolerance * max(1.0, abs(one.score)))
