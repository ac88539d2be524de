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
    assert found["checkpoints"].items() >= kept["checkpoints"].items(), "the weights are others: python tests/golden.py"
    for name, before in kept["answers"].items():
        for one, other in zip(before, found["answers"][name], strict=True):
            assert (one["text"], one["span"]) == (other["text"], other["span"]), name
            assert other["score"] == pytest.approx(one["score"], rel=1e-5), name
            assert other["null_score"] == pytest.approx(one["null_score"], rel=1e-5), name
