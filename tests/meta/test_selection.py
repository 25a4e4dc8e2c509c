"""Which configurations to start with, by hand and against brute force."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from automl_plugins.meta.designs.portfolios import greedy
from automl_plugins.meta.designs.predicted import delta_scores


def equal(k: int, n: int) -> np.ndarray:
    return np.full((k, n), 1.0 / n)


def test_greedy_by_hand() -> None:
    # 2 is best on average; given 2, configuration 0 mends scenario a, 1 mends b less
    scenarios = np.array([[0.0, 0.9, 0.4], [1.0, 0.1, 0.3]])
    assert greedy(scenarios, equal(3, 2)) == [2, 0, 1]


def test_doubt_spreads_what_the_scenarios_tie() -> None:
    # 0 and 1 are near-copies; 2 is a little worse and far from both
    scenarios = np.array([[0.0, 0.01, 0.02, 0.9]])
    doubt = np.array([[0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]]) * 0.1
    assert greedy(scenarios, equal(4, 1)) == [0, 1, 2, 3]
    assert greedy(scenarios, equal(4, 1), doubt) == [0, 2, 1, 3]
    assert greedy(scenarios, equal(4, 1), 0.0 * doubt) == [0, 1, 2, 3]


@given(seed=st.integers(0, 10_000), k=st.integers(1, 3))
@settings(max_examples=50, deadline=None)
def test_greedy_is_nearly_as_good_as_the_best_set(seed: int, k: int) -> None:
    scenarios = np.random.default_rng(seed).random((6, 7))

    def gain(chosen: tuple[int, ...]) -> float:  # against a regret of 1 everywhere
        return float((1.0 - scenarios[:, list(chosen)].min(axis=1)).mean())

    best = max(gain(chosen) for chosen in combinations(range(7), k))
    assert gain(tuple(greedy(scenarios, equal(k, 6)))) >= (1 - 1 / math.e) * best - 1e-12


def test_delta_by_hand() -> None:
    predicted = np.array([0.0, 1.0, 2.0, 10.0])  # p = 1, 0.9, 0.8, 0
    scores = delta_scores(predicted, 0.1)
    np.testing.assert_allclose(scores, [1.0, 0.1**0.1 + 0.9, 0.2**0.1 + 0.8, 1.0], rtol=1e-12)
    assert scores.argmax() == 1
    # both ends of the ranking score least
    assert scores[0] == scores[3] == scores.min()


@pytest.mark.parametrize(("delta", "maximum"), [(0.1, 0.923), (0.2, 0.866)])
def test_where_delta_has_its_maximum(delta: float, maximum: float) -> None:
    p = np.linspace(0.0, 1.0, 100_001)
    assert p[delta_scores(1.0 - p, delta).argmax()] == pytest.approx(maximum, abs=1e-3)


def test_delta_zero_is_the_ranking() -> None:
    predicted = np.random.default_rng(0).random(20)
    assert np.argsort(-delta_scores(predicted, 0.0)).tolist() == np.argsort(predicted).tolist()
    assert np.unique(delta_scores(np.ones(3), 0.1)).size == 1
