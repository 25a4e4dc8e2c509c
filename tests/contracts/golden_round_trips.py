"""Histories of each framework in a store, as histories of the others, and as a memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from automl_plugins.adapters import hyperopt as our_hyperopt
from automl_plugins.adapters import optuna as our_optuna
from automl_plugins.adapters import smac as our_smac
from ConfigSpace import ConfigurationSpace
from golden_proposals import CONDITIONAL
from goldens import Case
from searches import (
    Parameter,
    Run,
    Space,
    add_to,
    as_configspace,
    as_pyll,
    as_study,
    as_trials,
    draw_runs,
)
from smac import RunHistory

from automl_plugins.meta import MetaDataset, MetaStore, TaskRecord, convert

SPACE: Space = CONDITIONAL
#: Other ranges, fewer options, one parameter less and one more.
NARROW: Space = (
    Parameter("rate", "log", -3, 2),
    Parameter("outer", "choice", high=2),
    Parameter("depth", "int", 1, 4, parent="outer"),
    Parameter("width", "log_int", 30, 300, parent="outer", options=(1,)),
    Parameter("both", "int", 0, 4),
    Parameter("new", "float", 1, 3),
)
_BEGIN = 1_767_225_600.0  # Unix time


def runs() -> list[Run]:
    rng = np.random.default_rng(11)
    return draw_runs(SPACE, 16, rng, failed=0.2, pruned=0.2, running=2)


# --- each framework ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Framework:
    """How a framework's histories are made, stored and read."""

    make: Callable[[], Any]
    add: Callable[[MetaStore, Any, Any], Any]
    dataset: Callable[[Any], MetaDataset]
    space: Callable[[Space], Any] = as_configspace


FRAMEWORKS = {
    "optuna": Framework(
        lambda: as_study(SPACE, runs()),
        lambda store, study, space: our_optuna.record(store, task="task").add(study),
        lambda study: our_optuna.meta_dataset_from_studies({"task": study}),
    ),
    "hyperopt": Framework(
        lambda: as_trials(SPACE, runs()),
        lambda store, trials, space: our_hyperopt.record(print, store, "task", space).add(trials),
        lambda trials: our_hyperopt.meta_dataset_from_trials({"task": trials}, as_pyll(SPACE)),
        as_pyll,
    ),
    "smac": Framework(
        lambda: add_to(RunHistory(), as_configspace(SPACE), runs(), begin=_BEGIN),
        lambda store, history, space: our_smac.RecordCallback(store, task="task").add(history),
        lambda history: our_smac.meta_dataset_from_runhistory({"task": history}),
    ),
}


# --- results ----------------------------------------------------------------------------------


def store_twice(framework: Framework, history: Any, space: Any, folder: Path) -> list[TaskRecord]:
    """The records of a store to which a history is written twice."""
    with MetaStore(folder / "runs.db") as store:
        framework.add(store, history, space)
        framework.add(store, history, space)
        return store.records()


def describe(record: TaskRecord) -> dict[str, Any]:
    """A record in plain values; ends of runs are relative to the first known one."""
    known = record.times[~np.isnan(record.times)]
    ends = record.times - (known[0] if len(known) else 0.0)
    return {
        "name": record.name,
        "framework": record.framework,
        "seed": record.seed,
        "space": None if record.space is None else describe_space(record.space),
        "columns": ["values", "loss", "seconds", "status", "budget", "end"],
        "runs": [
            [
                dict(record.configurations[i]),
                record.losses[i],
                record.seconds[i],
                int(record.status[i]),
                record.budget[i],
                ends[i],
            ]
            for i in range(len(record))
        ],
    }


def describe_space(space: ConfigurationSpace) -> dict[str, Any]:
    """Types, parents and defaults by name; the rest is covered by the vectors of a memory."""
    return {
        name: [
            type(space[name]).__name__,
            sorted(parent.name for parent in space.parents_of[name]),
            space[name].default_value,
        ]
        for name in space
    }


def record(name: str, folder: Path) -> list[TaskRecord]:
    framework = FRAMEWORKS[name]
    return store_twice(framework, framework.make(), framework.space(SPACE), folder)


def store_own(name: str, folder: Path) -> Any:
    return [describe(one) for one in record(name, folder)]


def translate(name: str, target: str, folder: Path) -> Any:
    source, other = FRAMEWORKS[name], FRAMEWORKS[target]
    found = convert(source.make(), target, space=source.space(SPACE), name="task")
    return [describe(one) for one in store_twice(other, found, other.space(SPACE), folder)]


def fit(target: str, folder: Path) -> Any:
    """Convert to a space that few runs fit: the others are clipped, imputed or left out."""
    (found,) = record("optuna", folder)
    space = as_configspace(NARROW)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        history = convert(replace(found, name="fitted"), target, space=space)
    (folder / "fitted").mkdir()
    (fitted,) = store_twice(FRAMEWORKS[target], history, space, folder / "fitted")
    return {"warnings": len(caught)} | describe(fitted)


def remember(name: str, folder: Path) -> Any:
    """Read as a memory, aligned with the searched space and with another one."""
    framework = FRAMEWORKS[name]
    dataset = framework.dataset(framework.make())
    with MetaStore(folder / "runs.db") as store:
        framework.add(store, framework.make(), framework.space(SPACE))
        narrow = store.dataset(as_configspace(NARROW))
    return {"own": columns(dataset), "narrow": columns(narrow)}


def columns(dataset: MetaDataset) -> dict[str, Any]:
    return {
        "tasks": [task.name for task in dataset.tasks],
        "names": list(dataset.space),
        "vectors": dataset.vectors,
        "losses": dataset.losses,
        "seconds": dataset.seconds,
        "status": [int(status) for status in dataset.status],
    }


def cases() -> list[Case]:
    pairs = [(a, b) for a, b in product(FRAMEWORKS, FRAMEWORKS) if a != b]
    return [
        *(Case("round_trips_store", name, partial(store_own, name)) for name in FRAMEWORKS),
        *(Case(f"round_trips_from_{a}", f"to_{b}", partial(translate, a, b)) for a, b in pairs),
        *(Case("round_trips_fitted", name, partial(fit, name)) for name in FRAMEWORKS),
        *(Case("round_trips_memory", name, partial(remember, name)) for name in FRAMEWORKS),
    ]
