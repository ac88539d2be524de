"""An evaluation to take away: every answer, the same as SQuAD's own script reads it, and the lines that repeat it."""

from __future__ import annotations

import io
import json
import shlex
import zipfile
from typing import TYPE_CHECKING

from qa_backends.catalog import BASELINE, chosen_by
from qa_backends.measure.quality.scoring import answers_by_id
from qa_backends.measure.results.records import Answered, Predicted, WholeEvaluation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qa_backends.measure.quality.evaluation import Evaluated
    from qa_backends.measure.results.records import QualityRecord


def whole_evaluation(results: Sequence[Evaluated]) -> WholeEvaluation:
    """Backends on the same questions, with every answer."""
    return WholeEvaluation(
        tuple(each.record for each in results),
        tuple(
            Answered(
                id=same[0].question.id,
                question=same[0].question.question,
                gold=tuple(gold.text for gold in same[0].question.answers),
                predicted={
                    result.record.backend: Predicted(scored.answer.text, scored.exact, scored.f1)
                    for result, scored in zip(results, same, strict=True)
                },
            )
            for same in zip(*(each.scored for each in results), strict=True)
        ),
    )


def predictions(results: Sequence[Evaluated]) -> bytes:
    """A zip archive with a file for each backend, as the official SQuAD 2.0 script reads predictions: by the questions'
    ids, which none may share, see ``scoring.shared_id``."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for each in results:
            text = json.dumps(answers_by_id(each.scored), ensure_ascii=False)
            archive.writestr(f"{each.record.backend.replace('/', '-')}.json", text)
    return packed.getvalue()


def commands(records: Sequence[QualityRecord], data: str, *, by_id: bool = True) -> str:
    """The shell's lines that repeat the evaluation of these records: the same questions, backends and device.

    ``data`` is what ``evaluate --data`` takes: a data set's name, or a file. The baseline's predictions are written,
    and the others compared with them, unless questions share an id, which ``by_id`` says they do not.
    """
    kept = shlex.quote(f"baseline-{data.removesuffix('.json')}.json")
    first = records[0]
    part = [] if first.limit is None else ["--limit", str(first.limit), "--seed", str(first.seed)]
    family = first.backend.rpartition("/")[0]
    chosen = shlex.join([*part, *chosen_by(family), "--device", first.device])
    evaluate = f"python -m qa_backends evaluate --data {shlex.quote(data)} {chosen} --save accuracy.json"
    names = [each.name for each in records]
    others = [name for name in names if name != BASELINE]
    writing, reading = (f" --predictions {kept}", f" --against {kept}") if by_id else ("", "")
    lines = [f"{evaluate} --backend {BASELINE}{writing}"] if BASELINE in names else []
    against = reading if lines else ""
    if len(others) > 1:
        lines.append(f'for backend in {" ".join(others)}; do\n  {evaluate} --backend "$backend"{against}\ndone')
    else:
        lines += [f"{evaluate} --backend {name}{against}" for name in others]
    return "\n".join(lines)
