"""An evaluation taken away holds every answer, and its commands give the same figures again."""

from __future__ import annotations

import io
import json
import shlex
import zipfile
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from helpers import calls_of
from measure.invented import quality_record
from typer.testing import CliRunner

from qa_backends import catalog, cli
from qa_backends.errors import InputError
from qa_backends.measure.quality.datasets import read_set
from qa_backends.measure.quality.evaluation import EvaluationTask, evaluate_all
from qa_backends.measure.quality.export import commands, predictions, whole_evaluation
from qa_backends.measure.quality.scoring import score_text
from qa_backends.measure.results.files import add_quality, as_csv, as_text, read_quality
from qa_backends.paths import OWN_QUESTIONS

if TYPE_CHECKING:
    from pathlib import Path

    from qa_backends.measure.quality.evaluation import Evaluated
    from qa_backends.runtime import Runtime

LIMIT, SEED = 12, 3
FILE = "my questions.json"


@pytest.fixture(scope="module")
def results(runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> list[Evaluated]:
    """Two backends on a part of somebody's file."""
    file = tmp_path_factory.mktemp("upload") / FILE
    file.write_bytes(OWN_QUESTIONS.read_bytes())
    task = EvaluationTask(catalog.family("minilm"), "cpu", read_set(file), LIMIT, SEED)
    return evaluate_all(runtime, task, [catalog.backend("baseline"), catalog.backend("pruned")]).results


def test_every_answer_is_in_it_and_makes_the_figures(results: list[Evaluated], tmp_path: Path) -> None:
    path = tmp_path / "evaluation.json"
    path.write_text(as_text(whole_evaluation(results)))
    records = [each.record for each in results]
    assert list(read_quality(path)) == records, "it reads as a results file of quality"
    with pytest.raises(InputError, match="also holds every answer, which adding to it would lose"):
        add_quality(path, records[0])
    questions = json.loads(path.read_text())["questions"]
    by_id = {each.question.id: each.question for each in results[0].scored}
    assert [each["id"] for each in questions] == list(by_id) and len(by_id) == LIMIT
    for record in records:
        told = [each["predicted"][record.backend] for each in questions]
        assert 100 * sum(each["f1"] for each in told) / LIMIT == pytest.approx(record.f1)
        assert 100 * sum(each["exact"] for each in told) / LIMIT == pytest.approx(record.exact)
    for each in questions:
        assert each["gold"] == [gold.text for gold in by_id[each["id"]].answers]
        for told in each["predicted"].values():
            assert (told["exact"], told["f1"]) == score_text(by_id[each["id"]], told["text"])


def test_predictions_are_a_file_a_backend_as_squads_own_script_reads_them(results: list[Evaluated]) -> None:
    with zipfile.ZipFile(io.BytesIO(predictions(results))) as archive:
        found = {name: json.loads(archive.read(name)) for name in archive.namelist()}
    assert list(found) == ["minilm-baseline.json", "minilm-pruned.json"]
    for each, answers in zip(results, found.values(), strict=True):
        assert answers == {scored.question.id: scored.answer.text for scored in each.scored}


def test_the_csv_has_a_line_a_record() -> None:
    whole = quality_record("minilm/pruned", f1=61.5)
    head, *lines = as_csv([replace(whole, f1_difference=None), whole]).splitlines()
    assert len(lines) == 2 and "61.5" in lines[1]
    columns = head.split(",")
    assert {"backend", "f1", "f1_interval.low", "f1_difference.high", "ran.notes"} <= set(columns)
    assert "f1_difference" not in columns, "where one has none and another has, that is no column beside its parts"


def test_the_commands_give_the_same_figures_again(
    results: list[Evaluated], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / FILE).write_bytes(OWN_QUESTIONS.read_bytes())
    monkeypatch.chdir(tmp_path)
    for line in commands([each.record for each in results], FILE).splitlines():
        words = shlex.split(line)
        assert words[:3] == ["python", "-m", "qa_backends"]
        assert CliRunner().invoke(cli.app, words[3:], catch_exceptions=False).exit_code == 0
    for again, each in zip(read_quality(tmp_path / "accuracy.json"), results, strict=True):
        for figure in ("backend", "device", "data_sha256", "limit", "seed", "n", "exact", "f1"):
            assert getattr(again, figure) == getattr(each.record, figure)
        compared = each.backend.name != "baseline"
        assert again.f1_difference == (each.record.f1_difference if compared else None)


@pytest.mark.parametrize("names", [["baseline", "pruned", "pruned-ort"], ["pruned", "pruned-ort"], ["baseline"]])
def test_a_shell_reads_the_lines_as_one_call_a_backend(tmp_path: Path, names: list[str]) -> None:
    lines = commands([replace(quality_record(f"minilm/{name}"), limit=LIMIT, seed=SEED) for name in names], FILE)
    calls = calls_of(lines, tmp_path)
    assert [each["--backend"] for each in calls] == names
    for each in calls:
        told = [each[name] for name in ("--data", "--limit", "--seed", "--family", "--device")]
        assert told == [FILE, str(LIMIT), str(SEED), "minilm", "cpu"]
        kept = {name: each[name] for name in ("--predictions", "--against") if name in each}
        role = "--predictions" if each["--backend"] == "baseline" else "--against"
        assert kept == ({role: "baseline-my questions.json"} if "baseline" in names else {})


def test_where_questions_share_an_id_no_command_keeps_answers_by_it() -> None:
    records = [quality_record(f"minilm/{name}") for name in ("baseline", "pruned")]
    assert "--predictions" in commands(records, FILE) and "--against" in commands(records, FILE)
    lines = commands(records, FILE, by_id=False)
    assert "--predictions" not in lines and "--against" not in lines and lines.count("--backend") == 2
