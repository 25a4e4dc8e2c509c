"""Losses of data sets on one scale, and the scale of a new data set from few of its losses.

Losses of data set d are ``y = shift_d + stretch_d z``. For a new one both are unknown. They have
the posterior of a Gaussian model: ``z`` is that of the factorisation, ``log stretch`` and then
``shift`` are distributed as among the known data sets, with a wide alternative in case that the
new losses are in another unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

FloatArray = npt.NDArray[np.float64]
ScalingName = Literal["regret", "standardised"]
Scaling = ScalingName | None

_QUANTILES = 15  # stretches of known data sets that are tried for a new one
_WIDE = 13  # other stretches, around the deviation of its losses
_FOREIGN = -10.0  # log prior odds of losses in another unit
_LEAST = 0.01  # deviation of the shift among data sets, in their median stretch
_VAGUE = 10.0  # deviation of the shift then, in stretches


def scales(y: FloatArray, scaling: Scaling) -> tuple[FloatArray, FloatArray]:
    """Shift (D,) and stretch (D,) of the losses (N, D) of each data set; NaN where there is none.

    A data set without losses has those of none (0 and 1), one whose losses are equal a stretch
    of 1.
    """
    d = y.shape[1]
    shift, stretch = np.zeros(d), np.ones(d)
    if scaling is None:
        return shift, stretch
    for column in range(d):
        known = y[~np.isnan(y[:, column]), column].astype(np.float64)
        if not len(known):
            continue
        if scaling == "regret":
            shift[column], spread = float(known.min()), float(np.ptp(known))
        else:
            shift[column], spread = float(known.mean()), _deviation(known)
        if spread > 1e-12 * max(float(np.abs(known).max()), 1e-300):
            stretch[column] = spread
    return shift, stretch


@dataclass(frozen=True)
class ScalePrior:
    """How shift and stretch are distributed among data sets.

    Attributes:
        log_stretch: Stretches that are tried, all equally likely (G,); empty if all losses have
            one scale, which a new data set then has, too.
        line: Intercept and slope of the shift in ``log stretch`` (2,).
        deviation: Standard deviation of the shift around that line.
    """

    log_stretch: FloatArray
    line: FloatArray
    deviation: float

    @classmethod
    def learn(cls, shift: FloatArray, stretch: FloatArray, scaling: Scaling) -> ScalePrior:
        """The distribution among known data sets (D,)."""
        if scaling is None:
            return cls(np.zeros(0), np.zeros(2), 0.0)
        logs = np.log(stretch)
        grid = np.unique(np.quantile(logs, np.linspace(0.01, 0.99, _QUANTILES)))
        design = np.column_stack([np.ones(len(logs)), logs])
        unit = float(np.exp(np.median(logs)))  # squares of losses may not be representable
        line = np.linalg.lstsq(design, shift / unit, rcond=None)[0]
        residual = shift / unit - design @ line
        # One data set has no deviation.
        return cls(grid, line * unit, max(float(residual.std()), _LEAST) * unit)

    def infer(self, y: FloatArray, mean: FloatArray, L: FloatArray) -> tuple[float, float]:
        """Posterior mean of the shift and geometric mean of the stretch of a new data set.

        Given the stretch b, ``y ~ N(shift + b mean, b^2 C)`` is linear in the shift, which is
        integrated out; b is summed out on a grid.

        Args:
            y: Its observed losses (n,).
            mean: Their prior means on the common scale (n,).
            L: Cholesky factor (n, n) of their prior covariance C there.
        """
        n = len(y)
        if not len(self.log_stretch) or not n:
            return 0.0, 1.0
        white = solve_triangular(
            L, np.column_stack([np.ones(n), mean, y]), lower=True, check_finite=False
        )
        one, m, w = white.T
        near = self.log_stretch
        size = _deviation(y)
        far = np.log(size or max(abs(float(y[0])), 1e-300)) + np.linspace(-1.5, 4.0, _WIDE)
        log_b = np.concatenate([near, far])
        b = np.exp(log_b)
        # In units of b: losses w, centre and deviation of the shift, and the shift itself.
        losses = w[:, None] / b - m[:, None]
        centre = np.append(self.line[0] + self.line[1] * near, np.full(_WIDE, y.mean())) / b
        deviation = np.append(self.deviation / b[: len(near)], np.full(_WIDE, _VAGUE))
        prior = np.repeat([-np.log(len(near)), _FOREIGN - np.log(_WIDE)], [len(near), _WIDE])
        precision = float(one @ one) + deviation**-2.0
        shift = (one @ losses + centre * deviation**-2.0) / precision
        with np.errstate(over="ignore"):  # a stretch that is wrong by 150 digits: impossible
            quadratic = ((losses - np.outer(one, shift)) ** 2).sum(axis=0)
            quadratic += ((shift - centre) / deviation) ** 2
        log = prior - n * log_b - 0.5 * (quadratic + np.log(precision * deviation**2))
        weights = np.exp(log - log.max())
        weights /= weights.sum()
        return float(weights @ (shift * b)), float(np.exp(weights @ log_b))


def _deviation(values: FloatArray) -> float:
    """Standard deviation of values (n,) whose squares may not be representable."""
    size = float(np.abs(values).max())
    return float((values / size).std()) * size if size > 0.0 else 0.0
