"""Recommend pipelines for a new data set from a matrix of losses: matrix factorisation (PMF).

The matrix has a row for each pipeline and a column for each data set, NaN where a pipeline was not
tried. Replace it by your own: here it has 192 pipelines, trained on about fifty data sets, from
the memories that come with the package. The new data set is wine, which is left out of them.

    python examples/pmf_recommend.py [--n-trials 10]
"""

import argparse
import json

import numpy as np
from sklearn.datasets import load_wine
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from automl_plugins.meta import bundled
from automl_plugins.meta.factorization import MatrixFactorization, Recommender, complementary

LEARNERS = {"knn": KNeighborsClassifier, "extra_trees": ExtraTreesClassifier, "svm": SVC}


def record() -> tuple[list[str], np.ndarray]:  # pipelines as JSON, losses by data set
    runs = {
        (json.dumps([learner, configuration]), task.name): loss
        for learner in LEARNERS
        for task in bundled(learner).without("wine").records()
        for configuration, loss in zip(task.configurations, task.losses, strict=True)
    }
    pipelines, tasks = (sorted(set(names)) for names in zip(*runs, strict=True))
    return pipelines, np.array([[runs.get((p, t), np.nan) for t in tasks] for p in pipelines])


def evaluate(pipeline: str) -> float:
    X, y = load_wine(return_X_y=True)
    learner, values = json.loads(pipeline)
    options = {name: None if value == "none" else value for name, value in values.items()}
    model = make_pipeline(StandardScaler(), LEARNERS[learner](**options))
    return 1.0 - float(cross_val_score(model, X, y, cv=3, scoring="balanced_accuracy").mean())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n-trials", type=int, default=10)
    n, (pipelines, Y) = parser.parse_args().n_trials, record()
    model, tried, losses = MatrixFactorization(random_state=0).fit(Y), list[int](), np.array([])
    recommender = Recommender(model, Y, complementary(model.scaled(Y), model.mean_, 5))
    for _ in range(n):
        row = recommender.next(tried, losses, [], ~np.isin(np.arange(len(Y)), tried)).row
        tried, losses = [*tried, row], np.append(losses, evaluate(pipelines[row]))
        print(f"error {losses[-1]:.4f}, best so far {losses.min():.4f}: {pipelines[row]}")
    drawn = np.random.default_rng(0).choice(pipelines, (5, n))
    luck = np.mean([min(map(evaluate, search)) for search in drawn])
    print(f"best of {n} pipelines at random: {luck:.4f}, mean of 5 searches")
