"""LightGBM over hyperparameters and meta-features (van Hoof 2018, thesis chapter 6).

Target: the losses of each task standardised, so that the level of a task does not matter. Judged
by the rank correlation on tasks it has not seen, not by its error: meta-features alone predict the
level and rank nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import lightgbm
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from automl_plugins.arrays import FloatArray
from automl_plugins.meta.tasks import TaskDescription, TaskFeatures, meta_feature_row
from automl_plugins.records.scores import standardise_losses

from .dataset import MetaDataset

_EVERYWHERE = 100  # known tasks that stand for an undescribed one


@dataclass(eq=False, repr=False, kw_only=True)
class MetaLearner(BaseEstimator):  # type: ignore[misc]
    """Predicts the standardised loss of configurations on a task that is described.

    It learns from complete runs only.

    Args:
        n_trees: Boosting rounds (thesis 6.2: 500).
        learning_rate: Shrinkage of each tree (thesis: 0.05).
        num_leaves: Leaves of each tree; the thesis took 4, and found that 16 can be better.
        max_rows: Largest number of runs that a fit uses; if there are more, as many are drawn.
        n_jobs: Threads of LightGBM.
        random_state: Seed of the draw and of LightGBM.

    Attributes:
        feature_names_: Inputs (f): those of the configuration, then the meta-features.
        booster_: The fitted model; None when all losses were constant.

    Example::

        learner = MetaLearner(n_trees=20).fit(memory)
        mean = learner.predict(memory.vectors, memory.tasks[0].meta_features)
    """

    n_trees: int = 500
    learning_rate: float = 0.05
    num_leaves: int = 16
    max_rows: int = 200_000
    n_jobs: int = 1
    random_state: int = 0

    def fit(self, dataset: MetaDataset) -> Self:
        """Learn from the runs of a memory.

        Raises:
            ValueError: For a memory without runs.
        """
        if not len(dataset):
            raise ValueError("There are no runs to learn from.")
        self.space_ = dataset.vector_space
        self.tasks_ = TaskFeatures(dataset.tasks)
        self.feature_names_ = (*self.space_.feature_names, *self.tasks_.names)
        y = dataset.scores(standardise_losses)
        rows = np.flatnonzero(~np.isnan(dataset.complete_losses))
        if len(rows) > self.max_rows:
            rng = np.random.default_rng(self.random_state)
            rows = np.sort(rng.choice(rows, self.max_rows, replace=False))
        X = self.space_.features(dataset.vectors[rows])
        X = np.hstack([X, self.tasks_.known[dataset.task[rows]]])
        self.booster_ = None
        # LightGBM's own 20 rows of a leaf, and 3 of a bin, leave memories of a few runs with no
        # split, or none between two recorded values.
        least = max(1, len(rows) // 20)
        if len(np.unique(y[rows])) > 1:
            self.booster_ = lightgbm.train(
                {
                    "objective": "regression",
                    "learning_rate": self.learning_rate,
                    "num_leaves": self.num_leaves,
                    "min_data_in_leaf": min(20, least),
                    "num_threads": self.n_jobs,
                    "seed": self.random_state,
                    # Else LightGBM times two ways of building histograms, and takes the faster.
                    "deterministic": True,
                    "force_row_wise": True,
                    "verbosity": -1,
                },
                lightgbm.Dataset(
                    # Bins are made by the data set, which has parameters of its own.
                    X,
                    y[rows],
                    params={"min_data_in_bin": min(3, least), "verbosity": -1},
                ),
                num_boost_round=self.n_trees,
            )
        return self

    def predict(self, vectors: FloatArray, task: TaskDescription) -> FloatArray:
        """Predicted losses (n,) of ``vectors`` (n, d) in standard deviations, less is better.

        A task that shares no meta-feature with the known ones, or None, gets the mean over known
        tasks (over 100 of them, where there are more).
        """
        check_is_fitted(self)
        return self.predict_features(self.space_.features(vectors), task)

    def predict_features(self, X: FloatArray, task: TaskDescription) -> FloatArray:
        """Predicted losses (n,) of configurations with features ``X`` (n, f), as ``predict``."""
        check_is_fitted(self)
        if np.isfinite(meta_feature_row(task, self.tasks_.names)).any():
            return self._predict(X, self.tasks_.describe(task))
        known = self.tasks_.known
        # Evenly spaced tasks, ``_EVERYWHERE`` at most.
        step = -(-len(known) // _EVERYWHERE)
        # Tasks that are described alike, as all without meta-features are, are predicted once.
        rows, counts = np.unique(known[::step], axis=0, return_counts=True)
        return np.average([self._predict(X, row) for row in rows], axis=0, weights=counts)

    def _predict(self, X: FloatArray, row: FloatArray) -> FloatArray:
        # Equal losses are 0 when they are standardised.
        if self.booster_ is None:
            return np.zeros(len(X))
        described = np.broadcast_to(row, (len(X), len(row)))
        inputs = np.hstack([X, described])
        return np.asarray(self.booster_.predict(inputs, num_threads=self.n_jobs))
