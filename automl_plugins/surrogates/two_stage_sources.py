"""The first stage of TST: one Gaussian process for each earlier task, fitted once and kept.

TST is Wistuba, Schilling and Schmidt-Thieme (ECML-PKDD 2016), section 4.2. All tasks share the
kernel's hyperparameters; tasks with the same configurations also share its factorisation, so
their processes are the columns of one linear system. "RW" is Rasmussen and Williams, see
``gaussian_process``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from automl_plugins._arguments import check_choice, check_integer
from automl_plugins.arrays import BoolArray, FloatArray, IndexArray, KeyArray, evenly_spaced
from automl_plugins.records.scores import regret
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.surrogates.base import complete_inputs, informative_rows
from automl_plugins.surrogates.gaussian_process import KERNELS, Kernel, correlation, fit_shared

_LEARNING_GROUPS = 16  # groups of tasks that the hyperparameters are learnt from
_CHUNK = 100  # rows predicted at a time; larger correlation matrices leave the processor's cache
_LEARNING_ROWS = 300  # configurations of a single group; the cost grows with their cube


class EarlierTasks(Protocol):
    """The interface of a memory aligned to a search space, as ``MetaDataset`` has it."""

    @property
    def tasks(self) -> Sequence[Any]:
        """The tasks (T), each with a ``name``."""

    @property
    def rows(self) -> Sequence[slice]:
        """The runs of each task (T)."""

    @property
    def vectors(self) -> FloatArray:
        """Configurations of all runs (N, d)."""

    @property
    def vector_space(self) -> VectorSpace:
        """The search space."""

    @property
    def complete_losses(self) -> FloatArray:
        """Losses of complete runs (N,), NaN for all others."""

    def scores(self, scale: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Losses of all runs (N,), scaled task by task."""

    def meta_feature_names(self) -> tuple[str, ...]:
        """Names (m)."""

    def meta_features(self, names: Sequence[str]) -> FloatArray:
        """Meta-features by task (T, m)."""


@dataclass(frozen=True)
class Group:
    """Earlier tasks that ran the same configurations.

    Attributes:
        tasks: Positions (g,) of the tasks among all sources.
        inputs: The configurations (n, d), complete.
        alpha: K^-1 (y - mean) of each task (n, g), on the scale of its losses.
        level: Mean loss of each task (g,).
    """

    tasks: IndexArray
    inputs: FloatArray
    alpha: FloatArray
    level: FloatArray


@dataclass(frozen=True)
class Sources:
    """Gaussian processes of earlier tasks; losses of each are scaled to [0, 1], 0 the best.

    Attributes:
        names: Names of the tasks (S).
        n_features: Number of feature columns f of the search space.
        kernel: Kernel of all processes.
        theta: Logarithms of its constant, d length scales and noise variance (d + 2,).
        flagged: Feature columns that get an activity flag.
        groups: The processes.
        meta_feature_names: Names (m).
        meta_features: By task (S, m), NaN where unknown.

    Example::

        sources = Sources.fit(memory)  # a MetaDataset
        mean = sources.predict(memory.vector_space.features(memory.vectors[:5]))  # (tasks, 5)
    """

    names: tuple[str, ...]
    n_features: int
    kernel: Kernel
    theta: FloatArray
    flagged: IndexArray
    groups: tuple[Group, ...]
    meta_feature_names: tuple[str, ...]
    meta_features: FloatArray

    @classmethod
    def fit(
        cls, memory: EarlierTasks, *, kernel: Kernel = "matern52", max_rows: int = 300
    ) -> Self:
        """Fit the processes of all tasks of a memory, aligned to the search space.

        Only complete runs are learnt from: one bad loss of a failure among good neighbours would
        make the processes take all differences for noise. If tasks ran the same configurations, a
        failed run of one counts as the mean of the others there. At most ``max_rows`` runs of a
        task are learnt from, see ``informative_rows``.

        Raises:
            ValueError: For illegal arguments.
        """
        check_choice("kernel", kernel, KERNELS)
        check_integer("max_rows", max_rows, 2)
        features = memory.vector_space.features(memory.vectors)
        complete = ~np.isnan(memory.complete_losses)
        losses = np.where(complete, memory.scores(regret), np.nan)
        # Equal losses rank nothing.
        distinct = [len(set(losses[rows][complete[rows]])) for rows in memory.rows]
        useful = [i for i, n in enumerate(distinct) if n > 1]
        # The same flags for all tasks, so that they can share a kernel.
        missing = [np.isnan(features[memory.rows[i]]).any(axis=0) for i in useful]
        flagged = np.flatnonzero(np.any(missing, axis=0))
        parts = []
        keys = memory.vector_space.keys(memory.vectors)
        for place in _same_configurations(keys, [memory.rows[i] for i in useful]):
            blocks = [memory.rows[useful[i]] for i in place]
            X, Y = _rows_in_common(features, losses, keys, blocks, max_rows)
            parts.append((place, complete_inputs(X, flagged), Y))
        theta = _learn_kernel([(X, Y) for _, X, Y in parts], kernel)
        names = memory.meta_feature_names()
        return cls(
            names=tuple(memory.tasks[i].name for i in useful),
            n_features=features.shape[1],
            kernel=kernel,
            theta=theta,
            flagged=flagged,
            groups=tuple(_condition(place, X, Y, theta, kernel) for place, X, Y in parts),
            meta_feature_names=names,
            meta_features=memory.meta_features(names)[useful],
        )

    def __len__(self) -> int:
        return len(self.names)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # nothing in it ever changes

    @property
    def scales(self) -> FloatArray:
        """Length scales of the inputs (d,)."""
        return np.asarray(np.exp(self.theta[1:-1]))

    @property
    def noise(self) -> float:
        """Noise variance in units of the signal's."""
        return float(np.exp(self.theta[-1] - self.theta[0]))

    def inputs(self, X: FloatArray) -> FloatArray:
        """Features (m, f) without NaN and with activity flags (m, d)."""
        return complete_inputs(X, self.flagged)

    def predict(self, X: FloatArray, wanted: BoolArray | None = None) -> FloatArray:
        """Predicted losses (S, m) of configurations with features ``X`` (m, f).

        Args:
            X: Features; NaN is legal.
            wanted: Mask (S,) of the tasks to ask; the others' rows are 0. None asks all.
        """
        inputs = self.inputs(X)
        out = np.zeros((len(self), len(X)))
        for group in self.groups:
            if wanted is not None and not wanted[group.tasks].any():
                continue
            # Once for the whole group: the correlations below take nearly all of the time.
            signal = np.exp(self.theta[0]) * group.alpha
            for start in range(0, len(X), _CHUNK):
                part = slice(start, start + _CHUNK)
                K = correlation(inputs[part], group.inputs, self.scales, self.kernel)
                out[group.tasks, part] = (K @ signal + group.level).T  # RW eq. 2.25
        if wanted is not None:
            out[~wanted] = 0.0
        return out


def _same_configurations(keys: KeyArray, blocks: Sequence[slice]) -> list[IndexArray]:
    """Positions of blocks of rows, those with equal configurations together."""
    # Sorted, because each task may have run them in its own order.
    found: dict[bytes, list[int]] = {}
    for place, rows in enumerate(blocks):
        found.setdefault(np.sort(keys[rows]).tobytes(), []).append(place)
    return [np.array(places, dtype=np.intp) for places in found.values()]


def _rows_in_common(
    features: FloatArray,
    losses: FloatArray,
    keys: KeyArray,
    blocks: Sequence[slice],
    max_rows: int,
) -> tuple[FloatArray, FloatArray]:
    """Features (n, f) and losses (n, g) of the rows of tasks with equal configurations."""
    # In the order of the features of the first task; the order of repeated rows does not matter.
    # No feature is -1, and NaN would not be equal to NaN.
    first = np.lexsort(np.nan_to_num(features[blocks[0]], nan=-1.0).T)
    # By their keys, because equal configurations may differ in the last digits of their features.
    ranks = np.argsort(np.argsort(keys[blocks[0]], kind="stable"), kind="stable")[first]
    orders = [np.argsort(keys[rows], kind="stable")[ranks] for rows in blocks]
    pairs = zip(blocks, orders, strict=True)
    Y = np.stack([losses[rows][order] for rows, order in pairs], axis=1)
    known = ~np.isnan(Y).all(axis=1)
    orders, Y = [order[known] for order in orders], Y[known]
    # Each row is known to one task at least, so ``nanmean`` has something to average.
    Y = np.where(np.isnan(Y), np.nanmean(Y, axis=1, keepdims=True), Y)
    # By the mean over the tasks: they share the rows, and with them the factorisation.
    chosen = informative_rows(Y.mean(axis=1), max_rows)
    return features[blocks[0]][orders[0][chosen]], Y[chosen]


def _learn_kernel(parts: list[tuple[FloatArray, FloatArray]], kernel: Kernel) -> FloatArray:
    """``theta`` (d + 2,), learnt from evenly spaced rows of the largest groups; empty without."""
    if not parts:
        return np.zeros(0)
    # Largest by the number of losses, rows times tasks: they say most about the kernel.
    largest = sorted(parts, key=lambda part: -part[1].size)[:_LEARNING_GROUPS]
    limit = round(_LEARNING_ROWS / len(largest) ** (1.0 / 3.0))  # the same cost for any number
    thinned = []
    for X, Y in largest:
        rows = evenly_spaced(len(X), limit)
        centred = Y[rows] - Y[rows].mean(axis=0)
        spread = centred.std(axis=0)
        # The chosen rows may have equal losses, even if the task has different ones.
        thinned.append((X[rows], centred / np.where(spread > 0, spread, 1.0)))
    return fit_shared(thinned, kernel)


def _condition(
    tasks: IndexArray, X: FloatArray, Y: FloatArray, theta: FloatArray, kernel: Kernel
) -> Group:
    constant, noise = np.exp(theta[[0, -1]])
    K = constant * correlation(X, X, np.exp(theta[1:-1]), kernel) + noise * np.eye(len(X))
    level = Y.mean(axis=0)
    # The scale of the losses cancels: the mean is linear in them.
    return Group(tasks, X, cho_solve(cho_factor(K, lower=True), Y - level), level)
