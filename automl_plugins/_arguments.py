"""Arguments: checks that say what is allowed, and objects that show what they were given."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from math import inf
from numbers import Integral, Real
from typing import Any, Self, TypeVar

_LONGEST = 60  # characters of a value
T = TypeVar("T")


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


def check_integer(name: str, value: Any, minimum: int) -> None:
    """Raise ValueError unless ``value`` is an integer of at least ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        raise ValueError(f"{name} must be an integer >= {minimum}, got {value!r}.")


def check_finite(name: str, value: float, *, positive: bool = False) -> None:
    """Raise ValueError unless ``value`` is finite, and >= 0 or positive."""
    if not 0.0 <= value < inf or (positive and value == 0.0):
        sign = ">" if positive else ">="
        raise ValueError(f"{name} must be finite and {sign} 0, got {value!r}.")


def one_of(name: str, value: str, allowed: Sequence[str]) -> None:
    """Raise ValueError unless ``value`` is one of the ``allowed``."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}.")


class ShowsArguments:
    """Shows the arguments of its construction that are not the defaults.

    ``GBQRSampler(n_startup_trials=5, seed=1)``: what is kept of them is a text, so an object
    neither holds on to its arguments nor pickles them.
    """

    _shown: str = ""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """An object that knows what it will be constructed with."""
        created = super().__new__(cls)
        created._shown = _call(cls.__name__, cls, args, kwargs)
        return created

    def __repr__(self) -> str:
        return self._shown or f"{type(self).__name__}()"


def preset(make: Callable[..., T]) -> Callable[..., T]:
    """Decorator under ``classmethod``: what the method returns shows the call of the method."""

    @wraps(make)
    def wrapped(cls: type[Any], *args: Any, **kwargs: Any) -> T:
        created = make(cls, *args, **kwargs)
        name = f"{cls.__name__}.{make.__name__}"
        created._shown = _call(name, make.__get__(cls), args, kwargs)  # type: ignore[attr-defined]
        return created

    return wrapped


def _call(name: str, function: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]) -> str:
    try:
        signature = inspect.signature(function)
        bound = signature.bind(*args, **kwargs)
    except (TypeError, ValueError):  # the construction says what is wrong with them
        return f"{name}(...)"
    shown: list[str] = []
    for argument, value in bound.arguments.items():
        parameter = signature.parameters[argument]
        if parameter.kind == parameter.VAR_KEYWORD:
            shown += [f"{n}={_short(v)}" for n, v in value.items()]
        elif parameter.kind == parameter.VAR_POSITIONAL:
            shown += [_short(v) for v in value]
        elif value is not parameter.default and not _same(value, parameter.default):
            shown.append(f"{argument}={_short(value)}")
    return f"{name}({', '.join(shown)})"


def _same(value: Any, default: Any) -> bool:
    simple = (str, int, float, bool)
    return isinstance(value, simple) and type(value) is type(default) and value == default


def _short(value: Any) -> str:
    if value is None or isinstance(value, str | int | float | ShowsArguments):
        text = repr(value)
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
    if isinstance(value, type) or inspect.isroutine(value):
        return str(value.__name__)
    if isinstance(value, Mapping | list | tuple | set):
        return f"<{type(value).__name__} of {len(value)}>"
    return f"<{type(value).__name__}>"
