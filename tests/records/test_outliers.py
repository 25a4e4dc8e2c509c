"""Losses as large as floats get: their order counts, their size does not."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace
from hypothesis import given, settings
from hypothesis import strategies as st

from automl_plugins import recipes
from automl_plugins.meta.dataset import MetaDataset
from automl_plugins.proposers.proposal import Proposer
from automl_plugins.proposers.targets import Target
from automl_plugins.records.history import History
from automl_plugins.records.scores import divergence_limit, standardise_losses, tame
from automl_plugins.records.task_record import TaskRecord
from automl_plugins.records.trial import Status
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams
from automl_plugins.surrogates import ExtraTrees, GaussianProcess

LARGEST = sys.float_info.max
SPACE = ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0), "z": ["a", "b"]})

losses_of_any_size = st.lists(
    st.floats(-10, 10)
    | st.sampled_from([LARGEST, -LARGEST, 1e308, -1e308, 1e200, 1e20, 0.0, 5e-324]),
    min_size=1,
    max_size=30,
)


@settings(max_examples=100, deadline=None)
@given(losses_of_any_size)
def test_the_order_stays_and_sums_of_squares_are_finite(losses: list[float]) -> None:
    y = np.array(losses)
    z = tame(y)
    assert (np.diff(z[np.argsort(y, kind="stable")]) >= 0).all()
    assert len(np.unique(z)) >= len(np.unique(np.clip(y, -1e150, 1e150)))
    assert len(np.unique(z[np.abs(y) > 1e150])) == len(np.unique(y[np.abs(y) > 1e150]))
    assert np.isfinite((z - z.min()) ** 2).all()


@pytest.mark.parametrize(
    "losses",
    [
        [1e300, 2e300, 3e300, 4e300],
        [-LARGEST, 0.0, LARGEST],
        [-2e150, -1e150, 1e150, 1e151, 1e152],
    ],
)
def test_the_largest_losses_keep_their_order(losses: list[float]) -> None:
    y = np.array(losses)
    for found in (standardise_losses(y), standardise_losses(tame(y)), tame(y)):
        assert (np.diff(found) > 0).all()
    np.testing.assert_allclose(standardise_losses(y), standardise_losses(y / LARGEST))
    np.testing.assert_allclose(
        standardise_losses(np.array([1e300, 3e300, math.nan])), [-1.0, 1.0, 1.0]
    )


def test_equal_losses_whose_mean_is_rounded_become_0() -> None:
    y = np.array([0.1, 0.1, 0.1])
    assert y.mean() != 0.1
    np.testing.assert_array_equal(standardise_losses(y), np.zeros(3))


def test_losses_of_one_size_stay_as_they_are() -> None:
    y = np.append(np.random.default_rng(0).lognormal(0, 2, 200), [1e4, math.nan])
    np.testing.assert_array_equal(tame(y), y)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("n", [3, 4, 5, 30])
def test_others_keep_their_digits(n: int, sign: float) -> None:
    y = np.append(np.linspace(0.1, 0.2, n - 1), sign * LARGEST)
    z = tame(y)
    np.testing.assert_array_equal(z[:-1], y[:-1])
    assert 0.0 < sign * z[-1] - max(sign * y[:-1]) < 0.2


def test_a_quarter_that_has_diverged_leaves_the_others_their_digits() -> None:
    good, diverged = np.linspace(0.0, 1.0, 20), 1e8 * np.linspace(1.0, 2.0, 10)
    z = tame(np.concatenate([good, diverged]))
    np.testing.assert_array_equal(z[:20], good)
    assert (np.diff(z) > 0.0).all() and z[-1] < 2.0


def test_many_penalties_count_once() -> None:
    y = np.append(np.linspace(0.1, 0.2, 10), [LARGEST] * 50 + [1e300])
    z = tame(y)
    np.testing.assert_array_equal(z[:10], y[:10])
    assert z[10] > z[-1] > 0.2


@pytest.mark.parametrize(
    ("losses", "limit"),
    [
        ([0, 1, 2, 3, 4, 500], 4.0),  # quartiles 1 and 4, spread 2: 500 is 248 of them above
        ([500, 0, math.nan, 3, 1, 1, 2, 4, 500], 4.0),  # distinct losses count, in any order
        ([0, 1, 2, 3, 4, 200], math.inf),  # not far enough
        ([*range(8), 100, 5000], 100.0),  # above 7: 93 are 31 spreads, 4993 are 54 times 93
        ([*range(8), 100, 2500], math.inf),  # far, but no gap: 27 times
        ([0, 1, 1e9], 2.0),  # a quartile that has diverged itself counts as near as the other
        ([0, 1, 1e5], math.inf),
        ([0.5, 1e9, 0.5], math.inf),
        ([math.nan, math.nan], math.inf),
    ],
)
def test_the_limit_of_divergence_by_hand(losses: list[float], limit: float) -> None:
    y = np.array(losses, dtype=float)
    assert divergence_limit(y) == limit
    assert divergence_limit(4.0 * y - 3.0) == 4.0 * limit - 3.0


def memory(losses: np.ndarray) -> MetaDataset:
    rng = np.random.default_rng(1)
    records = []
    for name in ("one", "two"):
        values = [
            {"x": float(x), "y": float(y), "z": "ab"[i % 2]}
            for i, (x, y) in enumerate(rng.random((len(losses), 2)))
        ]
        records.append(TaskRecord(name, values, losses, space=SPACE))
    return MetaDataset.from_records(records)


RECIPES: dict[str, Callable[[], Proposer]] = {
    "gbqr": recipes.gbqr,
    "gbqr per second": lambda: recipes.gbqr(per_second=True),
    "thesis": recipes.gbqr_thesis,
    "ei per second": recipes.ei_per_second,
    "gp": lambda: recipes.make_proposer(GaussianProcess(), target="standardize"),
    "gp log": lambda: recipes.make_proposer(GaussianProcess(), target="log_regret"),
    "extra trees": lambda: recipes.make_proposer(ExtraTrees(n_trees=10), target="log_regret"),
    "tst": lambda: recipes.tst(memory(np.array([LARGEST, 0.1, 0.5, 0.3, -LARGEST, 1e308]))),
    "blended": lambda: recipes.blended(
        memory(np.array([LARGEST, 0.1, 0.5, 0.3, 0.2, 1e308])), n_suggested=2
    ),
    "pmf": lambda: recipes.pmf(
        memory(np.array([LARGEST, 0.1, 0.5, 0.3, -LARGEST, 1e308])), n_start=2
    ),
}


def history(losses: np.ndarray, seconds: np.ndarray | None = None) -> History:
    vectors = VectorSpace(SPACE).sample(len(losses), np.random.default_rng(len(losses)))
    status = np.where(np.isnan(losses), Status.FAILED, Status.COMPLETE)
    return History.of(vectors, losses, seconds=seconds, status=status)


@pytest.mark.parametrize("name", RECIPES)
@settings(max_examples=4, deadline=None)
@given(losses_of_any_size, st.data())
def test_every_recipe_continues(name: str, losses: list[float], data: st.DataObject) -> None:
    losses = [*losses, *np.linspace(0.0, 1.0, 9)]
    sizes = st.sampled_from([0.0, 5e-324, 1e-3, 1.0, 1e9, 1e300, LARGEST, math.nan])
    seconds = np.array(data.draw(st.lists(sizes, min_size=len(losses), max_size=len(losses))))
    space = VectorSpace(SPACE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        proposal = RECIPES[name]().propose(
            space, history(np.array(losses), seconds), Streams(0), 99
        )
    assert not np.isnan(proposal.vector).any()
    assert proposal.origin in ("model", "suggested") or name == "pmf"
    for fact in (proposal.loss, proposal.bound, proposal.seconds):
        assert fact is None or math.isfinite(fact)


@pytest.mark.parametrize("target", ["standardize", "log_regret"])
def test_a_region_of_the_largest_losses_is_left(target: Target) -> None:
    proposer = recipes.make_proposer(GaussianProcess(), target=target)
    points = history(np.full(12, math.nan)).vectors
    losses = (points[:, 0] - 0.3) ** 2 + (points[:, 1] - 0.6) ** 2
    losses[points[:, 0] > 0.75] = LARGEST
    found = []
    for k in range(12, 18):
        space = VectorSpace(SPACE)
        known = History.of(points, losses)
        x = proposer.propose(space, known, Streams(0), k).vector
        loss = LARGEST if x[0] > 0.75 else (x[0] - 0.3) ** 2 + (x[1] - 0.6) ** 2
        points, losses = np.vstack([points, x]), np.append(losses, loss)
        found.append(loss)
    assert min(found) < 0.002


@pytest.mark.parametrize("name", RECIPES)
def test_how_far_an_outlier_lies_changes_nothing(name: str) -> None:
    found = []
    for size in (1e7, 1e100, LARGEST):
        losses = np.random.default_rng(3).random(16)
        losses[[2, 7]] = size, -size  # the first has diverged and counts as a failure
        space, proposer = VectorSpace(SPACE), RECIPES[name]()
        found.append(proposer.propose(space, history(losses), Streams(0), 99).vector)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
