"""Propose the configurations of a memory by matrix factorisation (PMF, Fusi et al. 2018).

Notation of this module::

    N, T     configurations of the memory ("pipelines"), and its tasks ("data sets")
    vectors  the configurations, (N, d)
    Y        their losses, (N, T), NaN where a task did not run one
    rows     index in ``vectors`` of each row of the history, (n,), -1 if it is none of them
    allowed  mask of the configurations that may be proposed, (N,)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from scipy.stats import rankdata
from sklearn.base import clone

from automl_plugins._arguments import check_choice, check_finite, check_integer
from automl_plugins.arrays import BoolArray, FloatArray, IntArray
from automl_plugins.meta.dataset import MetaDataset
from automl_plugins.meta.designs.performance import performance
from automl_plugins.meta.factorization import (
    MatrixFactorization,
    Pick,
    Recommender,
    complementary,
    of_nearest,
)
from automl_plugins.meta.memories import AlignedMemory
from automl_plugins.meta.recognition import task_memory
from automl_plugins.meta.sources import Memory
from automl_plugins.meta.tasks import TaskFeatures, by_distance, meta_feature_row
from automl_plugins.newest import Newest
from automl_plugins.proposers.feasibility import likely_to_succeed
from automl_plugins.proposers.proposal import Proposal, Proposer, Repeats, as_failure
from automl_plugins.proposers.targets import effective_losses
from automl_plugins.proposers.with_memory import as_remembered
from automl_plugins.records.history import History
from automl_plugins.records.scores import HUGE
from automl_plugins.records.trial import Status
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams

Start = Literal["portfolio", "nearest"]

_SPARE = 20  # more pipelines of the start than n_start, as some may fail or not be allowed
_TRIED = 200  # pipelines into which fixed values are put before the fallback is asked
_SHARED = 2.0  # mean number of data sets per configuration below which losses are estimated


@dataclass(frozen=True)
class _Known:
    """A memory aligned to one space: its configurations, and what recommends one of them."""

    vectors: FloatArray
    row_of: Mapping[int, int]  # by the key of a configuration
    names: tuple[str, ...]
    recommender: Recommender


class PipelineProposer:
    """Proposes the configurations of a memory, each once, then asks another proposer.

    The first ``n_start`` are a portfolio, in which data sets with nearer meta-features weigh more
    (if the new one has any), or the best of the nearest data sets. Then a ``MatrixFactorization``
    is conditioned on the losses so far, and expected improvement decides. The model ignores
    evaluations of other configurations; failed and infeasible ones count as the worst. A
    configuration less than half as likely to succeed as the likeliest is not proposed. If
    ``n_start`` evaluations are complete and none is feasible, ``fallback`` proposes until one is.

    Where hardly any configuration was evaluated on two data sets, losses are estimated from
    neighbouring configurations first, see ``designs.performance``.

    The other arguments are those of ``recipes.pmf``.

    Args:
        fallback: The proposer when no configuration of the memory is left, or none can take the
            values already decided.
        model: Settings of the factorisation, or one fitted on ``matrix`` of this memory and space;
            None takes the default.
        start: ``"portfolio"``, or ``"nearest"`` as in the paper: the best configuration of each of
            the nearest data sets, by the L1 distance of standardised meta-features (the paper
            does not say how they are scaled; auto-sklearn divides by their range), none twice;
            without meta-features the configurations of the best mean rank.

    Raises:
        TypeError: For a memory or model of the wrong type.
        ValueError: For an argument outside its range, or a memory without another task.
    """

    def __init__(
        self,
        memory: Memory | AlignedMemory,
        *,
        fallback: Proposer,
        model: MatrixFactorization | None = None,
        meta_features: Mapping[str, float] | None = None,
        n_start: int = 5,
        xi: float = 0.01,
        start: Start = "portfolio",
    ) -> None:
        if model is not None and not isinstance(model, MatrixFactorization):
            raise TypeError(f"model must be a MatrixFactorization, got {model!r}.")
        check_integer("n_start", n_start, 1)
        check_finite("xi", xi)
        check_choice("start", start, get_args(Start))
        self.memory = task_memory(memory)
        self.model = MatrixFactorization() if model is None else model
        self.model.check_arguments()
        self.meta_features = meta_features
        self.n_start = int(n_start)
        self.xi = float(xi)
        self.start = start
        self.fallback = fallback
        self._kept: Newest[_Known] = Newest()

    def propose(
        self,
        space: VectorSpace,
        history: History,
        streams: Streams,
        k: int,
        fixed: FloatArray | None = None,
    ) -> Proposal:
        """See ``Proposer.propose``."""
        known = self._known(space)
        seen = as_remembered(history, self.memory.on(space), known.vectors)
        keys = space.keys(seen.vectors).tolist()
        rows = np.array([known.row_of.get(key, -1) for key in keys], dtype=np.int64)
        allowed = np.ones(len(known.vectors), dtype=bool)
        allowed[rows[rows >= 0]] = False
        repeats = Repeats(space, history, k)
        # Evaluated ones are left out above, by row: values that the memory lacks may differ.
        for values in repeats.taken:
            allowed &= ~space.agrees(known.vectors, values)
        matching = allowed & space.agrees(known.vectors, fixed)
        complete = history.status == Status.COMPLETE
        if complete.sum() >= self.n_start and not history.feasible[complete].any():
            # Losses of earlier tasks do not say which configuration violates constraints least.
            return self.fallback.propose(space, history, streams, k, fixed)
        if matching.any():
            # A mask: where expected improvement is 0, a probability as a factor has no effect.
            matching[matching] = likely_to_succeed(
                space, history, streams, known.vectors[matching]
            )
            return self._recommend(known, history, k, rows, matching)
        if fixed is not None and allowed.any():
            # Put the decided values into the recommended one, else into others, best mean first.
            first = self._recommend(known, history, k, rows, allowed)
            order = np.argsort(known.recommender.model.mean_, kind="stable")
            # Several: with the fixed values put in, one may be forbidden or tried already.
            others = known.vectors[order[allowed[order]][:_TRIED]]
            rng = streams.generator("candidates", k)
            changed = space.complete(np.vstack([first.vector[None], others]), rng, fixed)
            legal = np.flatnonzero(space.allowed(changed) & ~repeats.seen(changed))
            if len(legal):
                # The prediction was for the recommended configuration without the decided values.
                vector = changed[legal[0]]
                return replace(first, vector=vector, origin="design", loss=None, bound=None)
        return self.fallback.propose(space, history, streams, k, fixed)

    def _recommend(
        self, known: _Known, history: History, k: int, rows: IntArray, allowed: BoolArray
    ) -> Proposal:
        evaluated, losses = _losses(history, rows)
        running = rows[(history.status == Status.RUNNING) & (history.number < k) & (rows >= 0)]
        pending = [row for row in dict.fromkeys(running.tolist()) if row not in evaluated]
        with as_failure("{!r}", known.recommender.model):
            chosen = known.recommender.next(evaluated, losses, pending, allowed)
        shares = zip(known.names, chosen.shares.tolist(), strict=True)
        return Proposal(
            known.vectors[chosen.row].copy(),
            "design" if chosen.loss is None else "model",
            loss=chosen.loss,
            bound=None if chosen.loss is None else chosen.loss - float(chosen.std or 0.0),
            n_rows=len(evaluated),
            shares={name: share for name, share in shares if share > 0},
        )

    # --- the memory -----------------------------------------------------------------------------

    def _known(self, space: VectorSpace) -> _Known:
        dataset = self.memory.on(space)
        return self._kept.get((space, dataset), lambda: self._know(space, dataset))

    def _know(self, space: VectorSpace, dataset: MetaDataset) -> _Known:
        vectors, Y = matrix(dataset)
        model = self.model
        if not hasattr(model, "parameters_"):  # not fitted
            with as_failure("fit of {!r}", model):
                # A copy, so that the settings serve the next space, too.
                model = clone(model).fit(Y)
        elif model.n_pipelines_ != len(Y):
            raise ValueError(
                f"The model was fitted on {model.n_pipelines_} pipelines, the memory has"
                f" {len(Y)} configurations in this space: fit it on proposers.pipelines.matrix of"
                " the same memory, aligned to the same space."
            )
        return _Known(
            vectors,
            {key: row for row, key in enumerate(space.keys(vectors).tolist())},
            tuple(task.name for task in dataset.tasks),
            Recommender(
                model, Y, self._start(dataset, Y, model), n_start=self.n_start, xi=self.xi
            ),
        )

    def _start(
        self, dataset: MetaDataset, Y: FloatArray, model: MatrixFactorization
    ) -> list[Pick]:
        n = self.n_start + _SPARE
        if self.start == "nearest":
            return _nearest(dataset, Y, self.meta_features, n)
        features = TaskFeatures(dataset.tasks, self.meta_features)
        weights = by_distance(features.gaps) if features.useful else None
        return complementary(model.scaled(Y), model.mean_, n, weights)


def _nearest(
    dataset: MetaDataset, Y: FloatArray, task: Mapping[str, float] | None, n: int
) -> list[Pick]:
    """The best pipelines of the nearest data sets: auto-sklearn's start (Feurer et al. 2015)."""
    names = dataset.meta_feature_names()
    known = dataset.meta_features(names)
    new = meta_feature_row(task, names)
    present = np.isfinite(known)
    use = np.isfinite(new) & present.any(axis=0)  # known of this task and of another
    described = np.asarray(present[:, use].any(axis=1))
    if not described.any():
        ranks = np.where(np.isnan(Y), np.nan, rankdata(Y, axis=0, nan_policy="omit"))
        order = np.argsort(np.nanmean(ranks, axis=1), kind="stable")[:n]
        share = np.full(Y.shape[1], 1.0 / Y.shape[1])
        return [Pick(row, share) for row in order.tolist()]
    # Squares of the largest floats, and sums of two, would overflow.
    known, new = np.clip(known, -HUGE, HUGE), np.clip(new, -HUGE, HUGE)
    values = np.where(present, known, np.nan)[:, use]
    values = np.where(np.isnan(values), np.nanmedian(values, axis=0), values)
    spread = values.std(axis=0)
    gaps = np.abs((values - new[use]) / np.where(spread > 0, spread, np.inf)).sum(axis=1)
    order = np.argsort(gaps, kind="stable")
    return of_nearest(Y, order[described[order]].astype(np.int64), n)


def matrix(dataset: MetaDataset) -> tuple[FloatArray, FloatArray]:
    """Configurations (N, d) that completed on a task, and their losses (N, T).

    A loss is the mean of repeated runs; the worst of the task where all failed; NaN without runs.
    If tasks hardly share configurations, losses are estimates in [0, 1], see
    ``designs.performance``.
    """
    distinct, which = dataset.distinct
    n, n_tasks = len(distinct), len(dataset.tasks)
    losses = dataset.scores(np.asarray)  # not scaled; failed runs are NaN
    known = ~np.isnan(losses)
    at = which * n_tasks + dataset.task  # place of each run in the flattened (N, T)

    def count(places: IntArray, weights: FloatArray | None = None) -> Any:
        return np.bincount(places, weights, n * n_tasks).reshape(n, n_tasks)

    counts, sums, tried = count(at[known]), count(at[known], losses[known]), count(at) > 0
    Y = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    worst = np.where(counts > 0, Y, -np.inf).max(axis=0)
    # A task on which nothing completed has no worst loss, and stays NaN.
    Y = np.where(tried & (counts == 0) & np.isfinite(worst), worst, Y)
    keep = (counts > 0).any(axis=1)  # what failed everywhere cannot be recommended
    if n_tasks > 1 and float(tried[keep].sum(axis=1).mean()) < _SHARED:
        estimated = performance(dataset)
        return estimated.candidates, estimated.filled.T.copy()
    return distinct[keep], Y[keep]


def _losses(history: History, rows: IntArray) -> tuple[list[int], FloatArray]:
    """Distinct evaluated rows of the memory, in order, and their mean losses.

    Failed and infeasible rows have the worst loss, NaN as long as no other is known.
    """
    infeasible = ~history.feasible & (history.status != Status.RUNNING)
    status = np.where(infeasible, Status.FAILED, history.status)
    losses = effective_losses(replace(history, status=status), status == Status.FAILED)
    use = (rows >= 0) & (history.status != Status.RUNNING)
    found: dict[int, list[float]] = {}
    for row, loss in zip(rows[use].tolist(), losses[use].tolist(), strict=True):
        found.setdefault(row, []).append(loss)
    return list(found), np.array([float(np.mean(v)) for v in found.values()])
