"""Optuna's official sampler test cases, for all samplers of arms and the samplers inside."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import pytest
from arm_objectives import Even, arm_choices
from automl_plugins.adapters.optuna import (
    BanditSampler,
    BOASFSampler,
    WeightedModelSampler,
)
from optuna.distributions import CategoricalDistribution
from optuna.samplers import (
    BaseSampler,
    CmaEsSampler,
    GPSampler,
    QMCSampler,
    RandomSampler,
    TPESampler,
)
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    RelativeSamplerTestCase,
    SingleOnlySamplerTestCase,
)

pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")

Make = Callable[[], BaseSampler]

INNER: dict[str, Any] = {
    "tpe": partial(TPESampler, n_startup_trials=0),
    "grouped_tpe": partial(TPESampler, n_startup_trials=0, group=True),
    "cma_es": partial(CmaEsSampler, n_startup_trials=0, warn_independent_sampling=False),
    "qmc": partial(QMCSampler, warn_independent_sampling=False),
}
GP = partial(GPSampler, n_startup_trials=0, warn_independent_sampling=False)


# Not every case asks for the arm: it has to be declared then.
DECLARED = arm_choices("a", "b")
CATEGORY = {"category": CategoricalDistribution(["x", "y"])}


def bandit(inner: Any, arm: str = "algorithm") -> Make:
    declared = {"algorithm": DECLARED, "category": CATEGORY}.get(arm)
    return partial(BanditSampler, arm, policy=Even(), inner=inner, seed=0, search_space=declared)


SAMPLERS: dict[str, Make] = {
    "weighted": partial(WeightedModelSampler, seed=0, search_space=DECLARED),
    "boasf": partial(BOASFSampler, n_trials=10, seed=0, search_space=DECLARED),
    "bandit_cma_es": bandit(INNER["cma_es"]),
}
RELATIVE: dict[str, Make] = {
    "grouped_tpe": bandit(INNER["grouped_tpe"]),
    "instance": bandit(TPESampler(n_startup_trials=0, seed=0)),
    "boasf": partial(BOASFSampler, n_trials=10, inner=INNER["tpe"], seed=0, search_space=DECLARED),
}
# They differ in the choice of an arm, which these cases have none of: one is tried always.
BASIC = [
    pytest.param(make, marks=() if name == "weighted" else pytest.mark.slow)
    for name, make in SAMPLERS.items()
]


class _Given:
    @pytest.fixture
    def sampler(self, request: pytest.FixtureRequest) -> Make:
        return request.param  # type: ignore[no-any-return]


@pytest.mark.parametrize("sampler", BASIC, ids=SAMPLERS, indirect=True)
class TestBasic(_Given, BasicSamplerTestCase):
    """The objectives have no arm: everything is the business of one inner sampler."""

    test_float = test_int = test_categorical = None  # type: ignore[assignment]


@pytest.mark.slow
@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS, indirect=True)
class TestIndependent(_Given):
    """A hundred draws of one parameter."""

    test_float = BasicSamplerTestCase.test_float
    test_int = BasicSamplerTestCase.test_int
    test_categorical = BasicSamplerTestCase.test_categorical


@pytest.mark.slow
@pytest.mark.parametrize("sampler", RELATIVE.values(), ids=RELATIVE, indirect=True)
class TestRelative(_Given, RelativeSamplerTestCase):
    pass


@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS, indirect=True)
class TestSingleOnly(_Given, SingleOnlySamplerTestCase):
    pass


# The categorical parameters of the cases as arms.
ARMS: dict[str, Make] = {
    "x": partial(WeightedModelSampler, "x", seed=0),
    "x_tpe": bandit(INNER["tpe"], "x"),
    "x_boasf": partial(BOASFSampler, "x", n_trials=10, inner=RandomSampler, seed=0),
    "category": bandit(INNER["tpe"], "category"),
    "category_qmc": bandit(INNER["qmc"], "category"),
}
if find_spec("torch") is not None:  # Optuna's GP needs it
    ARMS["category_gp"] = bandit(GP, "category")


CHOOSING = ("x", "x_boasf")


@pytest.mark.parametrize("sampler", [ARMS[n] for n in CHOOSING], ids=CHOOSING, indirect=True)
class TestChoosing(_Given):
    """The categorical parameter of this case is the arm itself."""

    test_categorical = BasicSamplerTestCase.test_categorical


@pytest.mark.parametrize("sampler", ARMS.values(), ids=ARMS, indirect=True)
class TestArms(_Given):
    test_conditional_sample_independent = BasicSamplerTestCase.test_conditional_sample_independent
    test_conditional_parameter_objective = (
        BasicSamplerTestCase.test_conditional_parameter_objective
    )
