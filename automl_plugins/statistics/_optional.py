"""One helpful sentence where the extra ``evidence`` is not installed."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def require(module: str) -> ModuleType:
    """The module ``pandas`` or ``tabulate``.

    Raises:
        ModuleNotFoundError: If it is not installed. The errors of one that is installed but
            broken are passed on as they are.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise ModuleNotFoundError(
            f"automl_plugins.statistics needs {module} for this, which is not installed: "
            "pip install automl_plugins[evidence]",
            name=module,
        ) from None
