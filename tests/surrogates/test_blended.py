"""Blended: what earlier tasks predict, corrected by what the search finds."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from automl_plugins.arrays import FloatArray
from automl_plugins.proposers.targets import transform
from automl_plugins.recipes import gbqr_surrogate
from automl_plugins.surrogates import Blended, DistanceAware, QuantileBoosting
from automl_plugins.surrogates.blended import vote

RNG = np.random.default_rng(1)
X, NEW = RNG.random((12, 2)), RNG.random((9, 2))


def first_column(X: FloatArray) -> FloatArray:
    return 2.0 * X[:, 0] - 1.0


def scores(losses: FloatArray) -> FloatArray:
    return transform(losses, "normal_scores").values


Y = scores(first_column(X) + 0.2 * X[:, 1])


class Mean:
    """The mean of what it was fitted to; ``fit`` returns nothing, which ``Surrogate`` allows."""

    random_state: int | None = None

    def fit(self, X: FloatArray, y: FloatArray) -> None:
        self.y = y

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.full(len(X), self.y.mean()), np.full(len(X), 0.25)


def test_the_vote_by_hand() -> None:
    y, p = np.array([0.0, 1.0, 2.0]), np.array([0.5, 0.0, 2.5])
    # dp = (-0.5, -1, 1.5), dy = (-1, 0, 1): sums of products 2 and 3.5
    expected = 8 / 11 * (2 + 5) / (3.5 + 5)
    assert vote(y, p, 8.0, 5.0) == pytest.approx(expected)
    model = Blended(lambda X: p, Mean(), patience=8.0, caution=5.0).fit(np.eye(3), y)
    assert model.shares_ == {"meta-learner": pytest.approx(expected)}


def test_the_surrogate_learns_what_the_earlier_tasks_do_not_explain() -> None:
    model = Blended(first_column, Mean()).fit(X, Y)
    w = model.vote_
    assert 0.2 < w < 1.0
    mean, std = model.predict(NEW)
    residual = (Y - w * first_column(X)).mean()
    np.testing.assert_allclose(mean, w * first_column(NEW) + residual)
    gaps = np.linalg.norm(X[:, None] - X[None], axis=2) + np.diag([np.inf] * len(X))
    u = np.linalg.norm(NEW[:, None] - X[None], axis=2).min(axis=1)
    far = np.minimum(1.0, u / np.median(gaps.min(axis=1)))
    np.testing.assert_allclose(std, np.sqrt(0.25**2 + 4 / (4 + 12) * (2.0 * far) ** 2))


def test_held_out_is_the_vote_and_what_the_surrogate_held_out() -> None:
    model = Blended(first_column, QuantileBoosting(), random_state=4).fit(X, Y)
    assert 0.2 < model.vote_ < 1.0
    p = first_column(X)
    rest = QuantileBoosting(random_state=4).fit(X, Y - model.vote_ * p).held_out()
    assert 0 < np.isnan(rest).sum() < len(X)
    np.testing.assert_array_equal(model.held_out(), model.vote_ * p + rest)
    # Without a vote it is the surrogate's, and without one of its own nothing is known
    plain = QuantileBoosting(random_state=4).fit(X, Y).held_out()
    alone = Blended(None, QuantileBoosting(), random_state=4).fit(X, Y).held_out()
    np.testing.assert_array_equal(alone, plain)
    unknown = Blended(first_column, Mean()).fit(X, Y).held_out()
    np.testing.assert_array_equal(unknown, np.full(len(X), np.nan))
    assert Blended(first_column).fit(X[:0], Y[:0]).held_out().shape == (0,)


def test_without_observations_the_earlier_tasks_alone() -> None:
    model = Blended(first_column, name="memory").fit(np.empty((0, 2)), np.empty(0))
    mean, std = model.predict(NEW)
    np.testing.assert_array_equal(mean, first_column(NEW))
    assert (std > 0).all() and len(set(std)) == 1
    assert model.shares_ == {"memory": 1.0}
    # After one nothing was ranked, so the earlier tasks still rank.
    mean, _ = Blended(first_column).fit(X[:1], np.zeros(1)).predict(NEW)
    np.testing.assert_array_equal(np.argsort(mean), np.argsort(first_column(NEW)))


@given(seed=st.integers(0, 500), n=st.integers(1, 40))
@settings(max_examples=60)
def test_the_vote_is_a_share(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    y, p = scores(rng.normal(size=n)), rng.normal(size=n) * 10.0 ** rng.integers(-3, 3)
    assert 0.0 <= vote(y, p, 8.0, 5.0) <= 1.0


def test_the_vote_fades_even_where_all_agrees() -> None:
    rows = RNG.random((200, 2))
    y = first_column(rows)
    votes = [vote(scores(y[:n]), y[:n], 4.0, 2.0) for n in (1, 10, 50, 200)]
    assert votes == sorted(votes, reverse=True) and votes[-1] < 0.1
    assert vote(scores(y), y, 1e6, 2.0) > 0.9


def test_what_contradicts_takes_the_vote_away() -> None:
    p = first_column(X)
    agreeing, indifferent, opposed = (
        vote(scores(y), p, 4.0, 2.0) for y in (p, np.sin(40.0 * X[:, 1]), -p)
    )
    assert agreeing > indifferent > opposed == 0.0


def test_without_a_vote_it_is_the_plain_surrogate_of_gbqr() -> None:
    Y = scores(-first_column(X))
    plain = DistanceAware(QuantileBoosting(), random_state=5).fit(X, Y).predict(NEW)
    nothing = Blended(random_state=5).fit(X, Y)
    for model in (nothing, Blended(first_column, gbqr_surrogate(), random_state=5).fit(X, Y)):
        np.testing.assert_array_equal(model.predict(NEW), plain)
    assert nothing.shares_ == {}


def test_the_level_of_the_predictions_does_not_matter() -> None:
    here = Blended(first_column, random_state=0).fit(X, Y).predict(NEW)
    there = Blended(lambda X: first_column(X) + 7.0, random_state=0).fit(X, Y).predict(NEW)
    np.testing.assert_allclose(there, here, atol=1e-4)


def test_copies_predict_the_same() -> None:
    model = Blended(first_column, patience=5.0, random_state=2).fit(X, Y)
    for other in (pickle.loads(pickle.dumps(model)), clone(model).fit(X, Y)):
        np.testing.assert_array_equal(other.predict(NEW), model.predict(NEW))
    assert model.surrogate is None  # the argument stays what was given
