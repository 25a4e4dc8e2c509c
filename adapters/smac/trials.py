"""The only reader of SMAC's trials, their run histories and folders, and configurations."""

from __future__ import annotations

import json
import logging
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import sleep
from typing import Any, TypeVar

import numpy as np
from ConfigSpace import Configuration, ConfigurationSpace
from smac import RunHistory, Scenario
from smac.facade.abstract_facade import AbstractFacade
from smac.runhistory import StatusType, TrialKey, TrialValue

from automl_plugins._arguments import check_kind
from automl_plugins.addresses import as_path
from automl_plugins.arrays import FloatArray
from automl_plugins.meta.files import DAMAGE
from automl_plugins.meta.sources import log_left_out, named_sources
from automl_plugins.records.trial import Status, Trial, as_number, as_seconds, read_outcome
from automl_plugins.spaces.conditions import is_active
from automl_plugins.spaces.values import as_configuration, is_same_space, to_vector, values_of

from .replaying import label

Source = RunHistory | AbstractFacade | str | Path
FinishedTrial = tuple[Configuration, TrialKey, TrialValue]
_T = TypeVar("_T")

_logger = logging.getLogger("smac.automl_plugins")

NOTE = "automl_plugins"  # our key in ``additional_info``
_FILE = "runhistory.json"
_DEPTH = 3  # folders between a source and its run histories: name, seed, and one above
#: Seconds to wait before a file that seems damaged is read again: SMAC may be writing it.
_WAITS = (0.02, 0.05, 0.1, 0.2, 0.4)


def read_trial(config: Configuration, key: TrialKey, value: TrialValue, number: int = -1) -> Trial:
    """Read one trial; its step is the budget.

    A trial that succeeded with one finite cost is complete; one that crashed or ran out of time or
    memory has failed, whatever the crash cost. A note of ``write_history`` overrides a failure,
    because SMAC has no pruned trials.

    The seconds are those noted by ``write_history``, else ``time``, else the time from start to
    end: the first of them that is a duration. SMAC leaves ``time`` at 0 if a trial crashed or ran
    out of time or memory; ask and tell has ``time`` only, and 0 for an end that was not given.
    """
    note = read_note(value, NOTE)
    started, ended = math.nan, math.nan
    if value.endtime > 0.0:
        started, ended = float(value.starttime), float(value.endtime)
    status, loss, budget = Status.FAILED, as_number(value.cost), as_number(key.budget)
    if value.status == StatusType.RUNNING:
        status = Status.RUNNING
    elif value.status == StatusType.SUCCESS:
        status = Status.COMPLETE
    elif (noted := read_outcome(note)) is not None:
        status, loss, budget = noted
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


def read_note(value: TrialValue, key: str) -> Mapping[str, Any]:
    """The note that ``write_note`` wrote; empty without one, or if the user has taken the key."""
    info = value.additional_info
    note = info.get(key) if isinstance(info, Mapping) else None
    return note if isinstance(note, Mapping) else {}


def write_note(value: TrialValue, key: str, note: Mapping[str, Any]) -> None:
    """Add to the note of a trial that is told, unless the user's own information has its key."""
    given = value.additional_info
    if isinstance(given, dict) and isinstance(given.get(key, {}), Mapping):
        # The value is frozen, and the user may share its dictionary between trials.
        noted = {**given, key: {**read_note(value, key), **note}}
        object.__setattr__(value, "additional_info", noted)


# --- run histories --------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """A run history and facts about it; None where they are unknown."""

    history: RunHistory
    space: ConfigurationSpace | None
    table: str | None = None
    method: str | None = None
    seed: int | None = None
    max_budget: float | None = None

    def named(self, name: str | None) -> Run:
        """The run with another name of its task; None keeps its own."""
        return self if name is None else replace(self, table=name)

    def finished(self) -> list[FinishedTrial]:
        """The finished trials, in the order in which they ended.

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
        ends = known_ends(value.endtime for _, _, value in done)
        # Trials that ended together stay in the order of asking.
        return [done[i] for i in np.argsort(ends, kind="stable")]

    def read(self, finished: Iterable[FinishedTrial]) -> list[Trial]:
        """Trials with values of the run's space; those at the highest budget have no step."""
        highest = self.max_budget
        if highest is None:
            highest = max((k.budget for k in self.history if k.budget is not None), default=0.0)
        trials = []
        for number, (config, key, value) in enumerate(finished):
            trial = read_trial(config, key, value, number)
            full = key.budget is not None and key.budget >= highest
            step = None if full else trial.step
            trials.append(replace(trial, config=values_of(config), step=step))
        return trials


def check_one_objective(who: str, scenario: Scenario) -> None:
    """Raise ValueError for a scenario with several objectives, TypeError for anything else."""
    check_kind(who, scenario, Scenario, "a Scenario first")
    if (n := scenario.count_objectives()) > 1:
        raise ValueError(
            f"{who} takes one objective, the scenario has {n}: {scenario.objectives}. Combine"
            " them into one cost, or use a facade with parts of SMAC only."
        )


def known_ends(ends: Iterable[float]) -> FloatArray:
    """Ends (n,) of trials in the order of asking; an unknown one, 0, becomes the latest before."""
    given = np.fromiter(ends, dtype=np.float64)
    return np.where(given > 0.0, given, np.maximum.accumulate(np.maximum(given, 0.0)))


class _Damaged(ValueError):
    """A file of a run that is damaged, or being written."""


def owns(source: str) -> bool:
    """Whether a source is a run history, or a folder with some, at most 3 levels down."""
    return next(iter(_files_of(as_path(source))), None) is not None


def use_runs(
    sources: Source | Iterable[Source] | Mapping[str, Source], use: Callable[[Run], _T]
) -> list[_T]:
    """The results of ``use`` for each run history of one source, several, or several by name.

    In a folder with several, a run that cannot be read or used is left out with a warning: the
    user has not picked it.

    Raises:
        TypeError: As ``runs_of``.
        ValueError: For a folder without a run that can be used; for another source as ``runs_of``
            and ``use``.
    """
    named = named_sources(sources)
    # An object that is no source raises when it is read.
    each = [(None, sources)] if named is None else named
    return [made for name, source in each for made in _use(source, name, use)]


def _use(source: Any, name: str | None, use: Callable[[Run], _T]) -> list[_T]:
    found = _find(source)
    if len(found) == 1:
        return [use(_intact_run(found[0][1]).named(name))]
    made, wrong = [], []
    for folder, run in found:
        try:
            made.append(use(_intact_run(run).named(name)))
        except ValueError as error:
            wrong.append((folder, error))
    if not made:
        more = f" And {len(wrong) - 3} more." if len(wrong) > 3 else ""
        listed = " ".join(f"{folder}: {error}" for folder, error in wrong[:3])
        raise ValueError(
            f"None of the {len(wrong)} runs in {source} can be used. {listed}{more} Pass runs of"
            " one objective and one instance, with a name, and with the files that SMAC wrote."
        )
    for folder, reason in wrong:
        log_left_out(_logger, folder, str(reason))
    return made


def runs_of(source: Any) -> list[Run]:
    """The run histories of one source; TypeError for another object, ValueError for damage."""
    return [_intact_run(run) for _, run in _find(source)]


def _intact_run(found: Run | ValueError) -> Run:
    if isinstance(found, ValueError):
        raise found
    return found


def _find(source: Any) -> list[tuple[str, Run | ValueError]]:
    """The run histories of one source with their folders, or why they cannot be read."""
    if isinstance(source, RunHistory):
        configs = source.get_configs()
        seeds = (read_note(value, NOTE).get("seed") for value in source.values())
        seed = next((seed for seed in seeds if isinstance(seed, int)), None)
        return [("", Run(source, configs[0].config_space if configs else None, seed=seed))]
    if isinstance(source, AbstractFacade):
        return [("", describe_run(source.runhistory, source.scenario))]
    if not isinstance(source, str | Path):
        raise TypeError(
            f"A run of SMAC is a run history, a facade or a folder with one, got {source!r}."
        )
    if not (files := sorted(_files_of(as_path(source)))):
        raise ValueError(f"No {_FILE} in {source} or in folders up to {_DEPTH} levels below.")
    found = {file: _try_file(file) for file in files}
    for seconds in _WAITS:  # in total, not for each damaged file
        if not (again := [file for file in files if isinstance(found[file], _Damaged)]):
            break
        sleep(seconds)
        found |= {file: _try_file(file) for file in again}
    return [(str(file.parent), run) for file, run in found.items()]


def _files_of(path: Path) -> Iterable[Path]:
    """The run history at a path, or those in the folder and below."""
    if path.name == _FILE and os.path.isfile(path):
        yield path
    elif os.path.isdir(path):
        for depth in range(_DEPTH + 1):
            yield from path.glob("*/" * depth + _FILE)


def _try_file(file: Path) -> Run | ValueError:
    try:
        return _read_file(file)
    except ValueError as error:
        return error
    except OSError as error:  # of another user, or removed meanwhile
        return _Damaged(f"{error.filename or file} cannot be read: {error.strerror or error}.")


def _read_file(file: Path) -> Run:
    space_file, scenario_file = file.with_name("configspace.json"), file.with_name("scenario.json")
    if not space_file.is_file():
        raise ValueError(f"{file} needs the search space in {space_file.name} next to it.")
    with _intact(space_file):
        space = ConfigurationSpace.from_json(space_file)
    # Not Scenario.load, which refuses files of other versions.
    known = _read_object(scenario_file) if scenario_file.is_file() else {}
    # RunHistory.load reads a broken file, such as one being written, as an empty run history.
    stored = _read_object(file)
    history = RunHistory()
    with _intact(file):
        history.load(file, configspace=space)
        if stored["data"] and not len(history):
            raise ValueError("it is being written")
        for key in history:
            history.get_config(key.config_id)
    with _intact(scenario_file):
        for name, kind in (("seed", int | None), ("max_budget", int | float | None)):
            if not isinstance(known.get(name), kind):
                raise TypeError(f"{name} is {known[name]!r}")
        return _describe(history, space, known)


def _read_object(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text())
    except ValueError as error:
        raise _Damaged(f"{file} is not valid JSON: {error}.") from None
    if not isinstance(found, dict):
        raise _Damaged(f"{file} is not what SMAC 2 writes: it holds a {type(found).__name__}.")
    return found


@contextmanager
def _intact(file: Path) -> Iterator[None]:
    """Raise _Damaged with the name of the file if the block cannot read it."""
    try:
        yield
    except DAMAGE as error:
        raise _Damaged(
            f"{file} is not what SMAC 2 writes, or is damaged ({type(error).__name__}: {error})."
        ) from error


def describe_run(history: RunHistory, scenario: Scenario) -> Run:
    """A run history with the facts of its scenario."""
    facts = {name: getattr(scenario, name) for name in ("name", "seed", "max_budget")}
    return _describe(history, scenario.configspace, facts | {"_meta": scenario.meta})


def _describe(history: RunHistory, space: ConfigurationSpace, facts: Mapping[str, Any]) -> Run:
    name, facade = facts.get("name"), facts.get("_meta", {}).get("facade", {}).get("name")
    if name is not None and re.fullmatch("[0-9a-f]{32}", name):
        name = None  # a hash that SMAC made up, which differs between seeds
    method = None if facade is None else label(facade)
    return Run(history, space, name, method, facts.get("seed"), facts.get("max_budget"))


# --- configurations --------------------------------------------------------------------------


def canonical(config: Configuration, space: ConfigurationSpace | None = None) -> FloatArray:
    """The vector (d,) of a configuration's values, which saving a run does not change.

    Args:
        config: The configuration.
        space: The search space of the vector; None takes the configuration's.

    Raises:
        ValueError: If the values are not a configuration of ``space``.
    """
    own = config.config_space
    if space is not None and space is not own:  # ranges, scales and choices may differ
        values = values_of(config)
        vector = to_vector(space, values)
        wrong = [n for n in values if n not in space or np.isnan(vector[space.index_of[n]])]
        wrong += [n for n in space if n not in values and is_active(space, n, values)]
        if wrong:
            raise ValueError(
                f"The configuration {values} is not one of this search space, because of"
                f" {', '.join(wrong)}: {'; '.join(str(space[n]) for n in wrong if n in space)}."
            )
        return vector
    vector = np.full(len(own), np.nan)  # as it stays where a hyperparameter is inactive
    for name, value in config.items():
        vector[own.index_of[name]] = own[name].to_vector(value)
    return vector


def adopt(config: Configuration, space: ConfigurationSpace) -> Configuration:
    """The configuration of ``space`` with the same values and origin, in canonical form.

    Raises:
        ValueError: If the values are not a configuration of ``space``.
    """
    own = is_same_space(config.config_space, space)
    made = as_configuration(space, config.get_array() if own else canonical(config, space))
    made.origin = config.origin
    return made


def check_configurations(configs: Any) -> list[Configuration]:
    """A new list of the configurations; TypeError if something else is among them."""
    if not all(isinstance(config, Configuration) for config in configs):
        raise TypeError(
            "additional_configs must be a list of configurations, such as"
            f" Configuration(scenario.configspace, values), got {configs!r}."
        )
    return [*configs]
