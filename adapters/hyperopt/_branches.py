"""The choices of a search space: which one is the root, what lies below each option."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hyperopt import pyll

#: Keys whose value names an option that is a dict, in order of preference.
_NAMING = ("type", "name", "model", "algorithm", "classifier", "estimator", "kind")


@dataclass(frozen=True)
class Choice:
    """An ``hp.choice`` or ``hp.pchoice``.

    Attributes:
        label: Its label.
        switches: Nodes that it switches; one, unless the user built the graph by hand.
        always: Whether every configuration makes it, so that its options cover the space.
    """

    label: str
    switches: tuple[Any, ...]
    always: bool

    @property
    def distribution(self) -> Any:
        """The node that draws the index of the option."""
        return self.switches[0].pos_args[0].arg["obj"]

    @property
    def n_options(self) -> int:
        """How many there are."""
        return len(self.switches[0].pos_args) - 1

    @property
    def probabilities(self) -> tuple[float, ...] | None:
        """Of the options of an ``hp.pchoice``; None for ``hp.choice``."""
        if self.distribution.name != "categorical":
            return None
        return tuple(float(p) for p in pyll.rec_eval(self.distribution.arg["p"]))

    @property
    def possible(self) -> tuple[int, ...]:
        """Indices of the options that have not probability zero."""
        p = self.probabilities
        return tuple(i for i in range(self.n_options) if p is None or p[i] > 0)

    def labels_below(self, option: int) -> tuple[str, ...]:
        """Labels of all hyperparameters below an option, nested ones included."""
        found = [name for switch in self.switches for name in labels(switch.pos_args[1 + option])]
        return tuple(dict.fromkeys(found))

    @property
    def has_children(self) -> bool:
        """Whether an option has hyperparameters."""
        return any(self.labels_below(i) for i in range(self.n_options))

    def names(self) -> tuple[str, ...]:
        """A name for each option: the text in it, else label and index."""
        found = [_name(switched) for switched in self.switches[0].pos_args[1:]]
        return tuple(
            name if name is not None and found.count(name) == 1 else f"{self.label}[{i}]"
            for i, name in enumerate(found)
        )


def choices(expr: Any) -> dict[str, Choice]:
    """All choices by label, outer ones before those in their options."""
    always = set(_nodes(expr, into_options=False))
    switches: dict[str, list[Any]] = {}
    for node in _nodes(expr):
        label = switched_by(node)
        if label is not None:
            switches.setdefault(label, []).append(node)
    return {
        label: Choice(label, tuple(nodes), any(node in always for node in nodes))
        for label, nodes in switches.items()
    }


def root_choice(expr: Any, label: str | None = None) -> Choice:
    """The choice whose options are the arms.

    Args:
        expr: The search space.
        label: Which one; None takes the choice that is the root. Where the root is none, it is
            the only choice that every configuration makes and that has hyperparameters in its
            options, or the only choice there is.

    Raises:
        ValueError: If there is no such choice, or more than one.
    """
    found = choices(expr)
    if label is not None:
        return _named(found, label)
    root = switched_by(expr)
    if root is not None:
        return found[root]
    first = [choice for choice in found.values() if choice.always]
    with_children = [choice for choice in first if choice.has_children]
    for candidates in (with_children, first):
        if len(candidates) == 1:
            return candidates[0]
    if not first:
        raise ValueError(
            "The search space has no choice whose options could be arms: write it as"
            " hp.choice(label, [...]), or split it into cells with boasf_fmin(split=2)."
        )
    raise ValueError(
        f"Several choices could be the arms: {_listed(c.label for c in with_children or first)}."
        " Say which one with label=."
    )


def _named(found: dict[str, Choice], label: str) -> Choice:
    usable = [choice.label for choice in found.values() if choice.always]
    if label not in found:
        raise ValueError(f"No choice has the label {label!r}; there are {_listed(usable)}.")
    if not found[label].always:
        raise ValueError(
            f"The choice {label!r} is not made in every configuration, so its options do not cover"
            f" the search space; those of {_listed(usable)} do."
        )
    return found[label]


def labels(expr: Any) -> tuple[str, ...]:
    """Labels of all hyperparameters of an expression, outer ones first."""
    return tuple(dict.fromkeys(label_of(n) for n in _nodes(expr) if n.name == "hyperopt_param"))


def always_drawn(expr: Any) -> dict[str, Any]:
    """The ``hyperopt_param`` nodes that every configuration draws, by label, outer ones first."""
    nodes = _nodes(expr, into_options=False)
    return {label_of(node): node for node in nodes if node.name == "hyperopt_param"}


def label_of(param: Any) -> str:
    """Label of a ``hyperopt_param`` node."""
    return str(param.arg["label"].obj)


def switched_by(node: Any) -> str | None:
    """Label of the choice that a node switches on; None for any other node."""
    if node.name != "switch" or node.pos_args[0].name != "hyperopt_param":
        return None
    return label_of(node.pos_args[0])


def _nodes(expr: Any, *, into_options: bool = True) -> Iterator[Any]:
    """Nodes of an expression, each once, parents first."""
    stack, seen = [expr], set()
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        yield node
        inputs = node.inputs()
        if not into_options and node.name == "switch":
            inputs = inputs[:1]
        stack.extend(reversed(inputs))


def _name(option: Any) -> str | None:
    """Text that tells an option from the others, if there is any."""
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


def _listed(names: Iterator[str] | Sequence[str]) -> str:
    return ", ".join(map(repr, names)) or "none"
