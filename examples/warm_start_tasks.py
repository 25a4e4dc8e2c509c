"""Real data to tune on, and the table of what warm starts gain; shared by their examples.

Not an example by itself: ``warm_start_smac.py``, ``warm_start_optuna.py`` and
``warm_start_hyperopt.py`` tune what is declared here. All classification sets of scikit-learn that
need no download are in the bundled memories, so these examples tune on digits and leave its family
out of the memory: the larger set that digits is a part of.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from automl_plugins.meta import MetaDataset, bundled

sys.path.append(str(Path(__file__).resolve().parent / "benchmarks"))

from memory_learners import LEARNERS as LEARNERS
from memory_learners import space as space

NEW = "digits"
FAMILY = "optdigits"  # of digits, in the tags of the bundled memories
DATA = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "breast_cancer": datasets.load_breast_cancer,
    NEW: datasets.load_digits,
}


def without_digits(learner: str) -> MetaDataset:
    """A bundled memory without the data set that the examples tune on, and its family."""
    return bundled(learner).subset(lambda task: task.tags["family"] != FAMILY)


class Task:
    """A learner of ``memory_learners`` on a data set of scikit-learn.

    Args:
        name: A key of ``DATA``.
        learner: A key of ``LEARNERS``.
    """

    def __init__(self, name: str, learner: str) -> None:
        self.name = name
        self.X, self.y = DATA[name](return_X_y=True)
        self.learner = LEARNERS[learner]
        self._folds = []
        for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(self.X, self.y):
            X, X_test = self.X[train], self.X[test]
            if self.learner.scaled:
                scaler = StandardScaler().fit(X)
                X, X_test = scaler.transform(X), scaler.transform(X_test)
            self._folds.append((X, self.y[train], X_test, self.y[test]))

    def loss(self, configuration: Mapping[str, Any]) -> float:
        """One minus the balanced accuracy, mean over 3 folds; equal ones have equal losses."""
        scores = []
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            for X, y, X_valid, y_valid in self._folds:
                model = self.learner.build(dict(configuration)).fit(X, y)
                scores.append(balanced_accuracy_score(y_valid, model.predict(X_valid)))
        return 1.0 - float(np.mean(scores))


def show(searches: Mapping[str, Sequence[Sequence[float]]]) -> None:
    """Print the best loss after some trials, by start, mean over the searches of each."""
    best = {name: np.minimum.accumulate(losses, axis=1) for name, losses in searches.items()}
    length = min(curves.shape[1] for curves in best.values())
    points = [n for n in (1, 3, 5, 10, 15, 20, 30, 50) if n <= length]
    width = max(map(len, best))
    print(f"\nBest error in % after so many trials, {NEW}")
    print(" " * width + "".join(f"{n:8d}" for n in points))
    for name, curves in best.items():
        means = (100.0 * curves[:, n - 1].mean() for n in points)
        print(f"{name:{width}s}" + "".join(f"{mean:8.2f}" for mean in means))
