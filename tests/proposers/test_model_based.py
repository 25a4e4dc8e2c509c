"""The model-based proposer: a pure function without repetitions, and its settings."""

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
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    OrdinalHyperparameter,
)
from proposing import LINE, SQUARE, Told, branches, observed, search

from automl_plugins.arrays import FloatArray
from automl_plugins.proposers.acquisition import LocalSearch
from automl_plugins.proposers.model_based import ModelBasedProposer, ProposerSettings
from automl_plugins.proposers.models import condition
from automl_plugins.proposers.proposal import Proposal, SurrogateFailure
from automl_plugins.proposers.refits import refit_point
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams
from automl_plugins.surrogates import AveragedProcess, QuantileBoosting, RandomForest

WIDE = VectorSpace(ConfigurationSpace({"x": (0.0, 2.0)}))


def forest(surrogate: Any = None, **settings: Any) -> ModelBasedProposer:
    return ModelBasedProposer(ProposerSettings(surrogate or RandomForest(), **settings))


def propose(proposer: ModelBasedProposer, history: History, k: int | None = None) -> Proposal:
    return proposer.propose(SQUARE, history, Streams(0), len(history) if k is None else k)


@pytest.mark.parametrize("acquisition", ["ei", "bound"])
def test_a_plateau_is_left_and_a_slope_is_not(acquisition: Any) -> None:
    here = [[0.5, 0.5], [0.5, 0.51], [0.49, 0.5]]
    vectors = np.vstack([here, SQUARE.sample(9, np.random.default_rng(1))])
    funnel = Told(lambda X: (np.abs(X - 0.5).max(axis=1), np.full(len(X), 0.1)))

    def gap(best: list[float], **options: Any) -> float:
        proposer = forest(funnel, target="raw", acquisition=acquisition, n_startup=2, **options)
        history = History.of(vectors, [*best, *np.linspace(1.0, 2.0, 9)])
        return float(np.abs(propose(proposer, history).vector - 0.5).max())

    flat, slope = [0.25, 0.25, 0.25], [0.25, 0.26, 0.27]
    assert gap(flat) > 0.02 > gap(slope)
    assert gap(flat, plateau_reach=None) == gap(slope, plateau_reach=None) == gap(slope)


@pytest.mark.parametrize(
    ("out_of_reach", "fixed"), [([1.4, 0.5], None), ([0.1, 0.5], np.array([0.6, np.nan]))]
)
@pytest.mark.parametrize("n_in_reach", [0, 3])
def test_nothing_improves_on_an_incumbent_out_of_reach(
    out_of_reach: list[float], fixed: Any, n_in_reach: int
) -> None:
    """Expected improvement on it would look for the largest deviation, here at y = 1."""
    vectors = np.vstack([[out_of_reach], SQUARE.sample(9, np.random.default_rng(1))])
    vectors[1 : 1 + n_in_reach, 0] = 0.6
    bowl = Told(lambda X: ((X[:, 1] - 0.3) ** 2, np.where(X[:, 1] > 0.9, 0.2, 0.01)))
    proposer = forest(bowl, target="raw", n_startup=2)
    history = History.of(vectors, [-100.0, *np.linspace(1.0, 2.0, 9)])
    y = proposer.propose(SQUARE, history, Streams(0), 11, fixed).vector[1]
    assert abs(y - 0.3) < 0.05
    reached = SQUARE.within_reach(vectors, fixed)
    assert not reached[0] and reached[1 : 1 + n_in_reach].all()


@pytest.mark.parametrize("incumbent", ["observed", "predicted"])
def test_nothing_improves_on_a_prediction_out_of_reach(incumbent: Any) -> None:
    """The best row is in reach, but another one, which is not, has the lowest prediction."""
    vectors = np.vstack([[[0.6, 0.5], [0.1, 0.5]], SQUARE.sample(8, np.random.default_rng(1))])
    bowl = Told(
        lambda X: (
            np.where(X[:, 0] < 0.15, -100.0, (X[:, 1] - 0.3) ** 2),
            np.where(X[:, 1] > 0.9, 0.2, 0.01),
        )
    )
    proposer = forest(bowl, target="raw", n_startup=2, incumbent=incumbent)
    history = History.of(vectors, [0.0, *np.linspace(1.0, 2.0, 9)])
    y = proposer.propose(SQUARE, history, Streams(0), 11, np.array([0.6, np.nan])).vector[1]
    assert abs(y - 0.3) < 0.05


@pytest.mark.parametrize(("failed_trials", "n"), [("avoid", 2), ("ignore", 0)])
def test_a_proposal_says_how_many_losses_have_diverged(failed_trials: Any, n: int) -> None:
    losses = [0.3, 1e9, 0.1, 0.25, 0.2, 0.4, 1e30]
    history = observed(SQUARE, 7, losses=losses)
    assert propose(forest(n_startup=2, failed_trials=failed_trials), history).n_diverged == n


def test_an_incumbent_out_of_reach_is_replaced_by_a_feasible_one() -> None:
    vectors = np.array([[1.4, 0.5], [0.2, 0.1], [0.2, 0.9], [0.2, 0.5]])
    seen: list[FloatArray] = []

    def predict(X: FloatArray) -> tuple[FloatArray, FloatArray]:
        seen.append(X)
        return X[:, 1], np.full(len(X), 0.1)

    flat = Told(predict)
    history = History.of(
        vectors, [0.0, 1.0, 2.0, 3.0], constraints=np.array([[-1.0], [1.0], [-1.0], [-1.0]])
    )
    propose(forest(flat, target="raw", n_startup=2), history)
    rows = next(X for X in seen if len(X) == 2)
    np.testing.assert_allclose(rows, vectors[[2, 3]])


def test_inactive_values_are_within_reach() -> None:
    vectors = np.array([[np.nan, 0.5], [0.2, 0.5], [0.2, -0.1]])
    assert SQUARE.within_reach(vectors, np.array([0.7, np.nan])).tolist() == [True, False, False]
    assert SQUARE.within_reach(vectors, None).tolist() == [True, True, False]


def test_all_values_of_an_ordinal_are_within_reach() -> None:
    space = ConfigurationSpace()
    space.add(OrdinalHyperparameter("size", [1, 2, 4, 8]), OrdinalHyperparameter("only", [1]))
    ordered = VectorSpace(space)
    column = ordered.names.index("size")
    vectors = np.zeros((6, 2))
    vectors[:, column] = [0, 1, 2, 3, 4, -1]
    assert ordered.within_reach(vectors, None).tolist() == [True] * 4 + [False] * 2


def test_the_best_value_of_an_ordinal_is_improved_on() -> None:
    """It was taken for out of reach, and a worse one was to be improved on in its place."""
    space = ConfigurationSpace()
    space.add(OrdinalHyperparameter("size", [1, 2, 4, 8]), Float("x", (0.0, 1.0)))
    ordered = VectorSpace(space)
    asked: list[int] = []

    def predict(X: FloatArray) -> tuple[FloatArray, FloatArray]:
        asked.append(len(X))
        return X[:, 0] + X[:, 1], np.full(len(X), 0.1)

    proposer = forest(Told(predict), target="raw", n_startup=2)
    vectors = ordered.sample(9, np.random.default_rng(0))
    vectors[0, ordered.names.index("size")] = 3
    proposer.propose(ordered, History.of(vectors, np.arange(9.0)), Streams(0), 9)
    assert asked[0] > 9  # candidates, not the observed rows in place of the incumbent


def test_a_plateau_is_left_as_far_as_it_may_reach() -> None:
    here = [[0.5, 0.5], [0.5, 0.56], [0.44, 0.5]]  # equal losses, 6 % of the ranges apart
    vectors = np.vstack([here, SQUARE.sample(9, np.random.default_rng(1))])
    history = History.of(vectors, [0.25, 0.25, 0.25, *np.linspace(1.0, 2.0, 9)])
    funnel = Told(lambda X: (np.abs(X - 0.5).max(axis=1), np.full(len(X), 0.1)))

    def gap(reach: float | None) -> float:
        proposer = forest(funnel, target="raw", n_startup=2, plateau_reach=reach)
        return float(np.abs(propose(proposer, history).vector - 0.5).max())

    assert gap(None) == gap(0.05) < 0.02 < gap(0.2)


def test_a_proposal_is_a_pure_function() -> None:
    history, used = observed(SQUARE, 40), forest()
    for k in (3, 41, 40):  # earlier calls change nothing
        last = propose(used, history, k).vector
    np.testing.assert_array_equal(propose(forest(), history).vector, last)
    other = used.propose(SQUARE, history, Streams(6), 40)
    assert not np.array_equal(other.vector, last)


def test_the_model_between_refits_is_that_of_the_refit_point() -> None:
    points = {0: 0, 1: 1, 63: 63, 127: 126, 128: 128, 129: 128, 255: 252, 256: 256, 259: 256}
    points |= {511: 504, 543: 512, 544: 544, 1_023: 992, 1_087: 1_024, 1_088: 1_088, 10_015: 9_984}
    assert {n: refit_point(n) for n in points} == points
    history, warm = observed(SQUARE, 131), forest()
    assert propose(warm, history.first(130)).fit_seconds is not None
    kept = propose(warm, history)
    assert kept.fit_seconds is None and kept.n_rows == 128
    cold = propose(pickle.loads(pickle.dumps(warm)), history)
    assert cold.fit_seconds is not None
    np.testing.assert_array_equal(cold.vector, kept.vector)
    always = forest(refit="always")
    assert [propose(always, history.first(n)).n_rows for n in (130, 131)] == [130, 131]


def test_a_failure_that_brings_an_earlier_fit_finds_no_models_of_the_one_before() -> None:
    """Of 134 rows known 128 were fitted on; with a failure as row 135 it is 132 of them."""
    known = observed(SQUARE, 134)
    history = History.of(
        np.vstack([known.vectors, [[0.3, 0.4]]]),
        np.append(known.losses, np.nan),
        status=np.append(known.status, Status.FAILED),
    )
    points = SQUARE.features(SQUARE.sample(20, np.random.default_rng(0)))
    warm, cold = (forest(AveragedProcess(), target="standardize") for _ in range(2))
    warm.models(SQUARE, known, Streams(5))
    again, anew = (
        p.models(SQUARE, history, Streams(5))[0].predict(points)[0] for p in (warm, cold)
    )
    np.testing.assert_array_equal(again, anew)


def test_processes_are_fitted_half_as_often_and_take_in_the_rows_between() -> None:
    points = {63: 63, 64: 64, 67: 64, 127: 124, 128: 128, 135: 128, 259: 256, 511: 496}
    points |= {2047: 1984}
    assert {n: refit_point(n, conditional=True) for n in points} == points
    history = observed(SQUARE, 71)
    process = forest(AveragedProcess(), target="standardize")
    fitted = process.models(SQUARE, history.first(68), Streams(5))[0]
    models, seconds = process.models(SQUARE, history, Streams(5))
    assert fitted.learnt.n_rows == 68 and models.learnt.n_rows == 71 and seconds is not None
    both = [one.surrogate for one in (fitted, models)]
    assert all(isinstance(one, AveragedProcess) for one in both)
    assert len({id(one.process_.candidates[-1]) for one in both}) == 1  # type: ignore[attr-defined]
    assert process.models(SQUARE, history, Streams(5)) == (models, None)
    expected = condition(fitted, process.settings, SQUARE, history, Streams(5))
    features = SQUARE.features(history.vectors)
    np.testing.assert_array_equal(models.predict(features), expected.predict(features))
    # A failure between two fits: fitted as often as other models are, which learns it
    for status, limit in ((Status.FAILED, 0.0), (Status.COMPLETE, 1.0)):
        last = np.arange(71) == 69
        history = History.of(
            history.vectors,
            np.where(last & (status == Status.FAILED), np.nan, history.vectors[:, 0]),
            status=np.where(last, status, Status.COMPLETE),
            constraints=np.where(last, limit, 0.0)[:, None],
        )
        models = process.models(SQUARE, history, Streams(5))[0]
        assert models.learnt.n_rows == 71 and models.feasibility is not None
        assert process.models(SQUARE, history.first(70), Streams(5))[0].learnt.n_rows == 70
    always = forest(AveragedProcess(), target="standardize", refit="always")
    assert always.models(SQUARE, history, Streams(5))[0].learnt.n_rows == 71


@pytest.mark.parametrize(
    "changed", ["losses", "seconds", "constraints", "space", "status", "nothing"]
)
def test_models_are_fitted_again_when_anything_changes(changed: str) -> None:
    points, proposer = np.linspace(0.0, 0.2, 10)[:, None], forest(timed=True)
    columns: dict[str, Any] = {
        "losses": points[:, 0],
        "seconds": np.ones(10),
        "constraints": -np.ones((10, 1)),
        "status": np.full(10, Status.COMPLETE),
    }
    proposer.propose(LINE, History.of(points, **columns), Streams(0), 10)
    if changed == "status":
        columns["status"] = np.where(np.arange(10) == 4, Status.PRUNED, Status.COMPLETE)
    elif changed in columns:
        columns[changed] = columns[changed] + np.arange(10.0).reshape(columns[changed].shape)
    space = WIDE if changed == "space" else LINE
    again = proposer.propose(space, History.of(points, **columns), Streams(0), 10)
    assert (again.fit_seconds is None) == (changed == "nothing")


@pytest.mark.parametrize(
    ("d", "asked", "rows", "scored", "starts"),
    [
        (2, 2000, 128, 2000, 8),
        (2, None, 127, 1000, 8),
        (2, None, 128, 300, 5),
        (20, None, 64, 1000, 8),
        (21, None, 63, 1000, 8),
        (21, None, 64, 300, 5),
    ],
)
def test_as_many_candidates_as_are_asked_for(
    d: int, asked: int | None, rows: int, scored: int, starts: int
) -> None:
    space = VectorSpace(ConfigurationSpace({f"x{i}": (0.0, 1.0) for i in range(d)}))
    counting = Told(lambda X: X[:, 0])
    proposer = forest(counting, n_candidates=asked, refit="always")
    proposer.propose(space, observed(space, rows), Streams(0), rows)
    assert counting.sizes[:2] == [scored, 4 * d * starts]  # four steps of each number


@pytest.mark.parametrize(
    ("asked", "rows", "least", "most"), [(None, 63, 16, 40), (None, 64, 10, 15), (500, 64, 16, 40)]
)
def test_ascents_are_shorter_with_many_rows(
    asked: int | None, rows: int, least: int, most: int
) -> None:
    def valley(X: FloatArray) -> tuple[FloatArray, FloatArray]:
        x, y = 3.0 * X.T
        return 100.0 * (y - x**2) ** 2 + (1.0 - x) ** 2, np.full(len(X), 0.1)

    counting = Told(valley)
    search = LocalSearch(n_gradients=20, joins=False)
    propose(forest(counting, n_candidates=asked, search=search), observed(SQUARE, rows))
    assert least <= counting.sizes.count(5) <= most  # a point and four differences


def test_every_configuration_of_a_finite_space_comes_once() -> None:
    history = search(branches(), forest(), 7)
    assert len(np.unique(branches().keys(history.vectors))) == 7
    # Exhausted: the eighth is a repetition, not an error.
    assert len(search(branches(), forest(), 8)) == 8
    large = VectorSpace(ConfigurationSpace({"i": (0, 4), "j": (0, 4)}))  # too large at first
    history = search(large, forest(n_candidates=5, n_startup=3), 25)
    assert len(np.unique(large.keys(history.vectors))) == 25


def test_forbidden_configurations_are_never_proposed() -> None:
    space = ConfigurationSpace()
    kind, x = Categorical("kind", ["a", "b", "c"]), Float("x", (0, 1))
    space.add([kind, x])
    space.add(ForbiddenEqualsClause(kind, "b"))
    vectors = VectorSpace(space)
    assert vectors.allowed(search(vectors, forest(), 15).vectors).all()


def test_fixed_values_are_kept_and_the_rest_follows_them() -> None:
    space = branches()
    kind, a, b = (space.names.index(name) for name in ("kind", "a", "b"))
    fixed = np.full(space.d, np.nan)
    history, free = observed(space, 6), forest().propose(space, observed(space, 6), Streams(0), 6)
    nothing = forest().propose(space, history, Streams(0), 6, fixed)
    np.testing.assert_array_equal(nothing.vector, free.vector)
    fixed[kind] = 1.0
    for n in (0, 6):
        vector = forest().propose(space, history.first(n), Streams(0), n, fixed).vector
        assert vector[kind] == 1.0 and np.isnan(vector[a]) and not np.isnan(vector[b])


def test_the_branch_that_was_served_least_has_its_turn() -> None:
    space = branches()
    column = space.names.index("kind")
    vectors = np.array([v for v in space.enumerate(50) if v[column] == 0.0])[:3]  # type: ignore[union-attr]
    history = History.of(vectors, [0.1, 0.2, 0.3])
    kinds = {}
    for balance in (3, None):
        proposer = forest(Told(lambda X: X[:, 0]), target="raw", n_startup=1, balance=balance)
        kinds[balance] = proposer.propose(space, history, Streams(0), 3).vector[column]
    assert kinds == {3: 1.0, None: 0.0}


@pytest.fixture
def pairs() -> VectorSpace:
    """A branch with one option that is forbidden together with one option of another choice."""
    space = ConfigurationSpace()
    penalty = Categorical("penalty", ["l2", "l1"])
    solver = Categorical("solver", ["saga", "lbfgs"])
    C, ratio = Float("C", (0.0, 1.0)), Float("ratio", (0.0, 1.0))
    space.add([penalty, solver, C, ratio])
    space.add(EqualsCondition(ratio, penalty, "l1"))
    parts = [ForbiddenEqualsClause(penalty, "l1"), ForbiddenEqualsClause(solver, "lbfgs")]
    space.add(ForbiddenAndConjunction(*parts))
    return VectorSpace(space)


def test_a_branch_has_its_turn_without_what_is_forbidden_in_it(pairs: VectorSpace) -> None:
    penalty, solver = (pairs.names.index(name) for name in ("penalty", "solver"))
    vectors = pairs.sample(40, np.random.default_rng(0))
    vectors = vectors[vectors[:, penalty] == 0.0][:6]
    history = History.of(vectors, np.linspace(0.0, 1.0, 6))
    tempting = Told(lambda X: -X[:, solver])  # prefers what is forbidden in the other branch
    proposer = forest(tempting, target="raw", n_startup=1, balance=6)
    vector = proposer.propose(pairs, history, Streams(0), 6).vector
    assert vector[penalty] == 1.0 and pairs.allowed(vector[None]).all()


def test_values_that_are_forbidden_themselves_are_kept_all_the_same(pairs: VectorSpace) -> None:
    fixed = np.full(pairs.d, np.nan)
    fixed[[pairs.names.index("penalty"), pairs.names.index("solver")]] = 1.0
    history = observed(pairs, 6)
    vector = forest(n_startup=2).propose(pairs, history, Streams(0), 6, fixed).vector
    assert pairs.agrees(vector[None], fixed).all()


def test_running_evaluations_repel() -> None:
    history, points = observed(SQUARE, 30), list[np.ndarray]()
    for worker in range(8):
        pending = History.of(
            np.vstack([history.vectors, *points]),
            np.concatenate([history.losses, np.full(worker, np.nan)]),
            status=[Status.COMPLETE] * 30 + [Status.RUNNING] * worker,
        )
        points.append(propose(forest(), pending, 38).vector)
    gaps = np.abs(np.array(points)[:, None] - np.array(points)[None]).mean(axis=2)
    assert gaps[np.triu_indices(8, 1)].min() > 1e-3  # with one and the same k


def test_workers_do_not_gather_around_what_is_predicted_to_be_best() -> None:
    vectors = SQUARE.sample(16, np.random.default_rng(0))
    losses = np.sin(6.0 * vectors[:, 0]) + np.sin(5.0 * vectors[:, 1])
    proposer, pending = forest(AveragedProcess(), incumbent="predicted"), vectors[:0]
    for worker in range(8):
        status = [Status.COMPLETE] * 16 + [Status.RUNNING] * worker
        asked = History.of(
            np.vstack([vectors, pending]), [*losses, *[np.nan] * worker], status=status
        )
        pending = np.vstack([pending, propose(proposer, asked).vector])
    gaps = np.abs(pending[:, None] - pending[None]).max(axis=2) + np.eye(8)
    assert np.median(gaps.min(axis=1)) > 0.02


def test_running_evaluations_of_which_nothing_is_known_change_nothing() -> None:
    history = observed(SQUARE, 30)
    foreign = History.of(
        np.vstack([history.vectors, np.full((2, 2), np.nan)]),
        np.concatenate([history.losses, [np.nan, np.nan]]),
        status=[Status.COMPLETE] * 30 + [Status.RUNNING] * 2,
    )
    process = forest(AveragedProcess())
    alone, beside = propose(process, history, 32), propose(process, foreign, 32)
    np.testing.assert_array_equal(beside.vector, alone.vector)


def test_failures_are_avoided_unless_ignored() -> None:
    vectors = SQUARE.sample(60, np.random.default_rng(1))
    failed = vectors[:, 0] > 0.5
    losses = np.where(failed, np.nan, 1.0 - vectors[:, 0])  # better and better up to the border
    history = History.of(vectors, losses, status=np.where(failed, Status.FAILED, Status.COMPLETE))

    def share(failed_trials: Any) -> float:
        proposer = forest(failed_trials=failed_trials)
        return float(np.mean([propose(proposer, history, k).vector[0] > 0.5 for k in range(15)]))

    assert share("avoid") < 0.2 < 0.5 < share("ignore")


@pytest.mark.parametrize("level", [0.0, 1.0, -1e6, 1e12])
def test_failures_are_avoided_where_a_bound_is_the_same_everywhere(level: float) -> None:
    """The reference lies below the bound, however large it is: at it nothing else would count."""
    flat = Told(lambda X: (np.full(len(X), level), np.zeros(len(X))))
    proposer = forest(flat, target="raw", acquisition="bound", n_startup=2, failed_trials="avoid")
    vectors = SQUARE.sample(60, np.random.default_rng(1))
    failed = vectors[:, 0] > 0.5
    losses = np.where(failed, np.nan, 1.0 + np.arange(60))
    history = History.of(vectors, losses, status=np.where(failed, Status.FAILED, Status.COMPLETE))
    assert np.mean([propose(proposer, history, k).vector[0] > 0.5 for k in range(60, 70)]) < 0.2


def without_a_feasible_row(crashes: bool) -> History:
    """Violations fall with x; beyond x = 0.6 all rows crash, or violate less still."""
    vectors = SQUARE.sample(40, np.random.default_rng(1))
    failed = crashes & (vectors[:, 0] > 0.6)
    return History.of(
        vectors,
        np.where(failed, np.nan, vectors[:, 1]),
        status=np.where(failed, Status.FAILED, Status.COMPLETE),
        constraints=np.where(failed, np.nan, 2.0 - vectors[:, 0])[:, None],
    )


@pytest.mark.parametrize("surrogate", [RandomForest(), AveragedProcess()])
def test_failures_are_avoided_also_where_no_row_is_feasible(surrogate: Any) -> None:
    crashing, violating = (without_a_feasible_row(crashes) for crashes in (True, False))
    n_complete = int((crashing.status == Status.COMPLETE).sum())
    for k in range(40, 48):
        proposal = propose(forest(surrogate), crashing, k)
        # Near the border, where violations are least
        assert 0.4 < proposal.vector[0] < 0.7
        assert proposal.success is not None and proposal.success > 0.5
        assert (proposal.n_infeasible, proposal.loss) == (n_complete, None)
        # Without a failure there is nothing to be avoided
        free = propose(forest(surrogate), violating, k)
        assert free.vector[0] > 0.9 and free.success is None and free.n_infeasible == 40
    # From the first feasible row on its loss is what is improved on
    known = replace(crashing, constraints=crashing.constraints - 1.5)
    found = propose(forest(surrogate), known, 40)
    assert found.n_infeasible == 0 and found.loss is not None


@pytest.mark.parametrize("failed_trials", ["avoid", "ignore"])
def test_constraints_are_learnt_also_where_failures_are_ignored(failed_trials: Any) -> None:
    vectors = SQUARE.sample(60, np.random.default_rng(1))
    failed = np.arange(60) % 7 == 0
    history = History.of(
        vectors,
        np.where(failed, np.nan, 1.0 - vectors[:, 0]),  # better and better across the border
        status=np.where(failed, Status.FAILED, Status.COMPLETE),
        constraints=np.where(failed, np.nan, vectors[:, 0] - 0.5)[:, None],
    )
    proposer = forest(failed_trials=failed_trials)
    proposals = [propose(proposer, history, k) for k in range(15)]
    assert np.mean([proposal.vector[0] > 0.5 for proposal in proposals]) < 0.2
    for proposal in proposals:
        assert proposal.success is not None


def test_ignored_failures_and_no_violation_need_no_model_of_success() -> None:
    status = np.where(np.arange(60) % 7 == 0, Status.FAILED, Status.COMPLETE)
    history = observed(SQUARE, 60, status=status)
    history = replace(history, constraints=np.full((60, 1), -1.0))
    assert propose(forest(failed_trials="ignore"), history).success is None


@pytest.mark.parametrize("acquisition", ["ei", "bound"])
def test_expensive_configurations_must_be_worth_it(acquisition: Any) -> None:
    vectors = SQUARE.sample(60, np.random.default_rng(1))
    losses = (vectors[:, 1] - 0.5) ** 2
    history = History.of(vectors, losses, seconds=np.exp(6 * vectors[:, 0]))

    def mean_x(**cost: Any) -> float:
        proposer = forest(QuantileBoosting(), timed=True, acquisition=acquisition, **cost)
        points = [propose(proposer, history, k) for k in range(60, 68)]
        assert all(point.seconds is not None and point.seconds > 0 for point in points)
        return float(np.mean([point.vector[0] for point in points]))

    free = mean_x(cost_exponent=0.0)
    assert mean_x(cost_exponent=1.0) < 0.7 * free
    assert mean_x(cost_exponent=1.0, cost_budget=60) == free  # spent: cost no longer counts


def test_how_a_search_begins() -> None:
    status = [Status.COMPLETE, Status.FAILED, Status.PRUNED, Status.RUNNING]
    losses, vectors = [0.5, np.nan, 0.2, np.nan], SQUARE.sample(4, np.random.default_rng(0))
    history = History.of(vectors, losses, status=status)  # rows of every status count
    assert propose(forest(n_startup=4), history).origin == "model"
    assert propose(forest(n_startup=4), history.first(3)).origin == "design"
    assert propose(forest(n_startup=4, uniform_start=True), history.first(3)).origin == "random"
    failed = observed(SQUARE, 20, losses=np.full(20, np.nan), status=[Status.FAILED] * 20)
    assert propose(forest(), failed).origin == "design"  # the start lasts until a row is complete
    proposer, history = forest(interleave=4), observed(SQUARE, 20)
    origins = [propose(proposer, history, k).origin for k in range(20, 28)]
    assert origins == ["design", "model", "model", "model"] * 2


def test_the_start_lasts_as_long_as_all_losses_are_alike() -> None:
    third = 0.1 + 0.2  # 0.3 up to rounding
    flat = observed(SQUARE, 20, losses=[0.3, third] * 10)
    process = forest(AveragedProcess(), search=LocalSearch(n_gradients=20))
    assert propose(process, flat).origin == "design"
    for loss in (0.29, 0.31):
        other = observed(SQUARE, 20, losses=[0.3] * 19 + [loss])
        assert propose(process, other).origin == "model"
    # A failure or violation says nothing of where losses are lower ...
    status = [Status.COMPLETE] * 19 + [Status.FAILED]
    failing = observed(SQUARE, 20, losses=[0.3] * 19 + [np.nan], status=status)
    assert propose(process, failing).origin == "design"
    violated = observed(SQUARE, 20, losses=[0.3] * 20, constraints=[[0.0]] * 19 + [[1.0]])
    assert propose(process, violated).origin == "design"
    # ... but how far violations are from none does, and so do pruned losses and earlier tasks.
    never = observed(SQUARE, 20, losses=[0.3] * 20, constraints=[[1.0], [2.0]] * 10)
    assert propose(process, never).origin == "model"
    pruned = observed(SQUARE, 20, losses=[0.3] * 20, status=[*status[:19], Status.PRUNED])
    assert propose(process, pruned).origin == "model"

    class Template:
        def for_space(self, space: VectorSpace) -> RandomForest:
            return RandomForest()

    assert propose(forest(Template()), flat).origin == "model"
    assert propose(forest(informed=True), flat).origin == "model"


@pytest.mark.parametrize("told_by", ["status", "constraints"])
def test_a_start_that_lasts_leaves_out_what_is_likely_to_fail(told_by: str) -> None:
    vectors = SQUARE.sample(40, np.random.default_rng(1))
    broken = vectors[:, 0] > 0.5
    if told_by == "status":
        status = np.where(broken, Status.FAILED, Status.COMPLETE)
        history = History.of(vectors, np.where(broken, np.nan, 0.5), status=status)
    else:
        history = History.of(
            vectors, np.full(40, 0.5), constraints=np.where(broken, 1.0, -1.0)[:, None]
        )
    proposals = [propose(forest(), history, k) for k in range(40, 50)]
    assert {p.origin for p in proposals} == {"design"}
    assert max(p.vector[0] for p in proposals) < 0.6
    if told_by == "status":  # once each has succeeded at last, its failures say nothing
        n = int(broken.sum())
        again = History.of(
            np.vstack([vectors, *[vectors[broken]] * 5]),
            np.concatenate([history.losses, np.full(4 * n, np.nan), np.full(n, 0.5)]),
            status=[*history.status, *[Status.FAILED] * 4 * n, *[Status.COMPLETE] * n],
        )
        late = range(len(again), len(again) + 10)
        assert max(propose(forest(), again, k).vector[0] for k in late) > 0.7
    ignoring = forest(failed_trials="ignore")
    farthest = max(propose(ignoring, history, k).vector[0] for k in range(40, 50))
    assert (farthest > 0.7) == (told_by == "status")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda X: np.full(len(X), np.nan), "predicted NaN"),
        (lambda X: (np.zeros(len(X)), np.full(len(X), np.nan)), "predicted NaN"),
        (lambda X: np.zeros(3), "predict of .*Told.* failed: cannot reshape"),
        (lambda X: 1 / 0, "predict of .*Told.* failed: division by zero"),
    ],
)
def test_foreign_errors_are_chained(answer: Any, message: str) -> None:
    with pytest.raises(SurrogateFailure, match=message):
        propose(forest(Told(answer)), observed(SQUARE, 20))


def test_a_fit_that_fails_is_chained() -> None:
    class Broken(RandomForest):
        def fit(self, X: Any, y: Any) -> Any:
            raise KeyError("no such leaf")

    with pytest.raises(SurrogateFailure, match=r"fit of .*Broken.* on 20 rows failed: .*leaf"):
        propose(forest(Broken()), observed(SQUARE, 20))
