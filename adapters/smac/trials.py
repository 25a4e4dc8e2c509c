"""The one reader of SMAC's trials, and where they are found: run histories, facades, folders."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ConfigSpace import Configuration, ConfigurationSpace
from smac import RunHistory
from smac.facade.abstract_facade import AbstractFacade
from smac.runhistory import StatusType, TrialKey, TrialValue

from automl_plugins.records.trial import (
    Status,
    Trial,
    as_number,
    as_seconds,
)
from automl_plugins.spaces.values import values_of

from ._private import facade_name
from .replaying import label

NOTE = "automl_plugins"  # our key in ``additional_info``

_FILE = "runhistory.json"
_DEPTH = 3  # folders between a source and its run histories: name, seed, and one above

Source = RunHistory | AbstractFacade | str | Path
Told = tuple[Configuration, TrialKey, TrialValue]


def read_trial(config: Configuration, key: TrialKey, value: TrialValue, number: int = -1) -> Trial:
    """Read one trial.

    A trial that succeeded with one finite cost is complete; one that crashed or ran out of time or
    memory has failed, whatever the crash cost. What ``write_history`` noted counts instead: SMAC
    has no pruned trials.

    The seconds are what ``write_history`` noted, else ``time``, else the time from start to end:
    the first of them that is a duration. SMAC leaves ``time`` at 0 where a trial crashed or ran
    out of time or memory; ask and tell has ``time`` only, and 0 for an end that nobody gave.

    Args:
        config: The configuration.
        key: Seed, instance and budget; the budget is the step of the trial.
        value: What came of it.
        number: Of the trial.
    """
    info = value.additional_info
    note = info.get(NOTE, {}) if isinstance(info, Mapping) else {}
    started, ended = math.nan, math.nan
    if value.endtime > 0.0:
        started, ended = float(value.starttime), float(value.endtime)
    status, loss, budget = Status.FAILED, as_number(value.cost), as_number(key.budget)
    if value.status == StatusType.RUNNING:
        status = Status.RUNNING
    elif value.status == StatusType.SUCCESS:
        status = Status.COMPLETE
    elif note.get("status") in list(Status):
        status = Status(note["status"])
        loss, budget = as_number(note.get("loss")), as_number(note.get("budget"))
    return Trial(
        config,
        status,
        loss,
        as_seconds(note.get("seconds"), value.time, ended - started),
        step=None if math.isnan(budget) else budget,
        number=number,
        started=started,
        ended=ended,
    )


# --- where they are found -------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """A run history and what is known of it; None where it is not."""

    history: RunHistory
    space: ConfigurationSpace | None
    table: str | None = None
    method: str | None = None
    seed: int | None = None
    max_budget: float | None = None

    @property
    def highest_budget(self) -> float:
        """The budget of trials in full; without one, no trial is evaluated in part."""
        if self.max_budget is not None:
            return self.max_budget
        return max((k.budget for k in self.history if k.budget is not None), default=math.inf)

    def finished(self) -> list[Told]:
        """What was told of the finished trials, in the order in which they ended.

        Raises:
            ValueError: For several objectives or instances, whose losses cannot be compared.
        """
        history, name = self.history, repr(self.table)
        if any(isinstance(value.cost, list) for value in history.values()):
            raise ValueError(f"The run on {name} has several objectives; a search has one.")
        if len(instances := {key.instance for key in history}) > 1:
            raise ValueError(
                f"The run on {name} has {len(instances)} instances, whose losses cannot be"
                " compared; a search has one."
            )
        done = [
            (history.get_config(key.config_id), key, value)
            for key, value in history.items()
            if value.status != StatusType.RUNNING
        ]
        return sorted(done, key=lambda told: told[2].endtime)

    def read(self, told: Iterable[Told]) -> list[Trial]:
        """Trials with values as the space of the run has them; those in full have no step."""
        trials = []
        for number, (config, key, value) in enumerate(told):
            trial = replace(read_trial(config, key, value, number), config=values_of(config))
            if key.budget is not None and key.budget >= self.highest_budget:
                trial = replace(trial, step=None)
            trials.append(trial)
        return trials


def owns(source: str) -> bool:
    """Whether ``curves`` can read a source: a folder with run histories, at most 3 levels down."""
    return os.path.isdir(source) and any(_folders(Path(source)))


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


def runs_of(source: Any) -> list[Run]:
    """The run histories of one source; errors are those of ``runs_in``."""
    if isinstance(source, RunHistory):
        configs = source.get_configs()
        return [Run(source, configs[0].config_space if configs else None)]
    if isinstance(source, AbstractFacade):
        scenario = source.scenario
        return [
            Run(
                source.runhistory,
                scenario.configspace,
                scenario_name(scenario.name),
                _method(scenario.meta),
                scenario.seed,
                scenario.max_budget,
            )
        ]
    if not isinstance(source, str | Path):
        raise TypeError(f"curves() reads run histories, facades and folders, not {source!r}.")
    folders = sorted(_folders(Path(source)))
    if not folders:
        raise ValueError(f"No {_FILE} in {source} or in folders up to {_DEPTH} levels below.")
    return [_read_folder(folder) for folder in folders]


def _folders(root: Path) -> Iterable[Path]:
    for depth in range(_DEPTH + 1):
        for file in root.glob("*/" * depth + _FILE):
            yield file.parent


def _read_folder(folder: Path) -> Run:
    file, space_file = folder / _FILE, folder / "configspace.json"
    scenario_file = folder / "scenario.json"
    if not space_file.is_file():
        raise ValueError(f"{file} needs the search space beside it, in {space_file.name}.")
    space = ConfigurationSpace.from_json(space_file)
    # Scenario.load refuses what another version wrote, and most of it does not matter here.
    known = json.loads(scenario_file.read_text()) if scenario_file.is_file() else {}
    try:  # RunHistory.load takes a broken file for an empty one
        json.loads(file.read_text())
    except ValueError as error:
        raise ValueError(f"{file} is no JSON: {error}.") from None
    history = RunHistory()
    history.load(file, configspace=space)
    return Run(
        history,
        space,
        scenario_name(known.get("name")),
        _method(known.get("_meta", {})),
        known.get("seed"),
        known.get("max_budget"),
    )


def scenario_name(name: str | None) -> str | None:
    """Name of a scenario; None for the hash, another one for each seed, that SMAC makes up."""
    return None if name is None or re.fullmatch("[0-9a-f]{32}", name) else name


def _method(meta: dict[str, Any]) -> str | None:
    name = facade_name(meta)
    return None if name is None else label(name)
