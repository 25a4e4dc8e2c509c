"""Arms of a study: the choices of one categorical parameter, or cells of the search space."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
from ConfigSpace import Categorical, ConfigurationSpace, Integer
from ConfigSpace.hyperparameters import Hyperparameter
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import FrozenTrial, TrialState

from automl_plugins.arrays import BoolArray, FloatArray, IntArray
from automl_plugins.spaces.cells import Partition, check_split, describe_cell, partition
from automl_plugins.spaces.restriction import Domain, Range
from automl_plugins.streams import code_of

from . import _private
from ._steps import count_values, steps_of
from .space import Distributions, internal_of, range_of, stored_choices

# Characters of a key: Optuna's databases hold 512 in the name of an attribute, which has a prefix.
_LONGEST = 100


@dataclass(frozen=True, eq=False, kw_only=True)
class Arms(ABC):
    """The arms of a study."""

    key: str  # under which the arm of a trial is published and rounds are stored
    names: tuple[str, ...]  # as reports call them
    notes: tuple[str, ...] = ()  # for reports
    mark: int | None = None  # hash of cells, stored with rounds: other cells' rounds do not count
    whole: Distributions = field(default_factory=dict)  # of the parameters that ``narrow`` changes

    def __len__(self) -> int:
        return len(self.names)

    @abstractmethod
    def describe(self, index: int) -> str:
        """The text for an arm in messages."""

    @abstractmethod
    def owner(self, trial: FrozenTrial) -> int | None:
        """The arm of a trial; None if it has none (yet)."""

    @abstractmethod
    def allowed(self, values: Mapping[str, Any]) -> list[int]:
        """The arms that agree with values fixed in advance."""

    def narrow(self, index: int, name: str, distribution: BaseDistribution) -> BaseDistribution:
        """The part of a distribution that belongs to an arm."""
        return distribution

    def narrow_trial(self, index: int, trial: FrozenTrial) -> FrozenTrial:
        """A trial of an arm as the arm's sampler sees it."""
        return trial


@dataclass(frozen=True, eq=False, kw_only=True)
class Choices(Arms):
    """The choices of a categorical parameter; ``key`` is its name."""

    distribution: CategoricalDistribution

    @classmethod
    def from_distribution(cls, parameter: str, distribution: BaseDistribution) -> Choices:
        """The choices of a parameter."""
        if not isinstance(distribution, CategoricalDistribution):
            raise ValueError(
                f"arm={parameter!r} names a parameter with {distribution}; arms are the choices of"
                " a categorical parameter. Give the name that your objective passes to"
                " suggest_categorical."
            )
        choices = distribution.choices
        for i, first in enumerate(stored_choices(distribution)):
            if i != first:  # trials of both would belong to the first
                raise ValueError(
                    f"arm={parameter!r} has the equal choices {choices[first]!r} and"
                    f" {choices[i]!r}: Optuna stores the first one for both, so they cannot be two"
                    " arms. Give them different names, such as texts."
                )
        names = tuple(str(choice) for choice in choices)
        return cls(key=parameter, names=names, distribution=distribution)

    def describe(self, index: int) -> str:
        """Such as ``classifier='svm'``."""
        return f"{self.key}={self.distribution.choices[index]!r}"

    def owner(self, trial: FrozenTrial) -> int | None:
        # The value asked for precedes the promised one: it may have been enqueued.
        if self.key in trial.distributions:
            return int(self.distribution.to_internal_repr(trial.params[self.key]))
        return promised_arm(trial, self.key)

    def allowed(self, values: Mapping[str, Any]) -> list[int]:
        if self.key in values:
            return [int(self.distribution.to_internal_repr(values[self.key]))]
        return list(range(len(self)))


@dataclass(frozen=True, eq=False, kw_only=True)
class Cells(Arms):
    """The cells of a grid over some parameters.

    A trial belongs to the cell in which its values lie. If it has not asked for all split
    parameters, it belongs to the cell it was assigned, provided that its values agree.
    """

    parts: Mapping[str, tuple[BaseDistribution, ...]]  # of each split parameter, ascending
    cuts: Mapping[str, FloatArray]  # where the second part begins, the third and so on
    places: tuple[Mapping[str, int], ...]  # for each cell, the index of its part by parameter

    @classmethod
    def from_partition(cls, key: str, cells: Partition, distributions: Distributions) -> Cells:
        """The cells of a partition of the space of ``distributions``."""
        own = {name: distributions[name] for name in cells[0].domains}
        # The distinct parts: without conditions, every cell has one of each parameter.
        domains = {n: list(dict.fromkeys(cell.domains[n] for cell in cells)) for n in own}
        # By name and part, the parameter values; ``domains`` are of the axes, see ``_axis``.
        values = {n: [_values_of(d, part) for part in domains[n]] for n, d in own.items()}
        places = [{n: domains[n].index(d) for n, d in cell.domains.items()} for cell in cells]
        named = [{n: values[n][i] for n, i in place.items()} for place in places]
        names = tuple(describe_cell(cell) for cell in named)
        return cls(
            key=key,
            names=names,
            notes=cells.notes,
            mark=code_of("\n".join(names)),
            whole=own,
            parts={n: tuple(_distribution_of(d, v) for v in values[n]) for n, d in own.items()},
            cuts={
                # A part of choices begins with an index, one of numbers with its low end.
                name: np.array([d[0] if isinstance(d, tuple) else d.low for d in found[1:]])
                for name, found in domains.items()
            },
            places=tuple(places),
        )

    def describe(self, index: int) -> str:
        """Such as ``the cell lr in [0.001, 0.03162)``."""
        return f"the cell {self.names[index]}"

    def owner(self, trial: FrozenTrial) -> int | None:
        allowed = self.allowed(trial.params)
        promised = _private.read_arm(trial, self.key)
        if promised in allowed:
            return promised
        return allowed[0] if len(allowed) == 1 else None

    def allowed(self, values: Mapping[str, Any]) -> list[int]:
        own: dict[str, int] = {}
        for name in self.whole.keys() & values.keys():
            internal = internal_of(self.whole[name], values[name])
            if not math.isnan(internal):  # it is one of the choices
                own[name] = int(self._part(name, np.array([internal]))[0])
        # A parameter without a value excludes no cell.
        return [i for i, place in enumerate(self.places) if own.items() <= place.items()]

    def narrow(self, index: int, name: str, distribution: BaseDistribution) -> BaseDistribution:
        whole = self.whole.get(name)
        if whole != distribution:  # its range has changed
            return distribution
        place = self.places[index][name]
        part = self.parts[name][place]
        # Optuna takes 1, 1.0 and True as equal; the objective gets the choices it asks for.
        if isinstance(distribution, CategoricalDistribution) and repr(whole) != repr(distribution):
            assert isinstance(part, CategoricalDistribution)
            first = int(self.cuts[name][place - 1]) if place else 0
            return CategoricalDistribution(distribution.choices[first:][: len(part.choices)])
        return part

    def narrow_trial(self, index: int, trial: FrozenTrial) -> FrozenTrial:
        own = copy.copy(trial)
        own.distributions = {n: self.narrow(index, n, d) for n, d in trial.distributions.items()}
        return own

    def contains(self, index: int, name: str, internal: FloatArray) -> BoolArray:
        """Mask (n,) of the values of a split parameter that belong to a cell, or are NaN."""
        inside = self._part(name, internal) == self.places[index][name]
        return np.asarray(np.isnan(internal) | inside)

    def _part(self, name: str, internal: FloatArray) -> IntArray:
        """Index (n,) of the part in which each internal value (n,) lies."""
        steps = steps_of(self.whole[name])
        # The cuts of steps are indices, see ``_axis``.
        place = internal if steps is None else np.rint(steps.steps.index(internal))
        # A cut belongs to the part that it begins.
        return np.searchsorted(self.cuts[name], place, side="right")


@dataclass(frozen=True)
class Split:
    """How a search space is split into cells, see ``BOASFSampler``."""

    parts: int | Mapping[str, int]
    max_arms: int = 32

    def __post_init__(self) -> None:
        check_split(self.parts, self.max_arms)

    @property
    def key(self) -> str:
        """Name of the split, under which rounds are stored: rounds of others do not count."""
        named = self.parts.items() if isinstance(self.parts, Mapping) else [("", self.parts)]
        text = "split=" + ",".join(f"{name}:{n}" if name else str(n) for name, n in named)
        text += f",max_arms={self.max_arms}" if self.max_arms != 32 else ""
        return text if len(text) <= _LONGEST else f"split={code_of(text):08x}"

    @np.errstate(over="ignore")  # ConfigSpace rounds defaults, however large they are
    def cells(self, distributions: Distributions) -> Cells:
        """The cells of a search space."""
        space = ConfigurationSpace()
        # Of some grids with several values Optuna can store only one.
        varied = {n: d for n, d in distributions.items() if not d.single() and count_values(d) > 1}
        space.add([_axis(name, d) for name, d in varied.items()])
        try:
            found = partition(space, self.parts, max_arms=self.max_arms)
        except ValueError as error:
            raise ValueError(f"split={self.parts!r}: {error}") from error
        return Cells.from_partition(self.key, found, distributions)


def _axis(name: str, distribution: BaseDistribution) -> Hyperparameter[Any, Any]:
    """The hyperparameter to split: indices of choices or of steps, else the range itself."""
    if isinstance(distribution, CategoricalDistribution):
        return Categorical(name, list(range(len(distribution.choices))))
    steps = steps_of(distribution)
    if steps is not None:
        return Integer(name, (0, steps.n - 1))
    return range_of(name, distribution)


def _values_of(distribution: BaseDistribution, domain: Domain) -> Domain:
    """The parameter values of one part of an axis."""
    if isinstance(domain, tuple):
        assert isinstance(distribution, CategoricalDistribution)
        return tuple(distribution.choices[i] for i in domain)
    steps = steps_of(distribution)
    if steps is not None:
        return Range(steps.value(int(domain.low)), steps.value(int(domain.high)))
    return domain


def _distribution_of(whole: BaseDistribution, domain: Domain) -> BaseDistribution:
    """The distribution of a part."""
    if isinstance(domain, tuple):
        return CategoricalDistribution(domain)
    if isinstance(whole, IntDistribution):
        first, last = int(domain.low), int(domain.high)
        return IntDistribution(first, last, log=whole.log, step=whole.step)
    assert isinstance(whole, FloatDistribution)
    low, high = float(domain.low), float(domain.high)
    if whole.step is None:
        return FloatDistribution(low, high, log=whole.log)
    part = copy.copy(whole)
    # Not by its constructor, which wants a multiple of the step: of 1 / 3 no float may be one.
    part.low, part.high = _in_decimals(whole, whole.step, low, high)
    return part


def _in_decimals(
    whole: FloatDistribution, step: float, low: float, high: float
) -> tuple[float, float]:
    """The ends of a part of a grid, computed in decimals as Optuna does to count its steps.

    0.1 + 2 * 0.1 is 0.30000000000000004 in floats, which Optuna does not accept as a multiple.
    """
    first, distance = Decimal(str(whole.low)), Decimal(str(step))
    places = [round((Decimal(str(value)) - first) / distance) for value in (low, high)]
    low, high = (float(first + place * distance) for place in places)
    low, high = max(low, whole.low), min(high, whole.high)
    # With less than a step between them, two values would count as one.
    rounding = math.ulp(max(-low, high))
    while places[0] < places[1] and Decimal(str(high)) - Decimal(str(low)) < distance:
        low, high = (low, high + rounding) if high < whole.high else (low - rounding, high)
    return low, high


def promised_arm(trial: FrozenTrial, key: str) -> int | None:
    """The arm whose sampler proposed a trial that has not asked for it.

    None for a failed trial, which may have stopped before it asked, and for a finished one that
    asked for nothing.
    """
    may_count = trial.state != TrialState.FAIL and trial.distributions
    return _private.read_arm(trial, key) if may_count or not trial.state.is_finished() else None


def declared_arm(search_space: Distributions, arm: str) -> Choices:
    """The arms in a declared search space."""
    if arm not in search_space:
        names = sorted(
            n for n, d in search_space.items() if isinstance(d, CategoricalDistribution)
        )
        raise ValueError(
            f"search_space has no parameter {arm!r}: arm= must name one of its categorical"
            f" parameters {names}."
        )
    return Choices.from_distribution(arm, search_space[arm])
