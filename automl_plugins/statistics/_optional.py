"""One helpful sentence where the extra ``evidence`` is not installed."""

from __future__ import annotations

from types import ModuleType

from automl_plugins import _optional as core


def require(module: str) -> ModuleType:
    """The module ``pandas`` or ``tabulate``.

    Raises:
        ModuleNotFoundError: If it is not installed. The errors of one that is installed but
            broken are passed on as they are.
    """
    return core.require(module, needed_by="automl_plugins.statistics", extra="evidence")
