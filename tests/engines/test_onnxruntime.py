"""What ONNX Runtime's engine says of the session that it made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from qa_backends import catalog
from qa_backends.engines.onnxruntime import OnnxRuntime
from qa_backends.limits import thread_count
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
