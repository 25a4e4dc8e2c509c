"""Runs snippets of the README and the docs as they are printed, with small budgets.

Names that a page takes for granted (``objective``, ``space``, ``scenario``, ...) follow from the
framework that a snippet imports, or from a text that occurs in this snippet only.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hyperopt
import numpy as np
import optuna
import pandas as pd
import plotly.graph_objects as go
import pytest
from automl_plugins.adapters import hyperopt as ours_in_hyperopt
from automl_plugins.adapters.optuna import AutoSampler, record
from ConfigSpace import ConfigurationSpace, Float
from sklearn.datasets import load_iris, load_wine
from smac import Scenario

from automl_plugins import replay

N_TRIALS = 4  # of each search, in place of the page's number
ENOUGH = 10  # trials until a committee proposes
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(text: str) -> list[tuple[str, str]]:
    """Language and code of each block of a page."""
    return BLOCK.findall(text)


def snippets(text: str) -> list[str]:
    """The Python of a page."""
    return [code for language, code in blocks(text) if language == "python"]


def run_snippet(code: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a snippet in the empty folder ``path``; every ``.show()`` must show a figure."""
    n_trials = ENOUGH if "plot_member_trust" in code else N_TRIALS
    figures = make_small(monkeypatch, path, n_trials)
    exec(compile(code, "snippet", "exec"), given_to(code, path) | {"__name__": "__main__"})
    assert len(figures) == code.count(".show()")


def given_to(code: str, path: Path) -> dict[str, Any]:
    """The names that a snippet takes for granted, with their values."""
    for key, prepare in SPECIAL.items():
        if key in code:
            return prepare(path)
    frameworks = {"hyperopt": in_hyperopt, "smac": in_smac}
    used = [prepare for name, prepare in frameworks.items() if f".{name}" in code]
    given: dict[str, Any] = {}
    for prepare in used or [in_optuna]:
        given |= prepare(path)
    return given


# --- names that snippets take for granted -----------------------------------------------------


def branches(trial: optuna.Trial) -> float:
    algorithm = trial.suggest_categorical("algorithm", ["svm", "forest"])
    if algorithm == "svm":
        return abs(trial.suggest_float("C", 1e-3, 1e3, log=True) - 1.0)
    return trial.suggest_int("depth", 1, 9) / 9 + 0.1


def of_lightgbm(trial: optuna.Trial) -> float:
    leaves = trial.suggest_int("num_leaves", 4, 255, log=True)
    return abs(leaves - 31) + trial.suggest_float("learning_rate", 0.01, 0.5, log=True)


def in_optuna(_: Path) -> dict[str, Any]:
    quiet = optuna.samplers.RandomSampler(seed=0)
    earlier = [optuna.create_study(study_name=name, sampler=quiet) for name in ("one", "two")]
    for study in earlier:
        study.optimize(branches, n_trials=6)
    return {"objective": branches, "earlier_studies": earlier}


def in_a_storage(path: Path) -> dict[str, Any]:
    storage = f"sqlite:///{path / 'studies.db'}"
    study = optuna.create_study(study_name="one", storage=storage)
    study.optimize(branches, n_trials=6)
    return in_optuna(path)


def a_search(path: Path) -> dict[str, Any]:
    study = optuna.create_study(sampler=AutoSampler(seed=0))
    study.optimize(branches, n_trials=10)
    return {"study": study}


def to_convert(path: Path) -> dict[str, Any]:
    given = in_hyperopt(path)
    return given | {"trials": given["trials_1"], "objective": branches_of_hyperopt}


def branches_of_hyperopt(trial: optuna.Trial) -> float:
    if trial.suggest_categorical("model", ["model[0]", "model[1]"]) == "model[0]":
        return trial.suggest_float("C", 0.0, 1.0)
    return trial.suggest_int("d", 1, 9) / 9


def runs_of_mlflow(_: Path) -> dict[str, Any]:
    """A frame as ``mlflow.search_runs`` returns it: parameters are text."""
    rng = np.random.default_rng(0)
    kernel = rng.choice(["rbf", "linear"], 20)
    start = pd.Timestamp("2026-01-01", tz="UTC") + pd.to_timedelta(np.arange(20), unit="min")
    frame = pd.DataFrame(
        {
            "run_id": [f"{i:032x}" for i in range(20)],
            "experiment_id": ["1"] * 10 + ["2"] * 10,
            "status": ["FINISHED"] * 8 + ["FAILED", "RUNNING"] + ["FINISHED"] * 10,
            "artifact_uri": "mlruns",
            "start_time": start,
            "end_time": start + pd.to_timedelta(rng.integers(1, 30, 20), unit="s"),
            "metrics.loss": rng.random(20),
            "params.C": [f"{c}" for c in 10.0 ** rng.uniform(-2, 3, 20)],
            "params.gamma": ["0.01" if name == "rbf" else None for name in kernel],
            "params.kernel": kernel,
            "tags.mlflow.user": "me",
        }
    )
    frame.loc[frame["status"] != "FINISHED", "metrics.loss"] = np.nan
    return {"mlflow_runs": frame}


def runs_of_wandb(_: Path) -> dict[str, Any]:
    """Lists of runs as ``wandb.Api().runs`` gives them, by project."""
    rng = np.random.default_rng(0)

    def run(state: str) -> Any:
        finished = state == "finished"
        return SimpleNamespace(
            state=state,
            config={"C": float(rng.random()), "kernel": "rbf", "_wandb": {}},
            summary={"loss": float(rng.random()), "_runtime": 3.0} if finished else {},
        )

    states = ["finished"] * 6 + ["crashed", "running"]
    return {"wandb_runs": {name: [run(s) for s in states] for name in ("one", "two")}}


def loss(config: dict[str, Any]) -> float:
    time.sleep(0.005)  # else a budget in seconds means too many evaluations
    return float(config.get("C", config.get("depth", 3) / 9))


def in_hyperopt(_: Path) -> dict[str, Any]:
    hp = hyperopt.hp
    space = hp.choice("model", [{"C": hp.uniform("C", 0, 1)}, {"depth": hp.uniformint("d", 1, 9)}])

    def searched(seed: int) -> hyperopt.Trials:
        trials = hyperopt.Trials()
        rng = np.random.default_rng(seed)
        hyperopt.fmin(
            loss,
            space,
            hyperopt.rand.suggest,
            6,
            trials=trials,
            rstate=rng,
            show_progressbar=False,
        )
        return trials

    given = {
        "space": space,
        "trials": hyperopt.Trials(),
        "trials_1": searched(1),
        "trials_2": searched(2),
    }
    return {**given, "fn": loss, "objective": loss}


def in_smac(path: Path) -> dict[str, Any]:
    space = ConfigurationSpace()
    space.add(Float("learning_rate", (0.01, 0.5), log=True), Float("subsample", (0.4, 1.0)))
    scenario = Scenario(
        space, deterministic=True, n_trials=N_TRIALS, seed=1, output_directory=path / "smac"
    )

    def train(config: Any, seed: int = 0) -> float:
        return float(config["learning_rate"] + config["subsample"])

    X, y = load_iris(return_X_y=True)
    return {"scenario": scenario, "train": train, "X": X, "y": y}


def a_store(path: Path) -> dict[str, Any]:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(of_lightgbm, n_trials=6)
    with_store = record("rates.db", task="iris", meta_features={"NumberOfClasses": 3.0})
    with_store.add(study)
    return in_smac(path)


def with_data(path: Path) -> dict[str, Any]:
    space = {
        "num_leaves": optuna.distributions.IntDistribution(4, 255, log=True),
        "learning_rate": optuna.distributions.FloatDistribution(0.01, 0.5, log=True),
    }
    X, y = load_iris(return_X_y=True)
    X_new, y_new = load_wine(return_X_y=True)
    return {
        **{"objective": of_lightgbm, "space": space, "X": X, "y": y},
        **{"X_new": X_new, "y_new": y_new},
        "study": optuna.create_study(),
        "new_study": optuna.create_study(),
    }


def recorded(path: Path) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    grid = [(c, d) for c in np.geomspace(0.01, 100, 5) for d in range(1, 7)]
    rows = [
        {"C": c, "depth": d, "dataset": name, "seconds": 1.0 + d, "loss": loss}
        for name in ("one", "two", "three")
        for (c, d), loss in zip(grid, rng.random(len(grid)), strict=True)
    ]
    pd.DataFrame(rows).to_csv(path / "runs.csv", index=False)
    return {}


SPECIAL: dict[str, Callable[[Path], dict[str, Any]]] = {
    "enqueue_initial_design": with_data,
    "recipes import tst": a_store,
    "Table.from_frame": recorded,
    "sqlite:///studies.db": in_a_storage,
    "import convert": to_convert,
    "mlflow": runs_of_mlflow,
    "process.submit(train": lambda _: {"train": abs},  # the processes import nothing for it
    "wandb": runs_of_wandb,
    "explain(study.best_trial))\nplot_member_trust": a_search,
}
"""By a text in the snippet, where the imported frameworks do not determine what it needs."""


# --- small budgets ----------------------------------------------------------------------------


def make_small(monkeypatch: pytest.MonkeyPatch, path: Path, n_trials: int) -> list[go.Figure]:
    """Set small budgets and the working folder; return the list that collects shown figures."""
    monkeypatch.chdir(path)
    figures: list[go.Figure] = []
    monkeypatch.setattr(go.Figure, "show", lambda figure: figures.append(figure))
    few = {"n_trials": n_trials, "max_evals": n_trials}
    limits: list[tuple[Any, str, str, dict[str, Any]]] = [
        (optuna.Study, "optimize", "n_trials", few),
        (hyperopt, "fmin", "max_evals", few | {"timeout": 60}),
        (ours_in_hyperopt, "boasf", "", {"max_evals": 8, "budget_seconds": 0.03}),
        (ours_in_hyperopt, "boasf_fmin", "", {"max_evals": 8, "budget_seconds": 0.03}),
        (replay, "replay", "", {"budget": 3, "seed": 0, "n_jobs": 1}),
    ]
    for owner, name, count, limit in limits:
        monkeypatch.setattr(owner, name, _limited(getattr(owner, name), count, limit))
    return figures


def _limited(function: Callable[..., Any], count: str, limits: dict[str, Any]) -> Any:
    """``function`` with smaller values of the options that are given.

    If a ``timeout`` is given, the option ``count`` limits the trials as well.
    """

    def limited(*args: Any, **options: Any) -> Any:
        if options.get("timeout"):
            options[count] = limits[count]
        return function(*args, **{**options, **{k: limits[k] for k in limits if k in options}})

    return limited
