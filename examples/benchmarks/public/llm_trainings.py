"""11,172 trainings of a small language model, a third of which ran out of memory, as a problem.

Ferreira et al. 2026 (arXiv 2603.24647) gave nine search methods 24 hours each, three times. Two
models of their runs answer any configuration: one predicts whether a training runs out of memory,
the other its loss if not. A model may predict losses below all measured ones, so no answer is
better than the best of the nearest recorded runs.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from ConfigSpace import Categorical, ConfigurationSpace, Float, Integer
from families import Config, Task
from lightgbm import LGBMClassifier, LGBMRegressor
from recorded_tables import read_csv
from scipy.spatial import KDTree
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

from automl_plugins.arrays import FloatArray

HOURS = 24
SECONDS_OF_TRAINING, SECONDS_OF_FAILURE = 300.0, 32.0
N_NEAREST = 5  # recorded runs; the best of them bounds an answer
JUDGE = "Random"  # the method whose runs validate the models
N_TRIALS = 1000  # more than fit into the hours unless nine in ten fail

_PATTERN = "WINDOW_PATTERN"
_PATTERNS = ["SSSL", "SSLL", "SLSL", "LLLL", "SSSS", "LSSL"]
_INTEGERS = {  # lower, upper, logarithmic
    "DEPTH": (4, 24, False),
    "ASPECT_RATIO": (32, 128, False),
    "HEAD_DIM": (64, 256, True),
    "DEVICE_BATCH_SIZE": (32, 256, True),
    "TOTAL_BATCH_SIZE": (65_536, 2_097_152, True),
}
_POWERS = ("HEAD_DIM", "DEVICE_BATCH_SIZE", "TOTAL_BATCH_SIZE")  # rounded to powers of two
_FLOATS = {
    "EMBEDDING_LR": (0.01, 2.0, True),
    "UNEMBEDDING_LR": (0.0005, 0.05, True),
    "MATRIX_LR": (0.005, 0.2, True),
    "SCALAR_LR": (0.05, 2.0, True),
    "WEIGHT_DECAY": (0.0, 0.5, False),
    "WARMUP_RATIO": (0.0, 0.3, False),
    "WARMDOWN_RATIO": (0.1, 0.8, False),
    "FINAL_LR_FRAC": (0.0, 0.2, False),
}
_NUMBERS = _INTEGERS | _FLOATS


def space() -> ConfigurationSpace:
    """The 14 hyperparameters in the ranges that were searched."""
    found = ConfigurationSpace()
    found.add(Integer(name, (low, high), log=log) for name, (low, high, log) in _INTEGERS.items())
    found.add(Float(name, (low, high), log=log) for name, (low, high, log) in _FLOATS.items())
    found.add(Categorical(_PATTERN, _PATTERNS))
    return found


def recorded() -> pd.DataFrame:
    """The runs whose 14 hyperparameters are all known, with one of the six patterns."""
    frame = read_csv("llm_trainings/trials.csv.gz").dropna(subset=[*_NUMBERS, _PATTERN])
    return frame[frame[_PATTERN].isin(_PATTERNS)].reset_index(drop=True)


def features(frame: pd.DataFrame) -> FloatArray:
    """Numbers scaled to [0, 1] over their ranges (logarithms where so searched), and dummies."""
    columns = []
    for name, (low, high, log) in _NUMBERS.items():
        ends = np.array([low, high], dtype=np.float64)
        values = frame[name].to_numpy(np.float64)
        if name in _POWERS:  # as in the recorded searches
            values = 2.0 ** np.round(np.log2(values))
        if log:
            ends, values = np.log(ends), np.log(values)
        columns.append((values - ends[0]) / (ends[1] - ends[0]))
    patterns = frame[_PATTERN].to_numpy()
    # Two patterns are as far apart as the two ends of a range.
    columns += [(patterns == p) / math.sqrt(2) for p in _PATTERNS]
    return np.column_stack(columns)


class Answer(NamedTuple):
    """The result of a training; the loss is NaN if it ran out of memory."""

    loss: float
    seconds: float


class Trainings:
    """The models, fitted to recorded runs.

    Args:
        runs: Rows as ``recorded`` returns them.
    """

    def __init__(self, runs: pd.DataFrame) -> None:
        X, fine = features(runs), runs["success"].to_numpy(bool)
        options: dict[str, Any] = dict(
            n_estimators=600, learning_rate=0.05, n_jobs=1, verbosity=-1, random_state=0
        )
        self._losses = runs["val_bpb"].to_numpy(np.float64)[fine]
        self._failure = LGBMClassifier(**options).fit(X, ~fine)
        # A tenth of the losses lies far above the others: logarithms of the excess fit them alike.
        self._floor = self._losses.min() - 0.01
        self._loss = LGBMRegressor(**options).fit(X[fine], np.log(self._losses - self._floor))
        self._nearest = KDTree(X[fine])

    def failure(self, X: FloatArray) -> FloatArray:
        """Probability (n,) of running out of memory."""
        return np.asarray(self._failure.booster_.predict(X), dtype=np.float64)

    def losses(self, X: FloatArray) -> FloatArray:
        """Bits per byte (n,) if memory suffices, no better than the nearest recorded runs."""
        predicted = np.exp(self._loss.booster_.predict(X)) + self._floor
        _, places = self._nearest.query(X, k=N_NEAREST)
        best = self._losses[places].min(axis=1)
        return np.asarray(np.maximum(predicted, best), dtype=np.float64)

    def answer(self, config: Config) -> Answer:
        """Loss and seconds of a configuration; it fails where that is likelier than not."""
        X = features(pd.DataFrame([dict(config)]))
        if self.failure(X)[0] > 0.5:
            return Answer(math.nan, SECONDS_OF_FAILURE)
        return Answer(float(self.losses(X)[0]), SECONDS_OF_TRAINING)


def validate() -> dict[str, float]:
    """How well models fitted to the other methods' runs predict those of random search."""
    runs = recorded()
    other = (runs["method"] == JUDGE).to_numpy()
    models, judged = Trainings(runs[~other]), runs[other]
    X, fine = features(judged), judged["success"].to_numpy(bool)
    return {
        "area under the ROC curve of failures": float(roc_auc_score(~fine, models.failure(X))),
        "share of failures predicted right": float(np.mean((models.failure(X) > 0.5) == ~fine)),
        "rank correlation of losses": float(
            spearmanr(models.losses(X[fine]), judged["val_bpb"][fine]).statistic
        ),
    }


def task() -> Task:
    """The search: 24 simulated hours."""
    models = Trainings(recorded())
    known: dict[tuple[Any, ...], Answer] = {}

    def answer(config: Config) -> Answer:
        key = tuple(sorted(config.items()))
        if key not in known:
            known[key] = models.answer(config)
        return known[key]

    return Task(
        "llm/24 hours",
        space(),
        lambda config: answer(config).loss,
        seconds=lambda config: answer(config).seconds,
        until=3600.0 * HOURS,
    )
