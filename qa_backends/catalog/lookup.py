"""From names to backends: any combination that fits, what is offered here, and why something is not."""

from __future__ import annotations

import importlib.util
import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

from qa_backends.artefacts.steps import CHECKPOINT, chain_of, step_names
from qa_backends.catalog.backends import BACKENDS, BASELINE, OF_THEIR_OWN, PRESELECTED, PRUNED, Backend
from qa_backends.catalog.families import default_family, families, family
from qa_backends.engines import engine_class, engine_names
from qa_backends.errors import BackendUnavailable, UnknownBackend
from qa_backends.limits import DEVICE_TITLES, devices

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from qa_backends.catalog.families import Family
    from qa_backends.contract import Engine

PLAIN_ONNX = "onnx"


def every_backend() -> Iterator[Backend]:
    """The table's backends, then every other checkpoint × artefact × engine × options that fits."""
    yield from BACKENDS
    listed = {each.name for each in BACKENDS}
    checkpoints = dict.fromkeys(name for each in families() for name, _ in each.checkpoints)
    for checkpoint, artefact, engine in itertools.product(checkpoints, [CHECKPOINT, *step_names()], engine_names()):
        for options in _option_sets(engine_class(engine)):
            backend = Backend(checkpoint, artefact, engine, options)
            if backend.fits and backend.name not in listed:
                yield backend


def _option_sets(engine: type[Engine]) -> Iterator[tuple[tuple[str, str], ...]]:
    """Every choice of the engine's options, all defaults first."""
    values = [[None, *((option, value) for value in choices)] for option, choices in engine.options.items()]
    for chosen in itertools.product(*values):
        yield tuple(each for each in chosen if each is not None)


def backend(name: str) -> Backend:
    """Raises UnknownBackend, listing the backends that are offered."""
    for each in every_backend():
        if each.name == name:
            return each
    raise UnknownBackend(f"There is no backend '{name}'. Choose one of: {', '.join(each.name for each in BACKENDS)}.")


def resolve(
    name: str | None, family_name: str | None = None, *, otherwise: str = PRESELECTED[-1]
) -> tuple[Family, Backend]:
    """``family/backend``, or a bare backend name with the family given or the default one; without a name, what the
    family has for the table's backend ``otherwise``.

    Raises:
        UnknownBackend: no such family or backend, two families that contradict each other, or a family without the
            backend's checkpoint.
    """
    if not name:
        of = family(family_name or default_family())
        return of, backend(in_family(of, otherwise))
    prefix, slash, bare = name.rpartition("/")
    if slash and family_name and prefix != family_name:
        raise UnknownBackend(f"'{name}' names another family than '{family_name}'. Leave one of them out.")
    found = family(prefix or family_name or default_family()), backend(bare)
    found[0].source(found[1].checkpoint)
    return found


def several(names: Sequence[str], family_name: str | None = None) -> tuple[Family, list[Backend]]:
    """Backends of one family, the one given, else that of the first name; of none, the family alone. Raises what
    ``resolve`` raises."""
    of = resolve(names[0], family_name)[0] if names else family(family_name or default_family())
    return of, [resolve(name, of.name)[1] for name in names]


def offered(of: Family, device: str | None = None) -> list[Backend]:
    """The table's backends that fit the family's kind of model and that the device, where given, can run.

    The rows of the pruned checkpoint are those of each smaller one that the family has without rows of its own, else of
    any smaller one, or of its baseline. A backend whose package or server is missing is offered all the same:
    ``unavailable`` says how to mend that.
    """
    rows = dict.fromkeys(
        replace(each, checkpoint=checkpoint) for each in BACKENDS for checkpoint in _checkpoints(of, each.checkpoint)
    )
    return [each for each in rows if (device is None or device in each.runs_on) and suits(each, of)]


def usual(of: Family) -> tuple[str, ...]:
    """Of the family, what is asked unless somebody chooses otherwise: its baseline, and its smaller checkpoint as ONNX
    Runtime has it best."""
    return tuple(in_family(of, name) for name in PRESELECTED)


def in_family(of: Family, name: str) -> str:
    """What a backend of the table is called in the family: of its smaller checkpoint, where it has not the row's, and
    of the plain graph, where its models are not fused."""
    row = backend(name)
    theirs = _checkpoints(of, row.checkpoint) or _checkpoints(of, PRUNED)
    row = replace(row, checkpoint=theirs[0])
    return (row if _fused(row, of) else replace(row, artefact=PLAIN_ONNX)).name


def suits(backend: Backend, of: Family) -> bool:
    """Whether engine and build steps know the family's models."""
    return _knows(backend.engine_class, of) and _fused(backend, of)


def _knows(engine: type[Engine], of: Family) -> bool:
    return not engine.kinds or of.kind in engine.kinds


def _fused(backend: Backend, of: Family) -> bool:
    """Whether the family's models are fused, if the backend wants that."""
    return of.fuses or not any(step.fuses for step in chain_of(backend.artefact))


def _checkpoints(of: Family, row: str) -> list[str]:
    """The checkpoints that a row of the table is offered for; the row's own first."""
    if row == BASELINE:
        return [row]
    if row in OF_THEIR_OWN:
        return [row] if of.has(row) else []
    smaller = [name for name, _ in of.checkpoints if name != BASELINE]
    without_rows = [name for name in smaller if name not in OF_THEIR_OWN]
    return sorted(without_rows, key=lambda name: name != row) or smaller or [BASELINE]


def offered_on(of: Family, devices: Iterable[str]) -> list[Backend]:
    """Those that one of the devices, at least, can run."""
    wanted = set(devices)
    return [each for each in offered(of) if wanted & set(each.runs_on)]


def unavailable(backend: Backend, device: str | None = None, of: Family | None = None) -> BackendUnavailable | None:
    """Why the backend cannot run on this machine, or on the device, or models of the family, where given, or ``None``.
    Imports nothing heavy."""
    if device is not None and device not in backend.runs_on:
        able = ", ".join(DEVICE_TITLES[each] for each in backend.runs_on) or "no device"
        named = DEVICE_TITLES.get(device, device)
        return BackendUnavailable(
            f"{backend.title} cannot run on the {named}.", f"Choose another device: it runs on {able}."
        )
    engine = backend.engine_class
    if not backend.fits:
        able = ", ".join(engine.reads)
        return BackendUnavailable(
            f"{engine.title} cannot read what '{backend.artefact}' makes.",
            f"Choose an artefact that is one of: {able}.",
        )
    if of is not None and not _knows(engine, of):
        return BackendUnavailable(
            f"{engine.title} does not run models of the kind '{of.kind}'.",
            f"Choose another backend, as {usual(of)[-1]}.",
        )
    if of is not None and not _fused(backend, of):
        return BackendUnavailable(
            f"ONNX Runtime's optimiser does not fuse {of.short}.",
            f"Choose a backend of the plain graph, as {usual(of)[-1]}.",
        )
    if device is None and "cpu" not in backend.runs_on and not set(backend.runs_on) & set(devices()):
        further = _missing(backend, "cuda")
        remedy = f"Use a machine with one. {further or ''}"
        return BackendUnavailable(f"{backend.title} needs a GPU, and there is none here.", remedy.strip())
    return _missing(backend, device)


def _missing(backend: Backend, device: str | None) -> BackendUnavailable | None:
    """What has to be installed, or set up, before the device can run it; ``None`` where nothing has."""
    engine = backend.engine_class
    needing = [(engine.title, engine.packages, engine.install)]
    needing += [(f"The step '{step.name}'", step.packages, step.install) for step in chain_of(backend.artefact)]
    for who, packages, install in needing:
        for package in packages:
            if importlib.util.find_spec(package.partition(".")[0]) is None:
                return BackendUnavailable(f"{who} needs the package '{package}'.", f"Install it: {install}")
    refusal = engine.refusal(dict(backend.options), device)
    return BackendUnavailable(*refusal) if refusal else None
