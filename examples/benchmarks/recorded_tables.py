"""The folder of real tuning results that the project is measured on, as tables to replay.

The folder is not part of the project: point ``AUTOML_PLUGINS_DATA`` at a copy, or keep it as
``../shared/data`` beside the checkout. Values of a recorded grid stay a grid, so every method sees
the very same search space.
"""

from __future__ import annotations

import json
import lzma
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer
from ConfigSpace.hyperparameters import OrdinalHyperparameter

from automl_plugins.replay import Table


def data_folder() -> Path | None:
    """The folder of recorded runs, or None when there is none on this machine."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = Path(os.environ.get("AUTOML_PLUGINS_DATA", beside))
    return folder if folder.is_dir() else None


def _folder() -> Path:
    folder = data_folder()
    if folder is None:
        raise FileNotFoundError("no recorded runs: set AUTOML_PLUGINS_DATA to their folder")
    return folder


def _array(path: Path) -> np.ndarray:
    with lzma.open(path) as file:
        return np.asarray(np.load(file))


@cache
def svm_grid() -> list[Table]:
    """SVM error on the full grid of 288 configurations, one table for each data set."""
    frame = pd.read_csv(_folder() / "svm_grid" / "svm_grid.csv.gz")
    return [
        Table.from_frame(
            rows,
            name=f"svm_grid/{name}",
            loss="accuracy",
            maximize=True,
            parameters=["kernel", "C", "degree", "gamma"],
            grid=["C", "degree", "gamma"],
        )
        for name, rows in frame.groupby("dataset")
    ]


@cache
def oboe(every: int = 1, offset: int = 0) -> list[Table]:
    """12 algorithms, 219 configurations with balanced error and seconds, by data set."""
    folder = _folder() / "oboe"
    configs = pd.read_csv(folder / "configs.csv").sort_values("config_id")
    space, values = _algorithms(configs)
    frame = pd.read_csv(folder / "oboe.csv.gz")
    errors = frame.pivot(index="dataset_id", columns="config_id", values="balanced_error_rate")
    seconds = frame.pivot(index="dataset_id", columns="config_id", values="runtime_s")
    chosen = errors.index[offset::every]
    first = Table("oboe", space, values, errors.loc[chosen[0]].to_numpy())
    return [
        first.with_losses(f"oboe/{i}", errors.loc[i].to_numpy(), seconds=seconds.loc[i].to_numpy())
        for i in chosen
    ]


def _algorithms(configs: pd.DataFrame) -> tuple[ConfigurationSpace, list[dict[str, Any]]]:
    """The algorithms with their own small grids; parameters with one value are left out."""
    decoded = [json.loads(text) for text in configs.hyperparameters]
    choice = Categorical("algorithm", sorted(configs.algorithm.unique()))
    space = ConfigurationSpace()
    space.add(choice)
    values: list[dict[str, Any]] = [{"algorithm": a} for a in configs.algorithm]
    for algorithm in sorted(configs.algorithm.unique()):
        own = [i for i, a in enumerate(configs.algorithm) if a == algorithm]
        for key in decoded[own[0]]:
            seen = {decoded[i][key] for i in own}
            if len(seen) == 1:
                continue
            name = f"{algorithm}.{key}"
            numbers = all(isinstance(v, int | float) for v in seen)
            child = (
                OrdinalHyperparameter(name, sorted(seen))
                if numbers
                else Categorical(name, sorted(map(str, seen)))
            )
            space.add(child, EqualsCondition(child, choice, algorithm))
            for i in own:
                values[i][name] = decoded[i][key] if numbers else str(decoded[i][key])
    return space, values


@cache
def adaboost(every: int = 1) -> list[Table]:
    """AdaBoost on OpenML tasks, random configurations answered by the nearest recorded one."""
    frame = pd.read_csv(_folder() / "adaboost_openml" / "adaboost.csv.gz")
    space = ConfigurationSpace()
    space.add(
        Categorical("algorithm", ["SAMME", "SAMME.R"]),
        Categorical("imputation", ["mean", "median", "most_frequent"]),
        Float("learning_rate", (0.01, 2.0), log=True),
        Integer("max_depth", (1, 10)),
        Integer("n_estimators", (50, 500)),
    )
    return [
        Table.from_frame(
            rows,
            name=f"adaboost/{name}",
            loss="accuracy",
            parameters=list(space),
            space=space,
            maximize=True,
            repeats="mean",
        )
        for name, rows in frame.groupby("task_id")
    ][::every]
