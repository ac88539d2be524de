"""What ONNX Runtime's engine says of the session that it made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from qa_backends import catalog
from qa_backends.engines.onnxruntime import OnnxRuntime
from qa_backends.limits import thread_count
from qa_backends.measure.timing.rounds import SETTLE_S
from qa_backends.progress import UNWATCHED

if TYPE_CHECKING:
    from qa_backends.catalog import Family
    from qa_backends.runtime import Runtime


def test_the_threads_it_tells_of_are_those_of_its_session(runtime: Runtime, small_family: Family) -> None:
    artefact = runtime.make_ready(small_family, catalog.backend("baseline-ort"), "cpu", UNWATCHED)
    engine, one_more = OnnxRuntime({}), thread_count() + 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("qa_backends.engines.onnxruntime.thread_count", lambda: one_more)
        engine.load(artefact, "cpu")
    assert engine.describe().threads == one_more
    engine.close()


def test_its_idle_threads_are_told_to_sleep_sooner_than_they_would(runtime: Runtime, small_family: Family) -> None:
    """Which takes too little processor time, and too much by chance, to be told by the clock in a test. Processors were
    seen on which they spin nine times as long as they are told."""
    artefact = runtime.make_ready(small_family, catalog.backend("baseline-ort"), "cpu", UNWATCHED)
    engine = OnnxRuntime({})
    engine.load(artefact, "cpu")
    session = engine._session
    assert session is not None
    told = session.get_session_options().get_session_config_entry("session.intra_op.spin_duration_us")
    assert 9 * int(told) / 1e6 < SETTLE_S
    engine.close()
