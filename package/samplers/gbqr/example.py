"""GBQR on an objective in which half of the options fail.

Run it in the folder that contains ``package``:

    python package/samplers/gbqr/example.py [--n-trials 30]
"""

import argparse

import optuna
import optunahub


def objective(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", 1e-3, 1e3, log=True)
    kernel = trial.suggest_categorical("kernel", ["a", "b", "c", "d"])
    if kernel in "cd" and x > 10:
        raise MemoryError(f"kernel {kernel} with x={x:.3g}")
    return (x - 1) ** 2 / (x + 1) ** 2 + "abcd".index(kernel) / 10


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n-trials", type=int, default=30)
    args = parser.parse_args()
    module = optunahub.load_local_module("samplers/gbqr", registry_root="package")
    study = optuna.create_study(sampler=module.GBQRSampler(seed=0))
    study.optimize(objective, n_trials=args.n_trials, catch=MemoryError)
    failed = sum(trial.state == optuna.trial.TrialState.FAIL for trial in study.trials)
    print(f"best: {study.best_value:.4f} at {study.best_params}; {failed} trials failed")
