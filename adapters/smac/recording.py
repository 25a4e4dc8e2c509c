"""Trials written to a memory while a facade goes on."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from ConfigSpace import Configuration
from smac.callback import Callback
from smac.main.smbo import SMBO
from smac.runhistory import StatusType, TrialInfo, TrialKey, TrialValue

from automl_plugins.meta.encoding import digest, encode, plain_configuration
from automl_plugins.meta.recorder import Recorder, WritableStore, search_name
from automl_plugins.spaces.values import values_of

from ._private import scenario_of
from .memory_io import Run, Source, finished, read_trials, runs_in
from .reading import scenario_name


class RecordCallback(Callback):
    """A callback that writes finished trials to a store: those that succeed, and those that fail.

    A trial is known by the name of its scenario, its configuration, seed, budget and end, so it is
    never there twice, however often it is recorded or imported (``add``). Works with parallel
    workers: SMAC tells results in the main process.

    Nothing that happens while trials are recorded stops SMAC: the first failure is logged as a
    warning, all are counted in ``n_lost``. What is wrong with the arguments is raised at once,
    what is wrong with the scenario when ``optimize`` begins.

    Args:
        store: A ``MetaStore``, or its address or path.
        task: Name of the task; None takes the name that the scenario was given.
        meta_features: Properties of the data by name, such as ``meta_features(X, y)``.
        tags: What else is known of the task.

    Raises:
        StoreError: If the store cannot be opened.
        TypeError: For a store that is none, meta-features that are no numbers, tags that are no
            text.
        ValueError: For an infinite meta-feature, or an address that is none.

    Example::

        facade = Facade(scenario, train, callbacks=[RecordCallback("memory.db", task="iris")])
    """

    def __init__(
        self,
        store: WritableStore | str | os.PathLike[str],
        task: str | None = None,
        meta_features: Mapping[str, float] | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        self.recorder = Recorder(store, task=task, meta_features=meta_features, tags=tags)

    @property
    def n_recorded(self) -> int:
        """Trials that were written and not there before."""
        return self.recorder.n_recorded

    @property
    def n_lost(self) -> int:
        """Trials that could not be written."""
        return self.recorder.n_lost

    def on_start(self, smbo: SMBO) -> None:
        """Refuse what could not be recorded, before ``optimize`` begins.

        Raises:
            ValueError: For a scenario without a name if ``task`` was not given; with several
                instances.
        """
        self._run(smbo)

    def on_tell_end(self, smbo: SMBO, info: TrialInfo, value: TrialValue) -> bool | None:
        """Write a finished trial."""
        if value.status == StatusType.RUNNING:
            return None
        trial = info.config, TrialKey(0, info.instance, info.seed, info.budget), value
        self.recorder.write(
            lambda: read_trials(self._run(smbo), [trial], None),
            search=lambda: _search(self._run(smbo)),
            key=lambda: _key(*trial),
        )
        return None

    def _run(self, smbo: SMBO) -> Run:
        scenario = scenario_of(smbo)
        name = scenario_name(scenario.name) if self.recorder.task is None else self.recorder.task
        if name is None:
            raise ValueError("The Scenario has no name to call the task by: pass task=.")
        if len(scenario.instances or ()) > 1:
            raise ValueError(
                f"The scenario has {len(scenario.instances or ())} instances, whose losses cannot"
                " be compared: RecordCallback records tasks with one."
            )
        return Run(
            smbo.runhistory,
            scenario.configspace,
            name,
            seed=scenario.seed,
            max_budget=scenario.max_budget,
        )

    def add(self, source: Source | Iterable[Source]) -> int:
        """Write all finished trials of run histories that are not there yet; returns how many.

        Args:
            source: A run history, a facade, a folder with any number of run histories below it;
                or several of these.

        Raises:
            StoreError: If the store cannot be written.
            ValueError: For several objectives or instances, or without a name for the task.
        """
        new = 0
        for run in runs_in(source):
            trials = finished(run)
            if trials:
                record = read_trials(run, trials, self.recorder.task)
                keys = [_key(*trial) for trial in trials]
                new += self.recorder.add(record, search=_search(run), keys=keys)
        return new


def _search(run: Run) -> str:
    if run.space is None:
        raise ValueError("The run history has no configuration, so no search space.")
    return search_name("smac", run.space, run.seed)


def _key(config: Configuration, key: TrialKey, value: TrialValue) -> str:
    """Ids of configurations differ between run histories; their values do not."""
    told = encode(plain_configuration(values_of(config), where="A trial"))
    return digest(told, key.instance, key.seed, key.budget, value.endtime)
