"""``train finetune`` and ``train prune`` from the command line: every setting and the held-out articles are written."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from qa_backends.checkpoints.manifest import read_manifest
from qa_backends.cli import main
from qa_backends.paths import OWN_QUESTIONS
from qa_backends.squad import read_squad

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Train = Callable[..., dict[str, Any]]

OPTIONS = (
    "--passes=1 --hold-out=3 --hold-out-seed=5 --swaps=8 --ema=0.9 --dropout=0.1 --no-freeze-embeddings "
    "--lower-case=0.1 --cut=0.2 --join=0.15 --misplaced=0.05"
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
        assert not left.value.code
        made: dict[str, Any] = json.loads(capsys.readouterr().out)
        return made

    return command


def test_finetune_writes_its_settings_and_what_it_answers_of_the_held_out_articles(
    train: Train, data: Path, tiny: Path, tmp_path: Path
) -> None:
    made = train("finetune", "--from", str(tiny), "--out", str(tmp_path / "run"), *OPTIONS.split())
    settings = made["settings"]
    assert {key: settings[key] for key in ("ema", "dropout", "freeze_embeddings")} == {
        "ema": 0.9,
        "dropout": 0.1,
        "freeze_embeddings": False,
    }
    assert settings["changes"] == {"swaps": 8, "lower_case": 0.1, "cut": 0.2, "join": 0.15, "misplaced": 0.05}
    held, questions = settings["held_out"], read_squad(data)
    assert len(held["articles"]) == 3 and not held["seen_before"]
    assert held["questions"] == sum(each.title in held["articles"] for each in questions)
    assert held["questions"] + settings["questions"] == len(questions)
    assert 0 <= held["exact"] <= held["f1"] <= 100
    assert read_manifest(tmp_path / "run" / "model").settings["held_out"] == held


def test_nothing_is_held_out_where_nothing_should_be(train: Train, data: Path, tiny: Path, tmp_path: Path) -> None:
    made = train("finetune", "--from", str(tiny), "--out", str(tmp_path / "run"), "--passes", "1", "--hold-out", "0")
    assert "held_out" not in made["settings"]
    assert made["settings"]["questions"] == len(read_squad(data))


def test_pruning_holds_out_articles_too_and_says_that_its_teacher_saw_them(
    train: Train, tiny: Path, tmp_path: Path
) -> None:
    first = train("finetune", "--from", str(tiny), "--out", str(tmp_path / "first"), "--passes", "1", "--hold-out", "2")
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
