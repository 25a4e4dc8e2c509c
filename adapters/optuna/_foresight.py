"""What earlier tasks tell of a search space that no trial has asked for yet."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
)

from automl_plugins.spaces.conditions import Rule
from automl_plugins.spaces.values import finder, to_number

from .space import infer_rules

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


class Foresight:
    """Distributions and conditions that earlier tasks have shown.

    Trials of the study come first: what they contradict is forgotten.

    Args:
        distributions: The distributions that are expected, by name.
        tasks: Configurations of each task, values by name; a parameter that is inactive is absent.
    """

    def __init__(
        self,
        distributions: Mapping[str, BaseDistribution],
        tasks: Iterable[Sequence[Mapping[str, Any]]],
    ) -> None:
        self.distributions = {n: d for n, d in distributions.items() if not d.single()}
        self._examples, self._knows = _condensed(tasks, self.distributions)
        names = {name for known in self._knows for name in known}
        self.names = tuple(sorted(names))

    def expecting(self, distributions: Mapping[str, BaseDistribution]) -> Foresight:
        """The same conditions with other distributions expected."""
        other = object.__new__(Foresight)
        other.__dict__.update(self.__dict__ | {"distributions": dict(distributions)})
        return other

    def rules(
        self, values: Mapping[str, FloatArray], distributions: Mapping[str, BaseDistribution]
    ) -> list[Rule]:
        """Conditions that explain the complete trials and the earlier tasks alike.

        A parameter for which there are none, or that no task knows, has those that explain the
        trials alone.

        Args:
            values: Internal values (n,) of the complete trials by name, NaN where not asked for.
            distributions: Distribution of each name.
        """
        asked = {n: column for n, column in values.items() if not np.isnan(column).all()}
        rules = {rule.child: rule for rule in infer_rules(asked, distributions)}
        earlier, knows = self._internal(distributions)
        n = len(next(iter(values.values()))) if values else 0
        by_tasks: dict[bytes, list[str]] = {}  # parameters that the same tasks know
        for name in earlier:
            by_tasks.setdefault(knows[name].tobytes(), []).append(name)
        for children in by_tasks.values():
            rows = knows[children[0]]
            none = np.full(n, math.nan)
            both = {m: np.append(values.get(m, none), earlier[m][rows]) for m in earlier}
            for rule in infer_rules(both, distributions):
                if rule.child in children:
                    rules[rule.child] = rule
        return [rules[child] for child in sorted(rules)]

    def refuted(
        self, values: Mapping[str, FloatArray], rules: Sequence[Rule], asked: Collection[str]
    ) -> set[str]:
        """Expected parameters that a complete trial should have asked for, and did not.

        Args:
            values: As for ``rules``.
            rules: The conditions in force.
            asked: Names that trials have asked for, or that were declared.
        """
        by_child = {rule.child: rule for rule in rules}
        n = len(next(iter(values.values()))) if values else 0
        gone: set[str] = set()
        while True:
            before = len(gone)
            for name in self.distributions.keys() - asked - gone:
                rule = by_child.get(name)
                if rule is None or rule.parent in gone:
                    refuted = n > 0
                else:
                    refuted = rule.parent in values and bool(_holds(rule, values).any())
                if refuted:
                    gone.add(name)
            if len(gone) == before:
                return gone

    def _internal(
        self, distributions: Mapping[str, BaseDistribution]
    ) -> tuple[dict[str, FloatArray], dict[str, BoolArray]]:
        """Examples (m,) by name in internal values, and whether their task knows the name."""
        names = [name for name in self.names if name in distributions]
        places = {n: finder(getattr(distributions[n], "choices", ())) for n in names}
        rows, knows = [], []
        for example, known in zip(self._examples, self._knows, strict=True):
            row = {
                n: _number(distributions[n], places[n], example[n]) for n in names if n in example
            }
            if None not in row.values():  # else it is not of this search space
                rows.append(row)
                knows.append(known)
        return (
            {n: np.array([row.get(n, math.nan) for row in rows], dtype=np.float64) for n in names},
            {n: np.array([n in known for known in knows], dtype=bool) for n in names},
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Foresight:
        return self  # nothing in it ever changes


def _number(
    distribution: BaseDistribution, place: Callable[[Any], int | None], value: Any
) -> float | None:
    """Internal value of a recorded one; None if it cannot be one, numbers may lie outside."""
    if isinstance(distribution, CategoricalDistribution):
        return place(value)
    return None if math.isnan(number := to_number(value)) else number


def _holds(rule: Rule, values: Mapping[str, FloatArray]) -> BoolArray:
    parent = values[rule.parent]
    if rule.relation == "in":
        return np.isin(parent, rule.values)
    return parent > rule.values[0] if rule.relation == "above" else parent < rule.values[0]


def _condensed(
    tasks: Iterable[Sequence[Mapping[str, Any]]], distributions: Mapping[str, BaseDistribution]
) -> tuple[list[dict[str, Any]], list[frozenset[str]]]:
    """Two examples for each combination of categories: its least and its largest numbers.

    Conditions on a category or a threshold are the same for them as for all configurations.

    Returns:
        The examples, and the names that the task of each knows.
    """
    found: dict[Any, tuple[dict[str, Any], dict[str, Any]]] = {}
    for configurations in tasks:
        known = frozenset(name for values in configurations for name in values)
        for values in configurations:
            numbers = {
                name: value
                for name, value in values.items()
                if isinstance(value, int | float)
                and not isinstance(value, bool)
                and not isinstance(distributions.get(name), CategoricalDistribution)
            }
            others = {name: value for name, value in values.items() if name not in numbers}
            key = (
                known,
                frozenset(numbers),
                tuple(sorted((name, type(v).__name__, str(v)) for name, v in others.items())),
            )
            low, high = found.setdefault(key, (dict(values), dict(values)))
            for name, value in numbers.items():
                low[name], high[name] = min(low[name], value), max(high[name], value)
    examples = [example for pair in found.values() for example in pair]
    return examples, [key[0] for key in found for _ in range(2)]
