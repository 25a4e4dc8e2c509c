"""Hyperopt's expressions: their nodes and choices, and copies that are restricted to parts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hyperopt import pyll

from automl_plugins.records.trial import as_number
from automl_plugins.spaces.values import ABSENT, plain

#: Keys whose value names an option that is a dict, in order of preference.
_NAMING = ("type", "name", "model", "algorithm", "classifier", "estimator", "kind")
_PLAIN = (str, int, float, bool, type(None))
_MOST_TEXT = 80  # characters of a constant that is written out
# A proposer may take the very end of a range, which belongs to the next part or is rounded into
# it. So the ends of a part are moved inwards by these shares of its width, or of ``q``.
_INSIDE, _INSIDE_STEP = 1e-9, 1e-6


#: The options under which a hyperparameter is active, by label of the choice; empty if always.
Places = dict[str, set[int]]


# --- nodes -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Choice:
    """An ``hp.choice``, ``hp.pchoice`` or switch on ``hp.randint``: its label and switch node."""

    label: str
    switch: Any

    @property
    def options(self) -> Sequence[Any]:
        """The nodes that it switches between."""
        return self.switch.pos_args[1:]  # type: ignore[no-any-return]

    @property
    def probabilities(self) -> tuple[float, ...] | None:
        """The probability of each option; None if all are equally likely."""
        distribution = index_param(self.switch).arg["obj"]
        if distribution.name == "categorical":
            return tuple(float(p) for p in pyll.rec_eval(distribution.arg["p"]))
        # A randint that is the index of a switch may be drawn from some of the options only.
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
        own = [
            _value(dict(option.named_args).get(self.label) if option.name == "dict" else option)
            for option in self.options
        ]
        if ABSENT not in own and len(set(own)) == len(own):
            return tuple(own)
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
            choice = Choice(label, node)
            found[label] = max(found.get(label, choice), choice, key=lambda c: len(c.options))
    return found


def labels(expr: Any, values: Mapping[str, Any] | None = None) -> tuple[str, ...]:
    """Labels of an expression's hyperparameters, outer ones first; ``values`` as in ``nodes``."""
    return tuple(dict.fromkeys(label_of(node) for node in find_needed(expr, values)))


def active_among(values: Mapping[str, Any], expr: Any) -> dict[str, Any]:
    """The ``values``, by label, of the hyperparameters that are active in an expression."""
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
        # ``pos_args`` has the index itself, too, so ``ends[1]`` is at most the number of options.
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

    With ``values`` by label, only the nodes that such a configuration needs; of a choice without a
    value, no option.
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
        # The first input is popped first: labels come in the order of the expression.
        stack.extend(reversed(inputs))


def find_needed(expr: Any, values: Mapping[str, Any] | None = None) -> Iterator[Any]:
    """The ``hyperopt_param`` nodes among ``nodes``."""
    return (node for node in nodes(expr, values) if node.name == "hyperopt_param")


def depends(expr: Any) -> bool:
    """Whether the value of an expression depends on hyperparameters."""
    return next(find_needed(expr), None) is not None


def is_draw(distribution: Any, value: Any) -> bool:
    """Whether a value is of the kind that a distribution draws; ranges of numbers may be wider."""
    name, number = distribution.name, as_number(value)
    if name in ("loguniform", "lognormal"):
        return number > 0
    if name not in ("categorical", "randint"):
        return not math.isnan(number)
    whole = name == "randint"
    ends = ends_of(distribution) if whole else (0, len(constant(distribution, "p")))
    # Ends that depend on hyperparameters are unknown.
    return number.is_integer() and (ends is None or ends[0] <= value < ends[1])


def constant(distribution: Any, name: str) -> Any:
    """An argument of a distribution, evaluated; None if it is not given."""
    argument = distribution.arg.get(name)
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
    """Switches that are no ``Choice``, but whose index depends on hyperparameters."""
    switches = (node for node in pyll.dfs(expr) if node.name == "switch")
    return [n for n in switches if find_switched(n) is None and depends(n.pos_args[0])]


def why_foreign(switch: Any) -> str:
    """Why one of ``foreign_switches`` is no choice, and what to do."""
    index, *options = switch.pos_args
    param = index_param(switch)
    drawn = None if param is None else param.arg["obj"]
    ends = ends_of(drawn) if drawn is not None and drawn.name == "randint" else None
    if ends is None:
        return f"A switch depends on {describe(index)}: write it as hp.choice or hp.pchoice."
    if not options:
        return f"{label_of(param)!r} has no options: give hp.choice at least one."
    return (
        f"{label_of(param)!r} is drawn from range{ends}, but its switch has options 0 to"
        f" {len(options) - 1}: give it a range among these."
    )


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
                # Without values, no choice nested in the option is entered.
                for param in find_needed(option, {}):
                    places.setdefault(label_of(param), {}).setdefault(switched, set()).add(i)
    always = set(labels(expr, {}))
    return params, {label: {} if label in always else places[label] for label in params}


def simplify(where: Places, places: Mapping[str, Places], found: Mapping[str, Choice]) -> Places:
    """Replace a choice all of whose options are in ``where`` by the places where it is active."""
    while True:
        whole = next((p for p in where if where[p] >= set(found[p].possible)), None)
        if whole is None:
            return where
        if not places[whole]:  # the choice is made in every configuration
            return {}
        rest = {p: set(indices) for p, indices in where.items() if p != whole}
        for parent, indices in places[whole].items():
            rest.setdefault(parent, set()).update(indices)
        where = rest


# --- names of options ------------------------------------------------------------------------


def _value(node: Any) -> Any:
    """The value of a literal that may be a name; ``ABSENT`` for any other node, or for None."""
    value = plain(node.obj) if node is not None and node.name == "literal" else ABSENT
    # NaN, equal to nothing, names nothing.
    return value if isinstance(value, _PLAIN) and value == value else ABSENT


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
    if (value := _value(option)) is not ABSENT:
        return value
    if option.name == "literal":
        return getattr(option.obj, "__qualname__", named)
    if named != unnamed or depends(option):
        return named
    try:
        written = repr(pyll.rec_eval(option))
    except Exception:  # the user's own nodes may raise anything
        return unnamed
    # A name with an address in memory would differ between processes.
    return written if len(written) <= _MOST_TEXT and " at 0x" not in written else unnamed


# --- parts -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Interval:
    """Numbers in [low, high); a bound is infinite at the end of the whole range.

    A value that is no number, as a user's point may have, lies in no interval.
    """

    low: float = -math.inf
    high: float = math.inf

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
    for node in pyll.dfs(expr):  # inputs first: they are in ``new`` before what takes them
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
                # Other nodes that use an ``hp.randint`` get its original numbers.
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
        # Parts meet half-way between integers, and the end of a randint is not drawn.
        ends = [math.ceil(end) for end in (max(whole[0], low), min(whole[1], high))]
    else:
        first, last, q = (constant(node, name) for name in ("low", "high", "q"))
        if q is not None:  # the ends lie between multiples
            low, high = low + _INSIDE_STEP * q, high - _INSIDE_STEP * q
        # The ends of a part are values, the ends of these distributions are logarithms.
        if node.name in ("loguniform", "qloguniform"):
            low, high = (x if math.isinf(x) else math.log(x) for x in (low, high))
        if q is None:  # after the logarithms: the width is measured on the scale of the draws
            margin = _INSIDE * (min(last, high) - max(first, low))
            low, high = low + margin, high - margin
        ends = [max(first, low), min(last, high)] + ([] if q is None else [q])
    return pyll.scope.hyperopt_param(label, getattr(pyll.scope, node.name)(*ends))
