"""One helpful sentence when a framework is not installed, or too old."""

from automl_plugins._optional import require as _require


def require(module: str, extra: str) -> None:
    """Import ``module``, or say which extra of this package brings it.

    Raises:
        ImportError: When ``module`` is not installed, or older than this package needs. The
            errors of one that is installed but broken are passed on as they are.
    """
    _require(module, needed_by=f"automl_plugins.adapters.{extra}", extra=extra)
