"""Sizes of the branches of a categorical: numbers of hyperparameters, and volumes.

The branch of an option consists of the hyperparameters that it can make active. N and theta are
defined by Sarigiannis 2019, see ``bandits.model_weights``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from ConfigSpace import ConfigurationSpace
from ConfigSpace.conditions import Condition
from ConfigSpace.hyperparameters import CategoricalHyperparameter

from automl_plugins.spaces.ranges import scale_of
from automl_plugins.spaces.restriction import (
    Domain,
    Range,
    activity,
    conditions_in,
    domain_of,
    restrict_space,
    truth,
    values_named,
)
from automl_plugins.spaces.scales import Steps, floats_within
from automl_plugins.spaces.values import choices_of
from automl_plugins.spaces.vector_space import VectorSpace

# Most configurations of a branch with forbidden clauses that are listed, in a third of a second.
_ENUMERATED = 100_000


def hyperparameter_counts(space: ConfigurationSpace, choice: str | None = None) -> dict[Any, int]:
    """N of each option of ``choice``: all hyperparameters that it can make active.

    Categorical, integer and continuous ones count alike, nested ones included; constants and
    everything else with a single value do not.
    """
    choice = choice_of(space, choice)
    below = [name for name in _descendants(space, choice) if space[name].size > 1]
    counts = {}
    for option in options_of(space, choice):
        active = activity(space, {choice: (option,)})
        # ``activity`` leaves out what is never active; what is sometimes active counts.
        counts[option] = sum(name in active for name in below)
    return counts


def log_volumes(space: ConfigurationSpace, choice: str) -> list[float]:
    """Logarithm of theta of each option of ``choice`` (eq. 7).

    The ranges of the hyperparameters are multiplied: high - low of a real number, log(high / low)
    on a log scale, the number of values of all others, steps included; theta sums over the
    options of nested parents. So theta of a finite branch is the number of its configurations.
    Forbidden configurations are left out if the branch has at most 100 000 configurations.

    Raises:
        ValueError: For conditions on continuous parents, or on parents outside the branch.
    """
    below = _descendants(space, choice)
    logs = []
    for option in options_of(space, choice):
        n = _count(space, choice, option) if space.forbidden_clauses else None
        logs.append(_log_volume(space, {choice: (option,)}, below) if n is None else _log(n))
    return logs


def log_volume(space: ConfigurationSpace) -> float:
    """Logarithm of the volume of a whole space, see ``log_volumes``, forbidden clauses ignored."""
    return _log_volume(space, {}, list(space.at))


def choice_of(space: ConfigurationSpace, choice: str | None) -> str:
    """The name of the categorical that selects the model; None finds it.

    Raises:
        ValueError: If ``choice`` is not a categorical of the space, or if it is None and there is
            not exactly one unconditional categorical with children.
    """
    categorical = [n for n in space.at if isinstance(space[n], CategoricalHyperparameter)]
    if choice is None:
        roots = set(space.unconditional_hyperparameters)
        found = [n for n in categorical if n in roots and space.children_of[n]]
        if len(found) != 1:
            names = f"{len(found)}: {', '.join(found)}" if found else "none"
            raise ValueError(
                "choice is needed, the name of the categorical that selects the model: there"
                f" should be one unconditional categorical with children, and there are {names}."
            )
        return found[0]
    if choice not in categorical:
        raise ValueError(
            f"choice must be a categorical of the space, got {choice!r}; it has"
            f" {', '.join(categorical) or 'none'}."
        )
    return choice


def options_of(space: ConfigurationSpace, choice: str) -> tuple[Any, ...]:
    """The options of a categorical."""
    return tuple(choices_of(space[choice]) or ())


def _descendants(space: ConfigurationSpace, name: str) -> list[str]:
    """Children, their children and so on, parents first."""
    found = {name}
    for other in space.at:  # sorted by depth
        if found & {parent.name for parent in space.parents_of[other]}:
            found.add(other)
    return [other for other in space.at if other in found and other != name]


def _count(space: ConfigurationSpace, choice: str, option: Any) -> int | None:
    """Number of configurations of a branch; None if there are too many to enumerate."""
    branch = restrict_space(space, {choice: (option,)})
    if branch is None:
        return 0
    view = VectorSpace(branch)
    rows = view.enumerate(_ENUMERATED)
    if rows is None:
        return None
    # If the choice has a parent itself, rows without the choice are in none of its branches.
    rows = rows[~np.isnan(rows[:, view.names.index(choice)])]
    # Hyperparameters outside the branch repeat its configurations, which count once.
    columns = [view.names.index(n) for n in _descendants(space, choice) if n in view.names]
    # Rows are compared whole, and NaN would differ from NaN: no legal entry is -1.
    return len(np.unique(np.nan_to_num(rows[:, columns], nan=-1.0), axis=0))


def _log_volume(
    space: ConfigurationSpace, domains: Mapping[str, Domain], names: Sequence[str]
) -> float:
    """Logarithm of the volume of those hyperparameters that the domains can make active."""
    active = activity(space, domains)
    left = [name for name in names if name in active]
    # A hyperparameter that is active in the whole branch does not depend on the others there.
    conditional = {name: conditions_in(active[name]) for name in left if active[name] is not True}
    groups = _independent({name: {c.parent.name for c in cs} for name, cs in conditional.items()})
    grouped = {name for group in groups for name in group}
    if not grouped <= set(left):
        raise ValueError(
            f"Volumes cannot be computed: hyperparameters of a branch depend on"
            f" {', '.join(sorted(grouped - set(left)))} outside it: give weights by option."
        )
    # Volumes of independent hyperparameters are multiplied.
    total = sum(_log_size(space, name, domains) for name in left if name not in grouped)
    for group in groups:
        # The topmost hyperparameter of a group has no condition.
        parent = next(name for name in left if name in group and name not in conditional)
        conditions = [
            c for name in group for c in conditional.get(name, ()) if c.parent.name == parent
        ]
        inner = [name for name in left if name in group]
        # A sum over the parts of the topmost one; below it there are fewer conditions each time.
        parts = _parts(space, parent, domains, conditions)
        logs = [_log_volume(space, {**domains, parent: part}, inner) for part in parts]
        total += float(np.logaddexp.reduce(logs))
    return total


def _independent(parents: Mapping[str, set[str]]) -> list[set[str]]:
    """Children and parents in groups that do not depend on each other."""
    groups: list[set[str]] = []
    for child, above in parents.items():
        group = {child} | above
        apart = [g for g in groups if not g & group]
        # The groups that the new one meets become one with it.
        groups = [*apart, group.union(*(g for g in groups if g & group))]
    return groups


def _parts(
    space: ConfigurationSpace,
    parent: str,
    domains: Mapping[str, Domain],
    conditions: Sequence[Condition],
) -> list[Domain]:
    """The values of a parent, grouped by the conditions that they meet."""
    domain = domains.get(parent, domain_of(space[parent]))
    if isinstance(domain, Range):
        if not isinstance(domain.low, int):
            raise ValueError(
                f"Volumes cannot be summed over {parent}, which has children and is continuous:"
                " give weights by option."
            )
        # A condition changes only at the values that it names, and right after them. They are
        # legal, so ``floor`` changes no number: it makes 2.0 an ``int``, as ``Range`` needs it.
        named = {math.floor(v) for c in conditions for v in values_named(c)}
        starts = {s for v in named for s in (v, v + 1) if domain.low < s <= domain.high}
        edges = [domain.low, *sorted(starts), int(domain.high) + 1]
        return [Range(low, after - 1) for low, after in pairwise(edges)]
    parts: dict[tuple[bool | None, ...], list[Any]] = {}
    for value in domain:
        parts.setdefault(tuple(truth(c, (value,)) for c in conditions), []).append(value)
    return [tuple(values) for values in parts.values()]


def _log_size(space: ConfigurationSpace, name: str, domains: Mapping[str, Domain]) -> float:
    domain = domains.get(name, domain_of(space[name]))
    if isinstance(domain, tuple):
        return math.log(len(domain))
    low, high = domain.low, domain.high
    # Before whole numbers: beyond 2^53 floats hold some of them only, and perhaps not the ends.
    if isinstance(scale := scale_of(space[name]), Steps):
        part = scale.part(*floats_within(low, high))
        return _log(part.n if part else 0)
    if isinstance(low, int):
        return math.log(high - low + 1)
    if space[name].log:  # type: ignore[attr-defined]
        ratio = high / low
        return math.log(math.log(ratio) if ratio < math.inf else math.log(high) - math.log(low))
    # Ratios and differences of floats may be larger than the largest of them.
    width = high - low
    return math.log(width) if width < math.inf else math.log(high / 2.0 - low / 2.0) + math.log(2)


def _log(n: int) -> float:
    return math.log(n) if n else -math.inf
