"""The command line, as a shell sees it."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from helpers import QUESTION, ROOT, TEXT

from qa_backends import catalog
from qa_backends.commands.terminal import interrupted, watched
from qa_backends.errors import ArtefactError
from qa_backends.progress import Cancelled
from qa_backends.runtime import Runtime
from qa_backends.serving.batching import BatchSize
from qa_backends.serving.service import Bounds

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from commands.conftest import Run

    from qa_backends.catalog import Backend, Family


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
        (["serve", "--backends", "bert-large-random/baseline"], 2, "answer nothing"),
        (["serve", "--timeout", "inf"], 2, "86400"),
        (["serve", "--timeout", "nan"], 2, "86400"),
        (["load", "--clients", "0,8"], 2, "from 1 to 10000"),
        (["train", "finetune", "--data", "x", "--out", "y", "--passes", "nan"], 2, "1000"),
        (["train", "finetune", "--data", "x", "--out", "y", "--passes", "inf"], 2, "1000"),
        (["train", "finetune", "--data", "x", "--out", "y", "--learning-rate", "nan"], 2, "--learning-rate"),
        (["train", "prune", "--data", "x", "--out", "y", "--hidden-passes", "inf"], 2, "1000"),
        (["train", "pack", "--checkpoint", "/nope", "--out", "y"], 2, "checkpoint"),
        (["train", "prune", "--data", "x", "--out", "y", "--family", "bert-large-random"], 2, "answer nothing"),
        (["train", "calibrate", "--data", "x", "--family", "bert-large-random"], 2, "answer nothing"),
        (["train", "distil", "--data", "x", "--out", "y", "--layers", "1;3"], 2, "--layers 1,3,5"),
        (["list", "--model"], 2, "'--model' requires an argument"),
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


@pytest.fixture
def uninterrupted() -> Iterator[None]:
    """What a test interrupts says nothing to the next one."""
    yield
    interrupted.clear()


@pytest.mark.usefixtures("uninterrupted")
def test_after_ctrl_c_what_other_threads_are_at_ends_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        watched.check()
        raise KeyboardInterrupt

    monkeypatch.setattr("qa_backends.serving.server.serve", interrupt)
    assert run("serve", "--backends", "baseline").code == 130
    with pytest.raises(Cancelled):
        watched.check()


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
    first, second = run(*asked).out.splitlines()
    assert first == found and re.match(r"\d+ % confident, ", second)


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


def test_families_are_listed(run: Run) -> None:
    rows = json.loads(run("families", "--json").out)
    assert [each["family"] for each in rows] == [each.name for each in catalog.families()]
    assert "minilm" in run("families").out


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


def test_list_and_build_mind_the_device(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot run on the device is said to be unavailable there, and is not built for it."""
    from qa_backends.engines.onnxruntime import OnnxRuntime

    monkeypatch.setattr(OnnxRuntime, "devices", ("cuda",))
    rows = {row["backend"]: row for row in json.loads(run("list", "--device", "cpu", "--json").out)}
    assert not rows["minilm/pruned-ort"]["available"] and "GPU" in rows["minilm/pruned-ort"]["reason"]
    assert rows["minilm/baseline"]["available"]
    refused = run("build", "--device", "cpu", "--backend", "pruned-ort")
    assert refused.code == 1 and "cannot run on the CPU" in refused.err
    make_ready = Runtime.make_ready

    def quickly(self: Runtime, family: Family, _backend: Backend, *rest: Any) -> Path:
        return make_ready(self, family, catalog.backend("baseline"), *rest)

    monkeypatch.setattr(Runtime, "make_ready", quickly)
    built = json.loads(run("build", "--device", "cpu", "--json").out)
    names = [each["backend"] for each in built]
    assert names[:2] == ["minilm/baseline", "minilm/pruned"] and "minilm/pruned-ort" not in names


def test_what_is_not_in_the_table_can_be_named(run: Run) -> None:
    done = run("answer", "--backend", "baseline-fake-last", "--question", "Who?", "--context", "Ada came.", "--json")
    assert json.loads(done.out)["answer"] == "."


def test_build_reports_each_step(run: Run) -> None:
    (built,) = json.loads(run("build", "--backend", "pruned-ort-fp16", "--json").out)
    assert built["step"] == "onnx-fused-fp16"
    assert built["precision"] == "FP16"
    assert built["fused_ops"]["Attention"] == 6
    assert built["largest_logit_difference"] <= 1e-2


def test_debug_shows_the_traceback() -> None:
    command = [sys.executable, "-m", "qa_backends", "answer", "--question", "Who?", "--context", " ", "--debug"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "Traceback" in done.stderr
