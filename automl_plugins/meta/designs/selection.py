"""Which configurations to start with, given their regrets in several scenarios: pure functions.

Notation: S scenarios, C configurations, k picks.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from automl_plugins.proposers.acquisition import expected_improvement

FloatArray = npt.NDArray[np.float64]

NO_GAIN = 1e-9  # what rounding leaves of a gain of nothing


def greedy(
    scenarios: FloatArray, weights: FloatArray, doubt: npt.NDArray[np.float64] | None = None
) -> list[int]:
    """The configurations that lower the expected regret of the best one most, one by one.

    The gain has diminishing returns, so with equal weights for all picks the greedy choice is at
    least 1 - 1/e as good as the best set of k (Nemhauser, Wolsey and Fisher 1978).

    Args:
        scenarios: Regrets (S, C).
        weights: Probabilities of the scenarios at each pick (k, S).
        doubt: Standard deviation (C, C) of the difference between the regrets of two
            configurations in a scenario. A pick then gains as much as is expected of a regret
            with that deviation from the pick nearest to it. None for none.

    Returns:
        Indices, distinct: k, or as many as there are configurations.
    """
    n_scenarios, n = scenarios.shape
    best = np.full(n_scenarios, np.inf)
    chosen: list[int] = []
    for row in weights[:n]:
        if chosen and doubt is not None:
            std = doubt[chosen].min(axis=0)
            gain = expected_improvement(scenarios, std, best[:, None])
            expected = row @ (best[:, None] - gain)
        else:
            expected = row @ np.minimum(best[:, None], scenarios)
        expected[chosen] = np.inf
        # Once the best of every scenario is chosen nothing is gained: then the best on average.
        tied = np.flatnonzero(expected <= expected.min() + NO_GAIN)
        pick = int(tied[(row @ scenarios[:, tied]).argmin()])
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
