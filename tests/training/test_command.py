"""``train finetune`` and ``train prune`` from the command line: every setting and the held-out articles are written."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from signal import SIGINT
from typing import TYPE_CHECKING, Any

import pytest
from helpers import BASELINE, QUESTION, TEXT, encoder_of, random_bert

from qa_backends import catalog
from qa_backends.catalog import Family
from qa_backends.checkpoints import smaller
from qa_backends.checkpoints.files import WEIGHTS
from qa_backends.checkpoints.manifest import Fitted, file_hash, fitted_of, manifest_of, read_manifest
from qa_backends.checkpoints.sources import Source, make_ready
from qa_backends.cli import main
from qa_backends.commands.calibrating import calibrate
from qa_backends.commands.comparing import _otherwise, compare
from qa_backends.commands.runs import Chosen
from qa_backends.commands.terminal import interrupted
from qa_backends.contract import ALWAYS_ANSWERS, Answer, Query
from qa_backends.errors import InputError
from qa_backends.measure.results.card import techniques_table
from qa_backends.measure.results.files import read_results
from qa_backends.measure.results.records import Techniques
from qa_backends.paths import OWN_QUESTIONS
from qa_backends.progress import UNWATCHED
from qa_backends.runtime import Runtime
from qa_backends.squad import read_squad
from qa_backends.training.provenance import add_to_manifest
from qa_backends.training.settings import BF16, FP32, RunSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Train = Callable[..., dict[str, Any]]

OPTIONS = (
    "--passes=1 --hold-out=3 --hold-out-seed=5 --swaps=8 --ema=0.9 --dropout=0.1 --no-freeze-embeddings "
    "--lower-case=0.1 --cut=0.2 --join=0.15 --misplaced=0.05 --precision=fp32"
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Eight articles of the project's own questions."""
    document = json.loads(OWN_QUESTIONS.read_text())
    file = tmp_path / "questions.json"
    file.write_text(json.dumps({"data": document["data"][:8]}))
    return file


@pytest.fixture
def train(data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Train:
    """Runs ``train`` on the data and gives what it says it made."""

    def command(*arguments: str) -> dict[str, Any]:
        monkeypatch.setattr(
            sys, "argv", ["qa_backends", "train", *arguments, "--data", str(data), "--device", "cpu", "--json"]
        )
        with pytest.raises(SystemExit) as left:
            main()
        assert not left.value.code, left.value.code
        made: dict[str, Any] = json.loads(capsys.readouterr().out)
        return made

    return command


def test_finetune_writes_its_settings_and_what_it_answers_of_the_held_out_articles(
    train: Train, data: Path, tiny: Path, tmp_path: Path
) -> None:
    more = tmp_path / "more.json"
    more.write_text(json.dumps({"data": json.loads(OWN_QUESTIONS.read_text())["data"][8:10]}))
    also = ("--also", str(more), "--also-times", "2")
    made = train("finetune", "--from", str(encoder_of(tiny)), "--out", str(tmp_path / "run"), *OPTIONS.split(), *also)
    settings = made["settings"]
    assert (settings["also"], settings["also_times"]) == ("more.json", 2)
    assert settings["also_questions"] == len(read_squad(more)), "a file may grow, and keeps its name"
    assert (settings["data_sha256"], settings["also_sha256"]) == (file_hash(data), file_hash(more))
    assert {key: settings[key] for key in ("ema", "dropout", "freeze_embeddings", "precision")} == {
        "ema": 0.9,
        "dropout": 0.1,
        "precision": "fp32",
        "freeze_embeddings": False,
    }
    assert settings["changes"] == {"swaps": 8, "lower_case": 0.1, "cut": 0.2, "join": 0.15, "misplaced": 0.05}
    held, questions = settings["held_out"], read_squad(data)
    assert len(held["articles"]) == 3 and not held["seen_before"]
    assert held["questions"] == sum(each.title in held["articles"] for each in questions)
    assert held["questions"] + settings["questions"] == len(questions)
    assert 0 <= held["exact"] <= held["f1"] <= 100
    assert read_manifest(tmp_path / "run" / "model").settings["held_out"] == held
    (error,) = settings["calibration"]["errors"]
    assert settings["calibration"]["articles"] == held["articles"] and error["questions"] == held["questions"]
    assert 0 <= error["before"] <= 100 and 0 <= error["after"] <= 100 and made["temperature"] > 0


def test_what_is_held_out_is_not_learned_besides(tiny: Path, data: Path, tmp_path: Path) -> None:
    run = RunSettings(tmp_path / "run", 1, 1e-4, 2048, 0, "cpu", also=data)
    with pytest.raises(InputError, match="is held out, and --also would have it trained on"):
        _ = Chosen(run, data, hold_out=3, hold_out_seed=5).parts
    assert len(Chosen(run, data, hold_out=0, hold_out_seed=5).parts.learned) == len(read_squad(data))
    more = tmp_path / "more.json"
    more.write_bytes(OWN_QUESTIONS.read_bytes())
    chosen = Chosen(replace(run, also=more), data, hold_out=0, hold_out_seed=5)
    assert chosen.parts.learned
    more.write_text(json.dumps({"data": []}))
    assert chosen.facts()["also_questions"] == len(read_squad(OWN_QUESTIONS)), "as many as the run began with"
    assert chosen.facts()["also_sha256"] == file_hash(OWN_QUESTIONS)
    with pytest.raises(InputError, match="Name them: --also FILE"):
        replace(run, also=None, also_times=2)
    alone = replace(run, also=None).facts()
    assert "also" not in alone and "also_times" not in alone, "as in the notes of runs before there were such"


def test_finetuning_by_teachers_notes_all_of_them_and_that_one_may_have_seen_the_articles(
    train: Train, tiny: Path, tmp_path: Path
) -> None:
    arguments = ("finetune", "--from", str(encoder_of(tiny)), "--passes=1", "--hold-out=3", "--precision=fp32")
    taught = train(*arguments, "--out", str(tmp_path / "run"), "--teacher", str(tiny), "--teacher", str(BASELINE))
    hashes = [file_hash(each / WEIGHTS) for each in (tiny, BASELINE)]
    settings = taught["settings"]
    assert [settings["teacher"], *settings["other_teachers"]] == hashes
    assert settings["held_out"]["seen_before"] and not settings["teacher_logits"]


def test_how_a_teacher_runs_is_not_asked_where_none_teaches(
    tiny: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["finetune", "--from", str(tiny), "--out", str(tmp_path / "run"), "--data", str(data)]
    monkeypatch.setattr(sys, "argv", ["qa_backends", "train", *arguments, "--teacher-backend", "baseline-ov"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code and "Name one: --teacher FOLDER" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("name", "told"), [("", "is a folder. Name a file"), ("a-file/logits", "cannot be written")])
def test_logits_that_cannot_be_kept_are_refused_before_the_teacher_runs(
    tiny: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    name: str, told: str,
) -> None:  # fmt: skip
    (tmp_path / "a-file").touch()
    arguments = ["distil", "--teacher", str(tiny), "--out", str(tmp_path / "run"), "--data", str(data), "--hold-out=3"]
    monkeypatch.setattr(sys, "argv", ["qa_backends", "train", *arguments, "--teacher-logits", str(tmp_path / name)])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code and told in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "run").exists()


def test_calibrating_changes_what_a_checkpoint_says_of_its_answers_and_not_the_answers(
    train: Train, tiny: Path
) -> None:
    manifest_of(tiny, step="test", parent=None, settings={"seed": 1}).write(tiny)
    family = Family("tiny", "Tiny", (("baseline", Source(folder=tiny)),))
    catalog.register(family)
    before = asked(family)
    made = train("calibrate", "--backend", "tiny/baseline", "--hold-out", "3", "--on", "own")
    assert [each["data"] for each in made["errors"]] == ["held-out articles", "questions.json"]
    assert len(made["articles"]) == 3 and made["errors"][1]["questions"] == len(read_squad(OWN_QUESTIONS))
    manifest = read_manifest(tiny)
    assert manifest.temperature == made["temperature"] != 1 and manifest.settings["seed"] == 1
    assert made["seen_before"] and made["null_threshold"] == manifest.null_threshold == 0
    after = asked(family)
    assert after.confidence != before.confidence
    assert replace(after, confidence=before.confidence) == before


def test_the_threshold_of_articles_that_were_held_out_is_how_a_checkpoint_answers(
    train: Train, data: Path, tiny: Path, tmp_path: Path
) -> None:
    encoder, folder = str(encoder_of(tiny)), str(tmp_path / "run")
    made = train("finetune", "--from", encoder, "--out", folder, "--passes", "1", "--hold-out", "3")
    (error,) = made["settings"]["calibration"]["errors"]
    assert made["null_threshold"] == made["settings"]["calibration"]["threshold"] != 0
    assert error["f1_at_threshold"] >= error["f1"]
    family = Family("tuned", "Tuned", (("baseline", Source(folder=tmp_path / "run" / "model")),))
    runtime, asked = Runtime(), [Query(each.question, each.context) for each in read_squad(data)]
    with runtime.turn("cpu") as turn:
        prepared = runtime.reader(family).prepare_all(asked)
        answers = turn.answer_all(family, catalog.backend("baseline"), prepared).answers
    assert [each.span is None for each in answers] == [
        each.null_score - each.score > made["null_threshold"] for each in answers
    ]
    always = replace(family, settings=replace(family.settings, null_threshold=ALWAYS_ANSWERS))
    assert always.reads("baseline").always_answers, "of a family that never says that there is no answer, it is none"


def test_what_was_fitted_to_a_model_of_ones_own_outlasts_its_packed_copy(train: Train, tmp_path: Path) -> None:
    family = catalog.adopt(str(random_bert(tmp_path / "mine", seed=77)), UNWATCHED)
    made = train("calibrate", "--backend", f"{family.name}/baseline", "--hold-out", "3")
    source = family.source(catalog.BASELINE)
    shutil.rmtree(make_ready(source, UNWATCHED))
    assert fitted_of(make_ready(source, UNWATCHED)).temperature == made["temperature"] != 1


def asked(family: Family) -> Answer:
    """What a process that starts now answers."""
    runtime, backend = Runtime(), catalog.backend("baseline")
    with runtime.turn("cpu") as turn:
        return turn.answer(family, backend, turn.prepare(family, Query(QUESTION, TEXT))).answer


def test_what_was_fitted_is_not_lost_where_it_cannot_be_written(
    data: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest_of(tiny, step="test", parent=None, settings={}).write(tiny)
    catalog.register(Family("tiny", "Tiny", (("baseline", Source(folder=tiny)),)))
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr("qa_backends.commands.calibrating.fit", lambda *_: pytest.fail("questions were answered"))
    with pytest.raises(InputError, match=r"manifest\.json cannot be written\. Calibrate a copy"):
        calibrate(data, "tiny/baseline", hold_out=3)


def test_calibrating_on_nothing_says_what_to_do(data: Path) -> None:
    with pytest.raises(InputError, match="Hold out some articles"):
        calibrate(data, hold_out=0)


def test_nothing_is_held_out_where_nothing_should_be(train: Train, data: Path, tiny: Path, tmp_path: Path) -> None:
    made = train("finetune", "--from", str(tiny), "--out", str(tmp_path / "run"), "--passes", "1", "--hold-out", "0")
    assert "held_out" not in made["settings"]
    assert made["settings"]["questions"] == len(read_squad(data))


@pytest.mark.slow
def test_pruning_for_time_begins_with_a_table_of_this_machine(
    train: Train, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QA_CACHE", str(tmp_path / "cache"))
    manifest_of(tiny, step="test", parent=None, settings={}).write(tiny)
    catalog.register(Family("tiny", "Tiny", (("baseline", Source(folder=tiny)), ("pruned", Source(folder=tiny)))))
    file = tmp_path / "table.json"
    timing = f"latency --out {file} --backend tiny/pruned-ort --seconds 8 --json"
    monkeypatch.setattr(sys, "argv", ["qa_backends", "train", *timing.split()])
    with pytest.raises(SystemExit) as left:
        main()
    assert not left.value.code
    table = json.loads(capsys.readouterr().out)
    assert json.loads(file.read_text()) == table
    assert set(table["heads"]) == {"0", "1", "2", "3", "4"} and set(table["columns"]) == {"0", "32", "48"}
    assert all(len(each) == 2 for kind in ("heads", "columns") for each in table[kind].values())
    assert table["facts"]["engine"] == "onnxruntime" and table["facts"]["machine"]["processor"]
    assert not list((tmp_path / "cache").glob("onnx-*/")), "models of other shapes are not kept"
    out = str(tmp_path / "run")
    made = train("prune", "--teacher", str(tiny), "--out", out, "--latency-table", str(file), "--hold-out", "0")
    assert made["settings"]["latency"] == table["facts"]
    assert made["settings"]["latency_sha256"] == file_hash(file)


@pytest.fixture
def uninterrupted() -> Iterator[None]:
    """What a test interrupts says nothing to the next one."""
    yield
    interrupted.clear()


@pytest.mark.usefixtures("uninterrupted")
def test_ctrl_c_ends_a_run_behind_a_step_that_the_same_command_goes_on_from(
    train: Train, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps: list[int] = []

    @contextmanager
    def noting(*_: object) -> Iterator[Callable[..., None]]:
        yield lambda number, _note, _of: steps.append(number) or (steps == [1, 2] and os.kill(os.getpid(), SIGINT))

    monkeypatch.setattr("qa_backends.commands.training.bar", noting)
    asked = ("finetune", "--from", str(tiny), "--passes=1", "--hold-out=0", "--batch-tokens=512")
    before = signal.getsignal(SIGINT)
    with pytest.raises(AssertionError, match="130"):
        train(*asked, "--out", str(tmp_path / "run"))
    assert steps == [1, 2] and "goes on from it" in capsys.readouterr().err
    assert signal.getsignal(SIGINT) is before
    interrupted.clear()
    train(*asked, "--out", str(tmp_path / "run"))
    assert len(steps) > 3 and steps == [*range(1, len(steps) + 1)]


def test_distilling_writes_the_layers_and_what_the_student_answers(train: Train, tiny: Path, tmp_path: Path) -> None:
    manifest_of(tiny, step="test", parent=None, settings={}).write(tiny)
    asked = ["distil", "--teacher", str(tiny), "--layers", "1", "--passes", "2", "--hold-out", "2"]
    kept = ["--teacher-logits", str(tmp_path / "logits.safetensors"), "--teacher-backend", "pruned-ort"]
    made = train(*asked, "--out", str(tmp_path / "run"), *kept)
    settings = made["settings"]
    assert settings["teacher_backend"] == "baseline-ort"
    assert (settings["layers"], settings["hidden_passes"], settings["by_labels"]) == ([1], 1.0, False)
    assert settings["teacher_logits"] and (tmp_path / "logits.safetensors").is_file()
    assert settings["held_out"]["questions"] > 0
    alone = train(*asked, "--out", str(tmp_path / "alone"), "--by-labels")
    assert smaller.made_of(tiny) == {"distilled": Path(made["folder"])}, "the control is no checkpoint of the family"
    assert alone["settings"]["by_labels"] and alone["encoder_parameters"] == made["encoder_parameters"]


@pytest.mark.usefixtures("few_windows")
def test_a_checkpoint_is_trained_on_for_int8(train: Train, tiny: Path, tmp_path: Path) -> None:
    manifest_of(tiny, step="prune", parent=None, settings={"density": 0.4}).write(tiny)
    asked = ["--start", str(tiny), "--teacher", str(tiny), "--out", str(tmp_path / "run"), "--hold-out", "0"]
    made = train("quantise", *asked, "--teacher-backend", "pruned-ort")
    assert made["step"] == "quantise" and made["parent"] == file_hash(tiny / WEIGHTS)
    assert made["settings"]["before"] == {"step": "prune", "parent": None, "density": 0.4}
    assert made["settings"]["teacher_backend"] == "baseline-ort"


def test_a_soup_of_two_runs_is_asked_of_the_articles_that_both_held_out(
    train: Train, tiny: Path, tmp_path: Path
) -> None:
    asked = ("--passes", "1", "--hold-out", "2")
    first = train("finetune", "--from", str(encoder_of(tiny)), *asked, "--out", str(tmp_path / "first"))
    again = ("finetune", "--from", first["folder"], *asked, "--out", str(tmp_path / "second"))
    second = train(*again)
    mean = ("soup", second["folder"], first["folder"], "--hold-out", "2", "--out", str(tmp_path / "soup"))
    made = train(*mean)
    held_out = made["settings"]["held_out"]
    assert held_out["articles"] == second["settings"]["held_out"]["articles"] and not held_out["seen_before"]
    assert 0 <= held_out["f1"] <= 100 and made["settings"]["calibration"]
    earliest = {"step": "finetune", "parent": first["parent"], **first["settings"]}
    assert made["settings"]["before"]["before"] == earliest
    for command, folder in ((again, second["folder"]), (mean, made["folder"])):
        add_to_manifest(Path(folder), {"calibration": "on more"}, Fitted(7.0, 1.0))
        found = train(*command)
        assert found["settings"]["calibration"] == "on more", "a finished run repeated keeps what was fitted since"
        assert (found["temperature"], found["null_threshold"]) == (7.0, 1.0)


def test_what_a_run_did_otherwise_is_compared_on_the_articles_that_all_held_out(
    train: Train, tiny: Path, tmp_path: Path
) -> None:
    encoder, save = encoder_of(tiny), tmp_path / "techniques.json"
    asked = ["finetune", "--from", str(encoder), "--passes", "1", "--hold-out", "3"]
    otherwise = {"plain": [], "averaged": ["--ema", "0.9", "--cut", "0.5"], "hurried": ["--seed", "9"]}
    made = {name: train(*asked, "--out", str(tmp_path / name), *more) for name, more in otherwise.items()}
    rows = [*made.values(), made["plain"]]
    compared = train("compare", *(each["folder"] for each in rows), "--hold-out", "3", "--save", str(save))
    assert [each["otherwise"] for each in compared["rows"]] == ["", "cut 0.5, ema 0.9", "seed 9", ""]
    errors = [each["settings"]["calibration"]["errors"][0] for each in rows]
    assert [each["f1"] for each in compared["rows"]] == pytest.approx([each["f1_at_threshold"] for each in errors])
    first, *others = compared["rows"]
    assert first["f1_difference"] is None and not compared["seen_before"]
    for each in others:
        assert each["f1_difference"]["value"] == pytest.approx(each["f1"] - first["f1"])
    assert read_results(save, Techniques).rows[1].settings["ema"] == 0.9
    assert "`cut 0.5, ema 0.9`" in techniques_table("What they are worth", read_results(save, Techniques))


def test_runs_are_compared_on_other_questions_too_each_set_by_itself(train: Train, tiny: Path, tmp_path: Path) -> None:
    asked = ["finetune", "--from", str(encoder_of(tiny)), "--passes", "1", "--hold-out", "2"]
    folders = [train(*asked, "--out", str(tmp_path / seed), "--seed", seed)["folder"] for seed in ("1", "2")]
    other, save = tmp_path / "other.json", tmp_path / "techniques.json"
    other.write_text((tmp_path / "questions.json").read_text(encoding="utf-8"), encoding="utf-8")
    wanted = ["compare", *folders, "--hold-out", "2", "--on", str(other)]
    rows = train(*wanted, "--save", str(save))["rows"]
    assert [(each["data"], each["otherwise"]) for each in rows] == [
        ("held-out articles", ""), ("held-out articles", "seed 2"), ("other.json", ""), ("other.json", "seed 2"),
    ]  # fmt: skip
    assert [each["f1_difference"] is None for each in rows] == [True, False, True, False]
    assert rows[3]["f1_difference"]["value"] == pytest.approx(rows[3]["f1"] - rows[2]["f1"])
    shown = techniques_table("What they are worth", read_results(save, Techniques))
    assert shown.startswith("What they are worth: 2 runs that began as one checkpoint, passes over the questions")
    assert shown.count("| other.json |") == 2
    with pytest.raises(InputError, match=r"called 'other.json'"):
        compare([Path(each) for each in folders], tmp_path / "questions.json", [str(other), str(other)], hold_out=2)


def test_another_file_of_the_same_name_is_told_where_both_runs_noted_which_it_was(tiny: Path) -> None:
    by, other, early = (
        manifest_of(tiny, step="finetune", parent=None, settings={"data": "train.json", **each})
        for each in ({"data_sha256": "a"}, {"data_sha256": "b"}, {})
    )
    assert [_otherwise(each, by) for each in (by, other, early)] == ["", "another data", ""]


def test_runs_that_say_nothing_about_each_other_are_not_compared(train: Train, tiny: Path, tmp_path: Path) -> None:
    asked = ["finetune", "--passes", "1", "--hold-out", "2", "--from"]
    first = train(*asked, str(encoder_of(tiny)), "--out", str(tmp_path / "first"))["folder"]
    further = train(*asked, first, "--out", str(tmp_path / "further"))["folder"]
    data, other = tmp_path / "questions.json", "did not begin as the first did"
    with pytest.raises(InputError, match=other):
        compare([Path(first), Path(further)], data, hold_out=2)
    with pytest.raises(InputError, match="was trained with other articles held out"):
        compare([Path(first), Path(first)], data, hold_out=3)
    with pytest.raises(InputError, match="nothing to compare"):
        compare([Path(first)], data, hold_out=2)
    alone = train("finetune", "--passes", "1", "--hold-out", "0", "--from", first, "--out", str(tmp_path / "alone"))
    with pytest.raises(InputError, match="without held-out articles"):
        compare([Path(alone["folder"]), Path(first)], data, hold_out=2)


def test_what_no_run_has_made_is_not_compared(tiny: Path, data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    for folder, told in (
        (run, r"holds no model\.safetensors\. Name a folder"),
        (tiny, r"no manifest\.json\. Name the"),
    ):
        with pytest.raises(InputError, match=told):
            compare([folder, folder], data, hold_out=2)


def test_pruning_holds_out_articles_too_and_says_that_its_teacher_saw_them(
    train: Train, tiny: Path, tmp_path: Path
) -> None:
    encoder, folder = str(encoder_of(tiny)), str(tmp_path / "first")
    first = train("finetune", "--from", encoder, "--out", folder, "--passes", "1", "--hold-out", "2")
    teacher = str(tmp_path / "first" / "model")
    made = train(
        "prune",
        "--teacher",
        teacher,
        "--out",
        str(tmp_path / "run"),
        "--passes",
        "1",
        "--hold-out",
        "4",
        "--batch-tokens",
        "512",
    )
    assert not first["settings"]["held_out"]["seen_before"]
    assert made["settings"]["held_out"]["seen_before"]
    assert len(made["settings"]["held_out"]["articles"]) == 4


@pytest.mark.parametrize(
    ("flag", "told", "precision"),
    [("amx_bf16", [], BF16), ("avx512_bf16", [], BF16), ("avx2", [], FP32), ("avx2", ["--precision", "bf16"], BF16)],
)
def test_training_computes_in_what_the_processor_multiplies_in_unless_told_otherwise(
    data: Path, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flag: str, told: list[str], precision: str
) -> None:
    asked: list[str] = []

    def remember(_questions: object, *, run: RunSettings, **_: object) -> None:
        asked.append(run.precision)
        raise InputError("That is all.")

    monkeypatch.setattr("qa_backends.limits.cpu_flags", lambda: frozenset({flag}))
    monkeypatch.setattr("qa_backends.training.finetune.finetune", remember)
    arguments = ["train", "finetune", "--data", str(data), "--out", str(tmp_path / "run"), "--from", str(tiny), *told]
    monkeypatch.setattr(sys, "argv", ["qa_backends", *arguments, "--device", "cpu", "--hold-out", "3"])
    with pytest.raises(SystemExit):
        main()
    assert asked == [precision]


def test_a_precision_that_there_is_not_is_refused(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["train", "finetune", "--data", str(data), "--out", str(tmp_path / "run"), "--precision", "fp8"]
    with pytest.MonkeyPatch.context() as patched, pytest.raises(SystemExit) as left:
        patched.setattr(sys, "argv", ["qa_backends", *arguments, "--from", str(tmp_path)])
        main()
    assert left.value.code
    assert "There is no precision 'fp8'. Choose one of: bf16, fp32." in " ".join(capsys.readouterr().err.split())
