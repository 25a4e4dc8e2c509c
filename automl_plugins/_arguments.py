"""Checks of arguments, with errors that say what was given and what is allowed."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real


def at_least(name: str, value: float | None, low: float) -> None:
    """Check a number; None is legal.

    Raises:
        TypeError: For what is no number.
        ValueError: For a number below ``low``, or NaN.
    """
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number >= {low}, or None, got {value!r}.")
    if not value >= low:
        raise ValueError(f"{name} must be >= {low}, got {value!r}.")


def one_of(name: str, value: str, allowed: Sequence[str]) -> None:
    """Check a name.

    Raises:
        ValueError: If it is not one of the ``allowed``.
    """
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}.")
