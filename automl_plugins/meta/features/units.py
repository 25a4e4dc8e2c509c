"""Units of work of an extraction, with a clock that is asked between steps, never inside one."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import isfinite, nan

import numpy as np

from automl_plugins.meta.features.table import FloatArray

Outcome = Mapping[str, float | str]
"""Name -> value, or the sentence that says why there is none."""


class TimeUpError(Exception):
    """A limit has passed; the message says which."""


class Clock:
    """Seconds left for one unit: its own ``limit``, and the ``end`` (``perf_counter``) of all."""

    def __init__(self, *, limit: float | None = None, end: float | None = None) -> None:
        self._limit = limit
        self._end = end
        self.start = time.perf_counter()

    def check(self) -> None:
        """Raise TimeUpError if the limit or the budget has passed."""
        now = time.perf_counter()
        if self._end is not None and now > self._end:
            raise TimeUpError("the total budget ran out")
        if self._limit is not None and now - self.start > self._limit:
            raise TimeUpError(f"the time limit of {self._limit:g} s passed")


@dataclass(frozen=True)
class Unit:
    """Features that are computed together."""

    names: tuple[str, ...]
    compute: Callable[[Clock], Outcome]


@dataclass
class Extraction:
    """What ``run`` has gathered, by name of the feature."""

    values: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)


@contextmanager
def quiet() -> Iterator[None]:
    """No warnings: a feature that cannot be computed is NaN and says why."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def run(
    units: Iterable[Unit],
    wanted: Sequence[str],
    *,
    time_limit: float | None,
    end: float | None,
) -> Extraction:
    """Run every unit with a wanted feature, in order; none can stop the others.

    ``time_limit`` is for each unit, ``end`` as in ``Clock``.
    """
    result = Extraction()
    asked = set(wanted)
    for unit in units:
        names = [name for name in unit.names if name in asked]
        if not names:
            continue
        clock = Clock(limit=time_limit, end=end)
        outcome: Outcome
        try:
            clock.check()
            with quiet():
                outcome = unit.compute(clock)
        except TimeUpError as stop:
            outcome = dict.fromkeys(names, f"out of time: {stop}.")
        except Exception as error:  # whatever a learner may raise on strange data
            outcome = dict.fromkeys(names, f"{type(error).__name__}: {error}")
        share = (time.perf_counter() - clock.start) / len(names)
        for name in names:
            value = outcome[name]
            result.seconds[name] = share
            if isinstance(value, str):
                result.values[name], result.failures[name] = nan, value
            elif not isfinite(value):
                result.values[name], result.failures[name] = nan, f"the value is {value}."
            else:
                result.values[name] = float(value)
    return result


_SUMMARIES: dict[str, Callable[[FloatArray], float]] = {
    "Min": lambda v: float(v.min()),
    "Max": lambda v: float(v.max()),
    "Mean": lambda v: float(v.mean()),
    "STD": lambda v: float(v.std()),
    "Quartile1": lambda v: float(np.quantile(v, 0.25)),
    "Quartile2": lambda v: float(np.quantile(v, 0.5)),
    "Quartile3": lambda v: float(np.quantile(v, 0.75)),
}
MOMENTS = ("Min", "Max", "Mean", "STD")
SPREAD = ("Min", "Max", "Mean", "Quartile1", "Quartile2", "Quartile3")


def suffixed(stem: str) -> dict[str, str]:
    """Summary -> name in the manner of ``KurtosisMin``."""
    return {summary: f"{stem}{summary}" for summary in MOMENTS}


def prefixed(stem: str) -> dict[str, str]:
    """Summary -> name in the manner of ``Quartile1AttributeEntropy``."""
    return {summary: f"{summary}{stem}" for summary in SPREAD}


def summarise(
    names: dict[str, str], per_column: Sequence[float] | FloatArray, why_empty: str
) -> dict[str, float | str]:
    """The summaries of the values that are not NaN, or the reason why there are none."""
    values = np.asarray(per_column, dtype=np.float64)
    values = values[~np.isnan(values)]
    if not len(values):
        return dict.fromkeys(names.values(), why_empty)
    return {name: _SUMMARIES[summary](values) for summary, name in names.items()}
