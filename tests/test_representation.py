"""Samplers and policies show how they were constructed, briefly."""

from __future__ import annotations

import copy
import pickle

import pytest
from automl_plugins.adapters.optuna import (
    BanditSampler,
    BOASFSampler,
    GBQRSampler,
    SuccessiveFilteringPruner,
    SurrogateSampler,
    TSTSampler,
    WeightedModelSampler,
)
from optuna.samplers import RandomSampler

from automl_plugins.bandits import UCB1, IncreasingEffort, MaxUCB

SHOWN = {
    "GBQRSampler(seed=1)": GBQRSampler(seed=1),
    "GBQRSampler(balance=None, seed=1)": GBQRSampler(seed=1, balance=None, alpha=0.3),
    "GBQRSampler.thesis(n_startup_trials=4, seed=1)": GBQRSampler.thesis(
        n_startup_trials=4, seed=1
    ),
    "SurrogateSampler(surrogate='extra_trees', seed=2)": SurrogateSampler(
        surrogate="extra_trees", seed=2
    ),
    "TSTSampler(sources='svm', seed=3)": TSTSampler("svm", seed=3),
    "TSTSampler.paper(sources='svm', seed=3)": TSTSampler.paper("svm", seed=3),
    "BanditSampler(arm='model', policy=UCB1(c=1.0), inner=RandomSampler)": BanditSampler(
        "model", policy=UCB1(c=1.0), inner=RandomSampler
    ),
    "BOASFSampler(n_trials=20, score='mean', seed=0)": BOASFSampler(
        n_trials=20, rounds=3, score="mean", seed=0
    ),
    "WeightedModelSampler(weights=<dict of 2>)": WeightedModelSampler(weights={"a": 1, "b": 2}),
    "MaxUCB()": MaxUCB(),
    "IncreasingEffort(min_pulls=3)": IncreasingEffort(min_pulls=3),
}


@pytest.mark.parametrize("text", SHOWN)
def test_shown_as_constructed(text: str) -> None:
    shown = SHOWN[text]
    assert repr(shown) == text
    assert repr(pickle.loads(pickle.dumps(shown))) == text
    assert repr(copy.deepcopy(shown)) == text


def test_arguments_are_not_held_and_mistakes_are_those_of_the_constructor() -> None:
    long = GBQRSampler(independent_sampler=RandomSampler(), ordinal={"x": ["a", "b"]})
    assert repr(long) == "GBQRSampler(ordinal=<dict of 1>, independent_sampler=<RandomSampler>)"
    assert len(pickle.dumps(SuccessiveFilteringPruner())) < 2000
    with pytest.raises(TypeError, match="sed"):
        UCB1(sed=1)  # type: ignore[call-arg]
