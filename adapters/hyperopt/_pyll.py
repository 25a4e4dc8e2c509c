"""Hyperopt's expressions: their nodes, restricted copies, and expressions of ConfigSpace spaces.

============================  ==================================================================
ConfigSpace                   Hyperopt
============================  ==================================================================
categorical                   ``hp.choice``, with weights ``hp.pchoice``, of the values; of dicts
                              if others are active under some of them only
ordinal                       the index, ``hp.quniform``
float                         ``hp.uniform``, ``hp.loguniform``
integer                       ``hp.quniform``, ``hp.qloguniform``, all values equally likely
normal, normal integer        ``hp.normal``, ``hp.qnormal``, clipped to the bounds; like a float
                              or an integer if these cut off more than 5 %, or on a log scale
beta, beta integer            like a float or an integer
constant                      its value
============================  ==================================================================

Integers and ordinals are not ``hp.randint``: TPE treats its values as unordered categories.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ConfigSpace import ConfigurationSpace
from ConfigSpace.hyperparameters import (
    CategoricalHyperparameter,
    Constant,
    IntegerHyperparameter,
    NormalFloatHyperparameter,
    NormalIntegerHyperparameter,
    OrdinalHyperparameter,
)
from hyperopt import hp, pyll

from automl_plugins._arguments import check_kind
from automl_plugins.records.trial import as_number
from automl_plugins.spaces.branches import options_of
from automl_plugins.spaces.conditions import is_active
from automl_plugins.spaces.values import plain

#: Keys whose value names an option that is a dict, in order of preference.
_NAMING = ("type", "name", "model", "algorithm", "classifier", "estimator", "kind")
_PLAIN = (str, int, float, bool, type(None))
_MOST_TEXT = 80  # characters of a constant that is written out
_HALF = 0.49999  # a rounding interval, open at both ends
# A proposer may take the very end of a range, which belongs to the next part, or is rounded into
# it: the range of a part keeps away from the others by these shares of its width, or of ``q``.
_INSIDE, _INSIDE_STEP = 1e-9, 1e-6


#: The options under which a hyperparameter is active, by label of the choice; empty if always.
Places = dict[str, set[int]]


# --- nodes -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Choice:
    """An ``hp.choice``, ``hp.pchoice`` or switch on ``hp.randint``: its label and that node."""

    label: str
    switch: Any

    @property
    def options(self) -> Sequence[Any]:
        """The nodes that it switches between."""
        return self.switch.pos_args[1:]  # type: ignore[no-any-return]

    @property
    def probabilities(self) -> tuple[float, ...] | None:
        """Of the options of an ``hp.pchoice``; None if all are equally likely."""
        distribution = index_param(self.switch).arg["obj"]
        if distribution.name == "categorical":
            return tuple(float(p) for p in pyll.rec_eval(distribution.arg["p"]))
        first, end = ends_of(distribution) or (0, len(self.options))
        if end - first == len(self.options):
            return None
        return tuple(float(first <= i < end) / (end - first) for i in range(len(self.options)))

    @property
    def possible(self) -> tuple[int, ...]:
        """Indices of the options whose probability is not zero."""
        p = self.probabilities
        return tuple(i for i in range(len(self.options)) if p is None or p[i] > 0)

    def names(self) -> tuple[Any, ...]:
        """Names of the options, see ``space``; no two are equal."""
        texts = [_text_in(option) for option in self.options]
        numbered = [f"{self.label}[{i}]" for i in range(len(texts))]
        names = [
            _name(option, text if texts.count(text) == 1 else None, unnamed)
            for option, text, unnamed in zip(self.options, texts, numbered, strict=True)
        ]
        # Equal names, such as 1 and True: arms distinguish options by equality.
        repeated = [i for i, name in enumerate(names) if names.count(name) > 1]
        for i in repeated:
            names[i] = numbered[i]
            while names.count(names[i]) > 1:  # another option has the same text
                names[i] += "'"
        return tuple(names)


def choices(expr: Any) -> dict[str, Choice]:
    """All choices by label, outer ones before those in their options."""
    found: dict[str, Choice] = {}
    for node in nodes(expr):
        if (label := find_switched(node)) is not None:
            # An ``hp.randint`` may be the index of several switches: the longest has all options.
            each = (found.get(label), Choice(label, node))
            found[label] = max(filter(None, each), key=lambda choice: len(choice.options))
    return found


def labels(expr: Any, values: Mapping[str, Any] | None = None) -> tuple[str, ...]:
    """Labels of the hyperparameters of an expression among ``nodes``, outer ones first."""
    return tuple(dict.fromkeys(label_of(node) for node in find_needed(expr, values)))


def active_among(values: Mapping[str, Any], expr: Any) -> dict[str, Any]:
    """Those of values by label that a configuration of an expression needs."""
    active = labels(expr, values)
    return {label: value for label, value in values.items() if label in active}


def label_of(param: Any) -> str:
    """Label of a ``hyperopt_param`` node."""
    return str(param.arg["label"].obj)


def find_switched(node: Any) -> str | None:
    """Label of the choice that a node switches on; None for any other node."""
    if node.name != "switch" or (param := index_param(node)) is None:
        return None
    distribution = param.arg["obj"]
    if distribution.name == "randint":
        ends = ends_of(distribution)
        if ends is None or not 0 <= ends[0] < ends[1] < len(node.pos_args):
            return None
    return label_of(param) if distribution.name in ("randint", "categorical") else None


def index_param(switch: Any) -> Any:
    """The ``hyperopt_param`` that is the index of a switch; None for any other expression."""
    index = switch.pos_args[0]
    while index.name == "int":  # Hyperopt wraps ``hp.randint``
        index = index.pos_args[0]
    return index if index.name == "hyperopt_param" else None


def ends_of(randint: Any) -> tuple[int, int] | None:
    """The first value and the end of a ``randint``; None if they depend on hyperparameters."""
    if depends(randint):
        return None
    low, high = constant(randint, "low"), constant(randint, "high")
    return (0, int(low)) if high is None else (int(low), int(high))  # ``randint`` of one number


def nodes(expr: Any, values: Mapping[str, Any] | None = None) -> Iterator[Any]:
    """Nodes of an expression, each once, parents first.

    With ``values`` by label only those that such a configuration needs; options of a choice
    without a value are left out.
    """
    stack, seen = [expr], set()
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        yield node
        inputs = node.inputs()
        if values is not None and (label := find_switched(node)) is not None:
            # The first input of a switch is its index, the others are its options.
            inputs, chosen = [inputs[0]], as_number(values.get(label))
            if 0 <= chosen < len(node.pos_args) - 1:
                inputs.append(node.pos_args[1 + int(chosen)])
        stack.extend(reversed(inputs))


def find_needed(expr: Any, values: Mapping[str, Any] | None = None) -> Iterator[Any]:
    """The ``hyperopt_param`` nodes among ``nodes``."""
    return (node for node in nodes(expr, values) if node.name == "hyperopt_param")


def depends(expr: Any) -> bool:
    """Whether the value of an expression depends on hyperparameters."""
    return next(find_needed(expr), None) is not None


def constant(distribution: Any, name: str) -> Any:
    """An argument of a distribution, evaluated; None if it is not given."""
    argument = distribution.arg.get(name)
    if isinstance(argument, pyll.Literal):
        return argument.obj
    return pyll.rec_eval(argument) if isinstance(argument, pyll.Apply) else None


def describe(node: Any) -> str:
    """An expression in one line."""
    if node.name == "literal":
        return repr(node.obj)
    if node.name == "hyperopt_param":
        return f"{node.arg['obj'].name}({label_of(node)!r})"
    return f"{node.name}({', '.join(map(describe, node.inputs()))})"


# --- conditions ------------------------------------------------------------------------------


def foreign_switches(expr: Any) -> list[Any]:
    """Switches that are no ``Choice`` and whose option depends on hyperparameters."""
    switches = (node for node in pyll.dfs(expr) if node.name == "switch")
    return [n for n in switches if find_switched(n) is None and depends(n.pos_args[0])]


def places_of(expr: Any) -> tuple[dict[str, Any], dict[str, Places]]:
    """The ``hyperopt_param`` nodes by label, outer ones first, and where each is active.

    ValueError for two hyperparameters with the same label.
    """
    params: dict[str, Any] = {}
    places: dict[str, Places] = {}
    for node in nodes(expr):
        if node.name == "hyperopt_param":
            if params.setdefault(label := label_of(node), node) is not node:
                raise ValueError(
                    f"Two hyperparameters have the label {label!r}: give them different labels."
                )
        elif (switched := find_switched(node)) is not None:
            for i, option in enumerate(node.pos_args[1:]):
                for param in find_needed(option, {}):
                    places.setdefault(label_of(param), {}).setdefault(switched, set()).add(i)
    always = set(labels(expr, {}))
    return params, {label: {} if label in always else places[label] for label in params}


def simplify(where: Places, places: Mapping[str, Places], found: Mapping[str, Choice]) -> Places:
    """Replace a choice of which every option counts by the places where it is active itself."""
    while True:
        whole = next((p for p in where if where[p] >= set(found[p].possible)), None)
        if whole is None:
            return where
        if not places[whole]:
            return {}
        rest = {p: set(indices) for p, indices in where.items() if p != whole}
        for parent, indices in places[whole].items():
            rest.setdefault(parent, set()).update(indices)
        where = rest


# --- names of options ------------------------------------------------------------------------


def _text_in(option: Any) -> str | None:
    """A text in an option that may distinguish it from the others."""
    if option.name == "literal":
        return str(option.obj) if isinstance(option.obj, str | int | float | bool) else None
    if option.name == "dict":
        named = dict(option.named_args)
        inputs = [named[key] for key in _NAMING if key in named] + list(named.values())
    elif option.name == "pos_args":
        inputs = option.pos_args
    else:
        return None
    texts = (node.obj for node in inputs if node.name == "literal" and isinstance(node.obj, str))
    return next(texts, None)


def _name(option: Any, text: str | None, unnamed: str) -> Any:
    named = unnamed if text is None else text
    if option.name == "literal":
        value = plain(option.obj)
        if isinstance(value, _PLAIN) and value == value:
            return value
        return getattr(value, "__qualname__", named)
    if named != unnamed or depends(option):
        return named
    try:
        written = repr(pyll.rec_eval(option))
    except Exception:  # the user's own nodes may raise anything
        return unnamed
    return written if len(written) <= _MOST_TEXT and " at 0x" not in written else unnamed


# --- parts -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Interval:
    """Numbers in [low, high); a bound is infinite at the end of the whole range.

    What is no number, as a user's point may have, lies in none.
    """

    low: float
    high: float

    def __contains__(self, value: Any) -> bool:
        return self.low <= as_number(value) < self.high


#: A part of the values of a hyperparameter: numbers, or indices of the options of a choice.
Part = Interval | tuple[int, ...]


def restrict(expr: Any, parts: Mapping[str, Part]) -> Any:
    """A copy of an expression whose hyperparameters are drawn from parts of their values.

    The remaining options of a choice are numbered from 0. A choice with one option left is
    replaced by that option, without its label.
    """
    new: dict[Any, Any] = {}
    indices: dict[str, Any] = {}  # of the choices that are restricted, by label
    for node in pyll.dfs(expr):
        switched = find_switched(node)
        kept = None if switched is None else parts.get(switched)  # "" is a label like any other
        if isinstance(kept, tuple):
            options = [new[node.pos_args[1 + i]] for i in kept]
            switch = pyll.scope.switch(indices[str(switched)], *options)
            new[node] = switch if len(kept) > 1 else options[0]
        elif node.name == "hyperopt_param" and (label := label_of(node)) in parts:
            part = parts[label]
            new[node] = indices[label] = _restrict_param(node, part)
            if isinstance(part, tuple) and len(part) > 1:
                # For what else uses an ``hp.randint``, where the numbers have a meaning.
                new[node] = pyll.scope.switch(new[node], *part)
        else:
            new[node] = node.clone_from_inputs([new[i] for i in node.inputs()])
    return new[expr]


def _restrict_param(param: Any, part: Part) -> Any:
    node, label = param.arg["obj"], label_of(param)
    if isinstance(part, tuple):
        if len(part) == 1:
            return pyll.Literal(part[0])
        drawn = pyll.scope.randint(len(part))
        if node.name == "categorical":
            p = pyll.rec_eval(node.arg["p"])
            total = sum(p[i] for i in part)
            drawn = pyll.scope.categorical(tuple(float(p[i] / total) for i in part))
        return pyll.scope.hyperopt_param(label, drawn)
    low, high = part.low, part.high
    if node.name == "randint":
        whole = ends_of(node)
        assert whole is not None  # a range that is not constant is no part of a space
        ends = [math.ceil(end) for end in (max(whole[0], low), min(whole[1], high))]
    else:
        first, last, q = (constant(node, name) for name in ("low", "high", "q"))
        if q is not None:  # the ends lie between multiples
            low, high = low + _INSIDE_STEP * q, high - _INSIDE_STEP * q
        if node.name in ("loguniform", "qloguniform"):
            low, high = (x if math.isinf(x) else math.log(x) for x in (low, high))
        if q is None:
            margin = _INSIDE * (min(last, high) - max(first, low))
            low, high = low + margin, high - margin
        ends = [max(first, low), min(last, high)] + ([] if q is None else [q])
    return pyll.scope.hyperopt_param(label, getattr(pyll.scope, node.name)(*ends))


# --- of a ConfigSpace space ------------------------------------------------------------------


def expression(space: ConfigurationSpace) -> dict[str, Any]:
    """A Hyperopt search space: nodes by the name of the hyperparameter, which is the label.

    A hyperparameter whose only parent is categorical is nested in the parent's options: the
    objective gets ``{"kernel": {"kernel": "rbf", "gamma": 0.1}}``. Hyperopt cannot nest by numbers
    or by several parents: such a hyperparameter is a node of the first level, drawn every time. So
    is one that needs a conditional parent not to have a value: it is active without the parent.
    Forbidden clauses are lost. ``translate`` goes back, but for what is lost, and values with
    nested ones that are not text: they are numbered.

    Args:
        space: The space to search.

    Raises:
        TypeError: For anything but a ``ConfigurationSpace``.

    Example::

        space = expression(ConfigurationSpace({"C": (0.01, 100.0), "kernel": ["rbf", "linear"]}))
        fmin(lambda c: c["C"] if c["kernel"] == "rbf" else 50.0, space, algo=gbqr, max_evals=60)
    """
    check_kind("expression", space, ConfigurationSpace, "a ConfigurationSpace")
    first: dict[str, Any] = {}
    options: dict[str, list[dict[str, Any]]] = {  # by categorical: the nodes under each value
        name: [{} for _ in parent.choices]
        for name, parent in space.items()
        if isinstance(parent, CategoricalHyperparameter)
    }
    for name in reversed(list(space.at)):  # children first
        node = _node(space[name], options.get(name, []))
        parents = {parent.name for parent in space.parents_of[name]}
        only = parents.pop() if len(parents) == 1 else None
        # "Not equal" also holds where the parent itself is not drawn, and nothing nested in it.
        hidden = only is not None and space.parents_of[only] and is_active(space, name, {})
        if only is not None and only in options and not hidden:
            named = zip(options_of(space, only), options[only], strict=True)
            for value, nested in named:
                if is_active(space, name, {only: value}):
                    nested[name] = node
        else:
            first[name] = node
    return first or {"nothing to choose": 0}  # Hyperopt refuses an empty space


def _node(hyperparameter: Any, options: Sequence[dict[str, Any]]) -> Any:
    name = hyperparameter.name
    if isinstance(hyperparameter, Constant):
        return plain(hyperparameter.value)
    if isinstance(hyperparameter, CategoricalHyperparameter):
        values: list[Any] = [plain(value) for value in hyperparameter.choices]
        if any(options):
            values = [{name: v, **nested} for v, nested in zip(values, options, strict=True)]
        if hyperparameter.weights is None:
            return hp.choice(name, values)
        weights = [float(p) for p in hyperparameter.probabilities]
        return hp.pchoice(name, list(zip(weights, values, strict=True)))
    if isinstance(hyperparameter, OrdinalHyperparameter):
        return hp.quniform(name, -_HALF, len(hyperparameter.sequence) - 1 + _HALF, 1)
    low, high = hyperparameter.lower, hyperparameter.upper
    whole = isinstance(hyperparameter, IntegerHyperparameter)
    if _is_normal(hyperparameter):
        mean, deviation = float(hyperparameter.mu), float(hyperparameter.sigma)
        return hp.qnormal(name, mean, deviation, 1) if whole else hp.normal(name, mean, deviation)
    if whole:
        low, high = low - _HALF, high + _HALF
        if hyperparameter.log:
            return hp.qloguniform(name, math.log(low), math.log(high), 1)
        return hp.quniform(name, low, high, 1)
    if hyperparameter.log:
        return hp.loguniform(name, math.log(low), math.log(high))
    return hp.uniform(name, float(low), float(high))


def _is_normal(hyperparameter: Any) -> bool:
    """Whether it is drawn from a normal distribution: bounds at least two deviations away."""
    kinds = NormalFloatHyperparameter | NormalIntegerHyperparameter
    if not isinstance(hyperparameter, kinds) or hyperparameter.log:
        return False
    room = min(hyperparameter.mu - hyperparameter.lower, hyperparameter.upper - hyperparameter.mu)
    return bool(room >= 2 * hyperparameter.sigma)
