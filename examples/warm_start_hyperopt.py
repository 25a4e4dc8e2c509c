"""Hyperopt started from what Optuna has learned, and from the bundled memory.

The memory is the SQLite file of ``warm_start_optuna.py``, which is made if it is not there. The
search space is Hyperopt's own; it is matched with the memory by the labels, and by what the
options of a choice are called.

    python examples/warm_start_hyperopt.py [--store build/warm_start.db] [--n-trials 15]
"""

from __future__ import annotations

import argparse
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from automl_plugins.adapters.hyperopt import INITIAL_DESIGN, initial_trials
from hyperopt import Trials, fmin, hp, tpe
from warm_start_optuna import LEARNER, filled
from warm_start_tasks import NEW, Task, show, without_digits

from automl_plugins.meta import meta_features

START_UP = 10
SPACE = {
    "kernel": hp.choice(
        "kernel",
        [
            {"kernel": "rbf"},
            {
                "kernel": "poly",
                "degree": hp.uniformint("degree", 2, 5),
                "coef0": hp.uniform("coef0", -1.0, 1.0),
            },
        ],
    ),
    "C": hp.loguniform("C", math.log(2.0**-5), math.log(2.0**15)),
    "gamma": hp.loguniform("gamma", math.log(2.0**-15), math.log(2.0**3)),
    "class_weight": hp.choice("class_weight", ["none", "balanced"]),
}


def loss(configuration: dict[str, Any], task: Task) -> float:
    """What is below the choice of a kernel goes beside it."""
    return task.loss(configuration | configuration["kernel"])


def search(task: Task, trials: Trials, seed: int, n_trials: int) -> list[float]:
    """TPE goes on from the trials that are there; ``max_evals`` counts them."""
    fmin(
        partial(loss, task=task),
        SPACE,
        algo=partial(tpe.suggest, n_startup_jobs=START_UP),
        max_evals=n_trials,
        trials=trials,
        rstate=np.random.default_rng(seed),
        show_progressbar=False,
    )
    return [float(value) for value in trials.losses()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", type=Path, default=Path("build/warm_start.db"))
    parser.add_argument("--n-trials", type=int, default=15)
    parser.add_argument("--seeds", type=int, default=2)
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    task = Task(NEW, LEARNER)
    memories = {"three studies": filled(args.store), "bundled": without_digits(LEARNER)}
    losses: dict[str, list[list[float]]] = {"cold": []}
    for seed in range(args.seeds):
        losses["cold"].append(search(task, Trials(), seed, args.n_trials))
    described = meta_features(task.X, task.y)
    for name, memory in memories.items():
        start = partial(
            initial_trials,
            SPACE,
            memory=memory,
            meta_features=described,
            n_configs=min(5, args.n_trials - 1),  # fmin needs room for one of its own
            n_startup_jobs=START_UP,
        )
        print(f"\nfrom {name}:")
        for document in start().trials:
            values = {k: v[0] for k, v in document["misc"]["vals"].items() if v}
            print(f"{values} ({document['misc'][INITIAL_DESIGN]['reason']})")
        losses[name] = [search(task, start(), seed, args.n_trials) for seed in range(args.seeds)]
    show(losses)


if __name__ == "__main__":
    main()
