"""Proposers of the core choose SMAC's configurations; two of them as facades."""

from __future__ import annotations

import json
import logging
import math
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.smac import (
    AutoFacade,
    CostAndSecondsEncoder,
    CostEncoder,
    EIPerSecond,
    GBQRFacade,
    MetaInitialDesign,
    ProposerConfigSelector,
    QuantileBound,
    SurrogateModel,
    member_trust,
    optimizer,
)
from automl_plugins.adapters.smac.replaying import SMACSearch
from automl_plugins.adapters.smac.trials import Rows
from ConfigSpace import Categorical, Configuration, ConfigurationSpace, EqualsCondition, Float
from smac import (
    Callback,
    HyperbandFacade,
    HyperparameterOptimizationFacade,
    MultiFidelityFacade,
    RandomFacade,
    Scenario,
)
from smac.acquisition.function import EI, EIPS
from smac.facade.abstract_facade import AbstractFacade
from smac.initial_design import DefaultInitialDesign, RandomInitialDesign
from smac.intensifier.hyperband import Hyperband
from smac.intensifier.intensifier import Intensifier
from smac.intensifier.successive_halving import SuccessiveHalving
from smac.main.config_selector import ConfigSelector
from smac.model.random_model import RandomModel
from smac.multi_objective import MeanAggregationStrategy
from smac.random_design import ModulusRandomDesign, ProbabilityRandomDesign
from smac.runhistory import StatusType, TrialInfo, TrialValue
from smac.runhistory.encoder import (
    RunHistoryEIPSEncoder,
    RunHistoryEncoder,
    RunHistoryLogScaledEncoder,
)
from smac_runs import (
    BUDGETS,
    INSTANCES,
    QUICK,
    StopAfter,
    budget_target,
    facade,
    few_candidates,
    instance_target,
    origins,
    scenario,
    search,
    search_space,
    selector_of,
    target,
    trajectory,
)

from automl_plugins.frameworks import Outcome, Problem, TrialStatus
from automl_plugins.meta import MetaDataset, TaskRecord
from automl_plugins.proposers.proposal import Proposal, SurrogateFailure
from automl_plugins.recipes import auto, ei_per_second, gbqr, gbqr_thesis
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status
from automl_plugins.spaces.values import to_values
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams
from automl_plugins.surrogates import RandomForest

COMPLETE, PRUNED, FAILED, RUNNING = Status
QUICKLY = partial(GBQRFacade.get_config_selector, **QUICK)
HYPERBAND: dict[str, Any] = {
    **BUDGETS,
    "function": budget_target,
    "intensifier": partial(Hyperband),
}


class Watched:
    """Proposes at random, and remembers what it was shown."""

    def __init__(self, answer: Callable[[int], Any] | None = None) -> None:
        self.shown: list[tuple[History, int]] = []
        self.answer = answer

    def propose(
        self, space: VectorSpace, history: History, streams: Streams, k: int, fixed: Any = None
    ) -> Proposal:
        self.shown.append((history, k))
        if self.answer is not None and (vector := self.answer(k)) is not None:
            return Proposal(np.array(vector, dtype=np.float64), "model")
        return Proposal(space.sample(1, streams.generator("test", k))[0], "model", loss=1.0)

    @property
    def numbers(self) -> list[int]:
        return [k for _, k in self.shown]


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


def test_a_run_that_is_continued_continues_as_if_it_had_never_stopped(tmp_path: Path) -> None:
    def made(folder: str, **given: Any) -> AbstractFacade:
        return facade(tmp_path / folder, gbqr(**QUICK), **given)

    whole = search(made("whole"))
    first = made("parts", callbacks=[StopAfter(7)])
    assert search(first) == whole[:7]
    second = made("parts", overwrite=False)
    assert len(second.runhistory) == 7 and search(second) == whole
    # Why the first ones were proposed is still known.
    early = second.runhistory.get_configs()[5]
    assert selector_of(second).explain(early) == selector_of(first).explain(early)


@pytest.mark.parametrize("again", ["same", "new"])
@pytest.mark.parametrize("given", [{}, HYPERBAND])
def test_interrupted_trials_come_first(tmp_path: Path, given: Any, again: str) -> None:
    """SMAC would leave it running: known to the model for ever, and awaited by its bracket."""
    seen: list[tuple[Configuration, float]] = []

    def interrupted(config: Configuration, seed: int = 0, budget: float = 1.0) -> float:
        seen.append((config, budget))
        if len(seen) == 5:
            raise KeyboardInterrupt
        return budget_target(config, seed, budget)

    given = {**given, "function": interrupted}
    smac = facade(tmp_path, gbqr(**QUICK), **given)
    with pytest.raises(KeyboardInterrupt):
        search(smac)
    if again == "new":
        smac = facade(tmp_path, gbqr(**QUICK), overwrite=False, **given)
    assert smac.runhistory.running == 1
    search(smac)
    n = smac.scenario.n_trials
    assert (smac.runhistory.finished, smac.runhistory.running, len(seen)) == (n, 0, n + 1)
    assert seen[5] == seen[4]


def test_each_interrupted_trial_is_evaluated_once_more(tmp_path: Path) -> None:
    """Of two, the first is interrupted again before the second has its turn."""
    seen = []

    def interrupted(config: Configuration, seed: int = 0) -> float:
        seen.append(config)
        if len(seen) == 1:
            raise KeyboardInterrupt
        return target(config)

    smac = facade(tmp_path, Watched(), function=interrupted, n_trials=5)
    first, second = smac.optimizer.ask().config, smac.optimizer.ask().config
    with pytest.raises(KeyboardInterrupt):
        search(smac)
    search(smac)
    assert seen[:3] == [first, first, second] and len(seen) == 1 + len(smac.runhistory) == 6


def test_trials_that_were_asked_for_are_left_to_whoever_asked(tmp_path: Path) -> None:
    seen = []

    def counted(config: Configuration, seed: int = 0) -> float:
        seen.append(config)
        return target(config)

    smac = facade(tmp_path, Watched(), function=counted, n_trials=4)
    asked = smac.ask()
    search(smac)
    assert asked.config not in seen and smac.runhistory.get_running_trials() == [asked]


def test_interrupted_trials_with_cutoffs_stay(tmp_path: Path) -> None:
    """SMAC does not store their cutoffs, without which its runner raises."""

    def function(config: Configuration, seed: int, cutoff: float) -> float:
        return target(config)

    smac = facade(tmp_path, Watched(), function=function, n_trials=3, runtime_cutoff=9)
    smac.optimizer.ask()
    search(smac)
    assert (smac.runhistory.finished, smac.runhistory.running) == (2, 1)


def test_hyperband_is_continued_within_a_bracket(tmp_path: Path) -> None:
    """Four of its nine configurations are known to its tracker only."""

    def made(folder: str, **given: Any) -> AbstractFacade:
        return facade(tmp_path / folder, gbqr(**QUICK), **HYPERBAND, **given)

    whole = search(made("whole"))
    assert search(made("parts", callbacks=[StopAfter(5)])) == whole[:5]
    assert search(made("parts", overwrite=False)) == whole


def test_a_run_is_not_continued_by_another_proposer(tmp_path: Path) -> None:
    first = facade(tmp_path, gbqr(), n_trials=5)
    second = facade(tmp_path, gbqr(alpha=0.2), n_trials=5)
    assert first.scenario.meta != second.scenario.meta
    meta = selector_of(first).meta
    assert json.loads(json.dumps(meta)) == meta
    assert "0x" not in json.dumps(meta)  # no address, which is another one in the next process
    assert pickle.loads(pickle.dumps(selector_of(first))).meta == meta


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


def test_the_default_configuration_does_not_fill_the_search_space(tmp_path: Path) -> None:
    smac = facade(tmp_path, Watched(), initial_design=partial(DefaultInitialDesign))
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
    assert "fills the search space" in texts[1]


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


def test_a_mistake_in_the_code_is_no_failure_of_a_surrogate(tmp_path: Path) -> None:
    def mistaken(k: int) -> Any:
        raise KeyError("a mistake")

    with pytest.raises(KeyError, match="a mistake"):
        facade(tmp_path, Watched(mistaken)).ask()


def test_proposals_are_explained_on_the_trials(tmp_path: Path) -> None:
    smac = facade(tmp_path, gbqr(n_startup=3, n_models=1), n_trials=6)
    search(smac)
    for config, value in zip(smac.runhistory.get_configs(), smac.runhistory.values(), strict=True):
        proposal = selector_of(smac).explain(config)
        assert value.additional_info["proposal"]["origin"] == proposal.origin
        assert value.additional_info["proposal"].get("loss") == proposal.value
    assert json.loads(Path(smac.scenario.output_directory / "runhistory.json").read_text())


def test_members_of_a_committee_and_how_much_they_were_trusted(tmp_path: Path) -> None:
    smac = facade(tmp_path, auto(n_startup=4), n_trials=8)
    search(smac)
    last = selector_of(smac).explain(smac.runhistory.get_configs()[-1])
    assert last.trust is not None and last.member in last.trust
    for source in (smac, smac.runhistory):
        told = member_trust(source)
        assert told[8] == last.trust and 1 not in told


def test_trials_may_share_one_dictionary_of_information(tmp_path: Path) -> None:
    smac, shared = facade(tmp_path, Watched()), {"host": "node7"}
    for _ in range(3):
        info = smac.ask()
        smac.tell(info, TrialValue(target(info.config), additional_info=shared), save=False)
    assert shared == {"host": "node7"}
    for value in smac.runhistory.values():
        assert value.additional_info == {
            "host": "node7",
            "proposal": {"origin": "model", "loss": 1.0},
        }


@pytest.mark.parametrize("note", ["mine", {"mine": 1}, {"origin": "mine", "vector": 1}])
def test_a_target_may_have_information_of_its_own(tmp_path: Path, note: Any) -> None:
    """Trials of the initial design were not proposed, so a continued run looks at their notes."""

    def informed(config: Configuration, seed: int = 0) -> tuple[float, dict[str, Any]]:
        return target(config) + 0.1 * (seed % 2), {"proposal": note, "automl_plugins": "0.1"}

    def made(**given: Any) -> AbstractFacade:
        design = partial(RandomInitialDesign, n_configs=3, max_ratio=1.0)
        given |= {"function": informed, "initial_design": design, "deterministic": False}
        return facade(tmp_path, Watched(), **given)

    search(made(callbacks=[StopAfter(3)]))
    second = made(overwrite=False)
    assert len(search(second)) == 12
    assert selector_of(second).explain(second.runhistory.get_configs()[0]).value is None
    for value in second.runhistory.values():
        assert value.additional_info == {"proposal": note, "automl_plugins": "0.1"}


def test_an_interrupted_trial_was_proposed_by_this_package(tmp_path: Path) -> None:
    costs = [1.0]

    def interrupted(config: Configuration, seed: int = 0) -> float:
        if costs:
            return costs.pop()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(facade(tmp_path, Watched(), function=interrupted))
    smac = facade(tmp_path, Watched(), function=interrupted, overwrite=False)
    (running,) = smac.runhistory.get_running_configs()
    assert str(selector_of(smac).explain(running)) == "Trial 2 was chosen by the surrogate model."


def test_a_selector_forgets_the_facade_before(tmp_path: Path) -> None:
    proposer = Watched()
    never = ProbabilityRandomDesign(0.0)
    selector = ProposerConfigSelector(scenario(tmp_path, **BUDGETS), proposer, random_design=never)
    for _ in range(2):
        proposer.shown.clear()
        facade(tmp_path, config_selector=selector, **HYPERBAND).ask()
        assert proposer.numbers == list(range(9))


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


PARALLEL = """
import os, signal, sys
from pathlib import Path


class Panic(BaseException):
    '''As libraries in Rust raise it.'''


def train(config, seed=0):
    if config["does"] == "raises":
        raise RuntimeError("on purpose")
    if config["does"] == "panics":
        raise Panic
    if config["does"] == "kills":
        os.kill(os.getpid(), signal.SIGKILL)
    return (config["x"] - 0.3) ** 2 + config["y"]


if __name__ == "__main__":  # the workers need none of this
    from automl_plugins.adapters import smac as adapter
    from ConfigSpace import ConfigurationSpace, Integer
    from smac import Scenario

    space = {"x": (0.0, 1.0), "y": (0.0, 1.0), "does": ["works", "raises", "panics", "kills"]}
    space = ConfigurationSpace(space, seed=0)
    # A configuration with such a number is not equal to a pickled copy of itself.
    space.add(Integer("n", (1, 1000), log=True))
    scenario = Scenario(
        space, n_trials=14, n_workers=2, deterministic=True,
        output_directory=Path(sys.argv[2]),
    )
    kind = getattr(adapter, sys.argv[1])
    smac = kind(scenario, train, logging_level=False, overwrite=True)
    best = smac.optimize()
    assert best["does"] == "works" and best["y"] < 0.5
    for key, value in smac.runhistory.items():
        config = smac.runhistory.get_config(key.config_id)
        print(config["does"], value.status.name, value.time >= 0, value.endtime >= value.starttime)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", [GBQRFacade, AutoFacade])
def test_two_workers_of_dask(kind: type[AbstractFacade], tmp_path: Path) -> None:
    """A target that raises or kills its worker has failed; nothing is lost, and the end is one."""
    script = tmp_path / "parallel.py"
    script.write_text(PARALLEL, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script), kind.__name__, str(tmp_path / "out")],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0",  # once killed, not tried again
        },
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    trials = [line.split() for line in done.stdout.splitlines()]
    ends = {"works": "SUCCESS"} | dict.fromkeys(["raises", "panics", "kills"], "CRASHED")
    assert len(trials) == 14 and {does for does, *_ in trials} == ends.keys()
    assert all(told == [ends[does], "True", "True"] for does, *told in trials)
    assert "__del__" not in done.stderr  # closed while Dask is there, not after a minute


# --- parts of the facade -----------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Please use `dict:DeprecationWarning")  # SMAC's meta
def test_additional_and_default_configurations(tmp_path: Path) -> None:
    more, default = search_space().sample_configuration(2), search_space()
    design = partial(GBQRFacade.get_initial_design, additional_configs=more)
    given: dict[str, Any] = {"initial_design": design, "config_selector": QUICKLY}
    smac = facade(tmp_path, use_default_config=True, **given)
    found = [smac.ask().config for _ in range(3)]
    assert found == [*more, default.get_default_configuration()]
    assert len(more) == 2  # SMAC appends the default to the list it is given


def test_an_intensifier_is_used(tmp_path: Path) -> None:
    smac = facade(tmp_path, intensifier=partial(Intensifier, max_config_calls=1))
    assert smac.intensifier.meta["max_config_calls"] == 1


@partial
def forest(run: Scenario) -> SurrogateModel:
    return SurrogateModel(run.configspace, RandomForest(), seed=run.seed)


@pytest.mark.parametrize(
    "part",
    [
        {"model": forest},
        {"acquisition_function": EIPerSecond()},
        {"acquisition_function": QuantileBound()},
        {"runhistory_encoder": partial(CostAndSecondsEncoder)},
        {"runhistory_encoder": partial(RunHistoryEncoder)},
        {"acquisition_function": EIPS(), "runhistory_encoder": partial(RunHistoryEIPSEncoder)},
        {"acquisition_maximizer": few_candidates},
    ],
    ids=["model", "EIPerSecond", "QuantileBound", "seconds", "encoder", "EIPS", "maximizer"],
)
def test_parts_of_the_model_hand_over_to_smac(tmp_path: Path, part: dict[str, Any]) -> None:
    smac = facade(tmp_path, n_trials=8, **({"acquisition_maximizer": few_candidates} | part))
    assert len(search(smac)) == 8
    assert type(smac.intensifier.config_selector) is ConfigSelector
    assert smac.intensifier.config_selector.meta["retrain_after"] == 1
    assert "Initial Design: Sobol" in origins(smac) and "Proposer: design" not in origins(smac)
    meta = smac.scenario.meta
    assert meta["model"]["name"] == "SurrogateModel"
    seconds = meta["runhistory_encoder"]["name"] == "CostAndSecondsEncoder"
    assert seconds == (meta["acquisition_function"]["name"] == "EIPerSecond")


def test_another_proposer_or_smacs_selector(tmp_path: Path) -> None:
    smac = facade(tmp_path / "a", gbqr_thesis(), n_trials=5)
    search(smac)
    assert origins(smac)[:4] == ["Proposer: random"] * 3 + ["Proposer: model"]
    own = partial(ConfigSelector, retrain_after=4)
    smac = facade(tmp_path / "b", config_selector=own, acquisition_maximizer=few_candidates)
    assert len(search(smac)) == 12 and type(smac.intensifier.config_selector) is ConfigSelector


# --- the committee as a facade ------------------------------------------------------------------


EARLIER = [
    TaskRecord(
        name,
        [{"kind": "linear", "x": x / 9} for x in range(10)],
        np.array([(x / 9 - best) ** 2 for x in range(10)]),
        space=search_space(),
    )
    for name, best in (("iris", 0.9), ("wine", 0.4), ("digits", 0.3))
]


def test_the_committee_needs_no_argument(tmp_path: Path) -> None:
    smac = facade(tmp_path, kind=AutoFacade, n_trials=9)
    assert min(run["cost"] for run in search(smac)) < 0.1
    assert sum(member_trust(smac)[9].values()) == pytest.approx(1.0)
    assert smac.scenario.meta["facade"] == {"name": "AutoFacade"}


def test_a_memory_suggests_first_and_leaves_the_task_itself_out(tmp_path: Path) -> None:
    given: dict[str, Any] = {"kind": AutoFacade, "memory": EARLIER, "n_trials": 7}
    smac = facade(tmp_path, name="iris", **given)
    found = search(smac)
    assert found[0]["kind"] == "linear" and found[0]["x"] < 0.5
    said = [selector_of(smac).explain(config) for config in smac.runhistory.get_configs()]
    assert said[0].origin == "suggested" and said[-1].shares is not None
    assert "iris" not in said[-1].shares
    # whatever SMAC calls a scenario without a name, it is not another run
    run = scenario(tmp_path / "unnamed", n_trials=2)
    names = [
        AutoFacade(run, target, memory=EARLIER, logging_level=False).scenario.name
        for _ in range(2)
    ]
    assert names[0] == names[1]


def test_random_configurations_of_a_budgeted_search_come_after_the_suggestions(
    tmp_path: Path,
) -> None:
    for seed in range(4):
        given: dict[str, Any] = {"memory": EARLIER, "n_suggested": 4, **BUDGETS}
        smac = facade(tmp_path / str(seed), kind=AutoFacade, seed=seed, **given)
        asked = [smac.ask().config for _ in range(12)]
        found = [selector_of(smac).explain(c).origin for c in dict.fromkeys(asked)]
        assert found[:4] == ["suggested"] * 4 and "random" not in found[:4]


def test_a_configuration_of_no_run_is_not_explained(tmp_path: Path) -> None:
    smac = facade(tmp_path, kind=AutoFacade, n_trials=3)
    search(smac)
    with pytest.raises(ValueError, match="The configuration is not among the 3 of this run"):
        selector_of(smac).explain(search_space().sample_configuration(9)[8])


def test_a_run_whose_trials_are_in_the_memory_by_now_is_continued(tmp_path: Path) -> None:
    def made(memory: list[TaskRecord], **given: Any) -> AbstractFacade:
        return facade(tmp_path, kind=AutoFacade, name="own", memory=memory, n_trials=9, **given)

    begun = search(made(EARLIER, callbacks=[StopAfter(4)]))
    own = TaskRecord("own", begun, np.arange(4.0), space=search_space())
    second = made([*EARLIER, own], overwrite=False)
    assert search(second)[:4] == begun and len(second.runhistory) == 9
    described = selector_of(second).meta
    assert described == selector_of(made(EARLIER)).meta
    assert described != selector_of(made(EARLIER[1:])).meta


def test_seconds_and_further_arguments_of_the_committee(tmp_path: Path) -> None:
    smac = facade(tmp_path, kind=AutoFacade, per_second=True, n_trials=8)
    search(smac)
    assert selector_of(smac).explain(smac.runhistory.get_configs()[-1]).seconds is not None
    made = partial(AutoFacade.get_config_selector, memory=EARLIER, task="wine", n_suggested=1)
    smac = facade(tmp_path / "b", kind=AutoFacade, config_selector=made, n_trials=3)
    search(smac)
    assert origins(smac)[0] == "Proposer: design"
    assert member_trust(smac).keys() == {2, 3}


def test_arguments_of_the_selector_may_be_given_to_the_facade(tmp_path: Path) -> None:
    given: dict[str, Any] = {"task": "wine", "n_suggested": 1, "n_startup": 3, "min_trials": 2}
    run, quiet = scenario(tmp_path / "a", n_trials=5), {"logging_level": False}
    smac = AutoFacade(run, target, memory=EARLIER, **given, **quiet)
    smac.optimize()
    selector = AutoFacade.get_config_selector(run, memory=EARLIER, **given)
    assert selector_of(smac).meta == selector.meta
    last = smac.runhistory.get_configs()[-1]
    assert smac.explain(last) == selector_of(smac).explain(last)
    own = GBQRFacade(scenario(tmp_path / "b"), target, alpha=0.2, doubt=0.0, **quiet)
    selector = GBQRFacade.get_config_selector(own.scenario, alpha=0.2, doubt=0.0)
    assert selector_of(own).meta == selector.meta
    other = GBQRFacade(scenario(tmp_path / "c"), target, acquisition_function=EI(), **quiet)
    with pytest.raises(TypeError, match="ConfigSelector chooses, which explains nothing"):
        other.explain(last)
    with pytest.raises(TypeError, match=r"\(seed: an argument of Scenario\); it takes model, .*X"):
        AutoFacade(run, target, seed=1)


def test_smacs_own_selector_has_one_model(tmp_path: Path) -> None:
    given: dict[str, Any] = {"acquisition_function": EI()}
    given |= {"acquisition_maximizer": few_candidates}
    smac = facade(tmp_path, kind=AutoFacade, n_trials=4, **given)
    assert type(smac.intensifier.config_selector) is ConfigSelector
    assert smac.scenario.meta["model"]["name"] == "SurrogateModel"


@pytest.mark.parametrize(
    ("parts", "error", "message"),
    [
        ({"memory": 3}, TypeError, "memory must be a MetaDataset"),
        ({"memory": [], "name": "a"}, ValueError, "no sources to learn from"),
        (
            {"memory": EARLIER, "acquisition_function": EI()},
            *(ValueError, "memory would not be used: acquisition_function given here replaces"),
        ),
        (
            {"n_suggested": 3, "model": forest},
            *(ValueError, r"get_config_selector\(scenario, n_suggested=\.\.\.\)"),
        ),
        (
            {"memroy": EARLIER},
            TypeError,
            r"takes no argument memroy; it takes .*Did you mean 'memory'\?",
        ),
        ({"cost": "x"}, TypeError, r"cost: SMAC measures the seconds: per_second=True"),
        ({"alpha": 0.2}, TypeError, "AutoFacade takes no argument alpha"),
        (
            {"memory": EARLIER, "per_second": True, "config_selector": QUICKLY},
            *(ValueError, "memory and per_second would not be used"),
        ),
        ({"objectives": ["a", "b"]}, ValueError, "AutoFacade takes one objective"),
    ],
)
def test_what_the_committee_refuses(
    tmp_path: Path, parts: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        facade(tmp_path, kind=AutoFacade, **parts)


# --- in a replay -------------------------------------------------------------------------------


def test_the_facade_is_replayed_with_its_seconds() -> None:
    method = optimizer(GBQRFacade, config_selector=partial(QUICKLY, per_second=True))
    assert method.name == "smac.GBQR"
    running = method.start(Problem(search_space(), seed=1, n_trials=9))
    assert isinstance(running, SMACSearch)
    for k in range(8):
        proposal = running.ask()
        assert proposal is not None
        status = TrialStatus.FAILED if k == 5 else TrialStatus.COMPLETE
        cost = math.nan if k == 5 else target(proposal.config)
        end = 10.0 * k + (9.0 if proposal.config["kind"] == "rbf" else 1.0)
        running.tell(proposal, Outcome(status, cost, 10.0 * k, end))
    selector = selector_of(running.facade)
    history = selector.history()
    rbf = history.vectors[:, selector.space.space.index_of["kind"]] == 1.0
    np.testing.assert_array_equal(history.seconds, np.where(rbf, 9.0, 1.0))
    assert history.status.tolist().count(FAILED) == 1
    last = selector.explain(running.facade.runhistory.get_configs()[-1])
    assert last.seconds is not None and 0.5 < last.seconds < 20.0


# --- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        *(
            ({"proposer": proposer}, TypeError, r"recipes\.gbqr\(\)")
            for proposer in (gbqr, "gbqr", None, GBQRFacade)
        ),
        ({"min_trials": 0}, ValueError, "min_trials must be an integer >= 1, or None, got 0"),
        ({"random_design": 0.5}, TypeError, "random_design must be one of SMAC's"),
        (
            {"objectives": ["a", "b"]},
            ValueError,
            "ProposerConfigSelector takes one objective, the scenario has 2",
        ),
    ],
)
def test_selectors_check_their_arguments(
    tmp_path: Path, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    run = scenario(tmp_path, objectives=options.pop("objectives", ["cost"]))
    with pytest.raises(error, match=message):
        ProposerConfigSelector(run, **({"proposer": gbqr()} | options))


def other_selector(run: Scenario) -> ProposerConfigSelector:
    space = ConfigurationSpace({"z": (0, 1)})
    return ProposerConfigSelector(Scenario(space, output_directory=run.output_directory), gbqr())


SECONDS = partial(CostAndSecondsEncoder)
DESIGNED = partial(
    ProposerConfigSelector, proposer=gbqr(), random_design=ProbabilityRandomDesign(0.5)
)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"objectives": ["cost", "time"]}, "takes one objective"),
        (
            {"multi_objective_algorithm": partial(MeanAggregationStrategy)},
            "would not be used: GBQRFacade takes one objective. Leave it out",
        ),
        (
            {"config_selector": QUICKLY, "acquisition_function": EI()},
            "acquisition_function would not be used",
        ),
        (
            {"config_selector": QUICKLY, "model": forest, "acquisition_maximizer": few_candidates},
            "acquisition_maximizer and model would not be used",
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
            {"acquisition_function": EI(), "runhistory_encoder": SECONDS},
            "encodes seconds, which EI does not use",
        ),
        (
            {"runhistory_encoder": partial(RunHistoryEIPSEncoder)},
            "only SMAC's EIPS reads them",
        ),
        (
            {"acquisition_function": EIPerSecond(), "model": RandomModel(search_space())},
            "RandomModel does not predict seconds",
        ),
        ({"config_selector": partial(other_selector)}, "made for another search space"),
        (
            {"config_selector": DESIGNED, "random_design": ModulusRandomDesign(2)},
            "random_design was given twice",
        ),
    ],
)
def test_combinations_that_make_no_sense(
    tmp_path: Path, parts: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        facade(tmp_path, **parts)


def test_what_is_no_random_design_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="random_design must be one of SMAC's, got 'x'"):
        facade(tmp_path, Watched(), random_design="x")
