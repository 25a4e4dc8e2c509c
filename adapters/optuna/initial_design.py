"""Studies that begin with what a memory of earlier tasks suggests."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from ConfigSpace import ConfigurationSpace
from optuna.distributions import BaseDistribution
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

from .space import read_space, value_in

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
    space, distributions = read_space(search_space)
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
    return {n: value_in(distributions[n], v, nearest=True) for n, v in configuration.items()}


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
