"""TwoStageTransfer: the second stage."""

from __future__ import annotations

import copy
import pickle
from types import ModuleType

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau
from sklearn.base import clone

from automl_plugins.arrays import FloatArray
from automl_plugins.meta import MetaDataset, TaskRecord
from automl_plugins.surrogates.base import informative_rows, log_expected_improvement
from automl_plugins.surrogates.two_stage import (
    TwoStageTransfer,
    discordance,
    epanechnikov,
    meta_feature_distance,
)
from automl_plugins.surrogates.two_stage_sources import Sources

GRID = np.random.default_rng(3).random((30, 2))


def loss(x: FloatArray, centre: float) -> FloatArray:
    return (x[:, 0] - centre) ** 2 + 0.5 * (x[:, 1] - centre) ** 2


def a_memory(centres: tuple[float, ...] = (0.2, 0.3, 0.8), *, sign: float = 1.0) -> MetaDataset:
    space = ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)})
    configurations = [{"x": x, "y": y} for x, y in GRID.tolist()]
    return MetaDataset.from_records(
        [
            TaskRecord(
                f"task {c}",
                configurations,
                sign * loss(GRID, c),
                space=space,
                meta_features={"a": c, "b": 1.0},
            )
            for c in centres
        ],
        space,
    )


SOURCES = Sources.fit(a_memory())
NEW = np.random.default_rng(4).random((9, 2))
X = np.random.default_rng(5).random((6, 2))
Y = loss(X, 0.25)


# The equations


def test_the_papers_mean_and_deviation_by_hand() -> None:
    model = TwoStageTransfer.paper(SOURCES, bandwidth=0.5).fit(X, Y)
    mu, sigma = model.own_.predict(NEW)
    f, seen = SOURCES.predict(NEW), SOURCES.predict(X)
    pairs = [(i, j) for j in range(6) for i in range(j)]
    k = []
    for row in seen:
        u = np.mean([(Y[i] < Y[j]) != (row[i] < row[j]) for i, j in pairs]) / 0.5
        k.append(0.75 * (1 - u * u) if u <= 1 else 0.0)
    mean, std = model.predict(NEW)
    np.testing.assert_allclose(mean, (k @ f + 0.75 * mu) / (sum(k) + 0.75))
    np.testing.assert_array_equal(std, sigma)
    np.testing.assert_allclose(model.weights_, k)
    assert model.own_share_ == pytest.approx(0.75 / (sum(k) + 0.75))
    assert sum(model.shares_.values()) + model.own_share_ == pytest.approx(1.0)


def test_the_defaults_by_hand() -> None:
    model = TwoStageTransfer(SOURCES).fit(X, Y)
    mu, sigma = model.own_.predict(NEW)
    seen, k, k0 = SOURCES.predict(X), model.weights_, 0.75 * 7.0
    assert (k > 0).sum() >= 2 and model.own_weight_ == k0
    stretch = Y.std() / (np.sum(k * seen.std(axis=1)) / k.sum())
    f = Y.mean() + stretch * (SOURCES.predict(NEW) - seen.mean(axis=1)[:, None])
    centre = k @ f / k.sum()
    mean, std = model.predict(NEW)
    np.testing.assert_allclose(mean, (k @ f + k0 * mu) / (k.sum() + k0))
    a = k.sum() / (k.sum() + k0)
    variance = k @ (f - centre) ** 2 / k.sum()
    np.testing.assert_allclose(std, np.sqrt((1 - a) * sigma**2 + 2 * a * variance))


def test_held_out_is_what_each_task_predicts_whether_it_has_a_vote_or_not() -> None:
    for y in (Y, -Y):
        model = TwoStageTransfer(SOURCES).fit(X, y)
        np.testing.assert_array_equal(model.held_out(), SOURCES.predict(X))
    assert TwoStageTransfer(SOURCES).fit(X[:0], Y[:0]).held_out().shape == (3, 0)
    alone = TwoStageTransfer().fit(X, Y)
    np.testing.assert_array_equal(alone.held_out(), alone.own_.held_out())


def test_held_out_beyond_the_cap() -> None:
    y = loss(GRID, 0.25)
    rows = informative_rows(y, 10)
    for sources in (SOURCES, None):
        capped = TwoStageTransfer(sources, max_rows=10).fit(GRID, y).held_out()
        fewer = TwoStageTransfer(sources).fit(GRID[rows], y[rows]).held_out()
        np.testing.assert_allclose(capped[..., rows], fewer)
        assert np.isnan(capped).sum() == 20 * capped.size / 30


def test_what_is_promised_is_in_units_of_the_earlier_tasks() -> None:
    model = TwoStageTransfer(SOURCES).fit(X, 100.0 + 7.0 * Y)
    assert 0.0 <= model.weights_.min() < model.weights_.max()
    expected = np.average(SOURCES.predict(NEW), axis=0, weights=model.weights_)
    np.testing.assert_allclose(model.promise(NEW), expected, atol=1e-12)
    np.testing.assert_array_equal(TwoStageTransfer().fit(X, Y).promise(NEW), np.nan)


def test_the_first_point_is_ranked_by_the_mean_of_the_first_stage() -> None:
    for model in (TwoStageTransfer(SOURCES), TwoStageTransfer.paper(SOURCES)):
        mean, std = model.fit(np.empty((0, 2)), np.empty(0)).predict(NEW)
        np.testing.assert_allclose(mean, SOURCES.predict(NEW).mean(axis=0))
        assert (std > 0).all()
        assert (model.weights_ == 0.75).all()
        # the own process, which knows nothing yet, has no part in it
        assert model.own_share_ == 0.0 and sum(model.shares_.values()) == pytest.approx(1.0)
    assert TwoStageTransfer().fit(np.empty((0, 2)), np.empty(0)).own_share_ == 1.0


@pytest.mark.parametrize("n", [1, 2])
def test_few_or_constant_observations(n: int) -> None:
    model = TwoStageTransfer(SOURCES).fit(X[:n], np.full(n, 3.0))
    mean, std = model.predict(NEW)
    assert np.isfinite(mean).all() and (std > 0).all()
    assert n > 1 or (model.weights_ == 0.75).all()  # one cannot disagree


@pytest.mark.parametrize("scale", ["anchored", "raw"])
@pytest.mark.parametrize("spread", ["votes", "own"])
def test_without_votes_it_is_the_plain_process(scale: str, spread: str) -> None:
    # the tasks rank the other way round
    model = TwoStageTransfer(SOURCES, scale=scale, spread=spread)  # type: ignore[arg-type]
    model.fit(GRID, -loss(GRID, 0.4))
    assert not model.weights_.any() and model.own_share_ == 1.0
    expected = model.own_.predict(NEW)
    np.testing.assert_array_equal(model.predict(NEW), expected)


def test_no_sources_is_the_plain_process() -> None:
    model = TwoStageTransfer().fit(X, Y)
    np.testing.assert_array_equal(model.predict(NEW), model.own_.predict(NEW))
    again = TwoStageTransfer(uninformed=False).fit(X, Y)  # nothing has taught it a kernel
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))


# Agreement


def test_discordance_by_hand() -> None:
    losses = np.array([1.0, 2.0, 2.0])
    predicted = np.array(
        [
            [1.0, 2.0, 2.0],  # the same
            [0.1, 0.3, 0.2],  # one pair tied on one side
            [3.0, 2.0, 2.0],  # two of three the other way round
            [5.0, 5.0, 5.0],  # two ties on its side only
        ]
    )
    np.testing.assert_allclose(discordance(losses, predicted), [0.0, 0.5 / 3, 2 / 3, 1.0 / 3])
    # y_i > y_j of losses, i before j: no pair of the observed ones
    np.testing.assert_allclose(discordance(losses, predicted, "strict"), [0, 1 / 3, 2 / 3, 0])
    for t in (0, 1):  # no pairs
        np.testing.assert_array_equal(discordance(losses[:t], predicted[:, :t]), np.zeros(4))


@given(seed=st.integers(0, 10_000), t=st.integers(2, 12))
def test_without_ties_it_is_kendalls_tau(seed: int, t: int) -> None:
    rng = np.random.default_rng(seed)
    losses, predicted = rng.permutation(t).astype(float), rng.random((2, t))
    expected = [(1.0 - kendalltau(losses, row).statistic) / 2.0 for row in predicted]
    for ties in ("half", "strict"):
        found = discordance(losses, predicted, ties)
        np.testing.assert_allclose(found, expected, atol=1e-12)


@given(seed=st.integers(0, 10_000))
def test_half_ties_know_no_order_and_negation_is_the_opposite(seed: int) -> None:
    rng = np.random.default_rng(seed)
    losses, predicted = rng.integers(3, size=8).astype(float), rng.integers(3, size=(4, 8)) / 2.0
    order = rng.permutation(8)
    found = discordance(losses, predicted)
    np.testing.assert_allclose(discordance(losses[order], predicted[:, order]), found)
    tied = np.array(
        [
            np.mean(
                [(losses[i] == losses[j]) & (row[i] == row[j]) for j in range(8) for i in range(j)]
            )
            for row in predicted
        ]
    )
    np.testing.assert_allclose(discordance(losses, -predicted) + found, 1.0 - tied, atol=1e-12)


def test_epanechnikov_by_hand() -> None:
    k = epanechnikov(np.array([0.0, 0.1, 0.2, 0.3, np.inf]), 0.2)
    np.testing.assert_allclose(k, [0.75, 0.5625, 0.0, 0.0, 0.0])


def test_meta_feature_distance_by_hand() -> None:
    earlier = np.array([[0.0, 5.0], [10.0, np.nan], [5.0, 5.0], [np.nan, np.nan]])
    # the first ranges over 0..10, the second over 5..7
    found = meta_feature_distance({"a": 5.0, "b": 7.0, "c": 1.0}, earlier, ["a", "b"])
    np.testing.assert_allclose(found, [np.sqrt((0.25 + 1.0) / 2), 0.5, np.sqrt(0.5), np.inf])
    assert np.isinf(meta_feature_distance({}, earlier, ["a", "b"])).all()
    assert np.isinf(meta_feature_distance({"a": 1.0}, np.empty((2, 0)), [])).all()


def test_the_largest_meta_features_have_a_distance() -> None:
    earlier = np.array([[-1e308], [2.0], [np.nan], [1e308]])
    found = meta_feature_distance({"a": 1e308}, earlier, ["a"])
    np.testing.assert_allclose(found, [1.0, 0.5, np.inf, 0.0])
    assert earlier[1, 0] == 2.0  # left alone


# What must not matter


@pytest.mark.parametrize("factor", [1e-6, 1e6])
@pytest.mark.parametrize("n", [2, 6])
def test_the_unit_and_the_order_of_the_losses_do_not_matter(factor: float, n: int) -> None:
    mean, std = TwoStageTransfer(SOURCES).fit(X[:n], Y[:n]).predict(NEW)
    order = np.random.default_rng(n).permutation(n)
    moved = TwoStageTransfer(SOURCES).fit(X[order], factor * (Y[order] - 5.0)).predict(NEW)
    np.testing.assert_allclose(moved[0] / factor + 5.0, mean, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(moved[1] / factor, std, rtol=1e-2, atol=1e-4)


def test_a_memory_is_fitted_once_and_copies_predict_the_same() -> None:
    model = TwoStageTransfer(a_memory(), growth=0.5).fit(X[:2], Y[:2])
    first = model.sources_
    assert model.fit(X, Y).sources_ is first
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), clone(model).fit(X, Y)):
        np.testing.assert_array_equal(other.predict(NEW), model.predict(NEW))


# Votes


def test_who_agrees_has_the_vote() -> None:
    model = TwoStageTransfer(SOURCES).fit(X, Y)
    near, nearer, far = (model.shares_[f"task {c}"] for c in (0.2, 0.3, 0.8))
    assert min(near, nearer) > 0.05 and far < min(near, nearer)
    # Of the 15 pairs, those that a task ranks the other way round.
    centres, pairs = (0.2, 0.3, 0.8), [(i, j) for j in range(6) for i in range(j)]
    seen = SOURCES.predict(X)
    wrong = [sum((Y[i] < Y[j]) != (row[i] < row[j]) for i, j in pairs) for row in seen]
    assert wrong[2] > max(wrong[:2])
    np.testing.assert_allclose(model.distances_, np.array(wrong) / 15)
    votes = [0.75 * max(1 - (n / 15 / 0.3) ** 2, 0.0) for n in wrong]
    whole = sum(votes) + 0.75 * (1 + len(Y))
    assert model.shares_ == pytest.approx(
        {f"task {c}": vote / whole for c, vote in zip(centres, votes, strict=True)}
    )


def test_votes_fade() -> None:
    big = np.random.default_rng(6).random((60, 2))
    few = TwoStageTransfer(SOURCES).fit(big[:3], loss(big[:3], 0.2)).own_share_
    many = TwoStageTransfer(SOURCES).fit(big, loss(big, 0.2)).own_share_
    assert many > 0.9 > few
    constant = TwoStageTransfer(SOURCES, growth=0.0).fit(big, loss(big, 0.2))
    assert constant.own_share_ == pytest.approx(0.75 / (0.75 + constant.weights_.sum()))


def test_meta_features_weigh_before_and_after_observations() -> None:
    options = {"distance": "meta_features", "meta_features": {"a": 0.2, "b": 1.0}}
    for n in (0, 6):
        model = TwoStageTransfer(SOURCES, **options).fit(X[:n], Y[:n])  # type: ignore[arg-type]
        u = np.array([0.0, 0.1, 0.6]) / 0.6 / np.sqrt(2.0)  # b is the same everywhere
        np.testing.assert_allclose(model.distances_, u, atol=1e-12)
        np.testing.assert_allclose(model.weights_, [*(0.75 * (1 - (u[:2] / 0.69) ** 2)), 0.0])


def test_rows_are_capped() -> None:
    big = np.random.default_rng(6).random((40, 2))
    model = TwoStageTransfer(SOURCES, max_rows=10).fit(big, loss(big, 0.2))
    assert len(model.own_.inputs_) == 10 and model.own_weight_ == 0.75 * 41.0


# Searching

CANDIDATES = np.stack(np.meshgrid(np.linspace(0, 1, 11), np.linspace(0, 1, 11)), -1).reshape(-1, 2)


def search(model: TwoStageTransfer, X: FloatArray, y: FloatArray, n: int) -> FloatArray:
    """The least loss so far of each trial."""
    tried: list[int] = []
    for k in range(n):
        mean, std = model.fit(X[tried], y[tried]).predict(X)
        score = log_expected_improvement(mean, std, y[tried].min()) if k else -mean
        score[tried] = -np.inf
        tried.append(int(score.argmax()))
    return np.asarray(np.minimum.accumulate(y[tried]))


def test_transfer_helps_at_once_and_cannot_hurt() -> None:
    y = loss(CANDIDATES, 0.25)
    y -= y.min()
    helped = search(TwoStageTransfer(SOURCES), CANDIDATES, y, 12)
    alone = search(TwoStageTransfer(), CANDIDATES, y, 12)
    misled = search(TwoStageTransfer(Sources.fit(a_memory(sign=-1.0))), CANDIDATES, y, 12)
    assert helped[0] < 0.05 < alone[0]
    assert helped[:6].mean() < alone[:6].mean()
    assert misled[0] > 0.5 and misled[-1] <= alone[-1] + 0.01


def test_on_recorded_runs_the_start_is_good(recorded_runs: ModuleType) -> None:
    tables = recorded_runs.svm_grid()[::5]
    memory = MetaDataset.from_records(
        TaskRecord(t.name, [t.config(i) for i in range(len(t))], t.losses, space=t.space)
        for t in tables
    )
    features = memory.vector_space.features(memory.vectors[memory.rows[0]])
    left = []
    for table in tables:
        model = TwoStageTransfer(memory.without(table.name))
        least = search(model, features, table.losses, 8)[-1]
        left.append((least - table.best) / (table.worst - table.best))
    # random search leaves 13 % of the range after 8 trials
    assert np.mean(left) < 0.06


def test_a_memory_of_another_space_is_refused() -> None:
    with pytest.raises(ValueError, match="2 features, X has 3 columns"):
        TwoStageTransfer(SOURCES).fit(np.zeros((2, 3)), np.zeros(2))


def test_the_kernel_that_the_earlier_tasks_taught_is_likelier_from_the_start() -> None:
    # one observation is not evidence: what is left is the prior, e^3 to 1 for each of the others
    evidence = TwoStageTransfer(SOURCES).fit(X[:1], Y[:1]).own_.evidence_
    assert len(evidence) == 11
    assert evidence[-1] == pytest.approx(np.exp(3.0) / (np.exp(3.0) + 10.0))
