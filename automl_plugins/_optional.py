"""One helpful sentence when a library of an extra is not installed, or too old."""

from importlib import import_module
from types import ModuleType

from ._versions import refuse_outdated


def require(module: str, *, needed_by: str, extra: str) -> ModuleType:
    """The module, or the name of the extra of this package that brings it.

    Raises:
        ModuleNotFoundError: If it is not installed. The errors of one that is installed but
            broken are passed on as they are.
        OutdatedError: If it is older than the extra asks for.
    """
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
