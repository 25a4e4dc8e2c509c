"""``SurrogateSampler``: the core's ``Proposer`` behind Optuna's sampler interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal
from zlib import crc32

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.logging import get_logger
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from automl_plugins.design import apportion, stratified
from automl_plugins.models import FailedTrials, ModelSettings
from automl_plugins.proposer import Proposal, Proposer, ProposerSettings, SurrogateFailure
from automl_plugins.streams import Streams
from automl_plugins.surrogates import ExtraTrees, GaussianProcess, QuantileBoosting, RandomForest
from automl_plugins.targets import TARGETS, Target

from . import _private
from ._cache import Cache
from ._clock import Clock, Key
from ._columns import Cost, checked_cost
from ._memory import Memory, View
from ._space import UnionSpace

_logger = get_logger("optuna.automl_plugins")

SURROGATES = {
    "quantile_boosting": QuantileBoosting,
    "random_forest": RandomForest,
    "extra_trees": ExtraTrees,
    "gaussian_process": GaussianProcess,
}
AcquisitionName = Literal["ei", "ei_per_second", "bound", "bound_per_second"]


class SurrogateSampler(BaseSampler):
    """Bayesian optimisation with any surrogate, on any define-by-run objective.

    Conditional parameters are modelled jointly: the union of all parameters seen is one space,
    its conditions are inferred from the trials. Failed, pruned and running trials count. A
    proposal depends on the seed, the trial's number and the stored trials alone, so a resumed
    study goes on as if it had never stopped.

    Args:
        surrogate: ``"quantile_boosting"``, ``"random_forest"``, ``"extra_trees"``,
            ``"gaussian_process"``, or an object with ``fit(X, y)`` and ``predict(X)``, the latter
            returning (mean, std) or a bound of the loss.
        acquisition: ``"ei"``, ``"bound"`` (lower confidence bound of the loss), or either with
            ``"_per_second"``.
        interleave: Make every ``interleave``-th proposal a space-filling one; None never does.
        balance: Confine every ``balance``-th proposal to the branch of a conditional space that
            has been served least for its size; None never does.
        xi: Improvement below which EI gains nothing, in units of the transformed loss.
        beta: Standard deviations between the predicted mean and the bound.
        target: Transform of the losses: ``"log_regret"``, ``"normal_scores"`` (only their order
            counts), ``"standardize"`` or ``"raw"``; see ``automl_plugins.targets``.
        cost_exponent: kappa in gain / seconds^kappa, in [0, 1]; used per second only.
        cost_budget: Number of trials over which kappa falls to 0; None keeps it.
        n_startup_trials: Trials before the model is asked. None follows the space: at least 6,
            more with many branches or parameters.
        startup: ``"design"`` fills the space and visits every branch, ``"random"`` draws.
        n_candidates: Random candidates for each proposal. A space of at most that many
            configurations is searched completely.
        max_rows: Trials the models see at most.
        search_space: Distributions known up front; everything else is learnt from the trials.
        ordinal: Choices, in order, of categorical parameters whose order means something.
        independent_sampler: Sampler of parameters never seen before; None fills each parameter's
            range evenly.
        warn_independent_sampling: Log a warning when a known parameter has to be sampled
            independently.
        failed_trials: ``"avoid"`` weighs proposals by a learnt probability of success,
            ``"ignore"`` does not.
        cost: Where the seconds of a trial come from: ``"duration"`` (less the sampler's own
            time), the name of a user attribute, or a function of the finished trial. None means
            duration where costs are needed.
        seed: Non-negative integer; None draws one and logs it.

    Raises:
        ValueError: For an argument outside its range.
        TypeError: For a surrogate without ``fit`` and ``predict``.
    """

    def __init__(
        self,
        *,
        surrogate: str | Any = "quantile_boosting",
        acquisition: AcquisitionName = "ei",
        interleave: int | None = None,
        balance: int | None = None,
        xi: float = 0.0,
        beta: float = 1.0,
        target: Target = "log_regret",
        cost_exponent: float = 1.0,
        cost_budget: int | None = None,
        n_startup_trials: int | None = None,
        startup: Literal["design", "random"] = "design",
        n_candidates: int = 1000,
        max_rows: int = 500,
        search_space: Mapping[str, BaseDistribution] | None = None,
        ordinal: Mapping[str, Sequence[Any]] | None = None,
        independent_sampler: BaseSampler | None = None,
        warn_independent_sampling: bool = True,
        failed_trials: FailedTrials = "avoid",
        cost: Cost = None,
        seed: int | None = None,
    ) -> None:
        _at_least("n_candidates", n_candidates, 1)
        _at_least("max_rows", max_rows, 2)
        _at_least("n_startup_trials", n_startup_trials, 0)
        _at_least("interleave", interleave, 2)
        _at_least("balance", balance, 2)
        _at_least("cost_budget", cost_budget, 1)
        _at_least("xi", xi, 0)
        _at_least("beta", beta, 0)
        _one_of("acquisition", acquisition, ("ei", "ei_per_second", "bound", "bound_per_second"))
        _one_of("startup", startup, ("design", "random"))
        _one_of("failed_trials", failed_trials, ("avoid", "ignore"))
        _one_of("target", target, TARGETS)
        if not 0.0 <= cost_exponent <= 1.0:
            raise ValueError(f"cost_exponent must lie in [0, 1], got {cost_exponent!r}.")
        timed = acquisition.endswith("_per_second")
        self._proposer = Proposer(
            ProposerSettings(
                models=ModelSettings(
                    surrogate=_resolve(surrogate),
                    target=target,
                    max_rows=max_rows,
                    failed_trials=failed_trials,
                    timed=timed,
                ),
                acquisition="ei" if acquisition.startswith("ei") else "bound",
                xi=xi,
                beta=beta,
                cost_exponent=cost_exponent if timed else 0.0,
                cost_budget=cost_budget,
                interleave=interleave,
                balance=balance,
                n_startup=n_startup_trials,
                uniform_start=startup == "random",
                n_candidates=n_candidates,
            )
        )
        self._search_space = dict(search_space or {})
        self._ordinal = {name: list(choices) for name, choices in (ordinal or {}).items()}
        if self._search_space:
            UnionSpace(self._search_space, (), self._ordinal)  # bad input fails here, not later
        self._independent_sampler = independent_sampler
        self._warn_independent_sampling = warn_independent_sampling
        self._cost = checked_cost(cost)
        self._streams = Streams(seed)
        if seed is None:
            _logger.info(f"{self} drew seed={self._streams.seed}; pass it to repeat the search.")
        model = self._proposer.settings.models.surrogate
        self._surrogate_name = type(getattr(model, "surrogate", model)).__name__
        self._warned = False
        self._memories: Cache[tuple[int, int, int], Memory] = Cache()
        self._views: Cache[Key, View] = Cache()
        self._overheads: Cache[Key, float] = Cache()

    @property
    def seed(self) -> int:
        """The seed in use."""
        return self._streams.seed

    # --- Optuna's interface ---------------------------------------------------------------

    def reseed_rng(self) -> None:
        """Leave the streams alone: parallel trials differ by their numbers already."""
        if self._independent_sampler is not None:
            self._independent_sampler.reseed_rng()

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Pass the event on."""
        if self._independent_sampler is not None:
            self._independent_sampler.before_trial(study, trial)

    def after_trial(
        self,
        study: Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        """Store the sampler's own time, which is no cost of the objective."""
        key = (*_private.study_key(study), trial.number)
        self._views.pop(key, None)
        overhead = self._overheads.pop(key, None)
        if overhead is not None:
            _private.write_overhead(study, trial, overhead)
        if self._independent_sampler is not None:
            self._independent_sampler.after_trial(study, trial, state, values)

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """The union of all parameters seen, or declared, that can vary."""
        if len(study.directions) > 1:  # the sample methods say so
            return {}
        with self._clocked(study, trial):
            view = self._memory(study).view(study, trial)
            self._views[(*_private.study_key(study), trial.number)] = view
            return {n: d for n, d in sorted(view.distributions.items()) if not d.single()}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Propose values for all of ``search_space`` jointly.

        Raises:
            ValueError: For a multi-objective study, or an unusable ``cost``.
        """
        self._refuse_multi_objective(study)
        if not search_space:
            return {}
        with self._clocked(study, trial):
            memory = self._memory(study)
            view = self._views.pop((*_private.study_key(study), trial.number), None)
            if view is None:
                view = memory.view(study, trial)
            union = memory.space(view, search_space)
            held = _private.held_values(study, trial)
            fixed = union.fixed({n: v for n, v in held.items() if n not in search_space})
            fixed = np.where(np.isnan(fixed), union.fixed(held), fixed)
            try:
                proposal = self._proposer.propose(
                    union.vectors, memory.history(view, union), self._streams, trial.number, fixed
                )
            except SurrogateFailure as failure:
                self._warn_once(failure)
                return {}
            self._report(study, trial, union, proposal)
            rng = self._streams.generator("unasked", trial.number)
            # Values of inactive parameters are harmless, and serve an objective that asks anyway.
            complete = union.vectors.fill(proposal.vector, rng)
            return {
                name: union.decode(name, complete[union.column[name]]) for name in search_space
            }

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Sample a parameter that was never seen before, or whose range has moved."""
        self._refuse_multi_objective(study)
        with self._clocked(study, trial):
            view = self._memory(study).view(study, trial)
            if self._warn_independent_sampling and param_name in view.columns.distributions:
                _logger.warning(
                    f"Parameter {param_name!r} of trial {trial.number} is sampled independently:"
                    f" no joint proposal for it lies in {param_distribution}. Pass"
                    " warn_independent_sampling=False to silence this."
                )
            if self._independent_sampler is not None:
                return self._independent_sampler.sample_independent(
                    study, trial, param_name, param_distribution
                )
            return self._evenly(view, trial, param_name, param_distribution)

    # --- parts ----------------------------------------------------------------------------

    def _evenly(
        self, view: View, trial: FrozenTrial, name: str, distribution: BaseDistribution
    ) -> Any:
        """The least-tried choice, or the next element of the parameter's own sequence."""
        tried = view.values(name)
        tried = tried[~np.isnan(tried)]
        label = crc32(name.encode())
        if isinstance(distribution, CategoricalDistribution):
            rng = self._streams.generator("independent", trial.number, label)
            n = len(distribution.choices)
            counts = np.array([(tried == choice).sum() for choice in range(n)])
            return distribution.choices[apportion(counts, np.ones(n), rng)]
        union = UnionSpace({name: distribution})
        rng = self._streams.generator("sequence", label)
        return union.decode(name, union.vectors.quantile(0, stratified(len(tried), rng)))

    def _memory(self, study: Study) -> Memory:
        key, declared = _private.study_key(study), self._search_space
        return self._memories.of(key, lambda: Memory(study, self._cost, declared, self._ordinal))

    def _report(
        self, study: Study, trial: FrozenTrial, union: UnionSpace, proposal: Proposal
    ) -> None:
        names = union.vectors.names
        active = {
            name: float(union.internal(name, value))
            for name, value in zip(names, proposal.vector, strict=True)
            if not np.isnan(value)
        }
        _private.write_proposal(study, trial, active)
        facts = {k: v for k, v in asdict(proposal).items() if k not in ("vector", "fit_seconds")}
        if study.direction.name == "MAXIMIZE":
            for name in ("loss", "bound"):
                facts[name] = None if facts[name] is None else -facts[name]
        facts["value"] = facts.pop("loss")
        _private.write_explanation(study, trial, {k: v for k, v in facts.items() if v is not None})
        if proposal.fit_seconds is not None:
            _logger.info(
                f"Trial {trial.number}: {self._surrogate_name} fitted on"
                f" {proposal.n_rows} trials in {proposal.fit_seconds:.3f} s, predicted value"
                f" {facts.get('value'):.6g}, bound {facts.get('bound'):.6g}."
            )

    def _warn_once(self, failure: SurrogateFailure) -> None:
        if not self._warned:
            self._warned = True
            _logger.warning(f"{self}: {failure} Parameters are sampled independently instead.")

    def _refuse_multi_objective(self, study: Study) -> None:
        if len(study.directions) > 1:
            raise ValueError(
                f"{type(self).__name__} optimises one objective, the study has"
                f" {len(study.directions)}: directions={[d.name for d in study.directions]}. Use"
                " NSGAIISampler or TPESampler for several."
            )

    def _clocked(self, study: Study, trial: FrozenTrial) -> Clock:
        return Clock(self._overheads, (*_private.study_key(study), trial.number))


def _resolve(surrogate: Any) -> Any:
    if isinstance(surrogate, str):
        _one_of("surrogate", surrogate, tuple(SURROGATES))
        return SURROGATES[surrogate]()
    for method in ("fit", "predict"):
        if isinstance(surrogate, type) or not callable(getattr(surrogate, method, None)):
            raise TypeError(
                f"surrogate must be one of {sorted(SURROGATES)} or an object with fit(X, y) and"
                f" predict(X), got {surrogate!r} without a usable {method}."
            )
    return surrogate


def _at_least(name: str, value: float | None, low: float) -> None:
    if value is not None and not value >= low:
        raise ValueError(f"{name} must be >= {low}, got {value!r}.")


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}.")
