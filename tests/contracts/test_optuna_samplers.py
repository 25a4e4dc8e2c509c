"""Optuna's official sampler test cases, run for every sampler with its defaults."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from automl_plugins.adapters.optuna import EIPerSecondSampler, GBQRSampler, SurrogateSampler
from optuna.samplers import BaseSampler
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    RelativeSamplerTestCase,
    SingleOnlySamplerTestCase,
)

SAMPLERS: dict[str, Callable[[], BaseSampler]] = {
    "gbqr": lambda: GBQRSampler(n_startup_trials=0, seed=0),
    "ei_per_second": lambda: EIPerSecondSampler(n_startup_trials=0, seed=0),
    "surrogate": lambda: SurrogateSampler(n_startup_trials=0, seed=0),
}
FURTHER: dict[str, Callable[[], BaseSampler]] = {
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


@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS.keys(), indirect=True)
class TestBasic(BasicSamplerTestCase):
    @pytest.fixture
    def sampler(self, request: pytest.FixtureRequest) -> Callable[[], BaseSampler]:
        return request.param  # type: ignore[no-any-return]


@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS.keys(), indirect=True)
class TestSingleOnly(SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self, request: pytest.FixtureRequest) -> Callable[[], BaseSampler]:
        return request.param  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "sampler", [*SAMPLERS.values(), *FURTHER.values()], ids=[*SAMPLERS, *FURTHER], indirect=True
)
class TestRelative(RelativeSamplerTestCase):
    @pytest.fixture
    def sampler(self, request: pytest.FixtureRequest) -> Callable[[], BaseSampler]:
        return request.param  # type: ignore[no-any-return]
