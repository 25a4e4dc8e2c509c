"""The models behind one proposal: their rows, seconds, incumbents and merits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace, EqualsCondition, GreaterThanCondition
from scipy.stats import spearmanr

from automl_plugins import surrogates
from automl_plugins.arrays import FloatArray
from automl_plugins.proposers.feasibility import likely_to_succeed
from automl_plugins.proposers.models import (
    FittedModels,
    ModelSettings,
    condition,
    fit_models,
    n_conditional,
)
from automl_plugins.proposers.targets import Target, choose_rows, with_diverged_as_failed
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams
from automl_plugins.surrogates import AveragedProcess, QuantileBoosting, RandomForest, RunningTime

C, P, F = Status.COMPLETE, Status.PRUNED, Status.FAILED
NAN = float("nan")
LINE = VectorSpace(ConfigurationSpace({"x": (0.0, 1.0)}))
POINTS = np.linspace(0.0, 1.0, 40)[:, None]


# What the models are given


def test_models_see_a_bounded_number_of_rows_the_best_half_among_them() -> None:
    targets = np.arange(100.0)
    all_rows, odd = np.ones(100, dtype=bool), np.arange(100) % 2 == 1
    rows = choose_rows(targets, all_rows, 20, np.random.default_rng(0))
    assert len(rows) == 20 and set(range(10)) <= set(rows.tolist())
    rows = choose_rows(targets, odd, 20, np.random.default_rng(0))
    assert len({*rows.tolist()}) == 20 and set(range(1, 20, 2)) <= set(rows.tolist())
    assert odd[rows].all() and (np.diff(rows) > 0).all()
    rng = np.random.default_rng(0)
    assert len({*choose_rows(targets, all_rows, 90, rng).tolist()}) == 90
    assert np.array_equal(choose_rows(targets, all_rows, 200, rng), np.arange(100))
    assert np.array_equal(choose_rows(targets, odd, None, rng), np.arange(1, 100, 2))


def test_a_number_of_layers_implies_which_widths_there_are() -> None:
    space = ConfigurationSpace(
        {"layers": (1, 3), "second": (0.0, 1.0), "kind": ["a", "b"], "inner": (0.0, 1.0)}
    )
    space.add(
        GreaterThanCondition(space["second"], space["layers"], 1),
        EqualsCondition(space["inner"], space["kind"], "a"),
    )
    vectors = VectorSpace(space)
    history = History.of(drawn := vectors.sample(20, np.random.default_rng(0)), drawn[:, 0])
    fitted = fit_models(ModelSettings(AveragedProcess()), vectors, history, Streams(0))
    assert isinstance(fitted.surrogate, AveragedProcess)
    flagged = [vectors.feature_names[column] for column in fitted.surrogate.flagged_]
    assert flagged == ["inner"] and np.isnan(vectors.features(drawn)).any(axis=0).sum() == 2


def test_seconds_of_pruned_rows_are_lower_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[bool]] = []

    class Spy(RunningTime):
        def fit(self, X: Any, seconds: Any, lower_bound: Any = None) -> Any:
            seen.append(np.asarray(lower_bound).tolist())
            return super().fit(X, seconds, lower_bound)

    monkeypatch.setattr(surrogates, "RunningTime", Spy)
    rows = History.of(
        POINTS[:4], [0.0, 1.0, np.nan, 2.0], seconds=np.arange(1.0, 5.0), status=[C, P, F, C]
    )
    fit_models(ModelSettings(RandomForest(), timed=True), LINE, rows, Streams(0))
    assert seen == [[False, True, False, False]]


def test_seconds_and_failures_of_the_newest_rows_count() -> None:
    late = np.arange(40) >= 20
    rows = History.of(
        POINTS[np.random.default_rng(0).permutation(40)],
        np.where(late, np.nan, 0.5),
        seconds=np.where(late, 100.0, 1.0),
        status=np.where(late, F, C),
    )
    settings = ModelSettings(RandomForest(), timed=True, max_rows=20)
    fitted = fit_models(settings, LINE, rows, Streams(0))
    features = LINE.features(POINTS)
    assert (np.exp(fitted.log_seconds(features)) > 50.0).all()
    assert (np.exp(fitted.log_success(features)) < 0.5).all()


def test_further_rows_count_as_if_they_had_been_there_but_for_the_kernels() -> None:
    losses = np.where(np.arange(40) == 33, -0.5, (POINTS[:, 0] - 0.4) ** 2)
    failed = np.isin(np.arange(40), [3, 4, 5])
    rows = History.of(POINTS, np.where(failed, NAN, losses), status=np.where(failed, F, C))
    settings = ModelSettings(AveragedProcess(), incumbent="predicted")
    early = fit_models(settings, LINE, rows.first(30), Streams(0))
    models = condition(early, settings, LINE, rows, Streams(0))
    assert early.learnt.penalised.any() and np.array_equal(
        models.learnt.penalised[:30], early.learnt.penalised
    )
    assert models.feasibility is early.feasibility and models.learnt.n_rows == 40
    assert models.learnt.best_rows[0] == 33 != early.learnt.best_rows[0]
    before, now = (one.to_loss(one.best) for one in (early, models))
    assert before is not None and now is not None and now < before
    features, known = LINE.features(POINTS), np.sort(models.learnt.best_rows)
    assert known.tolist() == np.flatnonzero(~failed | models.learnt.penalised).tolist()
    worst = np.where(models.learnt.penalised, losses.max(), losses)
    np.testing.assert_array_equal(models.learnt.targets.losses, worst[known])
    assert isinstance(early.surrogate, AveragedProcess)
    expected = early.surrogate.conditioned(features[known], models.learnt.targets.values)
    np.testing.assert_array_equal(models.predict(features), expected.predict(features))
    # Of the rows that were there, one has succeeded since, or another trial of its configuration
    mended = History.of(POINTS, losses, status=np.full(40, C))
    assert not condition(early, settings, LINE, mended, Streams(0)).learnt.penalised.any()
    mended_row = int(np.flatnonzero(early.learnt.penalised)[0])
    points = np.where(np.arange(40) == 39, POINTS[mended_row], POINTS[:, 0])[:, None]
    retried = History.of(points, np.where(failed, NAN, losses), status=np.where(failed, F, C))
    after = condition(early, settings, LINE, retried, Streams(0)).learnt.penalised
    assert np.flatnonzero(early.learnt.penalised[:30] & ~after[:30]).tolist() == [mended_row]


@pytest.mark.parametrize(
    ("changed", "avoid", "ignore"),
    [
        ({}, 8, 8),
        ({"status": {5: F}}, 5, 8),
        ({"status": {2: F, 6: F}}, 6, 8),  # the first one was known to the fit
        ({"limit": {6: 2.0}}, 6, 6),
        ({"losses": {7: 1e30}}, 7, 8),
        ({"losses": {3: 1e4}}, 0, 8),  # has diverged, as later rows show
        ({"limit": dict.fromkeys(range(4), 2.0)}, 0, 0),  # the first feasible row is newer
        ({"status": dict.fromkeys(range(4), P)}, 0, 0),  # the first complete one
        # Violations are what is learnt: nothing but a failure is one
        ({"limit": dict.fromkeys(range(8), 2.0)}, 8, 8),
        ({"limit": dict.fromkeys(range(8), 2.0), "status": {6: F}}, 6, 8),
        (  # the first complete one violates a constraint
            {"status": dict.fromkeys(range(4), P), "limit": dict.fromkeys(range(4, 8), 2.0)},
            0,
            0,
        ),
    ],
)
def test_rows_that_a_fitted_model_may_take_in(
    changed: dict[str, dict[int, float]], avoid: int, ignore: int
) -> None:
    columns: dict[str, Any] = {
        "losses": np.linspace(0.1, 0.8, 8),
        "status": np.full(8, C),
        "limit": np.zeros(8),
    }
    for name, values in changed.items():
        columns[name][list(values)] = list(values.values())
    losses = np.where(columns["status"] == F, NAN, columns["losses"])
    limits = columns["limit"][:, None]
    rows = History.of(POINTS[:8], losses, status=columns["status"], constraints=limits)
    for failed_trials, expected in (("avoid", avoid), ("ignore", ignore)):
        settings = ModelSettings(AveragedProcess(), failed_trials=failed_trials)  # type: ignore[arg-type]
        assert n_conditional(rows, 4, settings) == expected


# What is to be improved on


class Table:
    """Predicts what it is told for each of ``POINTS``, and without a row what it is told, too."""

    def __init__(self, mean: Any, held_out: Any = None) -> None:
        self.mean, self.told = np.asarray(mean, dtype=float), held_out

    def fit(self, X: FloatArray, y: FloatArray) -> Table:
        return self

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self.mean[np.rint(39.0 * X[:, 0]).astype(int)], np.full(len(X), 0.1)

    def held_out(self) -> FloatArray:
        return np.asarray(self.told, dtype=float)


def test_the_luck_of_one_evaluation_is_not_what_is_to_be_improved_on() -> None:
    mean = (POINTS[:, 0] - 0.5) ** 2
    lucky = mean - (np.arange(40) == 20)
    rows = History.of(POINTS, lucky)
    bests = {}
    for incumbent in ("observed", "predicted"):
        told = ModelSettings(Table(mean), target="raw", incumbent=incumbent)
        bests[incumbent] = fit_models(told, LINE, rows, Streams(0)).best
    assert bests == {"observed": lucky.min(), "predicted": mean.min()}
    # And a process does not believe the luck
    smooth = ModelSettings(AveragedProcess(), target="standardize", incumbent="predicted")
    fitted = fit_models(smooth, LINE, rows, Streams(0))
    assert fitted.best > fitted.learnt.targets.values.min() + 0.1
    expected = fitted.predict(LINE.features(POINTS))[0].min()
    assert fitted.best == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("told_by", ["constraints", "status"])
def test_the_best_prediction_is_taken_of_feasible_rows(told_by: str) -> None:
    broken, mean = POINTS[:, 0] < 0.5, POINTS[:, 0]
    rows = History.of(POINTS, mean, constraints=np.where(broken, 1.0, -1.0)[:, None])
    if told_by == "status":
        losses = np.where(broken, np.nan, mean)
        rows = History.of(POINTS, losses, status=np.where(broken, F, C))
    settings = ModelSettings(Table(mean), target="raw", incumbent="predicted")
    assert fit_models(settings, LINE, rows, Streams(0)).best == POINTS[20, 0]
    # Where no row is feasible: of all
    if told_by == "constraints":
        rows = History.of(POINTS, mean, constraints=np.ones((40, 1)))
        assert fit_models(settings, LINE, rows, Streams(0)).best == 0.0


def test_caution_begins_with_the_first_feasible_row() -> None:
    failed = POINTS[:, 0] > 0.6
    losses = np.where(failed, NAN, POINTS[:, 0])
    for limit, caution in ((1.0, 1.0), (0.0, 4.0)):
        limits = np.where(failed, NAN, limit)[:, None]
        rows = History.of(POINTS, losses, status=np.where(failed, F, C), constraints=limits)
        models = fit_models(ModelSettings(RandomForest()), LINE, rows, Streams(0))
        features = LINE.features(POINTS)
        expected = caution * np.log(models.success(features))
        np.testing.assert_allclose(models.log_success(features), expected)
        assert models.success(features).min() < 0.2


def test_what_runs_and_is_likely_to_succeed_is_to_be_improved_on_too() -> None:
    mean = (POINTS[:, 0] - 0.5) ** 2
    rows = History.of(POINTS[25:], mean[25:])
    settings = ModelSettings(AveragedProcess(), target="raw", incumbent="predicted")
    models = fit_models(settings, LINE, rows, Streams(0))
    better, worse = LINE.features(np.array([[0.6]])), LINE.features(np.array([[0.9]]))
    believed = models.beside(better)
    assert believed.best == pytest.approx(models.predict(better)[0][0], abs=1e-3)
    assert believed.best < models.best - 0.005
    assert models.beside(worse).best == models.best

    class Doomed:
        def log_success(self, X: FloatArray) -> FloatArray:
            return np.full(len(X), np.log(0.4))

    doomed = replace(models, feasibility=Doomed())  # type: ignore[arg-type]
    assert doomed.beside(better).best == models.best
    # Without an observation there is nothing to improve on, whatever runs
    assert replace(models, best=np.inf).beside(better).best == np.inf


def test_without_a_row_there_is_nothing_to_improve_on() -> None:
    settings = ModelSettings(Table(np.zeros(40)), target="raw", incumbent="predicted")
    none = History.of(POINTS[:0], [])
    assert fit_models(settings, LINE, none, Streams(0)).best == np.inf
    with pytest.raises(ValueError, match="incumbent must be one of 'observed', 'predicted'"):
        ModelSettings(RandomForest(), incumbent="best")  # type: ignore[arg-type]


# How well a model ranks what it was not shown


def judged(
    held_out: Any, losses: Any, target: Target = "raw", max_rows: int | None = None
) -> FittedModels:
    settings = ModelSettings(Table(np.zeros(40), held_out), target=target, max_rows=max_rows)
    rows = History.of(POINTS[: len(losses)], np.asarray(losses, dtype=float))
    return fit_models(settings, LINE, rows, Streams(0))


@pytest.mark.parametrize(
    ("held_out", "losses", "merit"),
    [
        ([1.0, 2.0, 30.0, 4.0], [0.1, 0.2, 0.9, 0.5], 1.0),
        ([4.0, 3.0, 2.0, 1.0], [0.1, 0.2, 0.3, 0.4], -1.0),
        # Ranks 2, 1, 3, 4: 1 - 6 (1 + 1) / (4 (16 - 1))
        ([2.0, 1.0, 3.0, 4.0], [0.1, 0.2, 0.3, 0.4], 0.8),
        # Tied predictions share a rank: (1.5, 1.5, 3) against (1, 2, 3)
        ([5.0, 5.0, 6.0], [1.0, 2.0, 3.0], np.sqrt(0.75)),
        # Equal targets count once, by the mean of their predictions: 1, (0 + 6) / 2, 2
        ([1.0, 0.0, 6.0, 2.0], [0.1, 0.2, 0.2, 0.3], 0.5),
        # A plateau of five, all predicted well, is one
        ([9.0, 9.0, 9.0, 9.0, 9.0, 2.0, 1.0], [0.5, 0.5, 0.5, 0.5, 0.5, 0.1, 0.2], 0.5),
        # What was in all samples is left out, and with it what else would be told
        ([1.0, NAN, 2.0, 3.0], [0.1, 0.9, 0.2, 0.3], 1.0),
        ([1.0, NAN, 2.0, NAN], [0.1, 0.9, 0.2, 0.3], 0.0),
        # Nothing can be said
        ([1.0, 2.0, 2.0], [0.1, 0.2, 0.2], 0.0),
        ([1.0, 2.0], [0.1, 0.2], 0.0),
        ([1.0], [0.1], 0.0),
        ([7.0, 7.0, 7.0], [0.1, 0.2, 0.3], 0.0),
        ([NAN, NAN, NAN], [0.1, 0.2, 0.3], 0.0),
    ],
)
@pytest.mark.filterwarnings("error")
def test_merit_by_hand(held_out: Any, losses: Any, merit: float) -> None:
    assert judged(held_out, losses).merits == pytest.approx(merit, abs=1e-12)
    # Only ranks count, and the order of the rows does not
    assert judged(held_out, losses, "normal_scores").merits == pytest.approx(merit, abs=1e-12)
    order = np.random.default_rng(0).permutation(len(losses))
    again = judged(np.array(held_out)[order] ** 3, 5.0 * np.array(losses)[order] - 9.0)
    if len(set(losses)) == len(losses):
        assert again.merits == pytest.approx(merit, abs=1e-12)


def test_without_ties_merit_is_spearmans_correlation() -> None:
    rng = np.random.default_rng(0)
    for n in (3, 10, 40):
        told, losses = rng.normal(size=n), rng.normal(size=n)
        assert judged(told, losses).merits == pytest.approx(spearmanr(told, losses).statistic)


def test_merit_is_that_of_the_rows_learnt_from() -> None:
    losses = np.random.default_rng(0).permutation(40).astype(float)
    fitted = judged(None, losses, max_rows=10)
    rows = fitted.learnt.rows
    assert len(rows) == 10 and set(np.argsort(losses)[:5]) <= set(rows.tolist())
    assert judged(losses[rows], losses, max_rows=10).merits == pytest.approx(1.0)
    np.testing.assert_array_equal(judged(None, losses).learnt.rows, np.arange(40))
    # Rows without a loss are not among the targets
    told = [1.0, 2.0, 3.0]
    settings = ModelSettings(Table(np.zeros(40), told), target="raw", failed_trials="ignore")
    failed = History.of(POINTS[:5], [0.1, NAN, 0.2, NAN, 0.3], status=[C, F, C, F, C])
    fitted = fit_models(settings, LINE, failed, Streams(0))
    np.testing.assert_array_equal(fitted.learnt.rows, np.arange(3))
    assert fitted.merits == pytest.approx(1.0)


@pytest.mark.parametrize("surrogate", [QuantileBoosting(), AveragedProcess()])
def test_what_can_be_learnt_has_merit_and_noise_has_none(surrogate: Any) -> None:
    rng, settings = np.random.default_rng(0), ModelSettings(surrogate, target="normal_scores")
    shuffled = rng.permutation(40)

    def merit(losses: FloatArray) -> float:
        rows = History.of(POINTS[shuffled], losses[shuffled])
        return float(fit_models(settings, LINE, rows, Streams(0)).merits[0])

    assert merit(np.sin(4.0 * POINTS[:, 0])) > 0.8
    assert np.mean([merit(rng.normal(size=40)) for _ in range(5)]) < 0.4


def test_each_of_several_predictions_has_a_merit_of_its_own() -> None:
    losses = [0.1, 0.2, 0.3, 0.9, 0.4]
    told = [
        [1.0, 2.0, 3.0, NAN, 4.0],
        [4.0, 3.0, 2.0, NAN, 1.0],
        [2.0, 1.0, 3.0, NAN, 4.0],
        [7.0, 7.0, 7.0, NAN, 7.0],
    ]
    np.testing.assert_allclose(judged(told, losses).merits, [1.0, -1.0, 0.8, 0.0], atol=1e-12)
    np.testing.assert_array_equal(judged(np.array(told)[:, :2], losses[:2]).merits, np.zeros(4))


# Failures


def fitted_to(vectors: list[float], losses: list[float], failed: list[int]) -> FittedModels:
    status = np.where(np.array(failed) == 1, F, C)
    observed = History.of(np.array(vectors)[:, None], losses, status=status)
    settings = ModelSettings(AveragedProcess(), target="standardize")
    return fit_models(settings, LINE, observed, Streams(0))


def test_a_failure_that_was_retried_with_success_says_nothing() -> None:
    vectors, losses = [0.1, 0.3, 0.6, 0.9, 0.3], [1.0, 0.0, 2.0, 3.0, NAN]
    models = fitted_to(vectors, losses, [0, 0, 0, 0, 1])
    assert models.feasibility is None
    assert sorted(models.learnt.best_rows) == [0, 1, 2, 3]


@pytest.mark.parametrize("far", [300.0, 1e30, 1.7e308])
def test_a_loss_that_has_diverged_is_a_failure(far: float) -> None:
    vectors = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.9, 1.0]
    losses = [0.3, 0.2, 0.1, 0.25, far, 0.4, far, far]
    found = fitted_to(vectors, losses, [0] * 8)
    known = fitted_to(vectors, losses, [0, 0, 0, 0, 1, 0, 1, 1])
    assert found.feasibility is not None and known.feasibility is not None
    grid = np.linspace(0.0, 1.0, 21)[:, None]
    np.testing.assert_array_equal(found.predict(grid), known.predict(grid))
    np.testing.assert_array_equal(found.learnt.best_rows, known.learnt.best_rows)
    success = found.success(grid)
    np.testing.assert_array_equal(success, known.success(grid))
    assert success[-1] < success[2]
    # What is near the others is a loss.
    assert fitted_to(vectors, np.minimum(losses, 9.0).tolist(), [0] * 8).feasibility is None


def test_constraints_are_learnt_by_processes_and_failures_by_trees() -> None:
    x = np.linspace(0.0, 1.0, 6)
    status = np.array([C, C, C, C, C, F])
    unknown = np.where(x == 1.0, NAN, x - 0.5)

    def fitted(*constraints: FloatArray) -> FittedModels:
        known = np.transpose(constraints)
        observed = History.of(x[:, None], x, status=status, constraints=known)
        return fit_models(ModelSettings(AveragedProcess()), LINE, observed, Streams(0))

    both = fitted(unknown).feasibility
    assert both is not None and both.constraints is not None and both.failures is not None
    assert (both.failures.held_out()[:5] > 0.5).all()  # only the last row has failed
    models = fitted(unknown, np.full(6, -1.0), np.maximum(unknown, 0.0))
    assert models.feasibility is not None and models.feasibility.constraints is not None
    assert len(models.feasibility.constraints.processes_) == 2  # one has never been broken
    # The probabilities of the two are multiplied, and four successes asked for.
    grid = np.linspace(0.0, 1.0, 11)[:, None]
    failures, constraints = models.feasibility.failures, models.feasibility.constraints
    assert failures is not None
    expected = np.log(failures.predict(grid)) + constraints.log_probability(grid)
    np.testing.assert_allclose(models.log_success(grid), 4.0 * expected)
    np.testing.assert_allclose(models.success(grid), np.exp(expected))
    # While no row is feasible the violations stand for the losses.
    none = fitted(np.abs(x) + 1.0, unknown).feasibility
    assert none is not None and none.constraints is None


def test_the_least_unlikely_vectors_are_told_from_others_by_many_constraints() -> None:
    x = np.linspace(0.0, 1.0, 40)
    broken = np.column_stack([x > 0.1 + 0.01 * i for i in range(60)]).astype(np.float64)
    observed = History.of(x[:, None], x, constraints=broken)
    asked = x[[20, 30], None]  # they break 42 and all 60: probabilities below the least float
    assert likely_to_succeed(LINE, observed, Streams(0), asked).tolist() == [True, False]


def test_losses_that_have_diverged_are_learnt_where_failures_are_ignored() -> None:
    settings = ModelSettings(AveragedProcess(), target="standardize", failed_trials="ignore")
    observed = History.of(POINTS[:6], [0.1, 0.2, 0.3, 0.4, 1e9, 0.5])
    models = fit_models(settings, LINE, observed, Streams(0))
    assert models.feasibility is None and len(models.learnt.best_rows) == 6


def test_infeasible_losses_set_no_limit_of_divergence() -> None:
    losses = [0.1, 0.2, 0.3, 0.4, 60.0, *[1e9] * 4]
    constraints = np.array([0.0] * 5 + [1.0] * 4)[:, None]
    observed = History.of(POINTS[:9], losses, constraints=constraints)
    expected = [C, C, C, C, F, F, F, F, F]
    np.testing.assert_array_equal(with_diverged_as_failed(observed).status, expected)
    # As long as no trial is feasible there is no limit: violations are learnt instead.
    observed = History.of(POINTS[5:9], losses[5:], constraints=constraints[5:])
    assert with_diverged_as_failed(observed) is observed


def test_failures_have_the_worst_loss_where_they_were_to_be_expected() -> None:
    x = np.linspace(0.0, 1.0, 41)
    failed = x > 0.72
    failed[10] = True  # among successes
    losses = np.where(failed, NAN, (x - 0.4) ** 2)
    models = fitted_to(x.tolist(), losses.tolist(), failed.astype(int).tolist())
    learnt = set(models.learnt.best_rows.tolist())
    assert learnt >= set(range(33, 41)) and 10 not in learnt
    assert models.predict(np.array([[0.9]]))[0] > models.predict(np.array([[0.6]]))[0]


@pytest.mark.parametrize("seed", range(3))
def test_failures_by_chance_have_no_loss_and_hide_no_optimum(seed: int) -> None:
    x = np.linspace(0.0, 1.0, 41)
    failed = np.random.default_rng(seed).random(41) < 0.55
    losses = np.where(failed, NAN, (x - 0.4) ** 2)
    models = fitted_to(x.tolist(), losses.tolist(), failed.astype(int).tolist())
    np.testing.assert_array_equal(np.sort(models.learnt.best_rows), np.flatnonzero(~failed))
    success = models.success(x[:, None])
    assert success[failed].min() > 0.5 * success.max()
    assert success[failed].mean() > 0.75 * success[~failed].mean()
