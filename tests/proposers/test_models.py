"""What models learn from: targets by hand and their invariants, pruned losses, rows, seconds."""

from __future__ import annotations

import itertools
from typing import Any, get_args

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace
from scipy.stats import spearmanr

from automl_plugins import surrogates
from automl_plugins.arrays import FloatArray
from automl_plugins.proposers.models import (
    FittedModels,
    ModelSettings,
    Target,
    Targets,
    effective_losses,
    fit_models,
    thin_out,
    transform,
    with_diverged_as_failed,
    with_substitute_losses,
)
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams
from automl_plugins.surrogates import AveragedProcess, QuantileBoosting, RandomForest, RunningTime

C, P, F, R = Status.COMPLETE, Status.PRUNED, Status.FAILED, Status.RUNNING
NAN = float("nan")
LINE = VectorSpace(ConfigurationSpace({"x": (0.0, 1.0)}))
POINTS = np.linspace(0.0, 1.0, 40)[:, None]
every_kind = pytest.mark.parametrize("kind", get_args(Target))


def losses(n: int = 60, seed: int = 0) -> FloatArray:
    """Losses with ties and two outliers."""
    y = np.round(np.random.default_rng(seed).normal(size=n), 1)
    y[:2] = [1e4, -1e3]
    return y


@pytest.mark.parametrize(
    ("kind", "y", "z"),
    [
        # The median regret is 2 - (-1) = 3
        ("log_regret", [-1.0, 2.0, 8.0], np.log([0.15, 1.15, 3.15])),
        # More than half of the rows are best: the largest regret, 4, is the unit
        ("log_regret", [1.0, 5.0, 1.0, 1.0, 3.0], np.log([0.15, 1.15, 0.15, 0.15, 0.65])),
        ("log_regret", [0.1, 0.1, 0.1, 0.1], np.full(4, np.log(0.15))),
        # Ranks 3, 1, 2 of 3: quantiles 5/6, 1/6, 1/2 of the standard normal
        ("normal_scores", [7.0, -1.0, 5.0], [0.9674215661, -0.9674215661, 0.0]),
        # Two share the ranks 1 and 2, and two 3 and 4: (1.5 - 0.5) / 4 = 1/4 and 3/4
        ("normal_scores", [0.0, 9.0, 9.0, 0.0], 0.6744897502 * np.array([-1, 1, 1, -1])),
        # The mean of three 0.1 is not 0.1
        ("standardize", [0.1, 0.1, 0.1], [0.0, 0.0, 0.0]),
        ("standardize", [1.0, 3.0], [-1.0, 1.0]),
        ("raw", [1.0, 3.0], [1.0, 3.0]),
    ],
)
def test_targets_by_hand(kind: Target, y: list[float], z: Any) -> None:
    np.testing.assert_allclose(transform(np.array(y), kind).values, z, rtol=1e-9, atol=1e-10)


def test_log_regret_has_no_unit_and_ignores_how_bad_the_worst_is() -> None:
    y = losses()
    z = transform(y, "log_regret").values
    for other in (8.0 * y + 3.0, 1e-200 * y, 1e200 * y):
        np.testing.assert_allclose(transform(other, "log_regret").values, z, rtol=1e-9)
    worse = np.where(y == y.max(), 1e9, y)
    others = y < y.max()
    np.testing.assert_array_equal(transform(worse, "log_regret").values[others], z[others])
    gaps = np.diff(transform(np.linspace(0.0, 1.0, 101), "log_regret").values)
    assert (np.diff(gaps) < 0).all()  # concave: equal steps count ever less
    assert gaps[0] > 10.0 * gaps[-1]


@every_kind
def test_targets_increase_keep_ties_and_lead_back_into_the_observed_range(kind: Target) -> None:
    y = losses()
    targets = transform(y, kind)
    np.testing.assert_array_equal(targets.losses, y)
    order = np.argsort(y, kind="stable")
    rising = np.diff(targets.values[order])
    np.testing.assert_array_equal(rising > 0, np.diff(y[order]) > 0)
    assert (rising >= 0).all()
    grid = np.linspace(targets.values.min() - 1.0, targets.values.max() + 1.0, 500)
    back = np.array([targets.to_loss(value) for value in grid])
    assert (np.diff(back) >= 0).all() and (back[0], back[-1]) == (y.min(), y.max())
    huge = transform(np.array([-1e308, 0.0, 1e307, 1.5e308]), "standardize").values
    assert np.isfinite(huge).all() and (np.diff(huge) > 0).all()


@pytest.mark.parametrize("kind", ["rank", "", None, 1])
def test_unknown_targets_are_refused(kind: Any) -> None:
    with pytest.raises(ValueError, match=rf"target must be .*'normal_scores'.* got {kind!r}\."):
        transform(losses(), kind)


def test_the_way_back_by_hand() -> None:
    targets = Targets(np.array([10.0, 0.0, 2.0]), np.array([1.0, -1.0, 0.0]))
    answers = [targets.to_loss(z) for z in (-2.0, -1.0, -0.5, 0.0, 0.25, 1.0, 9.0)]
    assert answers == [0.0, 0.0, 1.0, 2.0, 4.0, 10.0, 10.0]


# Pruned losses


def history(rows: list[tuple[Status, float, float]], **columns: Any) -> History:
    """A history of (status, loss, budget)."""
    status, loss, budget = (list(part) for part in zip(*rows, strict=True))
    return History.of(np.zeros((len(rows), 1)), loss, status=status, budget=budget, **columns)


def random_history(seed: int, n_complete: int = 20, n_pruned: int = 15) -> History:
    """Complete, pruned and failed rows, mixed, with unequal budgets."""
    rng = np.random.default_rng(seed)
    status = rng.permutation([C] * n_complete + [P] * n_pruned + [F] * 3)
    loss = np.where(status == F, NAN, rng.normal(size=len(status)))
    budget = np.where(status == P, rng.integers(1, 5, size=len(status)), 9.0)
    return History.of(rng.random((len(status), 2)), loss, status=status, budget=budget)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (  # The later step first: the quantiles 0.5 + 0.5 (1/4, 3/4) of 0, 2, 4
            [(C, 0, 9), (P, 5, 2), (C, 4, 9), (F, NAN, NAN), (P, -9, 1), (C, 2, 9), (R, 1, 3)],
            [0.0, 2.5, 4.0, NAN, 3.5, 2.0, NAN],
        ),
        (  # Step 4; step 3 by loss, then the one without a loss; then the one without a step
            [(C, 0, NAN), (C, 1, NAN), (P, 7, 3), (P, 6, 3), (P, NAN, 3), (P, 0, NAN), (P, 99, 4)],
            [0.0, 1.0, *(0.5 + 0.05 * np.array([5, 3, 7, 9, 1]))],
        ),
        # Ties go to the earlier number
        ([(C, 0.0, 1.0), (C, 1.0, 1.0), (P, 5.0, 2.0), (P, 5.0, 2.0)], [0.0, 1.0, 0.625, 0.875]),
        # Nothing is complete: nothing to be compared with
        ([(P, 1.0, 1.0), (F, NAN, NAN)], [NAN, NAN]),
        # Complete ones say nothing of what is worse: behind them, over the 14 between the reports
        ([(P, -5.0, 1.0), (C, 2.0, 9.0), (P, 9.0, 2.0)], [2.0 + 10.5, 2.0, 2.0 + 3.5]),
        ([(P, NAN, 1.0), (C, 0.0, 9.0), (C, 0.0, 9.0)], [0.5, 0.0, 0.0]),
        ([(P, 5.0, 1.0), (C, -4e6, 9.0)], [-4e6 + 2.0, -4e6]),
        # A failed row has no loss even if it reported one, a running one has none yet
        ([(C, 1.0, 9.0), (F, 0.0, 9.0), (R, 0.0, 9.0)], [1.0, NAN, NAN]),
    ],
)
def test_effective_losses_by_hand(
    rows: list[tuple[Status, float, float]], expected: list[float]
) -> None:
    np.testing.assert_allclose(effective_losses(history(rows)), expected)
    failed = np.array([row[0] == F for row in rows])
    penalised = effective_losses(history(rows), failed)
    np.testing.assert_allclose(penalised[~failed], np.array(expected)[~failed])
    worst = max((loss for loss in expected if not np.isnan(loss)), default=NAN)
    np.testing.assert_allclose(penalised[failed], worst)


def test_pruned_ties_go_by_the_number() -> None:
    rows = [(C, 0.0, 1.0), (C, 1.0, 1.0), (P, 5.0, 2.0), (P, 5.0, 2.0)]
    swapped = effective_losses(history(rows, number=[0, 1, 3, 2]))
    assert np.diff(swapped[2:])[0] < 0


@pytest.mark.parametrize("seed", range(5))
def test_pruned_rows_fill_the_worse_half_and_budgets_are_never_compared(seed: int) -> None:
    observed = random_history(seed)
    values = effective_losses(observed)
    complete, pruned = observed.losses[observed.status == C], values[observed.status == P]
    np.testing.assert_array_equal(values[observed.status == C], complete)
    assert (pruned >= np.median(complete)).all() and (pruned <= complete.max()).all()
    assert np.isnan(values[observed.status == F]).all()
    # Spread evenly: their median is the third quartile
    assert np.median(pruned) == pytest.approx(np.quantile(complete, 0.75))
    budgets = np.unique(observed.budget[observed.status == P])
    for lower, upper in itertools.pairwise(budgets):
        at = [values[(observed.status == P) & (observed.budget == b)] for b in (lower, upper)]
        assert at[0].min() > at[1].max()  # a later step is always better
    # Whatever the losses of one budget, all others keep their place.
    rng = np.random.default_rng(seed)
    for budget in budgets:
        rows = (observed.status == P) & (observed.budget == budget)
        changed = np.where(rows, rng.normal(size=len(observed)) * 1e6, observed.losses)
        other = effective_losses(
            History.of(observed.vectors, changed, status=observed.status, budget=observed.budget)
        )
        np.testing.assert_array_equal(other[~rows], values[~rows])
        np.testing.assert_array_equal(np.sort(other[rows]), np.sort(values[rows]))


@pytest.mark.parametrize(
    ("rows", "constraints", "expected"),
    [
        # Sums of excess over the mean excess, 2 and 10; unknown ones count as that; pruned stay
        (
            [(C, 9, NAN), (C, -9, NAN), (F, NAN, NAN), (C, 0, NAN), (P, 7, 1)],
            [[1, 10], [3, -5], [9, 9], [NAN, 10], [0, 0]],
            [0.5 + 1.0, 1.5, NAN, 1.0 + 1.0, 7.0],
        ),
        # One is feasible: losses count
        ([(C, 9, NAN), (C, -9, NAN)], [[1], [0]], [9.0, -9.0]),
        # Nobody has said anything of constraints
        ([(C, 9, NAN), (C, -9, NAN)], np.empty((2, 0)), [9.0, -9.0]),
        # None is complete: later steps first, then losses, then what reported none
        (
            [(P, 5, 2), (F, NAN, NAN), (P, -9, 1), (P, 4, 2), (P, NAN, NAN)],
            np.empty((5, 0)),
            [1.0, NAN, 2.0, 0.0, 3.0],
        ),
    ],
)
def test_what_stands_for_losses_by_hand(
    rows: list[tuple[Status, float, float]], constraints: Any, expected: list[float]
) -> None:
    observed = history(rows, constraints=constraints)
    found = with_substitute_losses(observed)
    np.testing.assert_allclose(found.losses, expected)
    assert (found is observed) == (expected == [9.0, -9.0])
    fitted = fit_models(ModelSettings(RandomForest()), LINE, observed, Streams(0))
    assert (fitted.to_loss(0.0) is None) == (found is not observed)


# What the models are given


def test_models_see_a_bounded_number_of_rows_the_best_half_among_them() -> None:
    targets = np.arange(100.0)
    rows = thin_out(targets, 20, np.random.default_rng(0))
    assert len(rows) == 20 and set(range(10)) <= set(rows.tolist())
    assert np.array_equal(thin_out(targets, 200, np.random.default_rng(0)), np.arange(100))


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
    assert fitted.best > fitted.targets.values.min() + 0.1
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
    rows = fitted.learnt
    assert len(rows) == 10 and set(np.argsort(losses)[:5]) <= set(rows.tolist())
    assert judged(losses[rows], losses, max_rows=10).merits == pytest.approx(1.0)
    np.testing.assert_array_equal(judged(None, losses).learnt, np.arange(40))
    # Rows without a loss are not among the targets
    told = [1.0, 2.0, 3.0]
    settings = ModelSettings(Table(np.zeros(40), told), target="raw", failed_trials="ignore")
    failed = History.of(POINTS[:5], [0.1, NAN, 0.2, NAN, 0.3], status=[C, F, C, F, C])
    fitted = fit_models(settings, LINE, failed, Streams(0))
    np.testing.assert_array_equal(fitted.learnt, np.arange(3))
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


def test_a_surrogate_without_held_out_rows_cannot_be_judged() -> None:
    fitted = fit_models(
        ModelSettings(RandomForest()), LINE, History.of(POINTS, POINTS[:, 0]), Streams(0)
    )
    with pytest.raises(TypeError, match=r"RandomForest.*cannot be judged: it has no held_out\(\)"):
        _ = fitted.merits


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
    assert sorted(models.best_rows) == [0, 1, 2, 3]


@pytest.mark.parametrize("far", [300.0, 1e30, 1.7e308])
def test_a_loss_that_has_diverged_is_a_failure(far: float) -> None:
    vectors = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.9, 1.0]
    losses = [0.3, 0.2, 0.1, 0.25, far, 0.4, far, far]
    found = fitted_to(vectors, losses, [0] * 8)
    known = fitted_to(vectors, losses, [0, 0, 0, 0, 1, 0, 1, 1])
    assert found.feasibility is not None and known.feasibility is not None
    grid = np.linspace(0.0, 1.0, 21)[:, None]
    np.testing.assert_array_equal(found.predict(grid), known.predict(grid))
    np.testing.assert_array_equal(found.best_rows, known.best_rows)
    success = found.feasibility.predict(grid)
    np.testing.assert_array_equal(success, known.feasibility.predict(grid))
    assert success[-1] < success[2]
    # What is near the others is a loss.
    assert fitted_to(vectors, np.minimum(losses, 9.0).tolist(), [0] * 8).feasibility is None


def test_losses_that_have_diverged_are_learnt_where_failures_are_ignored() -> None:
    settings = ModelSettings(AveragedProcess(), target="standardize", failed_trials="ignore")
    observed = History.of(POINTS[:6], [0.1, 0.2, 0.3, 0.4, 1e9, 0.5])
    models = fit_models(settings, LINE, observed, Streams(0))
    assert models.feasibility is None and len(models.best_rows) == 6


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
    learnt = set(models.best_rows.tolist())
    assert learnt >= set(range(33, 41)) and 10 not in learnt
    assert models.predict(np.array([[0.9]]))[0] > models.predict(np.array([[0.6]]))[0]


@pytest.mark.parametrize("seed", range(3))
def test_failures_by_chance_have_no_loss_and_hide_no_optimum(seed: int) -> None:
    x = np.linspace(0.0, 1.0, 41)
    failed = np.random.default_rng(seed).random(41) < 0.55
    losses = np.where(failed, NAN, (x - 0.4) ** 2)
    models = fitted_to(x.tolist(), losses.tolist(), failed.astype(int).tolist())
    np.testing.assert_array_equal(np.sort(models.best_rows), np.flatnonzero(~failed))
    success = models.success(x[:, None])
    assert success[failed].min() > 0.5 * success.max()
    assert success[failed].mean() > 0.75 * success[~failed].mean()
