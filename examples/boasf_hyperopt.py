"""Choose among four classifiers and tune them at once, in one minute: BOASF over Hyperopt's TPE.

The options of the root hp.choice are arms. Three rounds share the seconds among them, and arms are
filtered in between. Prints the trials and seconds of each classifier, and writes a plot of them.

    python examples/boasf_hyperopt.py [--seconds 60]
"""

import argparse
from math import log
from pathlib import Path
from typing import Any

from automl_plugins.adapters.hyperopt import arm_report, boasf_fmin
from hyperopt import Trials, hp, space_eval
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from automl_plugins.visualization import plot_arm_allocation

PLOT = Path("build/boasf_hyperopt.html")
X, y = load_digits(return_X_y=True)
MAKE = {
    "svm": SVC,
    "knn": KNeighborsClassifier,
    "trees": ExtraTreesClassifier,
    "bayes": GaussianNB,
}
SPACE = hp.choice(
    "classifier",
    [
        {"name": "svm", "gamma": hp.loguniform("gamma", log(1e-5), log(1e-2))},
        {"name": "knn", "n_neighbors": hp.uniformint("n_neighbors", 1, 50)},
        {"name": "trees", "max_features": hp.uniform("max_features", 0.05, 1.0)},
        {"name": "bayes", "var_smoothing": hp.loguniform("var_smoothing", log(1e-9), 0.0)},
    ],
)


def loss(configuration: dict[str, Any]) -> float:
    """Error of three folds."""
    options = dict(configuration)
    model = MAKE[options.pop("name")](**options)
    return 1.0 - float(cross_val_score(model, X, y, cv=3).mean())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    budget, trials = parser.parse_args().seconds, Trials()
    best = boasf_fmin(loss, SPACE, budget_seconds=budget, trials=trials)
    print(report := arm_report(trials, SPACE))
    print(f"Least error {min(trials.losses()):.4f}: {space_eval(SPACE, best)}")
    PLOT.parent.mkdir(exist_ok=True)
    plot_arm_allocation(report, unit="seconds").write_html(PLOT)
