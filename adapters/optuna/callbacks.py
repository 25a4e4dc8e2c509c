"""Callbacks for ``study.optimize``: trials written to a store, and an early end."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ConfigSpace import ConfigurationSpace
from optuna.distributions import BaseDistribution
from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from automl_plugins._arguments import check_finite, check_integer
from automl_plugins.formats import format_count
from automl_plugins.meta.recorder import Recorder, SearchRecorder, WritableStore, run_key
from automl_plugins.records.trial import is_feasible
from automl_plugins.spaces.conditions import active_names

from . import _private
from .memory import read_study
from .space import distributions_in
from .studies import finished_trials, is_maximized, studies_in

# Growth of the number of trials after which conditions are inferred anew: some 30 times in 1000.
_GROWTH = 1.2
_RECENT = 500  # newest trials from which conditions are inferred, in 0.03 s for 33 names


def record(
    store: WritableStore | str | os.PathLike[str],
    task: str | None = None,
    meta_features: Mapping[str, float] | None = None,
    tags: Mapping[str, str] | None = None,
) -> StudyRecorder:
    """A callback that writes finished trials to a store: complete, pruned and failed ones.

    A trial is identified by the name of its study, its number and its start, so it is stored once,
    however often it is recorded or imported (``add``). Works with ``n_jobs`` threads, with
    several processes and pickled. Optuna calls no callbacks for a trial whose exception is not
    caught (``catch=``) and ends ``optimize``: import such a trial with ``add``.

    A failure to record does not stop the study: the first is logged as a warning, all are counted
    in ``n_lost``. Wrong arguments raise at once.

    Args:
        store: A ``MetaStore``, or its address or path.
        task: Name of the task; None takes the study's user attribute ``"table"``, else its name.
        meta_features: Properties of the data by name, such as ``meta_features(X, y)``.
        tags: Further facts about the task.

    Raises:
        StoreError, TypeError, ValueError: As ``Recorder``.

    Example::

        study.optimize(objective, n_trials=100, callbacks=[record("memory.db", task="iris")])
    """
    return StudyRecorder(Recorder(store, task=task, meta_features=meta_features, tags=tags))


class StudyRecorder(SearchRecorder):
    """A callback for ``study.optimize``, see ``record``; the recorder writes to the store."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._spaces: dict[str, _KnownSpace] = {}  # by study: a cache

    def __repr__(self) -> str:
        task, new, lost = self.recorder.task, self.n_recorded, self.n_lost
        return f"StudyRecorder(task={task!r}, {format_count(new, 'trial')} recorded, {lost} lost)"

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        """Write a finished trial; ignore any other."""
        if not trial.state.is_finished():
            return
        with self.recorder.survive():
            self._write(study, [trial], self._space_of(study, trial))

    def add(self, source: Study | BaseStorage | str | Iterable[Study]) -> int:
        """Write the new finished trials of the source's studies; return their number.

        Raises:
            StoreError: If the store cannot be written.
            ValueError: For a study of several objectives.
        """
        each = ((study, finished_trials(study)) for study in studies_in(source))
        return sum(self._write(study, done) for study, done in each if done)

    def _write(
        self, study: Study, trials: list[FrozenTrial], space: ConfigurationSpace | None = None
    ) -> int:
        runs = read_study(study, self.recorder.task, space, trials=trials)
        return self.recorder.add(runs, search=study.study_name, keys=[*map(key_of, trials)])

    def _space_of(self, study: Study, trial: FrozenTrial) -> ConfigurationSpace | None:
        known = self._spaces.get(study.study_name)
        if known is None or not known.holds(trial):
            done = finished_trials(study)
            recent, until = done[-_RECENT:], math.ceil(len(done) * _GROWTH)
            space = read_study(study, trials=recent).space
            known = _KnownSpace(space, until, distributions_in(recent))
            self._spaces[study.study_name] = known
        return known.space


@dataclass
class _KnownSpace:
    """The search space of a study as it was inferred after some trials."""

    space: ConfigurationSpace | None  # None without parameters
    until: int  # number of the first trial for which it is inferred anew in any case
    distributions: dict[str, BaseDistribution]  # that it was inferred from

    def holds(self, trial: FrozenTrial) -> bool:
        """Whether the space fits a trial, too, and need not be inferred anew."""
        is_known = trial.distributions.items() <= self.distributions.items()
        if trial.number >= self.until or not is_known:
            return False
        # Other trials may have ended before they asked for all active parameters.
        if self.space is None or trial.state != TrialState.COMPLETE:
            return True
        return trial.params.keys() == set(active_names(self.space, trial.params))


def key_of(trial: FrozenTrial) -> str:
    """Key of a trial among those of all studies with the same name."""
    facts = (sorted(trial.params.items()), trial.values)
    return run_key(trial.number, trial.datetime_start, *facts)


class NoImprovement:
    """Stop a study that has not improved for a while.

    It depends on the stored trials only, so workers can share the callback, and a resumed study
    continues counting where it stopped. Counting begins with the first trial that is feasible and
    has a finite value: before it there is nothing to improve on.

    Args:
        patience: Complete trials without an improvement after which the study stops.
        min_delta: Improvements up to this do not count, in units of the objective.

    Raises:
        ValueError: If ``patience`` < 1 or ``min_delta`` < 0; on a multi-objective study.
        TypeError: If they are not numbers.

    Example::

        study.optimize(objective, n_trials=1000, callbacks=[NoImprovement(patience=50)])
    """

    def __init__(self, patience: int, *, min_delta: float = 0.0) -> None:
        check_integer("patience", patience, 1)
        check_finite("min_delta", min_delta)
        self.patience = patience
        self.min_delta = min_delta

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        """Stop ``study`` if the last ``patience`` complete trials brought no improvement."""
        sign = -1.0 if is_maximized(study) else 1.0
        best, since = math.inf, 0
        trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        for other in sorted(trials, key=lambda t: t.number):
            feasible = is_feasible(_private.constraints_of(other))
            assert other.value is not None
            # An infinite value is a failure, even if no other value could improve on it.
            loss = sign * other.value if feasible and math.isfinite(other.value) else math.inf
            if loss < best - self.min_delta:
                best, since = loss, 0
            elif best < math.inf:
                since += 1
        if since >= self.patience:
            study.stop()
