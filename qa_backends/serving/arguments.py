"""What a program may hand to the pipeline, in all the forms that transformers' takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import GeneratorType
from typing import Any

from qa_backends.contract import Query
from qa_backends.errors import InputError

FORMS = (
    "Give question= and context=, each a string or a list of strings, or a dictionary with both, or a list of such "
    "dictionaries."
)


def queries_of(positional: Sequence[Any], named: Mapping[str, Any]) -> list[Query] | Iterator[Query]:
    """The queries, in order; an iterator, read no further than asked for, where a generator was given.

    Raises:
        InputError: none of the forms, an empty question or context, or lists of different lengths.
    """
    if positional and named:
        raise InputError(f"A question was given twice. {FORMS}")
    if not positional:
        return _by_name(named.get("question"), named.get("context"))
    if len(positional) == 2 and all(isinstance(each, str) for each in positional):
        return [_query({"question": positional[0], "context": positional[1]})]
    given = positional[0] if len(positional) == 1 else list(positional)
    if isinstance(given, GeneratorType):
        return map(_query, given)
    if isinstance(given, Mapping):
        return _by_name(given.get("question"), given.get("context"))
    if isinstance(given, Iterable) or hasattr(given, "__getitem__"):
        return [_query(each) for each in given]
    return [_query(given)]


def _by_name(question: Any, context: Any) -> list[Query]:
    if isinstance(question, str) and isinstance(context, str):
        return [_query({"question": question, "context": context})]
    if not _texts(question):
        raise InputError(FORMS)
    contexts = [context] * len(question) if isinstance(context, str) else context
    if not _texts(contexts):
        raise InputError(FORMS)
    if len(question) != len(contexts):
        raise InputError(f"There are {len(question)} questions and {len(contexts)} contexts. Give one for each.")
    return [_query({"question": one, "context": other}) for one, other in zip(question, contexts, strict=True)]


def _texts(value: Any) -> bool:
    """Whether it is a list of texts, or a data set's column of them."""
    return isinstance(value, Sequence) and not isinstance(value, str)


def _query(given: Any) -> Query:
    """One dictionary, or one of transformers' ``SquadExample``."""
    if not isinstance(given, Mapping):
        given = {name: getattr(given, f"{name}_text", None) for name in ("question", "context")}
    found = {name: given.get(name) for name in ("question", "context")}
    for name, text in found.items():
        if not isinstance(text, str):
            raise InputError(f"There is no {name}. {FORMS}")
        if not text:
            raise InputError(f"The {name} is empty. Leave that example out.")
    return Query(**found)
