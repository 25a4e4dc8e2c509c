"""Acquisition functions: pure functions of arrays, larger is better.

Expected improvement is in ``surrogates.improvement``.

Notation of this module (losses are minimised)::

    mean, std  predicted loss and its standard deviation, (m,), std >= 0
    utility    any score, larger is better; may be negative
    gain       a score that is >= 0; its logarithm may be -inf
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from automl_plugins.proposers.design import distances

FloatArray = npt.NDArray[np.float64]

_TIED = 1e-9  # relative difference of losses that are the same but for rounding
# Of every range: how far a pair on a plateau speaks for its surroundings, at least and at most.
_NEAR, _FAR = 0.02, 0.05
_GROWTH = 2.0


def lower_confidence_bound(mean: FloatArray, std: FloatArray, beta: float = 1.0) -> FloatArray:
    """Utility -(mean - beta std): the negated lower bound of the loss.

    With std = 0 the mean is itself the bound: GBQR's acquisition (thesis 5.3.2).
    """
    return -(np.asarray(mean) - beta * np.asarray(std))


def gbqr_median(bound: FloatArray, median: float, cost: FloatArray) -> FloatArray:
    """Q = (v - median(v)) / c with v the upper bound of the score and c > 0 its cost.

    Source: GBQR thesis eq. 5.2. Bounds below the median give 0: a negative numerator would
    prefer the slower of two bad candidates.

    Args:
        bound: Upper bound of the score (m,), larger is better.
        median: Median bound over a first random batch, kept during local search.
        cost: Predicted cost (m,), in seconds.

    Raises:
        ValueError: If a cost is not positive and finite.
    """
    cost = np.asarray(cost, dtype=np.float64)
    if not (np.isfinite(cost) & (cost > 0)).all():
        raise ValueError("cost must be positive and finite everywhere.")
    return np.maximum(np.asarray(bound) - median, 0.0) / cost


def positive_part(utility: FloatArray, reference: float) -> FloatArray:
    """log(utility - reference), -inf at or below the reference.

    Cost and probability of success may multiply only what is positive, and a bound is signed:
    its distance to a reference that stays fixed during one proposal is not.
    """
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(np.asarray(utility) - reference, 0.0))


def weighted(
    log_gain: FloatArray,
    *,
    log_success: FloatArray | float = 0.0,
    log_seconds: FloatArray | float = 0.0,
    exponent: float = 1.0,
    log_distance: FloatArray | float = 0.0,
) -> FloatArray:
    """Log of gain * P(success) * distance / seconds^exponent.

    Source: thesis 2.2.5 (EI per second), with true seconds in place of their logarithm.
    Lowering P or raising the seconds never raises the result.

    Args:
        log_gain: log of a gain (m,).
        log_success: log P(success), <= 0.
        log_seconds: log of the predicted seconds.
        exponent: Cost exponent kappa in [0, 1]; 0 ignores the cost.
        log_distance: log of a factor in [0, 1] that shrinks towards evaluations beside which
            nothing new is to be expected.
    """
    return np.asarray(log_gain + log_success + log_distance - exponent * np.asarray(log_seconds))


def pending_distance(
    features: FloatArray, pending: FloatArray, radius: float | FloatArray = 0.02
) -> FloatArray:
    """Factor (m,) in [0, 1]: 0 on a running evaluation, 1 outside ``radius`` of all of them.

    Local penalisation in the spirit of Gonzalez et al. 2016, with the parabola
    min(1, (u / radius)^2) of the distance u (``design.distances``) to the one that is nearest in
    radii.

    Args:
        features: Candidates (m, f), NaN = inactive.
        pending: Running evaluations (p, f).
        radius: Distance at which the influence ends, of all or of each (p,).
    """
    if not len(pending):
        return np.ones(len(features))
    return _parabola(distances(features, pending), radius)


def plateau_radii(features: FloatArray, losses: FloatArray) -> FloatArray:
    """How far around each evaluation its loss is taken not to change, (n,); 0 where it may.

    An evaluation lies on a plateau if another one of the same loss is nearer than any of another
    loss, and nearer than 5 % of each range. Twice that far the plateau is taken to go on, at
    least 2 and at most 5 % of each range, and not beyond the nearest of another loss. On a slope
    no losses are the same, and on most grids none are that near.

    Args:
        features: Evaluations (n, f), NaN = inactive.
        losses: Their losses (n,), finite.
    """
    radii = np.zeros(len(losses))
    least = np.sort(losses)
    with np.errstate(over="ignore"):  # losses as large as floats get are infinitely far apart
        if not (np.diff(least) <= _TIED * np.abs(least[1:])).any():
            return radii
        tied = np.isclose(losses[:, None], losses[None, :], rtol=_TIED, atol=0.0)
    gaps = largest_differences(features, features)
    other = np.where(tied, np.inf, gaps).min(axis=1)
    near = tied & (gaps < np.minimum(other, _FAR)[:, None])
    np.fill_diagonal(near, False)
    reach = _GROWTH * np.where(near, gaps, 0.0).max(axis=1)
    flat = near.any(axis=1)
    radii[flat] = np.minimum(np.clip(reach, _NEAR, _FAR), other)[flat]
    return radii


def plateau_distance(features: FloatArray, flat: FloatArray, radii: FloatArray) -> FloatArray:
    """Factor (m,) in [0, 1]: 0 on an evaluation of a plateau, 1 outside the radii of all.

    The parabola of ``pending_distance``, of the largest difference in place of the mean one.

    Args:
        features: Candidates (m, f), NaN = inactive.
        flat: Evaluations (p, f).
        radii: Of each (p,), > 0, see ``plateau_radii``.
    """
    if not len(flat):
        return np.ones(len(features))
    return _parabola(largest_differences(features, flat), radii)


def _parabola(gaps: FloatArray, radius: float | FloatArray) -> FloatArray:
    """min(1, u^2) (m,) of the least of the ``gaps`` (m, p) in radii."""
    return np.asarray(np.minimum(1.0, (gaps / radius).min(axis=1) ** 2))


def largest_differences(a: FloatArray, b: FloatArray) -> FloatArray:
    """Largest absolute difference (m, n) of features ``a`` (m, f) and ``b`` (n, f).

    Infinite where a feature is active (not NaN) on one side only.
    """
    largest = np.zeros((len(a), len(b)))
    for x, y in zip(a.T, b.T, strict=True):
        one_sided = np.isnan(x)[:, None] != np.isnan(y)[None, :]
        difference = np.where(one_sided, np.inf, np.abs(x[:, None] - y[None, :]))
        largest = np.fmax(largest, difference)  # NaN: inactive on both sides
    return largest
