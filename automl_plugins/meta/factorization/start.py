"""Where training begins: pipeline means, and the principal components of what is left.

What is missing is taken as the mean of its pipeline, as in the paper. The components come from the
smaller of the two Gram matrices, so 38 000 x 400 entries take seconds.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .kernels import FloatArray, Kernel, Parameters

_LEAST = 1e-4  # share of the mean variance of pipelines that noise has at least
_SE_AMPLITUDE = 4.0  # variance of the SE processes, in mean variances of the pipelines


def pipeline_means(z: FloatArray) -> FloatArray:
    """Mean scaled loss (N,) of each pipeline (N, D); that of all where it has none.

    Means of few data sets are drawn to the mean of all, by one observation's worth.
    """
    seen = ~np.isnan(z)
    counts = seen.sum(axis=1)
    sums = np.where(seen, z, 0.0).sum(axis=1, dtype=np.float64)
    total = float(sums.sum()) / max(int(counts.sum()), 1)
    complete = counts == z.shape[1]
    shrunk = (sums + total) / (counts + 1.0)
    return np.asarray(np.where(complete & (counts > 0), sums / np.maximum(counts, 1), shrunk))


def principal_components(
    kernel: Kernel, z: FloatArray, q: int, own_share: float, rounds: int
) -> Parameters:
    """Parameters with which C is about the covariance of the pipelines.

    Args:
        kernel: The kernel.
        z: Centred scaled losses (N, D); NaN where there is none.
        q: Latent dimensions; those beyond the rank of the losses are 0.
        own_share: Share of every pipeline's variance that is its own, besides what the
            components leave.
        rounds: How often what is missing is predicted from the components, and these found again.
    """
    seen = ~np.isnan(z)
    counts = seen.sum(axis=1)
    filled = np.where(seen, z, z.dtype.type(0))
    level = max(float(np.einsum("ij,ij->", filled, filled, dtype=np.float64)) / seen.sum(), 1e-12)
    own = np.einsum("ij,ij->i", filled, filled, dtype=np.float64)
    own = (own + level * (counts < z.shape[1])) / (counts + (counts < z.shape[1]))
    places, noise = _components(filled, own, q, own_share, level)
    for _ in range(rounds if not seen.all() else 0):
        filled = np.where(seen, z, _predicted(places, noise, z, seen))
        places, noise = _components(filled, own, q, own_share, level)
    if kernel == "linear":
        return Parameters(places, np.log(noise), np.zeros(q), np.zeros(1))
    # With a wide amplitude the SE kernel is nearly the inner product and a constant.
    amplitude = _SE_AMPLITUDE * level
    return Parameters(
        places / np.sqrt(amplitude), np.log(noise), np.zeros(q), np.array([np.log(amplitude)])
    )


def _components(
    filled: FloatArray, variances: FloatArray, q: int, own_share: float, level: float
) -> tuple[FloatArray, FloatArray]:
    """Places (N, q) of the linear kernel, and the variance (N,) that they leave."""
    n, d = filled.shape
    side = filled @ filled.T if n < d else filled.T @ filled
    values, vectors = np.linalg.eigh(side.astype(np.float64) / d)
    order = np.argsort(-values)[:q]
    if n < d:
        places = vectors[:, order] * np.sqrt(np.maximum(values[order], 0.0))
    else:
        places = np.asarray(filled @ vectors[:, order].astype(filled.dtype), dtype=np.float64)
        places /= np.sqrt(d)
    largest = np.abs(places).argmax(axis=0)  # the sign of a component is arbitrary
    places *= np.where(places[largest, np.arange(places.shape[1])] < 0, -1.0, 1.0)
    places = np.pad(places, ((0, 0), (0, q - places.shape[1])))
    places *= np.sqrt(1.0 - own_share)
    left = np.maximum(variances - (places**2).sum(axis=1), own_share * variances)
    return places, np.maximum(left, _LEAST * level)


def _predicted(
    places: FloatArray, noise: FloatArray, z: FloatArray, seen: npt.NDArray[np.bool_]
) -> FloatArray:
    """Posterior means (N, D) of all entries, by a Q x Q solve for each data set."""
    scores = np.zeros((places.shape[1], z.shape[1]))
    for column in range(z.shape[1]):
        x = places[seen[:, column]]
        scaled = x / noise[seen[:, column], None]
        A = np.eye(x.shape[1]) + scaled.T @ x
        scores[:, column] = np.linalg.solve(A, scaled.T @ z[seen[:, column], column])
    return np.asarray(places.astype(z.dtype) @ scores.astype(z.dtype))
