"""The result of a meta-learned design, and the functions that all designs share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from ConfigSpace import ConfigurationSpace
from scipy.stats import qmc

from automl_plugins._arguments import check_integer
from automl_plugins.arrays import BoolArray, FloatArray
from automl_plugins.formats import format_count
from automl_plugins.meta.dataset import MetaDataset
from automl_plugins.meta.tasks import TaskDescription, describe_task
from automl_plugins.records.trial import finite_or_none
from automl_plugins.spaces.values import to_values
from automl_plugins.spaces.vector_space import VectorSpace


@dataclass(frozen=True)
class Suggestion:
    """A configuration to start with.

    Attributes:
        vector: In the vector form of the search space (d,); NaN = inactive.
        configuration: Values of the active hyperparameters by name.
        score: Predicted loss, less is better: in standard deviations of a task's losses for the
            designs of the meta-learner, as a regret in [0, 1] for the others.
        reason: Why it was picked, in a sentence.

    Example::

        for suggestion in portfolio(space, memory, None, k=3).suggestions:
            print(suggestion.configuration, suggestion.score, suggestion.reason)
    """

    vector: FloatArray
    configuration: Mapping[str, Any]
    score: float
    reason: str

    def to_dict(self, design: str) -> dict[str, Any]:
        """The facts that frameworks store with a trial; a score of NaN becomes None."""
        return {"design": design, "score": finite_or_none(self.score), "reason": self.reason}

    def __repr__(self) -> str:
        return f"Suggestion({dict(self.configuration)}, score {self.score:.4g}: {self.reason})"


@dataclass(frozen=True)
class Design(Sequence[Suggestion]):
    """Configurations to start with, best first.

    Attributes:
        method: Name of the design.
        suggestions: The configurations, distinct. A hyperparameter that no run of the memory has
            is at its default in the first five, or at what all runs of a bundled memory had, and
            spread over its range in the others.
        notes: What the user should know: which fall-back was taken, and why.

    Example::

        design = portfolio(space, memory, None, k=3)
        print(design.configurations, design.scores)
    """

    method: str
    suggestions: tuple[Suggestion, ...]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.suggestions)

    def __getitem__(self, index: Any) -> Any:
        return self.suggestions[index]

    @property
    def configurations(self) -> list[dict[str, Any]]:
        """Values by name of each configuration."""
        return [dict(suggestion.configuration) for suggestion in self.suggestions]

    @property
    def scores(self) -> FloatArray:
        """Predicted score of each configuration (k,), less is better."""
        return np.array([suggestion.score for suggestion in self.suggestions])

    def __repr__(self) -> str:
        notes = f", {format_count(len(self.notes), 'note')}" if self.notes else ""
        size = format_count(len(self), "configuration")
        return f"Design({self.method!r}, {size}{notes}; print it to read them)"

    def __str__(self) -> str:
        lines = [
            f"{place}. {suggestion.configuration} ({suggestion.reason})"
            for place, suggestion in enumerate(self.suggestions, start=1)
        ]
        return "\n".join([f"{self.method}:", *lines, *self.notes])


# Suggestions before any is spread: on tables of networks, searches of ``auto`` were worse at ten
# trials with four of their five spread.
_WITH_DEFAULTS = 5

InitialDesign = Callable[[ConfigurationSpace, MetaDataset, TaskDescription, int], Design]


def align_memory(
    space: ConfigurationSpace, memory: MetaDataset, task: TaskDescription, k: int
) -> MetaDataset:
    """The memory aligned to the space, once all arguments of a design have been checked."""
    if not isinstance(space, ConfigurationSpace):
        raise TypeError(f"space must be a ConfigurationSpace, got {type(space).__name__}.")
    if not isinstance(memory, MetaDataset):
        raise TypeError(
            f"memory must be a MetaDataset, got {type(memory).__name__}; a store has .dataset()."
        )
    check_integer("k", k, 1)
    describe_task(task)
    memory = memory.aligned(space)
    if np.isnan(memory.complete_losses).all():
        raise ValueError(
            f"None of the {len(memory)} runs of the memory completed: it knows no good"
            " configuration."
        )
    # A task of which every run failed knows no good configuration either.
    tasks = zip(memory.tasks, memory.rows, strict=True)
    failed = [task.name for task, rows in tasks if np.isnan(memory.complete_losses[rows]).all()]
    return memory.without(*failed)


def make_design(
    method: str,
    memory: MetaDataset,
    vectors: FloatArray,
    scores: FloatArray,
    reasons: Sequence[str],
    notes: tuple[str, ...],
) -> Design:
    """A design of ``vectors`` (k, d), with scores (k,) and reasons (k)."""
    # What no run has is the same in all of them, or inactive.
    defaults = np.fmax.reduce(memory.vectors)
    vectors = spread(memory.vector_space, vectors, memory.arbitrary, defaults)
    values: Sequence[Mapping[str, object]] = to_values(memory.space, vectors)
    found = zip(vectors, values, map(float, scores), reasons, strict=True)
    return Design(method, tuple(Suggestion(*fields) for fields in found), notes)


def spread(
    space: VectorSpace, vectors: FloatArray, arbitrary: BoolArray, defaults: FloatArray
) -> FloatArray:
    """Configurations (n, d) that differ in ``arbitrary`` columns, a mask (d,), too.

    A memory says nothing about these columns; if all suggestions had their ``defaults`` (d,), a
    search would learn nothing about them either. The first five configurations keep them, the
    others get the points of a Sobol sequence, unless the space forbids them. A value that is not
    the default was chosen for the runs, and stays.
    """
    columns, n = np.flatnonzero(arbitrary), len(vectors) - _WITH_DEFAULTS
    if n < 1 or not len(columns):
        return vectors
    # The first two points are a corner and the middle, which most defaults are.
    # SciPy warns of Sobol points whose number is no power of two; this is the first >= n + 2.
    points = qmc.Sobol(len(columns), scramble=False).random_base2((n + 1).bit_length())[2 : n + 2]
    changed = vectors.copy()
    for column, places in zip(columns.tolist(), points.T, strict=True):
        others = changed[_WITH_DEFAULTS:, column]
        found = space.quantile(column, places)
        changed[_WITH_DEFAULTS:, column] = np.where(others == defaults[column], found, others)
    return np.where(space.allowed(changed)[:, None], changed, vectors)
