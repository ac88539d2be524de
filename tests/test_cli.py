"""The command line, as a shell sees it."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from helpers import QUESTION, ROOT, TEXT
from rich.console import Console

from qa_backends import catalog
from qa_backends.cli import main
from qa_backends.commands.terminal import bar
from qa_backends.errors import ArtefactError
from qa_backends.measure.benchmark import sweep as module
from qa_backends.measure.recommend.search import Candidate, Search
from qa_backends.measure.recommend.wish import Wish
from qa_backends.measure.timing.machine import this_machine
from qa_backends.measure.timing.statistics import Ratio
from qa_backends.runtime import Runtime
from qa_backends.serving.batching import BatchSize
from qa_backends.serving.service import Bounds

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from qa_backends.catalog import Backend, Family
    from qa_backends.measure.benchmark.plan import BenchmarkPlan

    Run = Callable[..., "Done"]


class Done:
    """What a command left behind."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    def command(*arguments: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["qa_backends", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        shown = capsys.readouterr()
        return Done(int(left.value.code or 0), shown.out, shown.err)

    return command


def test_answer_prints_the_promised_json(run: Run) -> None:
    done = run("answer", "--backend", "baseline", "--question", QUESTION, "--context", TEXT, "--json")
    found = json.loads(done.out)
    assert done.code == 0
    assert found["backend"] == "minilm/baseline"
    assert found["answer"] == TEXT[slice(*found["span"])]
    assert set(found["times_ms"]) == {"tokenise", "wait", "model", "decode", "total"}
    assert found["n_windows"] == 1
    assert {"confidence", "score", "null_score", "ran", "cold_ms"} <= set(found)
    assert found["ran"]["device"] == "CPU"


def test_answer_reads_a_file_and_keeps_its_line_ends(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_bytes(("First line.\r\n" + TEXT).encode())
    done = run("answer", "--backend", "baseline", "--question", QUESTION, "--context-file", str(file), "--json")
    found = json.loads(done.out)
    assert ("First line.\r\n" + TEXT)[slice(*found["span"])] == found["answer"]
    file.write_bytes(("\ufeffFirst line.\r\n" + TEXT).encode())
    marked = run("answer", "--backend", "baseline", "--question", QUESTION, "--context-file", str(file), "--json")
    assert json.loads(marked.out)["span"] == found["span"], (
        "the mark that some editors put first is no part of the text"
    )


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["answer", "--question", "", "--context", TEXT], 2, "no question"),
        (["answer", "--question", "Who?", "--context", " "], 2, "no text"),
        (["answer", "--question", "Who?"], 2, "--context"),
        (["answer", "--question", "Who?", "--context-file", "/no/such/file"], 2, "cannot be read"),
        (["answer", "--question", "Who?", "--context", TEXT, "--backend", "nobody"], 2, "Choose one of"),
        (["answer", "--question", "Who?", "--context", TEXT, "--family", "nobody"], 2, "Choose one of"),
        (["answer", "--question", "Who?", "--context", TEXT, "--device", "abacus"], 2, "Choose one of"),
        (["answer", "--question", "Who?", "--context", "x" * 200_001], 2, "200,000"),
        (["answer", "--question", "Who?", "--context", TEXT, "--backend", "bert-large/baseline"], 1, "Hub"),
        (["evaluate", "--data", "/no/such/file.json"], 2, "cannot be read"),
        (["bench", "--lengths", "many"], 2, "--lengths 1,8,32"),
        (["bench", "--lengths", "31"], 2, "from 32 to 512"),
        (["bench", "--batches", "65"], 2, "from 1 to 64"),
        (["bench", "--runs", "4"], 2, "from 5"),
        (["bench", "--device", "abacus"], 2, "Choose one of"),
        (["bench", "--reference", "memory"], 2, "hf-pipeline"),
        (["bench", "--preset", "everything"], 2, "ladder"),
        (["bench", "--random-weights"], 2, "Leave --random-weights out"),
        (["recommend", "--lengths", "many"], 2, "--lengths 1,8,32"),
        (["recommend", "--seconds", "1"], 2, "from 10"),
        (["evaluate", "--data", "own", "--against", "/no/such/file"], 2, "predictions"),
        (["evaluate", "--data", "own", "--save", "assets/results/benchmark-cpu.json"], 2, "benchmark"),
        (["long-texts", "--save", "assets/results/benchmark-cpu.json"], 2, "benchmark"),
        (["evaluate", "--data", "own", "--against", "assets/examples.json"], 2, "same data"),
        (["bench", "--lengths", "²"], 2, "--lengths 1,8,32"),
        (["list", "--device", "abacus"], 2, "Choose one of"),
        (["evaluate", "--data", "own", "--family", "bert-large-random"], 2, "answer nothing"),
        (["answer", "--family", "bert-large-random", "--question", QUESTION, "--context", TEXT], 2, "answer nothing"),
        (["export", "--family", "bert-large-random", "--to", "never"], 2, "answer nothing"),
        (["serve", "--family", "bert-large-random"], 2, "answer nothing"),
        (["train", "pack", "--checkpoint", "/nope", "--out", "y"], 2, "checkpoint"),
        (["train", "prune", "--data", "x", "--out", "y", "--teacher", "z", "--method", "magic"], 2, "importance"),
    ],
    ids=lambda value: " ".join(map(str, value))[:40] if isinstance(value, list) else None,
)
def test_trouble_is_one_line_on_stderr(run: Run, arguments: list[str], code: int, said: str) -> None:
    done = run(*arguments)
    assert done.code == code
    assert done.out == ""
    last = done.err.strip().splitlines()[-1]
    assert last.startswith("Error: ") and said in last
    assert "Traceback" not in done.err


def test_shapes_that_can_do_without_a_download_are_offered_so(run: Run) -> None:
    done = run("bench", "--family", "bert-large", "--preset", "ladder")
    assert done.code == 1 and "Hub could not be reached" in done.err
    assert "2.5 GB" in done.err and "--random-weights" in done.err


def test_each_bound_of_a_server_is_the_one_that_was_asked_for(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}
    monkeypatch.setattr("qa_backends.serving.server.serve", lambda *given, **named: asked.update(named, given=given))
    done = run(
        *("serve", "--backends", "pruned, baseline", "--device", "cpu", "--host", "::1", "--port", "81", "--no-page"),
        *("--api-key", "s3cret", "--max-batch", "3", "--max-wait-ms", "40", "--max-queue", "5", "--timeout", "6"),
        *("--keep-texts", "7"),
    )
    assert done.code == 0, done.err
    of, backends, device = asked.pop("given")
    assert (of.name, [each.name for each in backends], device) == ("minilm", ["pruned", "baseline"], "cpu")
    assert asked == {
        "size": BatchSize(items=3, wait_s=0.04), "bounds": Bounds(accepted=5, seconds=6, kept_chars=7),
        "host": "::1", "port": 81, "key": "s3cret", "page": False,
    }  # fmt: skip


@pytest.mark.parametrize("arguments", [["answer"], ["no-such-command"], ["answer", "--no-such-option"]])
def test_bad_usage_is_one_line_too(run: Run, arguments: list[str]) -> None:
    done = run(*arguments)
    assert done.code == 2
    assert done.err.startswith("Error: ") and done.err.count("\n") == 1


def test_help_is_help(run: Run) -> None:
    assert run("--help").code == 0
    assert "evaluate" in run("--help").out
    assert "--debug" in run("--help").out
    assert run().code == 2


def test_an_answer_is_printed_as_it_stands(run: Run) -> None:
    """The terminal library reads no markup into an answer."""
    text = "The captain of the ship is called Anna [red] Smith, and the cook is called Ben."
    question = "Who is the captain of the ship?"
    asked = ("answer", "--backend", "baseline", "--question", question, "--context", text)
    found = json.loads(run(*asked, "--json").out)["answer"]
    assert "[red]" in found, "the answer must hold markup for this to prove anything"
    assert run(*asked).out.splitlines()[0] == found


def test_the_text_can_come_from_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(("First line.\r\n" + TEXT).encode())))
    done = run("answer", "--backend", "baseline", "--question", QUESTION, "--context-file", "-", "--json")
    found = json.loads(done.out)
    assert found["answer"] == ("First line.\r\n" + TEXT)[slice(*found["span"])]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe\x00")))
    refused = run("answer", "--question", QUESTION, "--context-file", "-")
    assert refused.code == 2 and "Standard input cannot be read as UTF-8" in refused.err


def test_pack_writes_where_it_is_told(run: Run, tiny: Path, tmp_path: Path) -> None:
    done = run("train", "pack", "--checkpoint", str(tiny), "--out", str(tmp_path / "packed"), "--json")
    assert json.loads(done.out)["step"] == "pack"
    assert (tmp_path / "packed" / "model.safetensors").is_file()
    before = (tiny / "model.safetensors").read_bytes()
    for out in (tiny, f"{tiny}/../{tiny.name}", tmp_path / "packed"):
        refused = run("train", "pack", "--checkpoint", str(tiny), "--out", str(out))
        assert refused.code == 2 and "holds a checkpoint already" in refused.err
    assert (tiny / "model.safetensors").read_bytes() == before


def test_list_names_every_backend(run: Run) -> None:
    rows = json.loads(run("list", "--json").out)
    names = [row["backend"] for row in rows]
    assert {"minilm/baseline", "minilm/pruned", "minilm/pruned-ort-fp16"} <= set(names)
    assert all(row["available"] or row["reason"] for row in rows)
    assert {row["precision"] for row in rows} == {"FP32", "FP16", "BF16", "INT8"}
    here = [row for row in rows if "cpu" in row["devices"]]
    untested = [row["backend"] for row in here if not row["tested"]]
    assert untested == ["minilm/pruned-triton-fp16"], "results of every engine ship that needs no server"
    assert not any(row["tested"] for row in rows if row["devices"] == ["cuda"]), "no GPU was at hand"


def test_recommend_says_what_it_advises(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    raced = Candidate("pruned", "Pruned", ms={128: 5.0}, turns=10, speed_up=Ratio(4.0, 3.8, 4.2, 10))
    found = Search(Wish("minilm", lengths=(128,)), this_machine(), [raced], advised="pruned", tied=("pruned",))
    monkeypatch.setattr("qa_backends.measure.recommend.recommend.recommend", lambda *_args, **_options: found)
    done = run("recommend")
    assert done.code == 0, done.err
    assert "On this machine: Pruned" in done.out and "recommend --family minilm" in done.out
    assert json.loads(run("recommend", "--json").out)["advised"] == "pruned"


def test_families_are_listed(run: Run) -> None:
    rows = json.loads(run("families", "--json").out)
    assert [each["family"] for each in rows] == [each.name for each in catalog.families()]
    assert "minilm" in run("families").out


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


def test_a_question_that_cannot_be_answered_is_refused_before_anything_is_built(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("qa_backends.runtime.Runtime.make_ready", lambda *_: pytest.fail("it was made ready"))
    (tmp_path / "long.txt").write_text("word " * 200_000)
    for options, said in (
        (("--question", "", "--context", TEXT), "There is no question"),
        (("--question", "Who?", "--context-file", str(tmp_path / "long.txt")), "more than 200,000 characters"),
    ):
        done = run("answer", "--backend", "baseline", *options)
        assert done.code == 2 and said in done.err


def test_building_goes_on_behind_what_fails(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    make_ready = Runtime.make_ready

    def failing(self: Runtime, family: Family, backend: Backend, *rest: Any) -> Path:
        if backend.name == "baseline":
            raise ArtefactError("It drifted.")
        return make_ready(self, family, backend, *rest)

    monkeypatch.setattr(Runtime, "make_ready", failing)
    monkeypatch.setattr(catalog, "offered", lambda *_: [catalog.backend(each) for each in ("baseline", "pruned")])
    done = run("build", "--json")
    assert done.code == 1 and "failed: baseline. It drifted." in done.err and "Not built" in done.err
    assert [each["backend"] for each in json.loads(done.out)] == ["minilm/pruned"]


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_recommend_fails_where_nothing_can_be_advised(
    run: Run, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    nobody = Search(Wish("minilm"), this_machine(), [Candidate("baseline", "Baseline", out="Slow.")])
    monkeypatch.setattr("qa_backends.measure.recommend.recommend.recommend", lambda *_args, **_options: nobody)
    done = run("recommend", *options)
    assert done.code == 1 and done.err.strip().startswith("Error: No backend can be advised here")
    assert "Slow." in done.out and "recommend" in done.out, "what was found is shown all the same, and how to repeat it"


def test_list_says_of_what_cannot_run_here_that_it_is_untested_and_what_it_takes(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qa_backends.catalog.lookup.devices", lambda: ["cpu"])
    reasons = {row["backend"]: row["reason"] for row in json.loads(run("list", "--json").out)}
    assert reasons["minilm/baseline"] is None
    for name, install in (("pruned-ort-tensorrt", "tensorrt-cu13"), ("baseline-deepspeed-fp16", "deepspeed==")):
        assert "needs a GPU" in reasons[f"minilm/{name}"] and install in reasons[f"minilm/{name}"]
    table = run("list").out
    assert table.count("untested") == sum(not row["tested"] for row in json.loads(run("list", "--json").out))


@pytest.mark.slow
def test_list_and_build_mind_the_device(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot run on the device is said to be unavailable there, and is not built for it."""
    from qa_backends.engines.onnxruntime import OnnxRuntime

    monkeypatch.setattr(OnnxRuntime, "devices", ("cuda",))
    rows = {row["backend"]: row for row in json.loads(run("list", "--device", "cpu", "--json").out)}
    assert not rows["minilm/pruned-ort"]["available"] and "GPU" in rows["minilm/pruned-ort"]["reason"]
    assert rows["minilm/baseline"]["available"]
    refused = run("build", "--device", "cpu", "--backend", "pruned-ort")
    assert refused.code == 1 and "cannot run on the CPU" in refused.err
    built = json.loads(run("build", "--device", "cpu", "--json").out)
    names = [each["backend"] for each in built]
    assert names[:2] == ["minilm/baseline", "minilm/pruned"] and "minilm/pruned-ort" not in names


def test_what_is_not_in_the_table_can_be_named(run: Run) -> None:
    done = run("answer", "--backend", "baseline-fake-last", "--question", "Who?", "--context", "Ada came.", "--json")
    assert json.loads(done.out)["answer"] == "."


def test_evaluate_scores_a_part_of_a_file(run: Run, tmp_path: Path) -> None:
    data, saved = ROOT / "assets" / "questions.json", tmp_path / "results.json"
    options = ["evaluate", "--backend", "baseline", "--data", str(data), "--limit", "40", "--seed", "3"]
    found = json.loads(run(*options, "--save", str(saved), "--json").out)
    assert found["n"] == 40
    for part in ("exact", "f1", "has_ans_f1", "no_ans_f1"):
        assert 0 <= found[part] <= 100
    assert found["f1"] > 30, "a trained model answers some of the project's own questions"
    pace = found["questions_per_second"]
    assert pace is None or pace > 0, "none is stated where other work took too much of the machine"
    again = json.loads(run(*options, "--save", str(saved), "--json").out)
    assert again["f1"] == found["f1"]
    assert len(json.loads(saved.read_text())["rows"]) == 1, "the same measurement replaces the old one"


def test_progress_comes_in_lines_where_stderr_is_no_terminal(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("qa_backends.commands.terminal.LINE_EVERY_S", 0.0)
    done = run("evaluate", "--backend", "baseline", "--data", "own", "--limit", "40")
    lines = [line.split() for line in done.err.splitlines() if line.startswith("questions")]
    assert lines[-1][1] == "40/40"
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


def test_build_reports_each_step(run: Run) -> None:
    (built,) = json.loads(run("build", "--backend", "pruned-ort-fp16", "--json").out)
    assert built["step"] == "onnx-fused-fp16"
    assert built["precision"] == "FP16"
    assert built["fused_ops"]["Attention"] == 6
    assert built["largest_logit_difference"] <= 1e-2


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


@pytest.mark.slow
def test_overhead_says_what_is_ours_and_what_the_library_would_take(run: Run, tmp_path: Path) -> None:
    """The app's own work stays a small part of the model's: the bound is thrice what is aimed at."""
    saved = tmp_path / "overhead.json"
    found = json.loads(run("overhead", "--runs", "15", "--save", str(saved), "--json").out)
    assert json.loads(saved.read_text()) == found
    assert [row["tokens"] for row in found["rows"]] == [32, 64, 128, 256, 384, 512] * 2
    assert found["rows"][0]["backend"] == "minilm/baseline" != found["rows"][-1]["backend"]
    for row in found["rows"]:
        assert 0 < row["own_ms"] < row["model_ms"]
        assert row["tokenise_ms"] + row["decode_ms"] < 1.5 * row["own_ms"]
        assert row["share_of_model"] < 0.3 or row["backend"] != "minilm/baseline"
        assert row["tokenise_kept_ms"] < row["tokenise_ms"]
        assert 0 < row["tokenise_ms"] < 3 * row["tokenizer_call_ms"], "looking words up never costs much more"


def test_predictions_of_one_backend_count_the_agreement_of_another(run: Run, tmp_path: Path) -> None:
    answers = tmp_path / "baseline.json"
    options = ["evaluate", "--data", "own", "--limit", "40", "--json"]
    run(*options, "--backend", "baseline", "--predictions", str(answers))
    assert len(json.loads(answers.read_text())) == 40
    same = json.loads(run(*options, "--backend", "baseline", "--against", str(answers)).out)
    other = json.loads(run(*options, "--backend", "pruned", "--against", str(answers)).out)
    assert same["agreement"] == 100
    assert 0 < other["agreement"] < 100
    asked = ["evaluate", "--data", "own", "--limit", "40", "--backend", "pruned", "--parent", str(answers)]
    kept = tmp_path / "kept.json"
    assert "by rounding" in run(*asked, "--save", str(kept)).out
    assert json.loads(kept.read_text())["rows"][0]["parent_difference"] == other["f1_difference"]
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


def test_debug_shows_the_traceback() -> None:
    command = [sys.executable, "-m", "qa_backends", "answer", "--question", "Who?", "--context", " ", "--debug"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "Traceback" in done.stderr


def test_the_documents_tables_are_made_of_the_results_that_ship(run: Run) -> None:
    done = run("report", "--check")
    assert done.code == 0, done.err


def test_long_texts_are_timed_and_added_to_the_results(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "long.json"
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
    done = run("report", "--check")
    assert done.code == 1 and "stale" in done.err
    written: dict[Path, str] = {}
    monkeypatch.setattr("qa_backends.commands.measuring.write_whole", written.__setitem__)
    assert run("report").code == 0
    assert written[document] == content
