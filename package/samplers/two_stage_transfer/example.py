"""Ten trials with three earlier studies, one of them misleading, and the votes of each.

Run it in the folder that contains ``package``:

    python package/samplers/two_stage_transfer/example.py [--n-trials 10]
"""

import argparse
from collections.abc import Callable

import optuna
import optunahub

hub = optunahub.load_local_module("samplers/two_stage_transfer", registry_root="package")


def bowl(x_best: float, y_best: float) -> Callable[[optuna.Trial], float]:
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", -5, 5)
        y = trial.suggest_float("y", -5, 5)
        return (x - x_best) ** 2 + (y - y_best) ** 2

    return objective


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n-trials", type=int, default=10)
    args = parser.parse_args()
    earlier = {"near": bowl(1, 1), "nearer": bowl(2, 1), "opposite": bowl(-4, -4)}
    studies = {}
    for seed, (name, objective) in enumerate(earlier.items()):
        studies[name] = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
        studies[name].optimize(objective, n_trials=40)
    study = optuna.create_study(sampler=hub.TSTSampler(studies, seed=0))
    study.optimize(bowl(2, 2), n_trials=args.n_trials)
    print(f"best: {study.best_value:.4f} at {study.best_params}")
    for number, shares in hub.source_shares(study).items():
        votes = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
        print(f"trial {number}: {votes}")
