"""Recorded runs as memories: every table of a source is a task, with its meta-features."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pandas as pd
from recorded_tables import adaboost, data_folder, oboe, svm_grid

from automl_plugins.meta import MetaDataset, TaskRecord
from automl_plugins.replay import Table


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
    folder = data_folder()
    assert folder is not None
    frame = pd.read_csv(folder / path).set_index(index)
    frame.index = frame.index.astype(str)
    return frame.select_dtypes("number")


def svm_memory() -> tuple[list[Table], MetaDataset]:
    """SVMs on 288 configurations, 22 meta-features."""
    tables = svm_grid()
    return tables, memory_of(tables, read_features("svm_grid/metafeatures.csv", "dataset"))


def oboe_memory(*, described: bool, every: int = 3) -> tuple[list[Table], MetaDataset]:
    """12 algorithms on the data sets of every third table.

    Args:
        described: The tables with 46 meta-features, among themselves; else the others, with all
            as memory and sizes only.
        every: Take one table of so many.
    """
    features = read_features("pmf_metafeatures/metafeatures.csv.gz", "dataset_id")
    known = set(features.index)
    tables = oboe(every)
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


MEMORIES = {
    "svm_grid": svm_memory,
    "oboe": lambda: oboe_memory(described=True),
    "oboe_sizes": lambda: oboe_memory(described=False),
    "adaboost": adaboost_memory,
}
