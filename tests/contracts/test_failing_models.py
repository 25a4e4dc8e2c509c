"""A model that raises at any point does not end a search: one warning, and it continues."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from automl_plugins.adapters.hyperopt import auto, ei_per_second, gbqr, pmf, tst
from automl_plugins.adapters.optuna import (
    AutoSampler,
    BlendedSampler,
    EIPerSecondSampler,
    GBQRSampler,
    PMFSampler,
    SurrogateSampler,
    TSTSampler,
)
from automl_plugins.adapters.smac import AutoFacade, GBQRFacade, ProposerConfigSelector
from ConfigSpace import ConfigurationSpace, Float
from hyperopt import STATUS_FAIL, STATUS_OK, Trials, fmin, hp
from sklearn.base import BaseEstimator
from smac import Scenario

from automl_plugins import recipes
from automl_plugins.meta import TaskRecord
from automl_plugins.meta.factorization import MatrixFactorization
from automl_plugins.proposers import with_memory
from automl_plugins.surrogates import (
    Feasibility,
    GaussianProcess,
    QuantileBoosting,
    RunningTime,
    TwoStageTransfer,
)
from automl_plugins.surrogates.averaged_process import AveragedProcess
from automl_plugins.surrogates.distance_aware import DistanceAware

N = 12


def memory() -> list[TaskRecord]:
    """Four tasks of the search space below."""
    rng = np.random.default_rng(0)
    known = []
    for task in range(4):
        x = rng.random((15, 2))
        configurations = [{"x": float(a), "y": float(b)} for a, b in x]
        losses = (x[:, 0] - 0.2 * task) ** 2 + x[:, 1]
        known.append(TaskRecord(f"task {task}", configurations, losses, space=space()))
    return known


def space() -> ConfigurationSpace:
    made = ConfigurationSpace(seed=0)
    made.add(Float("x", (0.0, 1.0)), Float("y", (0.0, 1.0)))
    return made


def loss(x: float, y: float) -> float:
    if x > 0.8:
        raise RuntimeError("the objective fails there")
    return (x - 0.3) ** 2 + y


def fail(*_: Any, **__: Any) -> Any:
    raise ZeroDivisionError("on purpose")


# --- Optuna -----------------------------------------------------------------------------------

# The owner and name of the part that raises, and a sampler that calls it.
PARTS: dict[str, tuple[Any, str, Callable[[], Any]]] = {
    "fit": (QuantileBoosting, "fit", lambda: GBQRSampler(seed=1)),
    "predict": (QuantileBoosting, "predict", lambda: GBQRSampler(seed=1)),
    "beside, of trees": (DistanceAware, "beside", lambda: GBQRSampler(seed=1)),
    "beside, of a process": (AveragedProcess, "beside", lambda: AutoSampler(seed=1, memory=None)),
    "held_out": (AveragedProcess, "held_out", lambda: AutoSampler(seed=1, memory=None)),
    "seconds": (RunningTime, "fit", lambda: EIPerSecondSampler(seed=1, cost=float_of_number)),
    "seconds asked": (
        RunningTime,
        "predict_seconds",
        lambda: EIPerSecondSampler(seed=1, cost=float_of_number),
    ),
    "success": (Feasibility, "fit", lambda: GBQRSampler(seed=1)),
    "success asked": (Feasibility, "predict", lambda: GBQRSampler(seed=1)),
    "process": (
        GaussianProcess,
        "fit",
        lambda: SurrogateSampler(surrogate="gaussian_process", seed=1),
    ),
    "transfer": (TwoStageTransfer, "predict", lambda: TSTSampler(memory(), seed=1)),
    "promise": (TwoStageTransfer, "promise", lambda: TSTSampler(memory(), seed=1)),
    "factorisation": (MatrixFactorization, "fit", lambda: PMFSampler(memory(), seed=1)),
    "design": (with_memory, "diverse", lambda: BlendedSampler(memory(), seed=1)),
}


def float_of_number(trial: optuna.trial.FrozenTrial) -> float:
    return 1.0 + trial.number % 3


@pytest.mark.parametrize("part", PARTS)
def test_an_optuna_study_goes_on(
    part: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    owner, name, make = PARTS[part]
    monkeypatch.setattr(owner, name, fail)
    optuna.logging.enable_propagation()
    study = optuna.create_study(sampler=make())
    running = study.ask()  # so that another trial is running
    running.suggest_float("x", 0, 1), running.suggest_float("y", 0, 1)

    def objective(trial: optuna.Trial) -> float:
        return loss(trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1))

    study.optimize(objective, n_trials=N, catch=RuntimeError)
    assert len(study.trials) == N + 1
    assert all(trial.params.keys() == {"x", "y"} for trial in study.trials)
    logged = {r for r in caplog.records if "automl_plugins" in r.name}  # some are logged twice
    warned = [r for r in logged if r.levelno >= logging.WARNING]
    assert len(warned) == 1 and "on purpose" in warned[0].getMessage()


# One part of each sampler.
WHOLE = ("fit", "held_out", "transfer")
OTHERS = ("seconds", "process", "factorisation", "design")


@pytest.mark.parametrize(
    "part", [*WHOLE, *(pytest.param(part, marks=pytest.mark.slow) for part in OTHERS)]
)
def test_no_model_is_written_out_where_none_fails(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = list[str]()

    def record(model: BaseEstimator) -> str:
        written.append(type(model).__name__)  # scikit-learn takes seconds for a fitted transfer
        return "model"

    monkeypatch.setattr(BaseEstimator, "__repr__", record)
    study = optuna.create_study(sampler=PARTS[part][2]())
    study.optimize(
        lambda t: loss(t.suggest_float("x", 0, 1), t.suggest_float("y", 0, 1)),
        n_trials=N,
        catch=RuntimeError,
    )
    assert not written


# --- Hyperopt ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("owner", "name", "algo"),
    [
        (QuantileBoosting, "fit", lambda: gbqr(seed=1)),
        (AveragedProcess, "held_out", lambda: auto(seed=1, memory=None)),
        (RunningTime, "predict_seconds", lambda: ei_per_second(seed=1)),
        (TwoStageTransfer, "predict", lambda: tst(memory=memory(), seed=1)),
        (MatrixFactorization, "fit", lambda: pmf(memory=memory(), seed=1)),
    ],
)
def test_a_hyperopt_search_goes_on(
    owner: Any,
    name: str,
    algo: Callable[[], Any],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(owner, name, fail)

    def objective(config: dict[str, float]) -> dict[str, Any]:
        try:
            return {"loss": loss(**config), "status": STATUS_OK, "seconds": 1.0}
        except RuntimeError:
            return {"status": STATUS_FAIL, "seconds": 1.0}

    trials = Trials()
    fmin(
        objective,
        {"x": hp.uniform("x", 0, 1), "y": hp.uniform("y", 0, 1)},
        algo=algo(),
        max_evals=N,
        trials=trials,
        rstate=np.random.default_rng(0),
        show_progressbar=False,
    )
    assert len(trials.trials) == N
    assert len([r for r in caplog.records if "on purpose" in r.getMessage()]) == 1


# --- SMAC -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("owner", "name", "facade", "proposer"),
    [
        (QuantileBoosting, "fit", GBQRFacade, None),
        (AveragedProcess, "held_out", AutoFacade, None),
        (TwoStageTransfer, "predict", GBQRFacade, lambda: recipes.tst(memory())),
    ],
)
def test_a_smac_search_goes_on(
    owner: Any,
    name: str,
    facade: Any,
    proposer: Callable[[], Any] | None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(owner, name, fail)
    scenario = Scenario(space(), n_trials=N, deterministic=True, output_directory=tmp_path, seed=1)
    options: dict[str, Any] = {}
    if proposer is not None:
        options["config_selector"] = ProposerConfigSelector(scenario, proposer())
    found = facade(scenario, lambda config, seed=0: loss(**config), logging_level=False, **options)
    found.optimize()
    assert len(found.runhistory) == N
