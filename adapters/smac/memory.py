"""Run histories as tasks of a memory and as searches, and runs of any origin as run histories."""

from __future__ import annotations

import math
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from ConfigSpace import Configuration, ConfigurationSpace
from smac import RunHistory
from smac.callback import Callback
from smac.facade.abstract_facade import AbstractFacade
from smac.main.smbo import SMBO
from smac.runhistory import StatusType, TrialInfo, TrialKey, TrialValue

from automl_plugins._arguments import level_of_caller
from automl_plugins.meta.alignment import AlignOptions
from automl_plugins.meta.conversion import conform, dataset_of, require_space
from automl_plugins.meta.dataset import MetaDataset
from automl_plugins.meta.plain import digest, encode, plain_configuration
from automl_plugins.meta.recorder import Recorder, SearchRecorder, WritableStore, search_name
from automl_plugins.records.search import Search
from automl_plugins.records.task_record import TaskRecord, UnnamedTask
from automl_plugins.records.trial import Status, as_number, finite_or_none, note_outcome
from automl_plugins.spaces.values import as_configuration, to_vector, values_of

from ._private import scenario_of
from .trials import (
    NOTE,
    FinishedTrial,
    Run,
    Source,
    check_one_objective,
    describe_run,
    runs_of,
    use_runs,
    write_note,
)

# --- searches -------------------------------------------------------------------------------


def curves(
    source: RunHistory | AbstractFacade | str | Path,
    *,
    table: str | None = None,
    method: str | None = None,
    seed: int | None = None,
) -> list[Search]:
    """The searches that run histories record.

    A configuration evaluated with several seeds has a trial for each, with its own loss.

    Args:
        source: A run history; a facade; a folder that SMAC wrote, or one above such folders.
        table: What was tuned; None takes the name that the scenario was given.
        method: What tuned it; None takes the label of the facade, such as ``"smac.GBQR"``.
        seed: Number of the repetition; None takes the seed of the scenario, 0 without one.

    Returns:
        One search for each run history. Trials that crashed, ran out of time or memory or have an
        infinite cost are failed ones; running ones are left out, and counted in ``left_out``.
        The step of a trial is its budget, None for the highest one.

    Raises:
        TypeError: For any other source.
        ValueError: For a folder without run histories, an unknown table or method, or runs on
            several objectives or instances, whose losses cannot be compared.
    """
    labels: dict[str, Any] = {"table": table, "method": method, "seed": seed}
    given = {name: value for name, value in labels.items() if value is not None}
    searches = []
    for run in (replace(run, **given) for run in runs_of(source)):
        if run.table is None or run.method is None:
            absent = " and ".join(f"{n}=" for n in ("table", "method") if getattr(run, n) is None)
            raise ValueError(
                f"A run history does not store what was tuned: pass {absent} in Python. With"
                " Scenario(name=...) and its folder or facade, table= and method= are known."
            )
        finished, facts = run.finished(), (run.table, run.method, run.seed or 0)
        left_out = {"running": len(run.history) - len(finished)}
        searches.append(Search.of(*facts, run.read(finished), space=run.space, left_out=left_out))
    return searches


# --- tasks of a memory ----------------------------------------------------------------------


def read_task(
    source: Source, *, name: str | None = None, space: ConfigurationSpace | None = None
) -> TaskRecord:
    """The finished trials of the only run history of a source, read as by ``curves``.

    ValueError for several run histories or none, and for a run without a name.
    """
    runs = runs_of(source)
    if len(runs) != 1:
        raise ValueError(
            f"{source} holds {len(runs)} run histories, but a task is one: pass its folder, or"
            " read all with meta_dataset_from_runhistory."
        )
    run = runs[0].named(name)
    record = _read_record(run, run.finished())
    return record if space is None else replace(record, space=space)


def read_tasks(source: Source, *, name: str | None = None) -> list[TaskRecord]:
    """The usable run histories of a source, see ``use_runs``; records of one name are one task.

    Given a ``name``, all runs must be of one task, such as the seeds of a scenario.
    """

    def use(run: Run) -> tuple[str | None, TaskRecord]:
        return run.table, _read_record(run.named(name), run.finished())

    found = use_runs(source, use)
    if name is not None and len(own := dict.fromkeys(table for table, _ in found)) > 1:
        tasks = ["one without a name" if table is None else repr(table) for table in own]
        listed = " and ".join(tasks[:3]) + (f" and {len(tasks) - 3} more" if tasks[3:] else "")
        raise ValueError(
            f"{source} holds {len(found)} run histories, of {listed}, but {name!r} is one task:"
            " give the folder of each scenario by a name of its own, or the whole folder without"
            " a name."
        )
    return [record for _, record in found]


def _read_record(run: Run, finished: Sequence[FinishedTrial]) -> TaskRecord:
    if run.table is None:
        raise UnnamedTask(
            "A run history does not store what was tuned: give the Scenario a name, and pass its"
            " folder or facade. Or name the task: {name: source} as a memory and for"
            " meta_dataset_from_runhistory, task= for RecordCallback, name= elsewhere."
        )
    return TaskRecord.of(
        run.table, run.read(finished), space=run.space, framework="smac", seed=run.seed
    )


def meta_dataset_from_runhistory(
    sources: Source | Iterable[Source] | Mapping[str, Source],
    space: ConfigurationSpace | None = None,
    *,
    meta_features: Mapping[str, Mapping[str, float]] | None = None,
    tags: Mapping[str, Mapping[str, str]] | None = None,
    **options: Unpack[AlignOptions],
) -> MetaDataset:
    """Run histories as the memory that initial designs and meta-models read.

    Run histories with the same name are one task, so the seeds of a scenario are joined.

    Args:
        sources: A run history, a facade, or a folder with any number of run histories below it;
            several of these; or several by name of the task. By default the task has the name of
            its scenario. In a folder with several, runs that cannot be used are left out with a
            warning.
        space: The search space; None takes the union of the recorded ones.
        meta_features: Properties of the data by name of the task.
        tags: Further facts by name of the task.
        **options: ``out_of_range``, ``missing``: see ``MetaDataset.from_records``.

    Raises:
        TypeError: For anything but run histories.
        ValueError: As ``read_task``; if no task shares a hyperparameter with the space.
    """
    records = use_runs(sources, lambda run: _read_record(run, run.finished()))
    return dataset_of(records, space, meta_features=meta_features, tags=tags, **options)


# --- runs of any origin as a run history ----------------------------------------------------


def write_history(
    record: TaskRecord,
    space: ConfigurationSpace | None = None,
    *,
    crash_cost: float | None = None,
) -> RunHistory:
    """Runs as a run history, for ``tell`` of a facade, or to be saved for SMAC.

    A configuration that was evaluated again has another seed each time: 0, 1, ... A scenario with
    ``deterministic=True`` runs seed 0 only: tell it no other seeds, or SMAC never replaces a
    configuration that has them, however good other configurations are.

    SMAC has no pruned trials, and its model takes costs at face value: a run that was pruned or at
    a lower budget has the status TIMEOUT and, like a failed one, the largest loss of a complete
    run, or of any run without complete ones (SMAC cannot fit its model to an infinite cost).
    ``read_task`` restores the true losses and budgets. Facades with budgets do not take these
    trials, which have no budget.
    ``RunHistory.add`` scans all earlier trials: 1 000 runs take seconds, 10 000 minutes.

    Args:
        record: The runs.
        space: The search space of the scenario; None takes the recorded one.
        crash_cost: Cost of failed, pruned and low-budget runs; None as above.

    Raises:
        ValueError: If the space is not known, or no run fits it.

    Example::

        history = write_history(record, scenario.configspace)
        for key, value in history.items():
            if key.seed == 0 or not scenario.deterministic:
                config = history.get_config(key.config_id)
                facade.tell(TrialInfo(config, seed=key.seed), value, save=False)
    """
    if crash_cost is not None and math.isnan(as_number(crash_cost)):
        raise ValueError(f"crash_cost must be a number, got {crash_cost!r}.")
    space = require_space(record, space)
    record = conform(record, space)
    if crash_cost is None:
        crash_cost = _worst(record)
    history = RunHistory()
    repeats: Counter[Configuration] = Counter()
    clock = 0.0
    n_rounded = 0
    for i, values in enumerate(record.configurations):
        config = as_configuration(space, to_vector(space, values))  # equal ones hash equally
        n_rounded += not _is_kept(values, config)
        seconds, end = float(record.seconds[i]), float(record.times[i])
        length = 0.0 if math.isnan(seconds) else seconds
        # From 0 on as long as no time is known: ``known_times`` ignores such times.
        end = clock = clock + length if math.isnan(end) else end
        status, cost, note = _outcome(record, i, crash_cost)
        history.add(
            config,
            cost=cost,
            time=length,
            status=status,
            seed=repeats[config],
            starttime=end - length,
            endtime=end,
            additional_info={NOTE: note},
        )
        repeats[config] += 1
    if n_rounded:
        warnings.warn(
            f"SMAC rounds real numbers to 13 decimals: in {n_rounded} of {len(record)}"
            " runs a value changes by more than a millionth of it, and values that become equal"
            " count as one configuration with several seeds.",
            stacklevel=level_of_caller(),
        )
    return history


def _is_kept(values: Mapping[str, Any], config: Configuration) -> bool:
    """Whether the real numbers of a configuration differ from the given ones by rounding only."""
    return all(
        math.isclose(values[name], value, rel_tol=1e-6)
        for name, value in config.items()
        if isinstance(value, float) and name in values
    )


def _worst(record: TaskRecord) -> float:
    """The largest loss of a complete run, else of any run; 1, with a warning, without losses."""
    for losses in (record.complete_losses, record.losses):
        if not np.isnan(losses).all():
            return float(np.nanmax(losses))
    if len(record):
        warnings.warn(
            f"No run of {record.name!r} has a loss: its {len(record)} failed ones get the cost 1,"
            " which may be better than any real one. Pass crash_cost= to write_history.",
            stacklevel=level_of_caller(),
        )
    return 1.0


def _outcome(record: TaskRecord, row: int, crash_cost: float) -> tuple[StatusType, float, Any]:
    """Status and cost for SMAC's model, and a note with the facts that they do not express."""
    status, loss = Status(record.status[row]), float(record.losses[row])
    noted = note_outcome(status, loss, float(record.budget[row]))
    # The seconds are more exact than the difference of two times.
    note = {"seconds": finite_or_none(record.seconds[row]), **noted}
    if status == Status.COMPLETE and not noted:
        return StatusType.SUCCESS, loss, note
    end = StatusType.CRASHED if status == Status.FAILED else StatusType.TIMEOUT
    return end, crash_cost, note


# --- recording while a facade continues -----------------------------------------------------


class RecordCallback(SearchRecorder, Callback):
    """A callback that writes finished trials to a store: those that succeed, and those that fail.

    A trial is identified by the search space and seed of its scenario, its configuration, seed,
    budget and end, so it is stored once, however often it is recorded or imported (``add``): the
    seed of the scenario is noted in the ``additional_info`` of each trial. Works with parallel
    workers: SMAC reports results in the main process.

    A failure to record does not stop SMAC: the first is logged as a warning, all are counted in
    ``n_lost``. Wrong arguments raise at once, an unsuitable scenario when ``optimize`` begins.

    Args:
        store: A ``MetaStore``, or its address or path.
        task: Name of the task; None takes the name that the scenario was given.
        meta_features: Properties of the data by name, such as ``meta_features(X, y)``.
        tags: Further facts about the task.

    Raises:
        StoreError, TypeError, ValueError: As ``Recorder``.

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

    def on_start(self, smbo: SMBO) -> None:
        """Refuse a scenario that cannot be recorded, before ``optimize`` begins.

        Raises:
            ValueError: For a scenario without a name if ``task`` was not given; with several
                instances or objectives.
        """
        self._run(smbo)

    def on_tell_start(self, smbo: SMBO, info: TrialInfo, value: TrialValue) -> bool | None:
        """Note the scenario's seed, so that a bare run history is known to be this run."""
        write_note(value, NOTE, {"seed": int(scenario_of(smbo).seed)})
        return None

    def on_tell_end(self, smbo: SMBO, info: TrialInfo, value: TrialValue) -> bool | None:
        """Write a finished trial."""
        with self.recorder.survive():
            number = smbo.runhistory.get_config_id(info.config)
            key = TrialKey(number, info.instance, info.seed, info.budget)
            # The value in the run history, whose cost is one float, as it would be imported.
            trial = info.config, key, smbo.runhistory[key]
            run = self._run(smbo)
            self._write(run, [trial], _read_record(run, [trial]))
        return None

    def _run(self, smbo: SMBO) -> Run:
        scenario = scenario_of(smbo)
        run = describe_run(smbo.runhistory, scenario).named(self.recorder.task)
        if run.table is None:
            raise ValueError("The Scenario has no name, so the task has none: pass task=.")
        check_one_objective("RecordCallback", scenario)
        if (n := len(scenario.instances or ())) > 1:
            raise ValueError(
                f"The scenario has {n} instances, whose losses cannot be compared: RecordCallback"
                " takes scenarios with one."
            )
        return run

    def add(self, source: Source | Iterable[Source]) -> int:
        """Write all finished trials that are not stored yet; return their number.

        Args:
            source: A run history, a facade, a folder with any number of run histories below it;
                or several of these. In a folder with several, runs that cannot be used are left
                out with a warning.

        Raises:
            StoreError: If the store cannot be written.
            ValueError: For several objectives or instances, or without a name for the task, if
                the run is given by itself or alone in its folder.
        """
        return sum(self._write(*read) for read in use_runs(source, self._read) if read[1])

    def _read(self, run: Run) -> tuple[Run, list[FinishedTrial], TaskRecord | None]:
        finished = run.finished()
        named = run.named(self.recorder.task)
        return run, finished, _read_record(named, finished) if finished else None

    def _write(self, run: Run, trials: list[FinishedTrial], record: TaskRecord | None) -> int:
        assert run.space is not None and record is not None  # as of each run with a trial
        search = search_name("smac", run.space, run.seed)
        return self.recorder.add(record, search=search, keys=[_key(*trial) for trial in trials])


def _key(config: Configuration, key: TrialKey, value: TrialValue) -> str:
    """Key of a trial that is the same in every run history: by values, not by configuration ids.

    A trial told without a time is distinguished by its cost.
    """
    values = encode(plain_configuration(values_of(config), where="A trial"))
    when = value.endtime or (value.cost, value.time)
    return digest(values, key.instance, key.seed, key.budget, when)
