"""The parameters of an Optuna search that can vary as one ``VectorSpace``.

A range moves if it depends on other parameters, as in ``suggest_int("b", 1, a)``, or if a name has
another range in each branch: ``StudyColumns.moving`` has the names. Models learn the position in
such a range, not the value. A memory has values only, which say nothing there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from ConfigSpace import ConfigurationSpace
from ConfigSpace.hyperparameters import Constant, Hyperparameter
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from automl_plugins.arrays import FloatArray
from automl_plugins.proposers.design import apportion, stratified_value
from automl_plugins.records.trial import Status
from automl_plugins.spaces import ranges
from automl_plugins.spaces.choices import one_of, ordered, unordered, usual_place
from automl_plugins.spaces.conditions import Rule, as_condition
from automl_plugins.spaces.values import index_of
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams, code_of

from . import _private
from ._steps import Numeric, steps_of
from .space import (
    Distributions,
    internal_of,
    parent_values,
    range_of,
    stored_choices,
)
from .trials import StudyColumns, StudyTrial

POSITION = FloatDistribution(0.0, 1.0)
"""The distribution of the position in a range that moves; compare with ``is``."""


class UnionSpace:
    """A ``VectorSpace`` over the Optuna parameters that can vary; encodes and decodes values.

    Raises ValueError if an entry of ``ordinal`` is not a permutation of a parameter's choices.
    """

    def __init__(
        self,
        distributions: Distributions,
        rules: Sequence[Rule] = (),
        ordinal: Mapping[str, Sequence[Any]] | None = None,
    ) -> None:
        ordinal = ordinal or {}
        self.distributions = {n: d for n, d in distributions.items() if not d.single()}
        self._ordered = ordinal.keys()
        # By name of a categorical, the code of each choice: its rank in ``ordinal``, else a number
        # that equal choices share: Optuna takes them as one, and a model would see two options.
        self._codes: dict[str, FloatArray] = {}
        self.moving = {n for n, d in self.distributions.items() if d is POSITION}
        for name, distribution in self.distributions.items():
            if name in ordinal:
                self._codes[name] = _ranks(name, distribution, ordinal[name])
            elif isinstance(distribution, CategoricalDistribution):
                _, codes = np.unique(stored_choices(distribution), return_inverse=True)
                self._codes[name] = codes.astype(np.float64)
        space = ConfigurationSpace()
        with np.errstate(over="ignore"):  # ConfigSpace rounds defaults, however large they are
            space.add([self._hyperparameter(name) for name in self.distributions])
            # All at once: ConfigSpace sorts the space anew at each addition.
            found = (self._condition(space, rule) for rule in rules)
            space.add([condition for condition in found if condition is not None])
        self.vectors = VectorSpace(space)
        self.column = {name: i for i, name in enumerate(self.vectors.names)}

    def _hyperparameter(self, name: str) -> Hyperparameter[Any, Any]:
        distribution = self.distributions[name]
        if (steps := steps_of(distribution)) is not None:
            if steps.n == 1:
                return Constant(name, steps.value(0))
            return ranges.stepped_range(name, steps.steps)
        if not isinstance(distribution, CategoricalDistribution):
            made = range_of(name, distribution)
            made.meta = ranges.POSITION if distribution is POSITION else None
            return made
        make = ordered if name in self._ordered else unordered
        _, first = np.unique(self._codes[name], return_index=True)
        return make(name, [distribution.choices[i] for i in first])

    def _condition(self, space: ConfigurationSpace, rule: Rule) -> Any:
        if rule.child not in space or rule.parent not in space:
            return None
        parent, distribution = space[rule.parent], self.distributions[rule.parent]
        values = parent_values(rule, distribution)
        if isinstance(distribution, IntDistribution):
            if (steps := steps_of(distribution)) is not None:
                # Values of earlier trials may lie between the steps of the newest range.
                places = np.rint(steps.steps.index(np.array(rule.values))).astype(np.int64)
                values = [steps.value(int(i)) for i in places if 0 <= i < steps.n]
            # ConfigSpace raises for a condition on a value that its parent cannot have.
            values = [value for value in values if parent.legal_value(value)]
        if len(values) != len(rule.values):  # the parent has lost values of the rule
            return None
        if rule.relation == "in":
            return one_of(space[rule.child], parent, values, quick=True)
        # A parent with a single value has no order.
        return None if isinstance(parent, Constant) else as_condition(space, rule, values)

    def encode(self, name: str, internal: FloatArray) -> FloatArray:
        """Vector column (n,) of internal values; NaN stays NaN.

        Values of old ranges may leave [0, 1]. Values that the present scale cannot express (the
        log of 0, an overflow), and choices that no longer exist, become NaN.
        """
        distribution, hyperparameter = self.distributions[name], self.vectors.space[name]
        out = np.full(len(internal), np.nan)
        known = ~np.isnan(internal)
        if isinstance(hyperparameter, Constant):
            out[known] = float(hyperparameter.lower_vectorized)
        elif isinstance(distribution, CategoricalDistribution):
            known &= np.isin(internal, np.arange(len(distribution.choices)))
            out[known] = self._codes[name][internal[known].astype(np.int64)]
        else:
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                out[known] = hyperparameter.to_vector(internal[known])
            assert isinstance(distribution, Numeric)
            # ``float_range`` may have rounded the ends: values proposed there are 0 and 1 again.
            out[internal == distribution.low] = 0.0
            out[internal == distribution.high] = 1.0
        out[np.isinf(out)] = np.nan
        return out

    def encode_all(self, rows: Sequence[Mapping[str, float]]) -> FloatArray:
        """Vectors (n, d) of rows of internal values by name; NaN where a row has no value."""
        vectors = np.full((len(rows), self.vectors.d), np.nan)
        places: dict[str, list[int]] = {}
        for i, row in enumerate(rows):
            for name in row:
                places.setdefault(name, []).append(i)
        for name in places.keys() & self.column.keys():
            internal = np.array([rows[i][name] for i in places[name]])
            vectors[places[name], self.column[name]] = self.encode(name, internal)
        return vectors

    def decode(self, name: str, entry: float) -> Any:
        """The parameter value of a vector entry, as a builtin."""
        distribution, hyperparameter = self.distributions[name], self.vectors.space[name]
        if isinstance(distribution, CategoricalDistribution):
            # Of equal choices the first, as Optuna stores them.
            return distribution.choices[np.flatnonzero(self._codes[name] == int(entry))[0]]
        if (steps := steps_of(distribution)) is not None:
            # By its index, because Optuna takes multiples of the step only. The entry of an
            # enqueued value may lie outside of [0, 1].
            return steps.value(round(min(max(entry, 0.0), 1.0) * (steps.n - 1)))
        assert isinstance(distribution, Numeric)
        (value,) = hyperparameter.to_value(np.array([entry]))
        # Clipped, too: a logarithmic scale of integers continues beyond its ends.
        cast = int if isinstance(distribution, IntDistribution) else float
        return cast(min(max(cast(value), distribution.low), distribution.high))

    def internal(self, name: str, entry: float) -> float:
        """Optuna's internal representation of a vector entry."""
        return float(self.distributions[name].to_internal_repr(self.decode(name, entry)))

    def values(self, vector: FloatArray, rng: np.random.Generator) -> dict[str, Any]:
        """Parameter values of a vector (d,); those of inactive parameters are drawn."""
        complete = self.vectors.fill(vector, rng)
        return {name: self.decode(name, complete[i]) for name, i in self.column.items()}

    def internals(self, vector: FloatArray) -> dict[str, float]:
        """Optuna's internal values of the active parameters of a vector (d,)."""
        active = {name: vector[i] for name, i in self.column.items() if not np.isnan(vector[i])}
        return {name: self.internal(name, entry) for name, entry in active.items()}

    def fixed(self, values: Mapping[str, Any]) -> FloatArray:
        """Vector (d,) of external values that are fixed, NaN elsewhere.

        A value whose range moves stays NaN: its position is not known yet.
        """
        known = (values.keys() & self.column.keys()) - self.moving
        row = {name: internal_of(self.distributions[name], values[name]) for name in known}
        return np.asarray(self.encode_all([row])[0])


def _ranks(name: str, distribution: BaseDistribution, ordinal: Sequence[Any]) -> FloatArray:
    """Rank of each choice (k,) in ``ordinal``."""
    if not isinstance(distribution, CategoricalDistribution):
        raise ValueError(f"ordinal names {name!r}, which is not categorical: {distribution}.")
    order = [index_of(distribution.choices, choice) for choice in ordinal]
    if set(order) != set(range(len(distribution.choices))) or len(order) != len(set(order)):
        raise ValueError(
            f"ordinal[{name!r}] must list each choice once, got {list(ordinal)!r} for the choices"
            f" {list(distribution.choices)!r}."
        )
    # ``argsort`` returns the inverse of a permutation.
    return np.argsort(np.array(order)).astype(np.float64)


# --- ranges that move ------------------------------------------------------------------------


def position_of(distribution: BaseDistribution, internal: float) -> float:
    """The position of an internal value in its range."""
    (entry,) = UnionSpace({"value": distribution}).encode("value", np.array([internal]))
    return float(entry)


def value_at(
    distribution: BaseDistribution, position: float, taken: Collection[float] = ()
) -> Any:
    """The value at a position, 0 to 1, in a range; of a grid, the nearest that is not ``taken``.

    If all values nearby are taken, the nearest one.
    """
    value = UnionSpace({"value": distribution}).decode("value", position)
    steps = steps_of(distribution)
    if not taken or (steps is None and not isinstance(distribution, IntDistribution)):
        return value
    # Nearest first; one of 1 + len(taken) gaps is free, unless the range ends before.
    place = 0 if steps is None else steps.index(value)
    for gap in range(1 + len(taken)):
        for there in (gap, -gap):
            if steps is None:  # integers on a logarithmic scale
                other = value + there
            else:
                other = steps.value(min(max(place + there, 0), steps.n - 1))
            if other not in taken and _private.contains(distribution, float(other)):
                return other
    return value


def positions_in(trial: StudyTrial, moving: Collection[str]) -> dict[str, float]:
    """The position of each moving parameter of a trial in its range of this trial.

    Many positions in a range of integers give the same value. The model has to learn from the
    position that was proposed, or it would propose this position again.
    """
    found: dict[str, float] = {}
    for name in moving:
        proposed = trial.positions.get(name)
        if name in trial.distributions:
            distribution, value = trial.distributions[name], trial.values[name]
            # The proposed position counts only if it gives the value: the trial may have been
            # enqueued, or have taken a neighbour, see ``value_at``.
            if proposed is None or value_at(distribution, proposed) != value:
                proposed = position_of(distribution, value)
            found[name] = proposed
        elif name in trial.constants:  # any position gives the only value
            found[name] = 0.5 if proposed is None else proposed
        elif proposed is not None and trial.status != Status.COMPLETE:  # not asked for yet
            found[name] = proposed
    return found


# --- values that no model proposes -----------------------------------------------------------


def even_value(
    finished: StudyColumns,
    running: StudyColumns,
    streams: Streams,
    k: int,
    name: str,
    distribution: BaseDistribution,
) -> Any:
    """The least-tried choice; of a range, a point of a sequence that fills it.

    The middle comes first, and of choices the usual one, see ``usual_place``. It is point ``k``,
    the number of the trial, as workers that begin together see the same trials.
    """
    tried = np.concatenate([finished.values(name), running.values(name)])
    tried = tried[~np.isnan(tried)]
    label = code_of(name)
    lower = [row for row in running if row.number < k]
    if isinstance(distribution, CategoricalDistribution):
        # Equal choices count as one: else they would be tried twice as often.
        choices = sorted(set(stored_choices(distribution)))
        n = len(choices)
        if lower and np.isnan(finished.values(name)).all():
            # All choices in turn, in a new random order for every n trials.
            rng = streams.generator("independent", k - k % n, label)
            # First the choice that trial 0 takes below, where it sees no counts.
            first = _first_choice(distribution, choices, rng)
            order = [first, *rng.permutation(np.delete(np.arange(n), first))]
            return distribution.choices[choices[int(order[k % n])]]
        rng = streams.generator("independent", k, label)
        if not len(tried):
            return distribution.choices[choices[_first_choice(distribution, choices, rng)]]
        counts = np.array([(tried == choice).sum() for choice in choices])
        return distribution.choices[choices[apportion(counts, np.ones(n), rng)]]
    unknown = any(name not in row.values for row in lower)
    union = UnionSpace({name: distribution})
    rng = streams.generator("sequence", label)
    # Workers that begin together have not seen the middle tried: only one may take it.
    index = k if unknown or len(tried) else 0
    return union.decode(name, stratified_value(union.vectors, 0, index, rng))


def _first_choice(
    distribution: CategoricalDistribution, stored: Sequence[int], rng: np.random.Generator
) -> int:
    """The index of the usual choice among those ``stored`` (n), else of one that is drawn."""
    usual = usual_place([distribution.choices[i] for i in stored])
    n = len(stored)
    return apportion(np.zeros(n), np.ones(n), rng) if usual is None else usual
