"""Three studies recorded into one SQLite file, a fourth one that starts from it.

A support vector machine is tuned on iris, wine and breast cancer; then on digits, cold and with
what the memory suggests. All that a study needs to be remembered is a callback.

    python examples/warm_start_optuna.py [--store build/warm_start.db] [--n-trials 15] [--seeds 2]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import optuna
from automl_plugins.adapters.optuna import enqueue_initial_design, record
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState
from warm_start_tasks import NEW, Task, show

from automl_plugins.meta import MetaStore, meta_features

LEARNER = "svm"
EARLIER = ("iris", "wine", "breast_cancer")

KERNELS = ["rbf", "poly", "sigmoid"]
SPACE = {
    "kernel": CategoricalDistribution(KERNELS),
    "C": FloatDistribution(2.0**-5, 2.0**15, log=True),
    "gamma": FloatDistribution(2.0**-15, 2.0**3, log=True),
    "degree": IntDistribution(2, 5),
    "coef0": FloatDistribution(-1.0, 1.0),
    "class_weight": CategoricalDistribution(["none", "balanced"]),
}


class Objective:
    """The loss of a task, defined by running it: a kernel has only its own parameters."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def __call__(self, trial: optuna.Trial) -> float:
        configuration = {
            "kernel": trial.suggest_categorical("kernel", KERNELS),
            "C": trial.suggest_float("C", 2.0**-5, 2.0**15, log=True),
            "gamma": trial.suggest_float("gamma", 2.0**-15, 2.0**3, log=True),
            "class_weight": trial.suggest_categorical("class_weight", ["none", "balanced"]),
        }
        if configuration["kernel"] == "poly":
            configuration["degree"] = trial.suggest_int("degree", 2, 5)
        if configuration["kernel"] != "rbf":
            configuration["coef0"] = trial.suggest_float("coef0", -1.0, 1.0)
        return self.task.loss(configuration)


def filled(path: Path, n_trials: int = 40) -> MetaStore:
    """The store, with a study of each of the earlier tasks."""
    path.parent.mkdir(parents=True, exist_ok=True)
    store = MetaStore(path)
    known = {task.name for task in store.tasks()}
    for name in EARLIER:
        if name in known:
            continue
        task = Task(name, LEARNER)
        remember = record(store, task=name, meta_features=meta_features(task.X, task.y))
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
        study.optimize(Objective(task), n_trials=n_trials, callbacks=[remember])
        print(f"{name}: {remember.n_recorded} trials recorded, best {study.best_value:.4f}")
    return store


def study_on(task: Task, seed: int, n_trials: int, store: MetaStore | None) -> list[float]:
    """The losses of a study, warm if there is a store."""
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    if store is not None:
        design = enqueue_initial_design(
            study, memory=store, X=task.X, y=task.y, search_space=SPACE, n_configs=5
        )
        if seed == 0:
            print(f"\n{design}")
    study.optimize(Objective(task), n_trials=n_trials)
    # With fewer trials than suggestions, the last of these are still waiting.
    done = study.get_trials(states=(TrialState.COMPLETE,))
    return [trial.values[0] for trial in done]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", type=Path, default=Path("build/warm_start.db"))
    parser.add_argument("--n-trials", type=int, default=15)
    parser.add_argument("--seeds", type=int, default=2)
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    store, task = filled(args.store), Task(NEW, LEARNER)
    losses = {
        name: [study_on(task, seed, args.n_trials, memory) for seed in range(args.seeds)]
        for name, memory in (("cold", None), ("three studies", store))
    }
    show(losses)
    print(f"\nThe memory: {args.store}; warm_start_hyperopt.py starts from it, too.")


if __name__ == "__main__":
    main()
