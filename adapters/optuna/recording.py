"""Trials written to a memory while a study goes on."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace

from ConfigSpace import ConfigurationSpace
from optuna.distributions import BaseDistribution
from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from automl_plugins.meta.recorder import Recorder, WritableStore
from automl_plugins.spaces.conditions import is_active

from .memory_io import finished, read_trials, studies_in
from .reading import space_of_trials

_GROWTH = 1.2  # of the number of trials, after which conditions are inferred anew
_RECENT = 500  # trials that they are inferred from


def record(
    store: WritableStore | str | os.PathLike[str],
    task: str | None = None,
    meta_features: Mapping[str, float] | None = None,
    tags: Mapping[str, str] | None = None,
) -> StudyRecorder:
    """A callback that writes finished trials to a store: complete, pruned and failed ones.

    A trial is known by the name of its study, its number and its beginning, so it is never there
    twice, however often it is recorded or imported (``add``). Works with ``n_jobs`` threads, with
    several processes and pickled. Optuna calls no callbacks for a trial whose exception is not
    caught (``catch=``): it ends ``optimize``, and ``add`` takes the trial over.

    Nothing that happens while trials are recorded stops the study: the first failure is logged as
    a warning, all are counted in ``n_lost``. What is wrong with the arguments is raised at once.

    Args:
        store: A ``MetaStore``, or its address or path.
        task: Name of the task; None takes the study's user attribute ``"table"``, else its name.
        meta_features: Properties of the data by name, such as ``meta_features(X, y)``.
        tags: What else is known of the task.

    Raises:
        StoreError: If the store cannot be opened.
        TypeError: For a store that is none, meta-features that are no numbers, tags that are no
            text.
        ValueError: For an infinite meta-feature, or an address that is none.

    Example::

        study.optimize(objective, n_trials=100, callbacks=[record("memory.db", task="iris")])
    """
    return StudyRecorder(Recorder(store, task=task, meta_features=meta_features, tags=tags))


class StudyRecorder:
    """A callback for ``study.optimize``, see ``record``.

    Args:
        recorder: Writes to the store.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._spaces: dict[str, _KnownSpace] = {}  # by study: a cache

    @property
    def n_recorded(self) -> int:
        """Trials that were written and not there before."""
        return self.recorder.n_recorded

    @property
    def n_lost(self) -> int:
        """Trials that could not be written."""
        return self.recorder.n_lost

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        """Write a finished trial; one that is not finished is left alone."""
        if not trial.state.is_finished():
            return
        self.recorder.write(
            lambda: replace(
                read_trials(study, [trial], self.recorder.task), space=self._space_of(study, trial)
            ),
            search=lambda: study.study_name,
            key=lambda: _key(trial),
        )

    def add(self, source: Study | BaseStorage | str | Iterable[Study]) -> int:
        """Write all finished trials of studies that are not there yet; returns how many.

        Args:
            source: A study or several; a storage, its address or journal file, for all in it.

        Raises:
            StoreError: If the store cannot be written.
            ValueError: For a study of several objectives.
        """
        new = 0
        for study in studies_in(source):
            done = finished(study)
            if not done:
                continue
            runs = replace(
                read_trials(study, done, self.recorder.task), space=space_of_trials(done)
            )
            new += self.recorder.add(
                runs, search=study.study_name, keys=[_key(trial) for trial in done]
            )
        return new

    def _space_of(self, study: Study, trial: FrozenTrial) -> ConfigurationSpace | None:
        known = self._spaces.get(study.study_name)
        if known is None or not known.holds(trial):
            done = finished(study)
            known = _KnownSpace(space_of_trials(done[-_RECENT:]), len(done), trial)
            self._spaces[study.study_name] = known
        return known.space


class _KnownSpace:
    """The search space of a study as it was inferred after some trials.

    Args:
        space: The space; None where ConfigSpace cannot express it.
        n_trials: How many had finished.
        trial: The last of them.
    """

    def __init__(
        self, space: ConfigurationSpace | None, n_trials: int, trial: FrozenTrial
    ) -> None:
        self.space = space
        self._until = math.ceil(n_trials * _GROWTH)
        self._seen: dict[str, BaseDistribution] = dict(trial.distributions)

    def holds(self, trial: FrozenTrial) -> bool:
        """Whether the space need not be inferred anew because of a trial."""
        if trial.number >= self._until:
            return False
        for name, distribution in trial.distributions.items():
            if self._seen.setdefault(name, distribution) != distribution:
                return False
            if self.space is not None and name not in self.space:
                return False
        if self.space is None or trial.state != TrialState.COMPLETE:
            return True
        active = {name for name in self.space if is_active(self.space, name, trial.params)}
        return active == trial.params.keys()


def _key(trial: FrozenTrial) -> str:
    """Names of studies are not unique: studies of one name differ by when their trials began."""
    began = trial.datetime_start
    return f"{trial.number}" if began is None else f"{trial.number}@{began.isoformat()}"
