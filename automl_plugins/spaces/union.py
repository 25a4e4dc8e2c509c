"""One search space for tasks that were searched in several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from copy import deepcopy
from typing import Any

import numpy as np
from ConfigSpace import ConfigurationSpace
from ConfigSpace.exceptions import ActiveHyperparameterNotSetError, ForbiddenValueError
from ConfigSpace.hyperparameters import CategoricalHyperparameter, Constant, Hyperparameter
from ConfigSpace.types import NotSet

from automl_plugins.spaces.choices import DECODERS, ENCODERS, categorical
from automl_plugins.spaces.ranges import float_range, integer_range
from automl_plugins.spaces.restriction import Range, domain_of, narrow
from automl_plugins.spaces.values import (
    are_identical,
    choices_of,
    index_of,
    is_same_space,
    kind_of,
    same,
)


@np.errstate(over="ignore")  # ConfigSpace rounds defaults, however large they are
def unite(spaces: Iterable[ConfigurationSpace]) -> ConfigurationSpace:
    """The space with every hyperparameter of the given spaces, each with its widest range.

    Equal spaces are their own union. A condition stays if all spaces with its child have it, else
    the child is always active; a forbidden clause stays if all spaces have it.

    Raises:
        ValueError: If a hyperparameter is a number in one space and a category in another, or no
            defaults of the spaces are allowed in the union.
    """
    distinct: list[ConfigurationSpace] = []
    for space in spaces:
        # Choices may be in any order: runs are aligned to the union by value, not by vector.
        if not any(is_same_space(known, space, agree=_holds) for known in distinct):
            distinct.append(space)
    if len(distinct) == 1:
        return distinct[0]
    merged = ConfigurationSpace()
    if not distinct:
        return merged
    names = {name: None for space in distinct for name in space}
    for name in names:
        merged.add(_widest(name, [space[name] for space in distinct if name in space]))
    # Written out, conditions of different spaces can be compared.
    written = [(space, space.to_serialized_dict(ENCODERS)) for space in distinct]
    common = merged.to_serialized_dict(ENCODERS)
    common["conditions"] = []
    for name in names:
        of_child = [
            [condition for condition in known["conditions"] if condition["child"] == name]
            for space, known in written
            if name in space
        ]
        common["conditions"] += _in_all(of_child)
    common["forbiddens"] = _in_all([known["forbiddens"] for _, known in written])
    # Defaults of the union may be forbidden, or make a parent inactive whose child needs another
    # value than one. Those of the spaces rarely are, as these have the same clauses.
    for known in ({}, *distinct):
        own = ConfigurationSpace()
        for name, hp in merged.items():
            own.add(narrow(hp, default=known[name].default_value if name in known else NotSet))
        common["hyperparameters"] = own.to_serialized_dict(ENCODERS)["hyperparameters"]
        with suppress(ActiveHyperparameterNotSetError, ForbiddenValueError):
            return ConfigurationSpace.from_serialized_dict(deepcopy(common), DECODERS)
    raise ValueError(
        "The clauses that all recorded spaces have allow no default of them in their union. Pass"
        " the space that the runs should be aligned to."
    )


def _in_all(lists: list[list[Any]]) -> list[Any]:
    """The items that all lists contain, in the order of the first."""

    def is_in(item: Any, other: list[Any]) -> bool:
        return any(same(item, known) for known in other)  # not ==, for which 1 is True

    return [item for item in lists[0] if all(is_in(item, other) for other in lists[1:])]


def _holds(known: Sequence[Any] | None, choices: Sequence[Any] | None) -> bool:
    """Whether all ``choices`` are among the known ones; True is not 1, and None is empty."""
    return all(index_of(known or (), value) is not None for value in choices or ())


def _widest(name: str, found: list[Hyperparameter[Any, Any]]) -> Hyperparameter[Any, Any]:
    first = found[0]
    if all(first == hp and _holds(choices_of(first), choices_of(hp)) for hp in found):
        return first
    ranges = [known for hp in found if (known := _range(hp)) is not None]
    if not ranges:
        values: list[Any] = []
        for value in (value for hp in found for value in choices_of(hp) or ()):
            if not any(are_identical(value, known) for known in values):
                values.append(value)
        return categorical(name, values)
    if len(ranges) < len(found):
        raise ValueError(
            f"{name} is a number in one recorded space and a category in another: "
            + "; ".join(map(str, found))
            + ". Pass the space that the runs should be aligned to."
        )
    lower, upper = min(low for low, _ in ranges), max(high for _, high in ranges)
    wide = [hp for hp in found if not isinstance(hp, Constant)] or found
    # A constant may be 0 or less, where the logarithmic scale of the others ends.
    log = lower > 0 and all(getattr(hp, "log", False) for hp in wide)
    is_whole = all(isinstance(end, int) for known in ranges for end in known)
    if lower == upper:
        return Constant(name, int(lower) if is_whole else float(lower))
    if is_whole:
        return integer_range(name, int(lower), int(upper), log=log)
    return float_range(name, float(lower), float(upper), log=log)


def _range(hyperparameter: Hyperparameter[Any, Any]) -> tuple[float, float] | None:
    """Least and largest value of a number, a sequence of numbers or a fixed number."""
    domain = domain_of(hyperparameter)
    if isinstance(domain, Range):
        return domain.low, domain.high
    is_ordered = not isinstance(hyperparameter, CategoricalHyperparameter)
    if is_ordered and all(kind_of(value) == "number" for value in domain):
        return min(domain), max(domain)
    return None
