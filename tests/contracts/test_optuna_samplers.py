"""Optuna's official sampler test cases, run for every sampler with its defaults."""

from __future__ import annotations

from collections.abc import Callable
from inspect import getmembers, isroutine
from typing import Any, get_type_hints

import numpy as np
import pytest
from automl_plugins.adapters import optuna as our_optuna
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

WITH_MEMORY = {"auto_with_memory": lambda: AutoSampler(EARLIER, **FAST)}
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


def each_once(case: Any) -> pytest.MarkDecorator:
    """Each distribution of a case of two once as either of them, in place of all pairs."""
    (x, of_x), (y, of_y) = (mark.args for mark in case.pytestmark)
    return pytest.mark.parametrize((x, y), list(zip(of_x, of_y[1:] + of_y[:1], strict=True)))


class _Given:
    @pytest.fixture
    def sampler(self, request: pytest.FixtureRequest) -> Callable[[], BaseSampler]:
        return request.param  # type: ignore[no-any-return]


class _Whole(_Given, BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    @each_once(RelativeSamplerTestCase.test_sample_relative_numerical)
    def test_sample_relative_numerical(
        self, sampler: Any, x_distribution: Any, y_distribution: Any
    ) -> None:
        super().test_sample_relative_numerical(sampler, x_distribution, y_distribution)

    @each_once(BasicSamplerTestCase.test_combination_of_different_distributions_objective)
    def test_combination_of_different_distributions_objective(
        self, sampler: Any, suggest_method_x: Any, suggest_method_y: Any
    ) -> None:
        super().test_combination_of_different_distributions_objective(
            sampler, suggest_method_x, suggest_method_y
        )


@pytest.mark.parametrize(
    "sampler", [lambda: AutoSampler(n_startup_trials=0, seed=0)], ids=["auto"], indirect=True
)
class TestWhole(_Whole):
    """All cases."""


@pytest.mark.parametrize("sampler", WITH_MEMORY.values(), ids=WITH_MEMORY.keys(), indirect=True)
class TestWithMemory(_Whole):
    """All cases that may ask the memory."""

    test_float = test_int = test_categorical = None  # type: ignore[assignment]

    @pytest.mark.parametrize(("second_low", "second_high"), [(20, 30)])
    def test_dynamic_range_objective(
        self, sampler: Any, second_low: int, second_high: int
    ) -> None:
        super().test_dynamic_range_objective(sampler, second_low, second_high)


OTHERS = WITH_MEMORY | {name: FURTHER[name] for name in OWN}


@pytest.mark.slow
@pytest.mark.parametrize("sampler", OTHERS.values(), ids=OTHERS.keys(), indirect=True)
class TestBasic(_Given, BasicSamplerTestCase):
    """All pairs of distributions, and the other cases of samplers with another proposer."""

    test_sample_relative_numerical = RelativeSamplerTestCase.test_sample_relative_numerical


@pytest.mark.slow
@pytest.mark.parametrize("sampler", FURTHER.values(), ids=FURTHER.keys(), indirect=True)
class TestRelative(_Given, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    """Cases that depend on the proposer.

    Single distributions and pairs depend on the adapter only, which is the same for all.
    """

    test_sample_relative_numerical = None  # type: ignore[assignment]


def test_type_hints_can_be_read() -> None:
    """As by tools that make forms and command lines of signatures."""
    public = [getattr(our_optuna, name) for name in our_optuna.__all__]
    samplers = [one for one in public if isinstance(one, type) and issubclass(one, BaseSampler)]
    assert len(samplers) == 10
    for sampler in samplers:
        presets = [make for name, make in getmembers(sampler, isroutine) if name[0] != "_"]
        for function in (sampler.__init__, *presets):
            if function.__module__.startswith("automl_plugins"):
                get_type_hints(function)
