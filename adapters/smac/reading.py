"""SMAC's run histories as ``Search`` objects, for comparisons and tables."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ConfigSpace import ConfigurationSpace
from smac import RunHistory
from smac.facade.abstract_facade import AbstractFacade
from smac.runhistory import StatusType, TrialKey, TrialValue

from automl_plugins.records.search import RecordedTrial, Search
from automl_plugins.replay.protocol import TrialStatus
from automl_plugins.spaces.values import values_of

from ._private import facade_name
from .replaying import label

_FILE = "runhistory.json"
_DEPTH = 3  # folders between a source and its run histories: name, seed, and one above


@dataclass(frozen=True)
class Run:
    """A run history and what is known of it; None where it is not."""

    history: RunHistory
    space: ConfigurationSpace | None
    table: str | None = None
    method: str | None = None
    seed: int | None = None
    max_budget: float | None = None


def owns(source: str) -> bool:
    """Whether ``curves`` can read a source: a folder with run histories, at most 3 levels down."""
    return os.path.isdir(source) and any(_folders(Path(source)))


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
        method: What tuned it; None takes that of the facade.
        seed: Number of the repetition; None takes the seed of the scenario, 0 without one.

    Returns:
        One search for each run history. Trials that crashed or ran out of time or memory are
        failed ones; running ones are left out, which the search says. The step of a trial is its
        budget, None for the highest one.

    Raises:
        TypeError: For anything else.
        ValueError: For a folder without run histories, one that does not say what was tuned, or
            runs on several objectives or instances, whose losses cannot be compared.
    """
    return [_search(run, table, method, seed) for run in runs_of(source)]


def runs_of(source: Any) -> list[Run]:
    """The run histories of a source; errors are those of ``curves``."""
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
    return [_read(folder) for folder in folders]


def _folders(root: Path) -> Iterable[Path]:
    for depth in range(_DEPTH + 1):
        for file in root.glob("*/" * depth + _FILE):
            yield file.parent


def _read(folder: Path) -> Run:
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


def _search(run: Run, table: str | None, method: str | None, seed: int | None) -> Search:
    table = run.table if table is None else table
    method = run.method if method is None else method
    if table is None or method is None:
        absent = " and ".join(
            f"{word}=" for word, value in (("table", table), ("method", method)) if value is None
        )
        raise ValueError(
            f"A run history does not say what it is of: pass {absent}. With Scenario(name=...) and"
            " its folder or facade, table= and method= are known."
        )
    if seed is None:
        seed = run.seed or 0
    check_one_problem(table, run.history)
    done = [(k, v) for k, v in run.history.items() if v.status != StatusType.RUNNING]
    done.sort(key=lambda trial: trial[1].endtime)
    begin = min((value.starttime for _, value in done if value.endtime > 0.0), default=0.0)
    highest = run.max_budget
    if highest is None:
        highest = max((k.budget for k, _ in done if k.budget is not None), default=math.inf)
    trials = [_trial(run.history, key, value, begin, highest) for key, value in done]
    return Search(table, method, seed, trials, run.space, _left_out(run.history))


def check_one_problem(table: str, history: RunHistory) -> None:
    """Refuse several objectives and several instances.

    Raises:
        ValueError: For either.
    """
    if any(isinstance(value.cost, list) for value in history.values()):
        raise ValueError(f"The run on {table!r} has several objectives; a search has one.")
    instances = {key.instance for key in history}
    if len(instances) > 1:
        raise ValueError(
            f"The run on {table!r} has {len(instances)} instances, whose losses cannot be"
            " compared; a search has one."
        )


def _left_out(history: RunHistory) -> tuple[str, ...]:
    n = sum(value.status == StatusType.RUNNING for value in history.values())
    return (f"{n} running trial{'s' if n > 1 else ''} left out.",) if n else ()


def _trial(
    history: RunHistory, key: TrialKey, value: TrialValue, begin: float, highest: float
) -> RecordedTrial:
    cost = value.cost
    assert not isinstance(cost, list)
    complete = value.status == StatusType.SUCCESS and math.isfinite(cost)
    timed = value.endtime > 0.0  # ask and tell leave it at 0 where nobody gives it
    untimed = value.time if value.time > 0.0 else math.nan
    below = key.budget is not None and key.budget < highest
    return RecordedTrial(
        values_of(history.get_config(key.config_id)),
        TrialStatus.COMPLETE if complete else TrialStatus.FAILED,
        float(cost) if complete else math.nan,
        # Trials that ran out of time or memory have no ``time``.
        value.endtime - value.starttime if timed else untimed,
        value.endtime - begin if timed else math.nan,
        step=key.budget if below else None,
    )
