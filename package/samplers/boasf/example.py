"""Three algorithms, one of them good: the trials that BOASF and a bandit gave to each.

Run it in the folder that contains ``package``:

    python package/samplers/boasf/example.py [--n-trials 60]
"""

import argparse

import optuna
import optunahub

hub = optunahub.load_local_module("samplers/boasf", registry_root="package")


def objective(trial: optuna.Trial) -> float:
    algorithm = trial.suggest_categorical("algorithm", ["bowl", "slope", "constant"])
    if algorithm == "bowl":
        return trial.suggest_float("x", -5, 5) ** 2
    return 5 - trial.suggest_float("y", 0, 4) if algorithm == "slope" else 3.0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n-trials", type=int, default=60)
    args = parser.parse_args()
    for sampler in (hub.BOASFSampler(n_trials=args.n_trials, seed=0), hub.BanditSampler(seed=0)):
        study = optuna.create_study(sampler=sampler)
        study.optimize(objective, n_trials=args.n_trials)
        print(f"{type(sampler).__name__}: best {study.best_value:.4f}")
        print(hub.arm_report(study))
