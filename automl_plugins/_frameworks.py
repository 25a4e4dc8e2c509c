"""Finds the adapter of a framework's object at run time, by name: the core imports none."""

from __future__ import annotations

import logging
import os
import pkgutil
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ._versions import OutdatedError
from .addresses import did_you_mean, existing

if TYPE_CHECKING:
    from automl_plugins.records.search import Search

    from .bandits.report import ArmReport
    from .replay.protocol import Method

_ADAPTERS = "automl_plugins.adapters"
_logger = logging.getLogger(__name__)


def adapter(name: str) -> ModuleType:
    """The adapter of a framework.

    Raises:
        ValueError: If there is no adapter of that name.
        ModuleNotFoundError: If its framework is not installed.
    """
    if name not in _names():
        raise ValueError(f"There is no adapter {name!r}; there are {', '.join(_names())}.")
    return import_module(f"{_ADAPTERS}.{name}")


def adapter_of(thing: Any) -> ModuleType | None:
    """The adapter of the framework that an object, class or function comes from, if any."""
    while isinstance(thing, partial):
        thing = thing.func
    owners = thing.__mro__ if isinstance(thing, type) else type(thing).__mro__
    modules = [getattr(thing, "__module__", ""), *(owner.__module__ for owner in owners)]
    for module in modules:
        parts = (module or "").split(".")
        # our own samplers live in automl_plugins.adapters.<framework>
        name = parts[2] if ".".join(parts[:2]) == _ADAPTERS and len(parts) > 2 else parts[0]
        if name in _names():
            return adapter(name)
    return None


def method_of(thing: Any) -> Method:
    """``optimizer(thing)`` of the adapter that knows it.

    Raises:
        TypeError: If no adapter does.
    """
    found = adapter_of(thing)
    if found is None:
        raise TypeError(
            f"Cannot replay {thing!r}: pass optimizer(...) of an adapter, an object with ask() and"
            " tell(), or a callable propose(space, records, rng)."
        )
    method: Method = found.optimizer(thing)
    return method


def curves_of(thing: Any, **labels: Any) -> list[Search]:
    """``curves(thing)`` of the adapter that knows it; ``labels`` are table, method and seed.

    Raises:
        TypeError: If no adapter does.
    """
    found = adapter_of(thing)
    if found is None:
        raise TypeError(
            f"Cannot read the searches of a {type(thing).__name__}: pass studies, run histories or"
            f" trials of {', '.join(_names())}, or a data frame."
        )
    searches: list[Search] = found.curves(thing, **labels)
    return searches


def arm_report_of(thing: Any, **options: Any) -> ArmReport:
    """``arm_report(thing, **options)`` of the adapter that knows it.

    Raises:
        TypeError: If no adapter does.
    """
    found = adapter_of(thing)
    if found is None or not hasattr(found, "arm_report"):
        raise TypeError(
            f"Cannot report on the arms of a {type(thing).__name__}: pass an ArmReport, an Optuna"
            " study or Hyperopt trials."
        )
    report: ArmReport = found.arm_report(thing, **options)
    return report


def owner_of(history: Any) -> ModuleType:
    """The adapter that can read a history: a framework's object, a folder, path or address.

    Raises:
        TypeError: If none can.
        ValueError: For a path or address where there is nothing.
    """
    found = adapter_of(history)
    if found is None and isinstance(history, str | os.PathLike):
        source = existing(os.fspath(history))
        found = next((module for module in _installed() if module.owns(source)), None)
    if found is None or not hasattr(found, "read_task"):
        told = repr(history) if isinstance(history, str) else f"a {type(history).__name__}"
        raise TypeError(
            f"Cannot read {told} as a history: pass an Optuna study or storage, Hyperopt trials, a"
            " SMAC run history, facade or folder, or a TaskRecord."
            + (did_you_mean(history) if isinstance(history, str) else "")
        )
    return found


def reader_of(source: str) -> Callable[..., list[Search]] | None:
    """``curves`` of the first installed adapter that can read a path or address, if any."""
    for module in _installed():
        if module.owns(source):
            reader: Callable[..., list[Search]] = module.curves
            return reader
    return None


def _installed() -> Iterator[ModuleType]:
    for name in _names():
        if find_spec(name) is not None:
            try:
                yield adapter(name)
            except OutdatedError as error:  # another framework may be the one that is meant
                _logger.warning("%s", error)


def _names() -> list[str]:
    folder = import_module(_ADAPTERS)
    return sorted(m.name for m in pkgutil.iter_modules(folder.__path__) if m.ispkg)
