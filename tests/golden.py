"""Answers of the embedded family, kept so that a change of structure cannot change them unnoticed.

``PYTHONPATH=. python tests/golden.py`` writes them anew, for new weights.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qa_backends.runtime import Runtime

KEPT = Path(__file__).with_name("golden.json")
EVERY = 10
"""Of the project's own questions, every tenth is kept; the first is asked of many texts at once, in several windows."""
TEXTS_OF = 60


def answers(runtime: Runtime) -> dict[str, Any]:
    """By backend: text, span, score and null score of each question, on the CPU; and the hashes of the weights."""
    from qa_backends import catalog
    from qa_backends.artefacts.quantise import seven_bits
    from qa_backends.contract import Query
    from qa_backends.measure.quality.datasets import own_questions
    from qa_backends.measure.results.shipped import checkpoint_hash

    family, questions = catalog.family("minilm"), own_questions()
    long = "\n\n".join(dict.fromkeys(each.context for each in questions[:TEXTS_OF]))
    queries = [Query(each.question, each.context if number else long) for number, each in enumerate(questions[::EVERY])]
    found: dict[str, Any] = {"checkpoints": {}, "answers": {}}
    for backend in catalog.offered(family, "cpu"):
        # BF16, and INT8 of 7 bits, come out otherwise than on the processor that wrote this; other tests bound them.
        elsewhere = any(choice.tolerance for choice in backend.choices) or (backend.rounds and seven_bits())
        if elsewhere or catalog.unavailable(backend, "cpu"):
            continue
        found["checkpoints"][backend.name] = checkpoint_hash(family, backend)
        with runtime.turn("cpu") as turn:
            readings = [turn.answer(family, backend, turn.prepare(family, query)) for query in queries]
        found["answers"][backend.name] = [
            {
                "text": each.answer.text,
                "span": [each.answer.span.start, each.answer.span.end] if each.answer.span else None,
                "score": each.answer.score,
                "null_score": each.answer.null_score,
            }
            for each in readings
        ]
    return found


if __name__ == "__main__":
    from qa_backends.runtime import Runtime

    KEPT.write_text(json.dumps(answers(Runtime()), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
