"""Proposers of the core choose SMAC's configurations: what they are shown, and the search."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.smac import (
    GBQRFacade,
    MetaInitialDesign,
    ProposerConfigSelector,
)
from automl_plugins.adapters.smac.rows import Rows
from ConfigSpace import Categorical, Configuration, ConfigurationSpace, EqualsCondition, Float
from smac import (
    Callback,
    HyperbandFacade,
    HyperparameterOptimizationFacade,
    MultiFidelityFacade,
    RandomFacade,
    Scenario,
)
from smac.initial_design import DefaultInitialDesign, RandomInitialDesign
from smac.intensifier.hyperband import Hyperband
from smac.intensifier.successive_halving import SuccessiveHalving
from smac.random_design import ModulusRandomDesign, ProbabilityRandomDesign
from smac.runhistory import StatusType, TrialInfo, TrialValue
from smac_runs import (
    BUDGETS,
    HYPERBAND,
    INSTANCES,
    QUICK,
    QUICKLY,
    Watched,
    budget_target,
    facade,
    instance_target,
    origins,
    scenario,
    search,
    search_space,
    selector_of,
    target,
    trajectory,
)

from automl_plugins.meta import MetaDataset, TaskRecord
from automl_plugins.proposers.proposal import Proposal, SurrogateFailure
from automl_plugins.recipes import ei_per_second, gbqr
from automl_plugins.records.trial import Status
from automl_plugins.spaces.values import to_values
from automl_plugins.spaces.vector_space import VectorSpace

COMPLETE, PRUNED, FAILED, RUNNING = Status


def fragile(fails: Callable[[Configuration], bool]) -> Callable[..., float]:
    def function(config: Configuration, seed: int = 0) -> float:
        if fails(config):
            raise RuntimeError("on purpose")
        return target(config)

    return function


# --- what the proposer is shown ---------------------------------------------------------------


def test_every_configuration_is_a_row_and_k_counts_them(tmp_path: Path) -> None:
    proposer = Watched()
    smac = facade(tmp_path, proposer)
    costs = [trial["cost"] for trial in search(smac)]
    assert proposer.numbers == [len(history) for history, _ in proposer.shown] == list(range(12))
    np.testing.assert_array_equal(proposer.shown[-1][0].losses, costs[:11])
    assert (proposer.shown[-1][0].seconds > 0).all()


def test_asked_trials_are_running_rows_and_told_ones_are_known(tmp_path: Path) -> None:
    proposer = Watched()
    smac = facade(tmp_path, proposer)
    smac.tell(TrialInfo(search_space().sample_configuration(), seed=0), TrialValue(0.25))
    asked = [smac.ask() for _ in range(3)]
    assert proposer.numbers == [1, 2, 3]
    assert proposer.shown[0][0].losses.tolist() == [0.25]
    assert math.isnan(proposer.shown[0][0].seconds[0])
    assert proposer.shown[2][0].status.tolist() == [COMPLETE, RUNNING, RUNNING]
    smac.tell(asked[1], TrialValue(0.5, time=7.0), save=False)
    smac.ask()
    history = proposer.shown[-1][0]
    assert history.status.tolist() == [COMPLETE, COMPLETE, RUNNING, RUNNING]
    assert history.seconds[1] == 7.0 and history.losses[1] == 0.5


@pytest.mark.parametrize("kind", [HyperbandFacade, MultiFidelityFacade])
def test_given_away_but_unrecorded_ones_are_running_rows(tmp_path: Path, kind: Any) -> None:
    proposer, none = Watched(), partial(RandomInitialDesign, n_configs=0)
    given: dict[str, Any] = {"kind": kind, "function": budget_target, "initial_design": none}
    given["config_selector"] = partial(
        ProposerConfigSelector, proposer=proposer, random_design=ProbabilityRandomDesign(0.0)
    )
    facade(tmp_path, **given, **BUDGETS).ask()  # asks for its first bracket at once
    assert proposer.numbers == list(range(9))
    for k, (history, _) in enumerate(proposer.shown):
        assert history.status.tolist() == [RUNNING] * k
        assert len(np.unique(history.vectors, axis=0)) == k
        assert history.number.tolist() == list(range(k))


def test_failures_are_failures_and_took_their_time(tmp_path: Path) -> None:
    proposer = Watched()
    smac = facade(tmp_path, proposer, function=fragile(lambda c: c["x"] > 0.5), seed=5)
    search(smac)
    history = proposer.shown[-1][0]
    large = history.vectors[:, smac.scenario.configspace.index_of["x"]] > 0.5
    assert (history.status == FAILED).tolist() == large.tolist() and 0 < large.sum() < len(large)
    assert (history.seconds > 0).all() and np.isnan(history.losses[large]).all()


@pytest.mark.parametrize("crash_cost", [math.inf, 1e30])
def test_crash_costs_do_not_poison_the_model(tmp_path: Path, crash_cost: float) -> None:
    ran: list[Configuration] = []

    def fails(config: Configuration) -> bool:
        ran.append(config)
        return bool(config["kind"] == "linear" and len(ran) > 2)

    proposer = gbqr(n_startup=6, n_models=2, balance=None)
    function = fragile(fails)
    smac = facade(tmp_path, proposer, function=function, n_trials=14, crash_cost=crash_cost)
    search(smac)
    late = [v.status for v in list(smac.runhistory.values())[9:]]
    assert late.count(StatusType.SUCCESS) >= 4
    predicted = selector_of(smac).explain(smac.runhistory.get_configs()[-1]).value
    assert predicted is not None and predicted < 2.0


def test_seconds_of_a_timeout_reach_the_running_time_model(tmp_path: Path) -> None:
    """rbf takes 100 times as long, which its timeouts alone say."""
    smac = facade(tmp_path, ei_per_second(n_startup=8), n_trials=50)
    n = 0
    for _ in range(9):
        info = smac.ask()
        slow = info.config["kind"] == "rbf"
        value = TrialValue(
            math.inf if slow else target(info.config),
            time=0.0 if slow else 1.0,
            status=StatusType.TIMEOUT if slow else StatusType.SUCCESS,
            starttime=10.0 * n,
            endtime=10.0 * n + (100.0 if slow else 1.0),
        )
        smac.tell(info, value, save=False)
        n += slow
    assert n > 2
    last = selector_of(smac).explain(smac.runhistory.get_configs()[-1])
    assert last.origin == "model" and last.seconds is not None
    vectors = VectorSpace(search_space())
    both = vectors.sample(100, np.random.default_rng(0))
    is_slow = both[:, vectors.space.index_of["kind"]] == 1.0
    fitted = selector_of(smac).proposer._fitted._last[1]
    seconds = np.exp(fitted.log_seconds(vectors.features(both)))
    assert seconds[is_slow].min() > 5 * seconds[~is_slow].max()


@pytest.mark.parametrize("info", [None, [1], "text"])
def test_information_may_be_anything(tmp_path: Path, info: Any) -> None:
    smac, config = facade(tmp_path, Watched()), search_space().sample_configuration()
    for _ in range(2):
        value = TrialValue(0.25, time=math.inf, additional_info=info)
        smac.tell(TrialInfo(config, seed=0), value, save=False)
    history = selector_of(smac).history()
    assert history.losses.tolist() == [0.25] and math.isnan(history.seconds[0])


# --- several seeds, instances, budgets ---------------------------------------------------------


@pytest.mark.parametrize("several", ["seeds", "instances"])
def test_seeds_and_instances_are_averaged(tmp_path: Path, several: str) -> None:
    def noisy(config: Configuration, seed: int) -> float:
        return target(config) + 0.1 * (seed % 2)

    given: dict[str, Any] = {"function": noisy, "deterministic": False}
    if several == "instances":
        given = {"function": instance_target, **INSTANCES}
    smac = facade(tmp_path, n_trials=24, config_selector=QUICKLY, **given)
    search(smac)
    history, configs = selector_of(smac).history(), smac.runhistory.get_configs()
    assert len(history) == len(configs) < 24
    known = history.status == COMPLETE
    truth = [
        smac.runhistory.average_cost(configs[i])
        if several == "seeds"
        else 1.0 + target(configs[i])  # whoever met whichever
        for i in history.number[known].tolist()
    ]
    np.testing.assert_allclose(history.losses[known], truth, atol=1e-9)
    assert len({(key.seed, key.instance) for key in smac.runhistory}) > 1


@pytest.mark.parametrize("kind", [Hyperband, SuccessiveHalving])
def test_budgets(tmp_path: Path, kind: Any) -> None:
    intensifier = partial(kind, incumbent_selection="highest_budget")
    selector = partial(QUICKLY, min_trials=3)
    given = {**HYPERBAND, "intensifier": intensifier, "n_trials": 32}
    smac = facade(tmp_path, config_selector=selector, **given)
    search(smac)
    assert {key.budget for key in smac.runhistory} == {1.0, 3.0, 9.0}
    history = selector_of(smac).history()
    budgets = history.budget[history.status == COMPLETE]
    assert len(budgets) >= 3 and len(set(budgets.tolist())) == 1
    assert (history.budget[history.status == PRUNED] < budgets[0]).all()
    assert "Proposer: model" in origins(smac)


# --- what the search is -----------------------------------------------------------------------


def test_ask_and_tell_is_optimize_and_options_are_those_of_the_recipe(tmp_path: Path) -> None:
    found = search(facade(tmp_path / "a", config_selector=QUICKLY))
    assert search(facade(tmp_path / "b", gbqr(**QUICK))) == found
    smac = facade(tmp_path / "c", function=None, config_selector=QUICKLY)
    for trial in found:
        info = smac.ask()
        assert {name: trial[name] for name in info.config} == dict(info.config)
        smac.tell(info, TrialValue(target(info.config), time=0.1))
    with pytest.raises(ValueError, match=r"alpha must lie in \(0, 1\)"):
        GBQRFacade.get_config_selector(scenario(tmp_path), alpha=2.0)


def test_seconds_steer_it_if_told(tmp_path: Path) -> None:
    """The best kind is 1 000 times as expensive: per second the other one is preferred."""

    def expensive(per_second: bool) -> float:
        selector = partial(QUICKLY, per_second=per_second, balance=None)
        options: dict[str, Any] = {"config_selector": selector, "n_trials": 60}
        smac = facade(tmp_path / str(per_second), seed=4, **options)  # the middle one of 5
        spent = 0
        for _ in range(20):
            info = smac.ask()
            slow = info.config["kind"] == "rbf"
            spent += slow
            value = TrialValue(target(info.config), time=1000.0 if slow else 1.0)
            smac.tell(info, value, save=False)
        return spent / 20

    assert expensive(True) < 0.9 * expensive(False)


def test_the_initial_design_comes_first(tmp_path: Path) -> None:
    configs, proposer = search_space().sample_configuration(3), Watched()
    more = partial(RandomInitialDesign, n_configs=0, additional_configs=[*configs, configs[0]])
    smac = facade(tmp_path, proposer, initial_design=more)
    found = [smac.ask().config for _ in range(4)]
    assert found[:3] == configs and proposer.numbers == [3]
    assert selector_of(smac).explain(found[0]).origin == "enqueued"
    equal = search_space().sample_configuration()  # to the first, made elsewhere
    assert equal == found[0] and selector_of(smac).explain(equal).origin == "enqueued"
    told = search_space().get_default_configuration()
    smac.tell(TrialInfo(told, seed=0), TrialValue(1.0), save=False)
    assert selector_of(smac).explain(told).origin == "foreign"


def wider_space() -> ConfigurationSpace:
    """That of ``search_space`` with another range, scale and order of choices."""
    space = ConfigurationSpace(seed=1)
    kind, c = Categorical("kind", ["rbf", "linear"]), Float("C", (1e-5, 1e5))
    space.add(kind, c, Float("x", (-1.0, 2.0)), EqualsCondition(c, kind, "rbf"))
    return space


def test_configurations_of_another_space_keep_their_values(tmp_path: Path) -> None:
    other = Configuration(wider_space(), values={"kind": "rbf", "C": 0.5, "x": 0.25})
    more = partial(RandomInitialDesign, n_configs=0, additional_configs=[other])
    smac = facade(tmp_path, Watched(), initial_design=more)
    first = dict(smac.ask().config)
    assert first.pop("kind") == "rbf" and first == pytest.approx({"C": 0.5, "x": 0.25})
    linear = Configuration(wider_space(), values={"kind": "linear", "x": 0.75})
    smac.tell(TrialInfo(linear, seed=0), TrialValue(1.0), save=False)
    vectors = selector_of(smac).history().vectors
    known = {row["kind"]: row["x"] for row in to_values(search_space(), vectors)}
    assert known == pytest.approx({"rbf": 0.25, "linear": 0.75})


@pytest.mark.parametrize(
    ("space", "values", "message"),
    [
        (wider_space(), {"kind": "linear", "x": 1.5}, "because of x: x, Type: UniformFloat"),
        (ConfigurationSpace({"x": (0.0, 1.0)}), {"x": 0.5}, "because of kind: kind, Type"),
        (ConfigurationSpace({"z": (0.0, 1.0)}), {"z": 0.5}, "because of z, kind, x: kind"),
    ],
)
def test_what_is_no_configuration_of_the_space_is_refused_before_it_is_stored(
    space: ConfigurationSpace, values: dict[str, Any], message: str, tmp_path: Path
) -> None:
    smac = facade(tmp_path, Watched())
    with pytest.raises(ValueError, match=message):
        smac.tell(TrialInfo(Configuration(space, values=values), seed=0), TrialValue(1.0))
    assert not len(smac.runhistory)
    assert smac.ask().config.config_space == smac.scenario.configspace


@pytest.mark.parametrize(
    "given", [{"initial_design": partial(DefaultInitialDesign)}, {"use_default_config": True}]
)
def test_the_default_configuration_does_not_fill_the_search_space(
    tmp_path: Path, given: dict[str, Any]
) -> None:
    smac = facade(tmp_path, Watched(), **given)
    config = smac.ask().config
    assert config == smac.scenario.configspace.get_default_configuration()
    assert selector_of(smac).explain(config).origin == "foreign"


def test_what_earlier_tasks_suggested_is_told_apart_from_the_rest_of_the_design(
    tmp_path: Path,
) -> None:
    rows = [{"kind": "linear", "x": 0.1}, {"kind": "linear", "x": 0.2}]
    record = TaskRecord("t", rows, np.array([0.1, 0.2]), space=search_space())
    memory = MetaDataset.from_records([record])
    design = partial(MetaInitialDesign, memory=memory, n_configs=1)
    smac = facade(tmp_path, Watched(), initial_design=design)
    texts = [str(selector_of(smac).explain(smac.ask().config)) for _ in range(2)]
    assert "suggested by earlier tasks (initial design)" in texts[0]
    assert "fills a gap in the search space" in texts[1]


def test_other_facades_keep_their_initial_design_and_lose_their_randomness(
    tmp_path: Path,
) -> None:
    smac = facade(tmp_path, Watched(), kind=HyperparameterOptimizationFacade)
    search(smac)
    assert origins(smac) == ["Initial Design: Sobol"] * 3 + ["Proposer: model"] * 9
    proposer = Watched()
    search(facade(tmp_path / "random", proposer, kind=RandomFacade))
    assert len(proposer.shown) == 11  # after the default configuration


@pytest.mark.parametrize("by_facade", [True, False])
def test_a_random_design_is_obeyed(tmp_path: Path, by_facade: bool) -> None:
    proposer = Watched()
    given: dict[str, Any] = {"random_design": ModulusRandomDesign(modulus=3)}
    if not by_facade:
        given = {"config_selector": partial(ProposerConfigSelector, proposer=proposer, **given)}
    smac = facade(tmp_path, proposer if by_facade else None, **given)
    search(smac)
    assert proposer.numbers == [1, 2, 4, 5, 7, 8, 10, 11]
    assert origins(smac)[0] == origins(smac)[3] == "Proposer: random"


@pytest.mark.parametrize("given", [None, ProbabilityRandomDesign(0.0)])
def test_with_budgets_every_fifth_configuration_is_random(tmp_path: Path, given: Any) -> None:
    selectors = {}
    for name in ("plain", "budgets"):
        ends = (1.0, 9.0) if name == "budgets" else (None, None)
        scenario = Scenario(
            search_space(),
            seed=1,
            min_budget=ends[0],
            max_budget=ends[1],
            output_directory=tmp_path / name,
        )
        selector = ProposerConfigSelector(scenario, Watched(), random_design=given)
        facade = GBQRFacade(scenario, config_selector=selector, logging_level=False)
        asked = [facade.ask().config for _ in range(30)]
        selectors[name] = [selector.explain(config).origin for config in asked].count("random")
    assert selectors["plain"] == 0
    assert 3 <= selectors["budgets"] <= 10 if given is None else selectors["budgets"] == 0


def test_equal_configurations_are_one(tmp_path: Path) -> None:
    """A proposer that repeats itself gets a new configuration, and there is one id for each."""
    vector = search_space().sample_configuration().get_array()
    smac = facade(tmp_path, Watched(lambda k: vector))
    search(smac)
    assert len(smac.runhistory.get_configs()) == 12
    keys = VectorSpace(search_space()).keys(Rows(search_space()).vectors(smac.runhistory))
    assert len(np.unique(keys)) == 12


def test_small_numbers_that_are_equal_for_configspace_are_tried_once(tmp_path: Path) -> None:
    """It rounds to 13 places, which leaves ten values of this range."""
    space = ConfigurationSpace(seed=0)
    space.add(Float("x", (1e-13, 1e-12), log=True, default=1e-12))
    smac = facade(tmp_path, Watched(), space=space)
    found = [config["x"] for config in islice(selector_of(smac), 30)]
    assert sorted(found) == pytest.approx([n * 1e-13 for n in range(1, 11)])


def test_an_exhausted_space_ends_the_search(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tiny = ConfigurationSpace({"x": (1, 3), "kind": ["linear", "poly"]}, seed=0)
    smac = facade(tmp_path, gbqr(), space=tiny, n_trials=30)
    assert smac.optimize() in smac.runhistory.get_configs()
    assert len(smac.runhistory) == len({tuple(t.values()) for t in trajectory(smac)}) == 6
    assert "All configurations were proposed: the search ends." in caplog.messages
    with pytest.raises(StopIteration):
        smac.ask()
    smac = facade(tmp_path / "b", gbqr(), space=ConfigurationSpace({"x": (1, 3)}), **HYPERBAND)
    with pytest.raises(StopIteration):
        smac.ask()
    assert "3 of them were never evaluated: the intensifier starts a bracket only" in caplog.text


class Broken(Watched):
    def propose(self, *arguments: Any, **options: Any) -> Proposal:
        proposal = super().propose(*arguments, **options)
        if len(self.shown) % 2:
            raise SurrogateFailure("The model is broken.")
        return proposal


def test_a_broken_model_is_replaced_and_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    smac = facade(tmp_path, Broken())
    smac.optimize()
    assert len(smac.runhistory.get_configs()) == 12
    said = [r for r in caplog.records if "The model is broken." in r.getMessage()]
    assert len(said) == 1 and said[0].levelno == logging.WARNING
    assert said[0].name.startswith("smac")


def test_without_a_model_the_space_is_searched_to_its_end(tmp_path: Path) -> None:
    class Failing(Watched):
        def propose(self, *arguments: Any, **options: Any) -> Proposal:
            raise SurrogateFailure("The model is broken.")

    small = ConfigurationSpace({"x": (1, 6), "kind": ["linear", "poly"]}, seed=0)
    smac = facade(tmp_path, Failing(), space=small, n_trials=30)
    smac.optimize()
    assert len(smac.runhistory) == len({tuple(t.values()) for t in trajectory(smac)}) == 12


def test_a_mistake_in_the_code_is_no_failure_of_a_surrogate(tmp_path: Path) -> None:
    def mistaken(k: int) -> Any:
        raise KeyError("a mistake")

    with pytest.raises(KeyError, match="a mistake"):
        facade(tmp_path, Watched(mistaken)).ask()


def test_callbacks_are_told_of_every_configuration(tmp_path: Path) -> None:
    class Counting(Callback):
        def __init__(self) -> None:
            super().__init__()
            self.begun = 0
            self.ended: list[Configuration] = []

        def on_next_configurations_start(self, config_selector: Any) -> None:
            self.begun += 1

        def on_next_configurations_end(self, config_selector: Any, config: Any) -> None:
            self.ended.append(config)

    counting = Counting()
    smac = facade(tmp_path, Watched(), n_trials=5, callbacks=[counting])
    search(smac)
    assert counting.begun == 5 and counting.ended == smac.runhistory.get_configs()
