"""The cells of a grid over a space: each is an arm (Zhu 2020, BOASF, hyperparameter optimisation).

The range of each parameter is split into k parts on its own scale. For n parameters that makes k^n
cells, so only the first parameters are split (``max_arms``).

A conditional parameter is split in the cells in which it is always active: those, say, that hold
the value of its parent which it needs. So the cells are disjoint and cover the space.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from ConfigSpace import ConfigurationSpace
from ConfigSpace.hyperparameters import (
    BetaFloatHyperparameter,
    BetaIntegerHyperparameter,
    Hyperparameter,
    IntegerHyperparameter,
    NormalFloatHyperparameter,
    NormalIntegerHyperparameter,
)
from ConfigSpace.hyperparameters.hp_components import ROUND_PLACES
from scipy.stats import beta, truncnorm

from automl_plugins._arguments import check_integer
from automl_plugins.spaces.ranges import (
    ExactFloat,
    ExactInteger,
    multiples_of,
    scale_of,
    steps_of,
)
from automl_plugins.spaces.restriction import (
    Domain,
    Range,
    activity,
    domain_of,
    holds,
    restrict_space,
)
from automl_plugins.spaces.scales import MOST_EXACT, LogScale


@dataclass(frozen=True)
class Cell:
    """One part of a space."""

    name: str  # its domains as text, such as "lr in [0.001, 0.03162), booster in {a, b}"
    domains: Mapping[str, Domain]  # of the parameters that are split; all are active in the cell
    space: ConfigurationSpace

    def contains(self, configuration: Mapping[str, Any]) -> bool:
        """Whether values by name, such as a Configuration of the whole space, lie in the cell."""
        return all(
            name in configuration and holds(domain, configuration[name])
            for name, domain in self.domains.items()
        )


@dataclass(frozen=True)
class Partition(Sequence[Cell]):
    """Cells that are disjoint and cover a space; a sequence of them."""

    cells: tuple[Cell, ...]
    notes: tuple[str, ...] = ()  # sentences: which parameters are not split, and why

    def __getitem__(self, index: Any) -> Any:
        return self.cells[index]

    def __len__(self) -> int:
        return len(self.cells)


def check_parts(name: str, parts: Any) -> None:
    """Check the number of parts of each parameter, or such numbers by name: integers >= 2."""
    if not isinstance(parts, Mapping):
        check_integer(name, parts, 2)
        return
    for parameter, number in parts.items():
        check_integer(f"{name}[{parameter!r}]", number, 2)


def check_split(parts: Any, max_arms: Any) -> None:
    """Check how a user splits a space: see ``partition``, whose ``k`` is called ``split``."""
    check_parts("split", parts)
    if not parts:
        raise ValueError("split is empty: name at least one parameter, such as {'x': 2}.")
    check_integer("max_arms", max_arms, 2)


def partition(
    space: ConfigurationSpace, k: int | Mapping[str, int] = 2, *, max_arms: int = 32
) -> Partition:
    """Split a space into the cells of a grid.

    Numbers are split on their own scale, whole numbers and steps into groups of them, categories
    and ordinals into contiguous groups; a parameter with fewer than k values into its values.
    Normal and beta distributions are split at their quantiles, except normal ones on a log scale;
    see ``restrict_space`` for their parts. Cells that forbidden clauses empty are omitted.

    Args:
        space: The whole space.
        k: Number of parts of each parameter, >= 2; parents are split first, then by name. Or such
            numbers by name of the parameters to split, the most important first.
        max_arms: Largest number of cells. Parameters are split one after the other up to this
            number; the notes of the result name the others.

    Raises:
        ValueError: For an argument outside its range, or if nothing can be split.
    """
    check_parts("k", k)
    numbers = k if isinstance(k, Mapping) else dict.fromkeys(space, k)
    left = _names(space, numbers) if isinstance(k, Mapping) else _varying(space)
    # One cell to begin with, the whole space.
    grid: list[dict[str, Domain]] = [{}]
    notes: list[str] = []
    while left:
        # The first that can be split now: a parent that is split may make its children so.
        found = next(
            ((n, g) for n in left if len(g := _split(space, grid, n, numbers[n])) > len(grid)),
            None,
        )
        if found is None:
            notes.append(
                f"Not split, since they are not always active in any cell: {', '.join(left)}."
            )
            break
        name, grown = found
        if len(grown) > max_arms:
            notes.append(
                f"Not split, since {name} would make {len(grown)} cells and max_arms is"
                f" {max_arms}: {', '.join(left)}."
            )
            break
        grid = grown
        left.remove(name)
    if len(grid) == 1:
        raise ValueError(
            "Nothing can be split. " + (" ".join(notes) or "No parameter has two values.")
        )
    # Spaces are made for the last grid only: domains are enough before.
    spaces = [restrict_space(space, domains) for domains in grid]
    cells = [
        Cell(describe_cell(domains), domains, sub)
        for domains, sub in zip(grid, spaces, strict=True)
        if sub is not None
    ]
    if len(cells) < len(grid):
        notes.append(f"{len(grid) - len(cells)} of {len(grid)} cells are forbidden and left out.")
    return Partition(tuple(cells), tuple(notes))


def _varying(space: ConfigurationSpace) -> list[str]:
    """Names of the parameters with several values, parents first, then by name."""
    return [name for name in space.at if space[name].size > 1]


def _names(space: ConfigurationSpace, parameters: Iterable[str]) -> list[str]:
    """The names in ``parameters``; ValueError for one that cannot be split."""
    vary = _varying(space)
    for name in parameters:
        if name not in space:
            raise ValueError(
                f"{name!r} is not a parameter of the space: it has {', '.join(space.at)}."
            )
        if name not in vary:
            raise ValueError(f"{name!r} has one value and cannot be split: leave it out.")
    return list(parameters)


def _split(
    space: ConfigurationSpace, grid: list[dict[str, Domain]], name: str, k: int
) -> list[dict[str, Domain]]:
    """The grid with every cell split in which the parameter is always active."""
    parts = pieces(space[name], k)
    grown: list[dict[str, Domain]] = []
    for domains in grid:
        # If it is only sometimes active, configurations without it would be in none of the parts.
        always = activity(space, domains).get(name) is True
        grown += [{**domains, name: part} for part in parts] if always else [domains]
    return grown


def pieces(hp: Hyperparameter[Any, Any], k: int) -> list[Domain]:
    """The values of a hyperparameter in k parts; fewer if it has fewer values.

    On a linear scale the sizes of groups of whole numbers differ by at most one. On a log scale
    the widths of their rounding intervals, [first - 1/2, last + 1/2], are about equal.
    """
    domain = domain_of(hp)
    if isinstance(domain, tuple):
        return [domain[group.start : group.stop] for group in _groups(len(domain), k)]
    # Before the cuts below, which may lie between two steps.
    if isinstance(hp, ExactFloat | ExactInteger) and (found := _groups_of_steps(hp, k)):
        return found
    log, cuts = bool(hp.log), _quantiles(hp, k)  # type: ignore[attr-defined]
    inner = [i / k for i in range(1, k)]
    if isinstance(hp, IntegerHyperparameter):
        low, high = int(hp.lower), int(hp.upper)
        if cuts is None and not log:
            groups = _groups(high - low + 1, k)
            return [Range(low + g.start, low + g.stop - 1) for g in groups]
        if cuts is None:
            cuts = [_between(low - 0.5, high + 0.5, u, log=True) for u in inner]
        return list(_integers_at(low, high, cuts))
    if cuts is None:
        cuts = [_between(domain.low, domain.high, u, log=log) for u in inner]
    return list(_ranges(domain.low, domain.high, cuts, rounded=scale_of(hp) is None))


def _groups_of_steps(hp: ExactFloat | ExactInteger, k: int) -> list[Domain]:
    """Parts that end at the last step <= each cut; none if there are no steps to tell apart."""
    scale, step, inner = hp.scale, multiples_of(hp), range(1, k)
    if steps := steps_of(hp):
        last = steps.n - 1
        # By place, which is exact, where the sum of many steps is rounded.
        groups = _integers_at(0, last, [last * i // k for i in inner])
        ends = [(steps.at(int(group.low)), steps.at(int(group.high))) for group in groups]
    elif step and isinstance(scale, LogScale) and (places := scale.multiples):
        cuts = [_between(scale.low, scale.high, i / k, log=True) / step for i in inner]
        groups = _integers_at(places[0], places[-1], cuts)
        ends = [(float(group.low * step), float(group.high * step)) for group in groups]
    else:
        return []
    # Beyond the first and the last multiple lie the ends of the range.
    lows = [hp.lower, *(low for low, _ in ends[1:])]
    highs = [*(high for _, high in ends[:-1]), hp.upper]
    if isinstance(hp, ExactInteger):
        return [Range(int(low), int(high)) for low, high in zip(lows, highs, strict=True)]
    # Each up to the next one: a number that rounding puts between two steps is in one of them.
    return list(map(Range, lows, highs, [*lows[1:], None]))


def _groups(n: int, k: int) -> list[range]:
    """The indices 0 to n - 1 in min(n, k) contiguous groups whose sizes differ by at most one."""
    k = min(n, k)
    return [range(n * i // k, n * (i + 1) // k) for i in range(k)]


def _between(low: float, high: float, u: float, *, log: bool) -> float:
    """The number at u in [0, 1] on the scale from ``low`` to ``high``."""
    if log:
        return math.exp((1 - u) * math.log(low) + u * math.log(high))
    # The difference of the largest floats would be infinite.
    return (1 - u) * low + u * high


def _integers_at(low: int, high: int, cuts: Sequence[float]) -> list[Range]:
    """Groups that end at the last whole number <= each cut, moved where one would be empty."""
    cuts = cuts[: high - low]  # not more groups than numbers
    groups: list[Range] = []
    first = low
    for i, cut in enumerate(cuts):
        # At least one number for this group, and one for each that follows.
        last = min(max(math.floor(cut), first), high - (len(cuts) - i))
        groups.append(Range(first, last))
        first = last + 1
    return [*groups, Range(first, high)]


def _quantiles(hp: Hyperparameter[Any, Any], k: int) -> list[float] | None:
    """The k - 1 inner quantiles of a normal or beta distribution; None for any other."""
    u = np.arange(1, k) / k
    # On a log scale the parts become uniform, so quantiles of the normal would be no equal shares.
    if isinstance(hp, NormalFloatHyperparameter | NormalIntegerHyperparameter) and not hp.log:
        a, b = (hp.lower - hp.mu) / hp.sigma, (hp.upper - hp.mu) / hp.sigma
        return [float(x) for x in truncnorm.ppf(u, a, b, loc=hp.mu, scale=hp.sigma)]
    if isinstance(hp, BetaFloatHyperparameter | BetaIntegerHyperparameter):
        # ConfigSpace defines it on the places [0, 1] of the scale, also of a log scale.
        at = beta.ppf(u, hp.alpha, hp.beta)
        return [_between(hp.lower, hp.upper, float(x), log=hp.log) for x in at]
    return None


def _ranges(low: float, high: float, cuts: Sequence[float], *, rounded: bool) -> Iterator[Range]:
    """Ranges between distinct cuts, which may be ``rounded`` as ConfigSpace rounds them."""
    for cut in cuts:
        # ConfigSpace rounds the bounds of the parts, so the next one begins where it puts them.
        limit = _rounded(cut) if rounded else cut
        below = math.nextafter(limit, -math.inf)
        if rounded:
            # The next number after rounding: 1e-13 below, or the next float if that is farther.
            below = _rounded(min(limit - 10.0**-ROUND_PLACES, below))
        # In a narrow range cuts coincide once they are rounded.
        if low < below < limit < high:
            yield Range(low, below, limit)
            low = limit
    yield Range(low, high)


def _rounded(number: float) -> float:
    """The number as ConfigSpace rounds it; large ones have no decimals, and would overflow."""
    return float(np.round(number, ROUND_PLACES)) if abs(number) < MOST_EXACT else number


def describe_cell(domains: Mapping[str, Domain]) -> str:
    """Name of a cell that holds these parts."""
    return ", ".join(describe_part(name, domain) for name, domain in domains.items())


def describe_part(name: str, domain: Domain) -> str:
    """Name of one part, such as ``"lr in [0.001, 0.03162)"`` or ``"booster = a"``."""
    if isinstance(domain, tuple):
        values = ", ".join(map(str, domain))
        return f"{name} = {values}" if len(domain) == 1 else f"{name} in {{{values}}}"
    end = domain.high if domain.limit is None else domain.limit
    if domain.low == end:
        return f"{name} = {domain.low}"
    bounds = [f"{x:.4g}" for x in (domain.low, end)]
    # Four digits, unless they are the same for both ends, or do not show a whole number.
    if bounds[0] == bounds[1] or isinstance(end, int):
        bounds = [str(domain.low), str(end)]
    return f"{name} in [{', '.join(bounds)}" + ("]" if domain.limit is None else ")")
