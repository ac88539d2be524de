"""Random weights of a published shape: times without a download."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from qa_backends import catalog
from qa_backends.catalog import Family
from qa_backends.checkpoints import random
from qa_backends.checkpoints.load import read_config
from qa_backends.checkpoints.manifest import read_manifest
from qa_backends.checkpoints.sources import Source, make_ready, ready, weights_hash
from qa_backends.errors import InputError
from qa_backends.measure.benchmark.plan import BenchmarkPlan
from qa_backends.measure.benchmark.sweep import sweep
from qa_backends.paths import SHAPES
from qa_backends.progress import UNWATCHED, Progress
from qa_backends.runtime import Runtime

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = {
    "model_type": "bert", "vocab_size": 30522, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 48,
}  # fmt: skip
PRUNED = CONFIG | {"pruned_heads": {"0": [1], "1": [0, 2]}, "intermediate_sizes": [40, 8]}


@pytest.fixture
def shapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Family:
    """A small shape in place of the large ones, as a family that plans know by its name."""
    file = tmp_path / "shapes.json"
    file.write_text(json.dumps({"small": {"baseline": {"config": CONFIG}, "pruned": {"config": PRUNED}}}))
    monkeypatch.setattr(random, "SHAPES", file)
    checkpoints = tuple((name, Source(shape=f"small/{name}")) for name in ("baseline", "pruned"))
    family = Family("small-random", "Small shapes", checkpoints)
    catalog.register(family)
    return family


def test_a_shape_is_drawn_once_and_has_the_heads_and_columns_it_names(shapes: Family) -> None:
    source, said = shapes.source("pruned"), list[str]()
    assert ready(source) is None and weights_hash(source) is None
    folder = make_ready(source, Progress(said.append))
    assert any("random weights of the shape small/pruned" in each for each in said)
    config = read_config(folder)
    assert config["intermediate_sizes"] == [40, 8]
    manifest = read_manifest(folder)
    attention = 4 * 32 * 8 * (3 + 2) + 3 * 8 * (3 + 2) + 2 * 32
    ffn = sum(2 * 32 * columns + columns + 32 for columns in (40, 8))
    norms = 2 * 2 * 2 * 32
    assert manifest.encoder_parameters == attention + ffn + norms
    assert (manifest.step, manifest.parent) == ("random", None)
    assert make_ready(source, UNWATCHED) == ready(source) == folder
    assert make_ready(shapes.source("baseline"), UNWATCHED) != folder


def test_random_weights_are_timed_and_nothing_is_said_of_their_answers(shapes: Family) -> None:
    """INT8 too, whose answers would otherwise have to be those before it."""
    plan = BenchmarkPlan(
        shapes.name, ("baseline", "pruned-ort-int8-dynamic"), lengths=(32,), batches=(1,), runs=5, seconds=30
    )
    found = sweep(Runtime(), plan)
    assert [each.name for each in found.records] == ["baseline", "pruned-ort-int8-dynamic"]
    assert found.left_out == []
    assert all(each.quality is None and each.checkpoint for each in found.records)


def test_only_what_would_be_downloaded_is_drawn_instead() -> None:
    family = catalog.with_random_weights("bert-large")
    assert family.random and family.embedded, "nothing is downloaded"
    with pytest.raises(InputError, match="Leave --random-weights out"):
        catalog.with_random_weights("minilm")
    with pytest.raises(InputError, match="of bert-large alone"):
        catalog.with_random_weights("roberta")


def test_the_published_shapes_are_whole() -> None:
    shapes = json.loads(SHAPES.read_text(encoding="utf-8"))["bert-large"]
    pruned = shapes["pruned"]["config"]
    assert shapes["baseline"]["config"].items() <= pruned.items()
    assert len(pruned["pruned_heads"]) == len(pruned["intermediate_sizes"]) == pruned["num_hidden_layers"] == 24
    assert all(len(set(heads)) < 16 and set(heads) < set(range(16)) for heads in pruned["pruned_heads"].values())
    assert all(0 < columns < 4096 for columns in pruned["intermediate_sizes"])
    assert all(each["source"] for each in shapes.values())
