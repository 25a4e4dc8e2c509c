"""Surrogates, acquisition functions and encoders of this package as parts of SMAC."""

from __future__ import annotations

import json
import logging
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.smac import (
    CostAndSecondsEncoder,
    CostEncoder,
    EIPerSecond,
    GBQRFacade,
    QuantileBound,
    SurrogateModel,
)
from automl_plugins.adapters.smac.continuing import describe
from automl_plugins.adapters.smac.trials import canonical
from ConfigSpace import Categorical, Configuration, ConfigurationSpace, EqualsCondition, Float
from ConfigSpace.hyperparameters import BetaFloatHyperparameter, NormalFloatHyperparameter
from scipy.stats import norm
from sklearn.neighbors import KNeighborsRegressor
from smac import (
    AlgorithmConfigurationFacade,
    HyperparameterOptimizationFacade,
    MultiFidelityFacade,
    RunHistory,
    Scenario,
)
from smac.acquisition.function import EI, LCB, PI
from smac.model.multi_objective_model import MultiObjectiveModel
from smac.runhistory import StatusType
from smac.runhistory.encoder import (
    RunHistoryEncoder,
    RunHistoryLogScaledEncoder,
    RunHistoryScaledEncoder,
)
from smac_runs import BUDGETS, INSTANCES, budget_target, facade, few_candidates, instance_target
from smac_runs import scenario as any_scenario
from smac_runs import search as run_search

from automl_plugins.proposers.targets import transform
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.surrogates import (
    DistanceAware,
    ExtraTrees,
    GaussianProcess,
    QuantileBoosting,
    RandomForest,
)

NAN = math.nan


def space() -> ConfigurationSpace:
    made = ConfigurationSpace(seed=0)
    kind, c = Categorical("kind", ["linear", "rbf", "poly"]), Float("C", (0.0, 1.0))
    made.add(kind, c, Float("x", (0.0, 1.0)), EqualsCondition(c, kind, "rbf"))
    return made


SPACE = space()
VECTORS = VectorSpace(SPACE)
CONFIGS = SPACE.sample_configuration(5)
KIND = SPACE.index_of["kind"]
X = VECTORS.sample(30, np.random.default_rng(0))
COST = (X[:, SPACE.index_of["x"]] - 0.3) ** 2 + (X[:, KIND] == 2)
SECONDS = np.where(X[:, KIND] == 1, 100.0, 1.0)
NEW = VECTORS.sample(200, np.random.default_rng(1))


def scenario(tmp_path: Path, **options: Any) -> Scenario:
    return any_scenario(tmp_path, space(), **options)


def forest(**options: Any) -> SurrogateModel:
    return SurrogateModel(SPACE, RandomForest(), **({"seed": 1} | options))


# --- the model --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "surrogate",
    [
        None,
        QuantileBoosting.thesis(),
        RandomForest(),
        ExtraTrees(),
        GaussianProcess(),
        DistanceAware(RandomForest()),
    ],
    ids=repr,
)
def test_any_surrogate_is_a_model(surrogate: Any) -> None:
    model = SurrogateModel(SPACE, surrogate, seed=1)
    assert model.train(X, COST[:, None]) is model
    mean, variance = model.predict_marginalized(NEW)
    assert mean.shape == variance.shape == (200, 1)
    assert mean.flags.writeable and (variance > 0).all()
    poly = NEW[:, KIND] == 2
    assert mean[poly].mean() > mean[~poly].mean() + 0.3
    again = SurrogateModel(SPACE, surrogate, seed=1).train(X, COST[:, None])
    np.testing.assert_array_equal(again.predict(NEW)[0], mean)
    assert json.loads(json.dumps(model.meta["surrogate"])) == model.meta["surrogate"]


def test_the_model_is_the_surrogate_on_the_cores_features() -> None:
    model = SurrogateModel(SPACE, GaussianProcess(), seed=1).train(X, COST[:, None])
    direct = GaussianProcess(random_state=None).fit(VECTORS.features(X), COST)
    mean, std = direct.predict(VECTORS.features(NEW))
    found, deviation = model.predict(NEW, "std")
    assert deviation is not None
    np.testing.assert_allclose(found[:, 0], mean, atol=1e-3)
    np.testing.assert_allclose(deviation[:, 0], std, atol=1e-2)


def test_covariance_types() -> None:
    model = forest().train(X, COST[:, None])
    std, variance = model.predict(NEW, "std")[1], model.predict(NEW)[1]
    assert std is not None and variance is not None
    np.testing.assert_allclose(std**2, variance)
    assert model.predict(NEW, None)[1] is None
    with pytest.raises(ValueError, match="covariance_type must be None, 'std' or 'diagonal'"):
        model.predict(NEW, "full")


def test_a_second_column_is_modelled_as_ln_seconds() -> None:
    model = forest().train(X, np.column_stack([COST, np.log(SECONDS)]))
    mean, variance = model.predict_marginalized(NEW)
    assert mean.shape == variance.shape == (200, 2)
    slow = NEW[:, KIND] == 1
    assert np.exp(mean[slow, 1]).min() > 20 and np.exp(mean[~slow, 1]).max() < 5
    model.train(X, COST[:, None])
    assert model.predict(NEW)[0].shape == (200, 1)
    with pytest.raises(ValueError, match="the encoder gave 3 columns"):
        model.train(X, np.zeros((30, 3)))


def test_costs_that_are_not_finite_count_as_the_worst(caplog: pytest.LogCaptureFixture) -> None:
    spoilt, worst = COST.copy(), COST.copy()
    spoilt[[3, 8]], worst[[3, 8]] = [math.inf, NAN], np.delete(COST, [3, 8]).max()
    model = forest()
    found = model.train(X, spoilt[:, None]).predict(NEW)[0]
    np.testing.assert_array_equal(found, model.train(X, worst[:, None]).predict(NEW)[0])
    assert not caplog.messages
    for _ in range(2):
        model.train(X, np.full((30, 1), NAN))
    assert len(caplog.messages) == 1 and "CostEncoder(scenario)" in caplog.messages[0]


def test_instances_are_averaged() -> None:
    model = forest(instance_features=INSTANCES["instance_features"])
    rows = np.hstack([np.repeat(X, 3, axis=0), np.tile([[0.0], [1.0], [2.0]], (30, 1))])
    model.train(rows, (np.repeat(COST, 3) + rows[:, -1])[:, None])
    mean, variance = model.predict_marginalized(NEW)
    slow_mean, slow_variance = super(SurrogateModel, model).predict_marginalized(NEW)
    np.testing.assert_allclose(mean, slow_mean)
    np.testing.assert_allclose(variance, slow_variance)


def test_seconds_are_averaged_over_instances_and_not_their_logarithms() -> None:
    """1, 1 and 400 s are more than 20 s on each, and less by the mean logarithm."""
    model = forest(instance_features=INSTANCES["instance_features"])
    pairs = [np.insert(X, X.shape[1], float(i), axis=1) for i in range(3)]
    rows = np.vstack(pairs)
    uneven = rows[:, KIND] == 0
    seconds = np.where(uneven, np.where(rows[:, -1] == 2, 400.0, 1.0), 20.0)
    model.train(rows, np.column_stack([np.ones(len(rows)), np.log(seconds)]))
    each = [(mean[:, 1], std[:, 1]) for mean, std in (model.predict(p, "std") for p in pairs)]
    expected = np.mean([np.exp(mean + std**2 / 2) for mean, std in each], axis=0)
    mean, variance = model.predict_marginalized(X)
    np.testing.assert_allclose(np.exp(mean[:, 1] + variance[:, 1] / 2), expected)
    function, linear = EIPerSecond(), X[:, KIND] == 0
    function.update(model, eta=2.0)
    found = function([Configuration(SPACE, vector=vector) for vector in X])[:, 0]
    assert found[linear].max() < found[~linear].min()


@pytest.mark.parametrize("wrong", ["random_forest", RandomForest, object()])
def test_what_is_no_surrogate_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"surrogate must be an object with fit\(X, y\)"):
        SurrogateModel(SPACE, wrong)


def test_an_untrained_model_says_so() -> None:
    with pytest.raises(ValueError, match="has to be trained before"):
        SurrogateModel(SPACE).predict(X)


# --- encoders ---------------------------------------------------------------------------------


def recorded(tmp_path: Path, kind: type[CostEncoder], **options: Any) -> CostEncoder:
    """Two successes, a crash, a timeout, a running trial."""
    encoder, history = kind(scenario(tmp_path), **options), RunHistory()
    trials: list[dict[str, Any]] = [
        {"cost": 3.0, "time": 2.0},
        {"cost": math.inf, "status": StatusType.CRASHED, "starttime": 1.0, "endtime": 9.0},
        {"cost": 1.0},
        {"cost": math.inf, "status": StatusType.TIMEOUT, "starttime": 0.0, "endtime": 20.0},
        {"cost": 2147483647.0, "status": StatusType.RUNNING},
    ]
    for config, facts in zip(CONFIGS, trials, strict=True):
        history.add(config, seed=0, **facts)
    encoder.runhistory = history
    return encoder


@pytest.mark.parametrize("target", ["log_regret", "normal_scores", "standardize", "raw"])
def test_failures_are_as_bad_as_the_worst_success(tmp_path: Path, target: Any) -> None:
    rows, Y = recorded(tmp_path, CostEncoder, target=target).transform()
    # timeouts come last
    np.testing.assert_array_equal(rows, [canonical(config) for config in CONFIGS[:4]])
    expected = transform(np.array([3.0, 3.0, 1.0, 3.0]), target).values
    np.testing.assert_allclose(Y, expected[:, None])


def test_seconds_are_true_ones_and_logarithmic(tmp_path: Path) -> None:
    encoder = recorded(tmp_path, CostAndSecondsEncoder, target="raw")
    _, Y = encoder.transform()
    # The one that nobody timed took as long as the median of 2, 8 and 20.
    np.testing.assert_allclose(Y[:, 1], np.log([2.0, 8.0, 8.0, 20.0]))
    np.testing.assert_allclose(Y[:, 0], [3.0, 3.0, 1.0, 3.0])
    raw = np.array([[NAN, 0.0], [NAN, NAN]])
    np.testing.assert_allclose(encoder.transform_response_values(raw), [[0.0, math.log(1e-3)]] * 2)
    assert math.isnan(raw[0, 0])  # left alone


@pytest.mark.parametrize("kind", [CostEncoder, CostAndSecondsEncoder])
def test_encoders_check_their_arguments(tmp_path: Path, kind: type[CostEncoder]) -> None:
    with pytest.raises(ValueError, match="takes one objective, the scenario has 2"):
        kind(scenario(tmp_path, objectives=["a", "b"]))
    with pytest.raises(ValueError, match="target must be one of 'log_regret'"):
        kind(scenario(tmp_path), target="log")
    encoder = kind(scenario(tmp_path))
    encoder.runhistory = RunHistory()
    rows, Y = encoder.transform()
    assert rows.shape == (0, 3) and len(Y) == 0
    assert encoder.meta["target"] == "log_regret"


# --- acquisition functions --------------------------------------------------------------------


class Fixed(SurrogateModel):  # type: ignore[misc,unused-ignore]
    """Predicts what it is told, for any input."""

    def __init__(self, mean: Any, variance: Any) -> None:
        super().__init__(SPACE)
        self.answer = np.array(mean, dtype=float), np.array(variance, dtype=float)

    def predict_marginalized(self, X: Any) -> Any:
        return self.answer


def scores(function: Any, mean: Any, variance: Any, **facts: Any) -> list[float]:
    function.update(Fixed(mean, variance), **({"eta": 1.0} | facts))
    found = function(CONFIGS[:2])
    assert found.shape == (2, 1)
    return [float(value) for value in found[:, 0]]


GAIN = 0.2 * (2.5 * norm.cdf(2.5) + norm.pdf(2.5))  # mean 0.5 below 1 by 2.5 deviations of 0.2


@pytest.mark.parametrize(
    ("options", "num_data", "exponent"),
    [
        ({}, 0, 1.0),
        ({"cost_exponent": 0.5}, 0, 0.5),
        ({"cost_budget": 10}, 5, 0.5),
        ({"cost_budget": 10}, 50, 0.0),
    ],
)
def test_expected_improvement_is_divided_by_seconds(
    options: Any, num_data: int, exponent: float
) -> None:
    """Below one second too: SMAC's own EIPS divides by a logarithm, which is negative there."""
    mean, variance = [[0.5, math.log(0.1)], [0.5, math.log(20.0)]], [[0.04, 0.0], [0.04, 0.0]]
    found = scores(EIPerSecond(**options), mean, variance, num_data=num_data)
    np.testing.assert_allclose(found, np.log([GAIN / 0.1**exponent, GAIN / 20.0**exponent]))


def test_what_cannot_improve_is_comparable() -> None:
    worse = scores(EIPerSecond(), [[50.0, 0.0], [90.0, 0.0]], [[1e-4, 0.0]] * 2)
    assert worse[0] > worse[1] and np.isfinite(worse).all()


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: EIPerSecond(xi=-1.0), "xi must be a finite number >= 0"),
        (lambda: EIPerSecond(cost_exponent=1.5), r"cost_exponent must be a number in \[0, 1\]"),
        (lambda: EIPerSecond(cost_budget=0), "cost_budget must be an integer >= 1, or None"),
        (lambda: QuantileBound(beta=math.inf), "beta must be a finite number >= 0"),
        (
            lambda: scores(EIPerSecond(), [[0.5], [0.5]], [[0.1], [0.1]]),
            r"runhistory_encoder=CostAndSecondsEncoder",
        ),
        (lambda: EIPerSecond()(CONFIGS), "The best cost is unknown"),
        (lambda: QuantileBound()(CONFIGS), "has no model"),
    ],
)
def test_functions_refuse_what_they_cannot_use(use: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        use()


def test_the_bound_is_mean_less_deviations() -> None:
    assert scores(QuantileBound(beta=2.0), [[1.0], [3.0]], [[0.25], [4.0]]) == [0.0, 1.0]


def test_the_bound_per_second_is_gbqr_median() -> None:
    """Thesis eq. 5.2: below the median of a random batch nothing is gained."""
    model = forest().train(X, np.column_stack([COST, np.log(SECONDS)]))
    function = QuantileBound(beta=0.0)
    function.update(model, eta=0.0)
    configs = SPACE.sample_configuration(300)
    found = function(configs)[:, 0]
    mean, variance = model.predict_marginalized(np.array([canonical(c) for c in configs]))
    spent = np.exp(mean[:, 1] + variance[:, 1] / 2)
    assert ((found == 0).mean() > 0.3) and (found >= 0).all()
    medians = (-mean[:, 0] - found * spent)[found > 0]  # solved for the median
    np.testing.assert_allclose(medians, medians[0], atol=1e-9)


def test_the_median_bound_is_that_of_the_newest_model() -> None:
    used, fresh = QuantileBound(beta=0.0), QuantileBound(beta=0.0)
    for level in (0.0, -100.0):
        model = forest().train(X, np.column_stack([COST + level, np.zeros(len(X))]))
        used.update(model, eta=0.0)
        used(CONFIGS[:2])
    fresh.update(model, eta=0.0)
    np.testing.assert_array_equal(used(CONFIGS), fresh(CONFIGS))


@pytest.mark.parametrize("function", [EIPerSecond(cost_budget=9), QuantileBound(beta=0.5)])
def test_functions_describe_themselves(function: Any) -> None:
    assert json.loads(json.dumps(function.meta)) == function.meta
    assert isinstance(function.name, str)


class Cached:
    def __init__(self) -> None:
        self.alpha, self._cache, self.fitted_ = np.float64(0.5), [1], [2]
        self.deep: Any = self


def test_descriptions_are_short_and_repeat() -> None:
    found = describe({"n": [math.inf, None, True], "data": np.zeros((3, 2)), "kind": Cached})
    expected = {"n": ["inf", None, True], "data": {"shape": [3, 2]}}
    assert found == expected | {"kind": {"name": "type", "class": "Cached"}}
    assert describe([0.0] * 30) == describe(dict.fromkeys(range(30))) == {"entries": 30}
    assert describe(KNeighborsRegressor(3))["n_neighbors"] == 3
    own = describe(Cached(), depth=2)
    assert own == {"name": "Cached", "alpha": 0.5, "deep": {"name": "Cached"}}


def test_a_description_does_not_depend_on_what_was_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    part = Cached()
    part.deep = logging.getLogger("smac.automl_plugins.described")
    before = json.dumps(describe(part))
    with caplog.at_level(logging.INFO):
        part.deep.info("A handler keeps this.")
    assert json.dumps(describe(part)) == before


# --- in SMAC's own facades --------------------------------------------------------------------


def target(config: Configuration, seed: int = 0) -> float:
    return float((config["x"] - 0.3) ** 2 + 0.2 * (config["kind"] == "poly"))


def fragile(config: Configuration, seed: int = 0) -> float:
    if config["x"] > 0.8:
        raise RuntimeError("too large")
    return target(config)


def search(tmp_path: Path, kind: Any, **given: Any) -> Any:
    parts = {
        "model": partial(model),
        "config_selector": partial(kind.get_config_selector, retrain_after=2),
        "acquisition_maximizer": few_candidates,
    }
    smac = facade(tmp_path, kind=kind, **(parts | given))
    run_search(smac)
    return smac


def model(run: Scenario) -> SurrogateModel:
    features = run.instance_features
    return SurrogateModel(
        run.configspace, RandomForest(), instance_features=features, seed=run.seed
    )


def model_of_two(run: Scenario) -> MultiObjectiveModel:
    return MultiObjectiveModel([model(run), model(run)], objectives=["cost", "time"])


@pytest.mark.parametrize(
    ("function", "encoder", "given"),
    [
        (EI(), RunHistoryEncoder, {}),
        (EI(log=True), RunHistoryLogScaledEncoder, {}),
        (LCB(), RunHistoryScaledEncoder, {}),
        (PI(), CostEncoder, {}),
        (QuantileBound(), CostEncoder, {}),
        (QuantileBound(), CostAndSecondsEncoder, {}),
        (EIPerSecond(), CostAndSecondsEncoder, {}),
        (EIPerSecond(), CostAndSecondsEncoder, {"function": fragile, "n_trials": 20}),
        (EIPerSecond(), CostAndSecondsEncoder, {"model": partial(model_of_two)}),
    ],
    ids=lambda part: getattr(part, "__name__", type(part).__name__),
)
def test_parts_go_together(tmp_path: Path, function: Any, encoder: Any, given: Any) -> None:
    parts = {"acquisition_function": function, "runhistory_encoder": partial(encoder)}
    given = {"function": target, "space": space()} | parts | given
    smac = search(tmp_path, HyperparameterOptimizationFacade, **given)
    assert len(smac.runhistory) == given.get("n_trials", 12)
    assert smac.runhistory.get_cost(smac.intensifier.get_incumbent()) < 0.2


@pytest.mark.parametrize("kind", [GBQRFacade, HyperparameterOptimizationFacade])
@pytest.mark.parametrize(
    "child",
    [NormalFloatHyperparameter("n", 0, 2, -6, 6), BetaFloatHyperparameter("n", 2, 5, 1, 9)],
)
def test_normal_and_beta_children_are_searched(tmp_path: Path, kind: Any, child: Any) -> None:
    conditional = ConfigurationSpace(seed=0)
    parent = Categorical("a", ["with", "without"])
    conditional.add([parent, child, EqualsCondition(child, parent, "with")])
    parts: dict[str, Any] = {} if kind is GBQRFacade else {"model": partial(model)}
    smac = facade(
        tmp_path,
        kind=kind,
        space=conditional,
        function=lambda config, seed=0: float(config.get("n", 7) ** 2),
        **parts,
    )
    run_search(smac)
    assert len(smac.runhistory) == 12
    best = smac.intensifier.get_incumbent()
    assert best is not None and abs(best["n"]) < 3


def test_several_fidelities(tmp_path: Path) -> None:
    encoder, given = partial(CostEncoder), BUDGETS | {"n_trials": 30, "function": budget_target}
    smac = search(tmp_path, MultiFidelityFacade, runhistory_encoder=encoder, **given)
    assert {key.budget for key in smac.runhistory} == {1.0, 3.0, 9.0}


def test_several_instances(tmp_path: Path) -> None:
    smac = search(
        tmp_path,
        AlgorithmConfigurationFacade,
        function=instance_target,
        runhistory_encoder=partial(CostAndSecondsEncoder),
        acquisition_function=EIPerSecond(),
        **INSTANCES,
        n_trials=16,
    )
    assert len({key.instance for key in smac.runhistory}) > 1
