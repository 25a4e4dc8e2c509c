"""Choose among the paper's 16 classifiers and tune them at once, with real training times.

    benchmark_classifiers.py boasf  # BOASF over TPE against TPE, two minutes each
    benchmark_classifiers.py boasf --data breast_cancer --seconds 30 --methods "BOASF in Optuna"

A search ends when its evaluations have taken ``--seconds``; proposals are free.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import pandas as pd
from automl_plugins.adapters import hyperopt, optuna
from classifiers import DATA, Task, search_space
from common import run_command
from hyperopt import tpe
from optuna.samplers import TPESampler

from automl_plugins.replay import Method, Outcome, Problem, TrialStatus

SECONDS = 120.0


def methods_of(seconds: float) -> dict[str, Method]:
    """BOASF and the methods it is compared with."""
    arms: dict[str, Any] = {"arm": "classifier", "seconds": seconds, "cost": optuna.SECONDS}
    return {
        "BOASF in Optuna": optuna.optimizer("BOASFSampler", **arms),
        "Optuna TPE": optuna.optimizer(TPESampler),
        "BOASF in Hyperopt": hyperopt.optimizer("boasf", budget_seconds=seconds),
        "Hyperopt TPE": hyperopt.optimizer(tpe.suggest),
    }


def search(method: Method, task: Task, seconds: float) -> pd.DataFrame:
    """The evaluations of a search, one per row."""
    optimizer = method.start(Problem(search_space(), 0))
    rows, spent = [], 0.0
    while spent < seconds and (proposal := optimizer.ask()) is not None:
        start = time.perf_counter()
        try:
            status, score = TrialStatus.COMPLETE, task.score(proposal.config)
        except ValueError:
            status, score = TrialStatus.FAILED, math.nan
        end = spent + time.perf_counter() - start
        optimizer.tell(proposal, Outcome(status, 1.0 - score, spent, end))
        rows.append((proposal.config["classifier"], end - spent, score, dict(proposal.config)))
        spent = end
    return pd.DataFrame(rows, columns=["classifier", "seconds", "score", "config"])


def boasf(methods: Sequence[str] = (), data: str = "digits", seconds: float = SECONDS) -> None:
    """Print the best of each method, or of some ``methods``, and what each classifier reached."""
    task, every = Task(data), methods_of(seconds)
    for name in methods or every:
        runs = search(every[name], task, seconds)
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
    run_command(__doc__, boasf, methods=methods_of(SECONDS), data=DATA)
