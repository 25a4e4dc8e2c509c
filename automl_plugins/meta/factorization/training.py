"""Mini-batched descent on the likelihood of a factorisation, from its principal components.

A mini-batch is a block of pipelines and some data sets. While all pipelines fit into one block it
is the likelihood of the paper. Else an epoch divides the pipelines anew at random and each block
has its own exact likelihood: a composite likelihood, whose pairs are over the epochs all pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from automl_plugins.arrays import FloatArray, IntArray
from automl_plugins.meta.factorization.processes import (
    OF_PIPELINES,
    Kernel,
    Parameters,
    covariance,
    objective,
    variance,
)

Optimizer = Literal["adam", "sgd"]

_BETA_1, _BETA_2, _EPSILON = 0.9, 0.999, 1e-8  # of Kingma and Ba (2015)
# Of log variances. At -36 C of many pipelines at one place is singular, for an amplitude of 1.
_LOG_NOISE = (-18.0, 6.0)
_GIVEN, _LARGEST = 20, 250  # entries of a held-out data set


@dataclass(eq=False, repr=False, kw_only=True)
class Schedule:
    """How to train: arguments of ``MatrixFactorization``, which documents them.

    Adam's learning rate falls to a tenth by a cosine over the epochs; that of plain gradient
    descent is constant.
    """

    kernel: Kernel = "se"
    noise: str = "own"
    epochs: int = 20
    learning_rate: float = 1e-3
    block: int = 256
    batch: int = 32
    validation: float = 0.1
    patience: int = 5
    random_state: int = 0
    optimizer: Optimizer = "adam"


class _Adam:
    """First and second moments by parameter; those of a pipeline change when it is in a batch."""

    def __init__(self, p: Parameters) -> None:
        self.first = {f.name: np.zeros_like(getattr(p, f.name)) for f in fields(p)}
        self.second = {f.name: np.zeros_like(getattr(p, f.name)) for f in fields(p)}
        self.steps = {f.name: np.zeros(len(getattr(p, f.name))) for f in fields(p)}

    def direction(self, g: Parameters, rows: IntArray) -> Parameters:
        """Adam's direction of descent, given a gradient ``g`` of the pipelines at ``rows``."""
        found = {}
        for name, m in self.first.items():
            where = _where(name, rows)
            gradient, v, steps = getattr(g, name), self.second[name], self.steps[name]
            steps[where] += 1
            m[where] = _BETA_1 * m[where] + (1 - _BETA_1) * gradient
            v[where] = _BETA_2 * v[where] + (1 - _BETA_2) * gradient**2
            # One count for all coordinates of a pipeline (rows, 1).
            t = steps[where].reshape((-1,) + (1,) * (gradient.ndim - 1))
            found[name] = (m[where] / (1 - _BETA_1**t)) / (
                np.sqrt(v[where] / (1 - _BETA_2**t)) + _EPSILON
            )
        return Parameters(**found)


def _descend(p: Parameters, direction: Parameters, rows: IntArray, rate: float) -> None:
    """Move the parameters in place, those of pipelines at ``rows`` only (Fusi eqs. 7 and 8)."""
    for field in fields(p):
        name = field.name
        getattr(p, name)[_where(name, rows)] -= rate * getattr(direction, name)


def _where(name: str, rows: IntArray) -> IntArray | slice:
    return rows if name in OF_PIPELINES else slice(None)


Report = Callable[[int, int, float], None]
"""Is called after each epoch of a training, with its number from 1, how many there are at most,
and its validation score, NaN without one."""


def fit_parameters(
    begin: Callable[[FloatArray], Parameters], z: FloatArray, schedule: Schedule, report: Report
) -> tuple[Parameters, list[float]]:
    """Parameters trained for as long as it helps, then on all data sets for as long.

    ``begin`` gives the start for centred scaled losses of some data sets. Also returns the score
    before and after each epoch, smaller is better.
    """
    rng = np.random.default_rng(schedule.random_state)
    d, stop, scores = z.shape[1], schedule.epochs, []
    if schedule.epochs and (n_held_out := int(schedule.validation * d)):
        order = rng.permutation(d)
        # A single loss cannot be predicted from others of its data set.
        order = order[(~np.isnan(z[:, order])).sum(axis=0) > 1]
        out, rest = np.sort(order[:n_held_out]), np.setdiff1d(np.arange(d), order[:n_held_out])
        if len(out):
            judge = _Judge(schedule.kernel, z[:, out], rng)
            scores = _train(begin(z[:, rest]), z[:, rest], schedule, stop, rng, judge, report)
            stop = int(np.argmin(scores))
    p = begin(z)
    _train(p, z, schedule, stop, rng, None, report)
    return p, scores


def _train(
    p: Parameters,
    z: FloatArray,
    schedule: Schedule,
    stop: int,
    rng: np.random.Generator,
    judge: _Judge | None,
    report: Report,
) -> list[float]:
    """Train in place for ``stop`` epochs, or until the judge finds nothing better for long.

    Returns the scores before and after each epoch.
    """
    adam, plain = _Adam(p), schedule.optimizer == "sgd"
    scores = [judge(p)] if judge else []
    for epoch in range(1, stop + 1):
        # Of the whole schedule, not up to ``stop``: both trainings go through the same rates.
        turn = (epoch - 1) / schedule.epochs
        share = 1.0 if plain else 0.1 + 0.45 * (1.0 + np.cos(np.pi * turn))
        for rows, columns in _batches(z.shape, schedule, rng):
            part = np.asarray(z[np.ix_(rows, columns)], dtype=np.float64)
            if np.isnan(part).all():
                continue
            _, gradient = objective(schedule.kernel, p.of(rows), part)
            if schedule.noise == "shared":
                # Adam's step does not depend on the size of the gradient; that of descent does.
                total = gradient.log_noise.sum() if plain else gradient.log_noise.mean()
                gradient = replace(gradient, log_noise=np.full(len(rows), total))
            direction = gradient if plain else adam.direction(gradient, rows)
            _descend(p, direction, rows, share * schedule.learning_rate)
            if schedule.noise == "shared":
                # Only those of the block have moved.
                p.log_noise[:] = p.log_noise[rows].mean()
            np.clip(p.log_noise, *_LOG_NOISE, out=p.log_noise)
        if judge:
            scores.append(judge(p))
        report(epoch, stop, scores[-1] if judge else np.nan)
        if judge and epoch - int(np.argmin(scores)) >= schedule.patience:
            break
    return scores


def _batches(
    shape: tuple[int, ...], schedule: Schedule, rng: np.random.Generator
) -> Iterator[tuple[IntArray, IntArray]]:
    """Pipelines and data sets of the mini-batches of an epoch.

    With one block an epoch is a pass over the data sets; with several each has its own batch.
    """
    n, d = shape
    n_blocks = -(-n // schedule.block)  # rounded up
    columns = rng.permutation(d)
    if n_blocks == 1:
        for part in np.array_split(columns, -(-d // schedule.batch)):
            yield np.arange(n), np.sort(part)
        return
    for block in np.array_split(rng.permutation(n), n_blocks):
        yield np.sort(block), np.sort(rng.choice(d, min(schedule.batch, d), replace=False))


class _Judge:
    """Mean negative log predictive density of held-out entries of held-out data sets.

    The model is given some losses of each and predicts others, always the same ones. Each data
    set has two at least.
    """

    def __init__(self, kernel: Kernel, z: FloatArray, rng: np.random.Generator) -> None:
        self.kernel = kernel
        self.tasks = []
        for column in range(z.shape[1]):
            known = rng.permutation(np.flatnonzero(~np.isnan(z[:, column])))[:_LARGEST]
            n_given = min(_GIVEN, len(known) // 2)
            given, held_out = known[:n_given], known[n_given:]
            values = z[:, column].astype(np.float64)
            self.tasks.append((given, held_out, values[given], values[held_out]))

    def __call__(self, p: Parameters) -> float:
        logs = []
        for given, held_out, y_given, y_held_out in self.tasks:
            a, b = p.of(given), p.of(held_out)
            C = covariance(self.kernel, a) + np.diag(a.noise)
            k = covariance(self.kernel, a, b.places)
            solved = np.linalg.solve(C, np.column_stack([k, y_given]))
            # Fusi eq. 9.
            mean = k.T @ solved[:, -1]
            v = (
                np.maximum(variance(self.kernel, b) - (k * solved[:, :-1]).sum(axis=0), 0.0)
                + b.noise
            )
            logs.append(0.5 * np.mean(np.log(2 * np.pi * v) + (y_held_out - mean) ** 2 / v))
        return float(np.mean(logs))


_FILL_ROUNDS = 5  # rounds in which missing losses are predicted before training
_LEAST = 1e-4  # share of the mean variance of pipelines that noise has at least
_SE_AMPLITUDE = 4.0  # variance of the SE processes, in mean variances of the pipelines


def pipeline_means(z: FloatArray) -> FloatArray:
    """Mean scaled loss (N,) of each pipeline (N, D); the mean of all if it has no loss.

    Means of few data sets are drawn to the mean of all, by one observation's worth.
    """
    seen = ~np.isnan(z)
    counts = seen.sum(axis=1)
    sums = np.nansum(z, axis=1, dtype=np.float64)
    total = float(sums.sum()) / max(int(counts.sum()), 1)
    complete = counts == z.shape[1]
    shrunk = (sums + total) / (counts + 1.0)
    return np.asarray(np.where(complete & (counts > 0), sums / np.maximum(counts, 1), shrunk))


def principal_components(kernel: Kernel, z: FloatArray, q: int, own_share: float) -> Parameters:
    """Parameters with which C is about the covariance of the pipelines.

    A missing loss is first the mean of its pipeline, then, in five rounds, what the components
    predict. Components come from the smaller of the two Gram matrices, so 38 000 x 400 entries
    take seconds; those beyond the rank of the losses are 0. ``own_share`` is the share of every
    pipeline's variance that is its own besides what the components leave.
    """
    seen = ~np.isnan(z)
    counts = seen.sum(axis=1)
    filled = np.where(seen, z, z.dtype.type(0))
    level = max(float(np.einsum("ij,ij->", filled, filled, dtype=np.float64)) / seen.sum(), 1e-12)
    own = np.einsum("ij,ij->i", filled, filled, dtype=np.float64)
    # Drawn to that of all by one observation where some are missing, as the means are.
    own = (own + level * (counts < z.shape[1])) / (counts + (counts < z.shape[1]))
    places, noise = _components(filled, own, q, own_share, level)
    for _ in range(0 if seen.all() else _FILL_ROUNDS):
        filled = np.where(seen, z, _predict_missing(places, noise, z, seen))
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
    # What the components explain in full would have no noise, and 0 has no logarithm.
    return places, np.maximum(left, _LEAST * level)


def _predict_missing(
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
