"""A Hyperopt search space in ConfigSpace's language, and its values in both.

===============================  ===============================================================
Hyperopt                         ConfigSpace
===============================  ===============================================================
``choice``, ``pchoice``          categorical, with weights; what is in its options is conditional,
                                 and an option with probability 0 is forbidden
``randint``                      integer
``uniform``, ``loguniform``      float, on a log scale
``normal``                       normal float between two quantiles, 0.0001 and 0.9999
``lognormal``                    float on a log scale between the same quantiles
``quniform``, ``qnormal``,       ``q`` = 1: integer; else an ordinal of all multiples of ``q``, or
``qloguniform``,                 a float where these are more than 1000
``qlognormal``, ``uniformint``
===============================  ===============================================================

Values are those of the labels, as ``fmin`` returns them: what an expression makes of them
afterwards, ``hp.uniform("x", 0, 1) * 10``, is up to the objective.

An option of a choice is called by its value if that is a number, a text, a bool or None. Any other
option has the name that ``Choice.names`` gives it: the text under "type", "name", "model", ...,
else the first text in it; a constant such as ``(64, 32)`` is written out, a function or class
called by its name; and ``label[i]`` is left for what has no name of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from ConfigSpace import ConfigurationSpace, ForbiddenEqualsClause
from ConfigSpace.conditions import InCondition, OrConjunction
from ConfigSpace.hyperparameters import (
    CategoricalHyperparameter,
    Hyperparameter,
    IntegerHyperparameter,
    OrdinalHyperparameter,
    UniformFloatHyperparameter,
)
from hyperopt import Domain, pyll

from automl_plugins.spaces.choices import categorical, one_of
from automl_plugins.spaces.values import find, plain, to_number

from ._pyll import Choice, choices, label_of, labels, needed, switched_by
from ._ranges import depends, hyperparameter_of, shown

FloatArray = npt.NDArray[np.float64]

_PLAIN = (str, int, float, bool, type(None))
_MOST_TEXT = 80  # characters of a constant that is written out

#: Where a hyperparameter is active: under one of these options, by label of the choice; None is
#: everywhere.
_Places = dict[str, set[int]] | None


@dataclass(frozen=True, eq=False)
class PyllSpace:
    """A Hyperopt search space and its translation, see ``translate``.

    Attributes:
        expr: The space, as a pyll expression.
        space: The same in ConfigSpace's language.
        options: Names of the options of each choice, by label.
        stand_ins: Labels of what ConfigSpace cannot express, for which a number stands in.

    Example::

        print(translate(space).space)  # the ConfigurationSpace
    """

    expr: Any
    space: ConfigurationSpace
    options: Mapping[str, tuple[Any, ...]]
    stand_ins: frozenset[str] = frozenset()

    @cached_property
    def domain(self) -> Domain:
        """What suggest functions are shown; the objective is not part of it."""
        return Domain(None, self.expr, pass_expr_memo_ctrl=False)

    def values(self, drawn: Mapping[str, Any]) -> dict[str, Any]:
        """Values by name from what a trial has drawn by label; inactive labels are absent.

        Raises:
            ValueError: For a label, or an option, that the space does not have.
        """
        if foreign := [label for label in drawn if label not in self.space]:
            raise ValueError(
                f"The trial has the label {foreign[0]!r}; the search space has"
                f" {', '.join(self.space)}. Pass the space of these trials."
            )
        return {label: self._value(label, value) for label, value in drawn.items()}

    def _value(self, label: str, drawn: Any) -> Any:
        hyperparameter = self.space[label]
        if label in self.options:
            names = self.options[label]
            if not 0 <= int(drawn) < len(names):
                raise ValueError(
                    f"The trial has option {int(drawn)} of {label!r}, which has {len(names)}"
                    " options. Pass the space of these trials."
                )
            return names[int(drawn)]
        if isinstance(hyperparameter, OrdinalHyperparameter):
            return min(hyperparameter.sequence, key=lambda v: abs(v - drawn))
        if isinstance(hyperparameter, IntegerHyperparameter):
            return round(drawn)
        return float(drawn)

    def labels(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """What a trial with these values would have drawn, by label; the way back.

        Labels that ``values`` does not name are left out, and what is below them.

        Raises:
            ValueError: For a value that is no option of a choice.
        """
        drawn = {
            label: self._drawn(label, values[label]) for label in self.space if label in values
        }
        return self._active(drawn)

    def labels_of(self, vector: FloatArray) -> dict[str, Any]:
        """What a trial with the values of a vector (d,) would have drawn, by label."""
        drawn: dict[str, Any] = {}
        for label, entry in zip(self.space.at, vector.tolist(), strict=True):
            if not math.isnan(entry):
                hyperparameter = self.space[label]
                drawn[label] = (
                    round(entry)
                    if label in self.options
                    else self._number(label, hyperparameter.to_value(entry))
                )
        return self._active(drawn)

    def _active(self, drawn: Mapping[str, Any]) -> dict[str, Any]:
        """What is drawn where it is needed, parents first."""
        needs = {label_of(node) for node in needed(self.expr, drawn)}
        return {
            label: drawn[label] for label in self.space.at if label in drawn and label in needs
        }

    def _drawn(self, label: str, value: Any) -> Any:
        if label not in self.options:
            if math.isnan(number := to_number(value)):
                raise ValueError(f"{label}={value!r} is no number, as {self.space[label]} has.")
            return self._number(label, value if isinstance(value, int) else number)
        index = find(self.options[label], value)
        if index is None:
            raise ValueError(
                f"{value!r} is no option of {label!r}; its options are called"
                f" {', '.join(map(repr, self.options[label]))}."
            )
        return index

    def _number(self, label: str, value: Any) -> Any:
        if self.domain.params[label].name == "randint":
            return int(value)
        if q := self.step(label):
            return float(round(value / q) * q)  # more than 1000 multiples are a range in ``space``
        return float(value)

    def step(self, label: str) -> float | None:
        """The ``q`` of a hyperparameter; None where it has none."""
        q = self.domain.params[label].arg.get("q")
        return pyll.rec_eval(q) if isinstance(q, pyll.Apply) else None


def translate(space: Any, *, lenient: bool = False) -> PyllSpace:
    """A Hyperopt search space as a ``ConfigurationSpace``, conditions included.

    Args:
        space: Anything that ``fmin`` takes for one.
        lenient: Whether a number in [0, 1] stands in for what ConfigSpace cannot express.

    Raises:
        ValueError: For what ConfigSpace cannot express, naming the expression: a range that
            depends on another hyperparameter, a switch that is no ``hp.choice``.
    """
    expr = pyll.as_apply(space)
    stand_ins = _below_foreign_switches(expr, refuse=not lenient)
    params, places = _places(expr)
    found = {label: c for label, c in choices(expr).items() if label not in stand_ins}
    options = {label: option_names(choice) for label, choice in found.items()}
    hyperparameters: list[Hyperparameter[Any, Any]] = []
    for label, node in params.items():
        try:
            hyperparameters.append(
                UniformFloatHyperparameter(label, 0.0, 1.0)
                if label in stand_ins
                else _categorical(found[label], options[label])
                if label in found
                else hyperparameter_of(label, node.arg["obj"])
            )
        except ValueError:
            if not lenient:
                raise
            stand_ins.add(label)
            hyperparameters.append(UniformFloatHyperparameter(label, 0.0, 1.0))
    translated = ConfigurationSpace()
    translated.add(hyperparameters)
    for label, where in places.items():
        where = None if where and set(where) & stand_ins else _simplified(where, places, found)
        if where is not None:
            translated.add(_condition(translated, label, where, options))
    for label, choice in found.items():
        for i in set(range(choice.n_options)) - set(choice.possible):
            translated.add(ForbiddenEqualsClause(translated[label], options[label][i]))
    return PyllSpace(expr, translated, options, frozenset(stand_ins))


def is_space(thing: Any) -> bool:
    """Whether something is a Hyperopt search space: an expression with hyperparameters."""
    try:
        expr = pyll.as_apply(thing)
    except Exception:  # whatever pyll thinks of a foreign object
        return False
    return any(node.name == "hyperopt_param" for node in pyll.dfs(expr))


# --- options ---------------------------------------------------------------------------------


def option_names(choice: Choice) -> tuple[Any, ...]:
    """What the options of a choice are called; no two are equal."""
    options = choice.switches[0].pos_args[1:]
    names: list[Any] = []
    for option, text in zip(options, choice.names(), strict=True):
        names.append(_own_value(option, text, f"{choice.label}[{len(names)}]"))
    # 1 and True, or the same twice: arms tell options by equality.
    repeated = [i for i, name in enumerate(names) if names.count(name) > 1]
    for i in repeated:
        names[i] = f"{choice.label}[{i}]"
        while names.count(names[i]) > 1:  # another option is a text like that
            names[i] += "'"
    return tuple(names)


def _own_value(option: Any, text: str, unnamed: str) -> Any:
    if option.name == "literal":
        value = plain(option.obj)
        if isinstance(value, _PLAIN) and value == value:
            return value
        return getattr(value, "__qualname__", text)
    if text != unnamed or any(node.name == "hyperopt_param" for node in pyll.dfs(option)):
        return text
    try:
        written = repr(pyll.rec_eval(option))
    except Exception:  # the user's own nodes may raise anything
        return text
    return written if len(written) <= _MOST_TEXT and " at 0x" not in written else text


# --- conditions ------------------------------------------------------------------------------


def _below_foreign_switches(expr: Any, *, refuse: bool) -> set[str]:
    """Labels below switches that are no ``hp.choice``.

    Raises:
        ValueError: If there is such a switch and ``refuse`` is set.
    """
    found: set[str] = set()
    for node in pyll.dfs(expr):
        if node.name == "switch" and switched_by(node) is None and depends(node.pos_args[0]):
            if refuse:
                raise ValueError(
                    f"Which option is taken depends on an expression, {shown(node.pos_args[0])}:"
                    " write it as hp.choice or hp.pchoice."
                )
            found.update(name for option in node.pos_args[1:] for name in labels(option))
    return found


def _places(expr: Any) -> tuple[dict[str, Any], dict[str, _Places]]:
    """The ``hyperopt_param`` nodes by label, outer ones first, and where each is active.

    Raises:
        ValueError: For two hyperparameters with one label.
    """
    params: dict[str, Any] = {}
    places: dict[str, _Places] = {}
    for node, under in _walk(expr):
        if node.name != "hyperopt_param":
            continue
        label = label_of(node)
        if params.setdefault(label, node) is not node:
            raise ValueError(
                f"Two hyperparameters have the label {label!r}: give them labels of their own."
            )
        places.setdefault(label, {})
        known = places[label]
        if under is None or known is None:
            places[label] = None
        else:
            known.setdefault(under[0], set()).add(under[1])
    return params, places


def _walk(expr: Any) -> Iterator[tuple[Any, tuple[str, int] | None]]:
    """Nodes, parents first, each with the nearest option that it is under, once for each."""
    stack: list[tuple[Any, tuple[str, int] | None]] = [(expr, None)]
    seen = set()
    while stack:
        node, under = stack.pop()
        if (node, under) in seen:
            continue
        seen.add((node, under))
        yield node, under
        label = switched_by(node)
        below: list[tuple[Any, tuple[str, int] | None]]
        if label is None:
            below = [(child, under) for child in node.inputs()]
        else:
            below = [(node.pos_args[0], under)]
            below += [(option, (label, i)) for i, option in enumerate(node.pos_args[1:])]
        stack.extend(reversed(below))


def _simplified(
    where: _Places, places: Mapping[str, _Places], found: Mapping[str, Choice]
) -> _Places:
    """The same without choices of which every option counts: these stand for where they are."""
    while where is not None:
        whole = next((p for p in where if where[p] >= set(found[p].possible)), None)
        if whole is None:
            return where
        above = places[whole]
        if above is None:
            return None
        rest = {p: set(indices) for p, indices in where.items() if p != whole}
        for parent, indices in above.items():
            rest.setdefault(parent, set()).update(indices)
        where = rest
    return None


def _condition(
    space: ConfigurationSpace,
    label: str,
    where: Mapping[str, set[int]],
    options: Mapping[str, tuple[Any, ...]],
) -> InCondition | OrConjunction:
    parts = [
        one_of(space[label], space[parent], [options[parent][i] for i in sorted(indices)])
        for parent, indices in where.items()
    ]
    return parts[0] if len(parts) == 1 else OrConjunction(*parts)


def _categorical(choice: Choice, names: Sequence[Any]) -> CategoricalHyperparameter:
    return categorical(choice.label, names, weights=choice.probabilities)
