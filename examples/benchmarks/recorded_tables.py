"""The folder of real tuning results that the project is measured on: tables to replay, memories.

The folder is not part of the project: point ``AUTOML_PLUGINS_DATA`` at a copy, or keep it as
``../shared/data`` beside the checkout. Values of a recorded grid stay a grid, so every method sees
the very same search space.
"""

from __future__ import annotations

import json
import lzma
import os
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer
from ConfigSpace.hyperparameters import OrdinalHyperparameter

from automl_plugins.meta import MetaDataset, TaskRecord, bundled
from automl_plugins.meta.bundled_memories import LEARNERS
from automl_plugins.replay import Table


def data_folder() -> Path | None:
    """The folder of recorded runs, or None when there is none on this machine."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = Path(os.environ.get("AUTOML_PLUGINS_DATA", beside))
    return folder if folder.is_dir() else None


def data_path(name: str) -> Path:
    """A file or folder in the folder."""
    folder = data_folder()
    if folder is None:
        raise FileNotFoundError("no recorded runs: set AUTOML_PLUGINS_DATA to their folder")
    return folder / name


def read_csv(name: str) -> pd.DataFrame:
    """A csv file in the folder."""
    return pd.read_csv(data_path(name))


def read_array(name: str) -> np.ndarray:
    """A compressed array in the folder."""
    with lzma.open(data_path(name)) as file:
        return np.asarray(np.load(file))


@cache
def svm_grid() -> list[Table]:
    """SVM error on the full grid of 288 configurations, one table for each data set."""
    frame = read_csv("svm_grid/svm_grid.csv.gz")
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
def oboe(every: int = 1) -> list[Table]:
    """12 algorithms, 219 configurations with balanced error and seconds, by data set."""
    configs = read_csv("oboe/configs.csv").sort_values("config_id")
    space, values = _algorithms(configs)
    frame = read_csv("oboe/oboe.csv.gz")
    errors = frame.pivot(index="dataset_id", columns="config_id", values="balanced_error_rate")
    seconds = frame.pivot(index="dataset_id", columns="config_id", values="runtime_s")
    chosen = errors.index[::every]
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
def adaboost() -> list[Table]:
    """AdaBoost on OpenML tasks, random configurations answered by the nearest recorded one."""
    frame = read_csv("adaboost_openml/adaboost.csv.gz")
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
    ]


# --- the tables as memories: each is a task, with its meta-features --------------------------


def memory_of(tables: Sequence[Table], described: pd.DataFrame) -> MetaDataset:
    """The memory of tables whose names end in an index of ``described``."""
    records = []
    for table in tables:
        known = described.loc[table.name.split("/")[1]].to_dict()
        records.append(
            TaskRecord(
                table.name,
                [table.config(row) for row in range(len(table))],
                table.losses,
                space=table.space,
                meta_features={str(n): float(v) for n, v in known.items() if np.isfinite(v)},
            )
        )
    return MetaDataset.from_records(records)


@cache
def read_features(path: str, index: str) -> pd.DataFrame:
    """The numbers of a csv file in the folder of recorded runs, by a column as text."""
    frame = read_csv(path).set_index(index)
    frame.index = frame.index.astype(str)
    return frame.select_dtypes("number")


def svm_memory() -> tuple[list[Table], MetaDataset]:
    """SVMs on 288 configurations, 22 meta-features."""
    tables = svm_grid()
    return tables, memory_of(tables, read_features("svm_grid/metafeatures.csv", "dataset"))


def oboe_memory(*, described: bool) -> tuple[list[Table], MetaDataset]:
    """12 algorithms on the data sets of every third table.

    ``described`` are the tables with 46 meta-features, among themselves; else the others, with all
    as memory and sizes only.
    """
    features = read_features("pmf_metafeatures/metafeatures.csv.gz", "dataset_id")
    known = set(features.index)
    tables = oboe(3)
    chosen = [t for t in tables if (t.name.split("/")[1] in known) == described]
    if described:
        return chosen, memory_of(chosen, features)
    return chosen, memory_of(tables, read_features("oboe/dataset_sizes.csv", "dataset_id"))


def adaboost_memory() -> tuple[list[Table], MetaDataset]:
    """AdaBoost on random configurations, 166 meta-features."""
    tables = adaboost()
    return tables, memory_of(
        tables, read_features("adaboost_openml/metafeatures.csv.gz", "task_id")
    )


def bundled_memory(learner: str) -> tuple[list[Table], MetaDataset]:
    """A memory of the package, each task a table too; its families share rows or their origin."""
    memory = bundled(learner)
    tables = []
    for record in memory.records():
        # The library's own default may be that of the space, which is there already.
        first = {
            repr(sorted(c.items())): i for i, c in reversed([*enumerate(record.configurations)])
        }
        rows = sorted(first.values())
        kept = [record.configurations[i] for i in rows]
        tables.append(Table(record.name, memory.space, kept, record.losses[rows]))
    return tables, memory


MEMORIES = {
    "svm_grid": svm_memory,
    "oboe": lambda: oboe_memory(described=True),
    "oboe_sizes": lambda: oboe_memory(described=False),
    "adaboost": adaboost_memory,
}
BUNDLED = {learner: partial(bundled_memory, learner) for learner in LEARNERS}
