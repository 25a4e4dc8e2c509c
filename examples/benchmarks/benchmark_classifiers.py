"""Choose among the paper's 16 classifiers and tune them at once, with real training times.

    benchmark_classifiers.py boasf  # BOASF over TPE against TPE, two minutes each
    benchmark_classifiers.py hyperband  # models weighted 2^N against equal weights
    benchmark_classifiers.py boasf --data breast_cancer --seconds 30 --methods "BOASF in Optuna"

A search ends when its evaluations have taken ``--seconds``; proposals are free. Under Hyperband a
configuration is trained on a stratified ninth of the rows, then on a third, then on all.
"""

from __future__ import annotations

import argparse
import logging
import math
import time
from typing import Any

import pandas as pd
from automl_plugins.adapters import hyperopt, optuna
from classifiers import CLASSIFIERS, DATA, Task, search_space
from hyperopt import tpe
from optuna.pruners import HyperbandPruner
from optuna.samplers import TPESampler

from automl_plugins.replay import Method, Outcome, Problem, Prunes, TrialStatus


def boasf(seconds: float) -> dict[str, Method]:
    """BOASF and the methods it is compared with."""
    arms: dict[str, Any] = {"arm": "classifier", "seconds": seconds, "cost": optuna.SECONDS}
    return {
        "BOASF in Optuna": optuna.optimizer("BOASFSampler", **arms),
        "Optuna TPE": optuna.optimizer(TPESampler),
        "BOASF in Hyperopt": hyperopt.optimizer("boasf", budget_seconds=seconds),
        "Hyperopt TPE": hyperopt.optimizer(tpe.suggest),
    }


def hyperband(seconds: float) -> dict[str, Method]:
    """Random search over models under Hyperband."""
    rules: dict[str, Any] = {"2^N": "2^N", "equal": dict.fromkeys(CLASSIFIERS, 1.0)}
    pruner = HyperbandPruner(min_resource=1, max_resource=9, reduction_factor=3)
    return {
        f"weights {name}": optuna.optimizer(
            "WeightedModelSampler", pruner=pruner, arm="classifier", weights=weights
        )
        for name, weights in rules.items()
    }


def search(method: Method, task: Task, ninths: tuple[int, ...], seconds: float) -> pd.DataFrame:
    """The evaluations of a search, one per row."""
    optimizer = method.start(Problem(search_space(), 0, steps=tuple(map(float, ninths))))
    rows, spent = [], 0.0
    while spent < seconds and (proposal := optimizer.ask()) is not None:
        status, loss, start = TrialStatus.COMPLETE, math.nan, time.perf_counter()
        try:
            for part in ninths:
                loss = 1.0 - task.score(proposal.config, part / 9)
                if part == 9 or not isinstance(optimizer, Prunes):
                    continue
                if optimizer.report(proposal, float(part), loss):
                    status = TrialStatus.PRUNED
                    break
        except ValueError:
            status, loss = TrialStatus.FAILED, math.nan
        end = spent + time.perf_counter() - start
        optimizer.tell(proposal, Outcome(status, loss, spent, end))
        score = 1.0 - loss if status == TrialStatus.COMPLETE else math.nan
        rows.append((proposal.config["classifier"], end - spent, score, dict(proposal.config)))
        spent = end
    return pd.DataFrame(rows, columns=["classifier", "seconds", "score", "config"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["boasf", "hyperband"])
    parser.add_argument("--methods", nargs="+")
    parser.add_argument("--data", choices=DATA, default="digits")
    parser.add_argument("--seconds", type=float, default=120.0)
    options = parser.parse_args()
    logging.getLogger("optuna").setLevel(logging.ERROR)
    task = Task(options.data)
    methods = (boasf if options.what == "boasf" else hyperband)(options.seconds)
    ninths = (9,) if options.what == "boasf" else (1, 3, 9)
    for name in options.methods or methods:
        runs = search(methods[name], task, ninths, options.seconds)
        by_arm = runs.groupby("classifier").agg({"score": ["size", "max"], "seconds": "sum"})
        by_arm.columns = ["trials", "best", "seconds"]
        print(f"\n{name}\n{by_arm.sort_values('best', ascending=False).round(4).to_string()}")
        best = runs.nlargest(1, "score").iloc[0]
        print(
            f"{name}: {len(runs)} trials, {runs.seconds.sum():.1f} s; balanced accuracy"
            f" {best.score:.4f} in cross-validation, {task.test_score(best.config):.4f} on test"
            f" data\n  {best.config}",
            flush=True,
        )


if __name__ == "__main__":
    main()
