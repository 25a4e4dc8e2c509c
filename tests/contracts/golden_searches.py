"""Whole short searches on few configurations: replays, and BOASF with its rounds."""

from __future__ import annotations

import math
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
from automl_plugins.adapters import hyperopt as our_hyperopt
from automl_plugins.adapters import optuna as our_optuna
from automl_plugins.adapters import smac as our_smac
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Integer
from goldens import NUMERICS, Case
from hyperopt import STATUS_FAIL, STATUS_OK, Trials, hp

from automl_plugins import recipes
from automl_plugins.replay import Table, proposing, replay

# --- replays ----------------------------------------------------------------------------------


def loss_of(c: dict[str, Any]) -> float:
    of_c, of_d = 0.05 * "uvw".index(c["c"]), 0.03 * c.get("d", 2) % 0.1
    return float(round(((c["a"] - 7) / 11) ** 2 + of_c + of_d, 4))


def make_table(*, curves: bool = False) -> Table:
    """An invented table of 60 configurations, some of which failed."""
    space = ConfigurationSpace()
    space.add(Integer("a", (0, 11)), Categorical("c", ["u", "v", "w"]), Integer("d", (1, 3)))
    space.add(EqualsCondition(space["d"], space["c"], "u"))
    configs: list[dict[str, Any]] = [{"a": a, "c": c} for a, c in product(range(12), "vw")]
    configs += [{"a": a, "c": "u", "d": d} for a, d in product(range(12), (1, 2, 3))]
    losses = [math.nan if c["a"] in (3, 10) and c["c"] != "v" else loss_of(c) for c in configs]
    seconds = [round(1 + 0.5 * c["a"] + 3 * ("uvw".index(c["c"]) == 1), 2) for c in configs]
    steps = np.array([1.0, 2.0, 4.0])
    return Table(
        "invented",
        space,
        configs,
        losses,
        seconds=seconds,
        curves=np.array(losses)[:, None] + 0.4 / steps - 0.1 if curves else None,
        steps=steps.tolist() if curves else (),
    )


def replay_trials(folder: Path) -> Any:
    methods = {
        "core": proposing("core", lambda problem: recipes.gbqr()),
        "optuna": our_optuna.optimizer(our_optuna.GBQRSampler),
        "hyperopt": our_hyperopt.optimizer(our_hyperopt.gbqr),
        "smac": our_smac.optimizer(our_smac.GBQRFacade),
    }
    return tidy(replay(methods, make_table(), budget=14, seed=3, progress=False))


def replay_seconds(folder: Path) -> Any:
    methods = {
        "optuna": our_optuna.optimizer(our_optuna.EIPerSecondSampler, cost="seconds"),
        "hyperopt": our_hyperopt.optimizer(our_hyperopt.ei_per_second),
    }
    options: dict[str, Any] = {"budget": 40, "unit": "seconds", "n_workers": 2}
    return tidy(replay(methods, make_table(), progress=False, **options))


def replay_curves(folder: Path) -> Any:
    pruners = {
        "pruned": optuna.pruners.MedianPruner(n_startup_trials=4),
        "filtered": our_optuna.SuccessiveFilteringPruner(seed=1),
    }
    methods = {
        name: our_optuna.optimizer(our_optuna.GBQRSampler, pruner=pruner)
        for name, pruner in pruners.items()
    }
    return tidy(replay(methods, make_table(curves=True), budget=12, seed=5, progress=False))


def tidy(frame: pd.DataFrame) -> dict[str, Any]:
    return {"columns": list(frame.columns), "rows": frame.to_numpy(dtype=object).tolist()}


# --- BOASF ------------------------------------------------------------------------------------

ARMS = ("linear", "forest", "network", "nothing")


def evaluate(arm: str, values: dict[str, float]) -> float | None:
    """The loss of a configuration; None where it fails."""
    if arm == "linear":
        return round(0.24 + 0.2 * abs(values["c"] - 0.4), 6)
    if arm == "forest":
        return round(0.22 + 0.4 * abs(values["depth"] - 6) / 10, 6)
    if arm == "network":
        return None if values["rate"] > 0.8 else round(0.2 + abs(values["rate"] - 0.5), 6)
    return 0.9


def seconds_of(arm: str, values: dict[str, float]) -> float:
    return {"linear": 0.5, "forest": 1.0 + values.get("depth", 0), "network": 4.0}.get(arm, 0.1)


def ask_trial(trial: optuna.Trial) -> tuple[str, dict[str, float]]:
    arm = trial.suggest_categorical("algorithm", ARMS)
    if arm == "linear":
        return arm, {"c": trial.suggest_float("c", 0, 1)}
    if arm == "forest":
        return arm, {"depth": trial.suggest_int("depth", 1, 10)}
    if arm == "network":
        return arm, {"rate": trial.suggest_float("rate", 0, 1)}
    return arm, {}


def objective(trial: optuna.Trial) -> float:
    arm, values = ask_trial(trial)
    trial.set_user_attr("seconds", seconds_of(arm, values))
    loss = evaluate(arm, values)
    if loss is None:
        raise RuntimeError("It diverges.")
    return loss


def boasf_in_optuna(folder: Path, **options: Any) -> Any:
    sampler = our_optuna.BOASFSampler(
        cost="seconds", stop_when_spent=True, seed=options.pop("seed"), **options
    )
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=60, catch=(RuntimeError,))
    arms = [ARMS.index(trial.params["algorithm"]) for trial in study.trials]
    return describe(our_optuna.arm_report(study), arms)


SPACE = hp.choice(
    "algorithm",
    [
        {"type": "linear", "c": hp.uniform("c", 0, 1)},
        {"type": "forest", "depth": hp.randint("depth", 1, 11)},
        {"type": "network", "rate": hp.uniform("rate", 0, 1)},
        {"type": "nothing"},
    ],
)
CELLS = {"x": hp.uniform("x", 0, 1), "y": hp.loguniform("y", -4, 0)}


def result(point: dict[str, Any]) -> dict[str, Any]:
    arm = str(point["type"])
    loss = evaluate(arm, point)
    told = {"status": STATUS_FAIL} if loss is None else {"status": STATUS_OK, "loss": loss}
    return told | {"seconds": seconds_of(arm, point)}


def result_in_cell(point: dict[str, Any]) -> dict[str, Any]:
    loss = round((point["x"] - 0.8) ** 2 + abs(point["y"] - 0.1), 6)
    return {"status": STATUS_OK, "loss": loss, "seconds": round(1 + point["x"], 6)}


def boasf_in_hyperopt(folder: Path, *, seed: int, cells: bool = False, **options: Any) -> Any:
    trials = Trials()
    space = CELLS if cells else SPACE
    our_hyperopt.boasf_fmin(
        result_in_cell if cells else result,
        space,
        trials=trials,
        cost="seconds",
        rstate=np.random.default_rng(seed),
        verbose=False,
        **options,
    )
    report = our_hyperopt.arm_report(trials, space)
    return describe(report, report.records.arm.tolist())


def describe(report: Any, arms: list[int]) -> dict[str, Any]:
    """The arms in the order of trials, the figures of the report and the rounds, without texts."""
    frame = report.to_frame().drop(columns=["arm", "reason"]).astype(object)
    return {
        "arms": arms,
        "losses": list(report.losses),
        "opened": list(report.opened),
        "unit": report.unit,
        "table": {
            name: frame[name].astype(object).where(frame[name].notna(), None).tolist()
            for name in frame
        },
        "rounds": [
            {
                "limit": r.limit,
                "decisions": [
                    [d.arm, d.advances, d.score, d.probability, d.share, d.limit]
                    for d in r.decisions
                ],
            }
            for r in report.rounds
        ],
    }


def cases() -> list[Case]:
    frames = {"trials": replay_trials, "seconds": replay_seconds, "curves": replay_curves}
    everything = (*NUMERICS, "optuna", "hyperopt", "smac")
    optuna_cases: dict[str, dict[str, Any]] = {
        "trials": {"n_trials": 36, "seed": 1},
        "seconds": {"seconds": 40.0, "seed": 2},
        "mean": {"n_trials": 30, "rounds": 4, "score": "mean", "carry_debts": False, "seed": 3},
    }
    hyperopt_cases: dict[str, dict[str, Any]] = {
        "trials": {"max_evals": 36, "seed": 1},
        "seconds": {"budget_seconds": 60.0, "seed": 2},
        "paper": {"max_evals": 30, "rounds": 4, "paper": True, "seed": 3},
        "cells": {"max_evals": 30, "split": 2, "seed": 4, "cells": True},
    }
    return [
        *(Case("replays", name, compute, everything) for name, compute in frames.items()),
        *(
            Case("boasf_optuna", name, partial(boasf_in_optuna, **options), (*NUMERICS, "optuna"))
            for name, options in optuna_cases.items()
        ),
        *(
            Case(
                "boasf_hyperopt",
                name,
                partial(boasf_in_hyperopt, **options),
                (*NUMERICS, "hyperopt"),
            )
            for name, options in hyperopt_cases.items()
        ),
    ]
