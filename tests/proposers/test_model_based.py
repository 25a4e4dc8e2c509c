"""The proposer: pure, never repeating, honest about what it knows."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from ConfigSpace import (
    Categorical,
    ConfigurationSpace,
    EqualsCondition,
    Float,
    ForbiddenEqualsClause,
    Integer,
)

from automl_plugins.proposers.model_based import ModelBasedProposer, ProposerSettings, refit_point
from automl_plugins.proposers.models import ModelSettings, thin_out
from automl_plugins.proposers.proposal import SurrogateFailure
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams
from automl_plugins.surrogates import QuantileBoosting, RandomForest

FOREST = ModelSettings(surrogate=RandomForest())


def square() -> VectorSpace:
    space = ConfigurationSpace()
    space.add([Float("x", (0, 1)), Float("y", (0, 1))])
    return VectorSpace(space)


def branches() -> VectorSpace:
    space = ConfigurationSpace()
    kind, a, b = Categorical("kind", ["a", "b"]), Integer("a", (0, 3)), Integer("b", (0, 2))
    space.add([kind, a, b])
    space.add([EqualsCondition(a, kind, "a"), EqualsCondition(b, kind, "b")])
    return VectorSpace(space)


def observed(space: VectorSpace, n: int, **columns: Any) -> History:
    vectors = space.sample(n, np.random.default_rng(0))
    losses = ((np.nan_to_num(vectors) - 0.3) ** 2).sum(axis=1)
    return History.of(vectors, columns.pop("losses", losses), **columns)


def search(space: VectorSpace, proposer: ModelBasedProposer, n: int, seed: int = 0) -> History:
    rows: list[np.ndarray] = []
    history = History.of(np.empty((0, space.d)), [])
    for k in range(n):
        rows.append(proposer.propose(space, history, Streams(seed), k).vector)
        losses = [float(((np.nan_to_num(row) - 0.3) ** 2).sum()) for row in rows]
        history = History.of(rows, losses)
    return history


class Funnel:
    """A surrogate for which everything is better the nearer it is to the middle."""

    def fit(self, X: Any, y: Any) -> Any:
        return self

    def predict(self, X: Any) -> Any:
        return np.abs(X - 0.5).max(axis=1), np.full(len(X), 0.1)


@pytest.mark.parametrize("acquisition", ["ei", "bound"])
def test_a_plateau_is_left_and_a_slope_is_not(acquisition: Any) -> None:
    space = square()
    here = [[0.5, 0.5], [0.5, 0.51], [0.49, 0.5]]
    vectors = np.vstack([here, space.sample(9, np.random.default_rng(1))])
    far = np.linspace(1.0, 2.0, 9)
    models = ModelSettings(surrogate=Funnel(), target="raw")
    settings = ProposerSettings(models, acquisition=acquisition, n_startup=2)

    def gap(best: list[float], **options: Any) -> float:
        history = History.of(vectors, [*best, *far])
        proposer = ModelBasedProposer(replace(settings, **options))
        vector = proposer.propose(space, history, Streams(0), len(vectors)).vector
        return float(np.abs(vector - 0.5).max())

    flat, slope = [0.25, 0.25, 0.25], [0.25, 0.26, 0.27]
    assert gap(flat) > 0.02 > gap(slope)
    assert gap(flat, leave_plateaus=False) == gap(slope, leave_plateaus=False) == gap(slope)


def test_a_proposal_is_a_pure_function() -> None:
    space, history = square(), observed(square(), 40)
    fresh = [
        ModelBasedProposer(ProposerSettings(FOREST)).propose(space, history, Streams(5), 40)
        for _ in range(2)
    ]
    used = ModelBasedProposer(ProposerSettings(FOREST))
    for k in (3, 41, 40):  # what was asked before changes nothing
        last = used.propose(space, history, Streams(5), k)
    assert np.array_equal(fresh[0].vector, fresh[1].vector)
    assert np.array_equal(fresh[0].vector, last.vector)
    other = used.propose(space, history, Streams(6), 40)
    assert not np.array_equal(other.vector, last.vector)


def test_the_model_between_refits_is_that_of_the_refit_point() -> None:
    assert [refit_point(n) for n in (0, 1, 127, 128, 129, 255, 256, 259, 511)] == [
        0, 1, 126, 128, 128, 252, 256, 256, 504,
    ]  # fmt: skip
    assert refit_point(63) == 63 and refit_point(10_015) == 9_984
    space, history = square(), observed(square(), 131)
    warm = ModelBasedProposer(ProposerSettings(FOREST))
    assert warm.propose(space, history.first(130), Streams(0), 130).fit_seconds is not None
    kept = warm.propose(space, history, Streams(0), 131)
    assert kept.fit_seconds is None and kept.n_rows == 128
    cold = pickle.loads(pickle.dumps(warm)).propose(space, history, Streams(0), 131)
    assert cold.fit_seconds is not None
    assert np.array_equal(cold.vector, kept.vector)


def test_a_model_for_every_row_where_it_is_asked_for() -> None:
    space, history = square(), observed(square(), 131)
    proposer = ModelBasedProposer(ProposerSettings(FOREST, refit="always"))
    assert proposer.propose(space, history.first(130), Streams(0), 130).n_rows == 130
    assert proposer.propose(space, history, Streams(0), 131).n_rows == 131


@pytest.mark.parametrize(
    ("asked", "rows", "scored"), [(2000, 256, 2000), (None, 255, 1000), (None, 256, 300)]
)
def test_as_many_candidates_as_are_asked_for(asked: int | None, rows: int, scored: int) -> None:
    sizes: list[int] = []

    class Counting:
        def fit(self, X: Any, y: Any) -> Counting:
            return self

        def predict(self, X: Any) -> Any:
            sizes.append(len(X))
            return X[:, 0]

    space = square()
    settings = ProposerSettings(
        ModelSettings(surrogate=Counting()), n_candidates=asked, refit="always"
    )
    ModelBasedProposer(settings).propose(space, observed(space, rows), Streams(0), rows)
    assert sizes[0] == scored


def test_a_changed_history_of_the_same_length_is_noticed() -> None:
    space = square()
    proposer = ModelBasedProposer(ProposerSettings(FOREST))
    history = observed(space, 20)
    proposer.propose(space, history, Streams(0), 20)
    mirrored = observed(space, 20, losses=-history.losses)
    assert proposer.propose(space, mirrored, Streams(0), 20).fit_seconds is not None


def test_every_configuration_of_a_finite_space_comes_once() -> None:
    history = search(branches(), ModelBasedProposer(ProposerSettings(FOREST)), 7)
    assert len(np.unique(branches().keys(history.vectors))) == 7
    # Exhausted: the eighth is a repetition, not an error.
    assert len(search(branches(), ModelBasedProposer(ProposerSettings(FOREST)), 8)) == 8


def test_a_finite_space_too_large_to_enumerate_is_not_repeated_either() -> None:
    space = ConfigurationSpace()
    space.add([Integer("i", (0, 5)), Integer("j", (0, 5))])
    settings = ProposerSettings(FOREST, n_candidates=5, n_startup=3)
    history = search(VectorSpace(space), ModelBasedProposer(settings), 36)
    assert len(np.unique(VectorSpace(space).keys(history.vectors))) == 36


def test_forbidden_configurations_are_never_proposed() -> None:
    space = ConfigurationSpace()
    kind, x = Categorical("kind", ["a", "b", "c"]), Float("x", (0, 1))
    space.add([kind, x])
    space.add(ForbiddenEqualsClause(kind, "b"))
    vectors = VectorSpace(space)
    history = search(vectors, ModelBasedProposer(ProposerSettings(FOREST)), 25)
    assert vectors.allowed(history.vectors).all()


def test_fixed_values_are_kept_and_the_rest_follows_them() -> None:
    space = branches()
    fixed = np.full(space.d, np.nan)
    fixed[space.names.index("kind")] = 1.0
    history = observed(space, 6)
    proposer = ModelBasedProposer(ProposerSettings(FOREST))
    for n in (0, 6):
        vector = proposer.propose(space, history.first(n), Streams(0), n, fixed).vector
        assert vector[space.names.index("kind")] == 1.0
        assert np.isnan(vector[space.names.index("a")])
        assert not np.isnan(vector[space.names.index("b")])


def test_running_evaluations_repel() -> None:
    space, history = square(), observed(square(), 30)
    proposer = ModelBasedProposer(ProposerSettings(FOREST))
    points: list[np.ndarray] = []
    for worker in range(8):
        pending = History.of(
            np.vstack([history.vectors, *points]),
            np.concatenate([history.losses, np.full(worker, np.nan)]),
            status=[Status.COMPLETE] * 30 + [Status.RUNNING] * worker,
        )
        points.append(proposer.propose(space, pending, Streams(0), 38).vector)
    gaps = np.abs(np.array(points)[:, None] - np.array(points)[None]).mean(axis=2)
    assert gaps[np.triu_indices(8, 1)].min() > 1e-3  # with one and the same k


def test_failures_are_avoided_unless_ignored() -> None:
    space = square()
    vectors = space.sample(60, np.random.default_rng(1))
    failed = vectors[:, 0] > 0.5
    losses = np.where(failed, np.nan, 1.0 - vectors[:, 0])  # better and better up to the border
    history = History.of(vectors, losses, status=np.where(failed, Status.FAILED, Status.COMPLETE))

    def share(failed_trials: Any) -> float:
        models = ModelSettings(surrogate=RandomForest(), failed_trials=failed_trials)
        proposer = ModelBasedProposer(ProposerSettings(models))
        points = [proposer.propose(space, history, Streams(0), k).vector for k in range(60, 90)]
        return float(np.mean([point[0] > 0.5 for point in points]))

    assert share("avoid") < 0.2 < 0.5 < share("ignore")


@pytest.mark.parametrize("acquisition", ["ei", "bound"])
def test_dear_configurations_must_be_worth_it(acquisition: Any) -> None:
    space = square()
    vectors = space.sample(60, np.random.default_rng(1))
    losses = (vectors[:, 1] - 0.5) ** 2
    history = History.of(vectors, losses, seconds=np.exp(6 * vectors[:, 0]))

    def mean_x(exponent: float, budget: int | None = None) -> float:
        settings = ProposerSettings(
            ModelSettings(surrogate=QuantileBoosting(), timed=True),
            acquisition=acquisition,
            cost_exponent=exponent,
            cost_budget=budget,
        )
        proposer = ModelBasedProposer(settings)
        points = [proposer.propose(space, history, Streams(0), k) for k in range(60, 75)]
        assert all(point.seconds is not None and point.seconds > 0 for point in points)
        return float(np.mean([point.vector[0] for point in points]))

    assert mean_x(1.0) < 0.7 * mean_x(0.0)
    assert mean_x(1.0, budget=60) == mean_x(0.0)  # the budget is spent: cost no longer counts


def test_the_start_counts_rows_of_every_status() -> None:
    space = square()
    settings = ProposerSettings(FOREST, n_startup=4)
    status = [Status.COMPLETE, Status.FAILED, Status.PRUNED, Status.RUNNING]
    losses = [0.5, np.nan, 0.2, np.nan]
    vectors = space.sample(4, np.random.default_rng(0))
    history = History.of(vectors, losses, status=status)
    assert ModelBasedProposer(settings).propose(space, history, Streams(0), 4).origin == "model"
    fewer = history.first(3)
    assert ModelBasedProposer(settings).propose(space, fewer, Streams(0), 3).origin == "design"


def test_without_a_complete_row_the_design_goes_on() -> None:
    space = square()
    history = observed(space, 20, losses=np.full(20, np.nan), status=[Status.FAILED] * 20)
    proposer = ModelBasedProposer(ProposerSettings(FOREST))
    assert proposer.propose(space, history, Streams(0), 20).origin == "design"


def test_interleaving_fills_the_space_on_schedule() -> None:
    space, history = square(), observed(square(), 20)
    proposer = ModelBasedProposer(ProposerSettings(FOREST, interleave=4))
    origins = [proposer.propose(space, history, Streams(0), k).origin for k in range(20, 28)]
    assert origins == ["design", "model", "model", "model"] * 2


def test_foreign_errors_are_chained() -> None:
    class Broken:
        def fit(self, X: Any, y: Any) -> Broken:
            return self

        def predict(self, X: Any) -> Any:
            return np.full(len(X), np.nan)

    space, history = square(), observed(square(), 20)
    with pytest.raises(SurrogateFailure, match="predicted NaN"):
        ModelBasedProposer(ProposerSettings(ModelSettings(surrogate=Broken()))).propose(
            space, history, Streams(0), 20
        )


def test_models_see_a_bounded_number_of_rows_the_best_half_among_them() -> None:
    targets = np.arange(100.0)
    rows = thin_out(targets, 20, np.random.default_rng(0))
    assert len(rows) == 20 and set(range(10)) <= set(rows.tolist())
    assert np.array_equal(thin_out(targets, 200, np.random.default_rng(0)), np.arange(100))
