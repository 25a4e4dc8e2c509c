"""Recommend pipelines for a new data set from a matrix of losses: matrix factorisation (PMF).

The matrix has a row for each pipeline and a column for each data set, NaN where a pipeline was not
tried: bring your own. Here it is 448 pipelines of seven learners, really trained on about fifty
data sets, from the memories that come with the package. The new data set is the breast cancer
data of scikit-learn, left out of the matrix together with its relatives.

python examples/pmf_recommend.py
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from memory_learners import LEARNERS
from warm_start_tasks import Task

from automl_plugins.meta import bundled
from automl_plugins.meta.factorization import MatrixFactorization, Recommender, complementary

NEW, FAMILY = "breast_cancer", "breast cancer wisconsin"
EVALUATIONS = 10


def recorded() -> pd.DataFrame:
    """Losses, pipelines x data sets; a pipeline is its learner and configuration as JSON."""
    runs = [
        (json.dumps([learner, dict(configuration)], sort_keys=True), record.name, float(loss))
        for learner in LEARNERS
        for record in bundled(learner).records()
        if record.tags["family"] != FAMILY
        for configuration, loss in zip(record.configurations, record.losses, strict=True)
    ]
    frame = pd.DataFrame(runs, columns=["pipeline", "data_set", "error"])
    return frame.pivot(index="pipeline", columns="data_set", values="error")


def main() -> None:
    matrix = recorded()
    pipelines: list[tuple[str, dict[str, Any]]] = [json.loads(text) for text in matrix.index]
    missing = float(matrix.isna().to_numpy().mean())
    print(f"{len(matrix)} pipelines x {matrix.shape[1]} data sets, {missing:.1%} missing")
    Y = matrix.to_numpy()
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
        nearest = matrix.columns[int(chosen.shares.argmax())]
        rows.append((pipelines[chosen.row][0], chosen.loss, losses[-1], min(losses), nearest))

    drawn = np.random.default_rng(0).choice(len(Y), 3 * EVALUATIONS, replace=False)
    at_random = np.array([evaluate(int(row)) for row in drawn]).reshape(3, EVALUATIONS)
    table = pd.DataFrame(rows, columns=["learner", "expected", "loss", "best", "most like"])
    table.insert(4, "at random", np.minimum.accumulate(at_random, axis=1).mean(axis=0))
    table.index = pd.RangeIndex(1, len(table) + 1, name="evaluation")
    print(f"Balanced error on {NEW}; at random: mean best of three searches")
    print(table.round(4).to_string())


if __name__ == "__main__":
    main()
