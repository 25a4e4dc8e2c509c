"""The kinds of problems of Hyperopt's own tests, with thresholds in their manner."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.hyperopt import ei_per_second, gbqr
from hyperopt import Trials, fmin, hp, space_eval
from hyperopt_functions import FUNCTIONS

#: Trials, and the loss that they must get below. The losses are near those that Hyperopt's tests
#: of simulated annealing ask for; the trials are as few as seed 0 needs.
THRESHOLDS = {
    "quadratic": (15, 1e-2),
    "lognormal": (25, 0.01),
    "halves": (20, 0.02),
    "arms": (40, -2.5),
    "distractor": (35, -1.9),
    "wave": (25, -2.0),
    "noisy_wave": (25, -2.0),
    "many_kinds": (40, 0.0005),
    "branin": (40, 0.7),
}


def best(algo: Any, problem: str, n: int) -> float:
    space, loss, _ = FUNCTIONS[problem]
    trials = Trials()
    fmin(
        loss(0),
        space(),
        algo=algo,
        max_evals=n,
        trials=trials,
        rstate=np.random.default_rng(0),
        show_progressbar=False,
        verbose=False,
    )
    assert len(trials) == n
    return float(min(trials.losses()))


@pytest.mark.parametrize("problem", list(THRESHOLDS))
def test_gbqr_gets_below(problem: str) -> None:
    n, threshold = THRESHOLDS[problem]
    algo = gbqr if problem in ("arms", "branin") else gbqr(n_models=2, n_candidates=300)
    assert best(algo, problem, n) < threshold


@pytest.mark.parametrize("problem", list(THRESHOLDS))
def test_ei_per_second_just_runs(problem: str) -> None:
    """Hyperopt's smoke test: ten trials on each."""
    assert np.isfinite(best(ei_per_second(n_candidates=50), problem, 10))


def test_least_losses_are_right() -> None:
    """At known minima, and by random points nothing is below."""
    at = {
        "quadratic": 3.0,
        "lognormal": 10.0,
        "halves": {"at": 3.0, "x": 3.0},
        "distractor": -10.0,
        "wave": {"x": 1.3, "shift": 0.0},
        "branin": {"x": np.pi, "y": 2.275},
        "many_kinds": {"a": 0, "b": 0, "bb": 12, "c": 5.0, "g": -17.0},
    }
    for problem, point in at.items():
        _, loss, least = FUNCTIONS[problem]
        assert loss(0)(point) == pytest.approx(least, abs=0.02), problem
    assert set(FUNCTIONS) == set(THRESHOLDS)
    label = space_eval(hp.choice("arm", [0, 1]), {"arm": 0})
    rewards = [FUNCTIONS["arms"][1](seed)(label) for seed in range(400)]
    assert np.mean(rewards) == pytest.approx(-1.0, abs=0.2)
