"""``SuccessiveFilteringPruner``: successive halving with probabilities in place of a cut."""

from __future__ import annotations

import math

import numpy as np
from optuna.pruners import BasePruner
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial

from automl_plugins._arguments import check_integer
from automl_plugins.arrays import FloatArray
from automl_plugins.bandits.records import RewardScale
from automl_plugins.bandits.successive_filtering import advance_probabilities
from automl_plugins.records.trial import finite_or_none

from . import _private
from .seeded_sampler import WithSeed

Outcome = dict[str, float | bool | None]  # of a trial at a rung


class SuccessiveFilteringPruner(WithSeed, BasePruner):
    """Successive halving in which a trial advances with a probability that grows with its reward.

    At step ``min_resource * reduction_factor^i`` a trial reaches rung i, with its report of that
    step or of the next one that it reports. All trials that have reached it so far are the arms of
    adaptive successive filtering (Zhu 2020, equations 6 and 7), each with one reward, which is
    also its upper confidence bound. It advances with probability
    p = (reward - worst) / (best - worst): the best so far always does, the worst is always pruned,
    and if all are equal, all advance.

    Optuna's ``SuccessiveHalvingPruner`` keeps the best 1 / reduction_factor of the trials however
    close the others are. Here the number that advances depends on their values: many of a dense
    top group, few if one trial is far ahead of the others, and a trial near the cut has a chance.

    A report that reaches several rungs at once is judged at the highest of them alone: a draw at
    each would prune good trials for reporting late. Its value counts at all of them, because the
    trial is an arm of each rung that it has reached; it is not judged there later.

    Rewards are the reported values scaled from the best to the worst one, see
    ``RewardScale.spanning`` in ``automl_plugins.bandits.records``: a diverged trial does not make
    all others equal. A trial that reports NaN, or the worse infinity, is
    pruned at its rung. The outcome is stored with the trial, so all workers see it, and asking
    again does not draw again.

    Args:
        min_resource: Step of the first rung; >= 1.
        reduction_factor: Ratio of the step of a rung to the step of the rung before; >= 2.
        n_startup_trials: Number of trials at a rung, the present one included, below which no
            trial is pruned there: of two trials one is always the worst. >= 0.
        seed: Non-negative integer; None draws one and logs it.

    Raises:
        ValueError: For an argument outside its range.
        TypeError: For an argument that is not an integer.

    Example::

        study = optuna.create_study(pruner=SuccessiveFilteringPruner(seed=1))
        study.optimize(objective, n_trials=100)  # objective: trial.report(), should_prune()
    """

    def __init__(
        self,
        min_resource: int = 1,
        reduction_factor: int = 3,
        *,
        n_startup_trials: int = 4,
        seed: int | None = None,
    ) -> None:
        check_integer("min_resource", min_resource, 1)
        check_integer("reduction_factor", reduction_factor, 2)
        check_integer("n_startup_trials", n_startup_trials, 0)
        self._min_resource = int(min_resource)
        self._reduction_factor = int(reduction_factor)
        self._n_startup_trials = int(n_startup_trials)
        super().__init__(seed)

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """Whether the trial is pruned at one of the rungs that it has reached."""
        step = trial.last_step
        if step is None:
            return False
        rung = 0
        while step >= (first := self._min_resource * self._reduction_factor**rung):
            outcome = _private.read_rung(trial, rung)
            if outcome is None:
                # Not the last report: a retried trial may have inherited reports of many rungs.
                reported = min(known for known in trial.intermediate_values if known >= first)
                value = trial.intermediate_values[reported]
                if reported >= first * self._reduction_factor:  # at a higher rung, too
                    outcome = _outcome(value, probability=1.0, advances=True)
                else:
                    outcome = self._decide(study, trial, rung, value)
                _private.write_rung(study, trial, rung, outcome)
            # Also if decided in an earlier call: an objective that goes on is told again.
            if not outcome["advances"]:
                return True
            rung += 1
        return False

    def _decide(self, study: Study, trial: FrozenTrial, rung: int, value: float) -> Outcome:
        others = [
            outcome["value"]
            for other in study.get_trials(deepcopy=False)
            if other.number != trial.number
            and (outcome := _private.read_rung(other, rung)) is not None
            and outcome["value"] is not None  # None for NaN and infinite values
        ]
        sign = -1.0 if study.direction == StudyDirection.MAXIMIZE else 1.0
        probability = advance_probability(
            sign * value, sign * np.array(others, dtype=np.float64), self._n_startup_trials
        )
        # By rung and trial, so the order in which workers report changes no draw.
        draw = float(self._streams.generator("rung", rung, trial.number).random())
        return _outcome(value, probability, draw < probability)


def _outcome(value: float, probability: float, advances: bool) -> Outcome:
    return {"value": finite_or_none(value), "probability": probability, "advances": advances}


def advance_probability(loss: float, others: FloatArray, n_startup: int = 0) -> float:
    """Probability that a trial with ``loss`` advances from a rung; ``others`` (n,) reached it.

    Infinite losses do not count for the scale; with fewer than ``n_startup`` trials, this one
    included, every trial with a finite loss advances.
    """
    if math.isnan(loss) or loss == math.inf:
        return 0.0
    if loss == -math.inf:
        return 1.0
    losses = np.append(others[np.isfinite(others)], loss)
    if len(losses) < n_startup:
        return 1.0
    # Scaled even if all are in [0, 1]: probabilities depend on differences relative to the range.
    rewards = RewardScale.spanning(losses).rewards(losses)
    return float(advance_probabilities(rewards)[-1])
