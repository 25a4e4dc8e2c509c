"""A data set and comparisons that the tests of meta-features share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from automl_plugins.meta import meta_feature_names


def table(n: int = 120, seed: int = 0) -> tuple[pd.DataFrame, npt.NDArray[Any]]:
    """Two informative columns, noise, missing values; three classes of unequal size."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "a": latent + rng.normal(size=n),
            "b": np.exp(rng.normal(size=n)),
            "c": np.array(["u", "v", "w"], dtype=object)[rng.integers(0, 3, n)],
            "d": np.where(latent > 0, "yes", "no").astype(object),
            "e": rng.random(n) < 0.4,
        }
    )
    frame.loc[rng.random(n) < 0.1, "a"] = np.nan
    frame.loc[rng.random(n) < 0.1, "c"] = None
    y = np.array(["x", "y", "z"])[np.digitize(latent, [-0.2, 1.0])]
    return frame, y


def same(a: Mapping[str, float], b: Mapping[str, float], tolerance: float = 0.0) -> list[str]:
    """Names whose values differ."""
    assert list(a) == list(b)
    return [
        name
        for name in a
        if not (
            (math.isnan(a[name]) and math.isnan(b[name]))
            or math.isclose(a[name], b[name], rel_tol=tolerance, abs_tol=tolerance)
        )
    ]


def landmark_names(task: str = "classification") -> set[str]:
    return set(meta_feature_names("landmarking", task))
