"""Checks of the versions of libraries, and imports of public names when they are first used.

An installer sees to the versions that this package needs, but another package may downgrade them
later, and ``pip install --no-deps`` checks nothing. So a library older than our own metadata
allow is refused when it is imported.

A user's first import should not load a database, the adapters of three frameworks and all models.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version
from types import ModuleType
from typing import Any

# --- libraries ------------------------------------------------------------------------------

_PACKAGE = "automl_plugins"
# Only the form of requirement that our own metadata have: a lower bound, perhaps an extra.
_REQUIREMENT = re.compile(r"([\w.-]+)\s*>=\s*([\w.]+)(?:\s*;\s*extra\s*==\s*['\"](\w+)['\"])?")
_VERSION = re.compile(r"v?(\d+(?:\.\d+)*)(.*)")
_BEFORE_RELEASE = re.compile(r"[._-]?(a|b|c|rc|alpha|beta|pre|preview|dev)[._-]?\d*")


class OutdatedError(ImportError):
    """A library is installed, but older than what this package works with."""


@cache
def lower_bounds() -> dict[str, tuple[str, str]]:
    """Lowest version, and the extra that asks for it ("" for none), by name of distribution."""
    found = (_REQUIREMENT.match(text) for text in requires(_PACKAGE) or ())
    return {name: (bound, extra or "") for name, bound, extra in (m.groups() for m in found if m)}


def refuse_outdated(distribution: str, *, needed_by: str) -> None:
    """Raise OutdatedError if the installed version of a distribution is below our lower bound."""
    bound, extra = lower_bounds().get(distribution, ("", ""))
    try:
        installed = version(distribution) if bound else ""
    except PackageNotFoundError:  # imported from a folder
        return
    if is_older(installed, bound):
        wanted = f"{_PACKAGE}[{extra}]" if extra else _PACKAGE
        raise OutdatedError(
            f"{needed_by} needs {distribution} >= {bound}, and {installed} is installed:"
            f" pip install --upgrade '{distribution}>={bound}' '{wanted}'",
            name=distribution,
        )


def refuse_outdated_dependencies() -> None:
    """``refuse_outdated`` for each distribution that this package needs without any extra."""
    for distribution, (_, extra) in lower_bounds().items():
        if not extra:
            refuse_outdated(distribution, needed_by=_PACKAGE)


def is_older(installed: str, bound: str) -> bool:
    """Whether a version is below another one; False for text that is not a version."""
    ours, theirs = _VERSION.fullmatch(installed), _VERSION.fullmatch(bound)
    if ours is None or theirs is None:
        return False
    numbers = [[int(part) for part in match[1].split(".")] for match in (ours, theirs)]
    longest = max(map(len, numbers))
    have, need = (n + [0] * (longest - len(n)) for n in numbers)  # 2 is 2.0
    # 2.0rc1 is older than 2.0, 2.0.post1 and 2.0+local are not.
    return have < need or (have == need and _BEFORE_RELEASE.match(ours[2]) is not None)


def require(module: str, *, needed_by: str, extra: str) -> ModuleType:
    """Import a module; the error names the extra of this package that installs it.

    Raises:
        ModuleNotFoundError: If it is not installed. The errors of an installed but broken module
            are passed on as they are.
        OutdatedError: If it is older than the extra requires.
    """
    # Before the import: an old version may fail there with an error that does not say why.
    refuse_outdated(module, needed_by=needed_by)
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise ModuleNotFoundError(
            f"{needed_by} needs {module} for this, which is not installed: "
            f"pip install automl_plugins[{extra}]",
            name=module,
        ) from None


# --- public names ---------------------------------------------------------------------------


# A class: Python calls a ``__getattr__`` of a module (PEP 562), but no ``__setattr__`` of it.
class _LazyPackage(ModuleType):
    _home: Mapping[str, str]

    def __getattr__(self, name: str) -> Any:
        home = self._home.get(name)
        if home is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name)
        # Once for each name: Python calls this method only if the attribute is not set.
        value = getattr(import_module(home), name)
        super().__setattr__(name, value)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        # Python binds a module to its package when it is loaded. If a public name is also the name
        # of its module (``explain``), the public name wins.
        if not (isinstance(value, ModuleType) and name in self._home):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        # For completion: what the package offers, not what it imports for itself.
        return sorted({*self._home, *(name for name in self.__dict__ if name.startswith("__"))})


def import_when_used(package: str, names: Mapping[str, Sequence[str]]) -> None:
    """Make ``package.name`` import the module of ``name`` when it is first asked for.

    ``names`` are public names by the module that defines them: a module of the package, or the
    full name of one elsewhere. They become the package's ``__all__``. Type checkers do not see
    this: repeat the imports below ``if TYPE_CHECKING``, as ``name as name``, to make them public.
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
