"""In place of ``transformers.pipeline("question-answering")``, which transformers 5 no longer has.

    from qa_backends import pipeline

    qa = pipeline("pruned-ort-fp16")
    qa(question="Who sang?", context="Ada sang.")

It takes what the pipeline takes and gives what it gives; ``docs/library.md`` says where they differ.
"""

from __future__ import annotations

import logging
import operator
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from qa_backends import catalog
from qa_backends.checkpoints import sources
from qa_backends.checkpoints.architectures import architecture_of
from qa_backends.checkpoints.load import read_config
from qa_backends.contract import ReaderSettings
from qa_backends.errors import BackendFailed, InputError
from qa_backends.limits import devices
from qa_backends.progress import Progress
from qa_backends.reader.reader import of_each
from qa_backends.reader.windows import apart, by_count
from qa_backends.runtime import Runtime
from qa_backends.runtime.loading import check_device
from qa_backends.runtime.turns import translated
from qa_backends.serving.arguments import queries_of
from qa_backends.serving.ranked import Found, ranked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from qa_backends.catalog import Backend, Family
    from qa_backends.contract import Query
    from qa_backends.reader.reader import Reader

AT_ONCE = 256
"""Questions tokenised and read together, so that a data set of any size takes bounded memory."""
WITHOUT_EFFECT = ("padding", "num_workers")
"""Options of transformers' pipeline that change none of its answers: windows are padded as they are batched here."""

LEAST = {"top_k": 1, "doc_stride": 0, "max_answer_len": 1, "max_seq_len": 1, "max_question_len": 1, "batch_size": 1}
"""Of the options that are numbers."""

progress = Progress(logging.getLogger(__name__).info)


@dataclass(frozen=True, slots=True)
class Options:
    """How a call reads and answers; names and defaults are those of transformers' pipeline."""

    top_k: int = 1
    doc_stride: int | None = None
    """Tokens that neighbouring windows share; 128 by default, or half of ``max_seq_len`` where that is less."""
    max_answer_len: int = 15
    max_seq_len: int | None = None
    max_question_len: int = 64
    handle_impossible_answer: bool = False
    align_to_words: bool = True
    batch_size: int | None = None
    """Windows of one forward call, in the order they come, those of each question apart where company would change an
    answer; by default as many as the backend is quickest with."""

    def changed(self, given: dict[str, Any]) -> Options:
        """Raises InputError for an option that there is not, or a value that cannot be."""
        known = [each.name for each in fields(self)]
        for name in given:
            if name not in known and name not in WITHOUT_EFFECT:
                raise InputError(f"There is no option '{name}'. Choose among: {', '.join(known)}.")
        found = replace(self, **{name: given[name] for name in given if name in known and given[name] is not None})
        for name, least in LEAST.items():
            if (value := getattr(found, name)) is None:
                continue
            try:
                whole = operator.index(value)
            except TypeError as error:
                raise InputError(f"{name} is {value!r}; give a whole number.") from error
            if whole < least:
                raise InputError(f"{name} is {whole}; give {least} or more.")
        return found


class QuestionAnswering:
    """A backend that is called like transformers' ``QuestionAnsweringPipeline``; safe to call from several threads."""

    task = "question-answering"

    def __init__(self, runtime: Runtime, family: Family, backend: Backend, device: str, options: Options) -> None:
        self.device = device
        self._runtime = runtime
        self._family = family
        self._backend = backend
        self._options = options
        self._reader = runtime.load(family, backend, device, progress).reader
        self._positions = _positions(family)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """``{"score", "start", "end", "answer"}``; a list of them for ``top_k`` above 1, and one or the other for each
        question where several were given. A generator of questions gives a generator of answers.

        Raises:
            InputError: a question, a context or an option cannot be used.
            BackendFailed: the engine died, and the next call starts it afresh; or it gave what are no numbers.
        """
        named: dict[str, Any] = {name: kwargs.pop(name) for name in ("question", "context") if name in kwargs}
        options = self._options.changed(kwargs)
        reader = self._reader.with_settings(self._settings(options))
        queries = queries_of(args, named)
        if not isinstance(queries, list):
            return self._answers(reader, queries, options, at_once=options.batch_size or 1)
        answers = list(self._answers(reader, queries, options, at_once=AT_ONCE))
        return answers[0] if len(answers) == 1 else answers

    def _settings(self, options: Options) -> ReaderSettings:
        longest = options.max_seq_len or self._family.settings.max_seq_len
        stride = options.doc_stride if options.doc_stride is not None else min(longest // 2, 128)
        if longest > self._positions:
            raise InputError(f"max_seq_len is {longest}; the model has {self._positions} positions.")
        if stride > longest:
            raise InputError(f"doc_stride ({stride}) is larger than max_seq_len ({longest}).")
        return ReaderSettings(longest, stride, options.max_question_len, options.max_answer_len)

    def _answers(
        self, reader: Reader, queries: Iterable[Query], options: Options, at_once: int
    ) -> Iterator[Found | list[Found]]:
        waiting = iter(queries)
        while group := list(islice(waiting, at_once)):
            yield from self._read(reader, group, options)

    def _read(self, reader: Reader, queries: list[Query], options: Options) -> Iterator[Found | list[Found]]:
        prepared = reader.prepare(queries[0]) if len(queries) == 1 else reader.prepare_all(queries, checked=True)
        size = options.batch_size
        split = apart(partial(by_count, size=size, sort=False), each=self._backend.scaled_by_batch) if size else None
        with self._runtime.turn(self.device) as turn:
            try:
                logits = turn.logits(self._family, self._backend, prepared.windows, split)
            except BackendFailed:
                self._runtime.drop(self._family, self._backend.name, self.device)
                raise
        for query, windows, own in of_each(prepared, logits):
            with translated(f"{self._family.name}/{self._backend.name}", "answering"):
                found = ranked(
                    query.context,
                    windows,
                    own,
                    top_k=options.top_k,
                    max_answer_len=options.max_answer_len,
                    handle_impossible_answer=options.handle_impossible_answer,
                    within_word=reader.within_word if options.align_to_words else None,
                )
            yield found[0] if len(found) == 1 else found


def pipeline(
    backend: str | None = None,
    *,
    device: int | str | None = None,
    family: str | None = None,
    model: str | None = None,
    **options: Any,
) -> QuestionAnswering:
    """A backend by its name (``python -m qa_backends list`` prints them), by default the usual faster one of the
    family, ready to be called.

    ``model`` is your own, a folder or a Hub id, in place of a family. ``device`` is "cpu", "cuda", or a number as
    transformers' pipeline takes it, -1 for the CPU; by default a GPU where there is one. ``options`` are defaults of
    the calls. What is not built yet is built first, which is logged.

    Raises:
        InputError: there is no such backend, device or option, or the family's weights are random.
        BackendUnavailable, ArtefactError, BackendFailed: it cannot run here, or its making failed.
    """
    if not isinstance(backend, str | None):
        raise InputError(
            f"{backend!r} is no backend's name. Choose one of: {', '.join(each.name for each in catalog.BACKENDS)}."
        )
    if family and model:
        raise InputError("A family and a model of your own are both named. Leave one of them out.")
    of, chosen = catalog.resolve(backend, catalog.adopt(model, progress).name if model else family)
    of.check_answers()
    return QuestionAnswering(_runtime(), of, chosen, _device(device), Options().changed(options))


@cache
def _runtime() -> Runtime:
    """One for the process, so that all its pipelines share one budget of memory."""
    return Runtime(progress=progress)


def _device(wanted: int | str | None) -> str:
    """Raises InputError for a device that this machine has not got; of several GPUs, the first is used."""
    if wanted is None:
        return devices()[0]
    if isinstance(wanted, int):
        wanted = "cpu" if wanted == -1 else f"cuda:{wanted}"
    device = str(wanted).removesuffix(":0")
    check_device(device)
    return device


def _positions(family: Family) -> int:
    """Tokens that the family's models can tell the places of."""
    config = read_config(sources.make_ready(family.source(catalog.BASELINE), progress))
    return architecture_of(config).max_tokens(config)
