"""Propose the next configuration: design -> surrogate -> acquisition -> maximise.

A proposal is a pure function of (space, history, seed, k). Between calls a ``ModelBasedProposer``
keeps only its last models, which may be dropped at any time: the models for n finished rows are
always fitted on the same first rows (see ``schedule``; all with ``refit="always"``), with streams
indexed by their number. A ``Conditional`` surrogate then takes in newer rows. Notation::

    vectors    configurations as ``VectorSpace`` has them, (m, d), NaN = inactive
    features   what the models see of them, (m, f)
    mean, std  predicted target and its standard deviation, (m,), smaller is better
    fixed      values that are decided already, (d,), NaN = free
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np

from automl_plugins._arguments import check_choice, check_finite, check_integer, check_share
from automl_plugins.arrays import FloatArray
from automl_plugins.newest import Newest
from automl_plugins.proposers import design
from automl_plugins.proposers.acquisition import (
    LEAST_RADIUS,
    LocalSearch,
    best_of,
    distance_factor,
    fade_exponent,
    largest_differences,
    log_excess,
    log_score,
    lower_confidence_bound,
    maximize,
    plateau_radii,
)
from automl_plugins.proposers.feasibility import likely_to_succeed
from automl_plugins.proposers.models import (
    FittedModels,
    ModelSettings,
    condition,
    fit_models,
    schedule,
)
from automl_plugins.proposers.proposal import Proposal, Question
from automl_plugins.proposers.refits import SharedFits, key_of_rows, total_seconds
from automl_plugins.proposers.targets import all_alike, incumbents, is_informative
from automl_plugins.proposers.trust_region import trust_region
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams
from automl_plugins.surrogates.base import (
    PendingAware,
    Promising,
    RecordedTemplate,
    SurrogateTemplate,
    log_expected_improvement,
)

Acquisition = Literal["ei", "bound"]
Refit = Literal["schedule", "always"]

_DESIGN_POOL = 512  # candidates among which a design chooses
# 6 in any space were no better on judged tasks, see docs/evidence/families/notes.md.
_LONGEST_START = 12  # most rows of a start design for the number of hyperparameters alone
_CANDIDATES = 1000  # of a proposal by default; half of them, and shorter ascents, lost on networks
# The more rows, the longer a prediction takes and the less one proposal matters.
_MANY_ROWS, _VERY_MANY_ROWS = 64, 128
_WIDE = 20  # more hyperparameters make local searches slow: ``_MANY_ROWS`` shorten them
_SHORTER_ASCENT = 10  # gradients, from many rows on
_FEWER_CANDIDATES = 300  # from very many rows on; with fewer rows, searches of grids were worse
_FEWER_STARTS = dict(n_observed=3, n_candidates=2)  # as the candidates

_PROMISE = 0.05  # promised losses below it are nearly the best, see ``Promising``
_PLATEAU_ROWS = 64  # best rows among which plateaus are looked for

_LEAST = {  # smallest legal value of each setting that is an integer or None
    "cost_budget": 1,
    "interleave": 2,
    "balance": 1,
    "n_startup": 0,
    "n_candidates": 1,
}

_RADIUS = 0.02  # around evaluations that the models do not know, see ``distance_factor``
_SMALL_RADIUS = 0.004  # around running ones that the surrogate knows


@dataclass(frozen=True)
class ProposerSettings(ModelSettings):
    """The settings of a ``ModelBasedProposer``.

    Attributes:
        acquisition: ``"ei"`` (expected improvement) or ``"bound"`` (lower confidence bound).
        xi: Improvement below which EI gains nothing, in units of the transformed loss.
        beta: Standard deviations between the mean and the bound.
        cost_exponent: kappa of gain / seconds^kappa, in [0, 1]; 0 ignores the cost. No effect
            unless seconds are modelled.
        cost_budget: Trials over which kappa falls linearly to 0; None keeps it. No effect unless
            seconds are modelled.
        interleave: Every ``interleave``-th proposal fills the space instead; None never.
        balance: Every ``balance``-th proposal is confined to the branch that has been served least
            for its size, within which the model chooses; None never. So no branch is given up
            after a few bad trials.
        n_startup: Evaluations before the model is asked; None depends on the space: at least 6,
            more with many branches or parameters.
        n_candidates: Random candidates; a space of at most that size is enumerated instead. None
            is 1 000, and 300 from 128 rows on, from 64 with more than 20 hyperparameters.
        search: The local searches from the best candidates and evaluations; with
            ``n_candidates=None`` they have at most five starts where 300 candidates are drawn, and
            ascents at most ten gradients from 64 rows on.
        refit: ``"schedule"`` fits a model at every ``refit_point`` of the finished rows, which
            bounds the time of many proposals; ``"always"`` fits one for each new finished row.
        uniform_start: Draw the start at random instead of filling the space.
        informed: Whether the surrogate can predict before any evaluation; it is then asked after
            ``n_startup`` rows, 0 unless set.
        n_recorded: Number of first evaluations in which one of the best recorded configurations of
            the earlier tasks replaces the chosen one, if the tasks promise nearly their best
            losses, or better, for it; for a ``RecordedTemplate`` of ``Promising`` surrogates.
        plateau_reach: Largest radius around evaluations of equal losses in which a candidate gains
            less, as a share of each range, see ``plateau_radii``; None disables this.

    Raises:
        ValueError: For a setting outside its range.
        TypeError: For a setting of the wrong type.
    """

    acquisition: Acquisition = "ei"
    xi: float = 0.0
    beta: float = 1.0
    cost_exponent: float = 1.0
    cost_budget: int | None = None
    interleave: int | None = None
    balance: int | None = None
    n_startup: int | None = None
    n_candidates: int | None = None
    search: LocalSearch = field(default_factory=LocalSearch)
    refit: Refit = "schedule"
    uniform_start: bool = False
    informed: bool = False
    n_recorded: int = 0
    plateau_reach: float | None = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("acquisition", self.acquisition, get_args(Acquisition))
        check_choice("refit", self.refit, get_args(Refit))
        for name, least in _LEAST.items():
            check_integer(name, getattr(self, name), least, optional=True)
        check_integer("n_recorded", self.n_recorded, 0)
        check_finite("xi", self.xi)
        check_finite("beta", self.beta)
        check_finite("plateau_reach", self.plateau_reach, least=LEAST_RADIUS, optional=True)
        check_share("cost_exponent", self.cost_exponent)


class ModelBasedProposer:
    """Proposes configurations with the given settings; its only state is a cache."""

    def __init__(self, settings: ProposerSettings) -> None:
        self.settings = settings
        self._fitted: Newest[FittedModels] = Newest()
        self._conditioned: Newest[FittedModels] = Newest()

    def propose(
        self,
        space: VectorSpace,
        history: History,
        streams: Streams,
        k: int,
        fixed: FloatArray | None = None,
    ) -> Proposal:
        """See ``Proposer.propose``."""
        # None says that all is free: a small space may be enumerated, ``balance`` has its turns.
        if fixed is not None and np.isnan(fixed).all():
            fixed = None
        settings, rng = self.settings, streams.generator("candidates", k)
        # ``given`` has the user's values only: a turn of ``balance`` fixes a branch in ``asked``,
        # and the incumbent to improve on may lie in another one.
        asked = given = Question(space, history, k, fixed, rng)
        starting = self.starts(space, history, k)
        if starting or (settings.interleave is not None and k % settings.interleave == 0):
            pool, _ = asked.unseen(_DESIGN_POOL)
            if starting and len(asked.earlier) >= self.n_startup(space):
                likely = likely_to_succeed(
                    space,
                    history,
                    streams,
                    pool,
                    ignores_failed=settings.failed_trials == "ignore",
                    max_rows=settings.max_rows,
                )
                pool = pool[likely]
            if starting and settings.uniform_start:
                return Proposal(pool[rng.integers(len(pool))], "random")
            return Proposal(design.next_point(space, pool, asked.earlier.vectors, rng), "design")
        if fixed is None and design.is_branch_turn(space, k, settings.balance):
            pool, _ = asked.unseen(_DESIGN_POOL)
            columns, fixed = list(space.branching), np.full(space.d, np.nan)
            fixed[columns] = design.branch(space, pool, asked.earlier.vectors, rng)[0][0, columns]
            asked = replace(asked, fixed=fixed)
        models, fit_seconds = self.models(space, history, streams)
        return self._best(asked, self._with_incumbent_in_reach(models, given), fit_seconds)

    def starts(self, space: VectorSpace, history: History, k: int) -> bool:
        """Whether evaluation ``k`` belongs to the start design, which asks no model.

        The start lasts while all losses are equal: a process would visit one corner of the space
        after another, where it is least certain, but a better loss may be anywhere. Configurations
        that are likely to fail are left out then. A surrogate with earlier tasks need not wait.
        """
        settings = self.settings
        if len(history.before(k)) < self.n_startup(space):
            return True
        if settings.informed:
            return False
        from_others = isinstance(settings.surrogate, SurrogateTemplate)
        return not is_informative(history) or (all_alike(history) and not from_others)

    def n_startup(self, space: VectorSpace) -> int:
        """Number of rows of the start design; it depends on the space unless it is set."""
        if self.settings.n_startup is not None or self.settings.informed:
            return self.settings.n_startup or 0
        options = sum(int(space.n_values[column]) for column in space.branching)
        # Each option is tried, and there are more rows than parameters.
        return max(6, 1 + options, min(1 + space.depth, _LONGEST_START))

    # --- the model phase ------------------------------------------------------------------

    def models(
        self,
        space: VectorSpace,
        history: History,
        streams: Streams,
        shared: SharedFits | None = None,
    ) -> tuple[FittedModels, float | None]:
        """The models for a proposal, and the seconds of their fit; None if they were cached."""
        settings, finished = self.settings, history.first(history.n_finished)
        n_fitted = n_known = len(finished)
        if settings.refit == "schedule":
            n_fitted, n_known = schedule(finished, settings)
        training = finished.first(n_fitted)
        if not is_informative(training):  # the first informative row is newer
            training, n_known = finished, len(finished)
        fitted, fit_seconds = self._fitted.timed(
            (space, key_of_rows(training, streams.seed)),
            lambda: fit_models(settings, space, training, streams, shared),
        )
        if len(training) == n_known:
            return fitted, fit_seconds
        # Kept apart: the fit serves several proposals, each of which may know more rows.
        known = finished.first(n_known)
        models, seconds = self._conditioned.timed(
            # The same known rows may follow fits of different numbers of rows.
            (space, len(training), key_of_rows(known, streams.seed)),
            lambda: condition(fitted, settings, space, known, streams),
        )
        return models, total_seconds(fit_seconds, seconds)

    def _with_incumbent_in_reach(self, models: FittedModels, given: Question) -> FittedModels:
        """The models, with the best configuration that may still be proposed as the incumbent.

        The best row may lie outside a range that has shrunk, or contradict a fixed value. If
        nothing in reach improves on it, EI would look for the least certain configuration.
        """
        history, rows = given.history, models.learnt.best_rows
        first = rows[:1]
        if self.settings.incumbent == "predicted" and len(rows):
            first = incumbents(rows, models.learnt.success)  # any may have the best prediction
        # Nearly always all are in reach. Without any row all() is True.
        if given.space.within_reach(history.vectors[first], given.fixed).all():
            return models
        rows = rows[given.space.within_reach(history.vectors[rows], given.fixed)]
        if len(rows):
            vectors = history.vectors[incumbents(rows, models.learnt.success)]
        else:
            vectors, _ = given.unseen(_DESIGN_POOL)
        return models.improving_on(given.space.features(vectors))

    def _best(self, asked: Question, models: FittedModels, fit_seconds: float | None) -> Proposal:
        settings, space, rng = self.settings, asked.space, asked.rng
        n_candidates, search = _effort(settings, space.d, models.learnt.n_rows)
        region = trust_region(asked, models)
        first, complete = (region or asked).unseen(n_candidates)
        score = _CandidateScore(settings, asked, models)
        models = score.models  # with running evaluations taken in, if the surrogate can
        if complete:
            vector = best_of(first, *score(first), rng)
        else:
            vector = maximize(
                space,
                score,
                first,
                asked.history.vectors[models.learnt.best_rows],
                asked.fixed,
                rng,
                repeats=asked.repeats.among,
                search=search,
                ends=None if region is None else (region.low, region.high),
            )
        # After the search, because it depends on what is promised for the chosen configuration.
        recorded = self._choose_recorded(asked, models, vector)
        if len(recorded):
            vector = best_of(recorded, *score(recorded), rng)
        features = space.features(vector[None])
        mean, std = models.predict(features)
        success = None if models.feasibility is None else float(models.success(features)[0])
        timed = models.running_time is not None
        return Proposal(
            vector,
            "model",
            loss=models.to_loss(float(mean[0])),
            bound=models.to_loss(float(mean[0] - settings.beta * std[0])),
            seconds=float(np.exp(models.log_seconds(features)[0])) if timed else None,
            success=success,
            n_rows=models.learnt.n_rows,
            n_diverged=models.learnt.n_diverged,
            n_infeasible=models.learnt.n_infeasible,
            fit_seconds=fit_seconds,
            shares=models.shares,
        )

    def _choose_recorded(
        self, asked: Question, models: FittedModels, vector: FloatArray
    ) -> FloatArray:
        """Best recorded configurations (n, d) that repeat nothing; no row to keep ``vector``."""
        surrogate, template, space = models.surrogate, self.settings.surrogate, asked.space
        if (
            len(asked.earlier) < self.settings.n_recorded
            and isinstance(surrogate, Promising)
            and isinstance(template, RecordedTemplate)
            and sum(surrogate.shares_.values()) > 0.0
            # So low a promise may be an extrapolation of the tasks' processes; recorded
            # configurations did reach their losses.
            and models.promise(space.features(vector[None]))[0] < _PROMISE
        ):
            vectors = template.best_recorded(space)
            repeated = asked.repeats.among(vectors)
            return vectors[~repeated & space.agrees(vectors, asked.fixed)]
        return np.empty((0, space.d))


class _CandidateScore:
    """The ``Score`` that one proposal maximises: gain, success, seconds and distances in one.

    Attributes:
        models: The given models, which know running evaluations if the surrogate can.
    """

    def __init__(self, settings: ProposerSettings, asked: Question, models: FittedModels) -> None:
        self._settings, self._space = settings, asked.space
        # Running evaluations, and finished ones newer than the model, are unknown to it.
        unknown = asked.space.features(asked.earlier.vectors[models.learnt.n_rows :])
        running = asked.earlier.status[models.learnt.n_rows :] == Status.RUNNING
        radius = np.full(len(unknown), _RADIUS)
        if running.any() and isinstance(models.surrogate, PendingAware):
            # The surrogate then expects little around them: only copies must be kept away.
            known = unknown[running]
            known = known[~np.isnan(known).all(axis=1)]  # one from another space may be all NaN
            models = models.beside(known) if len(known) else models
            radius[running] = _SMALL_RADIUS
        self.models, self._unknown, self._radius = models, unknown, radius
        self._flat, self._radii = _plateaus(asked.space, asked.history, settings.plateau_reach)
        self._exponent = 0.0
        if models.running_time is not None:
            self._exponent = fade_exponent(settings.cost_exponent, asked.k, settings.cost_budget)
        self._reference: float | None = None

    def __call__(self, vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Score and predicted target (m,) of ``vectors`` (m, d)."""
        models, features = self.models, self._space.features(vectors)
        mean, std = models.predict(features)
        if self._settings.acquisition == "ei" and np.isfinite(models.best):
            log_gain = log_expected_improvement(mean, std, models.best, self._settings.xi)
        else:
            # Without an observation there is nothing to improve on: the mean alone decides.
            beta = self._settings.beta if np.isfinite(models.best) else 0.0
            utility = lower_confidence_bound(mean, std, beta)
            if self._is_plain:
                return utility, mean
            if self._reference is None:  # fixed by the first batch, else it moves with the search
                self._reference = _reference(utility, median=self._exponent > 0.0)
            log_gain = log_excess(utility, self._reference)
        return log_score(
            log_gain,
            log_success=models.log_success(features),
            log_seconds=models.log_seconds(features) if self._exponent else 0.0,
            exponent=self._exponent,
            log_distance=self._log_distance(features),
        ), mean

    @property
    def _is_plain(self) -> bool:
        """Whether nothing scales the gain, so that a bound, which may be negative, can stay."""
        is_scaled = self._exponent > 0.0 or self.models.feasibility is not None
        return not (is_scaled or len(self._unknown) or len(self._flat))

    def _log_distance(self, features: FloatArray) -> FloatArray | float:
        """Log of the factor (m,) that lowers the gain of ``features`` (m, f) near evaluations."""
        # The radii of plateaus are shares of each range, so the largest difference counts there.
        distance: FloatArray | float = 1.0
        if len(self._unknown):
            gaps = design.distances(features, self._unknown)
            distance = distance_factor(gaps, self._radius)
        if len(self._flat):
            gaps = largest_differences(features, self._flat)
            distance = distance * distance_factor(gaps, self._radii)
        return np.log(np.maximum(distance, 1e-12))  # log(0) would warn


def _plateaus(
    space: VectorSpace, history: History, reach: float | None
) -> tuple[FloatArray, FloatArray]:
    """Features (p, f) of the best evaluations that lie on plateaus, and their radii (p,)."""
    if reach is None:
        return np.empty((0, 1)), np.empty(0)
    complete = np.flatnonzero(history.status == Status.COMPLETE)
    # The best ones: only plateaus of low losses attract, and pairs grow with the square.
    order = np.argsort(history.losses[complete], kind="stable")
    best = complete[order[:_PLATEAU_ROWS]]
    features = space.features(history.vectors[best])
    radii = plateau_radii(features, history.losses[best], reach)
    return features[radii > 0.0], radii[radii > 0.0]


def _effort(settings: ProposerSettings, d: int, n_rows: int) -> tuple[int, LocalSearch]:
    """Number of candidates, and the local search from them; both shrink with many rows."""
    search = settings.search
    if settings.n_candidates is not None:
        return settings.n_candidates, search
    if n_rows >= _MANY_ROWS:
        search = search.at_most(n_gradients=_SHORTER_ASCENT)
    if n_rows >= (_MANY_ROWS if d > _WIDE else _VERY_MANY_ROWS):
        return _FEWER_CANDIDATES, search.at_most(**_FEWER_STARTS)
    return _CANDIDATES, search


def _reference(utility: FloatArray, *, median: bool) -> float:
    """Reference of a bound: the median (GBQR-median, eq. 5.2) or just below every candidate."""
    if median:
        return float(np.median(utility))
    low, high = float(utility.min()), float(utility.max())
    # Below every candidate: a gain of 0 stays 0, whatever success and seconds are. And by at least
    # 1e-9 of the bound, or the difference would be rounded away.
    return low - 1e-3 * max(high - low, 1e-9 * max(abs(low), abs(high)), 1e-12)
