"""LightGBM over hyperparameters and meta-features (van Hoof 2018, thesis chapter 6).

Target: the losses of each task standardised, so that the level of a task does not matter. Judged
by the rank correlation on tasks it has not seen, not by its error: meta-features alone predict the
level and rank nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import lightgbm
import numpy as np
from scipy.stats import kendalltau
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from automl_plugins._arguments import check_integer
from automl_plugins.arrays import FloatArray
from automl_plugins.meta.tasks import TaskDescription, TaskFeatures
from automl_plugins.records.scores import standardise_losses

from .dataset import MetaDataset
from .tasks import MetaTask

_EVERYWHERE = 100  # known tasks that stand for an undescribed one


@dataclass(frozen=True)
class RankReport:
    """Rank correlation of predicted and true losses on tasks left out of the fit.

    Attributes:
        tasks: Names of the tasks.
        tau: Kendall's tau-b of each task; NaN where all losses, or all predictions, are equal.
        importance: Share of the gain of each input, by name, of a fit on all tasks.
    """

    tasks: tuple[str, ...]
    tau: FloatArray
    importance: Mapping[str, float]

    @property
    def mean(self) -> float:
        """Mean over the tasks whose correlation is known."""
        known = self.tau[~np.isnan(self.tau)]
        return float(known.mean()) if len(known) else float("nan")

    def __str__(self) -> str:
        most = sorted(self.importance.items(), key=lambda item: -item[1])[:5]
        used = ", ".join(f"{name} {share:.0%}" for name, share in most)
        n = int((~np.isnan(self.tau)).sum())
        return f"Kendall tau-b {self.mean:.3f}, mean of {n} tasks; most used: {used}"


class MetaLearner(BaseEstimator):  # type: ignore[misc]
    """Predicts the standardised loss of configurations on a task that is described.

    Args:
        n_trees: Boosting rounds (thesis 6.2: 500).
        learning_rate: Shrinkage of each tree (thesis: 0.05).
        num_leaves: Leaves of each tree; the thesis found 4 for either input alone, 16 for both.
        max_rows: Runs that a fit looks at; of more, as many are drawn.
        n_jobs: Threads of LightGBM.
        random_state: Seed of the draw and of LightGBM.

    Attributes:
        feature_names_: Inputs (f): those of the configuration, then the meta-features.
        booster_: The fitted model; None when all losses were constant.

    Example::

        learner = MetaLearner(n_trees=20).fit(memory)
        mean = learner.predict(memory.vectors, memory.tasks[0].meta_features)
    """

    def __init__(
        self,
        *,
        n_trees: int = 500,
        learning_rate: float = 0.05,
        num_leaves: int = 16,
        max_rows: int = 200_000,
        n_jobs: int = 1,
        random_state: int = 0,
    ) -> None:
        self.n_trees = n_trees
        self.learning_rate = learning_rate
        self.num_leaves = num_leaves
        self.max_rows = max_rows
        self.n_jobs = n_jobs
        self.random_state = random_state

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
        rows = np.arange(len(dataset))
        if len(rows) > self.max_rows:
            rng = np.random.default_rng(self.random_state)
            rows = np.sort(rng.choice(rows, self.max_rows, replace=False))
        X = self.space_.features(dataset.vectors[rows])
        X = np.hstack([X, self.tasks_.known[dataset.task[rows]]])
        self.booster_ = None
        if len(np.unique(y[rows])) > 1:
            self.booster_ = lightgbm.train(
                {
                    "objective": "regression",
                    "learning_rate": self.learning_rate,
                    "num_leaves": self.num_leaves,
                    # LightGBM's own 20 leaves memories of a few tasks without a single split
                    "min_data_in_leaf": min(20, max(1, len(rows) // 20)),
                    "num_threads": self.n_jobs,
                    "seed": self.random_state,
                    "deterministic": True,
                    "force_row_wise": True,
                    "verbosity": -1,
                },
                lightgbm.Dataset(X, y[rows], params={"verbosity": -1}),
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
        if (
            task is not None
            and np.isfinite([task.get(n, np.nan) for n in self.tasks_.names]).any()
        ):
            return self._predict(X, self.tasks_.describe(task))
        known = self.tasks_.known
        step = -(-len(known) // _EVERYWHERE)
        rows, counts = np.unique(known[::step], axis=0, return_counts=True)
        return np.average([self._predict(X, row) for row in rows], axis=0, weights=counts)

    def report(
        self,
        dataset: MetaDataset,
        *,
        folds: int | None = None,
        group: str | Callable[[MetaTask], str] | None = None,
    ) -> RankReport:
        """Rank correlation on tasks left out, one at a time unless said otherwise.

        Args:
            dataset: The memory; needs two tasks at least.
            folds: Number of parts in which tasks are left out together; None leaves out one at
                a time, which is one fit for each task.
            group: Name of the tag, or function of a task, whose equal values stay together:
                variants of one data set.

        Raises:
            ValueError: For fewer than two tasks or groups.
        """
        tau = np.full(len(dataset.tasks), np.nan)
        for train, left_out in leave_out(dataset, folds=folds, group=group):
            model = clone(self).fit(train)
            for t in left_out:
                rows = dataset.rows[t]
                known = ~np.isnan(dataset.complete_losses[rows])
                predicted = model.predict(dataset.vectors[rows], dataset.tasks[t].meta_features)
                tau[t] = rank_correlation(predicted[known], dataset.losses[rows][known])
        importance = clone(self).fit(dataset).feature_importances()
        return RankReport(tuple(task.name for task in dataset.tasks), tau, importance)

    def feature_importances(self) -> dict[str, float]:
        """Share of the gain of each input by name, the largest first."""
        check_is_fitted(self)
        if self.booster_ is None:
            return {}
        gain = self.booster_.feature_importance("gain")
        share = gain / gain.sum() if gain.sum() > 0 else gain
        order = np.argsort(-share, kind="stable")
        return {self.feature_names_[i]: float(share[i]) for i in order}

    def _predict(self, X: FloatArray, row: FloatArray) -> FloatArray:
        if self.booster_ is None:
            return np.zeros(len(X))
        described = np.broadcast_to(row, (len(X), len(row)))
        inputs = np.hstack([X, described])
        return np.asarray(self.booster_.predict(inputs, num_threads=self.n_jobs))


def leave_out(
    dataset: MetaDataset,
    *,
    folds: int | None = None,
    group: str | Callable[[MetaTask], str] | None = None,
) -> Iterator[tuple[MetaDataset, Sequence[int]]]:
    """Memories without some tasks, and the indices of these; each task is left out once.

    Raises:
        ValueError: For fewer than two groups of tasks or folds, or a tag that no task has.
    """
    check_integer("folds", folds, 2, optional=True)
    if isinstance(group, str) and not any(group in task.tags for task in dataset.tasks):
        raise ValueError(f"No task has the tag {group!r}, so it groups nothing.")

    def label(task: MetaTask) -> str:
        if group is None:
            return task.name
        return task.tags.get(group, task.name) if isinstance(group, str) else group(task)

    labels = [label(task) for task in dataset.tasks]
    distinct = list(dict.fromkeys(labels))
    if len(distinct) < 2:
        raise ValueError(
            f"Leaving tasks out needs two at least that differ, this memory has {len(distinct)}."
        )
    n = len(distinct) if folds is None else min(folds, len(distinct))
    part = {name: i % n for i, name in enumerate(distinct)}
    for fold in range(n):
        out = [t for t, name in enumerate(labels) if part[name] == fold]
        names = {dataset.tasks[t].name for t in out}
        yield dataset.subset(lambda task, names=names: task.name not in names), out  # type: ignore[misc]


def rank_correlation(a: FloatArray, b: FloatArray) -> float:
    """Kendall's tau-b of two samples (n,); NaN where one of them is constant."""
    if len(a) < 2:
        return float("nan")
    return float(kendalltau(a, b).statistic)
