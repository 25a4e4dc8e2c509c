"""SMAC searches that are interrupted while a configuration is looked for."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from ConfigSpace import ConfigurationSpace
from smac.callback import Callback
from smac.facade.abstract_facade import AbstractFacade
from smac.main.config_selector import ConfigSelector
from smac.main.exceptions import ConfigurationSpaceExhaustedException
from smac.runhistory import TrialInfo, TrialValue
from smac_runs import (
    HYPERBAND,
    INSTANCES,
    QUICK,
    facade,
    instance_target,
    search,
    selector_of,
    target,
    trajectory,
)

from automl_plugins.proposers.proposal import Proposal
from automl_plugins.recipes import gbqr


class Interrupted:
    """Proposes as GBQR does, but its calls of some numbers, from 1, are interrupted."""

    def __init__(self, *calls: int, by: BaseException | None = None) -> None:
        self._proposer = gbqr(**QUICK)
        self._calls = calls
        self._by = by or KeyboardInterrupt()
        self.n = 0

    def propose(self, *given: Any) -> Proposal:
        self.n += 1
        if self.n in self._calls:
            raise self._by
        return self._proposer.propose(*given)


def search_on(smac: AbstractFacade) -> list[dict[str, Any]]:
    """Search again after each interruption, with the same facade."""
    proposer: Any = selector_of(smac).proposer
    for _ in proposer._calls:
        with pytest.raises(type(proposer._by)):
            search(smac)
    return search(smac)


@pytest.mark.parametrize("by", [KeyboardInterrupt(), MemoryError("on purpose")])
def test_the_same_facade_continues_as_if_it_had_not_been_interrupted(
    tmp_path: Path, by: BaseException
) -> None:
    """SMAC would return at once: the exception has ended its generators."""
    whole = search(facade(tmp_path / "whole", Interrupted()))
    smac = facade(tmp_path / "parts", Interrupted(1, 6, 7, by=by))
    assert search_on(smac) == whole and len(whole) == 12
    # As a run that was never interrupted, all proposals have been noted.
    notes = [value.additional_info for value in smac.runhistory.values()]
    assert all("proposal" in note for note in notes[1:])


@pytest.mark.parametrize("calls", [(3,), (5, 16)])
def test_hyperband_fills_the_bracket_that_was_interrupted(
    tmp_path: Path, calls: tuple[int, ...]
) -> None:
    """The first, of nine configurations, and the second."""
    whole = search(facade(tmp_path / "whole", Interrupted(), **HYPERBAND))
    smac = facade(tmp_path / "parts", Interrupted(*calls), **HYPERBAND)
    assert search_on(smac) == whole
    assert (smac.runhistory.finished, smac.runhistory.running) == (20, 0)


class InterruptedOnce(Callback):
    """Interrupts the search once a trial has been asked for."""

    def __init__(self, n: int) -> None:
        self._left = n

    def on_ask_end(self, smbo: Any, info: Any) -> None:
        self._left -= 1
        if self._left == 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("n", [1, 12])
def test_hyperband_repeats_no_bracket_after_an_interruption_of_something_else(
    tmp_path: Path, n: int
) -> None:
    def budgets(folder: str, *callbacks: Callback) -> list[float]:
        seen = []

        def function(config: Any, seed: int = 0, budget: float = 1.0) -> float:
            seen.append(budget)
            return target(config)

        given = {**HYPERBAND, "function": function, "n_trials": 40}
        smac = facade(tmp_path / folder, gbqr(**QUICK), **given, callbacks=[*callbacks])
        for _ in callbacks:
            with pytest.raises(KeyboardInterrupt):
                search(smac)
        search(smac)
        return seen

    assert budgets("parts", InterruptedOnce(n)) == budgets("whole")


def test_a_search_over_instances_continues(tmp_path: Path) -> None:
    given = {**INSTANCES, "function": instance_target, "deterministic": False, "n_trials": 25}
    smac = facade(tmp_path, Interrupted(2, 8), **given)
    assert len(search_on(smac)) == 25
    assert (smac.runhistory.finished, smac.runhistory.running) == (25, 0)


def test_ask_continues_after_an_interruption(tmp_path: Path) -> None:
    """Two trials are asked for at a time, so one is running, and keeps its note."""

    def ask(smac: AbstractFacade) -> TrialInfo:
        try:
            return smac.ask()
        except KeyboardInterrupt:
            return smac.ask()

    def told(folder: str, *calls: int) -> AbstractFacade:
        smac = facade(tmp_path / folder, Interrupted(*calls))
        waiting = [ask(smac)]
        for _ in range(7):
            waiting.append(ask(smac))
            info = waiting.pop(0)
            smac.tell(info, TrialValue(target(info.config)), save=False)
        return smac

    smac = told("parts", 2, 6)
    assert trajectory(smac) == trajectory(told("whole"))
    notes = [value.additional_info for value in smac.runhistory.values()][1:7]
    assert all("proposal" in note for note in notes)


def test_trials_that_were_running_come_first_after_both_kinds_of_interruption(
    tmp_path: Path,
) -> None:
    seen = []

    def interrupted(config: Any, seed: int = 0) -> float:
        seen.append(config)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return target(config)

    smac = facade(tmp_path, Interrupted(5), function=interrupted)
    with pytest.raises(KeyboardInterrupt):
        search(smac)  # in the third trial
    with pytest.raises(KeyboardInterrupt):
        search(smac)  # by the proposer
    assert seen[3] == seen[2]
    assert len(search(smac)) == 12 and len(seen) == 13
    assert (smac.runhistory.finished, smac.runhistory.running) == (12, 0)


class InterruptedAtTheEnd(Callback):
    def on_end(self, smbo: Any) -> None:
        raise KeyboardInterrupt


@pytest.mark.parametrize("again", ["same", "new"])
def test_a_search_that_was_interrupted_after_its_last_trial_has_ended(
    tmp_path: Path, again: str
) -> None:
    """SMAC would evaluate one trial more than the scenario allows."""
    smac = facade(tmp_path, gbqr(**QUICK), callbacks=[InterruptedAtTheEnd()])
    with pytest.raises(KeyboardInterrupt):
        search(smac)
    if again == "same":
        with pytest.raises(KeyboardInterrupt):  # by the end, which comes again
            search(smac)
    else:
        smac = facade(tmp_path, gbqr(**QUICK), overwrite=False)
        search(smac)
    assert len(smac.runhistory) == 12


def test_an_exhausted_space_is_the_end_after_an_interruption_too(tmp_path: Path) -> None:
    space = ConfigurationSpace({"a": ["x", "y", "z"]}, seed=0)
    given: dict[str, Any] = {"space": space, "function": lambda config, seed=0: 0.0}
    smac = facade(tmp_path, Interrupted(2), **given)
    assert len(search_on(smac)) == len(search(smac)) == 3
    for _ in range(2):
        with pytest.raises(StopIteration):
            smac.ask()


def test_an_exhausted_space_is_the_end_for_a_selector_of_smac(tmp_path: Path) -> None:
    """It looks for long before it says so: not again."""
    space = ConfigurationSpace({"a": ["x", "y"]}, seed=0)
    given: dict[str, Any] = {"space": space, "function": lambda config, seed=0: 0.0}
    smac = facade(tmp_path, config_selector=partial(ConfigSelector), **given)
    with pytest.raises(ConfigurationSpaceExhaustedException):
        search(smac)
    assert len(search(smac)) == 2


def test_a_search_that_is_reset_is_the_same_once_more(tmp_path: Path) -> None:
    """SMAC's selectors go on: the last configuration is neither forgotten nor known."""
    smac = facade(tmp_path, gbqr(**QUICK), use_default_config=True)
    known = search(smac)
    smac.optimizer.reset()
    assert search(smac) == known
