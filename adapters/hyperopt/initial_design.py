"""Trials that begin with suggestions of a memory of earlier tasks."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from hyperopt import Trials, rand

from automl_plugins._arguments import check_integer
from automl_plugins.meta.designs import diverse
from automl_plugins.meta.sources import Memory
from automl_plugins.meta.tasks import TaskDescription
from automl_plugins.meta.warm_start import AnyDesign, WarmStart, advise, n_suggestions
from automl_plugins.streams import Streams

from ._private import all_documents
from ._pyll import active_among
from .proposing import with_named_trials
from .space import read_space
from .trials import INITIAL_DESIGN, Document, check_trials, new_document, values_of


def initial_trials(
    space: Any,
    design: AnyDesign = diverse,
    *,
    memory: Memory | None = None,
    X: Any = None,
    y: Any = None,
    meta_features: TaskDescription = None,
    mode: WarmStart = "part",
    n_configs: int | None = None,
    n_startup_jobs: int = 20,
    trials: Trials | None = None,
    seed: int = 0,
    exclude: Collection[str] = (),
) -> Trials:
    """Trials to evaluate first, for ``fmin(..., trials=...)`` with any suggest function.

    Each is a document that waits to be evaluated and has every label of the space, inactive ones
    empty. (``points_to_evaluate`` omits inactive labels, so that TPE fails in conditional spaces,
    and ``fmin`` ignores it when it is given trials.)

    ``max_evals`` counts these trials, and must be larger than their number: with
    ``max_evals=len(trials)`` Hyperopt takes them as done and evaluates none.

    TPE draws at random up to ``n_startup_jobs`` trials, these included, so the modes are:

    - ``"part"``: k suggestions; of TPE's n random trials n - k remain.
    - ``"replace"``: n suggestions, so that no random trial remains.
    - ``"add"``: k suggestions, then n random trials, which Hyperopt draws from the space.

    Args:
        space: The search space that ``fmin`` is given; or a ``ConfigurationSpace`` if ``fmin`` is
            given its ``expression``.
        design: A design of ``automl_plugins.meta``, its name, or the ``Design`` it has returned.
        memory: ``{name of the task: its Trials}`` of this search space; a ``MetaDataset``; a
            ``MetaStore``, its path or address; records of tasks and searches of other frameworks,
            one, several, or by name of the task; or the name of a bundled memory. Not needed for a
            ready ``Design``.
        X: The data of the task, from which meta-features are computed.
        y: Its target.
        meta_features: Meta-features of the task, in place of X and y. Without either, all tasks of
            the memory weigh the same.
        mode: See above.
        n_configs: k, the number of suggestions; None takes n with ``"replace"``, else half of n.
        n_startup_jobs: n, which ``tpe.suggest`` was given; its own default is 20.
        trials: Trials to insert the new ones into; suggestions that are among them already are
            left out. None makes new ``Trials``.
        seed: Seed of the random trials.
        exclude: Names of tasks of the memory to leave out, such as this task itself if its runs
            are recorded in the same store.

    Returns:
        The trials. Why a configuration was picked is in ``misc["initial_design"]`` of its
        document, and logged.

    Raises:
        TypeError: For a memory, design or trials of the wrong type.
        ValueError: For a space that cannot be translated, a memory that shares no hyperparameter
            with it, an unknown design or mode, or X without y. Nothing is inserted then.

    Example::

        trials = initial_trials(space, memory=bundled("svm"), X=X, y=y)
        fmin(objective, space, algo=tpe.suggest, max_evals=50, trials=trials)
    """
    check_integer("n_startup_jobs", n_startup_jobs, 0)
    k = n_suggestions(mode, n_startup_jobs, n_configs)
    trials = Trials() if trials is None else trials
    check_trials("initial_trials", trials)
    known = read_space(space)
    found = advise(
        known.space,
        with_named_trials(memory, known),
        k=k,
        X=X,
        y=y,
        task=meta_features,
        design=design,
        exclude=exclude,
    ).design
    expr = known.domain.expr
    seen = [active_among(values_of(document), expr) for document in all_documents(trials)]
    documents: list[Document] = []
    for suggestion in found:
        drawn = known.labels(suggestion.configuration)
        if drawn not in seen:
            seen.append(drawn)
            (tid,) = trials.new_trial_ids(1)
            documents.append(new_document(trials, known.domain, tid, drawn))
            documents[-1]["misc"][INITIAL_DESIGN] = suggestion.to_dict(found.method)
    if mode == "add":
        ids = trials.new_trial_ids(n_startup_jobs)
        drawing = Streams(seed).integer("initial design")
        for document in rand.suggest(ids, known.domain, trials, drawing):
            document["misc"][INITIAL_DESIGN] = {"design": "random"}
            documents.append(document)
    trials.insert_trial_docs(documents)
    trials.refresh()
    return trials
