"""The embedded family answers as it did when its answers were kept: see golden.py."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from golden import KEPT, answers

if TYPE_CHECKING:
    from qa_backends.runtime import Runtime


@pytest.mark.slow
def test_answers_and_scores_are_what_they_were(runtime: Runtime) -> None:
    kept, found = json.loads(KEPT.read_text(encoding="utf-8")), answers(runtime)
    here = [name for name in kept["answers"] if name in found["answers"]]
    assert {"baseline", "pruned", "pruned-ort-fp16"} <= set(here)
    for name in here:
        assert found["checkpoints"][name] == kept["checkpoints"][name], "the weights are others: see golden.py"
        before = kept["answers"][name]
        for one, other in zip(before, found["answers"][name], strict=True):
            assert (one["text"], one["span"]) == (other["text"], other["span"]), name
            assert other["score"] == pytest.approx(one["score"], rel=1e-5, abs=1e-4), name
            assert other["null_score"] == pytest.approx(one["null_score"], rel=1e-5, abs=1e-4), name
