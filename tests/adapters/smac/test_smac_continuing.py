"""SMAC searches that are continued or interrupted, and what their trials tell of proposals."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.smac import (
    AutoFacade,
    GBQRFacade,
    ProposerConfigSelector,
    member_trust,
)
from ConfigSpace import (
    BetaIntegerHyperparameter,
    Categorical,
    Configuration,
    ConfigurationSpace,
    Float,
)
from smac import Scenario
from smac.facade.abstract_facade import AbstractFacade
from smac.initial_design import RandomInitialDesign
from smac.random_design import ProbabilityRandomDesign
from smac.runhistory import TrialValue
from smac_runs import (
    BUDGETS,
    HYPERBAND,
    QUICK,
    StopAfter,
    Watched,
    budget_target,
    facade,
    scenario,
    search,
    selector_of,
    target,
)

from automl_plugins.meta import MetaStore, TaskRecord
from automl_plugins.recipes import auto, gbqr

# --- continued and interrupted ----------------------------------------------------------------


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


@pytest.mark.parametrize("given", [{}, HYPERBAND])
def test_a_run_with_a_name_is_continued_with_more_trials(tmp_path: Path, given: Any) -> None:
    """SMAC would ask at the keyboard whether to overwrite it."""

    def made(folder: str, n: int, **more: Any) -> AbstractFacade:
        options = {**given, "name": "mine", "n_trials": n, **more}
        return facade(tmp_path / folder, gbqr(**QUICK), **options)

    whole = search(made("whole", 9))
    first = made("parts", 6)
    assert search(first) == whole[:6]
    first.optimizer.save()  # as finished
    assert search(made("parts", 9, overwrite=False)) == whole
    assert search(made("parts", 7, overwrite=False)) == whole  # fewer trials: nothing to do


@pytest.mark.filterwarnings("ignore:Please use:DeprecationWarning")  # of SMAC itself
def test_a_run_whose_default_is_a_number_of_numpy_is_continued(tmp_path: Path) -> None:
    """SMAC writes it into the file of the scenario, and raises when it compares it with that."""

    def run(n: int, **more: Any) -> list[int]:
        space = ConfigurationSpace(seed=0)
        space.add(BetaIntegerHyperparameter("p", 2, 3, 0, 50))
        own = Scenario(
            space,
            name="mine",
            n_trials=n,
            output_directory=tmp_path,
            deterministic=True,
            use_default_config=True,
        )
        smac = GBQRFacade(own, lambda c, seed=0: float(c["p"]), logging_level=False, **more)
        smac.optimize()
        return [config["p"] for config in smac.runhistory.get_configs()]

    begun = run(3, overwrite=True)
    assert len(begun) == 3 and len(whole := run(5)) == 5 and whole[:3] == begun


def test_a_run_is_continued_with_other_limits_and_with_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made(**given: Any) -> AbstractFacade:
        return facade(tmp_path, gbqr(**QUICK), overwrite=False, name="mine", **given)

    assert len(search(made(n_trials=3))) == 3
    limits = {"n_trials": 5, "walltime_limit": 1e6, "cputime_limit": 1e6}
    again = made(**limits)
    assert len(again.runhistory) == 3
    stored = Scenario.load(again.scenario.output_directory)
    assert {name: getattr(stored, name) for name in limits} == limits
    monkeypatch.setattr("builtins.input", lambda question: "abort")
    with pytest.raises(RuntimeError, match="stopped by the user"):
        made(**limits, crash_cost=1.0)


@pytest.mark.parametrize("changed", [[1.0, 0.5], [0.5, 1]], ids=str)
def test_other_limits_need_the_same_choices_in_the_same_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: list[float]
) -> None:
    """They are equal for ConfigSpace, but 1 may mean one feature and 1.0 all of them."""

    def made(choices: list[float], n_trials: int) -> Any:
        space = ConfigurationSpace()
        space.add(Categorical("features", choices, default=0.5), Float("x", (0.0, 1.0)))
        return GBQRFacade(
            Scenario(space, name="mine", n_trials=n_trials, output_directory=tmp_path),
            lambda config, seed=0: config["x"],
            logging_level=False,
        )

    search(made([1, 0.5], 3))
    monkeypatch.setattr("builtins.input", lambda question: "abort")
    assert len(made([1, 0.5], 4).runhistory) == 3
    with pytest.raises(RuntimeError, match="stopped by the user"):
        made(changed, 5)


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


@pytest.mark.parametrize("again", ["same", "new"])
def test_trials_that_were_interrupted_at_the_end_of_the_budget_are_evaluated(
    tmp_path: Path, again: str
) -> None:
    """They have been submitted, for SMAC, which would stop after the first of them."""
    smac = facade(tmp_path, Watched(), n_trials=4)
    asked = [smac.optimizer.ask().config for _ in range(4)]  # as with four workers
    smac.optimizer.save()
    if again == "new":
        smac = facade(tmp_path, Watched(), overwrite=False, n_trials=4)
    assert len(search(smac)) == 4 and smac.runhistory.get_configs() == asked
    assert (smac.runhistory.finished, smac.runhistory.running) == (4, 0)


def test_trials_that_were_asked_for_are_left_to_whoever_asked(tmp_path: Path) -> None:
    seen = []

    def counted(config: Configuration, seed: int = 0) -> float:
        seen.append(config)
        return target(config)

    smac = facade(tmp_path, Watched(), function=counted, n_trials=4)
    asked = smac.ask()
    search(smac)
    assert asked.config not in seen and smac.runhistory.get_running_trials() == [asked]


def test_a_search_that_is_reset_forgets_what_was_asked_for_and_interrupted(tmp_path: Path) -> None:
    calls = []

    def interrupted(config: Configuration, seed: int = 0) -> float:
        calls.append(config)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return target(config)

    smac = facade(tmp_path, Watched(), function=interrupted, n_trials=4)
    asked = smac.ask()
    for _ in range(2):
        smac.optimizer.ask()
    with pytest.raises(KeyboardInterrupt):
        search(smac)
    smac.optimizer.reset()
    assert smac.optimizer.remaining_trials == 4
    smac.runhistory.add_running_trial(asked)  # by a worker, which is interrupted
    search(smac)
    assert calls[1] == asked.config and smac.runhistory.running == 0


def test_interrupted_trials_with_cutoffs_stay(tmp_path: Path) -> None:
    """SMAC does not store their cutoffs, without which its runner raises."""

    def function(config: Configuration, seed: int, cutoff: float) -> float:
        return target(config)

    smac = facade(tmp_path, Watched(), function=function, n_trials=3, runtime_cutoff=9)
    smac.optimizer.ask()
    search(smac)
    assert (smac.runhistory.finished, smac.runhistory.running) == (2, 1)


@pytest.mark.parametrize("n", [5, 9, 12])
def test_hyperband_is_continued_within_a_bracket(tmp_path: Path, n: int) -> None:
    """Four of its nine configurations are known to its tracker only; or a stage has just ended."""

    def made(folder: str, **given: Any) -> AbstractFacade:
        return facade(tmp_path / folder, gbqr(**QUICK), **HYPERBAND, **given)

    whole = search(made("whole"))
    assert search(made("parts", callbacks=[StopAfter(n)])) == whole[:n]
    assert search(made("parts", overwrite=False)) == whole


def test_a_run_is_not_continued_by_another_proposer(tmp_path: Path) -> None:
    first = facade(tmp_path, gbqr(), n_trials=5)
    second = facade(tmp_path, gbqr(alpha=0.2), n_trials=5)
    assert first.scenario.meta != second.scenario.meta
    meta = selector_of(first).meta
    assert json.loads(json.dumps(meta)) == meta
    assert "0x" not in json.dumps(meta)  # no address, which is another one in the next process
    assert pickle.loads(pickle.dumps(selector_of(first))).meta == meta


def test_a_run_is_continued_though_others_have_recorded_into_its_memory(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    metas = []
    with MetaStore(path) as store:
        for name, best in (("a", 0.2), ("b", 0.5), ("c", 0.9)):
            places = np.linspace(0.0, 1.0, 4)
            configurations = [{"x": x, "kind": "linear"} for x in places.tolist()]
            store.add(TaskRecord(name, configurations, (places - best) ** 2), search=name)
            for memory in (store, str(path)):
                run = scenario(tmp_path / "run")
                metas.append(AutoFacade.get_config_selector(run, memory=memory).meta)
    assert all(meta == metas[0] for meta in metas)


INTERRUPTED = """
import sys, time
from collections import Counter
from pathlib import Path

from automl_plugins.adapters.smac import GBQRFacade
from ConfigSpace import ConfigurationSpace
from smac import Scenario
from smac.callback import Callback


def train(config, seed=0):
    with open(sys.argv[1] + "/log", "a") as log:
        print(config["x"], file=log)
    time.sleep(0.5)
    return config["x"]


class Interrupt(Callback):
    told = 0

    def on_tell_end(self, smbo, info, value):
        self.told += 1
        runner = smbo._runner
        if sys.argv[2] == "running" and self.told == 3:
            raise KeyboardInterrupt
        if sys.argv[2] == "ended":  # two results are taken at once
            if runner._results_queue:
                sys.argv[2] = "interrupted"
                raise KeyboardInterrupt
            if len(runner._pending_trials) > 1:
                while not all(trial.done() for trial in runner._pending_trials):
                    time.sleep(0.01)


if __name__ == "__main__":  # the workers need none of this
    space = ConfigurationSpace({"x": (0.0, 1.0)}, seed=0)
    scenario = Scenario(
        space, n_trials=8, n_workers=2, deterministic=True, output_directory=Path(sys.argv[1])
    )
    smac = GBQRFacade(scenario, train, logging_level=False, callbacks=[Interrupt()])
    try:
        smac.optimize()
    except KeyboardInterrupt:
        print("interrupted")
    smac.optimize()
    evaluated = Counter(open(sys.argv[1] + "/log").read().split())
    print(len(evaluated), set(evaluated.values()), smac.runhistory.finished)
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["running", "ended"])
def test_trials_that_workers_still_run_are_not_started_again(tmp_path: Path, workers: str) -> None:
    """Nor those that have ended, whose results wait behind the one that was interrupted."""
    script = tmp_path / "interrupted.py"
    script.write_text(INTERRUPTED, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path), workers],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["interrupted", "8 {1} 8"]


def test_a_selector_forgets_the_facade_before(tmp_path: Path) -> None:
    proposer = Watched()
    never = ProbabilityRandomDesign(0.0)
    selector = ProposerConfigSelector(scenario(tmp_path, **BUDGETS), proposer, random_design=never)
    for _ in range(2):
        proposer.shown.clear()
        facade(tmp_path, config_selector=selector, **HYPERBAND).ask()
        assert proposer.numbers == list(range(9))


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
    assert [trial for trial in trials if trial[1:] != [ends[trial[0]], "True", "True"]] == []
    assert "__del__" not in done.stderr  # closed while Dask is there, not after a minute


# --- why a configuration was tried ------------------------------------------------------------


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
