"""Ranges that ConfigSpace would round are searched, with as many different values as at random."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.hyperopt import gbqr
from hyperopt import Trials, fmin, hp, rand

N = 10

EXTREMES: dict[str, Any] = {
    "tiny": hp.uniform("x", 1e-14, 1e-13),
    "two floats": hp.uniform("x", 100, 100.00000000000001),
    "denormal": hp.uniform("x", 0, 1e-310),
    "largest": hp.uniform("x", 0, 1.7e308),
    "log": hp.loguniform("x", math.log(1e-14), math.log(1e-3)),
    "log of all": hp.loguniform("x", -700, 700),
    "log of nothing": hp.loguniform("x", -2000, -100),
    "many steps": hp.quniform("x", 0, 1e16, 1e-3),
    "tiny steps": hp.quniform("x", 0, 1e-14, 1e-15),
    "large steps": hp.quniform("x", 0, 1e300, 1),
    "integers": hp.randint("x", -(2**62), 2**62),
    "few large integers": hp.randint("x", 2**60, 2**60 + 5),
    "normal": hp.normal("x", 0, 1e-15),
    "normal integers": hp.qnormal("x", 0, 1e20, 1),
    "one value": hp.normal("x", 1, 0),
    "lognormal": hp.lognormal("x", -50, 1),
    "qlognormal": hp.qlognormal("x", 0, 30, 1),
    "qloguniform": hp.qloguniform("x", -60, -50, 1e-27),
}

BOUNDS = {
    "tiny": (1e-14, 1e-13),
    "two floats": (100, 100.00000000000001),
    "denormal": (0, 1e-310),
    "log": (0.999e-14, 1.001e-3),
    "integers": (-(2**62), 2**62),
    "few large integers": (2**60, 2**60 + 4),
}


def search(space: Any, algo: Any) -> list[Any]:
    values: list[Any] = []

    def objective(x: Any) -> float:
        values.append(x)
        return float(len(values) % 4)

    rstate = np.random.default_rng(0)
    options: dict[str, Any] = {"show_progressbar": False, "verbose": False}
    fmin(objective, space, algo=algo, max_evals=N, trials=Trials(), rstate=rstate, **options)
    return values


@pytest.mark.parametrize("name", EXTREMES)
def test_extremes_are_searched(name: str) -> None:
    space = EXTREMES[name]
    random = search(space, rand.suggest)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = search(space, gbqr(n_candidates=100))
    assert np.isfinite(np.array(values, dtype=np.float64)).all()
    assert len(set(values)) >= len(set(random))
    low, high = BOUNDS.get(name, (-math.inf, math.inf))
    assert all(low <= value <= high for value in values)
