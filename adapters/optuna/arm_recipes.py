"""``WeightedModelSampler`` and ``BanditSampler``: two ways of choosing the arm of a trial."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from automl_plugins.bandits.model_weights import (
    weights_from_counts,
    weights_from_logs,
    weights_from_numbers,
)
from automl_plugins.bandits.policy import ArmChoice, Policy
from automl_plugins.bandits.records import ArmStatistics
from automl_plugins.bandits.ucb import MaxUCB
from automl_plugins.records.trial import Status
from automl_plugins.representation import preset
from automl_plugins.spaces.branches import log_volumes

from . import _inner
from ._arm_memory import Situation
from ._arms import Choices
from ._inner import Inner
from .arm_sampler import ArmOptions, ArmSampler

if TYPE_CHECKING:
    from typing_extensions import Unpack

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


class WeightedModelSampler(ArmSampler):
    """Draws models in proportion to the size of their search spaces (Sarigiannis 2019).

    A model with N hyperparameters is drawn with probability 2^N / sum 2^N: uniform draws spend as
    much on a model without hyperparameters as on one with ten. It is a heuristic, no theorem:
    see ``automl_plugins.bandits.model_weights``. With Optuna's ``SuccessiveHalvingPruner`` or
    ``HyperbandPruner`` it is like the paper's SH.W and HB.W, but these pruners are asynchronous
    and decide by the trials so far; ``automl_plugins.bandits.SuccessiveHalving`` and ``Hyperband``
    are the paper's schedules.

    N counts all names, nested ones included, that complete and pruned trials of the model have
    asked for and that can vary; what all models share changes nothing. So every model is tried
    once first, unless weights are given.

    Args:
        arm: Name of the categorical parameter that selects the model.
        weights: ``"2^N"``; ``"volume"``, the volume of the ranges, for a grid the number of its
            configurations; or weights >= 0 by choice, of any sum.
        inner: Sampler inside the arms, see ``ArmSampler``; None draws at random.
        **options: ``search_space``, ``warn_independent_sampling``, ``reward_range``, ``cost`` and
            ``seed``: see ``ArmSampler``.

    Raises:
        ValueError: For an argument outside its range, or weights that do not fit the choices.
        TypeError: For an argument of another kind.

    Example::

        study = optuna.create_study(sampler=WeightedModelSampler(seed=1), pruner=HyperbandPruner())
        study.optimize(objective, n_trials=100)  # trial.suggest_categorical("algorithm", ...)
    """

    def __init__(
        self,
        arm: str = "algorithm",
        *,
        weights: str | Mapping[Any, float] = "2^N",
        inner: Inner = None,
        **options: Unpack[ArmOptions],
    ) -> None:
        super().__init__(arm, inner=inner, default_inner=_inner.random, **options)
        if isinstance(weights, Mapping):
            weights_from_numbers(list(weights.values()))  # bad input fails here, not later
            if isinstance(self.declared, Choices):
                _given(weights, self.declared.distribution.choices)
        elif weights not in ("2^N", "volume"):
            raise ValueError(
                "weights must be '2^N', 'volume' or a mapping from choices to weights, got"
                f" {weights!r}."
            )
        self.weights = dict(weights) if isinstance(weights, Mapping) else weights
        self._gives_up = True

    @classmethod
    @preset
    def paper(
        cls,
        arm: str = "algorithm",
        *,
        n_hyperparameters: Mapping[Any, int],
        **options: Unpack[ArmOptions],
    ) -> Self:
        """The paper's RS.W: models drawn by 2^N from the first trial on, random search inside.

        Each trial draws on its own, whatever the others were worth. What differs: a model whose
        configurations have all been tried (without hyperparameters, or a declared grid) leaves.
        See the class for SH.W and HB.W.

        Args:
            arm: Name of the categorical parameter that selects the model.
            n_hyperparameters: N of each choice; Optuna cannot know it before a trial has asked.
            **options: See the class.

        Raises:
            ValueError: For numbers below 0, or that do not fit the choices.
        """
        counts = {choice: operator.index(n) for choice, n in n_hyperparameters.items()}
        p = weights_from_counts(list(counts.values())).tolist()
        sampler = cls(arm, weights=dict(zip(counts, p, strict=True)), **options)
        sampler._gives_up = False
        return sampler

    def _choose(self, situation: Situation) -> ArmChoice:
        records = situation.pulls.records
        statistics = ArmStatistics.from_records(records, len(situation.arms))
        arms = np.array(situation.left)
        if self._gives_up:
            arms = statistics.working(arms)
        rng = self._streams.generator("weights", situation.k)
        if isinstance(self.weights, dict):
            assert isinstance(situation.arms, Choices)
            weights = _given(self.weights, situation.arms.distribution.choices)[arms]
            p = weights / weights.sum() if weights.any() else np.full(len(arms), 1 / len(arms))
            return _drawn(arms, p, rng)
        sized = np.isin(arms, list(situation.parameters))
        waiting = np.isin(arms, records.arm[records.status == Status.RUNNING])
        if (new := arms[~sized & ~waiting]).size:
            pulls = statistics.pulls[new]
            return ArmChoice(int(rng.choice(new[pulls == pulls.min()])), "its size is not known")
        known = arms[sized]
        if not known.size:  # all are being tried for the first time
            return ArmChoice(int(rng.choice(arms)), "all are tried for the first time")
        return _drawn(known, self._weights(known, situation), rng)

    def _weights(self, arms: IntArray, situation: Situation) -> FloatArray:
        """Probabilities of arms whose parameters are known."""
        if self.weights == "2^N":
            return weights_from_counts([len(situation.parameters[a]) for a in arms.tolist()])
        volumes = list(log_volumes(situation.union().vectors.space, self.arm).values())
        return weights_from_logs([volumes[a] for a in arms.tolist()])


def _drawn(arms: IntArray, p: FloatArray, rng: np.random.Generator) -> ArmChoice:
    place = int(rng.choice(len(arms), p=p))
    return ArmChoice(int(arms[place]), f"drawn by its weight, with probability {p[place]:.2g}")


def _given(weights: Mapping[Any, float], choices: tuple[Any, ...]) -> FloatArray:
    """The weights in the order of the choices (K,).

    Raises:
        ValueError: If there is not one for each choice.
    """
    missing = [c for c in choices if c not in weights]
    unknown = [c for c in weights if c not in choices]
    if missing or unknown:
        raise ValueError(
            f"weights must have one number for each of the choices {list(choices)!r}; missing:"
            f" {missing or 'none'}, unknown: {unknown or 'none'}."
        )
    return np.array([weights[c] for c in choices], dtype=np.float64)


class BanditSampler(ArmSampler):
    """Algorithm selection as a bandit problem: the policy chooses the arm of every trial.

    Every arm gets a guaranteed minimum, then the policy shares the trials by what the arms have
    shown. An arm that fails three times in a row from the start is given up.

    Args:
        arm: Name of the categorical parameter that selects the algorithm.
        policy: A policy of ``automl_plugins.bandits``; None is ``MaxUCB()``, which looks for the
            arm with the best maximum.
        inner: Sampler inside the arms, see ``ArmSampler``; None is Optuna's TPE with
            10 random trials for each arm, fewer if there are more than four arms.
        **options: See ``WeightedModelSampler``.

    Raises:
        ValueError: For an argument outside its range.
        TypeError: For an argument of another kind.

    Example::

        study = optuna.create_study(sampler=BanditSampler(arm="classifier", seed=1))
        study.optimize(objective, n_trials=200)
        print(arm_report(study))
    """

    def __init__(
        self,
        arm: str = "algorithm",
        *,
        policy: Policy | None = None,
        inner: Inner = None,
        **options: Unpack[ArmOptions],
    ) -> None:
        super().__init__(arm, inner=inner, default_inner=_inner.tpe, **options)
        if not (policy is None or isinstance(policy, Policy)):
            raise TypeError(
                "policy must be a policy of automl_plugins.bandits, UCB1() for example, or None;"
                f" got {policy!r}."
            )
        self.policy = MaxUCB() if policy is None else policy

    def _choose(self, situation: Situation) -> ArmChoice:
        return self.policy.decide(
            situation.left, situation.pulls.records, self._streams, situation.k
        )
