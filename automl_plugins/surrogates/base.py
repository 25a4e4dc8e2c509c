"""Protocols and helpers of all surrogate models.

Notation of this package, in which losses are minimised::

    X     features of configurations, shape (n, f), float64; NaN = inactive or missing
    y     losses to be predicted, shape (n,)
    mean  predicted loss, shape (m,)
    std   predictive standard deviation, shape (m,), >= 0; all 0 for a plain bound
    z     standardised losses, shape (n,)
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtr

from automl_plugins.arrays import FloatArray, IndexArray, check_shape, refuse_rows
from automl_plugins.spaces.vector_space import VectorSpace

S = TypeVar("S")
Seed = int | np.random.Generator | None

_FAR = 1000.0  # ranges: the farthest from 0 that a feature counts; correlations are 0 long before
_LOG_SQRT_2_PI = 0.5 * np.log(2.0 * np.pi)


@runtime_checkable
class Surrogate(Protocol):
    """A model of the loss: scikit-learn manners, and an uncertainty beside each prediction.

    The surrogates of this package raise ValueError for illegal arguments, wrong shapes and numbers
    that are not finite, and NotFittedError if ``fit`` was not called.

    Example::

        class Nearest:  # a Surrogate
            def fit(self, X, y):
                self.tree = KNeighborsRegressor(1).fit(np.nan_to_num(X), y)
                return self

            def predict(self, X):
                mean = self.tree.predict(np.nan_to_num(X))
                return mean, np.ones(len(X))


        SurrogateSampler(Nearest())
    """

    def fit(self, X: FloatArray, y: FloatArray) -> Any:
        """Learn from ``X`` (n, f) and ``y`` (n,); one row and constant targets are legal."""
        ...

    def predict(self, X: FloatArray) -> Any:
        """Return ``(mean, std)``, each (m,), or one array (m,) that is itself a bound."""
        ...


@runtime_checkable
class Seeded(Protocol):
    """A surrogate whose fit draws: ``random_state`` is set before each fit."""

    random_state: Any


@runtime_checkable
class Flagging(Protocol):
    """A surrogate that flags missing values: ``implied`` is set before each fit.

    It lists the columns, ascending, in which numbers of other columns alone decide whether a value
    is missing, see ``VectorSpace.implied``: a flag would repeat these numbers and add distance.
    """

    implied: Sequence[int]


@runtime_checkable
class PendingAware(Surrogate, Protocol):
    """A surrogate that can take account of running evaluations."""

    def beside(self, pending: FloatArray) -> Surrogate:
        """A copy as if configurations with features ``pending`` (p, f) had been observed."""
        ...


@runtime_checkable
class Conditional(Surrogate, Protocol):
    """A fitted surrogate that takes in further rows in a fraction of the time of a fit."""

    def conditioned(self, X: FloatArray, y: FloatArray) -> Surrogate:
        """A copy with ``X`` (n, f) and ``y`` (n,) as all its rows, in place of those of ``fit``.

        The hyperparameters stay those of ``fit``.
        """
        ...


@runtime_checkable
class OutOfSample(Surrogate, Protocol):
    """A fitted surrogate with out-of-sample predictions for its own rows."""

    def held_out(self) -> FloatArray:
        """Prediction (n,) for each row of ``fit``, made without this row; NaN where there is none.

        Shape (s, n) from a surrogate of s models that are judged one by one.
        """
        ...


@runtime_checkable
class NoiseAware(Surrogate, Protocol):
    """A fitted surrogate that has learnt how noisy the losses are."""

    noise_: float  # variance of the noise / variance of the losses without noise


@runtime_checkable
class Local(Surrogate, Protocol):
    """A fitted surrogate that is right in one region of the space only."""

    low_: FloatArray  # ends of the region (f,), around the best row
    high_: FloatArray


@runtime_checkable
class Voting(Protocol):
    """A fitted surrogate in which earlier tasks vote."""

    shares_: Mapping[str, float]


@runtime_checkable
class Promising(Voting, Protocol):
    """A surrogate that knows the losses that earlier tasks promise, scaled to [0, 1]."""

    def promise(self, X: FloatArray) -> FloatArray:
        """Promised losses (m,) at features ``X`` (m, f)."""
        ...


@runtime_checkable
class SurrogateTemplate(Protocol):
    """Makes the surrogates of different search spaces.

    Example::

        class Linear:  # a SurrogateTemplate
            def for_space(self, space):
                return GaussianProcess(n_restarts=space.d)
    """

    def for_space(self, space: VectorSpace) -> Surrogate:
        """An unfitted surrogate for features of ``space``."""
        ...


@runtime_checkable
class RecordedTemplate(SurrogateTemplate, Protocol):
    """A template that knows the best recorded configurations of earlier tasks."""

    def best_recorded(self, space: VectorSpace) -> FloatArray:
        """Distinct vectors (n, d) of these configurations in ``space``."""
        ...


def check_surrogate(surrogate: Any, allowed: str = "") -> None:
    """Raise TypeError unless ``surrogate`` is an object with ``fit`` and ``predict``.

    ``allowed`` says in the message what else could be given, such as ``"a name or "``.
    """
    for method in ("fit", "predict"):
        if isinstance(surrogate, type) or not callable(getattr(surrogate, method, None)):
            raise TypeError(
                f"surrogate must be {allowed}an object with fit(X, y) and predict(X), got"
                f" {surrogate!r} without a usable {method}."
            )


def prepare(surrogate: S, seed: Any, implied: Sequence[int] = ()) -> S:
    """A copy of ``surrogate`` with ``random_state`` and ``implied`` set, if it has them.

    With ``seed=None`` it keeps its own random state.
    """
    # The original stays unfitted: several searches and threads may share it.
    fresh = copy.deepcopy(surrogate)
    if isinstance(fresh, Seeded) and seed is not None:
        fresh.random_state = seed
    # If nothing is implied, a surrogate keeps the columns that its user gave.
    if implied and isinstance(fresh, Flagging):
        fresh.implied = implied
    return fresh


def as_features(X: npt.ArrayLike, n_columns: int | None = None, *, least: int = 1) -> FloatArray:
    """``X`` as an array (n, f) of float64, in which NaN is legal.

    Raises:
        ValueError: For a wrong shape, fewer rows than ``least``, infinities, or another number of
            columns than ``n_columns``.
    """
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[0] < least or X.shape[1] == 0:
        raise ValueError(f"X must have shape (n, f) with n >= {least} and f >= 1, got {X.shape}.")
    if np.isinf(X).any():
        raise ValueError("X must not hold infinities (NaN marks an inactive hyperparameter).")
    if n_columns is not None and X.shape[1] != n_columns:
        raise ValueError(f"X must have {n_columns} columns, got {X.shape[1]}.")
    return X


def as_training(
    X: npt.ArrayLike, y: npt.ArrayLike, *, least: int = 1
) -> tuple[FloatArray, FloatArray]:
    """``X`` (n, f) and ``y`` (n,) as arrays of float64, n >= ``least``.

    Raises:
        ValueError: As ``as_features``, and for targets of another shape or that are not finite.
    """
    X, y = as_features(X, least=least), np.asarray(y, dtype=np.float64)
    check_shape("y", y, len(X))
    refuse_rows("y", y, ~np.isfinite(y), "must be finite")
    return X, y


def complete_inputs(X: FloatArray, flagged: IndexArray) -> FloatArray:
    """Features (n, f) with 0.5 in place of NaN, and a flag for each of the ``flagged`` columns.

    Features of old ranges, farther than ``_FAR`` from 0, are clipped: where distances are computed
    by matrix products, rounding would erase all smaller ones.

    Returns:
        Inputs (n, f + len(flagged)); a flag is 1 where the value is present.
    """
    if (np.abs(X) > _FAR).any():  # False for NaN
        X = np.clip(X, -_FAR, _FAR)
    missing = np.isnan(X)
    if missing.any():
        # The middle of the range: no value is farther from it than half of the range.
        return np.hstack([np.where(missing, 0.5, X), ~missing[:, flagged]])
    # The flags of the model stay, whether these rows need them or not.
    return np.hstack([X, np.ones((len(X), len(flagged)))]) if len(flagged) else X


def informative_rows(y: FloatArray, limit: int) -> IndexArray:
    """Choose at most ``limit`` of the rows with losses ``y`` (n,).

    The better half of the limit are the rows with the lowest losses, because the optimum is sought
    near them; the others are evenly spaced in the ranking of the rest, the worst row included, so
    that the model still knows where not to look. Equal losses rank in the order of the rows.

    Returns:
        Row numbers, ascending.
    """
    if len(y) <= limit:
        return np.arange(len(y))
    # The order of ties by numpy's default sort depends on the processor.
    order = np.argsort(y, kind="stable")
    n_best = limit // 2
    # From the worst row. The places are at least 1 apart, so no row is chosen twice.
    spread = np.linspace(len(y) - 1, n_best, limit - n_best).round().astype(np.intp)
    return np.sort(np.concatenate([order[:n_best], order[spread]]))


def standardise(y: FloatArray) -> tuple[FloatArray, float, float]:
    """Return ``(z, centre, scale)`` with ``y = centre + scale * z``, mean 0 and variance 1.

    Constant targets give ``z = 0``, the constant itself as centre and scale 1. Any finite
    magnitude is fine: the moments are taken relative to the largest absolute value.
    """
    # By the ends: rounding may give equal losses, such as three times 0.1, a deviation above 0.
    if y.min() == y.max():
        return np.zeros_like(y), float(y[0]), 1.0
    largest = float(np.abs(y).max())
    u = y / largest
    centre, scale = float(u.mean()), float(u.std())
    return (u - centre) / scale, centre * largest, scale * largest


def expected_improvement(
    mean: FloatArray, std: FloatArray, best: float | FloatArray, xi: float = 0.0
) -> FloatArray:
    """EI = std * (z Phi(z) + phi(z)), z = (best - mean - xi) / std, below the loss ``best``.

    Source: GBQR thesis eq. 2.10 (Jones et al. 1998). Where std = 0, EI is its limit,
    max(best - mean - xi, 0) (TST eq. 6 has 0). Underflows to 0 for z < -38; compare candidates
    with ``log_expected_improvement``.

    Returns:
        Expected improvement (m,), >= 0.
    """
    gain = best - np.asarray(mean, dtype=np.float64) - xi
    std = np.asarray(std, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z = gain / std
        # gain, not std z: a z that overflows leaves the gain.
        smooth = gain * ndtr(z) + std * np.exp(-0.5 * z * z - _LOG_SQRT_2_PI)
    return np.where(std > 0, np.maximum(smooth, 0.0), np.maximum(gain, 0.0))


def log_expected_improvement(
    mean: FloatArray, std: FloatArray, best: float, xi: float = 0.0
) -> FloatArray:
    """Log EI (m,), accurate where EI itself underflows.

    log EI = log std + log h(z) with h(z) = phi(z) + z Phi(z). For z < -1 the two terms nearly
    cancel, so h = phi(z) (1 - |z| Phi(z) / phi(z)) is used, and for z < -50 its expansion
    phi(z) / z^2 (1 - 3 / z^2 + 15 / z^4), whose relative error is below 105 / z^6 < 7e-9. Where
    std = 0, or z overflows: log max(best - mean - xi, 0), which may be -inf.
    """
    gain = best - np.asarray(mean, dtype=np.float64) - xi
    std = np.asarray(std, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z = gain / std
        log_phi = -0.5 * z * z - _LOG_SQRT_2_PI
        log_h = np.log(z * ndtr(z) + np.exp(log_phi))
        # What has underflowed above, or in the first tail, is replaced here.
        for low, log_tail in ((-1.0, _log_tail), (-50.0, _log_far_tail)):
            below = z <= low
            if not below.any():  # then none is below -50 either
                break
            log_h[below] = log_tail(z[below], log_phi[below])
        smooth = (std > 0) & (z < np.inf)
        if smooth.all():
            return np.asarray(np.log(std) + log_h)
        return np.where(smooth, np.log(std) + log_h, np.log(np.maximum(gain, 0.0)))


def _log_tail(z: FloatArray, log_phi: FloatArray) -> FloatArray:
    """Log h(z) for -50 < z <= -1, see ``log_expected_improvement``; below it is not valid."""
    mills = np.exp(log_ndtr(z) - log_phi)  # Phi(z) / phi(z)
    return np.asarray(log_phi + np.log1p(-np.abs(z) * mills))


def _log_far_tail(z: FloatArray, log_phi: FloatArray) -> FloatArray:
    """Log h(z) for z <= -50."""
    square = z**-2.0
    expansion = np.log1p(square * (15.0 * square - 3.0))
    return np.asarray(log_phi - 2.0 * np.log(np.abs(z)) + expansion)
