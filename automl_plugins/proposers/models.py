"""The models behind one proposal: transformed losses, running time, feasibility.

Notation: y losses (n,), z targets (n,); every transform is increasing, so the best stays best.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, get_args

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from scipy.stats import rankdata

from automl_plugins import surrogates
from automl_plugins._arguments import check_integer, one_of
from automl_plugins.arrays import BoolArray, FloatArray
from automl_plugins.proposers.proposal import SurrogateFailure, as_failure
from automl_plugins.records.history import History
from automl_plugins.records.scores import HUGE, divergence_limit, tame
from automl_plugins.records.trial import Status
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams
from automl_plugins.surrogates.base import (
    OutOfSample,
    PendingAware,
    Promising,
    Surrogate,
    SurrogateTemplate,
    Voting,
    check_surrogate,
    reseed,
    standardise,
)

if TYPE_CHECKING:
    from automl_plugins.surrogates import Feasibility, RunningTime

M = TypeVar("M", "Feasibility", "RunningTime")
Target = Literal["log_regret", "normal_scores", "standardize", "raw"]
TARGETS: tuple[Target, ...] = get_args(Target)

_INCUMBENTS = 64  # best rows among which the best prediction is the incumbent
_VISIBLE = 1e-6  # relative difference of losses, far larger than rounding
_SAME = 1e-15  # relative difference of losses that differ by rounding only
_FLOOR = 0.15  # regret, in that of the median row, below which differences are compressed


@dataclass(frozen=True)
class Targets:
    """Transformed losses, and their inverse.

    Attributes:
        losses: The losses (n,).
        values: The targets (n,), increasing in the losses.
    """

    losses: FloatArray
    values: FloatArray

    def to_loss(self, target: float) -> float:
        """The loss that corresponds to ``target``, interpolated; the observed range is kept."""
        order = np.argsort(self.values)
        return float(np.interp(target, self.values[order], self.losses[order]))


def transform(losses: FloatArray, kind: Target) -> Targets:
    """Targets of ``losses`` (n,).

    * ``"log_regret"``: z = ln(0.15 + (y - min y) / (median y - min y)). Near the best loss small
      differences count, far from it large ones do not; after SMAC's log-scaled losses, with the
      median in place of the worst loss, which one diverged trial can move anywhere.
    * ``"normal_scores"``: z = Phi^-1((rank - 1/2) / n), ties share their mean rank. Losses of any
      scale, with any outliers, become standard normal: only their order counts (the Gaussian
      copula transform of Salinas et al. 2020).
    * ``"standardize"``: mean 0 and standard deviation 1; constant losses become 0.
    * ``"raw"``: the losses.

    Raises:
        ValueError: For an unknown kind.
    """
    if kind == "log_regret":
        regret = losses - losses.min()
        typical = float(np.median(regret)) or float(regret.max()) or 1.0
        return Targets(losses, np.log(_FLOOR + regret / typical))
    if kind == "normal_scores":
        return Targets(losses, ndtri((rankdata(losses) - 0.5) / len(losses)))
    if kind == "standardize":
        return Targets(losses, standardise(losses)[0])
    if kind == "raw":
        return Targets(losses, losses.astype(np.float64))
    raise ValueError(f"target must be one of {', '.join(map(repr, TARGETS))}, got {kind!r}.")


def effective_losses(history: History, penalised: BoolArray | None = None) -> FloatArray:
    """Losses (n,) with those of pruned rows made comparable; NaN where a row has none.

    A pruned loss belongs to a smaller budget and cannot be compared with complete losses. The
    pruner's verdict can: worse than the typical evaluation. So the pruned rows, later steps first
    and better losses first within a step, are spread evenly over the worse half of the complete
    losses. If these are all alike, as with a single complete evaluation, the pruned rows follow
    behind, as far apart as their own losses: otherwise nothing could be learnt. The rows
    ``penalised`` (n,) get the worst loss, so that the model expects nothing of their region. Far
    outliers are tamed first (``records.scores.tame``).
    """
    losses = tame(np.where(history.status == Status.COMPLETE, history.losses, np.nan))
    pruned = np.flatnonzero(history.status == Status.PRUNED)
    complete = losses[~np.isnan(losses)]
    if len(pruned) and len(complete):
        rows, worst = _by_progress(history, pruned), complete.max()
        share = 0.5 + 0.5 * (np.arange(len(pruned)) + 0.5) / len(pruned)
        losses[rows] = np.quantile(complete, share)
        if np.median(complete) == worst:
            reports = tame(history.losses[pruned])
            apart = np.ptp(reports[~np.isnan(reports)]) if not np.isnan(reports).all() else 0.0
            width = max(apart, _VISIBLE * abs(worst)) or 1.0
            losses[rows] = worst + width * (2.0 * share - 1.0)
    if penalised is not None and len(complete):
        losses[penalised] = np.nanmax(losses)
    return losses


def is_informative(history: History) -> bool:
    """Whether a model can learn from the rows: one is complete, or pruned with a loss."""
    reported = (history.status == Status.PRUNED) & ~np.isnan(history.losses)
    return bool(reported.any() or np.any(history.status == Status.COMPLETE))


def all_alike(history: History) -> bool:
    """Whether there are several finished rows, all of them successes of the same loss.

    Then no model of this search knows where to search. Differences by rounding do not count.
    """
    done = history.first(history.n_finished)
    if len(done) < 2 or (done.status != Status.COMPLETE).any() or not done.feasible.all():
        return False
    low, high = float(done.losses.min()), float(done.losses.max())
    return high - _SAME * abs(high) <= low


def with_diverged_as_failed(history: History) -> History:
    """The history, in which complete rows with a diverged loss have failed.

    They show where not to search, as failures do. Their losses would be a cliff, or outliers among
    good rows, that no smooth model fits. The losses of feasible rows set the limit.
    """
    complete = history.status == Status.COMPLETE
    limit = divergence_limit(history.losses[complete & history.feasible])
    diverged = complete & (history.losses > limit)
    if not diverged.any():
        return history
    return replace(history, status=np.where(diverged, Status.FAILED, history.status))


def with_substitute_losses(history: History) -> History:
    """The history with substitutes for the losses until a row is complete and feasible.

    Without a complete row they are the ranks of the pruned rows, later steps first and better
    losses first within a step. Without a feasible row they are the sums of the violations of the
    constraints, each divided by its mean violation; an unknown one counts as the mean.
    """
    complete = history.status == Status.COMPLETE
    if not complete.any():
        pruned = np.flatnonzero(history.status == Status.PRUNED)
        status, losses = history.status.copy(), np.full(len(history), np.nan)
        status[pruned] = Status.COMPLETE
        losses[_by_progress(history, pruned)] = np.arange(len(pruned))
        return replace(history, losses=losses, status=status)
    if (complete & history.feasible).any():
        return history
    excess = np.clip(history.constraints[complete], 0.0, HUGE)
    known = ~np.isnan(excess)
    scale = np.where(known, excess, 0.0).sum(axis=0) / np.maximum((excess > 0.0).sum(axis=0), 1)
    shares = np.where(known, excess, scale) / np.where(scale > 0.0, scale, 1.0)
    losses = history.losses.copy()
    losses[complete] = shares.sum(axis=1)
    return replace(history, losses=losses)


def _by_progress(history: History, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Pruned rows, later steps first and better losses first within a step."""
    budget = np.nan_to_num(history.budget[rows], nan=-np.inf)
    loss = np.nan_to_num(history.losses[rows], nan=np.inf)
    return np.asarray(rows[np.lexsort((history.number[rows], loss, -budget))])


FailedTrials = Literal["avoid", "ignore"]
Incumbent = Literal["observed", "predicted"]

# A crash costs a trial and often a machine: success must be likely enough to happen four times.
_CAUTION = 4.0


@dataclass(frozen=True)
class ModelSettings:
    """Which models are fitted on a history, and how.

    Attributes:
        surrogate: Template of the loss model; copied, never fitted itself.
        target: Transform of the losses, see ``transform``.
        max_rows: Most rows to fit on: the best ones as one half, others at random; None for all.
        failed_trials: ``"avoid"`` learns a probability of success, ``"ignore"`` does not. With
            ``"avoid"`` evaluations whose loss has diverged count as failures, see
            ``records.scores.divergence_limit``.
        timed: Whether to model the running time.
        incumbent: Target to improve on: the best ``"observed"`` one, or the best ``"predicted"``
            for an evaluation, which a lucky noisy one does not lower.

    Raises:
        ValueError: For a setting outside its range.
        TypeError: For a setting of the wrong type, or a surrogate without ``fit`` and ``predict``.
    """

    surrogate: Surrogate | SurrogateTemplate
    target: Target = "log_regret"
    max_rows: int | None = 500
    failed_trials: FailedTrials = "avoid"
    timed: bool = False
    incumbent: Incumbent = "observed"

    def __post_init__(self) -> None:
        check_integer("max_rows", self.max_rows, 2, optional=True)
        one_of("target", self.target, TARGETS)
        one_of("incumbent", self.incumbent, get_args(Incumbent))
        one_of("failed_trials", self.failed_trials, get_args(FailedTrials))
        if not isinstance(self.surrogate, SurrogateTemplate):
            check_surrogate(self.surrogate)


@dataclass(frozen=True)
class FittedModels:
    """Fitted models and the facts an acquisition needs.

    Attributes:
        surrogate: Fitted model of the targets.
        targets: The transformed losses.
        best: Best target f*, observed or predicted as the settings say, of a feasible row if
            there is one; infinite without any row.
        best_rows: Positions in the history, best loss first, feasible ones first.
        running_time: Model of ln seconds; None where no costs are known or wanted.
        feasibility: Model of the probability of success; None where nothing ever failed.
        n_rows: Number of finished rows.
        learnt: Positions, among the targets, of the rows that the surrogate was fitted on.
        of_losses: Whether the targets are those of losses, not of substitutes.
    """

    surrogate: Surrogate
    targets: Targets
    best: float
    best_rows: npt.NDArray[np.int64]
    running_time: RunningTime | None
    feasibility: Feasibility | None
    n_rows: int
    learnt: npt.NDArray[np.int64]
    of_losses: bool = True

    def predict(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation (m,) of the target; a bare bound has deviation 0.

        Raises:
            SurrogateFailure: If the surrogate raises, or answers with the wrong shape or NaN.
        """
        with as_failure("predict of {!r}", self.surrogate):
            answer = self.surrogate.predict(features)
            mean, std = answer if isinstance(answer, tuple) else (answer, np.zeros(len(features)))
            mean = np.asarray(mean, dtype=np.float64).reshape(len(features))
            std = np.asarray(std, dtype=np.float64).reshape(len(features))
        if np.isnan(mean).any() or np.isnan(std).any():
            raise SurrogateFailure(f"{self.surrogate!r} predicted NaN.")
        return mean, std

    def improving_on(self, features: FloatArray) -> FittedModels:
        """The models whose target to improve on is the least one predicted for ``features``."""
        return replace(self, best=float(self.predict(features)[0].min()))

    def beside(self, pending: FloatArray) -> FittedModels:
        """The models as if configurations with features ``pending`` (p, f) had been observed.

        Raises:
            SurrogateFailure: If the surrogate raises.
        """
        assert isinstance(self.surrogate, PendingAware)
        with as_failure("beside of {!r}", self.surrogate):
            return replace(self, surrogate=self.surrogate.beside(pending))

    def promise(self, features: FloatArray) -> FloatArray:
        """What the earlier tasks promise (m,); SurrogateFailure if the surrogate raises."""
        assert isinstance(self.surrogate, Promising)
        with as_failure("promise of {!r}", self.surrogate):
            return self.surrogate.promise(features)

    def success(self, features: FloatArray) -> FloatArray:
        """Probability of success (m,); 1 where nothing ever failed."""
        if self.feasibility is None:
            return np.ones(len(features))
        with as_failure("predict of {!r}", self.feasibility):
            return self.feasibility.predict(features)

    def log_success(self, features: FloatArray) -> FloatArray:
        """Cautious log P(success)^4 (m,)."""
        return _CAUTION * np.log(self.success(features))

    def log_seconds(self, features: FloatArray) -> FloatArray:
        """Log of the expected seconds (m,)."""
        assert self.running_time is not None
        with as_failure("predict of {!r}", self.running_time):
            return np.log(self.running_time.predict_seconds(features))

    def to_loss(self, target: float) -> float | None:
        """The loss that corresponds to ``target``; None without losses."""
        has_losses = self.of_losses and len(self.targets.losses)
        return self.targets.to_loss(target) if has_losses else None

    @property
    def merits(self) -> FloatArray:
        """Rank correlations (s,) of the targets with the predictions that the surrogate holds out.

        Most surrogates hold out one prediction for each row, so s is 1. Equal targets count once,
        with the mean of their predictions: otherwise repeated evaluations of one plateau would
        count as skill. They lie in [-1, 1], and are 0 for fewer than three distinct targets or
        predictions that are all alike.

        Raises:
            TypeError: If the surrogate is not ``OutOfSample``.
            SurrogateFailure: If it raises.
        """
        if not isinstance(self.surrogate, OutOfSample):
            raise TypeError(
                f"{self.surrogate!r} cannot be judged: it has no held_out(), the predictions"
                " for its rows that were made without them."
            )
        known = self.targets.values[self.learnt]
        with as_failure("held_out of {!r}", self.surrogate):
            predicted = np.atleast_2d(self.surrogate.held_out())
        known_rows = ~np.isnan(predicted).any(axis=0)
        distinct, group = np.unique(known[known_rows], return_inverse=True)
        merits = np.zeros(len(predicted))
        if len(distinct) >= 3:
            sums = [np.bincount(group, row) for row in predicted[:, known_rows]]
            for i, ranks in enumerate(rankdata(sums / np.bincount(group), axis=1)):
                if np.ptp(ranks) > 0.0:
                    merits[i] = np.corrcoef(ranks, np.arange(len(ranks)))[0, 1]
        return merits

    @property
    def shares(self) -> Mapping[str, float] | None:
        """Share of each earlier task in the predictions, if the surrogate has any."""
        return self.surrogate.shares_ if isinstance(self.surrogate, Voting) else None


class SharedFits:
    """The newest model of each kind, for members of a committee that learn from the same rows.

    There is no lock: threads that fit the same model fit equal ones.
    """

    def __init__(self) -> None:
        self._newest: dict[str, tuple[bytes, Any]] = {}

    def fit(self, model: M, *data: npt.NDArray[Any]) -> M:
        """``model`` fitted to ``data``, or the equal one that was fitted before."""
        shapes = [array.shape for array in data]
        digest = hashlib.blake2b(f"{model.random_state} {shapes}".encode(), digest_size=16)
        for array in data:
            digest.update(np.ascontiguousarray(array).tobytes())
        kind, key = type(model).__name__, digest.digest()
        known = self._newest.get(kind)
        if known is None or known[0] != key:
            known = self._newest[kind] = key, model.fit(*data)
        return cast(M, known[1])


def fit_models(
    settings: ModelSettings,
    space: VectorSpace,
    history: History,
    streams: Streams,
    shared: SharedFits | None = None,
) -> FittedModels:
    """Fit all models on ``history`` (finished rows only).

    The random streams are indexed by the number of rows: the same history, the same models.
    Models of seconds and of success that ``shared`` holds for the same rows are not fitted again.

    Raises:
        SurrogateFailure: If a fit raises.
        MemoryMismatch: If the surrogate learns from a memory of which the space can use nothing.
    """
    n, newest = len(history), slice(-(settings.max_rows or len(history)), None)
    avoid = settings.failed_trials == "avoid"
    if avoid:
        history = with_diverged_as_failed(history)
    features = space.features(history.vectors)
    failed = history.status == Status.FAILED
    success = ~failed & history.feasible
    retried = failed
    if failed.any():  # a failure that a retry mended is not due to its configuration
        keys = space.keys(history.vectors)
        retried = failed & np.isin(keys, keys[history.status == Status.COMPLETE])
    asked = np.flatnonzero(~retried)[newest]
    shared = SharedFits() if shared is None else shared
    feasibility, penalised = None, np.zeros(n, dtype=bool)
    if avoid and not success[asked].all():
        feasibility = surrogates.Feasibility(random_state=streams.integer("feasibility", n))
        with as_failure(f"fit of {{!r}} on {n} rows", feasibility):
            feasibility = shared.fit(feasibility, features[asked], success[asked])
            # Other failures may be due to chance. The worst loss there would be a cliff that no
            # smooth model fits, beside rows that may be the best ones.
            if feasibility.predictable:
                penalised[asked] = failed[asked] & (feasibility.held_out() < 0.5)
    counted = with_substitute_losses(history)
    losses = effective_losses(counted, penalised)
    known = np.flatnonzero(~np.isnan(losses))
    targets = transform(losses[known], settings.target if len(known) else "raw")
    order = np.lexsort((known, targets.values, ~success[known]))
    rows = thin_out(targets.values, settings.max_rows, streams.generator("rows", n))
    running_time = None
    with as_failure(f"fit of {{!r}} on {n} rows", settings.surrogate):
        template = settings.surrogate
        if isinstance(template, SurrogateTemplate):
            template = template.for_space(space)
        surrogate = reseed(template, streams.integer("surrogate", n))
        surrogate.fit(features[known[rows]], targets.values[rows])
        timed = np.flatnonzero(settings.timed & ~np.isnan(history.seconds))[newest]
        if len(timed):
            # Failed evaluations took that long. Pruned ones would have taken longer.
            bound = history.status[timed] == Status.PRUNED
            running_time = surrogates.RunningTime(random_state=streams.integer("running_time", n))
            running_time = shared.fit(running_time, features[timed], history.seconds[timed], bound)
    models = FittedModels(
        surrogate=surrogate,
        targets=targets,
        best=float(targets.values[order[0]]) if len(order) else np.inf,
        best_rows=known[order],
        running_time=running_time,
        feasibility=feasibility,
        n_rows=n,
        learnt=rows,
        of_losses=counted is history,
    )
    if settings.incumbent == "observed" or not len(order):
        return models
    return models.improving_on(features[incumbents(known[order], success)])


def incumbents(
    rows: npt.NDArray[np.int64], success: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """The first of ``rows`` (n,), n > 0, best first: those of ``success`` if the best one is."""
    return np.asarray(rows[success[rows] == success[rows[0]]][:_INCUMBENTS])


def thin_out(
    targets: FloatArray, max_rows: int | None, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Positions of at most ``max_rows`` rows: the best half, the others drawn at random."""
    n = len(targets)
    if max_rows is None or n <= max_rows:
        return np.arange(n)
    order = np.argsort(targets, kind="stable")
    n_best = max_rows // 2
    others = rng.choice(order[n_best:], max_rows - n_best, replace=False)
    return np.sort(np.concatenate([order[:n_best], others]))
