"""SMAC runs that are continued with other limits: what may differ besides, and what may not."""

from __future__ import annotations

import pickle
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from automl_plugins.adapters.smac import EIPerSecond, MetaInitialDesign
from ConfigSpace import ConfigurationSpace, Float, Integer, Normal
from distributed import Client
from known_runs import model_space, records
from smac import Scenario
from smac.facade.abstract_facade import AbstractFacade
from smac.initial_design import (
    LatinHypercubeInitialDesign,
    RandomInitialDesign,
    SobolInitialDesign,
)
from smac.runhistory import TrialInfo
from smac_runs import QUICK, StopAfter, facade, few_candidates, origins, search
from smac_runs import known_target as target

from automl_plugins.meta import MetaDataset
from automl_plugins.recipes import gbqr

pytestmark = pytest.mark.usefixtures("nobody_answers")

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def test_a_limit_below_what_was_evaluated_is_the_end(tmp_path: Path) -> None:
    begun: dict[str, Any] = {"name": "mine", "overwrite": False, "proposer": gbqr(**QUICK)}
    assert len(search(facade(tmp_path, callbacks=[StopAfter(6)], **begun))) == 6
    smac = facade(tmp_path, n_trials=4, **begun)
    search(smac)
    assert len(smac.runhistory) == 6


@pytest.mark.parametrize("n", [3, 5])
@pytest.mark.parametrize("other", [{"x": (0.0, 1.0), "z": (0.0, 1.0)}, SPACE | {"y": (5.0, 9.0)}])
def test_a_run_with_another_space_is_left_as_it_is(tmp_path: Path, n: int, other: Any) -> None:
    """Its trials cannot be read with the space that would be written over theirs."""

    def made(space: dict[str, Any], n: int) -> AbstractFacade:
        given: dict[str, Any] = {
            "space": ConfigurationSpace(space, seed=0),
            "name": "mine",
            "n_trials": n,
        }
        given |= {"function": lambda config, seed=0: config["x"], "overwrite": False}
        return facade(tmp_path, gbqr(**QUICK), **given)

    search(made(SPACE, 3))
    files = {path: path.read_bytes() for path in tmp_path.rglob("*.json")}
    assert len(files) == 5
    with pytest.raises((ValueError, RuntimeError)):
        made(other, n)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.json")} == files


PROPOSED: dict[str, Any] = {"proposer": gbqr(**QUICK)}
DESIGNS: dict[str, dict[str, Any]] = {
    "sobol": {**PROPOSED, "initial_design": partial(SobolInitialDesign)},
    "cube": {**PROPOSED, "initial_design": partial(LatinHypercubeInitialDesign)},
    "memory": {
        **PROPOSED,
        "initial_design": partial(MetaInitialDesign, memory=MetaDataset.from_records(records())),
    },
    "seconds": {"acquisition_function": EIPerSecond(), "acquisition_maximizer": few_candidates},
}


@pytest.mark.parametrize("n", [3, 5])
def test_a_run_is_continued_with_a_space_that_was_pickled(tmp_path: Path, n: int) -> None:
    """As in another process; ConfigSpace does not take the copy for the same space."""
    space = ConfigurationSpace(seed=0)
    space.add(Integer("n", (1, 1000), log=True), Float("x", (0, 1), distribution=Normal(0.5, 0.1)))
    copied = pickle.loads(pickle.dumps(space))
    assert copied != space
    given: dict[str, Any] = {"name": "mine", "overwrite": False}
    given |= {"function": lambda config, seed=0: config["x"]}
    known = search(facade(tmp_path, gbqr(**QUICK), space=space, n_trials=3, **given))
    again = search(facade(tmp_path, gbqr(**QUICK), space=copied, n_trials=n, **given))
    assert again[:3] == known and len(again) == n


def test_a_run_is_continued_where_its_folder_is_by_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    known = search(made(Path("there"), 4, **PROPOSED))
    for folder, n in ((tmp_path / "there", 4), (tmp_path / "here", 4), (tmp_path / "here", 6)):
        if not folder.exists():
            (tmp_path / "there").rename(folder)
        again = made(folder, n, **PROPOSED)
        assert Scenario.load(folder / "mine" / "3").output_directory == folder / "mine" / "3"
        trials = search(again)
        assert trials[:4] == known and len(trials) == n


def made(folder: Path, n: int, **given: Any) -> AbstractFacade:
    given = {"space": model_space(), "function": target, "name": "mine", **given}
    return facade(folder, n_trials=n, overwrite=False, **given)


def n_designed(smac: AbstractFacade) -> int:
    return sum(str(origin).startswith("Initial") for origin in origins(smac))


@pytest.mark.parametrize("name", DESIGNS)
def test_the_size_of_an_initial_design_may_follow_from_the_limit(
    tmp_path: Path, name: str
) -> None:
    """A run that has its design behind it gets no more of one, which could be another."""
    given = DESIGNS[name]
    first = made(tmp_path / "parts", 8, **given)
    known = search(first)
    n = n_designed(first)
    for limit in (14, 16):
        again = made(tmp_path / "parts", limit, **given, callbacks=[StopAfter(limit - 1)])
        assert search(again)[: len(known)] == known and len(again.runhistory) == limit - 1
    usual = made(tmp_path / "whole", 16, **given).intensifier.config_selector
    assert n_designed(again) == n < len(usual._initial_design_configs)


def test_an_initial_design_that_was_interrupted_has_the_size_of_the_new_limit(
    tmp_path: Path,
) -> None:
    given = DESIGNS["sobol"]
    assert len(search(made(tmp_path, 12, **given, callbacks=[StopAfter(2)]))) == 2
    again = made(tmp_path, 24, **given)
    trials = search(again)
    assert len(trials) == 24 and n_designed(again) == 6
    assert len({str(trial) for trial in trials}) == 24


SIZES = [partial(SobolInitialDesign, n_configs=n, max_ratio=1.0) for n in (4, 5)]


def test_what_a_limit_does_not_change_in_a_design_is_no_other_limit(tmp_path: Path) -> None:
    search(made(tmp_path, 8, **PROPOSED, initial_design=SIZES[0]))
    with pytest.raises(RuntimeError, match="stopped by the user"):
        made(tmp_path, 8, **PROPOSED, initial_design=SIZES[1])


def test_trials_told_of_another_run_are_no_initial_design(tmp_path: Path) -> None:
    """They keep where they are from, as if this search had begun."""
    other = made(tmp_path / "other", 8, **PROPOSED)
    search(other)
    design = partial(SobolInitialDesign, n_configs=5, max_ratio=1.0)
    given = {**PROPOSED, "initial_design": design}
    first = made(tmp_path / "mine", 20, **given, callbacks=[StopAfter(10)])
    for key, value in other.runhistory.items():
        config = other.runhistory.get_config(key.config_id)
        first.tell(TrialInfo(config, seed=key.seed), value)
    search(first)
    again = made(tmp_path / "mine", 20, **given)
    search(again)
    tried = again.runhistory.get_configs()
    assert all(config in tried for config in design(again.scenario).select_configurations())


@pytest.mark.parametrize("design", [LatinHypercubeInitialDesign, RandomInitialDesign])
def test_a_run_is_not_continued_with_another_initial_design(tmp_path: Path, design: Any) -> None:
    search(made(tmp_path, 8, **DESIGNS["sobol"]))
    with pytest.raises(RuntimeError, match="stopped by the user"):
        made(tmp_path, 9, **PROPOSED, initial_design=partial(design))


@pytest.mark.parametrize("n_workers", [(1, 2), (2, 1), (2, 3)])
def test_the_number_of_workers_may_be_another(
    tmp_path: Path, n_workers: tuple[int, int], client: Client
) -> None:
    def run(n: int, workers: int, **given: Any) -> AbstractFacade:
        given |= {"n_workers": workers, "dask_client": client if workers > 1 else None}
        return made(tmp_path, n, **PROPOSED, **given)

    first, second = n_workers
    known = search(run(5, first))
    with pytest.raises(RuntimeError, match="stopped by the user"):
        run(9, second, crash_cost=1.0)
    again = run(9, second)
    assert Scenario.load(again.scenario.output_directory).n_workers == second
    trials = search(again)
    assert trials[:5] == known and len(trials) == 9


@pytest.mark.parametrize("first", [True, False])
def test_a_client_may_be_given_or_left_out(tmp_path: Path, first: bool, client: Client) -> None:
    # SMAC takes the workers of a client whatever ``n_workers`` of the scenario is.
    known = search(made(tmp_path, 5, **PROPOSED, dask_client=client if first else None))
    again = made(tmp_path, 9, **PROPOSED, dask_client=None if first else client)
    trials = search(again)
    assert trials[:5] == known and len(trials) == 9


def test_another_objective_is_noticed_with_one_worker(tmp_path: Path, client: Client) -> None:
    def changed(config: Any, seed: int = 0) -> float:
        return -target(config)

    search(made(tmp_path, 4, **PROPOSED))
    for limit in (4, 8):
        with pytest.raises(RuntimeError, match="stopped by the user"):
            made(tmp_path, limit, **PROPOSED, function=changed)
    # SMAC does not store the objective of several workers.
    again = {"function": changed, "n_workers": 2, "dask_client": client}
    assert len(made(tmp_path, 8, **PROPOSED, **again).runhistory) == 4
