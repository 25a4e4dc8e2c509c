"""Arguments: checks, docstrings, and objects that show the arguments they got."""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, partial, wraps
from importlib import import_module
from numbers import Integral, Real
from typing import Any, Literal, Self, TypeVar

import numpy as np

_LONGEST = 60  # characters of a value
_LARGEST = sys.float_info.max  # whole numbers above it cannot become floats
_INSIDE = ("automl_plugins", "hyperopt", "optuna", "smac")  # packages whose lines are not a user's
T = TypeVar("T")
H = TypeVar("H", bound=Hashable)


def check_integer(name: str, value: Any, least: int, *, optional: bool = False) -> None:
    """Raise ValueError for an integer below ``least``, TypeError for a value of another type.

    None is legal if ``optional``.
    """
    if optional and value is None:
        return
    if not _is(Integral, value) or value < least:
        raise _refusal(name, value, Integral, f"an integer >= {least}", optional)


def check_finite(
    name: str,
    value: Any,
    *,
    least: float = 0.0,
    positive: bool = False,
    optional: bool = False,
) -> None:
    """ValueError for a number below ``least``, not finite, or 0 if it must be ``positive``.

    TypeError for a value that is no number. None is legal if ``optional``.
    """
    if optional and value is None:
        return
    number = value.item() if isinstance(value, np.generic) else value  # float32: _LARGEST is inf
    if not _is(Real, value) or not least <= number <= _LARGEST or (positive and number == 0):
        allowed = "> 0" if positive else f">= {least:g}"
        raise _refusal(name, value, Real, f"a finite number {allowed}", optional)


def check_share(name: str, value: Any) -> None:
    """ValueError for a number outside [0, 1], or NaN; TypeError for a value that is no number."""
    if not _is(Real, value) or not 0.0 <= value <= 1.0:
        raise _refusal(name, value, Real, "a number in [0, 1]")


def check_flag(name: str, value: Any) -> None:
    """Raise TypeError unless ``value`` is True or False; a text would count as True."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {describe(value)}.")


def _is(kind: type, value: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _refusal(name: str, value: Any, kind: type, allowed: str, optional: bool = False) -> Exception:
    error = ValueError if _is(kind, value) else TypeError
    return error(f"{name} must be {allowed}{', or None' if optional else ''}, got {value!r}.")


def check_budget(**budgets: Any) -> tuple[float, Literal["trials", "seconds"]]:
    """Return the budget that is not None, and its unit; trials are passed first, then seconds.

    ValueError for both, neither, or a budget outside its range; TypeError for one of another type.
    """
    (trials, n_trials), (time, seconds) = budgets.items()
    if (n_trials is None) == (seconds is None):
        raise ValueError(
            f"Give one budget, {trials}= (trials in all) or {time}= (seconds of all trials"
            f" together), one of the two; got {'neither' if seconds is None else 'both'}."
        )
    if n_trials is None:
        check_finite(time, seconds, positive=True)
        return seconds, "seconds"
    check_integer(trials, n_trials, 1)
    return int(n_trials), "trials"


def check_choice(name: str, value: str, allowed: Sequence[str]) -> None:
    """Raise ValueError unless ``value`` is one of the ``allowed``."""
    if value not in allowed:
        raise ValueError(
            f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}."
            f"{did_you_mean(value, allowed)}"
        )


def did_you_mean(given: Any, known: Iterable[str], *, about: str = "") -> str:
    """The last sentence of a message about an unknown name; empty if no known one is similar.

    ``about``, such as ``"arm="``, stands before the similar name.
    """
    near = get_close_matches(given, known, n=1) if isinstance(given, str) else []
    return f" Did you mean {about}{near[0]!r}?" if near else ""


def hint_of_seed(given: Any) -> str:
    """The last sentence of a message if a number was given for another argument; else empty."""
    return f" A seed is given by its name: seed={given}." if _is(Integral, given) else ""


def repeated(names: Iterable[H]) -> list[H]:
    """The names that occur more than once, in their order."""
    return [name for name, n in Counter(names).items() if n > 1]


def refuse_foreign(
    name: str,
    given: Iterable[str],
    known: Collection[str],
    reasons: Mapping[str, str],
) -> None:
    """Raise TypeError for arguments that ``name`` does not take, with the reason if known."""
    foreign = sorted(set(given) - set(known))
    if not foreign:
        return
    said = [f"{argument}: {reasons[argument]}" for argument in foreign if argument in reasons]
    why = f" ({'; '.join(said)})" if said else ""
    raise TypeError(
        f"{name} takes no argument {', '.join(foreign)}{why}; it takes {', '.join(known)}."
        f"{'' if said else did_you_mean(foreign[0], known)}"
    )


def check_call(
    name: str, what: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any
) -> None:
    """Raise TypeError unless a function called ``name`` takes these arguments.

    ``what`` is the word for the arguments in the message, such as "options" or "parts".
    """
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{name} does not take these {what}: {error}.") from None


def check_kind(function: str, value: Any, kind: Any, allowed: str) -> None:
    """Raise TypeError unless ``value`` is an instance of ``kind``, a class or a union of classes.

    ``function`` is the name of the function or argument, ``allowed`` what it takes, for a message.
    """
    if not isinstance(value, kind):
        raise TypeError(f"{function} takes {allowed}; got {describe(value)}.")


_SECTION = re.compile(
    r"^(?:Args|Attributes|Arguments besides .*):\n((?:    .*\n|\n)*)", re.MULTILINE
)
_ENTRY = re.compile(r"^    (\w+(?:, \w+)*): ((?:.*\n)(?:     .*\n)*)", re.MULTILINE)
_ELSEWHERE = re.compile(r"See ``((?:automl_plugins\.[\w.]+\.)?\w+)``[.;,]?\s*")


def level_of_caller() -> int:
    """The ``stacklevel`` of the first caller outside this package and the frameworks."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and str(frame.f_globals.get("__name__")).partition(".")[0] in _INSIDE:
        level, frame = level + 1, frame.f_back
    return level


def read_arguments(owner: Any) -> dict[str, str]:
    """Descriptions of arguments by name, from the docstrings of a function, or class and bases."""
    found: dict[str, str] = {}
    for each in inspect.getmro(owner) if isinstance(owner, type) else (owner,):
        found = _parse(each.__doc__ or "") | found  # a class before its bases
    return found


@cache  # a docstring is asked for each argument of each of its users
def _parse(doc: str) -> dict[str, str]:
    """The arguments that a docstring describes."""
    entries = "".join(_SECTION.findall(f"{inspect.cleandoc(doc)}\n"))
    return {
        name: " ".join(text.split())
        for names, text in _ENTRY.findall(entries)
        for name in names.split(", ")
    }


def document_arguments(names: Mapping[str, str], *owners: Any) -> str | None:
    """The docstring of the first of ``owners``, with a description of each argument.

    An argument that is passed on is described once, by one of the owners; the first description
    found is used. "See ``name``" is replaced by the description there, if the owner's module has
    that name.

    Args:
        names: The arguments in order, and their names in the other owners.
        *owners: Functions and classes whose docstrings describe them.

    Returns:
        None where docstrings are left out (``python -OO``).
    """
    if not owners[0].__doc__:
        return None
    lines = ["Args:"]
    for name, theirs in names.items():
        texts = (_describe(theirs if i else name, owner) for i, owner in enumerate(owners))
        entry = f"{name}: {next(filter(None, texts), '')}".strip()
        # 99 columns, as in the sources, less the 4 by which docstrings are indented there.
        lines.append(textwrap.fill(entry, 95, initial_indent=" " * 4, subsequent_indent=" " * 8))
    # A line feed at the end, without which the pattern does not see the last section.
    rest = _SECTION.sub("", f"{inspect.cleandoc(owners[0].__doc__)}\n")
    head, *tail = re.split(r"^(?=Raises:|Returns:|Example::)", rest, maxsplit=1, flags=re.M)
    return "\n\n".join(filter(None, [head.rstrip(), "\n".join(lines), *tail]))


def _describe(name: str, owner: Any) -> str:
    """Description of an argument in ``owner``; "" without one."""
    text = read_arguments(owner).get(name, "")
    if elsewhere := _ELSEWHERE.match(text):
        home, _, named = elsewhere[1].rpartition(".")
        module = import_module(home) if home else sys.modules[owner.__module__]
        source = getattr(module, named, None)
        if known := "" if source is None else _describe(name, source):
            rest = text[elsewhere.end() :]
            return f"{known} {rest[:1].upper()}{rest[1:]}".strip()
    return text


class ShowsArguments:
    """Base class whose ``repr`` shows the arguments that differ from their defaults.

    ``GBQRSampler(n_startup_trials=5, seed=1)``: only this text is kept, so that an object neither
    keeps its arguments alive nor pickles them.
    """

    _shown: str = ""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Keep a text of the arguments before ``__init__`` sees them."""
        created = super().__new__(cls)
        # A subclass with its own ``__init__`` still inherits the ``__signature__`` of a base.
        owner = next(base for base in cls.__mro__ if "__init__" in vars(base))
        known = "__signature__" in vars(owner)
        make = owner if known else partial(owner.__init__, created)  # type: ignore[misc]
        created._shown = _call(cls.__name__, make, args, kwargs)
        return created

    def __repr__(self) -> str:
        return self._shown or f"{type(self).__name__}()"


def preset(make: Callable[..., T]) -> Callable[..., T]:
    """Decorator under ``classmethod``: the returned object shows the call of the method."""

    @wraps(make)
    def wrapped(cls: type[Any], *args: Any, **kwargs: Any) -> T:
        created = make(cls, *args, **kwargs)
        name = f"{cls.__name__}.{make.__name__}"
        # Bound, so that ``cls`` is not shown as an argument.
        created._shown = _call(name, make.__get__(cls), args, kwargs)  # type: ignore[attr-defined]
        return created

    return wrapped


def _call(name: str, function: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]) -> str:
    try:
        signature = inspect.signature(function)
        bound = signature.bind(*args, **kwargs)
    except (TypeError, ValueError):  # the constructor says what is wrong with the arguments
        return f"{name}(...)"
    shown: list[str] = []
    for argument, value in bound.arguments.items():
        parameter = signature.parameters[argument]
        if parameter.kind == parameter.VAR_KEYWORD:
            shown += [f"{n}={describe(v)}" for n, v in value.items()]
        elif parameter.kind == parameter.VAR_POSITIONAL:
            shown += [describe(v) for v in value]
        # As texts, because ``==`` of arrays has no truth value.
        elif (text := describe(value)) != describe(parameter.default):
            shown.append(f"{argument}={text}")
    return f"{name}({', '.join(shown)})"


def describe(value: Any) -> str:
    """A value in a few words, for a message: its text if that is short, else its kind."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, str | int | float | ShowsArguments):
        text = repr(value)
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
    if isinstance(value, type) or inspect.isroutine(value):
        return str(value.__name__)
    if isinstance(value, Mapping | list | tuple | set):
        return f"<{type(value).__name__} of {len(value)}>"
    return f"<{type(value).__name__}>"
