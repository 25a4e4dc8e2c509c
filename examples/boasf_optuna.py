"""Choose among 16 classifiers and tune them at once, in two minutes: BOASF over Optuna's TPE.

The search of ``boasf_hyperopt.py``, define-by-run: each classifier asks for the parameters that
it needs. Prints a line when a round begins, then which classifier got what; writes a plot of it.

    python examples/boasf_optuna.py             # two minutes
    python examples/boasf_optuna.py --compare   # and as many with Optuna's default sampler
    python examples/boasf_optuna.py --score mean --data breast_cancer --seconds 30
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import optuna
from automl_plugins.adapters.optuna import BOASFSampler, arm_report
from classifiers import DATA, Task, suggest

from automl_plugins.visualization import plot_arm_allocation

ARM = "classifier"  # the categorical parameter whose choices are the arms
COST = "seconds"  # the user attribute that holds what an evaluation took
SCORE = "what rounds judge an arm by: its best trial, or its mean as in the paper"


class PrintRounds:
    """Callback that prints a line for each new round."""

    def __init__(self) -> None:
        self.n_shown = 0

    def __call__(self, study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        lines = arm_report(study).round_lines()
        for line in lines[self.n_shown :]:
            print(f"From trial {trial.number} on: {line}", flush=True)
        self.n_shown = len(lines)


def seconds_of(study: optuna.Study) -> float:
    """Seconds of all evaluations: proposals cost nothing."""
    return float(sum(trial.user_attrs[COST] for trial in study.get_trials(deepcopy=False)))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", choices=DATA, default="digits")
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--score", choices=("maximum", "mean"), default="maximum", help=SCORE)
    parser.add_argument("--compare", action="store_true", help="also run Optuna's default")
    parser.add_argument("--plot", type=Path, default=Path("build/boasf_optuna.html"))
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    task = Task(args.data)

    def objective(trial: optuna.Trial) -> float:
        configuration, start = suggest(trial), time.perf_counter()
        try:
            return task.score(configuration)
        finally:
            trial.set_user_attr(COST, time.perf_counter() - start)

    def stop_when_spent(study: optuna.Study, _: optuna.trial.FrozenTrial) -> None:
        if seconds_of(study) >= args.seconds:
            study.stop()

    sampler = BOASFSampler(
        ARM,
        seconds=args.seconds,
        score=args.score,
        stop_when_spent=True,
        cost=COST,
        seed=args.seed,
    )
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(objective, catch=ValueError, callbacks=[PrintRounds()])
    report = arm_report(study)
    print(f"\n{report}\n")
    studies = {"BOASFSampler": study}
    if args.compare:
        sampler = optuna.samplers.TPESampler(seed=args.seed)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        study.optimize(objective, catch=ValueError, callbacks=[stop_when_spent])
        studies["TPESampler (default)"] = study
    for name, study in studies.items():
        best = suggest(study.best_trial)
        print(
            f"{name}: {len(study.trials)} trials, {seconds_of(study):.1f} s; balanced"
            f" accuracy {study.best_value:.4f} in cross-validation,"
            f" {task.test_score(best):.4f} on test data"
        )
        print(f"  {best}")

    args.plot.parent.mkdir(parents=True, exist_ok=True)
    plot_arm_allocation(report, unit="seconds").write_html(args.plot)
    print(f"Allocation: {args.plot}")


if __name__ == "__main__":
    main()
