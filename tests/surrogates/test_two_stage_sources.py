"""Sources: the first stage of TwoStageTransfer."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace
from proposing import a_space
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from automl_plugins.arrays import FloatArray
from automl_plugins.meta import MetaDataset, TaskRecord
from automl_plugins.surrogates.gaussian_process import KERNELS, Kernel
from automl_plugins.surrogates.two_stage_sources import Sources


def record(
    name: str,
    loss: Callable[[float, float], float],
    n: int = 20,
    seed: int = 0,
    **columns: object,
) -> TaskRecord:
    """Runs of ``loss(x, y)`` at random configurations, the same for equal seeds."""
    space = a_space()
    space.seed(seed)
    configurations = [dict(space.sample_configuration()) for _ in range(n)]
    losses = [loss(c["x"], c.get("y", 0.0)) for c in configurations]
    return TaskRecord(name, configurations, np.array(losses), space=space, **columns)  # type: ignore[arg-type]


def bowl(centre: float) -> Callable[[float, float], float]:
    return lambda x, y: 5.0 + 10.0 * ((x - centre) ** 2 + 0.3 * y)


@pytest.fixture(scope="module")
def memory() -> MetaDataset:
    return MetaDataset.from_records(
        [record("low", bowl(0.2)), record("high", bowl(0.8)), record("other", bowl(0.5), 15, 1)],
        a_space(),
    )


def some(memory: MetaDataset, n: int = 7) -> FloatArray:
    vectors = memory.vector_space.sample(n, np.random.default_rng(5))
    return memory.vector_space.features(vectors)


@pytest.mark.parametrize("kernel", KERNELS)
def test_each_task_is_a_gaussian_process_on_scaled_losses(
    memory: MetaDataset, kernel: Kernel
) -> None:
    sources = Sources.fit(memory, kernel=kernel)
    assert sources.names == ("low", "high", "other")
    assert [len(group.tasks) for group in sources.groups] == [2, 1]
    new = some(memory)
    form = RBF(sources.scales) if kernel == "se" else Matern(sources.scales, nu=2.5)
    k = ConstantKernel(np.exp(sources.theta[0])) * form + WhiteKernel(np.exp(sources.theta[-1]))
    for s, rows in enumerate(memory.rows):
        X, y = memory.vector_space.features(memory.vectors[rows]), memory.losses[rows]
        scaled = (y - y.min()) / np.ptp(y)
        model = GaussianProcessRegressor(k, alpha=0.0, optimizer=None, random_state=0)
        model.fit(sources.inputs(X), scaled - scaled.mean())
        expected = scaled.mean() + model.predict(sources.inputs(new))
        np.testing.assert_allclose(sources.predict(new)[s], expected, atol=1e-6)


def test_flags_tell_inactive_from_half(memory: MetaDataset) -> None:
    sources, X = Sources.fit(memory), some(memory)
    assert sources.flagged.tolist() == np.flatnonzero(np.isnan(X).any(axis=0)).tolist()
    filled = np.where(np.isnan(X), 0.5, X)
    assert not np.allclose(sources.predict(X), sources.predict(filled), atol=1e-3)


def test_unit_of_a_task_does_not_matter(memory: MetaDataset) -> None:
    larger = record("low", lambda x, y: 1024.0 * bowl(0.2)(x, y))
    moved = MetaDataset.from_records([larger, *memory.records()[1:]], a_space())
    found, expected = (Sources.fit(m).predict(some(memory)) for m in (moved, memory))
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_wanted_tasks_are_asked(memory: MetaDataset) -> None:
    sources, X = Sources.fit(memory), some(memory)
    found, whole = sources.predict(X, np.array([False, True, False])), sources.predict(X)
    np.testing.assert_allclose(found[1], whole[1])
    assert not found[[0, 2]].any()


@pytest.mark.parametrize("value", [3.0, float("nan")], ids=["constant", "failed"])
def test_tasks_that_rank_nothing_are_left_out(memory: MetaDataset, value: float) -> None:
    useless = [record("flat", lambda x, y: value), record("one", bowl(0.1), 1)]
    everything = MetaDataset.from_records([*memory.records(), *useless], a_space())
    sources = Sources.fit(everything)
    assert not {"flat", "one"} & set(sources.names)
    expected = Sources.fit(memory).predict(some(memory))
    np.testing.assert_allclose(sources.predict(some(memory)), expected)
    nothing = Sources.fit(MetaDataset.from_records(useless[1:], a_space()))
    assert len(nothing) == 0
    assert nothing.predict(np.full((4, nothing.n_features), 0.5)).shape == (0, 4)


def test_failures_of_a_task_are_not_learnt_from() -> None:
    """One worst loss among good neighbours makes a process take all differences for noise."""
    whole = record("low", bowl(0.2), 30)
    failed = np.arange(30) % 7 == 3
    kept = np.where(failed, np.nan, whole.losses)
    with_failures = TaskRecord("low", whole.configurations, kept, space=a_space())
    without = whole.rows({i: whole.configurations[i] for i in np.flatnonzero(~failed).tolist()})
    memories = [MetaDataset.from_records([r], a_space()) for r in (with_failures, without)]
    found, expected = (Sources.fit(m).predict(some(m)) for m in memories)
    np.testing.assert_allclose(found, expected)


def test_a_failure_counts_as_the_mean_of_tasks_with_the_same_configurations() -> None:
    space, xs = ConfigurationSpace({"x": (0.0, 1.0)}), [0.0, 0.25, 0.5, 0.75, 1.0]
    # All failed at x = 0.5, one of them at x = 0.25, where the others have 0.2 and 0.6.
    rows = [
        [0.0, 0.2, np.nan, 1.0, 0.5],
        [1.0, np.nan, np.nan, 0.0, 0.5],
        [1.0, 0.6, np.nan, 0, 0],
    ]
    filled = np.delete(np.array(rows), 2, axis=1)
    filled[1, 1] = 0.4

    def memory_of(xs: list[float], losses: FloatArray) -> MetaDataset:
        tasks = [
            TaskRecord(f"t{i}", [{"x": x} for x in xs], own, space=space)
            for i, own in enumerate(losses)
        ]
        return MetaDataset.from_records(tasks, space)

    sources = Sources.fit(memory_of(xs, np.array(rows)))
    expected = Sources.fit(memory_of(xs[:2] + xs[3:], filled))
    assert len(sources.groups) == 1  # still with one factorisation for all
    X = np.linspace(0.0, 1.0, 9)[:, None]
    np.testing.assert_allclose(sources.predict(X), expected.predict(X))


def test_equal_configurations_may_differ_in_their_last_digits() -> None:
    """As 0.3 and 0.1 + 0.2 do: they have one key, but no one order by their features."""
    space = ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)})
    grid = [(i / 10, j / 10) for i in range(1, 10) for j in (3, 7)]
    computed = [(x, 0.1 + 0.2 if k % 3 and y == 0.3 else y) for k, (x, y) in enumerate(grid)]
    assert grid != computed
    losses = np.random.default_rng(0).permutation(len(grid)).astype(float)

    def task(name: str, places: list[tuple[float, float]], order: list[int]) -> TaskRecord:
        runs = [dict(zip("xy", places[i], strict=True)) for i in order]
        return TaskRecord(name, runs, losses[order], space=space)

    there, back = [*range(len(grid))], [*range(len(grid))][::-1]
    known = [task("typed", grid, there), task("computed", computed, back)]
    memory = MetaDataset.from_records(known, space)
    sources = Sources.fit(memory)
    assert [len(group.tasks) for group in sources.groups] == [2]
    at = memory.vector_space.features(memory.vectors[memory.rows[0]])
    one, other = sources.predict(at)
    np.testing.assert_allclose(one, other, atol=1e-6)


def test_rows_are_capped(memory: MetaDataset) -> None:
    sources = Sources.fit(memory, max_rows=10)
    assert [len(group.inputs) for group in sources.groups] == [10, 10]
    assert [group.alpha.shape for group in sources.groups] == [(10, 2), (10, 1)]


def test_other_parameters_come_aligned() -> None:
    narrow, xs = ConfigurationSpace({"x": (0.0, 1.0)}), np.linspace(0.0, 1.0, 9)
    old = TaskRecord("narrow", [{"x": v} for v in xs], (xs - 0.3) ** 2, space=narrow)
    memory = MetaDataset.from_records([old, record("full", bowl(0.3))], a_space())
    predicted = Sources.fit(memory).predict(some(memory))
    assert predicted.shape == (2, 7) and np.isfinite(predicted).all()


def test_same_runs_same_sources(memory: MetaDataset) -> None:
    sources, X = Sources.fit(memory), some(memory)
    copies = (pickle.loads(pickle.dumps(sources)), Sources.fit(memory), copy.deepcopy(sources))
    for other in copies:
        np.testing.assert_array_equal(other.predict(X), sources.predict(X))
        assert other.names == sources.names
        assert (other.kernel, other.n_features) == (sources.kernel, sources.n_features)
        assert other.meta_feature_names == sources.meta_feature_names


def test_errors_teach(memory: MetaDataset) -> None:
    with pytest.raises(ValueError, match="kernel must be one of 'matern52', 'se', got 'rbf'"):
        Sources.fit(memory, kernel="rbf")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_rows must be an integer >= 2"):
        Sources.fit(memory, max_rows=1)
