"""What models of other shapes would take, timed with random weights: a model's time hangs on its shape alone."""

from __future__ import annotations

import statistics
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from qa_backends.artefacts.build import discard
from qa_backends.catalog import BASELINE, Family, family_of
from qa_backends.checkpoints.random import draw
from qa_backends.errors import InputError
from qa_backends.measure.benchmark.inputs import queries_of_length
from qa_backends.measure.quality.datasets import own_questions
from qa_backends.measure.timing.rounds import take_turns, turns_fit
from qa_backends.measure.timing.statistics import LEAST_ROUNDS
from qa_backends.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from qa_backends.catalog import Backend
    from qa_backends.contract import StageTimes
    from qa_backends.measure.timing.rounds import Samples
    from qa_backends.reader.reader import Prepared
    from qa_backends.runtime import Runtime, Turn

    Shape = tuple[int, int]
    """Heads and FFN columns, of every layer."""


def time_shapes(
    runtime: Runtime,
    backend: Backend,
    config: Mapping[str, Any],
    shapes: Sequence[Shape],
    lengths: Sequence[int],
    seconds: float,
    progress: Progress,
) -> dict[Shape, tuple[float, ...]]:
    """Median seconds of one forward call on the CPU at each length, of models like the one of that ``config.json``
    whose layers are all of one shape; in turns, for about ``seconds`` once they are built. What is built is deleted.

    Raises:
        InputError: five rounds of all do not fit into the time.
        QAError: one of the models cannot be built or run.
        Cancelled: ``progress`` says to stop.
    """
    if not turns_fit(0.0, len(shapes) * len(lengths), seconds):
        raise _too_short(seconds)
    alone = replace(backend, checkpoint=BASELINE)
    with TemporaryDirectory() as root:
        families = {shape: _drawn(config, shape, Path(root)) for shape in shapes}
        try:
            for number, (shape, family) in enumerate(families.items(), start=1):
                progress.say(f"building {number} of {len(shapes)}: {shape[0]} heads and {shape[1]} columns …")
                runtime.make_ready(family, alone, "cpu", Progress(stopped=progress.stopped))
            with runtime.turn("cpu", progress) as turn:
                samples = _in_turns(turn, families, alone, lengths, seconds)
        finally:
            for family in families.values():
                runtime.drop(family, alone.name, "cpu")
                discard(_folder(family), alone.artefact)
    return {
        shape: tuple(statistics.median(each.forward_s for each in samples.times[_key(shape, n)]) for n in lengths)
        for shape in shapes
    }


def _drawn(config: Mapping[str, Any], shape: Shape, root: Path) -> Family:
    """A family of one checkpoint, of random weights."""
    heads, columns = shape
    layers, most = int(config["num_hidden_layers"]), int(config["num_attention_heads"])
    pruned = {layer: list(range(heads, most)) for layer in range(layers)}
    folder = root / f"{heads}-heads-{columns}-columns"
    settings = {"heads": heads, "columns": columns}
    draw({**config, "pruned_heads": pruned, "intermediate_sizes": [columns] * layers}, folder, settings)
    return family_of(folder, folder.name, folder.name)


def _folder(family: Family) -> Path:
    folder = family.source(BASELINE).folder
    assert folder is not None, "it was drawn there"
    return folder


def _in_turns(
    turn: Turn, families: Mapping[Shape, Family], backend: Backend, lengths: Sequence[int], seconds: float
) -> Samples:
    """Raises InputError where the time is too short for five rounds."""
    reader = turn.runtime.reader(next(iter(families.values())))
    asked = {n: reader.prepare(queries_of_length(reader, own_questions(), n, 1)[0]) for n in lengths}
    runs = {
        _key(shape, tokens): partial(_run, turn, family, backend, prepared)
        for shape, family in families.items()
        for tokens, prepared in asked.items()
    }
    turn.progress.say(f"timing {len(families)} models at {' and '.join(map(str, lengths))} tokens …")
    *_, samples = [None, *take_turns(runs, seconds=seconds)]
    if samples is None or len(samples.blocks) < LEAST_ROUNDS:
        raise _too_short(seconds)
    return samples


def _too_short(seconds: float) -> InputError:
    return InputError(f"{seconds:.0f} s are too short for so many models in turns. Give more: --seconds.")


def _run(turn: Turn, family: Family, backend: Backend, prepared: Prepared) -> StageTimes:
    turn.progress.check()
    return turn.answer_all(family, backend, prepared).times


def _key(shape: Shape, tokens: int) -> str:
    return f"{shape} {tokens}"
