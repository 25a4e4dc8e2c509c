"""Recommend pipelines for a new data set from a matrix of losses: matrix factorisation (PMF).

The matrix has a row for each pipeline and a column for each data set, NaN where a pipeline was not
tried: bring your own. Here it is 448 pipelines of seven learners, really trained on about fifty
data sets, from the memories that come with the package. The new data set is iris, left out of the
matrix. Where most pipelines are about as good, as on the breast cancer data, nothing beats luck.

python examples/pmf_recommend.py
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from warm_start_tasks import LEARNERS, Task

from automl_plugins.meta import bundled
from automl_plugins.meta.factorization import MatrixFactorization, Recommender, complementary

NEW, FAMILY = "iris", "iris"
EVALUATIONS = 10


def recorded() -> tuple[list[str], list[str], np.ndarray]:
    """Pipelines (their learner and configuration as JSON), data sets, and losses of all pairs."""
    runs = {
        (json.dumps([learner, dict(configuration)], sort_keys=True), record.name): float(loss)
        for learner in LEARNERS
        for record in bundled(learner).records()
        if record.tags["family"] != FAMILY
        for configuration, loss in zip(record.configurations, record.losses, strict=True)
    }
    pipelines, data_sets = sorted({p for p, _ in runs}), sorted({d for _, d in runs})
    losses = np.array([[runs.get((p, d), np.nan) for d in data_sets] for p in pipelines])
    return pipelines, data_sets, losses


def main() -> None:
    texts, data_sets, Y = recorded()
    pipelines: list[tuple[str, dict[str, Any]]] = [json.loads(text) for text in texts]
    missing = np.isnan(Y).mean()
    print(f"{len(texts)} pipelines x {len(data_sets)} data sets, {missing:.1%} missing")
    model = MatrixFactorization(random_state=0).fit(Y)

    with tempfile.TemporaryDirectory() as folder:  # fit once, keep, use for many data sets
        path = Path(folder) / "pipelines.npz"
        model.save(path)
        model = MatrixFactorization.load(path)

    start = complementary(model.scaled(Y), model.mean_, 5)
    recommender = Recommender(model, Y, start)
    tasks = {learner: Task(NEW, learner) for learner in LEARNERS}

    def evaluate(row: int) -> float:
        learner, configuration = pipelines[row]
        return tasks[learner].loss(configuration)

    tried: list[int] = []
    losses: list[float] = []
    rows = []
    for _ in range(EVALUATIONS):
        allowed = np.ones(len(Y), dtype=bool)
        allowed[tried] = False
        chosen = recommender.next(tried, np.array(losses), [], allowed)
        tried.append(chosen.row)
        losses.append(evaluate(chosen.row))
        nearest = data_sets[int(chosen.shares.argmax())]
        rows.append((pipelines[chosen.row][0], chosen.loss, losses[-1], min(losses), nearest))

    drawn = np.random.default_rng(0).choice(len(Y), 3 * EVALUATIONS, replace=False)
    at_random = np.array([evaluate(int(row)) for row in drawn]).reshape(3, EVALUATIONS)
    luck = np.minimum.accumulate(at_random, axis=1).mean(axis=0)
    print(f"Balanced error on {NEW}; at random: mean best of three searches")
    print(f"{'':4s}{'learner':20s} expected    loss    best  at random  most like")
    for k, (row, random) in enumerate(zip(rows, luck, strict=True), 1):
        learner, expected, loss, best, nearest = row
        told = "" if expected is None else f"{expected:.4f}"  # the start is not predicted
        numbers = f"{told:>9s} {loss:7.4f} {best:7.4f} {random:10.4f}"
        print(f"{k:2d}  {learner:20s}{numbers}  {nearest}")


if __name__ == "__main__":
    main()
