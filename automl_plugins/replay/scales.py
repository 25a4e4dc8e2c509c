"""Plain values of a search space as points, one at a time and fast: a replay asks for thousands.

ConfigSpace's own checks take about a tenth of a millisecond for each value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final

import numpy as np
from ConfigSpace import ConfigurationSpace
from ConfigSpace.hyperparameters import (
    CategoricalHyperparameter,
    Constant,
    FloatHyperparameter,
    Hyperparameter,
    IntegerHyperparameter,
    OrdinalHyperparameter,
)
from ConfigSpace.hyperparameters.hp_components import ROUND_PLACES


class _Inactive(Enum):
    INACTIVE = "inactive"


#: Stands for the value of an inactive hyperparameter, where None may be a value.
INACTIVE: Final = _Inactive.INACTIVE

Place = Callable[[Any], float | None]  # a value's place on its scale, None if it is illegal


class Scales:
    """Checks values and embeds configurations so that their L1 distance is that of ``Answer``.

    Args:
        space: The search space.
    """

    def __init__(self, space: ConfigurationSpace) -> None:
        self._places: dict[str, Place] = {}
        self._columns: list[tuple[str, int]] = []  # hyperparameter, number of its categories or 0
        for name, hyperparameter in space.items():
            self._places[name] = _place(hyperparameter)
            if isinstance(hyperparameter, Constant):
                continue
            numerical = isinstance(
                hyperparameter, FloatHyperparameter | IntegerHyperparameter | OrdinalHyperparameter
            )
            self._columns.append((name, 0 if numerical else int(hyperparameter.size)))

    def legal(self, name: str, value: Any) -> bool:
        """Whether a hyperparameter may take a value."""
        return self._places[name](value) is not None

    def is_absent(self, name: str, value: Any) -> bool:
        """Whether a recorded value says that a hyperparameter was inactive.

        None and NaN do, but for None where it is a value of the hyperparameter.
        """
        if value is None:
            return name not in self._places or not self.legal(name, None)
        return isinstance(value, float | np.floating) and math.isnan(value)

    def point(self, config: Mapping[str, Any]) -> list[float]:
        """Coordinates of a configuration of legal values; inactive numbers count as 0.

        Two one-hot codes differ in two places, so half of each makes a distance of 1.
        """
        out: list[float] = []
        for name, n_categories in self._columns:
            place = self._places[name](config[name]) if name in config else None
            if not n_categories:
                out.append(place or 0.0)
                continue
            code = [0.0] * n_categories
            if place is not None:
                code[int(place)] = 0.5
            out += code
        return out or [0.0]


def _place(hyperparameter: Hyperparameter[Any, Any]) -> Place:
    if isinstance(hyperparameter, FloatHyperparameter | IntegerHyperparameter):
        whole = isinstance(hyperparameter, IntegerHyperparameter)
        return _number(
            float(hyperparameter.lower),
            float(hyperparameter.upper),
            bool(getattr(hyperparameter, "log", False)),
            whole,
        )
    if isinstance(hyperparameter, Constant):
        return _lookup({hyperparameter.value: 0.0})
    if isinstance(hyperparameter, OrdinalHyperparameter):
        last = max(len(hyperparameter.sequence) - 1, 1)
        return _lookup({v: i / last for i, v in enumerate(hyperparameter.sequence)})
    assert isinstance(hyperparameter, CategoricalHyperparameter)
    return _lookup({v: float(i) for i, v in enumerate(hyperparameter.choices)})


def _number(low: float, high: float, log: bool, whole: bool) -> Place:
    start = math.log(low) if log else low
    width = (math.log(high) if log else high) - start

    def place(value: Any) -> float | None:
        if isinstance(value, str | bool | np.bool_) or not isinstance(
            value, int | float | np.number
        ):
            return None
        if not low <= value <= high:
            # The bounds are rounded, what was recorded is not.
            if whole or not low <= round(float(value), ROUND_PLACES) <= high:
                return None
            value = min(max(value, low), high)
        if whole and value != int(value):
            return None
        return ((math.log(value) if log else float(value)) - start) / width

    return place


def _lookup(places: Mapping[Any, float]) -> Place:
    def place(value: Any) -> float | None:
        try:
            return places.get(value)
        except TypeError:  # unhashable: certainly no value of a category
            return None

    return place
