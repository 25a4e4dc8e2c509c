"""Optuna's official sampler test cases, run for every sampler with its defaults."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from automl_plugins.adapters.optuna import (
    AutoSampler,
    BlendedSampler,
    EIPerSecondSampler,
    GBQRSampler,
    PMFSampler,
    SurrogateSampler,
    TSTSampler,
)
from automl_plugins.adapters.optuna.samplers import SamplerOptions
from ConfigSpace import ConfigurationSpace
from optuna.samplers import BaseSampler
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    RelativeSamplerTestCase,
    SingleOnlySamplerTestCase,
)

from automl_plugins.records.task_record import TaskRecord

_SPACE = ConfigurationSpace({"x": (0.0, 10.0), "y": (0, 10)})
_GRID = [{"x": x, "y": y} for x in (0.1, 0.5, 5.0) for y in (1, 4)]
EARLIER = [
    TaskRecord("low", _GRID, np.array([0.1, 0.3, 0.2, 0.6, 0.9, 1.0]), space=_SPACE),
    TaskRecord("high", _GRID, np.array([3.0, 2.0, 2.5, 1.0, 0.0, 0.5]), space=_SPACE),
]
FAST: SamplerOptions = {"n_startup_trials": 0, "n_candidates": 50, "seed": 0}

SAMPLERS: dict[str, Callable[[], BaseSampler]] = {
    "auto": lambda: AutoSampler(n_startup_trials=0, seed=0),
    "auto_with_memory": lambda: AutoSampler(EARLIER, **FAST),
}
FURTHER: dict[str, Callable[[], BaseSampler]] = {
    "gbqr": lambda: GBQRSampler(n_startup_trials=0, seed=0),
    "tst": lambda: TSTSampler(EARLIER, **FAST),
    "ei_per_second": lambda: EIPerSecondSampler(n_startup_trials=0, seed=0),
    "surrogate": lambda: SurrogateSampler(n_startup_trials=0, seed=0),
    "pmf": lambda: PMFSampler(EARLIER, **FAST),
    "blended": lambda: BlendedSampler(EARLIER, **FAST),
    "auto_per_second": lambda: AutoSampler(n_startup_trials=0, cost="duration", seed=0),
    "thesis": lambda: GBQRSampler.thesis(n_startup_trials=0, seed=0),
    "gbqr_per_second": lambda: GBQRSampler(n_startup_trials=0, cost="duration", seed=0),
    "forest_interleaved": lambda: SurrogateSampler(
        surrogate="random_forest", interleave=2, n_startup_trials=0, seed=0
    ),
    "extra_trees_bound": lambda: SurrogateSampler(
        surrogate="extra_trees", acquisition="bound", n_startup_trials=0, seed=0
    ),
    "gaussian_process": lambda: SurrogateSampler(
        surrogate="gaussian_process", target="standardize", n_startup_trials=0, seed=0
    ),
}
OWN = ["gbqr", "tst"]


class _Given:
    @pytest.fixture
    def sampler(self, request: pytest.FixtureRequest) -> Callable[[], BaseSampler]:
        return request.param  # type: ignore[no-any-return]


@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS.keys(), indirect=True)
class TestWhole(_Given, BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    """All cases: without a memory and with one."""


@pytest.mark.slow
@pytest.mark.parametrize("sampler", [FURTHER[n] for n in OWN], ids=OWN, indirect=True)
class TestBasic(_Given, BasicSamplerTestCase):
    """The other cases of samplers with another proposer."""

    test_sample_relative_numerical = RelativeSamplerTestCase.test_sample_relative_numerical


@pytest.mark.slow
@pytest.mark.parametrize("sampler", FURTHER.values(), ids=FURTHER.keys(), indirect=True)
class TestRelative(_Given, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    """Cases that depend on the proposer.

    Single distributions and pairs depend on the adapter only, which is the same for all.
    """

    test_sample_relative_numerical = None  # type: ignore[assignment]
