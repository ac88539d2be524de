"""What every backend promises, as checks: for those of the catalogue, and for one that was added a minute ago."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
from helpers import QUESTION, TEXT

from qa_backends import catalog
from qa_backends.artefacts.compare import logit_difference
from qa_backends.catalog import Backend
from qa_backends.contract import Query
from qa_backends.progress import UNWATCHED
from qa_backends.runtime.turns import on_engine_thread

if TYPE_CHECKING:
    from qa_backends.catalog import Family
    from qa_backends.contract import SpanLogits, Windows
    from qa_backends.runtime import Runtime, Turn

QUERIES = (Query(QUESTION, TEXT), Query("What bore fruit?", TEXT * 40))
"""One that fits a window, and one that needs several."""
COMPANY = (QUERIES[0], Query(QUESTION, " ".join(reversed(TEXT.split()))))
"""Of the same length, and otherwise different."""


def check_backend(runtime: Runtime, family: Family, backend: Backend, device: str) -> bool:
    """All of the contract, on a device that this machine has; or, of a backend that cannot run here, a way to mend it.
    Says which of the two.

    Its logits may differ by the tolerance that its row derives, from PyTorch's on the same checkpoint.
    """
    if refusal := catalog.unavailable(backend, device):
        assert refusal.reason.endswith(".") and refusal.remedy
        return False
    runtime.make_ready(family, backend, device, UNWATCHED)
    with runtime.turn(device) as turn:
        _answers_from_the_text(turn, family, backend)
        _answers_the_same_in_any_company(turn, family, backend)
        for query in QUERIES:
            windows = turn.prepare(family, query).windows
            _agrees_with_pytorch(turn, family, backend, windows)
            _computes_a_window_the_same_alone_and_in_a_batch(turn, family, backend, windows)
            _computes_the_same_wherever_it_says_it_can_be_called(turn, family, backend, windows)
        _says_what_ran(turn, family, backend)
        _is_loaded_again(turn, family, backend)
    return True


def _forward(turn: Turn, family: Family, backend: Backend, windows: Windows) -> SpanLogits:
    """One call, on the thread that all of an engine's calls are made on."""
    engine = turn.runtime.get(family, backend, turn.device).engine
    return on_engine_thread(lambda: engine.forward(windows))


def _answers_from_the_text(turn: Turn, family: Family, backend: Backend) -> None:
    reading = turn.answer(family, backend, turn.prepare(family, QUERIES[0]))
    answer, times = reading.answer, reading.times
    assert reading.backend == f"{family.name}/{backend.name}"
    assert 0 <= answer.confidence <= 1
    assert np.isfinite([answer.score, answer.null_score]).all()
    if answer.span:
        assert TEXT[answer.span.start : answer.span.end] == answer.text != ""
    else:
        assert answer.text == ""
    assert min(times.tokenise_s, times.forward_s, times.decode_s) > 0


def _answers_the_same_in_any_company(turn: Turn, family: Family, backend: Backend) -> None:
    """Questions of like length, which share a batch: nobody's answer hangs on who asks at the same time."""
    reader = turn.runtime.reader(family)
    together = turn.answer_all(family, backend, reader.prepare_all(COMPANY)).answers
    for query, found in zip(COMPANY, together, strict=True):
        (alone,) = turn.answer_all(family, backend, reader.prepare_all([query])).answers
        allowed = 1e-4 if backend.scaled_by_batch else backend.tolerance * max(1.0, abs(alone.score))
        assert abs(found.score - alone.score) <= allowed


def _agrees_with_pytorch(turn: Turn, family: Family, backend: Backend, windows: Windows) -> None:
    expected = _forward(turn, family, Backend(backend.checkpoint, "checkpoint", "pytorch"), windows)
    found = _forward(turn, family, backend, windows)
    assert found.start.shape == found.end.shape == windows.input_ids.shape
    assert found.start.dtype == found.end.dtype == np.float32
    assert found.shape[0] >= windows.n_windows and found.shape[1] >= windows.seq_len, "what was computed holds it all"
    assert logit_difference(expected, found, windows) <= backend.tolerance


def _computes_a_window_the_same_alone_and_in_a_batch(
    turn: Turn, family: Family, backend: Backend, windows: Windows
) -> None:
    together = _forward(turn, family, backend, windows)
    largest = max(1.0, float(np.abs(together.start[windows.attention_mask == 1]).max()))
    # Scaled by what else is in the batch, both lie within the tolerance of PyTorch's, so within twice of each other.
    allowed = backend.tolerance * largest * (2 if backend.scaled_by_batch else 1)
    for number in range(windows.n_windows):
        alone = _forward(turn, family, backend, windows.select(np.array([number])))
        length = alone.start.shape[1]
        for one, other in ((alone.start, together.start), (alone.end, together.end)):
            assert np.abs(one[0] - other[number, :length]).max() <= allowed


def _computes_the_same_wherever_it_says_it_can_be_called(
    turn: Turn, family: Family, backend: Backend, windows: Windows
) -> None:
    if turn.device not in backend.engine_class.called_anywhere:
        return
    expected, engine = _forward(turn, family, backend, windows), turn.runtime.get(family, backend, turn.device).engine
    for _ in range(2):
        with ThreadPoolExecutor(1) as another:
            found = another.submit(engine.forward, windows).result()
        assert logit_difference(expected, found, windows) <= 1e-4


def _says_what_ran(turn: Turn, family: Family, backend: Backend) -> None:
    loaded = turn.runtime.get(family, backend, turn.device)
    ran = loaded.ran
    if turn.device == "cpu":
        assert ran.device == "CPU"
    else:
        assert ran.device != "CPU" and "CPU" not in ran.provider
    assert ran.precision == backend.precision or ran.notes, "what is not as the row says is explained"
    assert (ran.threads == 0) if backend.engine == "triton" else (ran.threads >= 1), "its server's own affair"
    assert ran.file_hash in loaded.manifest.files.values()
    assert set(ran.fused_ops) <= set(loaded.manifest.fused_ops)


def _is_loaded_again(turn: Turn, family: Family, backend: Backend) -> None:
    prepared = turn.prepare(family, QUERIES[0])
    first = turn.answer(family, backend, prepared).answer
    turn.runtime.drop(family, backend.name, turn.device)
    assert turn.answer(family, backend, prepared).answer.text == first.text
