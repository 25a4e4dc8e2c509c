"""The models behind one proposal: of the targets, the running time and the success."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from scipy.stats import rankdata

from automl_plugins import surrogates
from automl_plugins._arguments import check_choice, check_integer
from automl_plugins.arrays import BoolArray, FloatArray, IntArray
from automl_plugins.proposers.feasibility import SuccessModels, fit_feasibility, retried
from automl_plugins.proposers.proposal import SurrogateFailure, as_failure
from automl_plugins.proposers.refits import SharedFits, refit_point
from automl_plugins.proposers.targets import (
    TARGETS,
    Target,
    Targets,
    choose_rows,
    effective_losses,
    find_substitute,
    incumbents,
    successes,
    transform,
    with_diverged_as_failed,
    with_substitute_losses,
)
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams
from automl_plugins.surrogates.base import (
    Conditional,
    NoiseAware,
    OutOfSample,
    PendingAware,
    Promising,
    Surrogate,
    SurrogateTemplate,
    Voting,
    check_surrogate,
    prepare,
)

if TYPE_CHECKING:
    from automl_plugins.surrogates import RunningTime

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
        max_rows: Largest number of rows to fit on: half of them the best, the others at random;
            models of seconds and of success take the newest. None for all.
        failed_trials: ``"avoid"`` learns which evaluations fail, and counts those whose loss has
            diverged as failures, see ``records.scores.divergence_limit``; ``"ignore"`` does
            neither. Constraints, which Optuna's trials may have, are learnt with both.
        timed: Whether to model the running time.
        incumbent: Target to improve on: the best ``"observed"`` one, or the best ``"predicted"``
            one of the best evaluations, which a loss that is low by noise hardly lowers.
        feasible_only: Whether the surrogate leaves out rows that break a constraint, once there
            are others.

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
    feasible_only: bool = False

    def __post_init__(self) -> None:
        check_integer("max_rows", self.max_rows, 2, optional=True)
        check_choice("target", self.target, TARGETS)
        check_choice("incumbent", self.incumbent, get_args(Incumbent))
        check_choice("failed_trials", self.failed_trials, get_args(FailedTrials))
        if not isinstance(self.surrogate, SurrogateTemplate):
            check_surrogate(self.surrogate)


@dataclass(frozen=True)
class Learnt:
    """The targets and rows that a surrogate learns from.

    Attributes:
        targets: The transformed losses of the rows that have one.
        rows: Positions, among the targets, of the rows to fit on.
        positions: Positions of these rows in the history.
        success: Mask (n_rows,) of the rows that count as successes, see ``successes``.
        best_rows: Positions in the history, best target first, successes first.
        best: The target of the first of ``best_rows``; infinite without any row.
        penalised: Mask (n_rows,) of the failed rows that count with the worst loss.
        n_diverged: Number of rows that count as failures because their loss has diverged.
        n_infeasible: Number of complete rows while none is feasible, so violations are learnt; 0
            from then on.
        of_losses: Whether the targets stand for losses, not for what ``find_substitute`` names.
    """

    targets: Targets
    rows: IntArray
    positions: IntArray
    success: BoolArray
    best_rows: IntArray
    best: float
    penalised: BoolArray
    n_diverged: int
    n_infeasible: int
    of_losses: bool

    @property
    def n_rows(self) -> int:
        """Number of finished rows."""
        return len(self.penalised)

    @property
    def values(self) -> FloatArray:
        """The targets to fit on."""
        return self.targets.values[self.rows]

    @classmethod
    def of(
        cls,
        reported: History,
        history: History,
        penalised: BoolArray,
        settings: ModelSettings,
        streams: Streams,
    ) -> Learnt:
        """From rows as they were ``reported`` and as ``history`` counts them; ``_as_counted``."""
        substitute, success = find_substitute(history), successes(history)
        counted = with_substitute_losses(history)
        # NaN for a row without a loss: a failed one that is not penalised.
        losses = effective_losses(counted, penalised)
        known = np.flatnonzero(~np.isnan(losses))
        # Without a row there is no least loss, no median and no mean: "raw" needs none.
        targets = transform(losses[known], settings.target if len(known) else "raw")
        # Failed and infeasible rows come last, however good their losses; the first row has f*.
        order = np.lexsort((targets.values, ~success[known]))
        drawn = streams.generator("rows", len(history))
        feasible = history.feasible[known]
        wanted = feasible | (not settings.feasible_only or not feasible.any())
        rows = choose_rows(targets.values, wanted, settings.max_rows, drawn)
        n_complete = int((history.status == Status.COMPLETE).sum())
        return cls(
            targets=targets,
            rows=rows,
            positions=known[rows],
            success=success,
            best_rows=known[order],
            best=float(targets.values[order[0]]) if len(order) else np.inf,
            penalised=penalised,
            n_diverged=int((history.status != reported.status).sum()),
            n_infeasible=n_complete if substitute == "violations" else 0,
            of_losses=substitute is None,
        )


@dataclass(frozen=True)
class FittedModels:
    """Fitted models and the facts an acquisition needs.

    Attributes:
        surrogate: Fitted model of the targets.
        learnt: The targets, and the rows that they come from.
        best: Best target f*, observed or predicted as the settings say, of a feasible row if
            there is one; infinite without any row.
        running_time: Model of ln seconds; None where no costs are known or wanted.
        feasibility: Models of the probability of success; None where nothing ever failed.
    """

    surrogate: Surrogate
    learnt: Learnt
    best: float
    running_time: RunningTime | None
    feasibility: SuccessModels | None

    def predict(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation (m,) of the target; a bare bound has deviation 0.

        Raises:
            SurrogateFailure: If the surrogate raises, or answers with the wrong shape or NaN.
        """
        with as_failure("predict of {!r}", self.surrogate):
            answer = self.surrogate.predict(features)
            mean, std = answer if isinstance(answer, tuple) else (answer, np.zeros(len(features)))
            mean = np.asarray(mean, dtype=np.float64).reshape(len(features))  # may be (m, 1)
            std = np.asarray(std, dtype=np.float64).reshape(len(features))
        if np.isnan(mean).any() or np.isnan(std).any():
            raise SurrogateFailure(f"{self.surrogate!r} predicted NaN.")
        return mean, std

    def improving_on(self, features: FloatArray) -> FittedModels:
        """The models with the least prediction for ``features`` (m, f) as target to improve on."""
        return replace(self, best=float(self.predict(features)[0].min()))

    def beside(self, pending: FloatArray) -> FittedModels:
        """The models as if configurations with features ``pending`` (p, f) had been observed.

        The predictions of those that are likely to succeed count for the target to improve on,
        too: else all workers would gather around a configuration predicted better than any row.

        Raises:
            SurrogateFailure: If the surrogate raises.
        """
        assert isinstance(self.surrogate, PendingAware)
        with as_failure("beside of {!r}", self.surrogate):
            seen = replace(self, surrogate=self.surrogate.beside(pending))
        likely = pending[self.success(pending) >= 0.5]  # a failure improves nothing
        if not len(likely) or not np.isfinite(self.best):  # nothing observed to improve on
            return seen
        return replace(seen, best=min(self.best, float(seen.predict(likely)[0].min())))

    def promise(self, features: FloatArray) -> FloatArray:
        """Losses (m,) that earlier tasks promise; SurrogateFailure if the surrogate raises."""
        assert isinstance(self.surrogate, Promising)
        with as_failure("promise of {!r}", self.surrogate):
            return self.surrogate.promise(features)

    def success(self, features: FloatArray) -> FloatArray:
        """Probability of success (m,); 1 where nothing ever failed."""
        if self.feasibility is None:
            return np.ones(len(features))
        return np.exp(self.feasibility.log_success(features))

    def log_success(self, features: FloatArray) -> FloatArray:
        """Cautious log P(success)^4 (m,); log P(success) as long as no row is feasible."""
        if self.feasibility is None:
            return np.zeros(len(features))
        # A crash then costs no more than any other evaluation, and caution would creep.
        caution = 1.0 if self.learnt.n_infeasible else _CAUTION
        return caution * self.feasibility.log_success(features)

    def log_seconds(self, features: FloatArray) -> FloatArray:
        """Log of the expected seconds (m,)."""
        assert self.running_time is not None
        with as_failure("predict of {!r}", self.running_time):
            return np.log(self.running_time.predict_seconds(features))

    def to_loss(self, target: float) -> float | None:
        """The loss that corresponds to ``target``; None without losses."""
        targets = self.learnt.targets
        return targets.to_loss(target) if self.learnt.of_losses and len(targets.losses) else None

    @cached_property
    def _held_out(self) -> tuple[FloatArray, FloatArray]:
        """Targets (n,) of the rows whose predictions (s, n), made without the row, are known."""
        assert isinstance(self.surrogate, OutOfSample)
        with as_failure("held_out of {!r}", self.surrogate):
            predicted = np.atleast_2d(self.surrogate.held_out())
        known = ~np.isnan(predicted).any(axis=0)
        return self.learnt.values[known], predicted[:, known]

    @property
    def n_held_out(self) -> int:
        """Number of rows behind ``merits``; raises the same error."""
        return len(self._held_out[0])

    @property
    def merits(self) -> FloatArray:
        """Rank correlations (s,) of the targets with the held-out predictions, in [-1, 1].

        Most surrogates hold out one prediction for each row, so s is 1. Equal targets count once,
        with the mean of their predictions: otherwise repeated evaluations of one plateau would
        count as skill. 0 if there are fewer than three distinct targets, or all predictions are
        equal.

        Raises:
            SurrogateFailure: If the surrogate raises.
        """
        targets, predicted = self._held_out
        distinct, group = np.unique(targets, return_inverse=True)  # ascending
        merits = np.zeros(len(predicted))
        if len(distinct) >= 3:
            sums = [np.bincount(group, row) for row in predicted]
            for i, ranks in enumerate(rankdata(sums / np.bincount(group), axis=1)):
                if np.ptp(ranks) > 0.0:
                    merits[i] = np.corrcoef(ranks, np.arange(len(ranks)))[0, 1]
        return merits

    @property
    def noise(self) -> float:
        """Variance of the noise, see ``NoiseAware``; 0 if the surrogate does not learn it."""
        return self.surrogate.noise_ if isinstance(self.surrogate, NoiseAware) else 0.0

    @property
    def shares(self) -> Mapping[str, float] | None:
        """Share of each earlier task in the predictions, if the surrogate has any."""
        return self.surrogate.shares_ if isinstance(self.surrogate, Voting) else None


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
        MemoryMismatch: If the space can use nothing of the memory that the surrogate learns from.
    """
    n = len(history)
    reported, history = history, _as_counted(history, settings)
    features = space.features(history.vectors)
    failed = history.status == Status.FAILED
    shared = SharedFits() if shared is None else shared
    feasibility, asked = fit_feasibility(
        space,
        history,
        features,
        streams,
        ignores_failed=settings.failed_trials == "ignore",
        max_rows=settings.max_rows,
        shared=shared,
    )
    penalised = np.zeros(n, dtype=bool)
    # Only predictable failures get the worst loss. Others may be due to chance, beside the best
    # rows, and the worst loss there would be a cliff that no smooth model fits.
    failures = None if feasibility is None else feasibility.failures
    if failures is not None and failures.predictable:
        penalised[asked] = failed[asked] & (failures.held_out() < 0.5)  # each (len(asked),)
    learnt = Learnt.of(reported, history, penalised, settings, streams)
    with as_failure(f"fit of {{!r}} on {n} rows", settings.surrogate):
        given = settings.surrogate
        plain = given.for_space(space) if isinstance(given, SurrogateTemplate) else given
        surrogate = prepare(plain, streams.integer("surrogate", n), space.implied)
        surrogate.fit(features[learnt.positions], learnt.values)
    running_time = None
    newest = slice(-(settings.max_rows or n), None)
    timed = np.flatnonzero(settings.timed & ~np.isnan(history.seconds))[newest]
    if len(timed):
        # Failed evaluations took that long. Pruned ones would have taken longer.
        bound = history.status[timed] == Status.PRUNED
        running_time = surrogates.RunningTime(random_state=streams.integer("running_time", n))
        with as_failure(f"fit of {{!r}} on {n} rows", running_time):
            running_time = shared.fit(running_time, features[timed], history.seconds[timed], bound)
    models = FittedModels(surrogate, learnt, learnt.best, running_time, feasibility)
    return _with_incumbent(models, settings, features)


def schedule(history: History, settings: ModelSettings) -> tuple[int, int]:
    """How many first rows of ``history`` models are fitted on, and how many they know.

    If a ``Conditional`` surrogate cannot take in all newer rows, it is fitted as often as others.
    """
    n = len(history)
    if not isinstance(settings.surrogate, Conditional):
        return refit_point(n), refit_point(n)
    n_fitted = refit_point(n, conditional=True)
    n_known = n_conditional(history, n_fitted, settings)
    if n_known < n:
        n_fitted = refit_point(n)
        n_known = max(n_fitted, n_conditional(history, n_fitted, settings))
    return n_fitted, n_known


def n_conditional(history: History, n_fitted: int, settings: ModelSettings) -> int:
    """Number of first rows of ``history`` that models of the first ``n_fitted`` may know.

    Their surrogate takes in further rows up to the first failure, which only a fit learns. 0 if
    later rows have changed what the models were fitted to: a first feasible or complete row
    replaces the substitutes for losses, and a better loss may show that another one has diverged.
    """
    now, then = (_as_counted(h, settings) for h in (history, history.first(n_fitted)))
    learns, learnt = find_substitute(now), find_substitute(then)
    success, known = successes(now), successes(then)
    if learns != learnt or (success[:n_fitted] != known).any():
        return 0
    failed = ~success[n_fitted:]
    if settings.failed_trials == "ignore":
        failed &= now.status[n_fitted:] != Status.FAILED
    return n_fitted + int(failed.argmax()) if failed.any() else len(history)


def condition(
    models: FittedModels,
    settings: ModelSettings,
    space: VectorSpace,
    history: History,
    streams: Streams,
) -> FittedModels:
    """``models`` of the first rows of ``history``, with a surrogate that takes in all its rows.

    The slow parts stay as they were fitted: the kernels of the surrogate, and the models of
    seconds and of success. So ``history`` should have no more rows than ``n_conditional`` counts.

    Raises:
        SurrogateFailure: If the surrogate raises.
    """
    assert isinstance(models.surrogate, Conditional)
    reported, history = history, _as_counted(history, settings)
    features = space.features(history.vectors)
    penalised = np.zeros(len(history), dtype=bool)
    penalised[: models.learnt.n_rows] = models.learnt.penalised
    # Newer rows may have mended a failure since.
    penalised &= (history.status == Status.FAILED) & ~retried(space, history)
    learnt = Learnt.of(reported, history, penalised, settings, streams)
    with as_failure(f"conditioned of {{!r}} on {len(history)} rows", models.surrogate):
        surrogate = models.surrogate.conditioned(features[learnt.positions], learnt.values)
    models = replace(models, surrogate=surrogate, learnt=learnt, best=learnt.best)
    return _with_incumbent(models, settings, features)


def _as_counted(history: History, settings: ModelSettings) -> History:
    """The history with the failures that ``settings`` count; see ``failed_trials``."""
    return with_diverged_as_failed(history) if settings.failed_trials == "avoid" else history


def _with_incumbent(
    models: FittedModels, settings: ModelSettings, features: FloatArray
) -> FittedModels:
    """The models with the target to improve on that ``settings.incumbent`` asks for."""
    learnt = models.learnt
    if settings.incumbent == "observed" or not len(learnt.best_rows):
        return models
    return models.improving_on(features[incumbents(learnt.best_rows, learnt.success)])
