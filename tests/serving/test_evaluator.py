"""The evaluate library's question-answering evaluator takes the pipeline as it takes transformers' own."""

from __future__ import annotations

from typing import Any

import datasets
import evaluate
import pytest
from helpers import BASELINE, ROOT

from qa_backends import pipeline
from qa_backends.squad import Question, read_squad

QUESTIONS = [each for each in read_squad(ROOT / "assets" / "questions.json") if len(each.context) < 1_200][:40]
STRING = datasets.Value("string")


class Exact(evaluate.Metric):
    """The share of predictions that are one of the answers; the library's own metrics would be downloaded."""

    def _info(self) -> evaluate.MetricInfo:
        features = datasets.Features(
            {
                "predictions": {
                    "id": STRING,
                    "prediction_text": STRING,
                    "no_answer_probability": datasets.Value("float32"),
                },
                "references": {
                    "id": STRING,
                    "answers": {
                        "text": datasets.List(STRING),
                        "answer_start": datasets.List(datasets.Value("int32")),
                    },
                },
            }
        )
        return evaluate.MetricInfo(description="", citation="", features=features)

    def _compute(self, predictions: list[dict[str, Any]], references: list[dict[str, Any]]) -> dict[str, float]:
        right = [
            one["prediction_text"] in (other["answers"]["text"] or [""])
            for one, other in zip(predictions, references, strict=True)
        ]
        return {"exact": sum(right) / len(right)}


def row(each: Question) -> dict[str, Any]:
    answers = {"text": [gold.text for gold in each.answers], "answer_start": [gold.start for gold in each.answers]}
    return {"id": each.id, "question": each.question, "context": each.context, "answers": answers}


@pytest.fixture(scope="module")
def data() -> datasets.Dataset:
    return datasets.Dataset.from_list([row(each) for each in QUESTIONS])


def exact(of: Any, data: datasets.Dataset) -> float:
    found = evaluate.evaluator("question-answering").compute(
        model_or_pipeline=of, data=data, metric=Exact(), squad_v2_format=True
    )
    assert found["total_time_in_seconds"] > 0
    return float(found["exact"])


@pytest.mark.slow
def test_the_evaluator_gives_both_pipelines_the_same_mark(data: datasets.Dataset) -> None:
    from transformers import AutoTokenizer
    from transformers import pipeline as of_transformers

    from qa_backends.checkpoints.load import load_model

    tokenizer = AutoTokenizer.from_pretrained(BASELINE)
    theirs = of_transformers("question-answering", model=load_model(BASELINE), tokenizer=tokenizer, device="cpu")
    mine = exact(pipeline("baseline", device="cpu"), data)
    assert mine == exact(theirs, data) and 0.3 < mine < 1
