"""Weighted model sampling under Hyperband, with training rows as the resource.

The more hyperparameters a classifier has, the more configurations of it are drawn: p ~ 2^N, in
place of the same number of each (Sarigiannis 2019, HB.W against HB). Each configuration is fitted
on a stratified ninth of the training rows, then on a third, then on all, unless Hyperband stops
it. Random search otherwise, as in the paper.

    python examples/weighted_hyperband.py              # a minute
    python examples/weighted_hyperband.py --compare    # and one with uniform sampling
    python examples/weighted_hyperband.py --data breast_cancer --seconds 5
"""

from __future__ import annotations

import argparse
from collections import Counter

import optuna
from automl_plugins.adapters.optuna import WeightedModelSampler, arm_report
from classifiers import CLASSIFIERS, DATA, Task, suggest

ARM = "classifier"  # the categorical parameter whose choices are the models
RUNGS = (1, 3, 9)  # ninths of the training rows


def run(task: Task, sampler: WeightedModelSampler, seconds: float) -> optuna.Study:
    def objective(trial: optuna.Trial) -> float:
        configuration = suggest(trial)
        for ninths in RUNGS:
            score = task.score(configuration, ninths / 9)
            trial.report(score, ninths)
            if ninths < 9 and trial.should_prune():
                raise optuna.TrialPruned
        return score

    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=9, reduction_factor=3)
    study = optuna.create_study(direction="maximize", sampler=sampler, pruner=pruner)
    study.optimize(objective, timeout=seconds, catch=ValueError)
    return study


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", choices=DATA, default="digits")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compare", action="store_true", help="also sample uniformly")
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    task = Task(args.data)

    samplers = {"weights 2^N": WeightedModelSampler(ARM, seed=args.seed)}
    if args.compare:
        equal = dict.fromkeys(CLASSIFIERS, 1.0)
        samplers["equal weights"] = WeightedModelSampler(ARM, weights=equal, seed=args.seed)
    for name, sampler in samplers.items():
        study = run(task, sampler, args.seconds)
        reached = Counter(trial.last_step for trial in study.trials)
        rungs = ", ".join(f"{reached[ninths]} at {ninths}/9" for ninths in RUNGS)
        best = suggest(study.best_trial)
        print(f"== {name}: {len(study.trials)} trials, stopped {rungs} of the rows")
        print(f"{arm_report(study)}\n")
        print(
            f"Balanced accuracy {study.best_value:.4f} in cross-validation,"
            f" {task.test_score(best):.4f} on test data\n  {best}\n"
        )


if __name__ == "__main__":
    main()
