"""Arms: the options of a choice, or the cells into which a search space is split.

An arm is the whole search space with some hyperparameters restricted, so hyperparameters outside
the choice belong to every arm. Inside an arm, a suggest function proposes; it sees the trials of
this arm only.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from ConfigSpace import ConfigurationSpace
from hyperopt import Domain, Trials, rand

from automl_plugins.arrays import FloatArray
from automl_plugins.bandits.model_weights import check_rule, model_weights, weights_by_option
from automl_plugins.bandits.policy import weights_from_numbers
from automl_plugins.records.trial import as_number
from automl_plugins.spaces.cells import Cell, check_split, partition
from automl_plugins.spaces.restriction import Domain as Domain_
from automl_plugins.spaces.restriction import Range, domain_of, holds, restrict_space
from automl_plugins.spaces.values import to_values
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams

from ._pyll import (
    Interval,
    Part,
    find_needed,
    find_switched,
    is_draw,
    label_of,
    labels,
    restrict,
)
from .space import PyllSpace, translate
from .suggest import ArmDomain, Place, Suggest, View
from .trials import NOTE, Document, inner_note, note_of, values_of

#: Active hyperparameters of a trial: value by label.
Values = dict[str, Any]
_Drawn = tuple[Values, Mapping[str, Any]] | None  # values, and the note of the suggest function

#: How a space is split: every hyperparameter in so many parts, or only some of them.
Split = int | Mapping[str, int]

#: ``"2^N"``, ``"volume"``, or a number for each option: by its name or index, or in their order.
Weights = str | Mapping[Any, float] | Sequence[float]

_MOST = 1000  # the configurations of an arm that has more are not listed
_REDRAWS = 3  # draws at most until one was not tried before: each costs a whole proposal
_RANDOM_DRAWS = 20  # random draws at most, which are cheap, if the arm cannot be listed
_UNBOUNDED = ("normal", "qnormal", "lognormal", "qlognormal")


@dataclass(frozen=True)
class Arm:
    """A part of the search space, as it is stored with the trials."""

    name: str  # in reports
    parts: Mapping[str, Part]  # the restrictions, by label
    labels: tuple[str, ...]  # of the hyperparameters that remain to be drawn
    size: int | None  # number of its configurations; None if unknown or more than 1000

    @property
    def options(self) -> dict[str, tuple[int, ...]]:
        """The remaining options of the choices it restricts, by label."""
        return {name: part for name, part in self.parts.items() if isinstance(part, tuple)}

    def contains(self, values: Mapping[str, Any]) -> bool:
        """Whether a configuration lies in the arm; False if a restricted label has no value."""
        return all(name in values and values[name] in part for name, part in self.parts.items())

    def inner(self, values: Mapping[str, Any]) -> Values:
        """Translate values of the whole search space to values of the arm's expression."""
        kept = self.options
        given = {name: values[name] for name in self.labels if name in values}
        return {n: kept[n].index(int(v)) if n in kept else v for n, v in given.items()}

    def key(self, values: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
        """Identity of a configuration within the arm."""
        return tuple((name, as_number(values[name])) for name in self.labels if name in values)


@dataclass(frozen=True)
class Arms:
    """All arms of a search space, as they are stored with the trials."""

    arms: tuple[Arm, ...]  # they do not overlap; together they are the space
    choice: str = ""  # label of the choice whose options they are; empty for cells
    notes: tuple[str, ...] = ()  # what was left out or left whole, one sentence each

    def __len__(self) -> int:
        return len(self.arms)

    def find(self, values: Mapping[str, Any]) -> int | None:
        """Index of the arm in which a configuration lies; None if there is no such arm."""
        return next((i for i, arm in enumerate(self.arms) if arm.contains(values)), None)

    def inside(self, number: int, values: Mapping[str, Any]) -> Values | None:
        """Translate values of the whole search space to an arm's; None if they lie outside it."""
        return self.arms[number].inner(values) if self.find(values) == number else None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the arms in reports."""
        return tuple(arm.name for arm in self.arms)

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON keeps unchanged; bounds that are infinite are left out."""
        # With lists for tuples, as a database returns them, so that equal searches compare equal.
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self, dict_factory=_finite)))
        return plain

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Arms:
        """The inverse of ``to_dict``."""
        arms = []
        for arm in data["arms"]:
            parts = {
                label: Interval(**part) if isinstance(part, Mapping) else tuple(part)
                for label, part in arm["parts"].items()
            }
            arms.append(Arm(arm["name"], parts, tuple(arm["labels"]), arm["size"]))
        return cls(tuple(arms), data["choice"], tuple(data["notes"]))


def _finite(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in pairs if value not in (-math.inf, math.inf)}


class ArmSpace:
    """A search space divided into arms, which proposes configurations of them.

    Args:
        known: The search space.
        space: The same as a ``ConfigurationSpace``, without options of probability zero.
        cells: The parts of ``space`` that are the arms.
        choice, notes: See ``Arms``.

    Attributes:
        place: Where the search space lies, if it is an arm itself.
    """

    def __init__(
        self,
        known: PyllSpace,
        space: ConfigurationSpace,
        cells: Iterable[Cell],
        *,
        choice: str = "",
        notes: Sequence[str] = (),
    ) -> None:
        self.known, self.space = known, space
        self.place: Place | None = None
        self.exprs: list[Any] = []
        self._grids: list[tuple[ConfigurationSpace, FloatArray] | None] = []
        self._listed: dict[int, list[Values]] = {}
        self._domains: dict[int, ArmDomain] = {}
        self._views: WeakKeyDictionary[Trials, dict[int, View]] = WeakKeyDictionary()
        arms = []
        for cell in cells:
            parts = {name: _part(known, space, name, d) for name, d in cell.domains.items()}
            expr = restrict(known.expr, parts)
            # Hyperopt draws beyond the translated range of a normal distribution.
            grid = None if unbounded(expr, known) else VectorSpace(cell.space).enumerate(_MOST)
            self.exprs.append(expr)
            self._grids.append(None if grid is None else (cell.space, grid))
            arms.append(Arm(cell.name, parts, labels(expr), None if grid is None else len(grid)))
        self.arms = Arms(tuple(arms), choice, tuple(notes))

    def grid(self, number: int) -> list[Values]:
        """All configurations of an arm, values by label; empty if there are too many."""
        if number not in self._listed:
            grid = self._grids[number]
            listed = [] if grid is None else [*map(self.known.labels, to_values(*grid))]
            self._listed[number] = listed
        return self._listed[number]

    def domain(self, number: int) -> ArmDomain:
        """The domain of a suggest function in an arm, without an objective."""
        if number not in self._domains:
            place = Place(self.known, partial(self.arms.inside, number), self.place)
            self._domains[number] = ArmDomain(self.exprs[number], place)
        return self._domains[number]

    def outer(self, number: int, values: Mapping[str, Any]) -> Values:
        """Translate values of an arm's expression to values of the whole search space."""
        kept = self.arms.arms[number].options
        fixed = {name: part[0] for name, part in kept.items() if len(part) == 1}
        return fixed | {k: kept[k][int(v)] if k in kept else v for k, v in values.items()}

    def view(self, number: int, trials: Trials, documents: Iterable[Document]) -> Trials:
        """The ``documents`` of an arm, as the suggest function inside the arm sees them."""
        arm, params = self.arms.arms[number], self.domain(number).params

        def translate(document: Document) -> Document:
            drawn = arm.inner(values_of(document))
            # Not what an earlier space had: TPE fails with it.
            inner = {name: v for name, v in drawn.items() if is_draw(params[name], v)}
            vals = {name: [inner[name]] if name in inner else [] for name in arm.labels}
            idxs = {name: [document["tid"]] * len(drawn) for name, drawn in vals.items()}
            own = {"idxs": idxs, "vals": vals, NOTE: inner_note(note_of(document))}
            return {**document, "misc": {**document["misc"], **own}}

        views = self._views.setdefault(trials, {})
        if number not in views:
            views[number] = View(trials)
        return views[number].show(documents, translate)

    def propose(
        self,
        number: int,
        tid: int,
        trials: Trials,
        documents: Iterable[Document],
        inner: Suggest,
        streams: Streams,
        tried: Set[Any] = frozenset(),
    ) -> _Drawn:
        """A configuration of an arm, and the note of ``inner`` on it; None if it proposes none.

        If the configuration was ``tried`` before (see ``Arm.key``), ``inner`` draws again a few
        times. Then an untried one is drawn at random: from a list of all if the arm can be listed,
        else from the arm's distributions. If each was tried, the last proposal of ``inner`` is
        returned. The same ``tid`` and trials give the same proposal.
        """
        arm = self.arms.arms[number]
        if not arm.labels:  # Hyperopt has no domain of an option that is a bare constant
            return self.outer(number, {}), {}
        own = self.view(number, trials, documents)

        def draw(suggest: Suggest, stream: str, n: int) -> _Drawn:
            """The first of n proposals not tried before, else the last; None if there is none."""
            found: _Drawn = None
            for attempt in range(n):
                seed = streams.integer(stream, tid, attempt)
                if not (proposed := suggest([tid], self.domain(number), own, seed)):
                    return None
                values = self.outer(number, values_of(proposed[0]))
                found = values, note_of(proposed[0])
                if arm.key(values) not in tried:
                    break
            return found

        found = draw(inner, "inner", _REDRAWS if tried else 1)
        if found is None or arm.key(found[0]) not in tried:
            return found
        untried = [v for v in self.grid(number) if arm.key(v) not in tried]
        if untried:
            return untried[int(streams.generator("untried", tid).integers(len(untried)))], {}
        other = draw(rand.suggest, "untried", _RANDOM_DRAWS)
        return found if other is None or arm.key(other[0]) in tried else other


#: Arm spaces by domain and by the arguments of ``arms_of``: a cache.
_CACHE: WeakKeyDictionary[Domain, dict[Any, ArmSpace]] = WeakKeyDictionary()


def arms_of(
    domain: Domain,
    *,
    label: str | None = None,
    split: Split | None = None,
    max_arms: int = 32,
) -> ArmSpace:
    """The options of a choice (see ``root_choice``), or with ``split`` the cells of the space."""
    made = _CACHE.setdefault(domain, {})
    # With the order of a split: the most important label comes first.
    key = (label, tuple(split.items()) if isinstance(split, Mapping) else split, max_arms)
    if key not in made:
        # Lenient: what ConfigSpace cannot express is not divided, but stays whole in each arm.
        known = translate(domain.expr, lenient=True)
        made[key] = branches(known, label) if split is None else cells(known, split, max_arms)
        made[key].place = domain.place if isinstance(domain, ArmDomain) else None
    return made[key]


def branches(known: PyllSpace, label: str | None = None) -> ArmSpace:
    """An arm for each option of a choice with a probability above zero."""
    choice, space = root_choice(known, label), _possible(known)
    left, found, never = domain_of(space[choice]), [], []
    for name, option in zip(option_names(known, choice), known.options[choice], strict=True):
        if holds(left, option):  # not ``in``, to which 1 and True are the same
            part = restrict_space(space, {choice: (option,)})
            assert part is not None  # no option that is possible is forbidden
            found.append(Cell(name, {choice: (option,)}, part))
        else:
            never.append(name)
    notes = [f"Left out, since their probability is zero: {', '.join(never)}."] if never else []
    return ArmSpace(known, space, found, choice=choice, notes=notes)


def cells(known: PyllSpace, split: Split, max_arms: int) -> ArmSpace:
    """Cells of a search space, see ``automl_plugins.bandits.partition``.

    Normal distributions are not split: Hyperopt has no truncated ones.
    """
    check_split(split, max_arms)
    space, every = _possible(known), labels(known.expr)
    pieces = dict(split) if isinstance(split, Mapping) else dict.fromkeys(every, split)
    if unknown := [name for name in pieces if name not in every]:
        raise ValueError(f"split: no label {unknown[0]!r}; there are {', '.join(every)}.")
    endless = unbounded(known.expr, known)
    whole = [name for name in pieces if name in endless]
    notes = [f"Not split, since they have no bounds: {', '.join(whole)}."] if whole else []
    if never := [name for name in pieces if name not in space]:
        notes.append(f"Not split, since their probability is zero: {', '.join(never)}.")
    fixed = {*whole, *never}
    vary = {n: k for n, k in pieces.items() if n not in fixed and space[n].size > 1}
    try:
        found = partition(space, vary, max_arms=max_arms)
    except ValueError as error:
        raise ValueError(f"split={split!r}: {' '.join([str(error), *notes])}") from None
    return ArmSpace(known, space, found, notes=(*found.notes, *notes))


def unbounded(expr: Any, known: PyllSpace) -> set[str]:
    """Labels of hyperparameters whose range is unbounded, or not known."""
    params = {label_of(node): node.arg["obj"].name for node in find_needed(expr)}
    return {n for n, name in params.items() if name in _UNBOUNDED or n in known.stand_ins}


def _possible(known: PyllSpace) -> ConfigurationSpace:
    """The search space without options of probability zero."""
    left: dict[str, Any] = {}
    for label, options in known.options.items():
        weights = known.space[label].weights  # type: ignore[attr-defined]
        if weights is not None and not all(weights):
            left[label] = tuple(o for o, w in zip(options, weights, strict=True) if w)
    space = restrict_space(known.space, left) if left else known.space
    assert space is not None
    return space


def _part(known: PyllSpace, space: ConfigurationSpace, label: str, domain: Domain_) -> Part:
    """A part of the values of a hyperparameter, as Hyperopt draws them."""
    if label in known.options:
        assert isinstance(domain, tuple)
        options = known.options[label]
        return tuple(i for i, option in enumerate(options) if holds(domain, option))
    whole = domain_of(space[label])
    if isinstance(domain, tuple):  # multiples of q
        assert isinstance(whole, tuple)
        first, after = whole.index(domain[0]), whole.index(domain[-1]) + 1
        below = (whole[first - 1] + whole[first]) / 2 if first else -math.inf
        above = (whole[after - 1] + whole[after]) / 2 if after < len(whole) else math.inf
        return Interval(below, above)
    assert isinstance(whole, Range)
    # Up to where the next part begins, not to the largest number before it.
    low, high = domain.low, domain.high if domain.limit is None else domain.limit
    # Hyperopt rounds what it draws: parts meet half-way between two values.
    if isinstance(domain.low, int):
        low, high = low - 0.5, high + 0.5
    elif q := known.step(label):
        low, high = (_half_below(end, q) for end in (low, high))
    # A value beyond the translated range, as of a user's point, belongs to the outermost part.
    return Interval(
        -math.inf if domain.low == whole.low else low,
        math.inf if domain.high == whole.high else high,
    )


def _half_below(end: float, q: float) -> float:
    """The middle between the first multiple of ``q`` from ``end`` on and the one before it."""
    place = end / q
    # The quotient of a multiple may be rounded up.
    return (math.ceil(place - 2.0 * math.ulp(place)) - 0.5) * q


# --- choices ---------------------------------------------------------------------------------


def option_names(known: PyllSpace, label: str) -> tuple[str, ...]:
    """Names of the options of a choice in reports."""
    texts = [str(option) for option in known.options[label]]
    return tuple(t if texts.count(t) == 1 else f"{label}[{i}]" for i, t in enumerate(texts))


def root_choice(known: PyllSpace, label: str | None = None) -> str:
    """Label of the choice whose options are the arms.

    Without a ``label`` it is the root of the expression. If the root is no choice: of the choices
    made in every configuration, the only one that decides which hyperparameters are active, or
    else the only one. ValueError if there is none, or several.
    """
    always = [name for name in known.options if not known.space.parents_of[name]]
    if label is not None:
        if label in always:
            return label
        listed = ", ".join(map(repr, always)) or "none"
        if label not in known.options:
            raise ValueError(f"No choice has the label {label!r}; there are {listed}.")
        raise ValueError(
            f"The choice {label!r} is not made in every configuration, so its options do not cover"
            f" the search space; those of {listed} do."
        )
    root = find_switched(known.expr)
    if root is not None:
        return root
    deciding = [name for name in always if known.space.children_of[name]]
    for candidates in (deciding, always):
        if len(candidates) == 1:
            return candidates[0]
    if not always:
        raise ValueError(
            "The search space has no choice whose options could be arms: write it as"
            " hp.choice(label, [...]), or split it into cells with boasf(split=2)."
        )
    raise ValueError(
        f"Several choices could be the arms: {', '.join(map(repr, deciding or always))}."
        " Pass label=, one of them."
    )


def option_weights(arms: ArmSpace, weights: Weights) -> FloatArray:
    """The probability (K,) of each arm, where arms are the options of a choice."""
    known, label = arms.known, arms.arms.choice
    drawn = [next(iter(arm.parts[label])) for arm in arms.arms.arms]  # type: ignore[arg-type]
    if not isinstance(weights, str):
        names = option_names(known, label)
        demand = f"weights must have one number for each of the {len(names)} options of {label!r}"
        if not isinstance(weights, Mapping):
            if np.shape(weights) != (len(names),):
                raise ValueError(f"{demand}, got {weights!r}.")
            weights = dict(enumerate(weights))
        indices = range(len(names))
        named = {
            names[int(k)] if k not in names and k in indices else k: w for k, w in weights.items()
        }
        given = weights_by_option(names, named, f"{demand}, by name or index")
        return weights_from_numbers(given[drawn])  # options of probability zero have no arm
    check_rule("weights", weights, "a number for each option")
    by_arm = [unbounded(expr, known) for expr in arms.exprs]
    unequal = {name for found in by_arm for name in found if not all(name in u for u in by_arm)}
    if weights == "volume" and unequal:  # ranges that all options share cancel out
        raise ValueError(
            f"The range of {min(unequal)!r} is unbounded or unknown, so it has no volume: pass"
            " weights='2^N', or a number for each option."
        )
    found = model_weights(arms.space, label, rule=weights)
    return np.array([found[known.options[label][i]] for i in drawn])
