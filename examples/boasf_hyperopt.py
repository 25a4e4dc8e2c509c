"""Choose among 16 classifiers and tune them at once, in two minutes: BOASF over Hyperopt's TPE.

Handwritten digits, 3-fold balanced accuracy. Prints a line when a round begins, then which
classifier got what; writes a plot of it.

    python examples/boasf_hyperopt.py             # two minutes
    python examples/boasf_hyperopt.py --compare   # and as many with Hyperopt's own fmin
    python examples/boasf_hyperopt.py --score mean --data breast_cancer --seconds 30
"""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path
from typing import Any

import numpy as np
from automl_plugins.adapters.hyperopt import arm_report, boasf_fmin
from classifiers import DATA, Task, flat, hyperopt_space
from hyperopt import Trials, fmin, space_eval, tpe

from automl_plugins.visualization import plot_arm_allocation

SCORE = "what rounds judge an arm by: its best trial, or its mean as in the paper"


def seconds_of(trials: Trials) -> float:
    """Seconds of all evaluations, the clock of BOASF: proposals cost nothing."""
    finished = [t for t in trials.trials if t["refresh_time"] is not None]
    return float(sum((t["refresh_time"] - t["book_time"]).total_seconds() for t in finished))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", choices=DATA, default="digits")
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--score", choices=("maximum", "mean"), default="maximum", help=SCORE)
    parser.add_argument("--compare", action="store_true", help="also run fmin with TPE")
    parser.add_argument("--plot", type=Path, default=Path("build/boasf_hyperopt.html"))
    args = parser.parse_args()
    # Each round is announced by the adapter, as a log message.
    logging.basicConfig(format="%(message)s", stream=sys.stdout)
    logging.getLogger("automl_plugins").setLevel(logging.INFO)

    task, space = Task(args.data), hyperopt_space()
    shared: dict[str, Any] = {
        "fn": lambda configuration: 1.0 - task.score(flat(configuration)),
        "space": space,
        "catch_eval_exceptions": True,
        "show_progressbar": False,
    }
    searches = {"BOASF": Trials()}
    boasf_fmin(
        **shared,
        budget_seconds=args.seconds,
        score=args.score,
        trials=searches["BOASF"],
        rstate=np.random.default_rng(args.seed),
    )
    report = arm_report(searches["BOASF"], space)
    print(f"\n{report}\n")
    if args.compare:
        searches["fmin(tpe.suggest)"] = Trials()
        fmin(
            **shared,
            algo=tpe.suggest,
            trials=searches["fmin(tpe.suggest)"],
            rstate=np.random.default_rng(args.seed),
            early_stop_fn=lambda trials, *_: (seconds_of(trials) >= args.seconds, ()),
        )
    for name, trials in searches.items():
        best = flat(space_eval(space, trials.argmin))
        score = 1.0 - trials.best_trial["result"]["loss"]
        print(
            f"{name}: {len(trials)} evaluations, {seconds_of(trials):.1f} s; balanced accuracy"
            f" {score:.4f} in cross-validation, {task.test_score(best):.4f} on test data"
        )
        print(f"  {best}")

    args.plot.parent.mkdir(parents=True, exist_ok=True)
    plot_arm_allocation(report, unit="seconds").write_html(args.plot)
    print(f"Allocation: {args.plot}")


if __name__ == "__main__":
    main()
