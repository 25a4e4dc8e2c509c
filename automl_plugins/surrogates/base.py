"""What every surrogate model has in common.

Notation of this package::

    X     features of configurations, shape (n, f), float64; NaN = inactive or missing
    y     losses to be predicted, shape (n,), smaller is better
    mean  predicted loss, shape (m,)
    std   predictive standard deviation, shape (m,), >= 0; all 0 for a plain bound
    z     standardised losses, shape (n,)
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from automl_plugins.spaces.vector_space import VectorSpace

FloatArray = npt.NDArray[np.float64]
S = TypeVar("S")
Seed = int | np.random.Generator | None


@runtime_checkable
class Surrogate(Protocol):
    """A model of the loss: scikit-learn manners, and an uncertainty beside each prediction.

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
class PendingAware(Surrogate, Protocol):
    """A surrogate that knows what evaluations under way will tell."""

    def beside(self, pending: FloatArray) -> Surrogate:
        """A copy for which configurations with features ``pending`` (p, f) are observed."""
        ...


@runtime_checkable
class Voting(Protocol):
    """A fitted surrogate in which earlier tasks vote."""

    shares_: Mapping[str, float]


@runtime_checkable
class Promising(Voting, Protocol):
    """One that knows what the earlier tasks promise, in [0, 1] where each had its losses."""

    def promised(self, X: FloatArray) -> FloatArray:
        """Promised losses (m,) at features ``X`` (m, f)."""
        ...


@runtime_checkable
class SurrogateTemplate(Protocol):
    """What makes the surrogates of different search spaces.

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
    """One that knows the best recorded configurations of earlier tasks."""

    def best_recorded(self, space: VectorSpace) -> FloatArray:
        """Their vectors (n, d) in ``space``, distinct."""
        ...


def check_surrogate(surrogate: Any, allowed: str = "") -> None:
    """Raise TypeError unless ``surrogate`` is an object with ``fit`` and ``predict``.

    Args:
        surrogate: What was given.
        allowed: What else could have been given.
    """
    for method in ("fit", "predict"):
        if isinstance(surrogate, type) or not callable(getattr(surrogate, method, None)):
            raise TypeError(
                f"surrogate must be {allowed}an object with fit(X, y) and predict(X), got"
                f" {surrogate!r} without a usable {method}."
            )


def reseed(surrogate: S, seed: Any) -> S:
    """A copy of ``surrogate`` with its random state set, if it has one."""
    fresh = copy.deepcopy(surrogate)
    if isinstance(fresh, Seeded):
        fresh.random_state = seed
    return fresh


def validate(X: Any, y: Any = None) -> tuple[FloatArray, FloatArray]:
    """Return ``X`` (n, f) and ``y`` (n,) as float64 arrays.

    NaN is legal in ``X`` only (an inactive hyperparameter).

    Raises:
        ValueError: For wrong shapes, an empty or infinite ``X``, or targets that are not finite.
    """
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[0] == 0 or X.shape[1] == 0:
        raise ValueError(f"X must have shape (n, f) with n, f >= 1, got {X.shape}.")
    if np.isinf(X).any():
        raise ValueError("X must not hold infinities (NaN marks an inactive hyperparameter).")
    if y is None:
        return X, np.empty(0)
    y = np.asarray(y, dtype=np.float64)
    if y.shape != (len(X),):
        raise ValueError(f"y must have shape ({len(X)},) to match X, got {y.shape}.")
    if not np.isfinite(y).all():
        row = int(np.flatnonzero(~np.isfinite(y))[0])
        raise ValueError(f"y must be finite, got {y[row]} in row {row}.")
    return X, y


def standardise(y: FloatArray) -> tuple[FloatArray, float, float]:
    """Return ``(z, centre, scale)`` with ``y = centre + scale * z``, mean 0 and variance 1.

    Constant targets give ``z = 0``, the constant itself as centre and scale 1. Any finite
    magnitude is fine: the moments are taken relative to the largest absolute value.
    """
    if y.min() == y.max():
        return np.zeros_like(y), float(y[0]), 1.0
    largest = float(np.abs(y).max())
    u = y / largest
    centre, scale = float(u.mean()), float(u.std())
    return (u - centre) / scale, centre * largest, scale * largest


def check_integer(name: str, value: Any, minimum: int) -> None:
    """Raise ValueError unless ``value`` is an integer of at least ``minimum``."""
    if not isinstance(value, Integral) or value < minimum:
        raise ValueError(f"{name} must be an integer >= {minimum}, got {value!r}.")
