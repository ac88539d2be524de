"""One runtime a file, its class a ``contract.Engine``. Engines do not import each other; what several share stands in a
file whose name begins with "_"."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from functools import cache
from types import ModuleType

from qa_backends.contract import Engine
from qa_backends.errors import UnknownBackend


def engine_names() -> list[str]:
    """The engines there are, by their files' names."""
    return sorted(each.name for each in pkgutil.iter_modules(__path__) if not each.name.startswith("_"))


def engine_class(name: str) -> type[Engine]:
    """The class in the file of that name.

    Raises:
        UnknownBackend: there is no such file, with a list of those there are; or it does not hold one engine.
    """
    place = f"{__name__}.{name}"
    # Looking into the folder would cost every answer a millisecond.
    if (place not in sys.modules or name.startswith("_")) and name not in engine_names():
        raise UnknownBackend(f"There is no engine '{name}'. Choose one of: {', '.join(engine_names())}.")
    # Not what sys.modules holds: that is half a module while another thread imports it, and this waits.
    return _engine_in(importlib.import_module(place))


@cache
def _engine_in(module: ModuleType) -> type[Engine]:
    found = [
        each
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, Engine) and each.__module__ == module.__name__
    ]
    if len(found) != 1:
        name = module.__name__.rpartition(".")[2]
        raise UnknownBackend(f"The file of the engine '{name}' holds {len(found)} engines; leave exactly one in it.")
    return found[0]
