"""The folder of real tuning results that the project is measured on, as tables to replay.

The folder is not part of the project: point ``AUTOML_PLUGINS_DATA`` at a copy, or keep it as
``../shared/data`` beside the checkout. Values of a recorded grid stay a grid, so every method sees
the very same search space.
"""

from __future__ import annotations

import itertools
import json
import lzma
import os
from collections.abc import Callable, Sequence
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
    return _nearest(frame, "adaboost", "task_id", space, "accuracy", maximize=True)[::every]


@cache
def xgboost() -> list[Table]:
    """XGBoost on LIBSVM data sets, 5 000 random configurations each."""
    frame = pd.read_csv(_folder() / "xgboost_random" / "xgboost.csv.gz")
    space = ConfigurationSpace()
    for name in frame.columns.drop(["task", "error"]):
        low, high = float(frame[name].min()), float(frame[name].max())
        if name == "max_depth_index":
            space.add(Integer(name, (int(low), int(high))))
        else:
            space.add(Float(name, (low, high), log=low > 0 and high > 100 * low))
    return _nearest(frame, "xgboost", "task", space, "error")


def _nearest(
    frame: pd.DataFrame,
    source: str,
    group: str,
    space: ConfigurationSpace,
    loss: str,
    *,
    maximize: bool = False,
) -> list[Table]:
    return [
        Table.from_frame(
            rows,
            name=f"{source}/{name}",
            loss=loss,
            parameters=list(space),
            space=space,
            maximize=maximize,
            repeats="mean",
        )
        for name, rows in frame.groupby(group)
    ]


@cache
def hpobench_mlp() -> list[Table]:
    """Multi-layer perceptrons on the full grid of 30 000 configurations, mean of five seeds."""
    accuracy = _array(_folder() / "hpobench_mlp" / "accuracy_u16.npy.xz") / 10_000
    return _product("hpobench_mlp", 1.0 - accuracy.mean(axis=2))


@cache
def hpolib_fcnet() -> list[Table]:
    """Regression networks on the full grid of 62 208 configurations, log10 of the error."""
    losses = _array(_folder() / "hpolib_fcnet" / "log10_valid_mse_f16.npy.xz").astype(float)
    return _product("hpolib_fcnet", losses.mean(axis=2))


def _product(source: str, losses: np.ndarray) -> list[Table]:
    described = json.loads((_folder() / source / "space.json").read_text(encoding="utf-8"))
    grids: dict[str, Sequence[Any]] = described["search_space"]
    space = ConfigurationSpace()
    for name, values in grids.items():
        numbers = all(isinstance(v, int | float) for v in values)
        make = OrdinalHyperparameter if numbers else Categorical
        space.add(make(name, list(values)))
    configs = [dict(zip(grids, v, strict=True)) for v in itertools.product(*grids.values())]
    names = described["datasets"]
    first = Table(source, space, configs, losses[0])
    return [
        first.with_losses(f"{source}/{name}", row) for name, row in zip(names, losses, strict=True)
    ]


@cache
def lcdb() -> list[Table]:
    """20 learners with their learning curves over training rows, seconds of all fits so far."""
    frame = pd.read_csv(_folder() / "lcdb" / "learning_curves.csv.gz")
    return [_learning_curves(f"lcdb/{name}", rows) for name, rows in frame.groupby("dataset_id")]


def _learning_curves(name: str, rows: pd.DataFrame) -> Table:
    wide = rows.pivot(index="learner", columns="train_size", values=["valid_acc", "fit_seconds"])
    loss = pd.DataFrame(1.0 - wide["valid_acc"])
    spent = pd.DataFrame(wide["fit_seconds"]).fillna(0.0).cumsum(axis=1)
    space = ConfigurationSpace()
    space.add(Categorical("learner", list(wide.index)))
    return Table(
        name,
        space,
        [{"learner": learner} for learner in wide.index],
        loss.ffill(axis=1).iloc[:, -1].to_numpy(),
        seconds=spent.iloc[:, -1].to_numpy(),
        curves=loss.to_numpy(),
        steps=[float(s) for s in loss.columns],
        curve_seconds=spent.to_numpy(),
    )


SOURCES: dict[str, Callable[[], list[Table]]] = {
    "svm_grid": svm_grid,
    "oboe": oboe,
    "adaboost": adaboost,
    "xgboost": xgboost,
    "hpobench_mlp": hpobench_mlp,
    "hpolib_fcnet": hpolib_fcnet,
    "lcdb": lcdb,
}
