"""Which configurations to start with, given their regrets in several scenarios: pure functions.

Notation: ``scenarios`` (S, C) holds the regret of C configurations in S cases, ``weights`` (S,)
their probabilities.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def greedy(scenarios: FloatArray, k: int, weights: FloatArray | None = None) -> list[int]:
    """The k configurations that lower the expected regret of the best one most, one by one.

    The gain has diminishing returns, so the greedy choice is at least 1 - 1/e as good as the best
    set of k (Nemhauser, Wolsey and Fisher 1978).

    Returns:
        Indices, distinct, at most as many as there are configurations.
    """
    n_scenarios, n = scenarios.shape
    if weights is None:
        weights = np.full(n_scenarios, 1.0 / n_scenarios)
    best = np.full(n_scenarios, np.inf)
    chosen: list[int] = []
    for _ in range(min(k, n)):
        expected = weights @ np.minimum(best[:, None], scenarios)
        expected[chosen] = np.inf
        pick = int(expected.argmin())
        chosen.append(pick)
        best = np.minimum(best, scenarios[:, pick])
    return chosen


def delta_scores(predicted: FloatArray, delta: float) -> FloatArray:
    """The thesis's trade between rank and spread (thesis 6.3), larger is better.

    score = (1 - p)^delta + p, p the predictions (n,) of losses scaled so that 1 is the best. With
    delta = 0 the first term is 1 everywhere (0^0 = 1), so the order is that of p.
    """
    low, high = predicted.min(), predicted.max()
    p = (high - predicted) / (high - low) if high > low else np.ones(len(predicted))
    return np.asarray((1.0 - p) ** delta + p)
