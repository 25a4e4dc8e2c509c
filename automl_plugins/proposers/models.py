"""The models behind one proposal, fitted together: loss, running time, feasibility."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from automl_plugins._arguments import at_least, one_of
from automl_plugins.meta.alignment import MemoryMismatch
from automl_plugins.proposers.proposal import SurrogateFailure
from automl_plugins.proposers.targets import TARGETS, Target, Targets, effective_losses, transform
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams
from automl_plugins.surrogates import Feasibility, QuantileBoosting, RunningTime
from automl_plugins.surrogates.base import (
    Surrogate,
    SurrogateTemplate,
    Voting,
    check_surrogate,
    reseed,
)

FloatArray = npt.NDArray[np.float64]
FailedTrials = Literal["avoid", "ignore"]

# A crash costs a trial and often a machine: success must be likely enough to happen four times.
_CAUTION = 4.0


@dataclass(frozen=True)
class ModelSettings:
    """What is fitted on a history.

    Attributes:
        surrogate: Template of the loss model; copied, never fitted itself.
        target: Transform of the losses.
        max_rows: Rows the models see at most: the best half, and others at random; None for all.
        failed_trials: ``"avoid"`` learns a probability of success, ``"ignore"`` does not.
        timed: Whether to model the running time.

    Raises:
        ValueError: For a setting outside its range.
        TypeError: For a surrogate without ``fit`` and ``predict``.
    """

    surrogate: Surrogate | SurrogateTemplate = field(default_factory=QuantileBoosting)
    target: Target = "log_regret"
    max_rows: int | None = 500
    failed_trials: FailedTrials = "avoid"
    timed: bool = False

    def __post_init__(self) -> None:
        at_least("max_rows", self.max_rows, 2)
        one_of("target", self.target, TARGETS)
        one_of("failed_trials", self.failed_trials, get_args(FailedTrials))
        if not isinstance(self.surrogate, SurrogateTemplate):
            check_surrogate(self.surrogate)


@dataclass(frozen=True)
class FittedModels:
    """Fitted models and the facts an acquisition needs.

    Attributes:
        surrogate: Fitted model of the targets.
        targets: The transformed losses.
        best: Best target f*, of a feasible row if there is one; infinite without any row.
        best_rows: Positions in the history, best loss first, feasible ones first.
        running_time: Model of ln seconds; None where no costs are known or wanted.
        feasibility: Model of the probability of success; None where nothing ever failed.
        n_rows: Finished rows that were known.
    """

    surrogate: Surrogate
    targets: Targets
    best: float
    best_rows: npt.NDArray[np.int64]
    running_time: RunningTime | None
    feasibility: Feasibility | None
    n_rows: int

    def predict(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation (m,) of the target; a bare bound has deviation 0.

        Raises:
            SurrogateFailure: If the surrogate raises, or answers with the wrong shape or NaN.
        """
        try:
            answer = self.surrogate.predict(features)
            mean, std = answer if isinstance(answer, tuple) else (answer, np.zeros(len(features)))
            mean = np.asarray(mean, dtype=np.float64).reshape(len(features))
            std = np.asarray(std, dtype=np.float64).reshape(len(features))
        except Exception as error:  # whatever a foreign model raises is the same to us
            raise SurrogateFailure(f"predict of {self.surrogate!r} failed: {error}") from error
        if np.isnan(mean).any() or np.isnan(std).any():
            raise SurrogateFailure(f"{self.surrogate!r} predicted NaN.")
        return mean, std

    def log_success(self, features: FloatArray) -> FloatArray:
        """Cautious log P(success)^4 (m,); 0 where nothing ever failed."""
        if self.feasibility is None:
            return np.zeros(len(features))
        return _CAUTION * np.log(self.feasibility.predict(features))

    def log_seconds(self, features: FloatArray) -> FloatArray:
        """Log of the expected seconds (m,)."""
        assert self.running_time is not None
        return np.log(self.running_time.predict_seconds(features))

    def to_loss(self, target: float) -> float | None:
        """The loss that ``target`` stands for; None without any row."""
        return self.targets.to_loss(target) if len(self.targets.losses) else None

    @property
    def shares(self) -> Mapping[str, float] | None:
        """Share of each earlier task in the predictions, where the surrogate tells them."""
        return self.surrogate.shares_ if isinstance(self.surrogate, Voting) else None


def fit_models(
    settings: ModelSettings, space: VectorSpace, history: History, streams: Streams
) -> FittedModels:
    """Fit all models on ``history`` (finished rows only).

    The random streams are indexed by the number of rows: the same history, the same models.

    Raises:
        SurrogateFailure: If a fit raises.
        MemoryMismatch: If the surrogate learns from a memory of which the space can use nothing.
    """
    n = len(history)
    avoid = settings.failed_trials == "avoid"
    losses = effective_losses(history, penalise_failures=avoid)
    known = np.flatnonzero(~np.isnan(losses))
    targets = transform(losses[known], settings.target if len(known) else "raw")
    feasible = (history.feasible & (history.status != Status.FAILED))[known]
    order = np.lexsort((known, targets.values, ~feasible))
    features = space.features(history.vectors)
    rows = thin_out(targets.values, settings.max_rows, streams.generator("rows", n))
    try:
        template = settings.surrogate
        if isinstance(template, SurrogateTemplate):
            template = template.for_space(space)
        surrogate = reseed(template, streams.integer("surrogate", n))
        surrogate.fit(features[known[rows]], targets.values[rows])
        running_time = _fit_running_time(settings, history, features, streams)
        feasibility = _fit_feasibility(settings, history, features, streams)
    except MemoryMismatch:
        raise
    except Exception as error:  # whatever a foreign model raises is the same to us
        raise SurrogateFailure(
            f"fit of {settings.surrogate!r} on {n} rows failed: {error}"
        ) from error
    return FittedModels(
        surrogate=surrogate,
        targets=targets,
        best=float(targets.values[order[0]]) if len(order) else np.inf,
        best_rows=known[order],
        running_time=running_time,
        feasibility=feasibility,
        n_rows=n,
    )


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


def _recent(mask: npt.NDArray[np.bool_], max_rows: int | None) -> npt.NDArray[np.int64]:
    rows = np.flatnonzero(mask)
    return rows if max_rows is None else rows[-max_rows:]


def _fit_running_time(
    settings: ModelSettings, history: History, features: FloatArray, streams: Streams
) -> RunningTime | None:
    rows = _recent(~np.isnan(history.seconds), settings.max_rows)
    if not settings.timed or not len(rows):
        return None
    # Failed evaluations count in full: they took that long. Pruned ones would have gone on.
    bound = history.status[rows] == Status.PRUNED
    model = RunningTime(random_state=streams.integer("running_time", len(history)))
    return model.fit(features[rows], history.seconds[rows], bound)


def _fit_feasibility(
    settings: ModelSettings, history: History, features: FloatArray, streams: Streams
) -> Feasibility | None:
    success = (history.status != Status.FAILED) & history.feasible
    if settings.failed_trials == "ignore" or success.all():
        return None
    rows = _recent(np.ones(len(history), dtype=bool), settings.max_rows)
    model = Feasibility(random_state=streams.integer("feasibility", len(history)))
    return model.fit(features[rows], success[rows])
