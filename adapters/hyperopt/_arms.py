"""Arms: the options of a choice, or the cells into which a search space is split.

An arm is the whole search space with some hyperparameters restricted, so what lies outside the
choice belongs to every arm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

from hyperopt import Domain

from ._branches import always_drawn, choices, labels, root_choice
from ._cells import Options, Part, restricted, split_values
from ._grid import grid_of

#: Active hyperparameters of a trial: value by label.
Values = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Arm:
    """A part of the search space.

    Attributes:
        name: What it is called in reports.
        parts: The restrictions, by label.
        expr: The restricted expression.
    """

    name: str
    parts: Mapping[str, Part]
    expr: Any

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Labels that are left to be drawn."""
        return labels(self.expr)

    @cached_property
    def domain(self) -> Domain:
        """What a suggest function is shown; the objective is not part of it."""
        return Domain(None, self.expr, pass_expr_memo_ctrl=False)

    @cached_property
    def grid(self) -> tuple[Values, ...] | None:
        """All configurations, if they are few; else None."""
        found = grid_of(self.expr)
        return None if found is None else tuple(self.outer(values) for values in found)

    @cached_property
    def translates(self) -> bool:
        """Whether values in the restricted expression are called something else."""
        return any(isinstance(p, Options) and p.fixed is None for p in self.parts.values())

    def contains(self, values: Mapping[str, Any]) -> bool:
        """Whether a configuration lies in it; False if a label it restricts has no value."""
        return all(name in values and p.contains(values[name]) for name, p in self.parts.items())

    def outer(self, values: Mapping[str, Any]) -> Values:
        """Values in the search space from those in the restricted expression."""
        fixed = {name: p.fixed for name, p in self.parts.items() if p.fixed is not None}
        drawn = {k: self.parts[k].outer(v) if k in self.parts else v for k, v in values.items()}
        return fixed | drawn

    def inner(self, values: Mapping[str, Any]) -> Values:
        """The other way round; what the restricted expression does not draw is left out."""
        return {
            label: self.parts[label].inner(values[label]) if label in self.parts else values[label]
            for label in self.labels
            if label in values
        }

    def key(self, values: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
        """Identity of a configuration within the arm."""
        return tuple((name, float(values[name])) for name in self.labels if name in values)


@dataclass(frozen=True)
class Arms:
    """All arms of a search space.

    Attributes:
        arms: They do not overlap; together they are the space.
        notes: What was left out or left whole, one sentence each.
    """

    arms: tuple[Arm, ...]
    notes: tuple[str, ...] = ()

    def find(self, values: Mapping[str, Any]) -> int | None:
        """Number of the arm in which a configuration lies; None if it is in none."""
        return next((i for i, arm in enumerate(self.arms) if arm.contains(values)), None)

    @property
    def names(self) -> tuple[str, ...]:
        """What they are called in reports."""
        return tuple(arm.name for arm in self.arms)


#: How a space is split: every hyperparameter in so many parts, or only some of them.
Split = int | Mapping[str, int]

#: Arms by domain and by how they were made; the same again when it is lost.
_CACHE: WeakKeyDictionary[Domain, dict[Any, Arms]] = WeakKeyDictionary()


def arms_of(
    domain: Domain,
    *,
    label: str | None = None,
    split: Split | None = None,
    max_arms: int = 32,
) -> Arms:
    """The options of a choice (see ``root_choice``), or with ``split`` the cells of the space.

    Raises:
        ValueError: If there is no such choice, or nothing that can be split.
    """
    made = _CACHE.setdefault(domain, {})
    how = (label, tuple(split.items()) if isinstance(split, Mapping) else split, max_arms)
    if how not in made:
        made[how] = (
            branches(domain.expr, label) if split is None else cells(domain.expr, split, max_arms)
        )
    return made[how]


def branches(expr: Any, label: str | None = None) -> Arms:
    """An arm for each option of a choice that has not probability zero.

    Raises:
        ValueError: If there is no such choice.
    """
    choice = root_choice(expr, label)
    names = choice.names()
    arms = []
    for index in choice.possible:
        parts: dict[str, Part] = {choice.label: Options(choice, (index,))}
        arms.append(Arm(names[index], parts, restricted(expr, parts)))
    never = [name for i, name in enumerate(names) if i not in choice.possible]
    note = (f"Left out, since their probability is zero: {', '.join(never)}.",)
    return Arms(tuple(arms), note if never else ())


def cells(expr: Any, split: Split, max_arms: int) -> Arms:
    """Cells of a search space: one hyperparameter after the other is split, outer ones first.

    In a cell where it depends on the option of a choice whether a hyperparameter is drawn, it is
    not split. When the next one would make more than ``max_arms`` cells it and all others are
    left whole.

    Args:
        expr: The search space.
        split: Number of parts of each hyperparameter, or numbers by label of those to be split,
            the most important first.
        max_arms: Largest number of cells.

    Raises:
        ValueError: For numbers less than 2, an unknown label, or if nothing can be split.
    """
    known = labels(expr)
    pieces = dict(split) if isinstance(split, Mapping) else dict.fromkeys(known, split)
    for label, k in pieces.items():
        if label not in known:
            raise ValueError(f"split: no label {label!r}; there are {', '.join(known)}.")
        if not k >= 2:
            raise ValueError(f"split must be at least 2, got {k!r}: one part is the whole.")
    made: list[dict[str, Part]] = [{}]
    left, notes = list(pieces), []
    while left:
        drawn = [always_drawn(restricted(expr, cell)) for cell in made]
        tried = ((name, _split(expr, made, drawn, name, pieces[name])) for name in left)
        found = next(((name, finer) for name, finer in tried if len(finer) > len(made)), None)
        if found is None:
            notes.append(f"Not split, since they cannot be: {', '.join(left)}.")
            break
        name, finer = found
        if len(finer) > max_arms:
            notes.append(
                f"Not split, since {name} would make {len(finer)} cells and max_arms is"
                f" {max_arms}: {', '.join(left)}."
            )
            break
        made = finer
        left.remove(name)
    if len(made) == 1:
        raise ValueError(
            f"split={split!r} makes no cells. {' '.join(notes)} Normal distributions are not"
            " split, nor is what only some options of a choice have."
        )
    arms = [Arm(" & ".join(map(str, c.values())), c, restricted(expr, c)) for c in made]
    return Arms(tuple(arms), tuple(notes))


def _split(
    expr: Any,
    made: Sequence[dict[str, Part]],
    drawn: Sequence[Mapping[str, Any]],
    label: str,
    k: int,
) -> list[dict[str, Part]]:
    """The cells, each split by a hyperparameter where it is always drawn and has parts."""
    choice = choices(expr).get(label)
    finer: list[dict[str, Part]] = []
    for cell, params in zip(made, drawn, strict=True):
        parts = split_values(params[label], choice, k) if label in params else []
        finer += [{**cell, label: part} for part in parts] if len(parts) > 1 else [cell]
    return finer
