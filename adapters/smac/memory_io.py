"""Run histories as tasks of a memory, and runs of anywhere as a run history."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from ConfigSpace import Configuration, ConfigurationSpace
from smac import RunHistory
from smac.facade.abstract_facade import AbstractFacade
from smac.runhistory import StatusType, TrialKey, TrialValue

from automl_plugins.meta.alignment import Missing, OutOfRange
from automl_plugins.meta.conversion import conform, dataset_of, space_of
from automl_plugins.meta.dataset import MetaDataset
from automl_plugins.records.task_record import TaskRecord, UnnamedTask
from automl_plugins.records.trial import Status
from automl_plugins.spaces.values import as_configuration, values_of

from .reading import Run, check_one_problem, runs_of

__all__ = [
    "NOTE",
    "Run",
    "Source",
    "finished",
    "is_space",
    "meta_dataset_from_runhistory",
    "read_task",
    "read_trials",
    "runs_in",
    "write_history",
]

NOTE = "automl_plugins"  # our key in ``additional_info``

Source = RunHistory | AbstractFacade | str | Path
Trial = tuple[Configuration, TrialKey, TrialValue]


def read_task(
    source: Source, *, name: str | None = None, space: ConfigurationSpace | None = None
) -> TaskRecord:
    """The finished trials of a run history.

    Trials that crashed, ran out of time or memory or have an infinite cost are failed ones. A
    configuration evaluated with several seeds has a run for each.

    Args:
        source: A run history; a facade; a folder that SMAC wrote, with one run history in it or
            below.
        name: Name of the task; None takes the name that the scenario was given.
        space: The search space; None takes the recorded one.

    Raises:
        TypeError: For anything else.
        ValueError: For several run histories, or none; without a name; for runs on several
            objectives or instances, whose losses cannot be compared.
    """
    runs = runs_of(source)
    if len(runs) != 1:
        raise ValueError(
            f"{source} holds {len(runs)} run histories, a task is one of them: pass its folder, or"
            " read all with meta_dataset_from_runhistory."
        )
    run = runs[0] if name is None else replace(runs[0], table=name)
    record = read_trials(run, finished(run), None)
    return record if space is None else replace(record, space=space)


def meta_dataset_from_runhistory(
    sources: Source | Iterable[Source] | Mapping[str, Source],
    space: ConfigurationSpace | None = None,
    *,
    meta_features: Mapping[str, Mapping[str, float]] | None = None,
    tags: Mapping[str, Mapping[str, str]] | None = None,
    out_of_range: OutOfRange = "clip",
    missing: Missing = "impute",
    defaults: Mapping[str, Any] | None = None,
) -> MetaDataset:
    """Run histories as the memory that initial designs and meta-models read.

    Run histories of one name are one task, so the seeds of a scenario go together.

    Args:
        sources: A run history, a facade, or a folder with any number of run histories below it;
            several of these; or several by name of the task. Without a name the task has that of
            its scenario.
        space: The search space; None takes the union of the recorded ones.
        meta_features: Properties of the data by name of the task.
        tags: What else is known, by name of the task.
        out_of_range: ``"clip"`` or ``"drop"`` numbers outside their range.
        missing: ``"impute"`` or ``"drop"`` runs without a value for an active hyperparameter.
        defaults: Values to impute by name; others have the default of the space.

    Raises:
        TypeError: For anything that is no run history.
        ValueError: As ``read_task``; if no task shares a hyperparameter with the space.
    """
    records = [read_trials(run, finished(run), None) for run in runs_in(sources)]
    return dataset_of(
        records,
        space,
        meta_features=meta_features,
        tags=tags,
        out_of_range=out_of_range,
        missing=missing,
        defaults=defaults,
    )


def write_history(
    record: TaskRecord,
    space: ConfigurationSpace | None = None,
    *,
    crash_cost: float | None = None,
) -> RunHistory:
    """Runs as a run history, for a facade to be told of or to be saved for SMAC.

    A configuration that was evaluated again has another seed each time: 0, 1, ... SMAC has no
    pruned trials, and its model takes costs at face value: what was pruned or evaluated at a
    lower budget has the status TIMEOUT and, like what failed, the cost of the worst complete run
    (SMAC cannot fit its model to an infinite one). ``read_task`` finds the true losses again.
    ``RunHistory.add`` looks at all earlier trials: 1 000 runs take seconds, 10 000 minutes.

    Args:
        record: The runs.
        space: The search space of the scenario; None takes the recorded one.
        crash_cost: The cost of failed runs instead.

    Raises:
        ValueError: If the space is not known, or no run fits it.

    Example::

        history = write_history(record, scenario.configspace)
        for key, value in history.items():
            config = history.get_config(key.config_id)
            facade.tell(TrialInfo(config, seed=key.seed), value, save=False)
    """
    space = space_of(record, space)
    record = conform(record, space)
    complete = record.losses[(record.status == Status.COMPLETE) & np.isnan(record.budget)]
    worst = float(complete.max()) if len(complete) else 1.0
    history = RunHistory()
    repeats: Counter[tuple[float, ...]] = Counter()
    clock = 0.0
    for i, values in enumerate(record.configurations):
        vector = np.array(
            [space[n].to_vector(values[n]) if n in values else math.nan for n in space.at]
        )
        seconds, end = float(record.seconds[i]), float(record.times[i])
        length = 0.0 if math.isnan(seconds) else seconds
        clock = clock + length if math.isnan(end) else end
        key = tuple(np.nan_to_num(vector, nan=-1.0).tolist())
        status, cost, note = _outcome(record, i, worst if crash_cost is None else crash_cost)
        if math.isnan(end):
            note["untimed"] = True
        history.add(
            as_configuration(space, vector),
            cost=cost,
            time=length,
            status=status,
            seed=repeats[key],
            starttime=clock - length,
            endtime=clock,
            additional_info={NOTE: note},
        )
        repeats[key] += 1
    return history


def _outcome(record: TaskRecord, row: int, crash_cost: float) -> tuple[StatusType, float, Any]:
    """Status and cost for SMAC's model, and what it has no word for."""
    status, loss = Status(record.status[row]), float(record.losses[row])
    budget = float(record.budget[row])
    seconds = float(record.seconds[row])  # more exact than the difference of two times
    note: dict[str, Any] = {"seconds": None if math.isnan(seconds) else seconds}
    if status == Status.COMPLETE and math.isnan(budget):
        return StatusType.SUCCESS, loss, note
    if status == Status.FAILED:
        return StatusType.CRASHED, crash_cost, note
    note["status"] = int(status)
    note["loss"] = None if math.isnan(loss) else loss
    note["budget"] = None if math.isnan(budget) else budget
    return StatusType.TIMEOUT, crash_cost, note


def is_space(thing: Any) -> bool:
    """Whether something is a search space of SMAC's."""
    return isinstance(thing, ConfigurationSpace)


def runs_in(sources: Source | Iterable[Source] | Mapping[str, Source]) -> list[Run]:
    """The run histories that are meant.

    Raises:
        TypeError: For anything that is none.
        ValueError: For a folder without any.
    """
    if isinstance(sources, RunHistory | AbstractFacade | str | Path):
        return runs_of(sources)
    if isinstance(sources, Mapping):
        return [
            replace(run, table=str(name))
            for name, source in sources.items()
            for run in runs_of(source)
        ]
    return [run for source in sources for run in runs_of(source)]


def finished(run: Run) -> list[Trial]:
    """The finished trials, in the order in which they ended.

    Raises:
        ValueError: For several objectives or instances.
    """
    history = run.history
    check_one_problem(str(run.table), history)
    done = [
        (history.get_config(key.config_id), key, value)
        for key, value in history.items()
        if value.status != StatusType.RUNNING
    ]
    return sorted(done, key=lambda trial: trial[2].endtime)


def read_trials(run: Run, trials: Sequence[Trial], name: str | None) -> TaskRecord:
    """Finished trials of a run history as a task.

    Raises:
        ValueError: Without a name; for several objectives.
    """
    name = run.table if name is None else name
    if name is None:
        raise UnnamedTask(
            "A run history does not say what it is of: pass name=, or give the Scenario a name and"
            " pass its folder or facade."
        )
    highest = run.max_budget
    if highest is None:  # of a run history alone
        budgets = [key.budget for key in run.history if key.budget is not None]
        highest = max(budgets, default=math.inf)
    facts = np.array([_facts(key, value, highest) for _, key, value in trials]).reshape(-1, 5)
    losses, seconds, status, budget, times = facts.T
    return TaskRecord(
        name,
        [values_of(config) for config, _, _ in trials],
        losses,
        seconds=seconds,
        status=status.astype(np.int64),
        budget=budget,
        times=times,
        space=run.space,
        framework="smac",
        seed=run.seed,
    )


def _facts(
    key: TrialKey, value: TrialValue, highest: float
) -> tuple[float, float, Status, float, float]:
    """Loss, seconds, status, budget and time of the end."""
    note = (value.additional_info or {}).get(NOTE, {})
    timed = value.endtime > 0.0  # ask and tell leave it at 0 where nobody gives it
    time = value.endtime if timed and not note.get("untimed") else math.nan
    # Trials that ran out of time or memory have no ``time``.
    seconds = value.endtime - value.starttime if timed else value.time or math.nan
    seconds = _number(note.get("seconds", seconds))
    if "status" in note:
        loss, budget = _number(note["loss"]), _number(note["budget"])
        return loss, seconds, Status(note["status"]), budget, time
    cost = value.cost
    if isinstance(cost, list):
        raise ValueError(f"A trial has {len(cost)} objectives; a task has one.")
    complete = value.status == StatusType.SUCCESS and math.isfinite(cost)
    below = key.budget is not None and key.budget < highest
    return (
        float(cost) if complete else math.nan,
        seconds,
        Status.COMPLETE if complete else Status.FAILED,
        float(key.budget) if below and key.budget is not None else math.nan,
        time,
    )


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
