"""Backends and families: what there is, what it is called, and why something cannot run here."""

from qa_backends.catalog.backends import BACKENDS, BASELINE, PRESELECTED, Backend
from qa_backends.catalog.families import RANDOM, Family, default_family, families, family, register, with_random_weights
from qa_backends.catalog.ladder import before, ladder, nearest, plain
from qa_backends.catalog.lookup import backend, every_backend, offered, offered_on, resolve, unavailable

__all__ = [
    "BACKENDS",
    "BASELINE",
    "PRESELECTED",
    "RANDOM",
    "Backend",
    "Family",
    "backend",
    "before",
    "default_family",
    "every_backend",
    "families",
    "family",
    "ladder",
    "nearest",
    "offered",
    "offered_on",
    "plain",
    "register",
    "resolve",
    "unavailable",
    "with_random_weights",
]
