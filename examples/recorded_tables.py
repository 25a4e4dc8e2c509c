"""Recorded tuning runs as conditional tables that any optimizer can be asked about.

Loaders for the folder of real tuning results the project is measured on. The folder is not part of
the project: point ``AUTOML_PLUGINS_DATA`` at a copy, or keep it as ``../shared/data`` beside the
checkout. Ordered grid values become integer indices, all other values stay categorical, so every
method sees the very same search space.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

Config = dict[str, Any]


@dataclass(frozen=True)
class Parameter:
    """One hyperparameter; active when ``parent`` (a categorical) takes ``parent_value``."""

    name: str
    choices: tuple[str, ...] | None = None
    low: float = 0
    high: float = 0
    integer: bool = True
    log: bool = False
    parent: str | None = None
    parent_value: str | None = None


@dataclass(frozen=True)
class RecordedTable:
    """A search space whose every configuration (or nearest recorded one) has a known loss."""

    source: str
    name: str
    parameters: tuple[Parameter, ...]
    lookup: Callable[[Config], tuple[float, float]]
    best: float
    worst: float

    def evaluate(self, config: Config) -> tuple[float, float]:
        """Loss and recorded seconds (NaN where none were recorded) of one configuration."""
        return self.lookup(config)

    def regret(self, losses: np.ndarray) -> np.ndarray:
        """Normalised regret of the best loss so far, 0 = best recorded, 1 = worst."""
        return (np.minimum.accumulate(losses) - self.best) / (self.worst - self.best)


def data_folder() -> Path | None:
    """The folder of recorded runs, or None when there is none on this machine."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("AUTOML_PLUGINS_DATA", beside))
    return folder if folder.is_dir() else None


def _folder() -> Path:
    folder = data_folder()
    if folder is None:
        raise FileNotFoundError("no recorded runs: set AUTOML_PLUGINS_DATA to their folder")
    return folder


def _grid_table(
    source: str,
    name: str,
    parameters: tuple[Parameter, ...],
    keys: list[tuple[Any, ...]],
    losses: np.ndarray,
    seconds: np.ndarray,
) -> RecordedTable:
    rows = {key: i for i, key in enumerate(keys)}

    def lookup(config: Config) -> tuple[float, float]:
        i = rows[tuple(config.get(p.name) for p in parameters)]
        return float(losses[i]), float(seconds[i])

    return RecordedTable(source, name, parameters, lookup, losses.min(), losses.max())


@cache
def svm_grid() -> list[RecordedTable]:
    """SVM error on the full grid of 288 configurations, one table for each data set."""
    frame = pd.read_csv(_folder() / "svm_grid" / "svm_grid.csv.gz")
    index = {c: sorted(frame[c].dropna().unique()) for c in ("C", "degree", "gamma")}
    parameters = (
        Parameter("kernel", ("rbf", "poly", "linear")),
        Parameter("C", high=len(index["C"]) - 1),
        Parameter("degree", high=len(index["degree"]) - 1, parent="kernel", parent_value="poly"),
        Parameter("gamma", high=len(index["gamma"]) - 1, parent="kernel", parent_value="rbf"),
    )
    tables = []
    for name, rows in frame.groupby("dataset"):
        keys = [
            (
                kernel,
                index["C"].index(c),
                None if np.isnan(degree) else index["degree"].index(degree),
                None if np.isnan(gamma) else index["gamma"].index(gamma),
            )
            for kernel, c, degree, gamma in zip(
                rows.kernel, rows.C, rows.degree, rows.gamma, strict=True
            )
        ]
        losses = 1.0 - rows.accuracy.to_numpy()
        tables.append(
            _grid_table(
                "svm_grid", str(name), parameters, keys, losses, np.full(len(rows), np.nan)
            )
        )
    return tables


def _oboe_space(configs: pd.DataFrame) -> tuple[tuple[Parameter, ...], list[tuple[Any, ...]]]:
    """The 12 algorithms with their own small grids; parameters with one value are left out."""
    decoded = [json.loads(text) for text in configs.hyperparameters]
    algorithms = tuple(sorted(configs.algorithm.unique()))
    parameters = [Parameter("algorithm", algorithms)]
    values: dict[str, list[Any]] = {}
    for algorithm in algorithms:
        own = [h for a, h in zip(configs.algorithm, decoded, strict=True) if a == algorithm]
        for key in own[0]:
            name = f"{algorithm}.{key}"
            seen = {h[key] for h in own}
            if len(seen) == 1:
                continue
            link = {"parent": "algorithm", "parent_value": algorithm}
            if all(isinstance(v, int | float) for v in seen):
                values[name] = sorted(seen)
                parameters.append(Parameter(name, high=len(seen) - 1, **link))
            else:
                values[name] = sorted(seen, key=str)
                choices = tuple(str(v) for v in values[name])
                parameters.append(Parameter(name, choices, **link))

    def encode(parameter: Parameter, algorithm: str, h: dict[str, Any]) -> Any:
        if parameter.name == "algorithm":
            return algorithm
        if parameter.parent_value != algorithm:
            return None
        value = h[parameter.name.split(".", 1)[1]]
        return str(value) if parameter.choices else values[parameter.name].index(value)

    keys = [
        tuple(encode(p, a, h) for p in parameters)
        for a, h in zip(configs.algorithm, decoded, strict=True)
    ]
    return tuple(parameters), keys


@cache
def oboe(every: int = 1, offset: int = 0) -> list[RecordedTable]:
    """12 algorithms, 219 configurations with balanced error and seconds, by data set."""
    folder = _folder() / "oboe"
    configs = pd.read_csv(folder / "configs.csv").sort_values("config_id")
    parameters, keys = _oboe_space(configs)
    frame = pd.read_csv(folder / "oboe.csv.gz")
    errors = frame.pivot(index="dataset_id", columns="config_id", values="balanced_error_rate")
    seconds = frame.pivot(index="dataset_id", columns="config_id", values="runtime_s")
    return [
        _grid_table("oboe", str(i), parameters, keys, errors.loc[i].values, seconds.loc[i].values)
        for i in errors.index[offset::every]
    ]


@cache
def adaboost() -> list[RecordedTable]:
    """AdaBoost on OpenML tasks, random configurations answered by the nearest recorded one."""
    frame = pd.read_csv(_folder() / "adaboost_openml" / "adaboost.csv.gz")
    parameters = (
        Parameter("algorithm", ("SAMME", "SAMME.R")),
        Parameter("imputation", ("mean", "median", "most_frequent")),
        Parameter("learning_rate", low=0.01, high=2.0, integer=False, log=True),
        Parameter("max_depth", low=1, high=10),
        Parameter("n_estimators", low=50, high=500),
    )
    return [_nearest_table(str(i), parameters, rows) for i, rows in frame.groupby("task_id")]


def _nearest_table(
    name: str, parameters: tuple[Parameter, ...], rows: pd.DataFrame
) -> RecordedTable:
    losses = 1.0 - rows.accuracy.to_numpy()

    def unit(values: Any, p: Parameter) -> Any:
        scale = np.log if p.log else np.asarray
        low, high = scale(p.low), scale(p.high)
        return (scale(values) - low) / (high - low)

    numbers = [p for p in parameters if p.choices is None]
    names = [p for p in parameters if p.choices is not None]
    recorded = np.column_stack([unit(rows[p.name].to_numpy(), p) for p in numbers])
    labels = rows[[p.name for p in names]].to_numpy(dtype=str)

    def lookup(config: Config) -> tuple[float, float]:
        x = np.array([unit(config[p.name], p) for p in numbers])
        distance = np.abs(recorded - x).sum(axis=1)
        distance += (labels != np.array([config[p.name] for p in names])).sum(axis=1)
        return float(losses[distance.argmin()]), float("nan")

    return RecordedTable("adaboost", name, parameters, lookup, losses.min(), losses.max())
