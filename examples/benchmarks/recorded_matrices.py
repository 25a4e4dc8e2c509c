"""Recorded tables of many data sets as matrices: pipelines x data sets, losses, NaN = missing.

The folder is found as in ``recorded_tables.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pandas as pd
from recorded_tables import _array, _folder

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Matrix:
    """Losses of the same pipelines on many data sets.

    Attributes:
        Y: Losses (N, D), smaller is better; NaN where there is none.
        data_sets: Names (D).
        pipelines: What each pipeline is, a row each (N).
        train: Mask (D,) of the data sets that the table's authors trained on; None if they have
            no split.
        meta_features: Those of the data sets (D rows); None if there are none.
    """

    Y: FloatArray
    data_sets: list[str]
    pipelines: pd.DataFrame
    train: npt.NDArray[np.bool_] | None = None
    meta_features: pd.DataFrame | None = None


@cache
def pmf() -> Matrix:
    """38 151 pipelines on 493 data sets, with the split of the paper (Fusi et al. 2018)."""
    folder = _folder() / "pmf"
    # Columns are stored in an order that tells which pipelines are good.
    back = np.argsort(_array(folder / "column_pipeline_id.npy.xz"))
    stored = _array(folder / "error_u16.npy.xz")[:, back].T
    Y = np.where(stored == 65535, np.float32(np.nan), stored / np.float32(10_000))
    sets = pd.read_csv(folder / "datasets.csv")
    return Matrix(
        np.ascontiguousarray(Y, dtype=np.float32),
        [str(i) for i in sets.dataset_id],
        pd.read_csv(folder / "pipelines.csv.gz"),
        (sets.paper_split == "train").to_numpy(),
        pmf_metafeatures().loc[sets.dataset_id.to_numpy()],
    )


@cache
def pmf_metafeatures() -> pd.DataFrame:
    """46 meta-features of the data sets of ``pmf``, by OpenML id; NaN where missing."""
    frame = pd.read_csv(_folder() / "pmf_metafeatures" / "metafeatures.csv.gz")
    return frame.set_index("dataset_id").drop(columns="paper_split")


@cache
def oboe() -> Matrix:
    """219 configurations of 12 algorithms on 358 data sets, balanced error; nothing is missing."""
    folder = _folder() / "oboe"
    frame = pd.read_csv(folder / "oboe.csv.gz")
    wide = frame.pivot(index="config_id", columns="dataset_id", values="balanced_error_rate")
    configs = pd.read_csv(folder / "configs.csv").sort_values("config_id")
    sizes = pd.read_csv(folder / "dataset_sizes.csv").set_index("dataset_id").loc[wide.columns]
    return Matrix(
        wide.to_numpy(dtype=np.float32), list(map(str, wide.columns)), configs, None, sizes
    )


MATRICES: dict[str, Callable[[], Matrix]] = {
    "pmf": pmf,
    "oboe": oboe,
}
