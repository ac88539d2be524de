"""Backends and families: what there is, what it is called, and why something cannot run here."""

from qa_backends.catalog.backends import BACKENDS, BASELINE, FASTEST, PRESELECTED, Backend
from qa_backends.catalog.families import (
    RANDOM,
    Family,
    chosen_by,
    could_be_random,
    default_family,
    families,
    family,
    family_of,
    forget,
    register,
    with_random_weights,
)
from qa_backends.catalog.ladder import ladder, nearest, plain
from qa_backends.catalog.lookup import (
    backend,
    every_backend,
    in_family,
    offered,
    offered_on,
    resolve,
    several,
    suits,
    unavailable,
    usual,
)
from qa_backends.catalog.own import adopt, adopt_chosen

__all__ = [
    "BACKENDS",
    "BASELINE",
    "FASTEST",
    "PRESELECTED",
    "RANDOM",
    "Backend",
    "Family",
    "adopt",
    "adopt_chosen",
    "backend",
    "chosen_by",
    "could_be_random",
    "default_family",
    "every_backend",
    "families",
    "family",
    "family_of",
    "forget",
    "in_family",
    "ladder",
    "nearest",
    "offered",
    "offered_on",
    "plain",
    "register",
    "resolve",
    "several",
    "suits",
    "unavailable",
    "usual",
    "with_random_weights",
]
