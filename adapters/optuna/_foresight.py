"""The search space of a study before all of it is known: distributions and conditions.

They are expected from earlier tasks, and inferred from the study's own trials.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution

from automl_plugins.arrays import BoolArray, FloatArray
from automl_plugins.records.trial import Status
from automl_plugins.spaces.conditions import Rule
from automl_plugins.spaces.values import finder, kind_of, to_number

from .space import Distributions, infer_rules
from .trials import StudyTrial

# A parameter is abandoned if its absence by chance is less probable: after 10 trials that asked
# for it, 4 that did not. A larger value drops some that only pause, a smaller one keeps gaps.
_RARE = 1e-4


class Foresight:
    """Distributions and conditions expected from earlier tasks.

    The trials of the study take precedence: what they contradict is dropped.

    Args:
        distributions: The expected distributions by name.
        tasks: Configurations of each task, values by name; inactive parameters are absent.
    """

    def __init__(
        self, distributions: Distributions, tasks: Iterable[Sequence[Mapping[str, Any]]]
    ) -> None:
        self.distributions = {n: d for n, d in distributions.items() if not d.single()}
        self._examples = _condense(tasks, self.distributions)

    def rules(self, values: Mapping[str, FloatArray], distributions: Distributions) -> list[Rule]:
        """Conditions that explain both the complete trials and the earlier tasks.

        A parameter that has no such condition, or occurs in no task, has the one that explains
        the trials alone. ``values`` are as for ``infer_rules``.
        """
        rules = {rule.child: rule for rule in infer_rules(values, distributions)}
        earlier, knows = self._internal(distributions)
        n = len(next(iter(values.values()))) if values else 0
        by_tasks: dict[bytes, list[str]] = {}  # parameters that occur in the same tasks
        for name in earlier:
            by_tasks.setdefault(knows[name].tobytes(), []).append(name)
        # Only tasks that have a parameter say when it is active.
        for children in by_tasks.values():
            rows = knows[children[0]]
            none = np.full(n, math.nan)
            # (n + m,): the complete trials of this search, then the examples of these tasks.
            both = {m: np.append(values.get(m, none), earlier[m][rows]) for m in earlier}
            for rule in infer_rules(both, distributions):
                if rule.child in children:
                    rules[rule.child] = rule
        return [rules[child] for child in sorted(rules)]

    def _internal(
        self, distributions: Distributions
    ) -> tuple[dict[str, FloatArray], dict[str, BoolArray]]:
        """By name: internal values (m,) of the examples, and whether their task has it (m,)."""
        names = sorted({n for known, _ in self._examples for n in known} & distributions.keys())
        read = {name: _internal_reader(distributions[name]) for name in names}
        rows = []
        for known, example in self._examples:
            row = {name: read[name](example[name]) for name in names if name in example}
            if None not in row.values():  # else the example is not of this search space
                rows.append((known, row))
        return (
            {n: np.array([row.get(n, math.nan) for _, row in rows], np.float64) for n in names},
            {n: np.array([n in known for known, _ in rows], dtype=bool) for n in names},
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Foresight:
        return self  # nothing in it ever changes


def explain_by_stopped(
    trials: Sequence[StudyTrial], distributions: Distributions, rules: list[Rule]
) -> list[Rule]:
    """The ``rules``, and further conditions inferred with the help of pruned and failed trials.

    Without them a branch in which no trial completes would seem to have the parameters of other
    branches, and the same configuration would be proposed again with other values of these.
    Pruned trials are trusted like complete ones. A failed trial may have stopped before it asked
    for all parameters, so it counts for conditions on choices only, not for thresholds.
    """
    found = {rule.child: rule for rule in rules}
    counting = [Status.COMPLETE]
    for stopped in (Status.PRUNED, Status.FAILED):
        counting.append(stopped)
        rows = [t for t in trials if t.status in counting]
        if not any(t.status == stopped for t in rows):
            continue
        # ``values`` of failed trials also contain proposed values that were not asked for.
        asked = [
            {k: v for k, v in (t.constants | t.values).items() if k in t.config} for t in rows
        ]
        values = {
            name: np.array([row.get(name, math.nan) for row in asked]) for name in distributions
        }
        for rule in infer_rules(values, distributions):
            trusted = rule.relation == "in" or stopped == Status.PRUNED
            is_open = rule.child not in found and not _decides(rule.child, rule.parent, found)
            if trusted and is_open:
                found[rule.child] = rule
    return [found[child] for child in sorted(found)]


def _decides(name: str, other: str, rules: Mapping[str, Rule]) -> bool:
    """Whether ``name`` is a parent of ``other``, or of its parents."""
    while other in rules:
        other = rules[other].parent
        if other == name:
            return True
    return False


def find_refuted(
    values: Mapping[str, FloatArray], rules: Sequence[Rule], expected: Collection[str]
) -> set[str]:
    """The ``expected`` names that, by the rules, some complete trial should have asked for."""
    by_child = {rule.child: rule for rule in rules}
    n = len(next(iter(values.values()))) if values else 0
    gone: set[str] = set()

    def is_refuted(name: str) -> bool:
        rule = by_child.get(name)
        # It is always active: each complete trial should have asked for it.
        if rule is None or rule.parent in gone:
            return n > 0
        return rule.parent in values and bool(_holds(rule, values).any())

    # Repeated: once a parent is gone, its children may be refuted, too.
    while new := set(filter(is_refuted, set(expected) - gone)):
        gone |= new
    return gone


def find_abandoned(
    values: Mapping[str, FloatArray], rules: Sequence[Rule], names: Collection[str]
) -> set[str]:
    """The ``names`` that the objective has replaced by others.

    From the first to the last that did, all complete trials (n,) asked for such a name; since
    then all ask for another, which none asked for before, and too many for chance. A name with a
    condition is replaced if its parent is, and no trial asked for it later than for the parent.
    """
    by_child = {rule.child: rule for rule in rules}
    asked = {name: ~np.isnan(values[name]) for name in names}
    some = np.any([*asked.values()], axis=0)  # trials that were told without values say nothing
    asked = {name: mask[some] for name, mask in asked.items()}
    gone: set[str] = set()

    def is_abandoned(name: str) -> bool:
        own, last = asked[name], _last(asked[name])
        if last < 0:
            return False
        if (rule := by_child.get(name)) is not None:
            return rule.parent in gone and not own[_last(asked[rule.parent]) + 1 :].any()
        # Without a successor it may have a condition that is not inferred, or have been fixed.
        first, silent = int(own.argmax()), len(own) - 1 - last
        others = (m[last + 1 :].all() and not m[: last + 1].any() for m in asked.values())
        # Rule of succession: after n trials that asked, the next does not with chance 1 / (n + 1).
        is_rare = (2.0 + last - first) ** -silent < _RARE
        return bool(own[first : last + 1].all() and is_rare and any(others))

    # Repeated: names with a condition are found after their parents.
    while new := set(filter(is_abandoned, asked.keys() - gone)):
        gone |= new
    return gone


def _last(asked: BoolArray) -> int:
    """Position of the last trial that asked for a parameter; -1 if none did."""
    return int(np.flatnonzero(asked).max(initial=-1))


def _internal_reader(distribution: BaseDistribution) -> Callable[[Any], float | None]:
    """Function that returns the internal value of a recorded one; None if no choice or number."""
    if isinstance(distribution, CategoricalDistribution):
        return finder(distribution.choices)
    return lambda value: None if math.isnan(number := to_number(value)) else number


def _holds(rule: Rule, values: Mapping[str, FloatArray]) -> BoolArray:
    parent = values[rule.parent]
    if rule.relation == "in":
        return np.isin(parent, rule.values)
    return parent > rule.values[0] if rule.relation == "above" else parent < rule.values[0]


def _condense(
    tasks: Iterable[Sequence[Mapping[str, Any]]], distributions: Distributions
) -> list[tuple[frozenset[str], dict[str, Any]]]:
    """Two examples for each combination of categories: with its lowest, and its highest numbers.

    The same conditions on choices and thresholds follow from them as from all configurations.
    Each comes with the names that occur in its task.
    """
    found: dict[Any, tuple[dict[str, Any], dict[str, Any]]] = {}
    for configurations in tasks:
        known = frozenset(name for values in configurations for name in values)
        for values in configurations:
            numbers = {
                name: value
                for name, value in values.items()
                if kind_of(value) == "number"
                and not isinstance(distributions.get(name), CategoricalDistribution)
            }
            # As texts, for lists have no hash; with the type, for 1 equals True.
            others = [(n, type(v).__name__, str(v)) for n, v in values.items() if n not in numbers]
            key = known, frozenset(numbers), tuple(sorted(others))
            low, high = found.setdefault(key, (dict(values), dict(values)))
            for name, value in numbers.items():
                low[name], high[name] = min(low[name], value), max(high[name], value)
    return [(key[0], example) for key, pair in found.items() for example in pair]
