"""Families: checkpoints of one tokenizer, so that their answers and times can stand side by side."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from qa_backends.checkpoints.architectures import architecture_of
from qa_backends.checkpoints.load import read_config
from qa_backends.checkpoints.manifest import fitted_of
from qa_backends.checkpoints.sources import Source, commit_of, nothing_to_fetch, ready
from qa_backends.contract import ALWAYS_ANSWERS, DEFAULT_SETTINGS, ReaderSettings
from qa_backends.errors import InputError, UnknownBackend
from qa_backends.paths import MODELS

if TYPE_CHECKING:
    from pathlib import Path

RANDOM = "-random"
"""Behind the name of a family: its shapes, with random weights."""
V1, V2 = "SQuAD v1.1", "SQuAD v2"
"""Data sets, as published figures name them: the first asks only what its texts answer."""
MANY = "mul"
"""What ISO 639 calls several languages."""
LANGUAGES = {"en": "English", MANY: "100 languages"}
"""What to call what a family knows; others by their abbreviation."""


@dataclass(frozen=True, slots=True)
class Published:
    """The F1, in percent, that a checkpoint's makers report on the development set of ``data``."""

    f1: float
    data: str = V2


@dataclass(frozen=True, slots=True)
class Family:
    """``checkpoints`` by name, the baseline first; ``settings`` are how its models read a text,
    ``language`` the one that they know, as ISO 639 abbreviates it ("en"), empty where that is not known. ``kind`` is
    what their configs call the architecture, and ``fuses`` whether ONNX Runtime's optimiser knows all of it; ``own``,
    of somebody's own model, where that is: a folder, or a repository and commit. ``download_mb`` is what its weights
    take, in millions of bytes, and ``published`` what others measured of its checkpoints, by their names."""

    name: str
    title: str
    checkpoints: tuple[tuple[str, Source], ...]
    settings: ReaderSettings = DEFAULT_SETTINGS
    language: str = ""
    kind: str = "bert"
    fuses: bool = True
    own: str = ""
    download_mb: int = 0
    published: tuple[tuple[str, Published], ...] = ()

    def __hash__(self) -> int:
        """Of the name alone: what is loaded is looked up by its family for every question."""
        return hash(self.name)

    def reads(self, checkpoint: str) -> ReaderSettings:
        """How answers are read of one of its checkpoints: as the family reads, and at what was fitted to the
        checkpoint, which is known once that is ready. A threshold is for families that say "no answer" at all."""
        folder = ready(self.source(checkpoint))
        if folder is None:
            return self.settings
        fitted = fitted_of(folder)
        threshold = self.settings.null_threshold if self.settings.always_answers else fitted.null_threshold
        return replace(self.settings, temperature=fitted.temperature, null_threshold=threshold)

    @property
    def random(self) -> bool:
        """Whether its weights are random: it shows what a shape costs, and answers nothing."""
        return any(source.shape for _, source in self.checkpoints)

    def check_answers(self) -> None:
        """Raises InputError where its weights are random."""
        if self.random:
            raise InputError(
                "Random weights answer nothing. Measure what they cost: python -m qa_backends bench --family "
                f"{self.name}"
            )

    @property
    def embedded(self) -> bool:
        """Whether nothing has to be downloaded: what ships, and own models, which were when they were chosen."""
        return bool(self.own) or not any(source.remote for _, source in self.checkpoints)

    @property
    def short(self) -> str:
        """What its title begins with, as in "MiniLM"."""
        return self.title.partition(",")[0]

    @property
    def summary(self) -> str:
        """Languages, where it comes from and published F1, as in "English; 0.13 GB from the Hugging Face Hub on first
        use; published F1 79.5 on SQuAD v2 (baseline)"; of what was fetched, the commits that are kept to, and the size
        until all is here."""
        remote = [source for _, source in self.checkpoints if source.remote]
        commits = " and ".join(each[:8] for each in map(commit_of, remote) if each)
        size = (
            f"{self.download_mb / 1000:.2g} GB " if self.download_mb and not all(map(nothing_to_fetch, remote)) else ""
        )
        origin = f"{size}from the Hugging Face Hub{' on first use' if size else ''}" if remote else ""
        origin += f", commit {commits}" if commits else ""
        figures = [f"{each.f1:.1f} on {each.data} ({name})" for name, each in self.published]
        knows = LANGUAGES.get(self.language, self.language)
        return "; ".join(filter(None, (knows, origin, "published F1 " + ", ".join(figures) if figures else "")))

    def has(self, checkpoint: str) -> bool:
        return checkpoint in dict(self.checkpoints)

    def source(self, checkpoint: str) -> Source:
        """Raises UnknownBackend, listing the family's checkpoints."""
        if not self.has(checkpoint):
            names = ", ".join(dict(self.checkpoints))
            raise UnknownBackend(f"The family '{self.name}' has no checkpoint '{checkpoint}', but these: {names}.")
        return dict(self.checkpoints)[checkpoint]


_families = {
    each.name: each
    for each in (
        Family(
            "minilm",
            "MiniLM, 6 layers (ships with the app)",
            (
                ("baseline", Source(folder=MODELS / "minilm" / "baseline")),
                ("pruned", Source(folder=MODELS / "minilm" / "pruned")),
                ("pruned-deep", Source(folder=MODELS / "minilm" / "pruned-deep")),
                ("distilled", Source(folder=MODELS / "minilm" / "distilled")),
            ),
            language="en",
        ),
        Family(
            "bert-large",
            "BERT-large, 24 layers",
            (
                # Its safetensors weights wait in a pull request, whose commit is known once it was fetched: see hub.py.
                ("baseline", Source(repository="madlag/bert-large-uncased-whole-word-masking-finetuned-squadv2")),
                # The commit in which the Hub's conversion service added safetensors weights.
                (
                    "pruned",
                    Source(
                        repository="madlag/bert-large-uncased-wwm-squadv2-x2.63-f82.6-d16-hybrid-v1",
                        revision="e2e6aed39024de75dcb95497f37b7b4cacdbb356",
                    ),
                ),
            ),
            language="en",
            download_mb=2_500,
            published=(("pruned", Published(82.6)),),  # which its name says
        ),
        # Their figures are those of the models' own cards on the Hub ("model-index", SQuAD v2 "verified" there).
        Family(
            "roberta",
            "RoBERTa-base, 12 layers (distilled: 6)",
            (
                ("baseline", Source(repository="deepset/roberta-base-squad2")),
                ("distilled", Source(repository="deepset/tinyroberta-squad2")),
            ),
            language="en",
            kind="roberta",
            download_mb=822,
            published=(("baseline", Published(82.9501)), ("distilled", Published(82.0355))),
        ),
        Family(
            "minilm-l12",
            "MiniLM, 12 layers",
            (("baseline", Source(repository="deepset/minilm-uncased-squad2")),),
            language="en",
            download_mb=133,
            published=(("baseline", Published(79.5483)),),
        ),
        Family(
            "distilbert",
            "DistilBERT, 6 layers",
            (("baseline", Source(repository="distilbert/distilbert-base-cased-distilled-squad")),),
            settings=replace(DEFAULT_SETTINGS, null_threshold=ALWAYS_ANSWERS),
            language="en",
            kind="distilbert",
            fuses=False,
            download_mb=261,
            published=(("baseline", Published(87.1, V1)),),
        ),
        Family(
            "xlm-roberta",
            "XLM-RoBERTa-base, 12 layers",
            (("baseline", Source(repository="deepset/xlm-roberta-base-squad2")),),
            language=MANY,
            kind="xlm-roberta",
            download_mb=1_110,
            published=(("baseline", Published(77.1833)),),
        ),
        Family(
            f"bert-large{RANDOM}",
            "BERT-large's shape with random weights (latency only)",
            (
                ("baseline", Source(shape="bert-large/baseline")),
                ("pruned", Source(shape="bert-large/pruned")),
            ),
        ),
    )
}


def family_of(checkpoint: Path, name: str, title: str) -> Family:
    """A family of that one checkpoint, a folder as this project makes them, which reads as its kind of model does.

    Raises:
        ArtefactError: there is no config, or it is of a kind that is not known.
    """
    config = read_config(checkpoint)
    return Family(
        name=name,
        title=title,
        checkpoints=(("baseline", Source(folder=checkpoint)),),
        settings=architecture_of(config).reads(config),
        kind=str(config["model_type"]),
        fuses=architecture_of(config).fuses(config),
    )


def families() -> list[Family]:
    """The families there are, those that came at run time behind."""
    return list(_families.values())


def register(family: Family) -> None:
    """Adds a family for as long as the process runs, in place of an earlier one of that name."""
    _families[family.name] = family


def forget(name: str) -> None:
    """Takes a family that was registered out again; what is loaded of it goes when room is needed."""
    _families.pop(name, None)


def family(name: str) -> Family:
    """Raises UnknownBackend, listing the families there are."""
    if name not in _families:
        raise UnknownBackend(f"There is no family '{name}'. Choose one of: {', '.join(_families)}.")
    return _families[name]


def chosen_by(name: str) -> list[str]:
    """The options of the command line that choose the family, in this process and in any other."""
    own = _families[name].own if name in _families else ""
    return ["--model", own] if own else ["--family", name]


def with_random_weights(name: str) -> Family:
    """The family's shapes with random weights. Raises InputError where those are not known, or spare nothing."""
    if family(name).random:
        return family(name)
    if family(name).embedded:
        raise InputError(f"The family '{name}' needs no download. Leave --random-weights out.")
    if name + RANDOM not in _families:
        known = ", ".join(each.removesuffix(RANDOM) for each in _families if each.endswith(RANDOM))
        raise InputError(f"Shapes are known without a download of {known} alone. Leave --random-weights out.")
    return family(name + RANDOM)


def could_be_random(of: Family) -> bool:
    """Whether its shapes can be measured at once, with random weights, and its own weights are not here yet."""
    return of.name + RANDOM in _families and not all(ready(source) for _, source in of.checkpoints)


def default_family() -> str:
    """``QA_FAMILY`` where it is set (a Space's setting), else the embedded one."""
    try:
        return family(os.environ.get("QA_FAMILY") or "minilm").name
    except UnknownBackend as error:
        raise UnknownBackend(f"QA_FAMILY: {error}") from error
