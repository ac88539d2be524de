"""What OpenVINO is given to compute."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from helpers import QUESTION, TEXT, random_bert

from qa_backends import catalog
from qa_backends.checkpoints.manifest import manifest_of
from qa_backends.contract import Query
from qa_backends.engines.openvino import OpenVino
from qa_backends.progress import UNWATCHED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from qa_backends.catalog import Family
    from qa_backends.runtime import Runtime


@pytest.fixture
def engine(runtime: Runtime, small_family: Family) -> Iterator[OpenVino]:
    artefact = runtime.make_ready(small_family, catalog.backend("baseline-ov"), "cpu", UNWATCHED)
    engine = OpenVino({})
    engine.load(artefact, "cpu")
    yield engine
    engine.close()


def test_texts_of_many_lengths_come_in_few_shapes(engine: OpenVino, runtime: Runtime, small_family: Family) -> None:
    """It prepares its products for each shape that it first sees, which takes many times as long as computing them."""
    reader = runtime.reader(small_family, UNWATCHED)
    given: list[tuple[int, ...]] = []
    tensor = engine._tensor

    def noting(array: Any, **options: Any) -> Any:
        given.append(array.shape)
        return tensor(array, **options)

    engine._tensor = noting
    lengths = set()
    for words in range(5, 25):
        for texts in ([words], [words, words - 1]):
            windows = reader.prepare_all([Query("where ?", "word " * each) for each in texts]).windows
            assert engine.forward(windows).start.shape == windows.input_ids.shape
            lengths.add(windows.seq_len)
    assert len(lengths) == 20
    assert {count for count, _ in given} == {1, 2}
    assert len({length for _, length in given}) == 1
    assert not [length for _, length in given if length <= 32], "of 32 its products in BF16 are wrong"


def test_a_model_with_an_odd_number_of_positions_is_not_given_more_tokens_than_these(
    runtime: Runtime, tmp_path: Path
) -> None:
    """Windows are padded to a multiple of 32 tokens, for which such a model has no positions at the longest."""
    folder = random_bert(tmp_path / "odd", layers=1, positions=100)
    manifest_of(folder, step="test", parent=None, settings={}).write(folder)
    of = catalog.family_of(folder, "odd", "Odd")
    backend = catalog.backend("baseline-ov")
    runtime.make_ready(of, backend, "cpu", UNWATCHED)
    with runtime.turn("cpu") as turn:
        prepared = turn.prepare(of, Query(QUESTION, TEXT * 10))
        assert prepared.windows.n_windows > 1 and prepared.windows.seq_len == 96
        assert 0 <= turn.answer(of, backend, prepared).answer.confidence <= 1
