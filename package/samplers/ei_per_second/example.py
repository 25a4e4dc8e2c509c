"""Trials of one second to a thousand, which the objective reports itself.

Run it in the folder that contains ``package``:

    python package/samplers/ei_per_second/example.py [--n-trials 30]
"""

import argparse

import optuna
import optunahub

hub = optunahub.load_local_module("samplers/ei_per_second", registry_root="package")


def objective(trial: optuna.Trial) -> float:
    n_trees = trial.suggest_int("n_trees", 1, 1000, log=True)
    depth = trial.suggest_int("depth", 1, 12)
    trial.set_user_attr(hub.SECONDS, n_trees * depth / 12)
    return 1 / n_trees + (depth - 5) ** 2 / 50


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n-trials", type=int, default=30)
    args = parser.parse_args()
    for sampler in (optuna.samplers.TPESampler(seed=0), hub.EIPerSecondSampler(seed=0)):
        study = optuna.create_study(sampler=sampler)
        study.optimize(objective, n_trials=args.n_trials)
        seconds = sum(trial.user_attrs[hub.SECONDS] for trial in study.trials)
        print(f"{type(sampler).__name__}: {study.best_value:.4f} after {seconds:.0f} s")
