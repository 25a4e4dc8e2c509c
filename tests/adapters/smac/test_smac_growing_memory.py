"""SMAC runs that are continued after others have recorded into the memory of their design."""

from __future__ import annotations

import json
import logging
import pickle
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.smac import (
    AutoFacade,
    EIPerSecond,
    GBQRFacade,
    KNNInitialDesign,
    MetaInitialDesign,
)
from ConfigSpace import Configuration
from known_runs import TASK, model_space, records
from smac import HyperparameterOptimizationFacade
from smac.facade.abstract_facade import AbstractFacade
from smac.initial_design import LatinHypercubeInitialDesign
from smac_runs import QUICK, StopAfter, facade, few_candidates, origins, scenario, search
from smac_runs import known_target as target

from automl_plugins.meta import MetaStore, TaskRecord
from automl_plugins.recipes import gbqr

pytestmark = pytest.mark.usefixtures("nobody_answers")


def worst(known: list[TaskRecord]) -> list[TaskRecord]:
    """The same tasks, on which what was best is worst."""
    return [replace(record, losses=-record.losses) for record in known]


SMALL = TaskRecord("small", [{"model": "svm", "C": 0.5}], np.array([0.3]), space=model_space())
EARLY, LATE = records(), [*worst(records()), SMALL]
CHOOSES: dict[str, dict[str, Any]] = {
    "proposer": {"proposer": gbqr(**QUICK)},
    "selector of SMAC": {
        "acquisition_function": EIPerSecond(),
        "acquisition_maximizer": few_candidates,
    },
}


def made(folder: Path, memory: Any = EARLY, n: int = 10, **given: Any) -> AbstractFacade:
    """A run with a name; ``given`` are options of the design, and parts of the facade."""
    design = given.pop("initial_design", MetaInitialDesign)
    own = ("design", "mode", "n_configs", "meta_features", "additional_configs", "k", "default")
    options = {name: given.pop(name) for name in own if name in given}
    if design is MetaInitialDesign:
        options = {"n_configs": 4, "mode": "replace", **options}
    parts: dict[str, Any] = {
        "space": model_space(),
        "function": target,
        "name": "mine",
        "overwrite": False,
    }
    if (default := options.pop("default", None)) is not None:
        options["default"] = default(scenario(folder, model_space(), n_trials=n))
    design = partial(design, memory=memory, **options)
    return facade(folder, n_trials=n, **parts | given, initial_design=design)


def stored(smac: AbstractFacade) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_file(smac).read_text())["_meta"]
    return found


def _file(smac: AbstractFacade) -> Path:
    return Path(smac.scenario.output_directory, "scenario.json")


def test_the_memories_here_suggest_other_configurations(tmp_path: Path) -> None:
    first, other = (
        MetaInitialDesign(scenario(tmp_path, model_space()), memory, n_configs=4, mode="replace")
        for memory in (EARLY, LATE)
    )
    assert [a == b for a, b in zip(_values(first), _values(other), strict=True)][:3] == [False] * 3
    assert sum(values not in _values(first) for values in _values(other)) == 2


def _values(design: MetaInitialDesign) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = design.suggestions.configurations
    return found


# --- the same suggestions -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", [HyperparameterOptimizationFacade, GBQRFacade, AutoFacade])
def test_one_more_task_that_changes_no_suggestion_changes_nothing(
    tmp_path: Path, kind: type[AbstractFacade]
) -> None:
    """Not for SMAC's own facades either, which compare all that a design says of itself."""
    with MetaStore(tmp_path / "runs.db") as store:
        for record in EARLY:
            store.add(record)
        given: dict[str, Any] = {
            "kind": kind,
            "memory": store,
            "design": "portfolio",
            "n_configs": 1,
        }
        first = made(tmp_path, **given, callbacks=[StopAfter(3)])
        known, said = search(first), stored(first)
        told = _design(tmp_path, store).suggestions[0]
        store.add(replace(EARLY[7], name="of a colleague"))
        by_now = _design(tmp_path, store).suggestions[0]
        assert by_now.score != told.score and by_now.reason != told.reason
        again = made(tmp_path, **given, callbacks=[StopAfter(5)])
        assert stored(again) == said
        assert search(again)[:3] == known and len(again.runhistory) == 5


def _design(folder: Path, store: MetaStore) -> MetaInitialDesign:
    run = scenario(folder, model_space())
    return MetaInitialDesign(run, store, design="portfolio", n_configs=1, mode="replace")


# --- other suggestions --------------------------------------------------------------------------


@pytest.mark.parametrize("chooses", CHOOSES)
@pytest.mark.parametrize("n_done", [2, 4, 7])
def test_a_run_keeps_the_suggestions_with_which_it_began(
    tmp_path: Path, n_done: int, chooses: str
) -> None:
    """Whether it was interrupted while it evaluated them or later, and however often."""
    given = CHOOSES[chooses]
    whole = made(tmp_path / "whole", **given)
    trials = search(whole)
    # Measured seconds decide what SMAC's selector chooses here, so only the design is repeated.
    n_same = 10 if chooses == "proposer" else 4
    first = search(made(tmp_path / "parts", **given, callbacks=[StopAfter(n_done)]))
    assert first[:n_same] == trials[: min(n_same, n_done)]
    for n in (n_done + 1, 10):
        again = made(tmp_path / "parts", LATE, **given, callbacks=[StopAfter(n)])
        found = search(again)
        assert found[:n_same] == trials[: min(n_same, n)] and len(found) == n
    # SMAC's local search writes its name on what it begins with, too.
    if chooses == "proposer":
        suggested = ["Initial Design: diverse, suggested by earlier tasks"] * 4
        assert origins(again)[:4] == origins(whole)[:4] == suggested
    assert not any(str(origin).startswith("Initial") for origin in origins(again)[4:])


def test_with_other_limits_too(tmp_path: Path) -> None:
    given = CHOOSES["proposer"]
    trials = search(made(tmp_path / "whole", n=14, **given))
    search(made(tmp_path / "parts", n=8, **given, callbacks=[StopAfter(3)]))
    assert search(made(tmp_path / "parts", LATE, n=14, **given)) == trials


def test_what_is_left_of_a_default_design_and_additional_configurations_is_kept(
    tmp_path: Path,
) -> None:
    mine = Configuration(model_space(), values={"model": "forest", "depth": 2})
    given = {**CHOOSES["proposer"], "n": 24, "mode": "part", "n_configs": 2}
    given["additional_configs"] = [mine]
    whole = made(tmp_path / "whole", **given)
    trials = search(whole)
    n = sum(str(origin).startswith("Initial") for origin in origins(whole))
    assert n == 7 and trials[6]["depth"] == 2  # a quarter of the trials, and one
    search(made(tmp_path / "parts", **given, callbacks=[StopAfter(1)]))
    again = made(tmp_path / "parts", LATE, **given)
    assert search(again) == trials
    kinds = [str(origin).split(",")[0] for origin in origins(again)[:7]]
    assert kinds == ["Initial Design: diverse"] * 2 + [
        "Initial Design: SobolInitialDesign"
    ] * 4 + ["Initial design"]


def test_an_additional_configuration_that_is_suggested_by_now_is_none(tmp_path: Path) -> None:
    other = made(tmp_path / "other", LATE).intensifier.config_selector._initial_design_configs[0]
    given = {**CHOOSES["proposer"], "additional_configs": [other]}
    trials = search(made(tmp_path / "whole", **given))
    search(made(tmp_path / "parts", **given, callbacks=[StopAfter(2)]))
    again = made(tmp_path / "parts", LATE, **given)
    assert stored(again)["initial_design"]["additional_configs"] == []
    assert search(again) == trials
    given["additional_configs"] = [Configuration(model_space(), {"model": "svm", "C": 77.0})]
    with pytest.raises(RuntimeError, match="stopped by the user"):
        made(tmp_path / "parts", LATE, **given)


def test_meta_features_with_which_there_was_nothing_to_compare(tmp_path: Path) -> None:
    """Those of the task are not computed if the memory has none, which others may add."""
    given = {**CHOOSES["proposer"], "meta_features": TASK, "callbacks": [StopAfter(3)]}
    undescribed = {**given, "meta_features": None}
    trials = search(made(tmp_path, **undescribed))
    assert search(made(tmp_path, LATE, **given))[:3] == trials
    search(made(tmp_path / "described", **given))
    assert len(made(tmp_path / "described", LATE, **given).runhistory) == 3
    with pytest.raises(RuntimeError, match="stopped by the user"):
        made(tmp_path / "described", LATE, **given | {"meta_features": {"NumberOfInstances": 9}})


def test_nearest_tasks_by_default_are_others_and_more_by_now(tmp_path: Path) -> None:
    given = {**CHOOSES["proposer"], "initial_design": KNNInitialDesign, "n": 20}
    first = made(tmp_path, EARLY[:1], **given, callbacks=[StopAfter(2)])
    known = search(first)
    again = made(tmp_path, LATE, **given)
    assert search(again)[:2] == known
    suggested = stored(first)["initial_design"]["n_configs"]
    assert sum("suggested" in str(origin) for origin in origins(again)) == suggested


@pytest.mark.parametrize(
    "changed",
    [
        {"design": "portfolio"},
        {"mode": "add"},
        {"default": partial(LatinHypercubeInitialDesign)},
        {"initial_design": KNNInitialDesign, "mode": "replace"},
        {"crash_cost": 1.0},
    ],
    ids=["design", "mode", "default", "class", "scenario"],
)
def test_another_memory_excuses_nothing_else(tmp_path: Path, changed: dict[str, Any]) -> None:
    search(made(tmp_path, **CHOOSES["proposer"], callbacks=[StopAfter(5)]))
    for memory in (EARLY, LATE):
        with pytest.raises(RuntimeError, match="stopped by the user"):
            made(tmp_path, memory, **CHOOSES["proposer"], **changed)


def test_the_log_says_that_the_suggestions_are_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("smac.facade.abstract_facade", "automl_plugins.adapters.smac.facades"):
        monkeypatch.setattr(f"{module}.setup_logging", lambda level: None)
    caplog.set_level(logging.INFO, logger="smac")

    def run(memory: Any) -> GBQRFacade:
        own = scenario(tmp_path, model_space(), name="mine")
        design = MetaInitialDesign(own, memory, n_configs=4)
        return GBQRFacade(own, target, initial_design=design, callbacks=[StopAfter(2)])

    for memory, n in ((EARLY, 0), (EARLY, 0), (LATE, 1)):
        caplog.clear()
        run(memory).optimize()
        said = [r.message for r in caplog.records if r.name == "smac.automl_plugins"]
        assert sum("than when the run began: it keeps its own" in m for m in said) == n


# --- damaged files ---------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [{"C": 1.0}, {"model": "tree"}, {"model": "svm"}])
def test_smac_asks_what_to_do_with_suggestions_of_another_space(
    tmp_path: Path, wrong: dict[str, Any]
) -> None:
    first = made(tmp_path, **CHOOSES["proposer"], callbacks=[StopAfter(3)])
    search(first)
    known = json.loads(_file(first).read_text())
    known["_meta"]["initial_design"]["suggestions"][1] = {"configuration": wrong}
    _file(first).write_text(json.dumps(known))
    with pytest.raises(RuntimeError, match="stopped by the user"):
        made(tmp_path, LATE, **CHOOSES["proposer"])


# --- SMAC's own facades --------------------------------------------------------------------------


def kept(path: Path, make: Callable[[], MetaInitialDesign]) -> Any:
    """As in docs/recipes.md."""
    if not path.exists():
        path.write_bytes(pickle.dumps(make().suggestions))
    return pickle.loads(path.read_bytes())


def test_suggestions_that_are_kept_continue_a_run_of_smac(tmp_path: Path) -> None:
    def run(memory: Any, n: int) -> AbstractFacade:
        own = scenario(tmp_path, model_space())
        make = partial(MetaInitialDesign, own, memory, meta_features=TASK, n_configs=4)
        design = kept(tmp_path / "design.pkl", make)
        return made(
            tmp_path,
            None,
            kind=HyperparameterOptimizationFacade,
            design=design,
            callbacks=[StopAfter(n)],
        )

    known = search(run(EARLY, 3))
    again = run(LATE, 6)
    assert len(again.runhistory) == 3 and search(again)[:3] == known
    given: dict[str, Any] = {"kind": HyperparameterOptimizationFacade, "meta_features": TASK}
    search(made(tmp_path / "not kept", **given, callbacks=[StopAfter(3)]))
    with pytest.raises(RuntimeError, match="stopped by the user"):
        made(tmp_path / "not kept", LATE, **given)
