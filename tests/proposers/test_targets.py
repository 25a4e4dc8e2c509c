"""Targets of the surrogates: transforms by hand and their invariants; pruned losses."""

from __future__ import annotations

import itertools
from typing import Any, get_args

import numpy as np
import pytest

from automl_plugins.proposers.targets import (
    FloatArray,
    Target,
    Targets,
    effective_losses,
    transform,
)
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status

C, P, F, R = Status.COMPLETE, Status.PRUNED, Status.FAILED, Status.RUNNING
NAN = float("nan")
KINDS: tuple[Target, ...] = get_args(Target)
every_kind = pytest.mark.parametrize("kind", KINDS)


def losses(n: int = 60, seed: int = 0) -> FloatArray:
    """Return losses with ties and two outliers."""
    y = np.round(np.random.default_rng(seed).normal(size=n), 1)
    y[:2] = [1e4, -1e3]
    return y


# Transforms


def test_log_regret_by_hand() -> None:
    # The median regret is 2 - (-1) = 3
    z = transform(np.array([-1.0, 2.0, 8.0]), "log_regret").values
    np.testing.assert_allclose(z, np.log([0.15, 1.15, 3.15]))
    # More than half of the rows are best: the largest regret, 4, is the unit
    z = transform(np.array([1.0, 5.0, 1.0, 1.0, 3.0]), "log_regret").values
    np.testing.assert_allclose(z, np.log([0.15, 1.15, 0.15, 0.15, 0.65]))
    np.testing.assert_allclose(transform(np.full(4, 0.1), "log_regret").values, np.log(0.15))


def test_log_regret_has_no_unit_and_ignores_how_bad_the_worst_is() -> None:
    y = losses()
    z = transform(y, "log_regret").values
    np.testing.assert_allclose(transform(8.0 * y + 3.0, "log_regret").values, z, rtol=1e-9)
    for magnitude in (1e-200, 1e200):
        np.testing.assert_allclose(transform(magnitude * y, "log_regret").values, z, rtol=1e-9)
    worse = np.where(y == y.max(), 1e9, y)
    others = y < y.max()
    np.testing.assert_array_equal(transform(worse, "log_regret").values[others], z[others])


def test_log_regret_tells_the_best_apart_and_not_the_worst() -> None:
    y = np.linspace(0.0, 1.0, 101)
    gaps = np.diff(transform(y, "log_regret").values)
    assert (np.diff(gaps) < 0).all()  # concave: equal steps count ever less
    assert gaps[0] > 10.0 * gaps[-1]


def test_normal_scores_by_hand() -> None:
    # Ranks 3, 1, 2 of 3: quantiles 5/6, 1/6, 1/2 of the standard normal
    z = transform(np.array([7.0, -1.0, 5.0]), "normal_scores").values
    np.testing.assert_allclose(z, [0.9674215661, -0.9674215661, 0.0], atol=1e-10)
    # Two share the ranks 1 and 2, and two 3 and 4: (1.5 - 0.5) / 4 = 1/4 and 3/4
    z = transform(np.array([0.0, 9.0, 9.0, 0.0]), "normal_scores").values
    np.testing.assert_allclose(z, 0.6744897502 * np.array([-1.0, 1.0, 1.0, -1.0]))


def test_standardize_of_equal_and_of_huge_losses() -> None:
    # The mean of three 0.1 is not 0.1
    np.testing.assert_array_equal(transform(np.full(3, 0.1), "standardize").values, np.zeros(3))
    z = transform(np.array([-1e308, 0.0, 1e307, 1.5e308]), "standardize").values
    assert np.isfinite(z).all()
    assert (np.diff(z) > 0).all()


@every_kind
def test_transforms_are_increasing_and_keep_ties(kind: Target) -> None:
    y = losses()
    targets = transform(y, kind)
    np.testing.assert_array_equal(targets.losses, y)
    order = np.argsort(y, kind="stable")
    rising = np.diff(targets.values[order])
    np.testing.assert_array_equal(rising > 0, np.diff(y[order]) > 0)
    assert (rising >= 0).all()


@pytest.mark.parametrize("kind", ["rank", "", None, 1])
def test_unknown_targets_are_refused(kind: Any) -> None:
    with pytest.raises(ValueError, match=rf"target must be .*'normal_scores'.* got {kind!r}\."):
        transform(losses(), kind)


# The way back


@every_kind
def test_to_loss_is_monotone_and_stays_in_the_observed_range(kind: Target) -> None:
    targets = transform(losses(), kind)
    values = targets.values
    grid = np.linspace(values.min() - 1.0, values.max() + 1.0, 500)
    back = np.array([targets.to_loss(value) for value in grid])
    assert (np.diff(back) >= 0).all()
    assert back[0] == targets.losses.min()
    assert back[-1] == targets.losses.max()


def test_to_loss_by_hand() -> None:
    targets = Targets(np.array([10.0, 0.0, 2.0]), np.array([1.0, -1.0, 0.0]))
    answers = [targets.to_loss(z) for z in (-2.0, -1.0, -0.5, 0.0, 0.25, 1.0, 9.0)]
    assert answers == [0.0, 0.0, 1.0, 2.0, 4.0, 10.0, 10.0]


# Pruned losses


def history(rows: list[tuple[Status, float, float]], **columns: Any) -> History:
    """Return a history of (status, loss, budget)."""
    status, loss, budget = (list(part) for part in zip(*rows, strict=True))
    vectors = np.zeros((len(rows), 1))
    return History.of(vectors, loss, status=status, budget=budget, **columns)


def random_history(seed: int, n_complete: int = 20, n_pruned: int = 15) -> History:
    """Return a history of complete, pruned and failed rows, mixed, with unequal budgets."""
    rng = np.random.default_rng(seed)
    status = rng.permutation([C] * n_complete + [P] * n_pruned + [F] * 3)
    loss = np.where(status == F, NAN, rng.normal(size=len(status)))
    budget = np.where(status == P, rng.integers(1, 5, size=len(status)), 9.0)
    return History.of(rng.random((len(status), 2)), loss, status=status, budget=budget)


def test_effective_losses_by_hand() -> None:
    rows = [(C, 0.0, 9.0), (P, 5.0, 2.0), (C, 4.0, 9.0), (F, NAN, NAN), (P, -9.0, 1.0)]
    rows += [(C, 2.0, 9.0), (R, 1.0, 3.0)]
    # The later step first: the quantiles 0.5 + 0.5 (1/4, 3/4) of 0, 2, 4
    np.testing.assert_allclose(
        effective_losses(history(rows)), [0.0, 2.5, 4.0, NAN, 3.5, 2.0, NAN], equal_nan=True
    )


def test_effective_losses_within_a_step() -> None:
    rows = [(C, 0.0, NAN), (C, 1.0, NAN)]
    rows += [(P, 7.0, 3.0), (P, 6.0, 3.0), (P, NAN, 3.0), (P, 0.0, NAN), (P, 99.0, 4.0)]
    values = effective_losses(history(rows))[2:]
    # By hand: step 4; step 3 by loss, then the one without a loss; then the one without a step
    np.testing.assert_array_equal(np.argsort(values), [4, 1, 0, 2, 3])
    np.testing.assert_allclose(np.sort(values), 0.5 + 0.5 * np.array([1, 3, 5, 7, 9]) / 10)


def test_ties_of_pruned_rows_go_to_the_earlier_number() -> None:
    rows = [(C, 0.0, 1.0), (C, 1.0, 1.0), (P, 5.0, 2.0), (P, 5.0, 2.0)]
    assert np.diff(effective_losses(history(rows))[2:])[0] > 0
    swapped = effective_losses(history(rows, number=[0, 1, 3, 2]))
    assert np.diff(swapped[2:])[0] < 0


@pytest.mark.parametrize("seed", range(10))
def test_pruned_rows_are_in_the_worse_half(seed: int) -> None:
    observed = random_history(seed)
    values = effective_losses(observed)
    complete = observed.losses[observed.status == C]
    pruned = values[observed.status == P]
    np.testing.assert_array_equal(values[observed.status == C], complete)
    assert (pruned >= np.median(complete)).all()
    assert (pruned <= complete.max()).all()
    assert np.isnan(values[observed.status == F]).all()
    # Spread evenly: their median is the third quartile
    assert np.median(pruned) == pytest.approx(np.quantile(complete, 0.75))


@pytest.mark.parametrize("seed", range(10))
def test_losses_of_unequal_budgets_are_never_compared(seed: int) -> None:
    observed = random_history(seed)
    values = effective_losses(observed)
    budgets = np.unique(observed.budget[observed.status == P])
    for lower, upper in itertools.pairwise(budgets):
        at = [values[(observed.status == P) & (observed.budget == b)] for b in (lower, upper)]
        assert at[0].min() > at[1].max()  # a later step is always better
    # Whatever the losses of one budget, all others keep their place.
    rng = np.random.default_rng(seed)
    for budget in budgets:
        rows = (observed.status == P) & (observed.budget == budget)
        changed = np.where(rows, rng.normal(size=len(observed)) * 1e6, observed.losses)
        other = History.of(
            observed.vectors, changed, status=observed.status, budget=observed.budget
        )
        np.testing.assert_array_equal(effective_losses(other)[~rows], values[~rows])
        np.testing.assert_array_equal(
            np.sort(effective_losses(other)[rows]), np.sort(values[rows])
        )


def test_effective_losses_at_the_edges() -> None:
    np.testing.assert_array_equal(
        effective_losses(history([(P, 1.0, 1.0), (F, NAN, NAN)])), [NAN, NAN]
    )  # nothing is complete: nothing to be compared with
    np.testing.assert_array_equal(
        effective_losses(history([(P, -5.0, 1.0), (C, 2.0, 9.0), (P, 9.0, 2.0)])), [2.0, 2.0, 2.0]
    )
    assert effective_losses(History.of(np.empty((0, 2)), [])).shape == (0,)
    # A failed row tells nothing even if it reported a loss, a running one nothing yet
    np.testing.assert_array_equal(
        effective_losses(history([(C, 1.0, 9.0), (F, 0.0, 9.0), (R, 0.0, 9.0)])), [1.0, NAN, NAN]
    )
