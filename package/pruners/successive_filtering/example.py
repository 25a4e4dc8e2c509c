"""Learning curves of 27 steps: the steps spent without a pruner and with this one.

Run it in the folder that contains ``package``:

    python package/pruners/successive_filtering/example.py [--n-trials 50]
"""

import argparse

import optuna
import optunahub


def objective(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", -5, 5)
    for step in range(1, 28):
        trial.report(x**2 + 1 / step, step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return x**2


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n-trials", type=int, default=50)
    args = parser.parse_args()
    module = optunahub.load_local_module("pruners/successive_filtering", registry_root="package")
    for pruner in (optuna.pruners.NopPruner(), module.SuccessiveFilteringPruner(seed=0)):
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0), pruner=pruner)
        study.optimize(objective, n_trials=args.n_trials)
        steps = sum(len(trial.intermediate_values) for trial in study.trials)
        print(f"{type(pruner).__name__}: {study.best_value:.4f} after {steps} steps")
