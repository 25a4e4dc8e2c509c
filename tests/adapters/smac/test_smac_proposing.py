"""Proposers of the core choose SMAC's configurations."""

from __future__ import annotations

import json
import logging
import math
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.smac import GBQRFacade, MetaInitialDesign, ProposerConfigSelector
from automl_plugins.adapters.smac._private import quiet
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
from smac.facade.abstract_facade import AbstractFacade
from smac.initial_design import RandomInitialDesign
from smac.intensifier.hyperband import Hyperband
from smac.random_design import ModulusRandomDesign
from smac.runhistory import StatusType, TrialInfo, TrialValue

from automl_plugins.meta import MetaDataset, TaskRecord
from automl_plugins.proposers.proposal import Proposal, SurrogateFailure
from automl_plugins.recipes import ei_per_second, gbqr
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams


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


class Watched:
    """Proposes at random, and remembers what it was shown."""

    timed = False

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


def scenario(tmp_path: Path, made: ConfigurationSpace | None = None, **options: Any) -> Scenario:
    options = {"n_trials": 12, "deterministic": True, "seed": 3} | options
    return Scenario(made or space(), output_directory=tmp_path, **options)


def facade(
    tmp_path: Path,
    proposer: Any,
    *,
    kind: type[AbstractFacade] = GBQRFacade,
    function: Any = target,
    parts: dict[str, Any] | None = None,
    selecting: dict[str, Any] | None = None,
    overwrite: bool = True,
    made: ConfigurationSpace | None = None,
    **options: Any,
) -> AbstractFacade:
    run = scenario(tmp_path, made, **options)
    selector = ProposerConfigSelector(run, proposer, **(selecting or {}))
    with quiet():
        return kind(
            run,
            function,
            config_selector=selector,
            logging_level=False,
            overwrite=overwrite,
            **(parts or {}),
        )


def selector_of(smac: AbstractFacade) -> ProposerConfigSelector:
    selector = smac.intensifier.config_selector
    assert isinstance(selector, ProposerConfigSelector)
    return selector


def searched(smac: AbstractFacade) -> list[dict[str, Any]]:
    """Configurations and costs in order, after the search."""
    with quiet():
        smac.optimize()
    return trajectory(smac)


def trajectory(smac: AbstractFacade) -> list[dict[str, Any]]:
    return [
        {**dict(smac.runhistory.get_config(key.config_id)), "cost": value.cost}
        for key, value in smac.runhistory.items()
    ]


# --- what the proposer is shown ---------------------------------------------------------------


def test_every_configuration_is_a_row_and_k_counts_them(tmp_path: Path) -> None:
    proposer = Watched()
    smac = facade(tmp_path, proposer)
    searched(smac)
    assert [k for _, k in proposer.shown] == list(range(12))
    assert [len(history) for history, _ in proposer.shown] == list(range(12))
    costs = [value.cost for value in smac.runhistory.values()]
    np.testing.assert_array_equal(proposer.shown[-1][0].losses, costs[:11])
    assert (proposer.shown[-1][0].seconds > 0).all()


def test_asked_trials_are_running_rows(tmp_path: Path) -> None:
    proposer = Watched()
    smac = facade(tmp_path, proposer)
    asked = [smac.ask() for _ in range(3)]
    assert [k for _, k in proposer.shown] == [0, 1, 2]
    assert proposer.shown[2][0].status.tolist() == [Status.RUNNING] * 2
    smac.tell(asked[1], TrialValue(0.5, time=7.0), save=False)
    smac.ask()
    history = proposer.shown[-1][0]
    assert history.status.tolist() == [Status.COMPLETE, Status.RUNNING, Status.RUNNING]
    assert history.seconds[0] == 7.0 and history.losses[0] == 0.5


@pytest.mark.parametrize("kind", [HyperbandFacade, MultiFidelityFacade])
def test_given_away_but_unrecorded_ones_are_running_rows(tmp_path: Path, kind: Any) -> None:
    proposer = Watched()
    smac = facade(
        tmp_path,
        proposer,
        kind=kind,
        function=budget_target,
        min_budget=1,
        max_budget=9,
        parts={"initial_design": RandomInitialDesign(scenario(tmp_path), n_configs=0)},
    )
    smac.ask()  # Hyperband asks for its first bracket at once
    assert [k for _, k in proposer.shown] == list(range(9))
    for k, (history, _) in enumerate(proposer.shown):
        assert history.status.tolist() == [Status.RUNNING] * k
        assert len(np.unique(history.vectors, axis=0)) == k
        assert history.number.tolist() == list(range(k))


def test_told_without_asking_is_known_too(tmp_path: Path) -> None:
    proposer = Watched()
    smac = facade(tmp_path, proposer)
    config = space().sample_configuration()
    smac.tell(TrialInfo(config, seed=0), TrialValue(0.25), save=False)
    smac.ask()
    history, k = proposer.shown[0]
    assert k == 1 and history.losses.tolist() == [0.25] and math.isnan(history.seconds[0])


def test_failures_are_failures_and_took_their_time(tmp_path: Path) -> None:
    proposer = Watched()

    def fragile(config: Configuration, seed: int = 0) -> float:
        if config["x"] > 0.5:
            raise RuntimeError("too large")
        return target(config)

    smac = facade(tmp_path, proposer, function=fragile, seed=5)
    searched(smac)
    history = proposer.shown[-1][0]
    x = history.vectors[:, smac.scenario.configspace.index_of["x"]]
    assert (history.status == Status.FAILED).tolist() == (x > 0.5).tolist()
    assert 0 < (x > 0.5).sum() < len(x)
    assert (history.seconds > 0).all()
    assert np.isnan(history.losses[x > 0.5]).all()


@pytest.mark.parametrize("crash_cost", [math.inf, 1e30])
def test_crash_costs_do_not_poison_the_model(tmp_path: Path, crash_cost: float) -> None:
    def fragile(config: Configuration, seed: int = 0) -> float:
        if config["kind"] == "linear" and len(ran) > 1:
            raise RuntimeError("no")
        ran.append(1)
        return target(config)

    ran: list[int] = []
    smac = facade(
        tmp_path,
        gbqr(n_startup=6, n_models=2, balance=None),
        function=fragile,
        n_trials=14,
        crash_cost=crash_cost,
    )
    searched(smac)
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
    proposer = selector_of(smac).proposer
    vectors = VectorSpace(space())
    both = vectors.sample(100, np.random.default_rng(0))
    slow = both[:, vectors.space.index_of["kind"]] == 1.0
    fitted = proposer._cache[2]
    seconds = np.exp(fitted.log_seconds(vectors.features(both)))
    assert seconds[slow].min() > 5 * seconds[~slow].max()


# --- what the search is -----------------------------------------------------------------------


class StopAfter(Callback):
    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n

    def on_tell_end(self, smbo: Any, info: TrialInfo, value: TrialValue) -> bool:
        return bool(smbo.runhistory.finished < self.n)


def test_a_run_that_is_continued_goes_on_as_if_it_had_never_stopped(tmp_path: Path) -> None:
    whole = searched(facade(tmp_path / "whole", gbqr(n_startup=4, n_models=1)))
    first = facade(
        tmp_path / "parts", gbqr(n_startup=4, n_models=1), parts={"callbacks": [StopAfter(7)]}
    )
    assert searched(first) == whole[:7]
    second = facade(tmp_path / "parts", gbqr(n_startup=4, n_models=1), overwrite=False)
    assert len(second.runhistory) == 7
    assert searched(second) == whole
    # Why the first ones were proposed is still known.
    early = second.runhistory.get_configs()[5]
    assert selector_of(second).explain(early) == selector_of(first).explain(early)


def test_hyperband_is_continued_within_a_bracket(tmp_path: Path) -> None:
    """Four of its nine configurations are known to its tracker only."""
    options: dict[str, Any] = {"function": budget_target, **LIMITS}

    def made(folder: str, *, overwrite: bool = True, callbacks: Any = ()) -> AbstractFacade:
        parts = {"intensifier": Hyperband(scenario(tmp_path / folder, **LIMITS))}
        return facade(
            tmp_path / folder,
            gbqr(n_startup=6, n_models=1),
            overwrite=overwrite,
            parts={**parts, "callbacks": list(callbacks)},
            **options,
        )

    whole = searched(made("whole"))
    assert searched(made("parts", callbacks=[StopAfter(5)])) == whole[:5]
    assert searched(made("parts", overwrite=False)) == whole


LIMITS: dict[str, Any] = {"min_budget": 1, "max_budget": 9, "n_trials": 20}


def test_a_run_is_not_continued_by_another_proposer(tmp_path: Path) -> None:
    first = facade(tmp_path, gbqr(), n_trials=5)
    second = facade(tmp_path, gbqr(alpha=0.2), n_trials=5)
    assert first.scenario.meta != second.scenario.meta
    meta = selector_of(first).meta
    assert json.loads(json.dumps(meta)) == meta
    assert "0x" not in json.dumps(meta)  # no address, which is another one in the next process


def test_the_initial_design_comes_first(tmp_path: Path) -> None:
    configs = space().sample_configuration(3)
    design = RandomInitialDesign(
        scenario(tmp_path), n_configs=0, additional_configs=[*configs, configs[0]]
    )
    proposer = Watched()
    smac = facade(tmp_path, proposer, parts={"initial_design": design})
    found = [smac.ask().config for _ in range(4)]
    assert found[:3] == configs
    assert len(proposer.shown) == 1 and proposer.shown[0][1] == 3
    assert selector_of(smac).explain(found[0]).origin == "design"
    assert selector_of(smac).explain(space().sample_configuration()).origin == "foreign"


def test_other_facades_keep_their_initial_design_and_lose_their_randomness(
    tmp_path: Path,
) -> None:
    proposer = Watched()
    smac = facade(tmp_path, proposer, kind=HyperparameterOptimizationFacade)
    searched(smac)
    origins = [config.origin for config in smac.runhistory.get_configs()]
    assert origins == ["Initial Design: Sobol"] * 3 + ["Proposer: model"] * 9
    proposer = Watched()
    searched(facade(tmp_path / "random", proposer, kind=RandomFacade))
    assert len(proposer.shown) == 11  # after the default configuration


def test_a_random_design_is_obeyed(tmp_path: Path) -> None:
    proposer = Watched()
    design = ModulusRandomDesign(modulus=3)
    smac = facade(tmp_path, proposer, selecting={"random_design": design})
    searched(smac)
    assert [k for _, k in proposer.shown] == [1, 2, 4, 5, 7, 8, 10, 11]
    origins = [config.origin for config in smac.runhistory.get_configs()]
    assert origins[0] == origins[3] == "Proposer: random"


def test_equal_configurations_are_one(tmp_path: Path) -> None:
    """A proposer that repeats itself gets a new configuration, and there is one id for each."""
    vector = space().sample_configuration().get_array()
    smac = facade(tmp_path, Watched(lambda k: vector))
    searched(smac)
    assert len(smac.runhistory.get_configs()) == 12
    vectors = VectorSpace(space())
    keys = vectors.keys(Rows(space()).vectors(smac.runhistory))
    assert len(np.unique(keys)) == 12


def test_an_exhausted_space_ends_the_search(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tiny = ConfigurationSpace({"x": (1, 3), "kind": ["linear", "poly"]}, seed=0)
    smac = facade(tmp_path, gbqr(), function=target, made=tiny, n_trials=30)
    assert smac.optimize() in smac.runhistory.get_configs()
    assert len(smac.runhistory) == len({tuple(t.values()) for t in trajectory(smac)}) == 6
    assert "All configurations were tried: the search ends." in caplog.messages
    with pytest.raises(StopIteration):
        smac.ask()


def test_a_space_too_small_for_a_bracket_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tiny = ConfigurationSpace({"x": (1, 3)}, seed=0)
    parts = {"intensifier": Hyperband(scenario(tmp_path, tiny, **LIMITS))}
    smac = facade(tmp_path, gbqr(), function=budget_target, made=tiny, parts=parts, **LIMITS)
    with pytest.raises(StopIteration):
        smac.ask()
    assert "3 of them were never evaluated: the intensifier starts no bracket" in caplog.text


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
    searched(smac)
    for config, value in zip(smac.runhistory.get_configs(), smac.runhistory.values(), strict=True):
        proposal = selector_of(smac).explain(config)
        assert value.additional_info["proposal"]["origin"] == proposal.origin
        assert value.additional_info["proposal"].get("loss") == proposal.value
    assert json.loads(Path(smac.scenario.output_directory / "runhistory.json").read_text())


def test_a_target_may_have_information_of_its_own(tmp_path: Path) -> None:
    def informed(config: Configuration, seed: int = 0) -> tuple[float, dict[str, Any]]:
        return target(config), {"proposal": "mine", "other": 1}

    smac = facade(tmp_path, Watched(), function=informed, n_trials=2)
    searched(smac)
    for value in smac.runhistory.values():
        assert value.additional_info == {"proposal": "mine", "other": 1}


@pytest.mark.parametrize("note", ["mine", {"mine": 1}, {"origin": "mine", "vector": 1}])
def test_a_continued_run_is_not_stopped_by_such_information(tmp_path: Path, note: Any) -> None:
    """Trials of the initial design were not proposed, so their notes are looked at."""

    def informed(config: Configuration, seed: int = 0) -> tuple[float, dict[str, Any]]:
        return target(config) + 0.1 * (seed % 2), {"proposal": note}

    def made(*, overwrite: bool, callbacks: Any = ()) -> AbstractFacade:
        design = RandomInitialDesign(scenario(tmp_path), n_configs=3, max_ratio=1.0)
        return facade(
            tmp_path,
            Watched(),
            function=informed,
            deterministic=False,
            overwrite=overwrite,
            parts={"initial_design": design, "callbacks": list(callbacks)},
        )

    searched(made(overwrite=True, callbacks=[StopAfter(3)]))
    second = made(overwrite=False)
    assert len(searched(second)) == 12
    assert selector_of(second).explain(second.runhistory.get_configs()[0]).value is None


@pytest.mark.parametrize("info", [None, [1], "text"])
def test_information_may_be_anything(tmp_path: Path, info: Any) -> None:
    smac = facade(tmp_path, Watched())
    config = space().sample_configuration()
    for _ in range(2):
        value = TrialValue(0.25, time=math.inf, additional_info=info)
        smac.tell(TrialInfo(config, seed=0), value, save=False)
    history = selector_of(smac).history()
    assert history.losses.tolist() == [0.25] and math.isnan(history.seconds[0])


def test_a_selector_forgets_the_facade_before(tmp_path: Path) -> None:
    run, proposer = scenario(tmp_path, **LIMITS), Watched()
    selector = ProposerConfigSelector(run, proposer)
    for _ in range(2):
        proposer.shown.clear()
        smac = GBQRFacade(
            run,
            budget_target,
            config_selector=selector,
            intensifier=Hyperband(run),
            logging_level=False,
            overwrite=True,
        )
        smac.ask()
        assert [k for _, k in proposer.shown] == list(range(9))


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
    smac = facade(tmp_path, Watched(), n_trials=5, parts={"callbacks": [counting]})
    searched(smac)
    assert counting.begun == 5 and counting.ended == smac.runhistory.get_configs()


def test_selectors_are_pickled(tmp_path: Path) -> None:
    selector = ProposerConfigSelector(scenario(tmp_path), gbqr())
    assert pickle.loads(pickle.dumps(selector)).meta == selector.meta


# --- bad input --------------------------------------------------------------------------------


def test_several_objectives_are_refused_at_construction(tmp_path: Path) -> None:
    several = scenario(tmp_path, objectives=["cost", "time"])
    with pytest.raises(ValueError, match="minimise one objective, the scenario has 2"):
        ProposerConfigSelector(several, gbqr())


@pytest.mark.parametrize("proposer", [gbqr, "gbqr", None, GBQRFacade])
def test_what_is_no_proposer_is_refused(tmp_path: Path, proposer: Any) -> None:
    with pytest.raises(TypeError, match=r"recipes\.gbqr\(\)"):
        ProposerConfigSelector(scenario(tmp_path), proposer)


def test_arguments_are_checked(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="min_trials must be None or >= 1, got 0"):
        ProposerConfigSelector(scenario(tmp_path), gbqr(), min_trials=0)
    with pytest.raises(TypeError, match="random_design must be one of SMAC's"):
        ProposerConfigSelector(
            scenario(tmp_path),
            gbqr(),
            random_design=0.5,
        )
    with pytest.raises(RuntimeError, match="has not been given to a facade"):
        ProposerConfigSelector(scenario(tmp_path), gbqr()).history()


# --- workers ----------------------------------------------------------------------------------

PARALLEL = """
import sys
from pathlib import Path


def train(config, seed=0):
    return (config["x"] - 0.3) ** 2 + config["y"]


if __name__ == "__main__":  # the workers need none of this
    from automl_plugins.adapters.smac import GBQRFacade
    from ConfigSpace import ConfigurationSpace
    from smac import Scenario

    space = ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=0)
    scenario = Scenario(
        space, n_trials=9, n_workers=2, deterministic=True, output_directory=Path(sys.argv[1])
    )
    smac = GBQRFacade(scenario, train, logging_level=False, overwrite=True)
    best = smac.optimize()
    print(len(smac.runhistory), len(smac.runhistory.get_configs()), best["y"])
    smac._runner.close(force=True)
"""


def test_two_workers_of_dask(tmp_path: Path) -> None:
    script = tmp_path / "parallel.py"
    script.write_text(PARALLEL, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "out")],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    trials, configs, best = done.stdout.split()
    assert int(trials) == int(configs) >= 9 and float(best) < 0.5


def test_what_earlier_tasks_suggested_is_told_apart_from_the_rest_of_the_design(
    tmp_path: Path,
) -> None:
    made = scenario(tmp_path)
    rows = [{"kind": "linear", "x": 0.1}, {"kind": "linear", "x": 0.2}]
    record = TaskRecord("t", rows, np.array([0.1, 0.2]), space=space())
    design = MetaInitialDesign(made, MetaDataset.from_records([record]), n_configs=1)
    smac = facade(tmp_path, Watched(), parts={"initial_design": design})
    texts = [str(selector_of(smac).explain(smac.ask().config)) for _ in range(2)]
    assert "suggested by earlier tasks (initial design)" in texts[0]
    assert "fills the search space" in texts[1]
