"""Packages whose public names are imported when they are first used.

What a user imports first should not load a database, three frameworks' glue and every model.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any


# A class: Python calls a ``__getattr__`` of a module (PEP 562), but no ``__setattr__`` of it.
class _LazyPackage(ModuleType):
    _home: Mapping[str, str]

    def __getattr__(self, name: str) -> Any:
        home = self._home.get(name)
        if home is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name)
        # Once for each name: what is set is found before Python asks here.
        value = getattr(import_module(home), name)
        super().__setattr__(name, value)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        # Python binds a module to its package when it is loaded. Where a public name is also that
        # of its module (``arm_report``), the public name wins.
        if not (isinstance(value, ModuleType) and name in self._home):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        # For completion: what the package offers, not what it imports for itself.
        return sorted({*self._home, *(name for name in self.__dict__ if name.startswith("__"))})


def import_when_used(package: str, names: Mapping[str, Sequence[str]]) -> None:
    """Make ``package.name`` import the module of ``name`` when it is first asked for.

    ``names`` are public names by the module that defines them: one of the package, or of another
    one in full. They are the ``__all__`` of the package. Type checkers do not see this: repeat
    the imports below ``if TYPE_CHECKING``, as ``name as name``, which makes them public there.
    """
    module = sys.modules[package]
    top = f"{__name__.partition('.')[0]}."
    home_of = {
        name: home if home.startswith(top) else f"{package}.{home}"
        for home, defined in names.items()
        for name in defined
    }
    module.__dict__.update(_home=home_of, __all__=sorted(home_of))
    module.__class__ = _LazyPackage
