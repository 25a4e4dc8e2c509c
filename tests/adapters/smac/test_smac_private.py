"""Fails loudly when SMAC changes what ``_private`` relies on."""

from __future__ import annotations

import inspect
import logging
import pickle
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import smac_runs as runs
from automl_plugins.adapters.smac import _private
from ConfigSpace import Configuration, ConfigurationSpace, Float, Integer, Normal
from distributed import Client
from smac import Callback, HyperbandFacade, RandomFacade, RunHistory, Scenario
from smac.facade.abstract_facade import AbstractFacade
from smac.initial_design import DefaultInitialDesign
from smac.intensifier import abstract_intensifier
from smac.intensifier.hyperband import Hyperband
from smac.main.config_selector import ConfigSelector
from smac.main.exceptions import ConfigurationSpaceExhaustedException
from smac.main.smbo import SMBO
from smac.model.random_model import RandomModel
from smac.runhistory import StatusType, TrialInfo, TrialValue
from smac.runner.dask_runner import DaskParallelRunner
from smac.runner.target_function_runner import TargetFunctionRunner


def scenario(folder: Path, **arguments: Any) -> Scenario:
    space = ConfigurationSpace({"a": ["x", "y"]}, seed=0)
    return Scenario(space, deterministic=True, n_trials=50, output_directory=folder, **arguments)


def facade(run: Scenario, kind: Any = RandomFacade, target: Any = None, **parts: Any) -> Any:
    with _private.quiet():
        return kind(run, target, logging_level=False, overwrite=True, **parts)


def test_ask_raises_when_everything_was_tried(tmp_path: Path) -> None:
    smac = facade(scenario(tmp_path))
    for cost in (1.0, 2.0):
        smac.tell(smac.ask(), TrialValue(cost=cost), save=False)
    for error in (ConfigurationSpaceExhaustedException, StopIteration):
        with pytest.raises(error):
            smac.ask()


def test_facades_know_their_budgets_and_their_name(tmp_path: Path) -> None:
    plain = facade(scenario(tmp_path / "a"))
    several = facade(scenario(tmp_path / "b", min_budget=1, max_budget=9), HyperbandFacade)
    assert not plain.intensifier.uses_budgets and several.intensifier.uses_budgets
    assert several.scenario.meta["facade"]["name"] == "HyperbandFacade"


def test_callbacks_and_models_know_their_scenario_and_space(tmp_path: Path) -> None:
    seen = []

    class Looks(Callback):
        def on_tell_end(self, smbo: Any, info: Any, value: Any) -> None:
            seen.append(_private.scenario_of(smbo))

    run = scenario(tmp_path)
    smac = facade(run, callbacks=[Looks()])
    smac.tell(smac.ask(), TrialValue(cost=1.0), save=False)
    assert seen == [run]
    assert _private.space_of(RandomModel(run.configspace)) is run.configspace


def test_what_smac_provokes_and_logs_is_hidden(caplog: pytest.LogCaptureFixture) -> None:
    config = ConfigurationSpace({"a": ["x", "y"]}, seed=0).get_default_configuration()
    with pytest.warns(DeprecationWarning, match="Please use `dict"):
        config.get_dictionary()
    with pytest.warns(RuntimeWarning) as provoked:
        np.mean([])
    assert len(provoked) == 2
    logger = logging.getLogger("smac.main.smbo")
    with _private.quiet():
        config.get_dictionary()
        np.mean([])
        logger.warning("hidden")
        with pytest.raises(DeprecationWarning, match="another"):
            warnings.warn("another", DeprecationWarning, stacklevel=1)
    logger.warning("shown")
    assert caplog.messages == ["shown"]


def test_blocks_that_overlap_leave_the_log_as_it_was() -> None:
    logger = logging.getLogger("smac")
    before = logger.level
    first, second = _private.quiet(), _private.quiet()
    with warnings.catch_warnings():  # which does not nest in this way
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)  # as two threads do that overlap
        assert logger.level == logging.ERROR
        second.__exit__(None, None, None)
    assert logger.level == before < logging.ERROR


def test_facades_tell_a_selector_what_it_needs(tmp_path: Path) -> None:
    run = scenario(tmp_path)
    selector, design = _private.Selector(run), DefaultInitialDesign(run)
    with pytest.raises(RuntimeError, match="has no facade yet: pass it"):
        _ = selector.runhistory
    smac = facade(run, initial_design=design, config_selector=selector)
    assert selector.runhistory is smac.runhistory and selector.scenario is run
    assert selector.initial_configurations == design.select_configurations()
    history = RunHistory()
    selector._set_components(design, history, random_design=None, something_new=1)
    assert selector.runhistory is history


def test_selectors_are_given_their_parts_by_name() -> None:
    parameters = inspect.signature(ConfigSelector._set_components).parameters
    assert {"initial_design", "runhistory", "callbacks", "model"} <= parameters.keys()
    for name in ("_call_callbacks_on_start", "_call_callbacks_on_end"):
        assert callable(getattr(ConfigSelector, name))


def test_facades_make_their_optimizer_last_of_a_runner_that_may_be_replaced() -> None:
    made = inspect.getsource(AbstractFacade.__init__).partition("_get_optimizer")
    assert "self._runner = runner" in made[0] and "_runner" not in made[2]
    parts = {name: f"{name}=self._{name}" for name in inspect.signature(SMBO).parameters}
    parts_given = inspect.getsource(AbstractFacade._get_optimizer)
    assert len(parts) == 5 and all(part in parts_given for part in parts.values())
    runner = inspect.getsource(DaskParallelRunner)
    for name in ("_single_worker", "_patience", "_client", "_scheduler_file", "_pending_trials"):
        assert f"self.{name} = " in runner or f"self.{name}: " in runner
    assert "if self._close_client_at_del or force:" in runner
    assert inspect.getsource(DaskParallelRunner.iter_results).count("_process_pending_trials") == 1
    assert "self._results_queue.append(trial.result())" in runner


def test_a_worker_that_dies_before_it_gets_a_trial_does_not_end_the_search(tmp_path: Path) -> None:
    counts = iter([{"a worker": 1}])  # then there is none until it is restarted
    client: Any = SimpleNamespace(
        nthreads=lambda: next(counts, {}),
        submit=lambda function, trial_info: SimpleNamespace(key=1, done=lambda: False),
    )
    single = TargetFunctionRunner(scenario(tmp_path), lambda config, seed: 0.0, ["config", "seed"])
    own = DaskParallelRunner(single, patience=0, dask_client=client)
    own._scheduler_file = None
    runner = _private.DaskRunner.replacing(own)
    config = scenario(tmp_path).configspace.get_default_configuration()
    runner.submit_trial(TrialInfo(config))
    assert runner.is_running()


@pytest.mark.parametrize("raised", [SystemExit, GeneratorExit])
def test_a_trial_on_a_worker_may_raise_anything(
    tmp_path: Path, raised: type[BaseException]
) -> None:
    """``sys.exit()`` too: it would end the worker, and Dask gives the trial to three more."""

    def train(config: Any, seed: int = 0) -> float:
        raise raised("on purpose")

    run = scenario(tmp_path)
    runner = _private._Surviving(TargetFunctionRunner(run, train, required_arguments=["seed"]))
    info = TrialInfo(run.configspace.get_default_configuration(), seed=0)
    _, value = runner.run_wrapper(info)
    assert value.status == StatusType.CRASHED and "on purpose" in repr(value.additional_info)
    assert value.endtime >= value.starttime


def test_an_interrupt_is_not_a_crash(tmp_path: Path) -> None:
    def train(config: Any, seed: int = 0) -> float:
        raise KeyboardInterrupt

    run = scenario(tmp_path)
    runner = _private._Surviving(TargetFunctionRunner(run, train, required_arguments=["seed"]))
    with pytest.raises(KeyboardInterrupt):
        runner.run_wrapper(TrialInfo(run.configspace.get_default_configuration(), seed=0))


def test_a_configuration_is_validated_on_workers_as_without_them(
    tmp_path: Path, client: Client
) -> None:
    """SMAC's runner on Dask does not wait for them, and its search takes them for its own."""
    validated: list[Any] = []
    workers: dict[str, Any] = {"n_workers": 2, "dask_client": client}
    for folder, given in (("a", {}), ("b", workers)):
        smac = runs.facade(tmp_path / folder, runs.Watched(), n_trials=4, function=noisy, **given)
        smac.tell(smac.ask(), TrialValue(cost=1.0))
        config = smac.scenario.configspace.get_default_configuration()
        validated.append(smac.validate(config))
        assert len(runs.search(smac)) == 4 and config not in smac.runhistory.get_configs()
    assert validated[0] == validated[1] > 2.0


def test_a_search_on_workers_ends_at_its_threshold(tmp_path: Path, client: Client) -> None:
    """Workers return copies, for which SMAC knows no cost: the threshold would never be met."""
    space = ConfigurationSpace(seed=0)
    space.add(Integer("n", (1, 99), log=True))
    given: dict[str, Any] = {
        "termination_cost_threshold": 100.0,
        "n_workers": 2,
        "dask_client": client,
    }
    smac = runs.facade(
        tmp_path, runs.Watched(), space=space, function=lambda config, seed=0: 1.0, **given
    )
    assert len(runs.search(smac)) <= 3


def noisy(config: Any, seed: int = 0) -> float:
    return runs.target(config) + seed


def test_a_pickled_copy_is_told_as_what_was_asked_for(tmp_path: Path) -> None:
    space = ConfigurationSpace(seed=0)
    distribution = Normal(0.0, 1.0)
    space.add(Integer("n", (1, 99), log=True), Float("z", (-3, 3), distribution=distribution))
    smac = runs.facade(tmp_path, runs.Watched(), space=space)
    asked = [smac.ask() for _ in range(3)]
    copies = pickle.loads(pickle.dumps(asked))
    assert copies[0].config != asked[0].config  # else this is not needed any more
    for copy in reversed(copies):
        smac.tell(copy, TrialValue(cost=1.0))
    assert smac.runhistory.get_configs() == [trial.config for trial in asked]
    assert (smac.runhistory.finished, smac.runhistory.running) == (3, 0)


@pytest.mark.parametrize("number", [Integer("n", (1, 99)), Integer("n", (1, 99), log=True)])
def test_copies_with_other_seeds_are_the_same_configurations(tmp_path: Path, number: Any) -> None:
    """SMAC would number them anew, and when it reads the run give these numbers to others."""
    space = ConfigurationSpace({"k": ["a", "b"]}, seed=0)
    space.add(number)
    given: dict[str, Any] = {"space": space, "name": "mine", "deterministic": False}
    smac = runs.facade(tmp_path, runs.Watched(), **given)
    asked: list[TrialInfo] = []
    for _ in range(2):  # once more after it was read
        asked += [smac.ask() for _ in range(3)]
        for info in asked:
            made = Configuration(space, values={"k": str(info.config["k"]), "n": info.config["n"]})
            for seed, config in enumerate([info.config, made, pickle.loads(pickle.dumps(made))]):
                smac.tell(TrialInfo(config, seed=seed), TrialValue(cost=float(config["n"])))
            smac.tell(info, TrialValue(cost=1.0))
        assert len(smac.runhistory.ids_config) == len(asked)
        smac = runs.facade(tmp_path, runs.Watched(), overwrite=False, **given)
    assert (len(smac.runhistory.get_configs()), len(smac.runhistory)) == (6, 24)


def test_what_was_never_asked_for_is_one_configuration_in_all_copies(tmp_path: Path) -> None:
    space = ConfigurationSpace(seed=0)
    space.add(Integer("n", (1, 99), log=True))
    smac = runs.facade(tmp_path, runs.Watched(), space=space)
    config = Configuration(space, values={"n": 7})
    for seed in range(3):
        copy = pickle.loads(pickle.dumps(config))
        smac.tell(TrialInfo(copy, seed=seed), TrialValue(cost=1.0))
    assert smac.runhistory.get_configs() == [config] and len(smac.runhistory) == 3


def test_intensifiers_end_with_their_selector() -> None:
    """A selector that returns stops the search; one that raises would lose running trials."""
    setter = vars(abstract_intensifier.AbstractIntensifier)["config_selector"].fset
    assert "iter(config_selector)" in inspect.getsource(setter)


def test_a_run_is_continued_if_the_scenario_equals_the_file_of_the_run() -> None:
    """Which is written anew before SMAC reads it, where only limits differ."""
    source = inspect.getsource(SMBO._initialize_state)
    assert source.index("Scenario.load(") < source.index("if self._scenario == old_scenario:")
    compared = inspect.getsource(Scenario.__eq__)
    assert compared.count("Scenario.make_serializable(") == 2
    assert '"initial_design": self._initial_design.meta' in inspect.getsource(
        vars(AbstractFacade)["meta"].fget
    )


def test_the_initial_design_is_left_out_where_it_has_been_evaluated(tmp_path: Path) -> None:
    """Both selectors have a list of it, which they read when they begin."""
    for selector in (_private.Selector(scenario(tmp_path)), ConfigSelector(scenario(tmp_path))):
        smac = facade(scenario(tmp_path), config_selector=selector)
        assert len(selector._initial_design_configs) > 0
    smac.intensifier.config_selector._initial_design_configs = []
    assert not str(smac.ask().config.origin).startswith("Initial")


def test_interrupted_generators_can_be_made_anew() -> None:
    """Of the parts that make them, which are not generators themselves."""
    parts = vars(abstract_intensifier.AbstractIntensifier)
    setter = inspect.getsource(parts["config_selector"].fset)
    assert "self._config_generator = iter(config_selector)" in setter
    assert "return self._config_generator" in inspect.getsource(parts["config_generator"].fget)
    assert "self._trial_generator = iter(self._intensifier)" in inspect.getsource(SMBO.reset)
    assert inspect.getsource(SMBO).count("next(self._trial_generator)") == 1
    assert "next(self._trial_generator)" in inspect.getsource(SMBO.ask)
    assert "trial_info = self.ask()" in inspect.getsource(SMBO.optimize)
    assert "self._next_bracket = " in inspect.getsource(Hyperband._get_next_bracket)
