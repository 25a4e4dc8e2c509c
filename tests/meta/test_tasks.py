"""Meta-features of tasks on one scale, and losses predicted from them."""

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.kernel_ridge import KernelRidge

from automl_plugins.meta import MetaDataset, TaskRecord
from automl_plugins.meta.designs import performance as task_regression
from automl_plugins.meta.tasks import TaskFeatures


def memory(*described: dict[str, float]) -> MetaDataset:
    space = ConfigurationSpace({"x": (0.0, 1.0)})
    return MetaDataset.from_records(
        TaskRecord(f"t{i}", [{"x": 0.5}], np.zeros(1), space=space, meta_features=d)
        for i, d in enumerate(described)
    )


def test_ranks_by_hand() -> None:
    data = memory({"n": 10.0}, {"n": 1000.0}, {"n": 10.0}, {"n": 1e9})
    features = TaskFeatures(data.tasks, {"n": 500.0, "other": 1.0})
    # mid-ranks: 10 lies below 0 and at 2 of 4
    assert features.known[:, 0].tolist() == [0.25, 0.625, 0.25, 0.875]
    assert features.new.tolist() == [0.5]
    assert features.names == ("n",) and features.useful


def test_what_is_not_known_is_in_the_middle() -> None:
    data = memory({"n": 1.0, "p": 2.0}, {"n": 2.0}, {"p": np.inf, "n": 3.0}, {"p": 7.0})
    features = TaskFeatures(data.tasks)
    assert features.names == ("n", "p")
    assert features.known[1, 1] == features.known[2, 1] == features.known[3, 0] == 0.5


def test_only_what_the_new_task_has_and_the_known_ones_differ_in() -> None:
    data = memory({"n": 1.0, "p": 2.0, "c": 5.0}, {"n": 2.0, "p": 3.0, "c": 5.0})
    assert TaskFeatures(data.tasks, {"n": 1.0, "p": np.nan, "c": 5.0}).names == ("n",)
    assert not TaskFeatures(data.tasks, {"q": 1.0}).useful
    assert TaskFeatures(data.tasks, None).new.tolist() == [0.5, 0.5]


def test_tasks_without_meta_features() -> None:
    features = TaskFeatures(memory({}, {"n": 1.0}, {"n": 3.0}).tasks, {"n": 2.0})
    assert features.described.tolist() == [False, True, True]
    assert features.gaps.tolist() == [np.inf, 0.25, 0.25]
    unshared = TaskFeatures(memory({"q": 1.0}, {"n": 1.0}, {"n": 3.0}).tasks, {"n": 2.0})
    assert unshared.described.tolist() == [False, True, True]
    assert not TaskFeatures(memory({}, {}).tasks, {"n": 2.0}).useful


@given(seed=st.integers(0, 1000))
@settings(max_examples=25, deadline=None)
def test_ranks_do_not_depend_on_the_scale(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.random(9) * 10
    plain = TaskFeatures(memory(*({"n": v} for v in values)).tasks, {"n": 5.0})
    logged = TaskFeatures(memory(*({"n": np.log(v)} for v in values)).tasks, {"n": np.log(5.0)})
    np.testing.assert_allclose(plain.known, logged.known)
    assert plain.new.tolist() == logged.new.tolist()
    assert (plain.known >= 0).all() and (plain.known <= 1).all()


# --- regression over tasks ------------------------------------------------------------------


def tasks(n: int = 12, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    M = rng.random((n, 3))
    losses = np.sin(3.0 * M[:, :1] + np.arange(5)) + 0.1 * rng.standard_normal((n, 5))
    return M, losses


def test_the_closed_form_is_leaving_one_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_regression, "_LENGTHS", (1.0,))
    monkeypatch.setattr(task_regression, "_RIDGES", (0.3,))
    M, Y = tasks()
    found = task_regression.ridge_regression(M, Y, np.full(3, 0.4))
    distance = np.sqrt(((M[:, None] - M[None]) ** 2).mean(axis=2))
    scale = np.median(distance[distance > 0])
    # exp(-d^2 / 2 scale^2) with d^2 the mean, not the sum, over features
    model = KernelRidge(alpha=0.3, kernel="rbf", gamma=0.5 / scale**2 / 3)
    centre = Y.mean(axis=0)
    for t in range(len(M)):
        others = np.arange(len(M)) != t
        # the centre is that of all tasks, as in the closed form
        expected = centre + model.fit(M[others], Y[others] - centre).predict(M[t : t + 1])[0]
        np.testing.assert_allclose(found.known[t], expected, atol=1e-10)
    expected = centre + model.fit(M, Y - centre).predict(np.full((1, 3), 0.4))[0]
    np.testing.assert_allclose(found.new, expected, atol=1e-10)


def test_local_average_by_hand() -> None:
    M, Y = np.array([[0.0], [1.0], [0.1]]), np.array([[0.0], [1.0], [3.0]])
    found = task_regression.local_average(M, Y, np.array([0.0]))
    width = 0.3 * 0.9  # the median of 0.1, 0.9, 1 twice each
    weights = np.exp(-0.5 * (np.array([0.0, 1.0, 0.1]) / width) ** 2)
    assert found.new[0] == pytest.approx((weights @ Y[:, 0]) / weights.sum())
    alone = np.exp(-0.5 * (np.array([1.0, 0.1]) / width) ** 2)
    assert found.known[0, 0] == pytest.approx((alone @ Y[1:, 0]) / alone.sum())


@pytest.mark.parametrize("n", [2, 3])
def test_equal_tasks(n: int) -> None:
    found = task_regression.predict(np.full((n, 2), 0.5), np.ones((n, 4)), np.full(2, 0.5))
    np.testing.assert_allclose(found.new, 1.0)
    np.testing.assert_allclose(found.known, 1.0)
