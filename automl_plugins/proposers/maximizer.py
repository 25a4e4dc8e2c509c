"""Maximise an acquisition: a batch of candidates, then multi-start local search in batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from automl_plugins.spaces.vector_space import VectorSpace

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
# Vectors (m, d) -> score (m,), larger is better, and predicted loss (m,), which breaks ties.
Score = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
Batch = tuple[FloatArray, FloatArray, FloatArray]  # vectors, scores, predicted losses

_MAX_STEPS = 100  # of a search that gains a little each time, on a slope without an end


@dataclass(frozen=True)
class Candidates:
    """A first batch.

    Attributes:
        vectors: Unobserved configurations (m, d).
        seen: Sorted keys of what was observed (n,).
        complete: Whether the batch is all that is left of the space.
        taken: Values (p, d) that no proposal should have all of, NaN where any, see
            ``pending.taken``.
    """

    vectors: FloatArray
    seen: npt.NDArray[np.uint64]
    complete: bool = False
    taken: FloatArray | None = None


@dataclass(frozen=True)
class LocalSearch:
    """Where the local searches begin and what counts as a gain.

    Attributes:
        n_observed: Observed configurations to start from.
        by: Which ones: those of the lowest ``"loss"``, or of the largest ``"score"``.
        n_candidates: Configurations of the first batch to start from, the best ones.
        tolerance: Smallest gain worth a further step, in standard deviations of the scores of
            the first batch; 0 stops only where no neighbour is better at all.
        joins: Whether a step also tries all single gains of a start together, which takes
            fewer steps the more hyperparameters there are.
    """

    n_observed: int = 5
    by: Literal["loss", "score"] = "loss"
    n_candidates: int = 3
    tolerance: float = 0.05
    joins: bool = True


# As SMAC does it (Hutter et al. 2011, section 4.3; GBQR thesis 2.5.2).
SMAC_SEARCH = LocalSearch(n_observed=10, by="score", n_candidates=0, tolerance=0.0, joins=False)


def maximize(
    space: VectorSpace,
    score: Score,
    first: Candidates,
    incumbents: FloatArray,
    fixed: FloatArray | None,
    rng: np.random.Generator,
    *,
    n_steps: int = _MAX_STEPS,
    search: LocalSearch | None = None,
) -> FloatArray:
    """The best unobserved configuration found.

    A local search sets out from each start: it moves to the best of its one-exchange neighbours,
    or to all that are better at once, until none of them is better. All searches step together,
    so that their neighbours are scored in one batch, but each is judged by its own last point:
    one that is behind is not dropped.

    Args:
        space: The search space.
        score: Acquisition and predicted loss of vectors.
        first: First batch.
        incumbents: Observed configurations (b, d), lowest loss first.
        fixed: Values (d,) already decided, NaN where free, or None.
        rng: Source of steps and of the last tie-break.
        n_steps: Steps of a local search at most.
        search: Starts and tolerance; None is ``LocalSearch()``.

    Returns:
        One vector (d,).
    """
    search = LocalSearch() if search is None else search
    scores, losses = score(first.vectors)
    batches = [(first.vectors, scores, losses)]
    if not first.complete:
        finite = scores[np.isfinite(scores)]
        least = search.tolerance * float(finite.std()) if len(finite) else 0.0
        points, levels = _starts(space, score, first.vectors, scores, incumbents, search)
        points = space.complete(points, rng, fixed)
        for _ in range(n_steps):
            moved, owner = space.neighbours(points, rng)
            moved = space.complete(moved, rng, fixed)
            fresh = ~repeats(space, moved, first.seen, first.taken)
            moved, owner = moved[fresh], owner[fresh]
            if not len(moved):
                break
            scores, losses = score(moved)
            batches.append((moved, scores, losses))
            if search.joins:
                gains = scores > levels[owner] + least
                joined, joiner = _join(points, moved[gains], owner[gains], scores[gains])
                joined = space.complete(joined, rng, fixed)  # two changes may meet a condition
                fresh = space.allowed(joined) & ~repeats(space, joined, first.seen, first.taken)
                if fresh.any():
                    joined = joined[fresh]
                    batches.append((joined, *score(joined)))
                    owner = np.concatenate([owner, joiner[fresh]])
                    moved, scores, losses = _stack(batches[-2:])
            best = _best_of_each(owner, scores, losses)
            best = best[scores[best] > levels[owner[best]] + least]
            if not len(best):
                break
            points, levels = moved[best], scores[best]
    vectors, scores, losses = _stack(batches)
    return np.asarray(vectors[_argmax(scores, losses, rng)])


def repeats(
    space: VectorSpace,
    vectors: FloatArray,
    seen: npt.NDArray[np.uint64],
    taken: FloatArray | None = None,
) -> npt.NDArray[np.bool_]:
    """Mask (m,) of ``vectors`` (m, d) that were observed, or are taken; see ``Candidates``."""
    mask = space.seen(vectors, seen)
    for values in () if taken is None else taken:
        mask |= space.agrees(vectors, values)
    return mask


def _starts(
    space: VectorSpace,
    score: Score,
    candidates: FloatArray,
    scores: FloatArray,
    incumbents: FloatArray,
    search: LocalSearch,
) -> tuple[FloatArray, FloatArray]:
    """Where to start (b, d), and the score that a first step has to exceed (b,)."""
    if search.by == "score" and len(incumbents):
        worth, _ = score(incumbents)
        best = np.argsort(-worth, kind="stable")[: search.n_observed]
        observed, levels = incumbents[best], worth[best]
    else:
        observed = incumbents[: search.n_observed]
        # It cannot be proposed again, so its best neighbour is a gain whatever it is worth.
        levels = np.full(len(observed), -np.inf)
    top = np.argsort(-scores, kind="stable")[: search.n_candidates]
    starts = np.concatenate([space.canonical(observed), candidates[top]])
    return starts, np.concatenate([levels, scores[top]])


def _stack(batches: list[Batch]) -> Batch:
    vectors, scores, losses = zip(*batches, strict=True)
    return np.concatenate(vectors), np.concatenate(scores), np.concatenate(losses)


def _join(
    points: FloatArray, moved: FloatArray, owner: IntArray, scores: FloatArray
) -> tuple[FloatArray, IntArray]:
    """All gains of a start in one configuration (b', d), and its start (b',).

    Where the score is nearly a sum over the hyperparameters, one step does the work of many. Only
    neighbours count that change one value: one that changes a condition stands for itself.
    """
    before = points[owner]
    changed = (moved != before) & ~(np.isnan(moved) & np.isnan(before))
    alone = np.flatnonzero(changed.sum(axis=1) == 1)
    alone = alone[np.argsort(scores[alone], kind="stable")]  # of several values the best stays
    column = changed[alone].argmax(axis=1)
    joined = points.copy()
    joined[owner[alone], column] = moved[alone, column]
    several = np.flatnonzero((joined != points).sum(axis=1) - np.isnan(points).sum(axis=1) > 1)
    return joined[several], several


def _best_of_each(owner: IntArray, scores: FloatArray, losses: FloatArray) -> IntArray:
    """Position of the best neighbour of each start; ties go to the lower loss."""
    order = np.lexsort((losses, -scores, owner))
    return order[np.unique(owner[order], return_index=True)[1]]


def _argmax(scores: FloatArray, losses: FloatArray, rng: np.random.Generator) -> int:
    """Position of the best score; ties, frequent with trees, go to the lower loss, then by lot."""
    tied = np.flatnonzero(scores == scores.max())
    tied = tied[losses[tied] == losses[tied].min()]
    return int(rng.choice(tied))
