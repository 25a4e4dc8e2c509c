"""One helpful sentence when a framework is not installed."""

from importlib import import_module


def require(module: str, extra: str) -> None:
    """Import ``module``, or say which extra of this package brings it.

    Raises:
        ImportError: When ``module`` is not installed. The errors of one that is installed but
            broken are passed on as they are.
    """
    try:
        import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise ModuleNotFoundError(
            f"automl_plugins.adapters.{extra} needs {module}, which is not installed: "
            f"pip install automl_plugins[{extra}]",
            name=module,
        ) from None
