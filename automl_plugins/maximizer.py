"""Maximise an acquisition: a batch of candidates, then multi-start local search in batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from automl_plugins.space import VectorSpace

FloatArray = npt.NDArray[np.float64]
# Vectors (m, d) -> score (m,), larger is better, and predicted loss (m,), which breaks ties.
Score = Callable[[FloatArray], tuple[FloatArray, FloatArray]]

_RANDOM_STARTS = 3


@dataclass(frozen=True)
class Candidates:
    """A first batch.

    Attributes:
        vectors: Unobserved configurations (m, d).
        seen: Sorted keys of what was observed (n,).
        complete: Whether the batch is all that is left of the space.
    """

    vectors: FloatArray
    seen: npt.NDArray[np.uint64]
    complete: bool = False


def maximize(
    space: VectorSpace,
    score: Score,
    first: Candidates,
    incumbents: FloatArray,
    fixed: FloatArray | None,
    rng: np.random.Generator,
    *,
    n_steps: int,
) -> FloatArray:
    """The best unobserved configuration found.

    The search sets out from the best observed configurations and the best of the first batch;
    each step scores the one-exchange neighbours of all its points in one batch (SMAC's local
    search).

    Args:
        space: The search space.
        score: Acquisition and predicted loss of vectors.
        first: First batch.
        incumbents: Best observed configurations (b, d).
        fixed: Values (d,) already decided, NaN where free, or None.
        rng: Source of steps and of the last tie-break.
        n_steps: Steps of the local search at most.

    Returns:
        One vector (d,).
    """
    scores, losses = score(first.vectors)
    batches = [(first.vectors, scores, losses)]
    if not first.complete:
        top = first.vectors[np.argsort(-scores, kind="stable")[:_RANDOM_STARTS]]
        points = np.concatenate([space.canonical(incumbents), top])
        points = space.complete(points, rng, fixed)
        level = -np.inf
        for _ in range(n_steps):
            moved = space.complete(space.neighbours(points, rng), rng, fixed)
            moved = moved[~space.seen(moved, first.seen)]
            if not len(moved):
                break
            scores, losses = score(moved)
            batches.append((moved, scores, losses))
            if scores.max() <= level:
                break
            level = float(scores.max())
            points = moved[np.argsort(-scores, kind="stable")[: len(points)]]
    vectors, scores, losses = (np.concatenate(part) for part in zip(*batches, strict=True))
    return np.asarray(vectors[_argmax(scores, losses, rng)])


def _argmax(scores: FloatArray, losses: FloatArray, rng: np.random.Generator) -> int:
    """Position of the best score; ties, frequent with trees, go to the lower loss, then by lot."""
    tied = np.flatnonzero(scores == scores.max())
    tied = tied[losses[tied] == losses[tied].min()]
    return int(rng.choice(tied))
