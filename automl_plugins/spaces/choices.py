"""Choices as hyperparameters that lose nothing.

ConfigSpace compares choices with ``==``, for which 1 is True, and keeps them in an array, which
cuts and converts some. ``categorical`` and ``ordinal`` return a hyperparameter that compares them
with ``same`` where that matters: for ``[1, True]``, ``[nan, 1]`` or ``[2**60, 0.5]``. A choice
that is listed twice is found at its first place.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeVar

import numpy as np
from ConfigSpace import ConfigurationSpace
from ConfigSpace.conditions import InCondition
from ConfigSpace.hyperparameters import (
    CategoricalHyperparameter,
    Hyperparameter,
    OrdinalHyperparameter,
)
from ConfigSpace.hyperparameters.hp_components import TransformerSeq
from ConfigSpace.types import NotSet

from automl_plugins.arrays import BoolArray, FloatArray
from automl_plugins.spaces import ranges
from automl_plugins.spaces.values import are_identical, index_of, numbers_of, plain

H = TypeVar("H", CategoricalHyperparameter, OrdinalHyperparameter)


def categorical(
    name: str,
    choices: Sequence[Any],
    *,
    weights: Sequence[float] | None = None,
    default: Any = NotSet,
    meta: Mapping[Hashable, Any] | None = None,
) -> CategoricalHyperparameter:
    """An unordered choice; ConfigSpace's own class where it is exact."""
    options = {"default_value": default, "weights": weights, "meta": meta}
    return _make(CategoricalHyperparameter, ExactCategorical, name, choices, options)


def ordinal(
    name: str,
    values: Sequence[Any],
    *,
    default: Any = NotSet,
    meta: Mapping[Hashable, Any] | None = None,
) -> OrdinalHyperparameter:
    """An ordered choice; ConfigSpace's own class where it is exact."""
    options = {"default_value": default, "meta": meta}
    return _make(OrdinalHyperparameter, ExactOrdinal, name, values, options)


def unordered(
    name: str, choices: Sequence[Any], *, weights: Sequence[float] | None = None
) -> CategoricalHyperparameter:
    """An unordered choice whose default is that of ``usual_place``, else ConfigSpace's own.

    For frameworks without defaults, see ``ordered``. With weights it is the most probable choice,
    as ConfigSpace has it.
    """
    place = usual_place(choices) if weights is None else None
    default = NotSet if place is None else choices[place]
    return categorical(name, choices, weights=weights, default=default)


def usual_place(choices: Sequence[Any]) -> int | None:
    """The place of the usual choice among numbers; None without two choices of that kind.

    It is None, or a -1 beside positive numbers: with these libraries set no limit, as they do by
    default. Without one it is the middle number, as of a range.
    """
    numbers = numbers_of(choices)
    known = np.flatnonzero(~np.isnan(numbers))
    no_limit = [i for i, choice in enumerate(choices) if choice is None]
    if not no_limit and np.count_nonzero(numbers <= 0.0) == 1:
        no_limit = np.flatnonzero(numbers == -1.0).tolist()
    if len(known) + len(no_limit) < 2 or not len(known):
        return None
    return no_limit[0] if no_limit else int(np.argsort(numbers)[(len(known) - 1) // 2])


def ordered(name: str, values: Sequence[Any]) -> OrdinalHyperparameter:
    """An ordered choice with the middle value as its default, as in a range.

    For frameworks without defaults. Runs of a memory that lack the parameter get its default;
    ConfigSpace's own would be the first value.
    """
    return ordinal(name, values, default=values[(len(values) - 1) // 2])


def _make(
    own: Callable[..., H],
    exact: Callable[..., H],
    name: str,
    choices: Sequence[Any],
    options: Mapping[str, Any],
) -> H:
    try:
        # Preferred: a space of ConfigSpace's own classes can be read without our decoders.
        found = own(name, list(choices), **options)
        # The own class is exact if it finds each choice at its own place. ``to_vector`` raises
        # KeyError for illegal values.
        places = [found.to_vector(c) if found.legal_value(c) else None for c in choices]
        if places == [*range(len(choices))]:
            return found
    except (TypeError, ValueError):  # for 1 and True, or a default of NaN
        pass
    return exact(name, choices, **options)


class _Places(TransformerSeq):
    """Choices by index."""

    def __init__(self, choices: Sequence[Any]) -> None:
        # As a list: ConfigSpace returns its items one by one, even if they are lists.
        super().__init__(seq=list(choices))
        self._lookup = None  # ConfigSpace's dictionary, which compares by ``==``
        self._choices = list(choices)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Places) and are_identical(self._choices, other._choices)

    __hash__ = None  # type: ignore[assignment]

    def to_vector(self, value: Any) -> FloatArray:
        places = [index_of(self._choices, item) for item in value]
        if None in places:
            raise ValueError(f"{value[places.index(None)]!r} is not one of {self._choices}.")
        return np.array(places, dtype=np.float64)

    def legal_value(self, value: Any) -> BoolArray:
        return np.array([index_of(self._choices, item) is not None for item in value], np.bool_)

    def legal_value_single(self, value: Any) -> bool:
        return index_of(self._choices, value) is not None


class _Exact:
    """Values are compared with ``same`` and never put into an array."""

    _attribute: ClassVar[str]  # ConfigSpace's name of the attribute for the choices
    name: str
    default_value: Any
    weights: tuple[float, ...] | None = None
    _transformer: Any
    _contains_sequence_as_value: bool

    def __init__(
        self, name: str, choices: Sequence[Any], *, default_value: Any = NotSet, **options: Any
    ) -> None:
        if default_value is not NotSet:
            default_value = index_of(choices, default_value)  # ConfigSpace refuses None, no index
        # Indices stand in for the choices, which ConfigSpace would compare and put into an array.
        indices: Any = range(len(choices))
        super().__init__(name, indices, default_value=default_value, **options)  # type: ignore[call-arg]
        known = tuple(plain(choice) for choice in choices)
        setattr(self, self._attribute, known)  # in the place of the indices
        # The default that ConfigSpace has found is an index.
        self.default_value = known[self.default_value]
        self._transformer = _Places(known)
        self._contains_sequence_as_value = any(_is_sequence(choice) for choice in known)

    def _is_several(self, value: Any) -> bool:
        # As in ConfigSpace: a list is one value if choices are lists, else several.
        return isinstance(value, np.ndarray) or (
            _is_sequence(value) and not self._contains_sequence_as_value
        )

    def to_vector(self, value: Any) -> Any:
        """See ConfigSpace."""
        if self._is_several(value):
            return self._transformer.to_vector(value)
        return self._transformer.to_vector([value])[0]

    def legal_value(self, value: Any) -> Any:
        """See ConfigSpace."""
        if self._is_several(value):
            return self._transformer.legal_value(value)
        return self._transformer.legal_value_single(value)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Exact)
            and type(other) is type(self)
            and (other.name, other.weights) == (self.name, self.weights)
            and bool(other._transformer == self._transformer)
        )

    def __hash__(self) -> int:
        return hash((self.name, type(self)))  # choices may be lists


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


# ``_Exact`` stands first, so that its methods replace those of ConfigSpace.
class ExactCategorical(_Exact, CategoricalHyperparameter):
    """An unordered choice among any values, see ``categorical``."""

    _attribute = "choices"


class ExactOrdinal(_Exact, OrdinalHyperparameter):
    """An ordered choice among any values, see ``ordinal``."""

    _attribute = "sequence"


class ExactIn(InCondition):
    """A condition on an ``ExactCategorical`` or ``ExactOrdinal``, see ``one_of``."""

    def __eq__(self, other: object) -> bool:
        same_child = isinstance(other, ExactIn) and self.child == other.child
        return same_child and self.equivalent_condition_on_parent(other)

    __hash__ = None  # type: ignore[assignment]

    def equivalent_condition_on_parent(self, other: Any) -> bool:
        """See ConfigSpace, which takes conditions on 1 and on True for the same."""
        return (
            isinstance(other, ExactIn)
            # Indices, which differ for 1 and True.
            and self.vector_values == other.vector_values
            and (self.parent is other.parent or self.parent == other.parent)
        )

    def satisfied_by_value(self, values: dict[str, Any]) -> bool:
        """See ConfigSpace; an inactive parent has no value."""
        value = values[self.parent.name]
        # By index: ``value in self.values`` would take True for 1.
        return value is not NotSet and bool(self.parent.to_vector(value) in self.vector_values)


class QuickIn(InCondition):
    """A condition that is compared quickly: by its values before its parent.

    ConfigSpace compares each condition of a space with all others, first their parents, choice by
    choice: the conditions of 100 branches would take seconds. It cannot serialise this class.
    """

    def equivalent_condition_on_parent(self, other: Any) -> bool:
        """See ConfigSpace, which finds the same."""
        return (
            isinstance(other, QuickIn)
            and self.value == other.value
            and (self.parent is other.parent or self.parent == other.parent)
        )


def one_of(
    child: Hyperparameter[Any, Any],
    parent: Hyperparameter[Any, Any],
    values: Sequence[Any],
    *,
    quick: bool = False,
) -> InCondition:
    """The condition that ``parent`` has one of some values.

    ``quick`` is for spaces that are made often and never written, see ``QuickIn``.
    """
    kind = ExactIn if isinstance(parent, _Exact) else QuickIn if quick else InCondition
    return kind(child, parent, list(values))


# --- written down ----------------------------------------------------------------------------


def _encode(hyperparameter: ExactCategorical | ExactOrdinal, _: Any) -> dict[str, Any]:
    choices = list(getattr(hyperparameter, hyperparameter._attribute))
    item: dict[str, Any] = {"name": hyperparameter.name, hyperparameter._attribute: choices}
    if isinstance(hyperparameter, ExactCategorical):
        item["weights"] = hyperparameter.weights and list(hyperparameter.weights)
    # Only an unusual default is written: stores have the text of other spaces, and its digest.
    own, usual = (index_of(choices, hp.default_value) for hp in (hyperparameter, _decode(item)))
    return item if own in (None, usual) else item | {"default_value": own}


def _decode(item: dict[str, Any], *_: Any) -> CategoricalHyperparameter | OrdinalHyperparameter:
    place, is_ordinal = item.get("default_value"), "sequence" in item
    choices = item["sequence" if is_ordinal else "choices"]
    default = NotSet if place is None else choices[place]
    if is_ordinal:
        return ordinal(item["name"], choices, default=default)
    return categorical(item["name"], choices, weights=item["weights"], default=default)


def _encode_condition(condition: ExactIn, _: Any) -> dict[str, Any]:
    child, parent, values = condition.child, condition.parent, condition.values
    return {"child": child.name, "parent": parent.name, "values": list(values)}


def _decode_condition(item: dict[str, Any], space: ConfigurationSpace, *_: Any) -> InCondition:
    return one_of(space[item["child"]], space[item["parent"]], item["values"])


#: For ``ConfigurationSpace.to_serialized_dict`` and ``from_serialized_dict``: all of our classes.
ENCODERS: Final[Any] = {
    ExactIn: ("EXACT_IN", _encode_condition),
    **ranges.ENCODERS,
    ExactCategorical: ("exact_categorical", _encode),
    ExactOrdinal: ("exact_ordinal", _encode),
}
DECODERS: Final[Any] = {
    "hyperparameters": {
        **ranges.DECODERS["hyperparameters"],
        "exact_categorical": _decode,
        "exact_ordinal": _decode,
    },
    "conditions": {"EXACT_IN": _decode_condition},
}
