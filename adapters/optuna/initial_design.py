"""Studies that begin with suggestions of a memory of earlier tasks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import optuna
from ConfigSpace import ConfigurationSpace
from optuna.distributions import BaseDistribution
from optuna.samplers import RandomSampler
from optuna.study import Study

from automl_plugins._arguments import check_integer
from automl_plugins.meta.designs import diverse
from automl_plugins.meta.designs.design import Design, Suggestion
from automl_plugins.meta.sources import Memory, take_conditions
from automl_plugins.meta.tasks import TaskDescription
from automl_plugins.meta.warm_start import AnyDesign, WarmStart, advise, n_suggestions
from automl_plugins.proposers.design import space_filling
from automl_plugins.spaces.values import to_values
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams

from ._sources import read_known
from ._study import StudyReader
from .space import Distributions, distributions_in, read_space, value_in
from .studies import check_study, quiet

#: A search space: distributions, a space, a study with trials in it, or the objective itself.
SearchSpace = (
    Mapping[str, BaseDistribution] | ConfigurationSpace | Study | Callable[[optuna.Trial], Any]
)

#: User attribute of trials that were enqueued here: the design, and a suggestion's score (None
#: if it has none) and reason.
INITIAL_DESIGN = "initial_design"


def enqueue_initial_design(
    study: Study,
    design: AnyDesign = diverse,
    *,
    memory: Memory | None = None,
    X: Any = None,
    y: Any = None,
    meta_features: TaskDescription = None,
    search_space: SearchSpace | None = None,
    mode: WarmStart = "part",
    n_configs: int | None = None,
    n_startup_trials: int = 10,
    seed: int = 0,
    exclude: Collection[str] = (),
) -> Design:
    """Enqueue the suggestions of a memory for the task; any sampler continues from them.

    Samplers count enqueued trials as their own start-up trials, so the modes are:

    - ``"part"``: k suggestions; n - k of the sampler's n start-up trials remain.
    - ``"replace"``: n suggestions, so that no start-up trial remains.
    - ``"add"``: k suggestions, then n points that fill the space in place of the sampler's own
      start-up trials, of which only n - k would remain.

    A configuration that the study already has is not enqueued again, so this can be called each
    time that a study continues. The user attribute ``"initial_design"`` of each trial says why
    it was picked.

    Args:
        study: The study, maximised or minimised.
        design: A design of ``automl_plugins.meta``, its name, or the ``Design`` it has returned.
        memory: A ``MetaDataset``; a ``MetaStore``, its path or address; studies, their storage or
            its address, records of tasks and searches of other frameworks, one, several, or by
            name of the task; or the name of a bundled memory. Not needed for a ready ``Design``.
        X: The data of the task, from which meta-features are computed.
        y: Its target.
        meta_features: The task's meta-features, if X is not given. Without both all known tasks
            weigh the same.
        search_space: The distributions that the objective asks for, by name; a
            ``ConfigurationSpace``; a study with such trials; or the objective itself, which is
            called once, on a trial that is discarded, to learn the parameters of that call.
            Distributions have no conditions: those of the memory are adopted. If the study has
            one objective, the widest range counts where it depends on other parameters, and points
            that fill the space leave it to the sampler; names that the objective has replaced by
            others are left out. None takes the study's own trials, and
            enqueues a ready ``Design`` as it is.
        mode: See above.
        n_configs: k, the number of suggestions; None takes n for ``"replace"``, else half of it.
        n_startup_trials: n, the number of the sampler's start-up trials: 10 in most samplers of
            Optuna, 6 or more in the samplers of this package.
        seed: Seed of the points that fill the space.
        exclude: Names of tasks of the memory to leave out, such as the task itself if its runs
            are recorded into the same store.

    Returns:
        The suggestions in the study's values, best first.

    Raises:
        TypeError: For a study, memory, design or search space of the wrong type.
        ValueError: For a memory that shares no parameter with the search space, an unknown design
            or mode, X without y, or if a memory or search space is needed and not given. Nothing
            is enqueued then.

    Example::

        print(enqueue_initial_design(study, memory="svm", X=X, y=y, search_space=objective))
        study.optimize(objective, n_trials=50)
    """
    check_study("enqueue_initial_design", study)
    check_integer("n_startup_trials", n_startup_trials, 0)
    k = n_suggestions(mode, n_startup_trials, n_configs)
    filling: list[dict[str, Any]] = []
    # A ready design needs the space only for ``"add"``, which fills it.
    if search_space is None and isinstance(design, Design) and mode != "add":
        found = replace(design, suggestions=design.suggestions[:k])
    else:
        known = None if memory is None else read_known(memory)
        asked, moving = _find_space(study if search_space is None else search_space)
        space, distributions = read_space(asked)
        if known is not None and not isinstance(asked, ConfigurationSpace):
            space = take_conditions(space, known)
        found = advise(
            space, known, k=k, X=X, y=y, task=meta_features, design=design, exclude=exclude
        ).design
        vectors = VectorSpace(space)
        rest = space_filling(
            vectors,
            np.array([suggestion.vector for suggestion in found]).reshape(-1, vectors.d),
            n_startup_trials if mode == "add" else 0,
            Streams(seed).generator("initial design"),
        )
        found = _in_distributions(found, distributions)
        points = [_values(values, distributions) for values in to_values(space, rest)]
        # What such a range allows is known when the objective asks for it.
        filling = [{n: v for n, v in point.items() if n not in moving} for point in points]
    notes = [(dict(s.configuration), s.to_dict(found.method)) for s in found]
    notes += [(values, {"design": "space_filling"}) for values in filling]
    # All is ready before the first is enqueued: an error leaves the study as it was.
    for values, note in notes:
        study.enqueue_trial(values, user_attrs={INITIAL_DESIGN: note}, skip_if_exists=True)
    return found


def _asked_in(study: Study) -> tuple[Distributions, Collection[str]]:
    """The parameters of a study, and which have a range that depends on others.

    If it has one objective, names that it has replaced by others are left out.
    """
    trials = study.get_trials(deepcopy=False)
    if len(study.directions) > 1:
        return distributions_in(trials), ()
    reader = StudyReader(study, None, {}, {})
    view = reader.everything(study)
    found, gone = distributions_in(trials, view.columns.moving), reader.left_out(view)
    return {n: d for n, d in found.items() if n not in gone}, view.columns.moving


def _find_space(source: SearchSpace) -> tuple[Distributions | ConfigurationSpace, Collection[str]]:
    """The parameters that a study or an objective asks for; anything else unchanged.

    Second are the names whose range depends on others, as far as they are known.
    """
    if isinstance(source, Study):
        found = _asked_in(source)
        if found[0]:
            return found
        raise ValueError(
            "Pass search_space=: the distributions that the objective asks for, by name, a"
            " ConfigurationSpace, a study with trials, or the objective, which is called once."
        )
    # Objects of other types are refused by ``read_space``.
    if isinstance(source, Mapping | ConfigurationSpace) or not callable(source):
        return source, ()
    with quiet():
        # With a seed: an objective with branches enters the same branch at each call.
        traced = optuna.create_study(sampler=RandomSampler(seed=0)).ask()
    with contextlib.suppress(Exception):  # what it asked for before a failure counts
        source(traced)
    if not traced.distributions:
        raise ValueError(
            f"The objective {source!r} asked for no parameter when it was called: pass the"
            " distributions by name as search_space=."
        )
    return traced.distributions, ()


def _in_distributions(design: Design, distributions: Distributions) -> Design:
    suggestions: list[Suggestion] = []
    for suggestion in design:
        values = _values(suggestion.configuration, distributions)
        if all(values != known.configuration for known in suggestions):  # steps may merge two
            suggestions.append(replace(suggestion, configuration=values))
    return replace(design, suggestions=tuple(suggestions))


def _values(configuration: Mapping[str, Any], distributions: Distributions) -> dict[str, Any]:
    return {n: value_in(distributions[n], v, nearest=True) for n, v in configuration.items()}
