"""LightGBM over hyperparameters and meta-features."""

import pickle

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace
from scipy.stats import kendalltau
from sklearn.exceptions import NotFittedError

from automl_plugins.meta import MetaDataset, MetaLearner, TaskRecord

SPACE = ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)})


def optimum_moves(n_tasks: int = 24, n: int = 40, *, described: bool = True) -> MetaDataset:
    """The best x is the task's meta-feature "where"; "level" tells the level of the losses."""
    rng = np.random.default_rng(0)
    records = []
    for t in range(n_tasks):
        where, level = rng.random(), 100.0 * rng.random()
        rows = rng.random((n, 2))
        losses = level + 5.0 * (rows[:, 0] - where) ** 2 + 0.2 * rows[:, 1]
        records.append(
            TaskRecord(
                f"t{t}",
                [{"x": x, "y": y} for x, y in rows.tolist()],
                losses,
                space=SPACE,
                meta_features={"where": where, "level": level} if described else {},
            )
        )
    return MetaDataset.from_records(records)


def mean_rank_correlation(data: MetaDataset) -> float:
    """On every fourth task, of a learner fitted on the others."""
    out = data.tasks[::4]
    learner = MetaLearner(n_trees=100, learning_rate=0.1)
    learner.fit(data.without(*(task.name for task in out)))
    found = []
    for task, rows in zip(out, data.rows[::4], strict=True):
        predicted = learner.predict(data.vectors[rows], task.meta_features)
        found.append(kendalltau(predicted, data.losses[rows]).statistic)
    return float(np.mean(found))


def test_it_ranks_what_it_has_not_seen() -> None:
    seeing = mean_rank_correlation(optimum_moves())
    assert seeing > 0.6
    assert mean_rank_correlation(optimum_moves(described=False)) < seeing - 0.2


def test_failures_are_not_learnt_from() -> None:
    data = optimum_moves(5, 20)
    failed = np.arange(len(data)) % 5 == 2
    kept, without = [], []
    for record, rows in zip(data.records(), data.rows, strict=True):
        losses = np.where(failed[rows], np.nan, record.losses)
        features = record.meta_features
        configurations = record.configurations
        kept.append(
            TaskRecord(record.name, configurations, losses, space=SPACE, meta_features=features)
        )
        some = {i: configurations[i] for i in np.flatnonzero(~failed[rows]).tolist()}
        without.append(record.rows(some))
    found, expected = (
        MetaLearner(n_trees=30)
        .fit(MetaDataset.from_records(records))
        .predict(data.vectors[:9], data.tasks[0].meta_features)
        for records in (kept, without)
    )
    np.testing.assert_allclose(found, expected)


def test_an_undescribed_task_gets_the_mean_over_tasks() -> None:
    data = optimum_moves(5, 20)
    learner = MetaLearner(n_trees=30).fit(data)
    vectors = data.vectors[:7]
    by_task = [learner.predict(vectors, task.meta_features) for task in data.tasks]
    for nothing in (None, {}, {"other": 1.0}, {"where": np.nan}):
        np.testing.assert_allclose(
            learner.predict(vectors, nothing), np.mean(by_task, axis=0), atol=1e-12
        )
    # Tasks that are described alike count as often as there are such tasks.
    one, *others = data.records()
    twin = others[0].described(meta_features=one.meta_features)
    learner = MetaLearner(n_trees=30).fit(MetaDataset.from_records([one, twin, *others[1:]]))
    by_task[:2] = [learner.predict(vectors, one.meta_features)] * 2
    by_task[2:] = [learner.predict(vectors, task.meta_features) for task in data.tasks[2:]]
    assert not np.allclose(by_task[1], by_task[2])
    np.testing.assert_allclose(learner.predict(vectors, None), np.mean(by_task, axis=0))


def test_it_repeats_itself_and_pickles() -> None:
    data = optimum_moves(5, 20)
    a, b = MetaLearner(n_trees=10).fit(data), MetaLearner(n_trees=10).fit(data)
    task = {"where": 0.1}
    expected = a.predict(data.vectors, task)
    np.testing.assert_array_equal(b.predict(data.vectors, task), expected)
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(a)).predict(data.vectors, task), expected
    )


def test_constant_losses_and_few_runs() -> None:
    rows = [{"x": 0.1, "y": 0.5}, {"x": 0.9, "y": 0.5}]
    for losses in ([1.0, 1.0], [np.nan, np.nan]):
        data = MetaDataset.from_records([TaskRecord("a", rows, np.array(losses), space=SPACE)])
        learner = MetaLearner().fit(data)
        assert learner.predict(data.vectors, None).tolist() == [0.0, 0.0]
        assert learner.booster_ is None
    data = MetaDataset.from_records([TaskRecord("a", rows, np.array([0.0, 1.0]), space=SPACE)])
    assert len(MetaLearner().fit(data).predict(data.vectors, None)) == 2


def test_of_a_large_memory_some_runs_are_drawn() -> None:
    data = optimum_moves(5, 40)

    def predicted(max_rows: int, seed: int) -> np.ndarray:
        learner = MetaLearner(n_trees=20, max_rows=max_rows, random_state=seed)
        return learner.fit(data).predict(data.vectors, None)

    few, whole = predicted(60, 0), predicted(200, 0)
    np.testing.assert_array_equal(few, predicted(60, 0))
    assert not np.array_equal(few, whole) and not np.array_equal(few, predicted(60, 1))


def test_errors() -> None:
    data = optimum_moves(2, 5)
    with pytest.raises(NotFittedError):
        MetaLearner().predict(data.vectors, None)


def test_a_memory_of_a_few_runs_is_learnt_from() -> None:
    few = optimum_moves(2, 12)
    learner = MetaLearner(n_trees=20).fit(few)
    predicted = learner.predict(few.vectors, few.tasks[0].meta_features)
    assert np.ptp(predicted) > 0.1  # leaves of 20 runs would leave a single one


@pytest.mark.parametrize("n", [2, 3, 6, 10])
def test_of_a_few_recorded_configurations_each_has_its_own_prediction(n: int) -> None:
    x = np.linspace(0.0, 1.0, n)
    rows = [{"x": v, "y": 0.5} for v in x.tolist()]
    data = MetaDataset.from_records([TaskRecord("a", rows, 1.0 - x, space=SPACE)])
    predicted = MetaLearner().fit(data).predict(data.vectors, None)
    assert (np.diff(predicted) < 0.0).all()  # bins of 3 runs would tie them
