"""Proposals, the protocol of proposers, and proposals beside other workers.

A worker first gets the number of its evaluation, then reads the history, proposes and publishes.
So the worker of number k sees every lower number: finished, running with a configuration, or
running without one while its worker is still proposing. That missing configuration can be
computed, as a proposal is a function of the history and the number. Notation::

    n, d      rows of the history, and hyperparameters
    missing   active values that a row has not asked for, mask (n, d)
    proposed  missing values that a running row gets if it asks, or that were filled in, (n, d)
    asked     values that a row has asked for, mask (n, d)
    k         number of the evaluation that a proposal is for
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np

from automl_plugins.arrays import BoolArray, FloatArray, KeyArray
from automl_plugins.blas import one_blas_thread
from automl_plugins.formats import format_count
from automl_plugins.meta.coverage import MemoryMismatch
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status, oldest_running
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams

Origin = Literal["design", "random", "model"]

MOST_ASKING = 32  # numbers being proposed at one moment; older ones belong to dead workers
COUNTS = ("n_rows", "n_diverged", "n_infeasible")
# More than one batch is needed only if the space is nearly used up or ``fixed`` leaves little.
_MAX_REDRAWS = 8  # batches without a new configuration before giving up
_RANDOM_POOL = 512  # configurations from which a random one is taken
_FACTS = ("loss", "bound", "seconds", "success")  # numbers, None where they are not modelled


class SurrogateFailure(RuntimeError):
    """A surrogate could not be fitted or asked; the cause is chained."""


@contextmanager
def as_failure(what: str, *models: object) -> Iterator[None]:
    """Turn any exception of the models in the block into a ``SurrogateFailure``.

    Models of users may raise anything, and the search should survive it. A ``MemoryMismatch`` is
    no failure of a model, and passes.

    Args:
        what: The call, such as ``"predict of {!r}"``, with ``{!r}`` in place of each model.
        models: The models; written out only on failure, as the repr of a fitted one may take
            seconds.
    """
    try:
        yield
    except (SurrogateFailure, MemoryMismatch):
        raise
    except Exception as error:
        raise SurrogateFailure(f"{what.format(*models)} failed: {error}") from error


@dataclass(frozen=True)
class Proposal:
    """A configuration and why it was chosen.

    Attributes:
        vector: The configuration (d,).
        origin: ``"design"`` (start or interleaved), ``"random"`` or ``"model"``.
        loss: Predicted loss; None when no model was asked, or it knows no scale of losses yet.
        bound: Predicted lower bound of the loss; None as for the loss.
        seconds: Predicted seconds; None where costs are not modelled.
        success: Predicted probability of success; None where nothing has failed yet.
        n_rows: Number of finished rows that the model knows.
        n_diverged: How many of these count as failures because their loss has diverged.
        n_infeasible: How many of these are complete as long as none is feasible, so that the model
            is one of their violations; 0 once a row is feasible.
        fit_seconds: Time of a fit made for this proposal; None if the model was reused.
        shares: Share of each earlier task in the decision, by name; the rest to 1 is the share of
            the search's own evaluations. None without earlier tasks.
        member: The member of a ``Committee`` that proposed; None if none did.
        trust: Probability of drawing each member, by name; None if none was drawn.
    """

    vector: FloatArray
    origin: Origin
    loss: float | None = None
    bound: float | None = None
    seconds: float | None = None
    success: float | None = None
    n_rows: int = 0
    n_diverged: int = 0
    n_infeasible: int = 0
    fit_seconds: float | None = None
    shares: Mapping[str, float] | None = None
    member: str | None = None
    trust: Mapping[str, float] | None = None

    def to_dict(self) -> dict[str, Any]:
        """The known facts of the choice, as plain data that JSON keeps unchanged.

        Without the vector and ``fit_seconds``, which say nothing about why it was chosen.
        """
        known: dict[str, Any] = {"origin": self.origin}
        known |= {n: float(v) for n in _FACTS if (v := getattr(self, n)) is not None}
        known |= {n: int(v) for n in COUNTS if (v := getattr(self, n))}
        if self.member is not None:
            known["member"] = self.member
        for name in ("shares", "trust"):
            if (parts := getattr(self, name)) is not None:
                known[name] = {str(part): float(share) for part, share in parts.items()}
        return known

    def __repr__(self) -> str:
        facts = [f"{format_count(len(self.vector), 'parameter')} by {self.origin}"]
        facts += [f"{name} {v:.4g}" for name in _FACTS if (v := getattr(self, name)) is not None]
        if self.n_rows:
            facts.append(format_count(self.n_rows, "row"))
        if self.member is not None:
            facts.append(f"member {self.member}")
        if self.shares:
            facts.append(format_count(len(self.shares), "earlier task"))
        return f"Proposal({', '.join(facts)})"


class Proposer(Protocol):
    """The protocol that adapters use: ``propose`` is pure, except for caches."""

    def propose(
        self,
        space: VectorSpace,
        history: History,
        streams: Streams,
        k: int,
        fixed: FloatArray | None = None,
    ) -> Proposal:
        """The configuration to evaluate as number ``k``.

        Args:
            space: The search space.
            history: Everything observed, running evaluations included. Running ones of higher
                numbers are not repeated, and otherwise ignored, see ``History.before``.
            streams: Random streams of the search.
            k: Number of this evaluation in the search.
            fixed: Values (d,) already decided, NaN where free; None leaves all free.

        Returns:
            A valid configuration that was not observed, unless the space is exhausted.

        Raises:
            SurrogateFailure: If a model could not be fitted or asked.
            MemoryMismatch: If the space can use no run of the memory.
        """
        ...


def ask(
    proposer: Proposer,
    space: VectorSpace,
    history: History,
    streams: Streams,
    k: int,
    fixed: FloatArray | None = None,
) -> Proposal:
    """``Proposer.propose`` after computing the proposals that other workers are making now.

    These are exact if the other workers have read the same finished rows; a guess otherwise. A
    running row without any value counts as not published yet; one of a dead worker is dropped, see
    ``records.trial.oldest_running``. The gaps of finished rows are filled, see ``fill_gaps``. BLAS
    uses one thread meanwhile, see ``blas``.
    """
    running = history.status == Status.RUNNING
    # A dead worker's configuration may be tried again.
    dead = running & (history.number < oldest_running(history.number[~running]))
    if dead.any():
        history = history.rows(~dead)
    # Densities underflow to 0 far from all observations, which is right; a user may have numpy
    # raise errors for it.
    with one_blas_thread(), np.errstate(under="ignore"):
        history = fill_gaps(space, history, streams)
        asking = (history.status == Status.RUNNING) & np.isnan(history.vectors).all(axis=1)
        # At most MOST_ASKING, as each costs a proposal.
        asking &= (history.number < k) & (history.number >= k - MOST_ASKING)
        # Ascending: each worker takes account of the configurations of lower numbers.
        for number in np.sort(history.number[asking]).tolist():
            place = history.number == number
            try:
                # Without its own empty row, as that worker itself reads the history.
                vector = proposer.propose(space, history.rows(~place), streams, number).vector
            except SurrogateFailure:  # that worker has no better answer either
                continue
            history = replace(
                history,
                vectors=np.where(place[:, None], vector, history.vectors),
                missing=np.where(place[:, None], ~np.isnan(vector), history.missing),
            )
        return proposer.propose(space, history, streams, k, fixed)


def fill_gaps(space: VectorSpace, history: History, streams: Streams) -> History:
    """The history with random values where a finished row ended before it asked for one.

    Its outcome did not depend on such a value, so any will do. A gap itself would mislead a model:
    only rows that ended early have one, candidates never. A row always gets the same values. In
    complete and pruned rows they stay marked as missing, see ``Repeats``.
    """
    gaps = history.missing & np.isnan(history.vectors)
    gaps &= (history.status != Status.RUNNING)[:, None]
    stopped = np.flatnonzero(gaps.any(axis=1))
    if not len(stopped):
        return history
    # Drawn for rows without a gap, too: which other rows have one must not change a row's values.
    drawn = streams.generator("gaps").random((int(stopped[-1]) + 1, space.d))
    vectors, missing = history.vectors.copy(), history.missing.copy()
    # All NaN, not only the gaps: a drawn choice may activate other parameters.
    for column in np.flatnonzero(np.isnan(vectors[stopped]).any(axis=0)).tolist():
        rows = stopped[np.isnan(vectors[stopped, column])]
        vectors[rows, column] = space.quantile(column, drawn[rows, column])
    vectors[stopped] = space.activate(vectors[stopped])
    filled = np.isnan(history.vectors) & ~np.isnan(vectors)
    missing[stopped] = (filled & _ended_by_themselves(history)[:, None])[stopped]
    return replace(history, vectors=vectors, missing=missing)


def _ended_by_themselves(history: History) -> BoolArray:
    """Mask (n,) of complete and pruned rows: they asked for all that their objective needs."""
    return np.isin(history.status, (Status.COMPLETE, Status.PRUNED))


class Repeats:
    """Configurations that the proposal for number ``k`` should not repeat.

    They are those in the history, copies of running ones that have not asked for all of their
    values yet, and those that agree with a complete or pruned row in all that it asked for: the
    objective would ask for nothing else. Without the last rule a condition that is not known would
    let an evaluation be repeated endlessly, with other values of parameters that nobody reads.

    Attributes:
        taken: The running rows (p, d), NaN for values that are not compared. A parameter that no
            row has asked for, or only rows of another branch, does not distinguish configurations,
            and conditions may be unknown before the first evaluations are complete. So a row that
            has asked for a number is compared by all that it, and complete rows of the same
            categories, have asked for. Any other row is compared by all that any row asked for.
    """

    def __init__(self, space: VectorSpace, history: History, k: int) -> None:
        self.space = space
        self._keys = np.sort(space.keys(history.vectors))  # ``space.seen`` searches sorted keys
        proposed = history.missing & ~np.isnan(history.vectors)
        asked = ~np.isnan(history.vectors) & ~proposed
        complete = history.status == Status.COMPLETE
        recent = (history.number >= k - MOST_ASKING) & proposed.any(axis=1) & ~complete
        unasked = proposed & _ended_by_themselves(history)[:, None]
        self._paths = _paths(space, history, asked, unasked)
        found = []
        for row in np.flatnonzero(recent):
            vector, own = history.vectors[row], asked[row]
            if (own & ~space.categorical).any():
                branch = np.where(own & space.categorical, vector, np.nan)
                own = own | asked[complete & space.agrees(history.vectors, branch)].any(axis=0)
            else:
                own = asked.any(axis=0)
            # Compared by categories alone, the row would take its whole branch.
            if (own & ~space.categorical & ~np.isnan(vector)).any():
                found.append(np.where(own, vector, np.nan))
        self.taken = np.array(found).reshape(len(found), space.d)

    def seen(self, vectors: FloatArray) -> BoolArray:
        """Mask (m,) of the ``vectors`` (m, d) that are in the history."""
        return self.space.seen(vectors, self._keys)

    def among(self, vectors: FloatArray) -> BoolArray:
        """Mask (m,) of all ``vectors`` (m, d) that should not be proposed."""
        mask = self.seen(vectors)
        for values in self.taken:
            mask |= self.space.agrees(vectors, values)
        for asked, keys in self._paths:
            mask |= self.space.seen(np.where(asked, vectors, np.nan), keys)
        return mask


def _paths(
    space: VectorSpace, history: History, asked: BoolArray, unasked: BoolArray
) -> list[tuple[BoolArray, KeyArray]]:
    """Masks (d,) of the parameters that rows asked for, each with the sorted keys of such rows.

    Only rows with active values that were not asked for, ``unasked`` (n, d), count. Rows are left
    out if only later rows have asked for such a parameter: it may be new in the objective, and the
    row says nothing about it. One that no row has asked for does not distinguish configurations.
    """
    rows = np.flatnonzero(unasked.any(axis=1) & asked.any(axis=1))
    if not len(rows):
        return []
    since = np.where(asked, history.number[:, None], np.inf).min(axis=0)
    is_old = (since < history.number[rows, None]) | np.isinf(since)
    rows = rows[(~unasked[rows] | is_old).all(axis=1)]
    found = []
    for own in np.unique(asked[rows], axis=0):
        alike = rows[(asked[rows] == own).all(axis=1)]
        values = np.where(own, history.vectors[alike], np.nan)
        found.append((own, np.sort(space.keys(values))))
    return found


@dataclass(frozen=True)
class Question:
    """The arguments of a proposal, see ``Proposer``, with what is derived from them."""

    space: VectorSpace
    history: History
    k: int
    fixed: FloatArray | None
    rng: np.random.Generator

    @cached_property
    def repeats(self) -> Repeats:
        """The configurations that would repeat an evaluation."""
        return Repeats(self.space, self.history, self.k)

    @cached_property
    def earlier(self) -> History:
        """The finished rows, and the running ones of lower numbers."""
        return self.history.before(self.k)

    def unseen(self, n: int) -> tuple[FloatArray, bool]:
        """Candidates (m, d) that repeat nothing, and whether they are all that is left.

        If nothing else is left they are copies of running configurations, else observed ones.
        Forbidden ones are returned only if the ``fixed`` values make all draws forbidden.
        """
        space, fixed = self.space, self.fixed
        # With ``fixed`` values the list would have configurations that contradict them.
        pool = space.enumerate(n) if fixed is None else None  # None where there are more than n
        for _ in range(_MAX_REDRAWS):
            if pool is not None:
                break
            drawn = space.complete(space.sample(n, self.rng), self.rng, fixed)
            legal = drawn[space.allowed(drawn)]
            fresh = legal[~self.repeats.among(legal)]
            if len(fresh):
                return fresh, False
            # Nothing new was drawn: if not much more exists than was tried, all of it is listed.
            pool = space.enumerate(n + 2 * len(self.history)) if fixed is None else None
        complete = pool is not None
        if pool is None:
            pool = legal if len(legal) else drawn
        for mask in (self.repeats.among(pool), self.repeats.seen(pool)):
            if not mask.all():
                pool = pool[~mask]
                break
        return pool, complete


def propose_randomly(
    space: VectorSpace, history: History, k: int, rng: np.random.Generator
) -> Iterator[Proposal]:
    """Yield random configurations for number ``k``, at least one; take the next if one is refused.

    They repeat nothing, unless nothing else is left, see ``Question.unseen``.
    """
    pool, _ = Question(space, history, k, None, rng).unseen(_RANDOM_POOL)
    while len(pool):
        row = rng.integers(len(pool))
        yield Proposal(pool[row], "random")
        pool = np.delete(pool, row, axis=0)


class Asker:
    """Asks a proposer, and draws a configuration at random where a model fails.

    The first failure is logged as a warning.
    """

    def __init__(self, proposer: Proposer, logger: logging.Logger) -> None:
        self.proposer = proposer
        self._logger = logger
        self._warned = False

    def ask(self, space: VectorSpace, history: History, streams: Streams, k: int) -> Proposal:
        """See ``ask``; a space without hyperparameters has one configuration."""
        try:
            if space.d:
                return ask(self.proposer, space, history, streams, k)
        except SurrogateFailure as failure:
            if not self._warned:
                self._warned = True
                self._logger.warning(f"{failure} Random configurations are tried instead.")
        return next(propose_randomly(space, history, k, streams.generator("fallback", k)))
