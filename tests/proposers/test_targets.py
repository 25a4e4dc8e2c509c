"""What models learn from: targets by hand and their invariants, losses of pruned rows."""

from __future__ import annotations

import itertools
from typing import Any, get_args

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace

from automl_plugins.arrays import FloatArray
from automl_plugins.proposers.models import ModelSettings, fit_models
from automl_plugins.proposers.targets import (
    Target,
    Targets,
    effective_losses,
    successes,
    transform,
    with_substitute_losses,
)
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams
from automl_plugins.surrogates import RandomForest

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
        # In the unit of the median, the largest regret is beyond floats
        ("log_regret", [-1.7e308, 1.7e308, 1.7e308], np.log([0.15, 1.15, 1.15])),
        ("log_regret", [0.0, 1e-310, 1.0], [np.log(0.15), np.log(1.15), 300 * np.log(10)]),
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
        # Sums of excess over the mean excess, 2 and 10; unknown ones count as that; pruned ones
        # that know nothing stay
        (
            [(C, 9, NAN), (C, -9, NAN), (F, NAN, NAN), (C, 0, NAN), (P, 7, 1), (P, 7, 1)],
            [[1, 10], [3, -5], [9, 9], [NAN, 10], [0, NAN], [NAN, NAN]],
            [0.5 + 1.0, 1.5, NAN, 1.0 + 1.0, 0.0 + 1.0, 7.0],
        ),
        # The mean of an infinite one is no unit: it counts as very large, the others as none
        ([(C, 9, NAN), (C, -9, NAN)], [[np.inf], [1.0]], [2.0, 2e-150]),
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


@pytest.mark.parametrize(
    ("status", "limits", "expected"),
    [
        ([C, C, F, P], [0.0, 1.0, NAN, 1.0], [True, False, False, False]),
        # Violations are learnt as targets: only the failure is none
        ([C, C, F, P], [2.0, 1.0, NAN, NAN], [True, True, False, True]),
        ([C, C, F, P], [2.0, 1.0, -1.0, -1.0], [True, True, False, True]),
        # Without a complete row they are no targets
        ([P, P, F, P], [2.0, -1.0, NAN, NAN], [False, True, False, True]),
        # ... but a violation that all have would hide the failure
        ([P, P, F, P], [2.0, 1.0, NAN, 3.0], [True, True, False, True]),
        ([F, F, F, F], [NAN, NAN, 1.0, -1.0], [False] * 4),
    ],
)
def test_what_counts_as_a_success_by_hand(
    status: list[Status], limits: list[float], expected: list[bool]
) -> None:
    losses = np.where(np.array(status) == F, NAN, 0.5)
    observed = History.of(
        np.zeros((4, 1)), losses, status=status, constraints=np.array(limits)[:, None]
    )
    assert successes(observed).tolist() == expected


# Pruned rows beside complete ones that reported at the same step


def with_curves(complete: list[tuple[float, float]], pruned: list[float], **more: Any) -> History:
    """Complete rows of (loss at step 3, final loss), then rows pruned at step 3 with a loss."""
    return History.of(
        np.zeros((len(complete) + len(pruned), 1)),
        [*(final for _, final in complete), *pruned],
        status=[C] * len(complete) + [P] * len(pruned),
        budget=[NAN] * len(complete) + [3.0] * len(pruned),
        curves=[{1.0: 99.0, 3.0: early} for early, _ in complete] + [{}] * len(pruned),
        **more,
    )


@pytest.mark.parametrize(
    ("complete", "pruned", "expected"),
    [
        # final = 1 + 2 early; the losses lie between the best and 2 ranges behind the worst
        ([(0, 1), (1, 3), (2, 5)], [1.5, 3.0, -9.0, 99.0], [4.0, 7.0, 1.0, 13.0]),
        # Least squares: mean (1, 2), slope (1 x 1 + 1 x 0) / 2
        ([(0, 1), (1, 3), (2, 2)], [3.0], [2.0 + 0.5 * 2.0]),
        # What was good early was bad in the end: only the mean is known
        ([(0, 4), (1, 2), (2, 0)], [0.0, 2.0], [2.0, 2.0]),
        ([(1, 4), (1, 2), (1, 0)], [0.0, 2.0], [2.0, 2.0]),
        # Most never learnt anything, and end alike: the lowest report is still the best
        ([(0, 1), (1, 5), (1, 5), (1, 5)], [0.25, 2.0], [2.0, 9.0]),
        # One did not report there: two are too few, and the verdict counts
        ([(0, 1), (1, 3), (NAN, 5)], [2.5], [4.0]),
    ],
)
def test_final_losses_of_pruned_rows_by_hand(
    complete: list[tuple[float, float]], pruned: list[float], expected: list[float]
) -> None:
    found = effective_losses(with_curves(complete, pruned))
    np.testing.assert_allclose(found, [*(final for _, final in complete), *expected])


@pytest.mark.parametrize("early", [0.01, 0.1, 1.0 / 3.0, 7e11, 1e-170])
def test_equal_reports_predict_the_mean_end(early: float) -> None:
    """Their mean may differ from them by rounding."""
    rng = np.random.default_rng(3)
    for n in range(3, 30):
        ends = rng.random(n)
        found = effective_losses(with_curves([(early, end) for end in ends], [early + 0.3]))
        assert found[-1] == pytest.approx(ends.mean(), rel=1e-12)


def test_reports_whose_squares_are_no_floats() -> None:
    complete = [(1e-170 * x, 1.0 + 2.0 * x) for x in range(3)]
    found = effective_losses(with_curves(complete, [1.5e-170]))
    assert found[-1] == pytest.approx(4.0)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("ends", "expected"),
    [((0.0, 1.0, 2.0), 1.0), ((2.0, 1.0, 0.0), 2.0 + 2.0 * 2.0)],  # no slope, and the largest
)
def test_reports_that_differ_by_the_least_float(ends: tuple[float, ...], expected: float) -> None:
    """The distance of others, in their widths, is infinite."""
    complete = list(zip((5e-324, 0.0, 0.0), ends, strict=True))
    found = effective_losses(with_curves(complete, [i / 10 for i in range(1, 13)]))
    assert found[3:].tolist() == [expected] * 12


def test_a_diverged_report_does_not_turn_the_line() -> None:
    complete = [(x / 10, x / 10) for x in range(8)] + [(1e30, 0.2)]
    found = effective_losses(with_curves(complete, [0.25, 0.55]))[-2:]
    assert found[0] < found[1]


def test_reports_at_other_steps_are_interpolated() -> None:
    """Final losses are 1 + 2 x, and at step 3 the curves, of steps in any order, pass x."""
    curves: list[dict[float, float]] = [
        {4.0: x - 0.5, 2.0: x + 0.5} if odd else {3.0: x} for x, odd in ((0, 1), (1, 0), (2, 1))
    ]
    rows = History.of(
        np.zeros((4, 1)),
        [1.0, 3.0, 5.0, 1.25],
        status=[C, C, C, P],
        budget=[NAN, NAN, NAN, 3.0],
        curves=[*curves, {}],
    )
    assert effective_losses(rows)[-1] == pytest.approx(3.5)  # the verdict alone would be 4


def test_steps_are_predicted_each_by_itself_and_rows_without_a_loss_are_spread() -> None:
    rows = with_curves([(0, 1), (1, 3), (2, 5)], [1.5, NAN])
    assert effective_losses(rows)[-2:] == pytest.approx([4.0, np.quantile([1, 3, 5], 0.875)])
    moved = History.of(
        rows.vectors,
        rows.losses,
        status=rows.status,
        budget=[NAN, NAN, NAN, 0.5, 3.0],
        curves=list(rows.curves),
    )
    # Nobody has reported before step 1
    assert effective_losses(moved)[-2] == pytest.approx(np.quantile([1, 3, 5], 0.875))


def test_curves_follow_their_rows() -> None:
    rows = with_curves([(0, 1), (1, 3), (2, 5), (3, 7)], [1.5])
    kept = rows.rows(np.array([False, True, True, True, True]))
    np.testing.assert_allclose(effective_losses(kept)[-1], 4.0)
    np.testing.assert_allclose(effective_losses(rows.first(3)), [1.0, 3.0, 5.0])
    with pytest.raises(ValueError, match=r"curves must have shape \(5,\)"):
        with_curves([(0, 1), (1, 3), (2, 5), (3, 7)], [1.5], number=range(5)).of(
            rows.vectors, rows.losses, curves=[{}]
        )
