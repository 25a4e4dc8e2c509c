"""A committee of proposers: the better a member ranks this search's trials, the more it proposes.

Each member is a proposer with a model of its own. How well a model ranks evaluations that it was
not shown (leave-one-out for processes, out-of-bag for bootstrap models) is its merit, and the
member of each proposal is drawn by merit. Acquisitions are not averaged: a model that is wrong
with confidence may have the largest expected improvement everywhere, and would win every average.
If members are drawn, it costs only its share of the trials, and one model is asked instead of all.
In a long search a local model has every second turn, without a draw, see ``trust_region``. After
the portfolios of Hoffman, Brochu and de Freitas, "Portfolio allocation for Bayesian optimization"
(UAI 2011), which weigh members by the predicted losses of their proposals. Notation::

    merits  rank correlations of the models of one member, (s,), in [-1, 1]
    logs    logarithms of prior times evidence, or of the evidence of each model
    shares  trust in the members, (m,), adds up to 1
    n       rows that have a held-out prediction
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

import numpy as np
from scipy.special import softmax

from automl_plugins.arrays import FloatArray
from automl_plugins.newest import Newest
from automl_plugins.proposers import design
from automl_plugins.proposers.model_based import ModelBasedProposer
from automl_plugins.proposers.proposal import Proposal
from automl_plugins.proposers.refits import SharedFits, key_of_rows, total_seconds
from automl_plugins.proposers.targets import is_informative
from automl_plugins.proposers.trust_region import RegionExhausted, has_region
from automl_plugins.records.history import History
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams

_LEAST = 0.05  # trust below which a member is not asked
_NOISY = 0.01  # variance of the noise / variance of the losses above which losses are noisy
_JUDGED = 12  # rows from which a model can tell noise from what it does not know
LOCAL = "local process"  # proposes in turn, so it has no trust
_HIGHEST = 0.99  # larger merits count as this one: at 1 the evidence would be infinite


class Committee:
    """Draws the member that proposes, with a probability that grows with its merit.

    The trust in member i is proportional to ``prior_i (1 - r_i^2)^(-tempering n / 2)``, where
    ``r_i >= 0`` is the rank correlation of the losses with its held-out predictions, and n the
    largest number of rows that a member predicts (a failed row counts only if the models learn the
    worst loss for it). This is the likelihood of a regression of the ranks on the predicted ranks,
    tempered because the errors of the predictions are not independent. A member with several
    models has the mean of their likelihoods: some of many models agree with a few losses by
    chance, and the mean includes those that do not. Trust below 5 % becomes 0.

    Args:
        members: Proposers by name. As long as all are in their start design, the first one
            proposes. A member drawn before its own design is complete proposes a point of it.
        prior: Relative trust by name before any evaluation; 1 where it is not given.
        tempering: Exponent of the likelihood, in [0, 1]; 0 keeps the prior.
        exact: Names of members that take losses for exact; not all do. They are not drawn once
            another member has learnt, from at least twelve rows, that the variance of the noise is
            more than 1 % of that of the losses: all members rank noisy losses badly, so merits
            hardly differ.
        local: Proposer with a ``Local`` surrogate. Once the search ``has_region``, it proposes
            every second evaluation, unless a value is fixed or it is a turn of ``balance``: the
            members describe the whole space, and no part of it well enough to end a search.

    Example::

        members = {"trees": gbqr(), "process": surrogate("averaged_process")}
        proposal = Committee(members).propose(space, history, Streams(1), k=12)
        print(proposal.member, proposal.trust)
    """

    def __init__(
        self,
        members: Mapping[str, ModelBasedProposer],
        *,
        prior: Mapping[str, float] | None = None,
        tempering: float = 0.5,
        exact: Collection[str] = (),
        local: ModelBasedProposer | None = None,
    ) -> None:
        self.members = dict(members)
        self.prior = np.array([(prior or {}).get(name, 1.0) for name in members])
        self.tempering = tempering
        self.exact = np.array([name in exact for name in members])
        self.local = local
        self._trusted: Newest[dict[str, float]] = Newest()

    def __repr__(self) -> str:
        return f"Committee({', '.join(self.members)})"

    def propose(
        self,
        space: VectorSpace,
        history: History,
        streams: Streams,
        k: int,
        fixed: FloatArray | None = None,
    ) -> Proposal:
        """See ``Proposer.propose``."""
        first, *_ = self.members.values()
        if all(member.starts(space, history, k) for member in self.members.values()):
            # No model can be judged yet, and one design fills the space better than two.
            return first.propose(space, history, streams, k, fixed)
        local, is_free = self.local, fixed is None or np.isnan(fixed).all()
        if (
            local is not None
            and k % 2 == 0
            and is_free
            # No branch is given up: a member has the turns of ``balance``.
            and not design.is_branch_turn(space, k, local.settings.balance)
            and has_region(space, history)
        ):
            try:
                return replace(local.propose(space, history, streams, k), member=LOCAL)
            except RegionExhausted:
                pass  # a member is drawn instead
        judged = history.first(judging_point(history.n_finished))
        trust, judge_seconds = self._trusted.timed(
            (space, key_of_rows(judged, streams.seed)),
            lambda: self._judge(space, judged, streams),
        )
        names, shares = list(trust), list(trust.values())
        drawn = streams.generator("member", k).choice(len(names), p=shares)
        proposal = self.members[names[drawn]].propose(space, history, streams, k, fixed)
        return replace(
            proposal,
            member=names[drawn],
            trust=trust,
            fit_seconds=total_seconds(judge_seconds, proposal.fit_seconds),
        )

    def _judge(self, space: VectorSpace, judged: History, streams: Streams) -> dict[str, float]:
        """Positive trust by name, with sum 1."""
        merits = [np.zeros(1)] * len(self.members)  # with nothing to judge by: trust is the prior
        n, asked = 0, np.ones(len(self.members), dtype=bool)
        if is_informative(judged):
            shared = SharedFits()
            # Members cache these models: the drawn one fits again only if it learns more rows.
            fitted = [m.models(space, judged, streams, shared) for m in self.members.values()]
            merits = [models.merits for models, _ in fitted]
            noise = np.array([models.noise for models, _ in fitted])
            # One number for all members: a bootstrap model holds out fewer rows than a process,
            # and by its own number would be trusted less than a process of the same merit.
            n = max(models.n_held_out for models, _ in fitted)
            if n >= _JUDGED and noise[~self.exact].max() > _NOISY:  # one at least is not exact
                asked = ~self.exact
        shares = np.zeros(len(asked))
        judges = [merit for merit, is_asked in zip(merits, asked, strict=True) if is_asked]
        shares[asked] = trust_in(judges, n, self.prior[asked], self.tempering)
        named = zip(self.members, shares.tolist(), strict=True)
        return {name: share for name, share in named if share > 0.0}


def judging_point(n: int) -> int:
    """Number of first rows, of ``n`` finished ones, by which the members are judged.

    They are judged again at every row below 16, then every 2nd, from 32 every 4th; from 64 every
    16th, from 128 every 32nd, and so on: fits of members that are not drawn are rare. At most 1/8
    of the rows is not judged, from 64 rows on 1/4, as trust hardly changes by then.
    """
    step = 1 << max(0, n.bit_length() - (4 if n < 64 else 3))
    return n - n % step


def trust_in(
    merits: Iterable[float | FloatArray], n: int, prior: FloatArray, tempering: float
) -> FloatArray:
    """Trust (m,) in members with these merits after ``n`` rows, see ``Committee``.

    A member has one merit, or several (s,). Trust adds up to 1.
    """
    logs = np.log(prior) + [_log_evidence(merit, n, tempering) for merit in merits]
    shares = softmax(logs)  # the likelihoods of many rows themselves would overflow
    shares[shares < min(_LEAST, shares.max())] = 0.0  # many equal members may all have less
    return np.asarray(shares / shares.sum())


def _log_evidence(merit: float | FloatArray, n: int, tempering: float) -> float:
    """Logarithm of the mean over the merits (s,) of one member of (1 - r^2)^(-tempering n / 2)."""
    unexplained = 1.0 - np.clip(np.atleast_1d(merit), 0.0, _HIGHEST) ** 2
    logs = -0.5 * tempering * n * np.log(unexplained)
    return float(np.logaddexp.reduce(logs) - np.log(len(logs)))
