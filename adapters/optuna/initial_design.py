"""Studies that begin with what a memory of earlier tasks suggests."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from ConfigSpace import ConfigurationSpace
from ConfigSpace.hyperparameters import CategoricalHyperparameter
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.study import Study

from automl_plugins.meta.designs import diverse
from automl_plugins.meta.designs.design import Design, Suggestion
from automl_plugins.meta.memories import Memory, conditioned, recorded
from automl_plugins.meta.tasks import TaskDescription
from automl_plugins.meta.warm_start import (
    AnyDesign,
    WarmStart,
    advise,
    checked_mode,
    checked_number,
    n_suggestions,
)
from automl_plugins.proposers.design import space_filling
from automl_plugins.spaces.values import to_values
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams

from ._distributions import distributions_of, hyperparameter_of, typed

FloatArray = npt.NDArray[np.float64]

#: User attribute of trials that were enqueued here: the design, and a suggestion's score (None
#: where it has none) and reason.
INITIAL_DESIGN = "initial_design"


def enqueue_initial_design(
    study: Study,
    design: AnyDesign = diverse,
    *,
    memory: Memory | None = None,
    X: Any = None,
    y: Any = None,
    meta_features: TaskDescription = None,
    search_space: Mapping[str, BaseDistribution] | ConfigurationSpace | None = None,
    mode: WarmStart = "part",
    n_configs: int | None = None,
    n_startup_trials: int = 10,
    seed: int = 0,
    exclude: Collection[str] = (),
) -> Design:
    """Enqueue what a memory suggests for the task; whatever sampler the study has goes on from it.

    Samplers count enqueued trials as their own start-up trials, so the modes are:

    - ``"part"``: suggestions; of the sampler's n start-up trials n - k remain.
    - ``"replace"``: n suggestions, so that none remains.
    - ``"add"``: suggestions, then n points that fill the space instead of the sampler's own,
      which would only be n - k.

    A configuration that the study already has is not enqueued again, so this can be called each
    time that a study goes on. Each trial says in the user attribute ``"initial_design"`` why it
    was picked.

    Args:
        study: The study, maximised or minimised.
        design: A design of ``automl_plugins.meta``, its name, or the ``Design`` it has returned.
        memory: A ``MetaDataset``; a ``MetaStore``, its path or address; or the name of a bundled
            memory. Not needed for a ready ``Design``.
        X: The data of the task, of which meta-features are computed.
        y: Its target.
        meta_features: Its meta-features instead. Without either all known tasks count alike.
        search_space: The distributions that the objective asks for, by name, or a
            ``ConfigurationSpace``. Distributions know no conditions: those of the memory are
            taken over. None enqueues a ready ``Design`` as it is.
        mode: See above.
        n_configs: Number of suggestions; None takes ``n_startup_trials`` to replace, else half.
        n_startup_trials: n, which the sampler was given; most have 10.
        seed: Of the points that fill the space.
        exclude: Names of tasks of the memory to leave out: this one itself, where its runs are
            recorded into the same store.

    Returns:
        The suggestions in the study's values, best first.

    Raises:
        TypeError: For a memory, design or search space that is none.
        ValueError: For a memory that shares no parameter with the search space, an unknown design
            or mode, X without y, or without a memory or search space where one is needed. Nothing
            is enqueued then.

    Example::

        space = {"C": FloatDistribution(0.01, 100, log=True), ...}
        print(enqueue_initial_design(study, memory="svm", X=X, y=y, search_space=space))
        study.optimize(objective, n_trials=50)
    """
    checked_mode(mode)
    n_default = checked_number("n_startup_trials", n_startup_trials)
    k = n_suggestions(mode, n_default, n_configs)
    if search_space is None:
        if not isinstance(design, Design) or mode == "add":
            raise ValueError(
                "Pass search_space=: the distributions that the objective asks for, by name, or a"
                " ConfigurationSpace."
            )
        found = replace(design, suggestions=design.suggestions[:k])
        _enqueue(study, found, [])
        return found
    known = None if memory is None else recorded(memory)
    space, distributions = understood(search_space)
    if known is not None and not isinstance(search_space, ConfigurationSpace):
        space = conditioned(space, known)
    found = advise(space, known, k=k, X=X, y=y, task=meta_features, design=design, exclude=exclude)
    vectors = VectorSpace(space)
    rest = space_filling(
        vectors,
        np.array([suggestion.vector for suggestion in found]).reshape(-1, vectors.d),
        n_default if mode == "add" else 0,
        Streams(seed).generator("initial design"),
    )
    found = _in_distributions(found, distributions)
    _enqueue(study, found, [_values(v, distributions) for v in to_values(space, rest)])
    return found


def understood(
    search_space: Any,
) -> tuple[ConfigurationSpace, dict[str, BaseDistribution]]:
    """A search space in both languages.

    Raises:
        TypeError: For something else.
        ValueError: For what ConfigSpace cannot express.
    """
    if isinstance(search_space, ConfigurationSpace):
        return search_space, distributions_of(search_space)
    if not isinstance(search_space, Mapping) or not all(
        isinstance(name, str) and isinstance(distribution, BaseDistribution)
        for name, distribution in search_space.items()
    ):
        raise TypeError(
            "search_space must be Optuna's distributions by name, or a ConfigurationSpace, got"
            f" {search_space!r}."
        )
    space = ConfigurationSpace()
    for name, distribution in search_space.items():
        try:
            hyperparameter = hyperparameter_of(name, distribution)
        except (TypeError, ValueError):  # choices such as [True, 1], which ConfigSpace cannot have
            hyperparameter = _written(name, distribution)
        space.add(hyperparameter)
    return space, dict(search_space)


def _written(name: str, distribution: BaseDistribution) -> CategoricalHyperparameter:
    """Choices as they are written: a memory's values are found by that, too.

    Raises:
        ValueError: If two are written alike.
    """
    assert isinstance(distribution, CategoricalDistribution)
    choices = [str(choice) for choice in distribution.choices]
    if len(set(choices)) < len(choices):
        raise ValueError(
            f"The choices of {name!r}, {distribution.choices}, cannot be matched with a memory:"
            " two of them are written alike."
        )
    return CategoricalHyperparameter(name, choices)


def _in_distributions(design: Design, distributions: Mapping[str, BaseDistribution]) -> Design:
    suggestions: list[Suggestion] = []
    for suggestion in design:
        values = _values(suggestion.configuration, distributions)
        if all(values != known.configuration for known in suggestions):  # steps may merge two
            suggestions.append(replace(suggestion, configuration=values))
    return replace(design, suggestions=tuple(suggestions))


def _values(
    configuration: Mapping[str, Any], distributions: Mapping[str, BaseDistribution]
) -> dict[str, Any]:
    return {name: _legal(distributions[name], v) for name, v in configuration.items()}


def _legal(distribution: BaseDistribution, value: Any) -> Any:
    """The value of a distribution, the very object for a choice, that is nearest to a value."""
    if isinstance(distribution, CategoricalDistribution):
        choices = distribution.choices
        exact = (c for c in choices if c is value or (type(c) is type(value) and c == value))
        equal = (c for c in choices if c == value or str(c) == value)
        return next(exact, next(equal, None))
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    low, high, step = distribution.low, distribution.high, distribution.step
    if step is not None:
        value = (
            low + min(round((value - low) / step), math.floor((high - low) / step + 1e-9)) * step
        )
    return typed(distribution, min(max(value, low), high))


def _enqueue(study: Study, design: Design, others: list[dict[str, Any]]) -> None:
    for suggestion in design:
        score = suggestion.score
        note = {
            "design": design.method,
            "score": float(score) if math.isfinite(score) else None,
            "reason": suggestion.reason,
        }
        study.enqueue_trial(
            dict(suggestion.configuration),
            user_attrs={INITIAL_DESIGN: note},
            skip_if_exists=True,
        )
    for values in others:
        study.enqueue_trial(
            values, user_attrs={INITIAL_DESIGN: {"design": "space_filling"}}, skip_if_exists=True
        )
