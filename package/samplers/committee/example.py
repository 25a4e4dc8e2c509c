"""A search in a space with a condition, and the member that proposed its best trial.

Run it in the folder that contains ``package``:

    python package/samplers/committee/example.py [--n-trials 30]
"""

import argparse

import optuna
import optunahub


def objective(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", -5, 5)
    if trial.suggest_categorical("shape", ["bowl", "slope"]) == "bowl":
        return x**2 + trial.suggest_float("height", 0, 1)
    return 5 - x


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n-trials", type=int, default=30)
    args = parser.parse_args()
    module = optunahub.load_local_module("samplers/committee", registry_root="package")
    study = optuna.create_study(sampler=module.AutoSampler(seed=0))
    study.optimize(objective, n_trials=args.n_trials)
    print(f"best: {study.best_value:.4f} at {study.best_params}")
    print(module.explain(study.best_trial))
