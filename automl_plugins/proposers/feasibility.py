"""Which configurations are likely to succeed, learnt from failures and from constraints."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING

import numpy as np

from automl_plugins import surrogates
from automl_plugins.arrays import BoolArray, FloatArray, IntArray
from automl_plugins.proposers.proposal import as_failure
from automl_plugins.proposers.refits import SharedFits
from automl_plugins.proposers.targets import successes
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams

if TYPE_CHECKING:
    from automl_plugins.surrogates import Constraints, Feasibility

_LIKELY = 0.5  # probability of success, as a share of the largest, below which nothing is proposed


@dataclass(frozen=True)
class SuccessModels:
    """The models of the probability of success; at least one of the two.

    Attributes:
        failures: Of failures, by trees.
        constraints: Of the constraints that were broken, by a process for each.
    """

    failures: Feasibility | None
    constraints: Constraints | None

    def log_success(self, features: FloatArray) -> FloatArray:
        """Logarithm (m,) of the probability that nothing fails and all constraints hold.

        Raises:
            SurrogateFailure: If a model raises.
        """
        total = np.zeros(len(features))
        if self.failures is not None:
            with as_failure("predict of {!r}", self.failures):
                total += np.log(self.failures.predict(features))
        if self.constraints is not None:
            with as_failure("predict of {!r}", self.constraints):
                total += self.constraints.log_probability(features)
        return total


def fit_feasibility(
    space: VectorSpace,
    history: History,
    features: FloatArray,
    streams: Streams,
    *,
    ignores_failed: bool,
    max_rows: int | None,
    shared: SharedFits,
) -> tuple[SuccessModels | None, IntArray]:
    """Fit the models of success to finished rows.

    Args:
        space: The search space.
        history: Finished rows (n,).
        features: Their features (n, f).
        streams: Streams of the search; the models draw from the stream with index n.
        ignores_failed: Whether failed rows are left out; infeasible rows are always learnt.
        max_rows: Largest number of rows to learn, the newest; None for all.
        shared: Earlier fits, reused for the same rows.

    Returns:
        The models, None if every learnt row succeeded; and the positions of the learnt rows.

    Raises:
        SurrogateFailure: If a fit raises.
    """
    n, success = len(history), successes(history)
    # A failure that a retry mended says nothing about the configuration.
    ignored = history.status == Status.FAILED if ignores_failed else retried(space, history)
    learnt = np.flatnonzero(~ignored)[slice(-(max_rows or n), None)]
    if success[learnt].all():
        return None, learnt
    done = history.status[learnt] != Status.FAILED
    constraints, failures = None, None
    if (success[learnt] != done).any():  # no constraint while the violations stand for the losses
        values = history.constraints[learnt]
        borders = surrogates.Constraints(implied=space.implied)
        with as_failure(f"fit of {{!r}} on {n} rows", borders):
            broken = (values > 0.0).any(axis=0)
            constraints = shared.fit(borders, features[learnt], values[:, broken])
    if not done.all():
        model = surrogates.Feasibility(random_state=streams.integer("feasibility", n))
        with as_failure(f"fit of {{!r}} on {n} rows", model):
            failures = shared.fit(model, features[learnt], done)
    return SuccessModels(failures, constraints), learnt


def retried(space: VectorSpace, history: History) -> BoolArray:
    """Mask (n,) of failed rows whose configuration was also completed: it is not the cause."""
    failed: BoolArray = history.status == Status.FAILED
    if not failed.any():  # nearly always, and keys of all rows take long
        return failed
    keys = space.keys(history.vectors)
    return np.asarray(failed & np.isin(keys, keys[history.status == Status.COMPLETE]))


def likely_to_succeed(
    space: VectorSpace,
    history: History,
    streams: Streams,
    vectors: FloatArray,
    *,
    ignores_failed: bool = False,
    max_rows: int | None = 500,
) -> BoolArray:
    """Mask (m,) of the vectors that are at least half as likely to succeed as the likeliest.

    For proposals without an acquisition that the probability could weigh. Arguments and errors
    are those of ``fit_feasibility``.
    """
    known = history.first(history.n_finished)
    models, _ = fit_feasibility(
        space,
        known,
        space.features(known.vectors),
        streams,
        ignores_failed=ignores_failed,
        max_rows=max_rows,
        shared=SharedFits(),
    )
    if models is None:
        return np.ones(len(vectors), dtype=bool)
    # Of many broken constraints the probability itself may underflow, for all vectors alike.
    log_success = models.log_success(space.features(vectors))
    return np.asarray(log_success >= log_success.max() + log(_LIKELY))
