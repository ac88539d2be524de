"""A model of one's own: a folder or a repository of the Hub becomes a family while the process runs."""

from __future__ import annotations

import os
import re
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qa_backends.catalog.families import V1, V2, Family, Published, families, forget, register
from qa_backends.checkpoints.admission import admit
from qa_backends.checkpoints.architectures import architecture_of
from qa_backends.checkpoints.card import SQUAD, SQUAD_V2, read_card
from qa_backends.checkpoints.disk import room
from qa_backends.checkpoints.hub import fetch
from qa_backends.checkpoints.manifest import content_hash
from qa_backends.checkpoints.smaller import made_of
from qa_backends.checkpoints.sources import Source
from qa_backends.contract import ALWAYS_ANSWERS
from qa_backends.errors import InputError
from qa_backends.limits import devices, gigabytes, memory_budget

if TYPE_CHECKING:
    from qa_backends.checkpoints.card import Card
    from qa_backends.progress import Progress

TITLES = {SQUAD: V1, SQUAD_V2: V2}
IDENTITY = 12
"""Hexadecimal digits of the hash, or of the commit, that a family's name ends with."""
VARIABLE = "QA_MODEL"
REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}(@\w[\w./-]*)?")
"""An owner and a name, and a revision where one is wanted."""
NEVER = ("--", "..")
"""In neither of the Hub's names."""
MOST_DOWNLOADED = 3_000_000_000
"""Bytes of a model that are fetched, unless QA_DOWNLOAD_GB says otherwise."""
GROWS = 10
"""A download in FP16, packed and built in every way, takes about so many times its size: FP32 three times, FP16 and
INT8 besides."""
MOST = 8
"""Own models that are kept in the list; one more takes the place of the one that came first."""
REMEDY = "Connect to the internet and try again, or name a folder that holds the model."

_lock = threading.Lock()
_adopted: dict[str, str] = {}
"""Names of families by what they were asked for as, in the order they came."""


def adopt(wanted: str, progress: Progress, *, folders: bool = True, anonymous: bool = False) -> Family:
    """The model as a family, registered under a name made of its own and of its contents' hash.

    So another model under the same name is another family, and what was built of one is never taken for the other's.
    What was pruned or distilled of it here joins the family. Of a repository without ``@REVISION``, the commit that was
    fetched first is kept to. Without ``folders``, only the Hub's models are taken; ``anonymous``, none that wants this
    machine's token, as for somebody on a public page.

    Raises:
        InputError: it is neither a folder nor a repository's name, or cannot be taken, see ``admission``.
        ArtefactError: it has no config, or is of a kind that is not known.
        BackendUnavailable: the Hub cannot be reached, or holds nothing of it that can be taken, see ``hub.fetch``.
        Cancelled: ``progress`` says to stop.
    """
    wanted = wanted.strip()
    most = max(map(memory_budget, devices()))  # which of them is asked is not known yet
    if folders and (checkpoint := _folder(wanted)):
        name = checkpoint.name
        config = admit(checkpoint, most)
        progress.say(f"reading {name} …")
        source = Source(folder=checkpoint, contents=content_hash(checkpoint))
    elif REPOSITORY.fullmatch(wanted) and not any(each in wanted for each in NEVER):
        repository, _, revision = wanted.partition("@")
        bound, by = _most_downloaded(spare_disk=anonymous)
        found = fetch(
            repository, revision or None, progress, REMEDY, most_bytes=bound, bound_by=by, anonymous=anonymous
        )
        checkpoint, name = Path(found.folder), repository.partition("/")[2]
        config = admit(checkpoint, most)
        source = Source(repository=repository, revision=found.revision, most_bytes=_limit(), anonymous=anonymous)
    else:
        neither = "neither a folder here nor a model" if folders else "no model"
        raise InputError(
            f"'{wanted}' is {neither} of the Hugging Face Hub. Name one as in deepset/roberta-base-squad2."
        )
    smaller = {
        each: Source(folder=folder, contents=content_hash(folder)) for each, folder in made_of(checkpoint).items()
    }
    family = _family(name, source, smaller, config, read_card(checkpoint))
    with _lock:
        _keep(wanted, family)
    return family


def _folder(wanted: str) -> Path | None:
    try:
        folder = Path(wanted).expanduser()
        return folder.resolve() if wanted and folder.is_dir() else None
    except (RuntimeError, OSError, ValueError):  # nobody of that name; a name too long, or with a zero byte
        return None


def _most_downloaded(*, spare_disk: bool) -> tuple[int, str]:
    """Bytes that may be fetched, and the variable that bounds them; with ``spare_disk``, only what fits the disk's
    bound with all that will be built of it. Raises InputError where nothing does."""
    bounds = [(_limit(), "QA_DOWNLOAD_GB"), *([(room() // GROWS, "QA_CACHE_GB")] if spare_disk else [])]
    most, by = min(bounds)
    if most == 0:
        raise InputError("There is no room for another model now. Try again in an hour, or choose one that is listed.")
    return most, by


def _limit() -> int:
    return gigabytes("QA_DOWNLOAD_GB") or MOST_DOWNLOADED


def adopt_chosen(progress: Progress) -> None:
    """Makes the model that ``QA_MODEL`` names, where it is set, the default family; raises what ``adopt`` raises."""
    if wanted := os.environ.get(VARIABLE):
        os.environ["QA_FAMILY"] = adopt(wanted, progress).name


def _family(name: str, source: Source, smaller: dict[str, Source], config: dict[str, Any], card: Card) -> Family:
    architecture = architecture_of(config)
    identity = (source.contents or source.revision or "")[:IDENTITY]
    reads = architecture.reads(config)
    figures = (("baseline", Published(card.f1, TITLES[card.f1_on])),) if card.f1 is not None else ()
    return Family(
        name=f"{re.sub('[^a-z0-9]+', '-', name.lower()).strip('-') or 'model'}-{identity}",
        title=f"{name[:60]}, {architecture.name}, {config['num_hidden_layers']} layers",
        checkpoints=(("baseline", source), *smaller.items()),
        settings=replace(reads, null_threshold=ALWAYS_ANSWERS) if card.always_answers else reads,
        language=card.language,
        kind=str(config["model_type"]),
        fuses=architecture.fuses(config),
        published=figures,
        own=str(source.folder or f"{source.repository}@{source.revision}"),
    )


def _contents(family: Family) -> tuple[str | None, str | None]:
    """The hash of what its baseline holds, or the commit that stands for that."""
    source = family.source("baseline")
    return source.contents, source.revision


def _keep(wanted: str, family: Family) -> None:
    """Registers it, in place of what the same name stood for before: the same model, maybe in another place, which may
    be gone. What this process was started with stays.

    Raises:
        InputError: another model has that very name.
    """
    if any(each.name == family.name and _contents(each) != _contents(family) for each in families()):
        raise InputError(f"There is another model called '{family.name}' here. Save yours under another name.")
    before = _adopted.pop(wanted, family.name)
    _adopted[wanted] = family.name
    register(family)
    if before == os.environ.get("QA_FAMILY"):
        os.environ["QA_FAMILY"] = family.name
    if before not in _adopted.values():
        forget(before)
    while len(set(_adopted.values())) > MOST:
        spare = next(each for each in _adopted if _adopted[each] not in (family.name, os.environ.get("QA_FAMILY")))
        if (gone := _adopted.pop(spare)) not in _adopted.values():
            forget(gone)
