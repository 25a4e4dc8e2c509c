"""The two search spaces that trials can be read in and written in, behind one interface."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from ConfigSpace import ConfigurationSpace
from ConfigSpace.hyperparameters import (
    CategoricalHyperparameter,
    Constant,
    OrdinalHyperparameter,
)
from hyperopt import Domain

from ._expression import configuration, expression
from .space import PyllSpace, translate


class Spoken(Protocol):
    """A search space in both languages."""

    @property
    def space(self) -> ConfigurationSpace:
        """In ConfigSpace's language."""
        ...

    @property
    def domain(self) -> Domain:
        """In Hyperopt's."""
        ...

    def values(self, drawn: Mapping[str, Any]) -> dict[str, Any]:
        """Values by name from what a trial has drawn by label."""
        ...

    def labels(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The way back."""
        ...


@dataclass(frozen=True, eq=False)
class ExpressionSpace:
    """A ``ConfigurationSpace`` and the ``expression`` of it."""

    space: ConfigurationSpace

    @cached_property
    def domain(self) -> Domain:
        """What suggest functions are shown; the objective is not part of it."""
        return Domain(None, expression(self.space), pass_expr_memo_ctrl=False)

    def values(self, drawn: Mapping[str, Any]) -> dict[str, Any]:
        """Values by name from what a trial has drawn by label; inactive ones are absent.

        Raises:
            ValueError: If it lacks one.
        """
        try:
            return configuration(self.space, {label: [value] for label, value in drawn.items()})
        except (KeyError, IndexError) as error:
            raise ValueError(
                f"A trial with the labels {', '.join(drawn) or 'none'} is not of this search"
                f" space ({error}): pass the expression that was given to fmin."
            ) from None

    def labels(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """What a trial with these values would have drawn, by label."""
        drawn: dict[str, Any] = {}
        for label, value in values.items():
            hyperparameter = self.space[label]
            if isinstance(hyperparameter, Constant):
                continue
            if isinstance(hyperparameter, CategoricalHyperparameter):
                drawn[label] = int(hyperparameter.to_vector(value))
            elif isinstance(hyperparameter, OrdinalHyperparameter):
                drawn[label] = float(hyperparameter.to_vector(value))
            else:
                drawn[label] = float(value)
        return drawn


def spoken(space: Any) -> Spoken:
    """A search space that is a ``ConfigurationSpace``, or anything that ``fmin`` takes for one.

    Raises:
        ValueError: For what ConfigSpace cannot express.
    """
    if isinstance(space, ConfigurationSpace):
        return ExpressionSpace(space)
    return space if isinstance(space, PyllSpace | ExpressionSpace) else translate(space)
