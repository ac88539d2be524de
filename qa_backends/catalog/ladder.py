"""The ladder: which backend is the step of optimisation before which."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from qa_backends.artefacts.steps import CHECKPOINT, chain_of
from qa_backends.catalog.backends import BACKENDS, BASELINE, Backend


def plain(backend: Backend) -> Backend:
    """The same weights in PyTorch, as they are."""
    return Backend(backend.checkpoint, CHECKPOINT, "pytorch")


def before(backend: Backend) -> Backend | None:
    """The step before: without the last build step, else in PyTorch, else the baseline; ``None`` for that."""
    simple = plain(backend)
    if backend.name == simple.name:
        return None if backend.checkpoint == BASELINE else Backend(BASELINE, CHECKPOINT, "pytorch")
    chain = chain_of(backend.artefact)
    parent = Backend(backend.checkpoint, chain[-1].parent, backend.engine, backend.options) if chain else simple
    return parent if parent.fits else simple


def nearest(backend: Backend, among: Iterable[str]) -> str | None:
    """The name of the step before that is among those named, or of the one before that, and so on."""
    names, step = set(among), before(backend)
    while step is not None and step.name not in names:
        step = before(step)
    return step.name if step else None


def ladder(backends: Iterable[Backend]) -> list[Backend]:
    """The backends as steps of optimisation: each after the one it is compared with, whatever order they come in."""
    chosen = {each.name: each for each in backends}
    ordered: list[Backend] = []

    def climb(name: str | None) -> None:
        for each in _by_table(chosen.values()):
            if nearest(each, chosen) == name:
                ordered.append(each)
                climb(each.name)

    climb(None)
    return ordered


def _by_table(backends: Iterable[Backend]) -> Sequence[Backend]:
    """In the order of the table, whatever their checkpoint; what is not in it behind, by name."""
    places = {_what_is_done(each): place for place, each in reversed(list(enumerate(BACKENDS)))}
    return sorted(backends, key=lambda each: (places.get(_what_is_done(each), len(places)), each.name))


def _what_is_done(backend: Backend) -> tuple[object, ...]:
    return backend.artefact, backend.engine, backend.options
