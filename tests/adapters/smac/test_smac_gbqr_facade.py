"""GBQR as a facade: what it does by itself, and what becomes of it when parts are exchanged."""

from __future__ import annotations

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
    ProposerConfigSelector,
    QuantileBound,
    SurrogateModel,
    optimizer,
)
from automl_plugins.adapters.smac._private import quiet
from automl_plugins.adapters.smac.replaying import SMACSearch
from ConfigSpace import Categorical, Configuration, ConfigurationSpace, EqualsCondition, Float
from smac import Scenario
from smac.acquisition.function import EI
from smac.acquisition.maximizer import LocalAndSortedRandomSearch
from smac.facade.abstract_facade import AbstractFacade
from smac.initial_design import RandomInitialDesign
from smac.intensifier.hyperband import Hyperband
from smac.intensifier.intensifier import Intensifier
from smac.intensifier.successive_halving import SuccessiveHalving
from smac.main.config_selector import ConfigSelector
from smac.model.random_model import RandomModel
from smac.multi_objective import MeanAggregationStrategy
from smac.random_design import ModulusRandomDesign, ProbabilityRandomDesign
from smac.runhistory import StatusType, TrialValue
from smac.runhistory.encoder import RunHistoryEncoder, RunHistoryLogScaledEncoder

from automl_plugins.frameworks import Outcome, Problem, TrialStatus
from automl_plugins.recipes import gbqr, gbqr_thesis
from automl_plugins.records.trial import Status
from automl_plugins.surrogates import RandomForest

QUICK: dict[str, Any] = {"n_startup": 4, "n_candidates": 100, "n_models": 1}
FEW = partial(
    lambda run: LocalAndSortedRandomSearch(
        run.configspace,
        challengers=20,
        max_steps=1,
        n_steps_plateau_walk=1,
        local_search_iterations=1,
        seed=run.seed,
    )
)


def space() -> ConfigurationSpace:
    made = ConfigurationSpace(seed=0)
    kind, c = Categorical("kind", ["linear", "rbf"]), Float("C", (1e-3, 1e3), log=True)
    made.add(kind, c, Float("x", (0.0, 1.0)), EqualsCondition(c, kind, "rbf"))
    return made


def target(config: Configuration, seed: int = 0) -> float:
    inner = math.log10(config["C"]) / 3 if config["kind"] == "rbf" else 0.5
    return float((config["x"] - 0.3) ** 2 + inner**2)


def budget_target(config: Configuration, seed: int = 0, budget: float = 1.0) -> float:
    return target(config) + 1.0 / budget


def instance_target(config: Configuration, instance: str, seed: int = 0) -> float:
    return target(config) + float(instance)


def scenario(tmp_path: Path, **options: Any) -> Scenario:
    options = {"n_trials": 10, "deterministic": True, "seed": 3} | options
    return Scenario(space(), output_directory=tmp_path, **options)


def facade(tmp_path: Path, function: Any = target, **given: Any) -> GBQRFacade:
    """A facade; options of the scenario and parts of the facade by name, partials are made."""
    names = Scenario.__dataclass_fields__
    run = scenario(tmp_path, **{k: v for k, v in given.items() if k in names})
    parts = {
        k: v(run) if isinstance(v, partial) else v for k, v in given.items() if k not in names
    }
    return GBQRFacade(run, function, logging_level=False, overwrite=True, **parts)


QUICKLY = partial(GBQRFacade.get_config_selector, **QUICK)


def run(smac: AbstractFacade) -> list[dict[str, Any]]:
    with quiet():
        smac.optimize()
    return [
        {**dict(smac.runhistory.get_config(key.config_id)), "cost": value.cost}
        for key, value in smac.runhistory.items()
    ]


def forest(run: Scenario) -> SurrogateModel:
    return SurrogateModel(run.configspace, RandomForest(), seed=run.seed)


# --- by itself --------------------------------------------------------------------------------


def test_ask_and_tell_is_optimize(tmp_path: Path) -> None:
    found = run(facade(tmp_path / "a", config_selector=QUICKLY))
    smac = facade(tmp_path / "b", None, config_selector=QUICKLY)
    for trial in found:
        info = smac.ask()
        assert {name: trial[name] for name in info.config} == dict(info.config)
        smac.tell(info, TrialValue(target(info.config), time=0.1))


def test_the_options_of_the_selector_are_those_of_the_recipe(tmp_path: Path) -> None:
    found = run(facade(tmp_path / "a", config_selector=QUICKLY))
    by_hand = partial(ProposerConfigSelector, proposer=gbqr(**QUICK))
    assert run(facade(tmp_path / "b", config_selector=by_hand)) == found
    with pytest.raises(ValueError, match=r"alpha must lie in \(0, 1\)"):
        GBQRFacade.get_config_selector(scenario(tmp_path), alpha=2.0)


def test_seconds_steer_it_if_told(tmp_path: Path) -> None:
    """The best kind is 1 000 times as expensive: per second the other one is preferred."""

    def expensive(per_second: bool) -> float:
        selector = partial(QUICKLY, per_second=per_second, balance=None)
        smac = facade(tmp_path / str(per_second), n_trials=60, config_selector=selector)
        spent = 0
        for _ in range(20):
            info = smac.ask()
            slow = info.config["kind"] == "rbf"
            spent += slow
            value = TrialValue(target(info.config), time=1000.0 if slow else 1.0)
            smac.tell(info, value, save=False)
        return spent / 20

    assert expensive(True) < 0.8 * expensive(False)


# --- several seeds, instances, budgets ---------------------------------------------------------


def test_seeds_are_averaged(tmp_path: Path) -> None:
    def noisy(config: Configuration, seed: int) -> float:
        return target(config) + 0.1 * (seed % 2)

    smac = facade(tmp_path, noisy, deterministic=False, n_trials=24, config_selector=QUICKLY)
    run(smac)
    selector = smac.intensifier.config_selector
    assert isinstance(selector, ProposerConfigSelector)
    history = selector.history()
    configs = smac.runhistory.get_configs()
    assert len(history) == len(configs) < 24
    means = [smac.runhistory.average_cost(configs[i]) for i in history.number.tolist()]
    np.testing.assert_allclose(
        history.losses[history.status == Status.COMPLETE],
        np.array(means)[history.status == Status.COMPLETE],
    )


def test_instances_are_supported(tmp_path: Path) -> None:
    smac = facade(
        tmp_path,
        instance_target,
        instances=["0", "1", "2"],
        instance_features={"0": [0], "1": [1], "2": [2]},
        n_trials=24,
        config_selector=QUICKLY,
    )
    run(smac)
    assert {key.instance for key in smac.runhistory} == {"0", "1", "2"}
    selector = smac.intensifier.config_selector
    assert isinstance(selector, ProposerConfigSelector)
    history = selector.history()
    known = history.status == Status.COMPLETE
    configs = smac.runhistory.get_configs()
    truth = [1.0 + target(configs[i]) for i in history.number[known].tolist()]
    np.testing.assert_allclose(history.losses[known], truth, atol=1e-9)  # whoever met whichever


@pytest.mark.parametrize("kind", [Hyperband, SuccessiveHalving])
def test_budgets(tmp_path: Path, kind: Any) -> None:
    smac = facade(
        tmp_path,
        budget_target,
        n_trials=32,
        min_budget=1,
        max_budget=9,
        intensifier=partial(kind, incumbent_selection="highest_budget"),
        config_selector=partial(QUICKLY, min_trials=3),
    )
    run(smac)
    assert {key.budget for key in smac.runhistory} == {1.0, 3.0, 9.0}
    selector = smac.intensifier.config_selector
    assert isinstance(selector, ProposerConfigSelector)
    history = selector.history()
    budgets = history.budget[history.status == Status.COMPLETE]
    assert len(budgets) >= 3 and len(set(budgets.tolist())) == 1
    assert (history.budget[history.status == Status.PRUNED] < budgets[0]).all()
    origins = [config.origin for config in smac.runhistory.get_configs()]
    assert "Proposer: model" in origins


# --- parts one by one --------------------------------------------------------------------------


def test_an_initial_design_comes_first_and_is_enough(tmp_path: Path) -> None:
    design = partial(RandomInitialDesign, n_configs=5, max_ratio=1.0)
    smac = facade(tmp_path, initial_design=design, config_selector=QUICKLY)
    run(smac)
    origins = [config.origin for config in smac.runhistory.get_configs()]
    assert (
        origins == ["Initial Design: Random"] * 5 + ["Proposer: model"] * 5
        or origins == ["Initial design"] * 5 + ["Proposer: model"] * 5
    )


@pytest.mark.filterwarnings("ignore:Please use `dict:DeprecationWarning")  # SMAC's meta
def test_additional_and_default_configurations(tmp_path: Path) -> None:
    more = space().sample_configuration(2)
    design = partial(GBQRFacade.get_initial_design, additional_configs=more)
    smac = facade(
        tmp_path, initial_design=design, use_default_config=True, config_selector=QUICKLY
    )
    assert [smac.ask().config for _ in range(3)] == [*more, space().get_default_configuration()]
    assert len(more) == 2  # SMAC appends the default to the list it is given


def test_a_random_design_interleaves(tmp_path: Path) -> None:
    smac = facade(tmp_path, random_design=ModulusRandomDesign(2), config_selector=QUICKLY)
    run(smac)
    random = [c.origin == "Proposer: random" for c in smac.runhistory.get_configs()]
    assert random == [True, False] * 5


def test_an_intensifier_is_used(tmp_path: Path) -> None:
    smac = facade(tmp_path, intensifier=partial(Intensifier, max_config_calls=1))
    assert smac.intensifier.meta["max_config_calls"] == 1


@pytest.mark.parametrize(
    "part",
    [
        {"model": partial(forest)},
        {"acquisition_function": EIPerSecond()},
        {"acquisition_function": QuantileBound()},
        {"runhistory_encoder": partial(CostAndSecondsEncoder)},
        {"runhistory_encoder": partial(RunHistoryEncoder)},
        {"acquisition_maximizer": FEW},
    ],
    ids=["model", "EIPerSecond", "QuantileBound", "seconds", "encoder", "maximizer"],
)
def test_parts_of_the_model_hand_over_to_smac(tmp_path: Path, part: dict[str, Any]) -> None:
    smac = facade(tmp_path, n_trials=8, **({"acquisition_maximizer": FEW} | part))
    trials = run(smac)
    assert len(trials) == 8
    assert type(smac.intensifier.config_selector) is ConfigSelector
    assert smac.intensifier.config_selector.meta["retrain_after"] == 1
    origins = [config.origin for config in smac.runhistory.get_configs()]
    assert "Initial Design: Sobol" in origins and "Proposer: design" not in origins
    meta = smac.scenario.meta
    assert meta["model"]["name"] == "SurrogateModel"
    seconds = meta["runhistory_encoder"]["name"] == "CostAndSecondsEncoder"
    assert seconds == (meta["acquisition_function"]["name"] == "EIPerSecond")


def test_another_proposer_or_smacs_selector(tmp_path: Path) -> None:
    thesis = partial(ProposerConfigSelector, proposer=gbqr_thesis())
    smac = facade(tmp_path / "a", config_selector=thesis)
    run(smac)
    origins = [config.origin for config in smac.runhistory.get_configs()]
    assert origins[:4] == ["Proposer: random"] * 3 + ["Proposer: model"]
    own = partial(ConfigSelector, retrain_after=4)
    smac = facade(tmp_path / "b", config_selector=own, acquisition_maximizer=FEW)
    assert len(run(smac)) == 10 and type(smac.intensifier.config_selector) is ConfigSelector


# --- what makes no sense -----------------------------------------------------------------------


def test_several_objectives_are_refused(tmp_path: Path) -> None:
    for given in ({"objectives": ["cost", "time"]}, {"multi_objective_algorithm": MEAN}):
        with pytest.raises(ValueError, match="minimises one objective"):
            facade(tmp_path, **given)
    with pytest.raises(ValueError, match="minimises one objective"):
        GBQRFacade.get_multi_objective_algorithm(scenario(tmp_path))


MEAN = partial(MeanAggregationStrategy)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            {"config_selector": QUICKLY, "acquisition_function": EI()},
            "acquisition_function would never be asked",
        ),
        (
            {"config_selector": QUICKLY, "model": partial(forest), "acquisition_maximizer": FEW},
            "acquisition_maximizer and model would never be asked",
        ),
        (
            {
                "acquisition_function": EIPerSecond(),
                "runhistory_encoder": partial(RunHistoryLogScaledEncoder),
            },
            "needs seconds, which RunHistoryLogScaledEncoder does not encode",
        ),
        (
            {"acquisition_function": EIPerSecond(), "runhistory_encoder": partial(CostEncoder)},
            "needs seconds, which CostEncoder does not encode",
        ),
        (
            {
                "acquisition_function": EI(),
                "runhistory_encoder": partial(CostAndSecondsEncoder),
            },
            "encodes seconds, which EI does not know",
        ),
    ],
)
def test_combinations_that_make_no_sense(
    tmp_path: Path, parts: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        facade(tmp_path, **parts)


def test_a_model_must_predict_seconds_for_them_to_count(tmp_path: Path) -> None:
    model = RandomModel(space(), seed=0)
    with pytest.raises(ValueError, match="RandomModel does not predict seconds"):
        facade(tmp_path, model=model, acquisition_function=EIPerSecond())


def test_the_selector_must_fit(tmp_path: Path) -> None:
    other = Scenario(ConfigurationSpace({"z": (0, 1)}), output_directory=tmp_path)
    with pytest.raises(ValueError, match="made for another search space"):
        facade(tmp_path, config_selector=ProposerConfigSelector(other, gbqr()))
    design = ProbabilityRandomDesign(0.5)
    selector = partial(ProposerConfigSelector, proposer=gbqr(), random_design=design)
    with pytest.raises(ValueError, match="random_design was given twice"):
        facade(tmp_path, config_selector=selector, random_design=ModulusRandomDesign(2))


# --- in a replay -------------------------------------------------------------------------------


def test_the_facade_is_replayed_with_its_seconds() -> None:
    method = optimizer(GBQRFacade, config_selector=partial(QUICKLY, per_second=True))
    assert method.name == "smac.GBQR"
    search = method.start(Problem(space(), seed=1, n_trials=9))
    assert isinstance(search, SMACSearch)
    for k in range(8):
        proposal = search.ask()
        assert proposal is not None
        slow = proposal.config["kind"] == "rbf"
        failed = k == 5
        status = TrialStatus.FAILED if failed else TrialStatus.COMPLETE
        cost = math.nan if failed else target(proposal.config)
        search.tell(proposal, Outcome(status, cost, 10.0 * k, 10.0 * k + (9.0 if slow else 1.0)))
    selector = search.facade.intensifier.config_selector
    assert isinstance(selector, ProposerConfigSelector)
    history = selector.history()
    rbf = history.vectors[:, selector.space.space.index_of["kind"]] == 1.0
    np.testing.assert_array_equal(history.seconds, np.where(rbf, 9.0, 1.0))
    assert history.status.tolist().count(Status.FAILED) == 1
    last = selector.explain(search.facade.runhistory.get_configs()[-1])
    assert last.seconds is not None and 0.5 < last.seconds < 20.0


def test_failures_of_a_replay_are_failed_rows() -> None:
    search = optimizer(GBQRFacade).start(Problem(space(), seed=1, n_trials=9))
    for k in range(3):
        proposal = search.ask()
        assert proposal is not None
        search.tell(proposal, Outcome(TrialStatus.FAILED, math.nan, k, k + 1.0))
    statuses = [value.status for value in search.facade.runhistory.values()]
    assert statuses == [StatusType.RUNNING] * 3  # told after the first success: SMAC's models
