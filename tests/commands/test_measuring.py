"""Commands that measure, save what they found, and draw tables of it."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
from typing import TYPE_CHECKING

import pytest
from helpers import ROOT
from rich.console import Console

from qa_backends.commands.terminal import bar
from qa_backends.measure.benchmark import sweep as module
from qa_backends.measure.quality.datasets import EVERYDAY, OWN, SQUAD_V2_DEV
from qa_backends.measure.recommend.search import F1, Candidate, Search
from qa_backends.measure.recommend.wish import Wish
from qa_backends.measure.timing.machine import this_machine
from qa_backends.measure.timing.statistics import Difference, Interval, Ratio
from qa_backends.runtime import Runtime
from qa_backends.serving.load.records import Serving

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from commands.conftest import Run

    from qa_backends.measure.benchmark.plan import BenchmarkPlan


def test_recommend_says_what_it_advises(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    f1 = {
        data: F1(data, 100, value, Interval(value - 1, value + 1), Difference(-0.7, -1.2, -0.2), whole=True)
        for data, value in ((SQUAD_V2_DEV, 70.8), (OWN, 78.8), (EVERYDAY, 68.1))
    }
    raced = Candidate(
        "pruned", "Pruned", f1[SQUAD_V2_DEV], f1[OWN], (f1[EVERYDAY],), ms={128: 5.0}, turns=10,
        speed_up=Ratio(4.0, 3.8, 4.2, 10),
    )  # fmt: skip
    found = Search(Wish("minilm", lengths=(128,)), this_machine(), [raced], advised="pruned", tied=("pruned",))
    monkeypatch.setattr("qa_backends.measure.recommend.recommend.recommend", lambda *_args, **_options: found)
    done = run("recommend")
    assert done.code == 0, done.err
    assert "On this machine: Pruned" in done.out and "recommend --family minilm" in done.out
    assert all(each in done.out for each in ("70.8", "[69.8", "78.8", "68.1", "everyday", "[−1.2")), "of every set"
    assert json.loads(run("recommend", "--json").out)["advised"] == "pruned"


@pytest.mark.parametrize(
    "command",
    [
        ["bench", "--save"], ["overhead", "--save"], ["record", "--save"], ["long-texts", "--save"],
        ["evaluate", "--data", "own", "--save"], ["evaluate", "--data", "own", "--predictions"],
    ],
)  # fmt: skip
def test_what_cannot_be_saved_is_refused_before_it_is_measured(run: Run, tmp_path: Path, command: list[str]) -> None:
    done = run(*command, str(tmp_path))
    assert done.code == 2 and "is a folder. Name a file." in done.err
    (tmp_path / "file").touch()
    done = run(*command, str(tmp_path / "file" / "results.json"))
    assert done.code == 2 and "cannot be written" in done.err


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_recommend_fails_where_nothing_can_be_advised(
    run: Run, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    nobody = Search(Wish("minilm"), this_machine(), [Candidate("baseline", "Baseline", out="Slow.")])
    monkeypatch.setattr("qa_backends.measure.recommend.recommend.recommend", lambda *_args, **_options: nobody)
    done = run("recommend", *options)
    assert done.code == 1 and done.err.strip().startswith("Error: No backend can be advised here")
    assert "Slow." in done.out and "recommend" in done.out, "what was found is shown all the same, and how to repeat it"


def test_evaluate_scores_a_part_of_a_file(run: Run, tmp_path: Path) -> None:
    data, saved = ROOT / "assets" / "questions.json", tmp_path / "results.json"
    options = ["evaluate", "--backend", "baseline", "--data", str(data), "--limit", "12", "--seed", "3"]
    found = json.loads(run(*options, "--save", str(saved), "--json").out)
    assert found["n"] == 12
    assert found["f1"] > 30, "a trained model answers some of the project's own questions"
    again = json.loads(run(*options, "--save", str(saved), "--json").out)
    assert again["f1"] == found["f1"]
    assert len(json.loads(saved.read_text())["rows"]) == 1, "the same measurement replaces the old one"
    one = " ".join(run(*options[:5], "--limit", "1").out.split())
    assert re.search(r"on 1 question[,;]", one) and "[100.00-100.00]" not in one and "[0.00-0.00]" not in one


def test_progress_comes_in_lines_where_stderr_is_no_terminal(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("qa_backends.commands.terminal.LINE_EVERY_S", 0.0)
    done = run("evaluate", "--backend", "baseline", "--data", "own", "--limit", "16")
    lines = [line.split() for line in done.err.splitlines() if line.startswith("questions")]
    assert lines[-1][1] == "16/16"
    assert [int(line[1].split("/")[0]) for line in lines] == sorted(int(line[1].split("/")[0]) for line in lines)
    assert "\x1b" not in done.err, "a log file gets no control sequences"


@pytest.mark.parametrize("terminal", [True, False])
def test_a_bar_shows_names_of_files_as_they_stand(
    terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("qa_backends.commands.terminal.LINE_EVERY_S", 0.0)
    monkeypatch.setattr(
        "qa_backends.commands.terminal.errors", Console(stderr=True, force_terminal=terminal, width=150)
    )
    with bar("set{1}[v2][/b].json", 3) as advance:
        advance(3, "[3 of {3}]")
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", capsys.readouterr().err)
    assert "set{1}[v2][/b].json" in shown and "[3 of {3}]" in shown


def test_the_time_left_is_that_of_the_part_that_runs_however_long_a_step_takes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As of a teacher's logits, and then of the training that begins anew with as many steps."""
    now = itertools.count(step=40.0)
    console = Console(stderr=True, width=150, get_time=lambda: clock[-1])
    clock = [next(now)]
    monkeypatch.setattr("qa_backends.commands.terminal.LINE_EVERY_S", 0.0)
    monkeypatch.setattr("qa_backends.commands.terminal.errors", console)
    with bar("steps", None) as advance:
        for done in (1, 2, 3, 4, 1, 2, 3, 4):
            clock.append(next(now))
            advance(done, of=4)
    left = [line.split()[2] for line in capsys.readouterr().err.splitlines()]
    assert left == ["-:--:--", "0:01:20", "0:00:40", "0:00:00"] * 2


def test_bench_writes_raw_samples_that_give_its_medians(run: Run, tmp_path: Path) -> None:
    saved = tmp_path / "benchmark.json"
    options = ["--lengths", "32", "--batches", "1", "--runs", "6", "--backends", "baseline,pruned"]
    options += ["--reference", "hf-pipeline"]
    done = run("bench", *options, "--save", str(saved))
    assert done.code == 0
    assert "hf-pipeline" in done.out and "vs baseline" in done.out
    assert "Device set to use" not in done.out + done.err
    content = json.loads(saved.read_text())
    assert content["schema"] == 2 and content["kind"] == "benchmark" and content["complete"]
    assert [row["backend"] for row in content["rows"]] == ["minilm/baseline", "minilm/pruned", "minilm/hf-pipeline"]
    for row in content["rows"]:
        totals = sorted(sum(parts) for parts in zip(*row["samples_ms"].values(), strict=True))
        middle = len(totals) // 2
        median = totals[middle] if len(totals) % 2 else (totals[middle - 1] + totals[middle]) / 2
        assert row["tokens"] == 32 and row["runs"] == len(totals) == sum(row["blocks"]) >= 5
        assert row["p50_ms"] == pytest.approx(median, rel=1e-3)
    assert content["rows"][0]["against_baseline"] is None
    assert content["rows"][1]["against_baseline"]["runs"] >= 5
    pipeline, best = content["rows"][2], min(content["rows"][:2], key=lambda row: row["p50_ms"])
    (told,) = [line for line in done.out.splitlines() if line.startswith("32 tokens, batches of 1: ")]
    assert told.partition(": ")[2].startswith(f"{best['backend'].removeprefix('minilm/')} against ")
    figure = re.search(r"(tie|[\d.]+)×? \[([\d.]+)–([\d.]+)\]", told)
    assert figure is not None and float(figure[2]) <= float(figure[3])
    times = pipeline["p50_ms"] / best["p50_ms"]
    assert figure[1] == "tie" or float(figure[1]) == pytest.approx(times, abs=0.06)
    assert {row["backend"] for row in content["alone"]} == {"minilm/baseline", "minilm/pruned"}


def test_ctrl_c_ends_a_benchmark_and_keeps_what_was_measured(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    real = module.sweep
    before = signal.getsignal(signal.SIGINT)

    def interrupted(
        runtime: Runtime, plan: BenchmarkPlan, *, emit: Callable[[module.Sweep], None], stopped: Callable[[], bool]
    ) -> module.Sweep:
        def watch(state: module.Sweep) -> None:
            emit(state)
            if len(state.records) == 1 and not stopped():
                os.kill(os.getpid(), signal.SIGINT)

        return real(runtime, plan, emit=watch, stopped=stopped)

    monkeypatch.setattr(module, "sweep", interrupted)
    saved = tmp_path / "benchmark.json"
    options = ["--lengths", "32,64,128,256,384,512", "--runs", "5", "--backends", "baseline", "--save", str(saved)]
    assert run("bench", *options).code == 0
    content = json.loads(saved.read_text())
    assert [row["tokens"] for row in content["rows"]] == [32] and not content["complete"]
    assert signal.getsignal(signal.SIGINT) is before
    assert [each.name for each in tmp_path.iterdir()] == ["benchmark.json"]
    saved.write_text("a whole one")
    again = run("bench", *options)
    partial = tmp_path / "benchmark.json.partial"
    assert again.code == 0 and f"is left as it was; what was measured is in {partial}" in " ".join(again.err.split())
    assert saved.read_text() == "a whole one"
    assert [row["tokens"] for row in json.loads(partial.read_text())["rows"]] == [32]


def test_a_benchmark_that_ends_by_force_leaves_what_was_measured(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = module.sweep

    def killed(runtime: Runtime, plan: BenchmarkPlan, *, emit: Callable[[module.Sweep], None], **_: object) -> None:
        def watch(state: module.Sweep) -> None:
            emit(state)
            if "64 tokens" in state.status:
                raise SystemExit(143)

        real(runtime, plan, emit=watch)

    monkeypatch.setattr(module, "sweep", killed)
    saved = tmp_path / "benchmark.json"
    done = run("bench", "--lengths", "32,64", "--runs", "5", "--backends", "baseline", "--save", str(saved))
    assert done.code != 0 and not saved.exists()
    content = json.loads((tmp_path / "benchmark.json.partial").read_text())
    assert [row["tokens"] for row in content["rows"]] == [32]


def test_a_benchmark_of_which_nothing_is_left_saves_nothing(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    saved = tmp_path / "benchmark.json"
    saved.write_text("an earlier one")
    monkeypatch.setenv("QA_CACHE", "/proc/nowhere")
    done = run("bench", "--lengths", "32", "--backends", "pruned-ort", "--save", str(saved))
    assert done.code == 1 and "left out: pruned-ort" in done.err and "Nothing was measured" in done.err
    assert saved.read_text() == "an earlier one"


def test_a_load_of_which_nothing_is_left_saves_nothing(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    saved = tmp_path / "serving.json"
    saved.write_text("an earlier one")
    nothing = Serving(this_machine(), "minilm/pruned-ov-int8", "cpu", 128, (), (), (), ("REST: it ended.",))
    monkeypatch.setattr("qa_backends.serving.load.measure.measure", lambda *_, **__: nothing)
    done = run("load", "--save", str(saved), "--json")
    assert done.code == 1 and done.out == "" and "left out: REST: it ended." in done.err
    assert done.err.endswith("Error: Nothing was measured; nothing is saved.\n")
    assert saved.read_text() == "an earlier one"


@pytest.mark.slow
def test_overhead_says_what_is_ours_and_what_the_library_would_take(run: Run, tmp_path: Path) -> None:
    """The app's own work stays a small part of the model's: the bound is thrice what is aimed at."""
    saved = tmp_path / "overhead.json"
    found = json.loads(run("overhead", "--runs", "7", "--save", str(saved), "--json").out)
    assert json.loads(saved.read_text()) == found
    assert [row["tokens"] for row in found["rows"]] == [32, 64, 128, 256, 384, 512] * 2
    assert found["rows"][0]["backend"] == "minilm/baseline" != found["rows"][-1]["backend"]
    for row in found["rows"]:
        assert 0 < row["own_ms"] < row["model_ms"]
        assert row["tokenise_ms"] + row["decode_ms"] < 1.5 * row["own_ms"]
        assert row["share_of_model"] < 0.3 or row["backend"] != "minilm/baseline"
        assert 0 < row["tokenise_ms"] < 3 * row["tokenizer_call_ms"], "looking words up never costs much more"
    for rows in (found["rows"][:6], found["rows"][6:]):
        assert sum(row["tokenise_kept_ms"] for row in rows) < sum(row["tokenise_ms"] for row in rows)


def test_predictions_of_one_backend_count_the_agreement_of_another(run: Run, tmp_path: Path) -> None:
    answers = tmp_path / "baseline.json"
    options = ["evaluate", "--data", "own", "--limit", "40", "--json"]
    run(*options, "--backend", "baseline", "--predictions", str(answers))
    assert len(json.loads(answers.read_text())) == 40
    same = json.loads(run(*options, "--backend", "baseline", "--against", str(answers)).out)
    assert same["agreement"] == 100
    compared, kept = ["--against", str(answers), "--parent", str(answers)], tmp_path / "kept.json"
    assert "by rounding" in run(*options[:-1], "--backend", "pruned", *compared, "--save", str(kept)).out
    other = json.loads(kept.read_text())["rows"][0]
    assert 0 < other["agreement"] < 100
    assert other["parent_difference"] == other["f1_difference"]
    assert same["f1_interval"]["low"] <= same["f1"] <= same["f1_interval"]["high"]


def test_predictions_need_ids_that_tell_questions_apart(run: Run, tmp_path: Path) -> None:
    asked = {"id": "q", "question": "Who came?", "answers": [{"text": "Anna", "answer_start": 0}]}
    data = tmp_path / "twice.json"
    data.write_text(json.dumps({"data": [{"paragraphs": [{"context": "Anna came.", "qas": [asked, asked]}]}]}))
    options = ["evaluate", "--data", str(data), "--backend", "baseline"]
    assert run(*options).code == 0
    refused = run(*options, "--predictions", str(tmp_path / "answers.json"))
    assert refused.code == 2
    assert "'q' is that of several questions" in refused.err


def test_the_documents_tables_are_made_of_the_results_that_ship(run: Run) -> None:
    done = run("report", "--check")
    assert done.code == 0, done.err


def test_long_texts_are_timed_and_added_to_the_results(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "long.json"
    monkeypatch.setattr("qa_backends.measure.benchmark.long_texts.RUNS", 1)
    done = run("long-texts", "--backend", "baseline-fake", "--save", str(file))
    assert done.code == 0, done.err
    rows = json.loads(file.read_text(encoding="utf-8"))["rows"]
    assert [each["characters"] for each in rows] == [50_000, 100_000, 200_000]
    for each in rows:
        assert f"{each['characters']:,}" in done.out and f"{each['p50_ms'] / 1000:.2f}" in done.out


def test_a_stale_table_is_noticed(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from qa_backends.measure.results import documents

    document = tmp_path / "README.md"
    content = (ROOT / "README.md").read_text(encoding="utf-8")
    document.write_text(content.replace("| `baseline` |", "| `better` |", 1), encoding="utf-8")
    monkeypatch.setattr(documents, "README", document)
    made = documents.refreshed()
    monkeypatch.setattr(documents, "refreshed", lambda: made)
    done = run("report", "--check")
    assert done.code == 1 and "stale" in done.err
    written: dict[Path, str] = {}
    monkeypatch.setattr("qa_backends.commands.measuring.write_whole", written.__setitem__)
    assert run("report").code == 0
    assert written[document] == content
