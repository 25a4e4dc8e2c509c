"""Three ways of choosing the arm of a trial: fixed weights, a bandit, successive filtering."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Mapping, Sequence
from typing import Any, Self, Unpack

import numpy as np
from optuna.logging import get_logger
from optuna.samplers import RandomSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from automl_plugins._arguments import check_budget, preset
from automl_plugins.bandits.confidence import MaxUCB, policy_or_default
from automl_plugins.bandits.model_weights import (
    check_rule,
    draw_weighted,
    weights_by_option,
    weights_from_counts,
    weights_from_logs,
)
from automl_plugins.bandits.policy import ArmChoice, Policy, weights_from_numbers
from automl_plugins.bandits.records import ArmStatistics
from automl_plugins.bandits.report import describe_dropped_best
from automl_plugins.bandits.successive_filtering import (
    PAPER,
    Score,
    SuccessiveFiltering,
    Turn,
)
from automl_plugins.formats import format_budget
from automl_plugins.records.trial import Status, is_used_up

from . import _private
from ._arm_reader import Budget, Situation
from ._arms import Choices, Split
from ._inner import Inner
from .arm_sampler import ArmOptions, ArmSampler

_logger = get_logger("optuna.automl_plugins")

_ONE_EACH = "weights must have one number for each of the choices"


class WeightedModelSampler(ArmSampler):
    """Draws models in proportion to the size of their search spaces (Sarigiannis 2019).

    A model with N hyperparameters is drawn with probability 2^N / sum 2^N: uniform draws spend as
    much on a model without hyperparameters as on one with ten. It is a heuristic, not a theorem:
    see ``automl_plugins.bandits.model_weights``. With Optuna's ``SuccessiveHalvingPruner`` or
    ``HyperbandPruner`` it is like the paper's SH.W and HB.W, but these pruners are asynchronous
    and decide by the trials so far; ``automl_plugins.bandits.SuccessiveHalving`` and ``Hyperband``
    are the paper's schedules.

    N counts all names, nested ones included, that complete and pruned trials of the model have
    asked for and that can vary; parameters that all models share change nothing. So every model
    is tried once first, unless weights are given.

    Args:
        arm: Name of the categorical parameter that selects the model.
        weights: ``"2^N"``; ``"volume"``, the volume of the ranges, for a grid the number of its
            configurations; or weights >= 0 by choice, of any sum.
        inner: As in ``BanditSampler``; but None draws at random.
        **options: Keywords that all samplers of arms take. ``seed``: non-negative integer; None
            (the default) draws one and logs it. ``reward_range``: values of the objective with
            the rewards 0 and 1, in either order; None (the default) scales by the trials. An
            infeasible trial has the reward 0. ``cost``: where the seconds of a trial come from, as
            in ``SurrogateSampler``; None (the default) is its duration. ``search_space``:
            distributions by name that are known up front, by default none; only the one of
            ``arm`` is used, or all of them with ``split``.
            ``warn_independent_sampling`` (True by default): log a warning, once for each name,
            when the given ``inner`` leaves a known parameter out of its joint proposal.

    Raises:
        ValueError: For an argument outside its range, or weights that do not fit the choices.
        TypeError: For an argument of the wrong type.

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
        super().__init__(arm, inner=RandomSampler if inner is None else inner, **options)
        if isinstance(weights, Mapping):
            weights_from_numbers(list(weights.values()))  # bad input fails here, not later
            if isinstance(self.declared, Choices):
                weights_by_option(self.declared.distribution.choices, weights, _ONE_EACH)
        else:
            check_rule("weights", weights, "a mapping from choices to weights")
        self.weights = dict(weights) if isinstance(weights, Mapping) else weights
        self._gives_up = True  # drop a model that always fails; ``paper`` does not

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

        Each draw is independent of the results so far. One difference: a model leaves once all
        its configurations (no hyperparameters, or a declared grid) have been tried. See the class
        for SH.W and HB.W.

        Args:
            arm: Name of the categorical parameter that selects the model.
            n_hyperparameters: N of each choice; Optuna cannot know it before a trial has asked.
            **options: See the class.

        Raises:
            ValueError: For numbers below 0, or that do not fit the choices.
        """
        counts = {choice: operator.index(n) for choice, n in n_hyperparameters.items()}
        # As probabilities, for 2^N of a large N is no float.
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
            choices = situation.arms.distribution.choices
            weights = weights_by_option(choices, self.weights, _ONE_EACH)[arms]
            # All arms with a weight may have left, having failed or been exhausted.
            p = weights_from_numbers(weights if weights.any() else np.ones(len(arms)))
            return draw_weighted(arms.tolist(), p, rng)
        sized = np.isin(arms, list(situation.parameters))
        # One worker is enough to learn a model's size, but it may have died: after two results
        # for each arm a second one is sent, after four a third.
        patience = 2 * len(situation.arms) * statistics.pulls[arms]
        waiting = np.isin(arms, records.arm[records.status == Status.RUNNING])
        waiting &= statistics.scored.sum() < patience
        if (new := arms[~sized & ~waiting]).size:
            pulls = statistics.pulls[new]
            return ArmChoice(int(rng.choice(new[pulls == pulls.min()])), "its size is not known")
        known = arms[sized].tolist()
        if not known:
            return ArmChoice(int(rng.choice(arms)), "all are tried for the first time")
        if self.weights == "2^N":
            p = weights_from_counts([len(situation.parameters[arm]) for arm in known])
        else:
            p = weights_from_logs([situation.log_volume(arm) for arm in known])
        return draw_weighted(known, p, rng)


class BanditSampler(ArmSampler):
    """Algorithm selection as a bandit problem: the policy chooses the arm of every trial.

    Every arm gets a guaranteed minimum, then the policy shares the trials by the arms' results.
    An arm that fails three times in a row from the start is given up.

    Args:
        arm: Name of the categorical parameter that selects the algorithm.
        policy: A policy of ``automl_plugins.bandits``; None is ``MaxUCB()``, which seeks the arm
            with the best maximum.
        inner: Sampler inside the arms. An instance: every arm gets a copy. Its random state is
            lost with the process (as always in Optuna), if the storage is opened again, and after
            16 other studies. A sampler class, or a function of a seed that returns a sampler:
            every trial gets one with its own seed, so that a resumed study continues as if it had
            never stopped. ``partial(AutoSampler, "svm")`` reads its memory once, a function reads
            it at each trial. None is Optuna's TPE with 10 random trials for each arm, fewer if
            there are more than four arms. Another sampler of arms may be inside; if only some of
            the outer arms ask for its parameter, declare this parameter in its ``search_space``.
        **options: See ``WeightedModelSampler``.

    Raises:
        ValueError: For an argument outside its range.
        TypeError: For an argument of the wrong type.

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
        super().__init__(arm, inner=inner, **options)
        self.policy = policy_or_default(policy)

    def _choose(self, situation: Situation) -> ArmChoice:
        return self._by_policy(self.policy, situation, situation.left)


class BOASFSampler(ArmSampler):
    """Bayesian optimisation by adaptive successive filtering (Zhu 2020).

    The budget is spent in rounds. After each round every arm advances with a probability that
    grows with its score; those that advance share the next round by softmax. The outcome of a
    round is stored with its first trial and read by all workers, so late results change nothing.

    A sampler cannot end a study. When the budget is spent, it calls ``study.stop`` if
    ``stop_when_spent``; for further trials ``MaxUCB`` chooses among the arms of the last round.

    Args:
        arm: Name of the categorical parameter whose choices are the arms. Not with ``split``.
        n_trials: Budget in trials. Give this or ``seconds``.
        seconds: Budget in seconds of ``cost``.
        split: Makes cells of the search space the arms: number of parts of each parameter's range
            on its own scale, or numbers by name, the most important first. Without
            ``search_space`` the cells are made of the parameters of the first complete trial;
            parameters that only some trials ask for are best left out.
        max_arms: Largest number of cells; parameters that would exceed it are left whole. The
            paper has up to 32.
        rounds, score, c, temperature, min_pulls, carry_debts: See
            ``automl_plugins.bandits.SuccessiveFiltering``.
        stop_when_spent: End ``study.optimize`` with the trial that spends the budget. A later call
            ends with its first trial, which a sampler cannot prevent. Running trials count,
            so with ``n_jobs`` only those that begin at the same moment may exceed a budget of
            trials. In a loop of ``study.ask`` it has no effect.
        inner: See ``BanditSampler``.
        **options: See ``WeightedModelSampler``. All trials of the study count towards the budget,
            also failed ones, trials of earlier runs and trials that do not ask for the arm.

    Raises:
        ValueError: For an argument outside its range; for both budgets, or none; if nothing can
            be split.
        TypeError: For an argument of the wrong type.

    Example::

        sampler = BOASFSampler(arm="classifier", seconds=600, stop_when_spent=True)
        study = optuna.create_study(sampler=sampler)
        study.optimize(objective)

        # one algorithm: 2^5 = 32 cells of five hyperparameters, TPE inside each
        study = optuna.create_study(sampler=BOASFSampler(split=2, n_trials=300, seed=1))
        study.optimize(objective, n_trials=300)
        print(arm_report(study))
    """

    def __init__(
        self,
        arm: str = "algorithm",
        *,
        n_trials: int | None = None,
        seconds: float | None = None,
        split: int | Mapping[str, int] | None = None,
        max_arms: int = 32,
        rounds: int = 3,
        score: Score = "maximum",
        c: float | None = None,
        temperature: float | None = None,
        min_pulls: int = 1,
        carry_debts: bool = True,
        stop_when_spent: bool = False,
        inner: Inner = None,
        **options: Unpack[ArmOptions],
    ) -> None:
        if split is not None and arm != "algorithm":
            raise ValueError(
                f"arm={arm!r} makes the choices of a parameter the arms, split={split!r} makes"
                " cells of the search space the arms: give one of them."
            )
        super().__init__(
            arm,
            inner=inner,
            split=None if split is None else Split(split, max_arms),
            **options,
        )
        budget, unit = check_budget(n_trials=n_trials, seconds=seconds)
        self.filtering = SuccessiveFiltering(
            budget,
            unit=unit,
            rounds=rounds,
            c=c,
            temperature=temperature,
            score=score,
            min_pulls=min_pulls,
            carry_debts=carry_debts,
        )
        self.stop_when_spent = stop_when_spent

    @classmethod
    @preset
    def paper(
        cls,
        arm: str = "algorithm",
        *,
        n_trials: int | None = None,
        seconds: float | None = None,
        split: int | Mapping[str, int] | None = None,
        max_arms: int = 32,
        rounds: int = 3,
        **options: Unpack[ArmOptions],
    ) -> Self:
        """Algorithm 1 of the paper, TPE inside; the study is ended when the budget is spent.

        ``bandits.SuccessiveFiltering.paper`` lists the differences. Further: rewards are scaled to
        [0, 1] by the values so far unless ``reward_range`` is given (the paper's balanced
        accuracy: ``(0, 1)``), and TPE is Optuna's, with 10 random trials of each arm, fewer if
        there are more than four arms.
        """
        return cls(
            arm,
            n_trials=n_trials,
            seconds=seconds,
            split=split,
            max_arms=max_arms,
            rounds=rounds,
            stop_when_spent=True,
            **PAPER,
            **options,
        )

    def after_trial(
        self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Pass the event on; stop the study if the trial spent the budget."""
        super().after_trial(study, trial, state, values)
        if self.stop_when_spent and len(study.directions) == 1:
            reader = self._reader(study)
            # Optuna stores state and value after this event, so the view leaves out the trial.
            done = _private.as_finished(study, trial, state, values)
            view = reader.with_finished(reader.view(study, trial), done)
            arms = self._arms(reader, trial)
            budget, unit = self._budget
            # Of all trials: some have no arm, because they have just begun, or failed early.
            # NaN, for unknown seconds, spends nothing.
            spent = len(view) if unit == "trials" else np.nansum(view.facts("seconds"))
            if is_used_up(float(spent), budget) or (
                arms is not None and self.is_spent(reader.situation(view, arms, trial.number + 1))
            ):
                with contextlib.suppress(RuntimeError):  # not inside study.optimize
                    study.stop()

    def _choose(self, situation: Situation) -> ArmChoice:
        turn = self._next(situation)
        if turn.choice is not None:
            return turn.choice
        last = () if turn.current is None else turn.current.arms
        arms = [a for a in last if a in situation.left] or situation.left
        return self._by_policy(MaxUCB(), situation, arms)

    def _record(self, study: Study, trial: FrozenTrial, situation: Situation) -> None:
        """Store the rounds that are opened for a trial."""
        reader, n = self._reader(study), len(situation.arms)
        if not self.filtering.suffices_for(n) and reader.first_time("few trials"):
            _logger.warning(
                f"{n} arms share a budget of {format_budget(*self._budget)}: not every arm gets"
                f" {self.filtering.min_pulls}."
            )
        turn, begins = self._next(situation), reader.first_time("began")
        if turn.arm is None and reader.first_time("spent"):
            text = self.describe_spent(situation)
            if begins:  # the budget was spent before this run
                _logger.warning(f"{text} Earlier trials of the study count: give a larger budget.")
            else:
                _logger.info(text)
        if opened := turn.opened:
            # If the study is continued with another budget or cells, these rounds do not count.
            search = {"budget": list(self._budget), "cells": situation.arms.mark}
            _private.write_rounds(study, trial, self.arm, [r.to_dict() | search for r in opened])
        records, left = situation.pulls.records, situation.left
        for line in describe_dropped_best(opened, records, left, situation.arms.names):
            _logger.warning(line)

    def is_spent(self, situation: Situation) -> bool:
        """Whether the budget is spent, or reserved for running trials."""
        return self._next(situation).arm is None

    def describe_spent(self, situation: Situation) -> str:
        """Say that the budget is spent, and how the arms of further trials are chosen."""
        arms = "the arms of the last round" if situation.rounds else "all arms: there was no round"
        return (
            f"The budget of {format_budget(*self._budget)} is spent, or reserved for running"
            f" trials. For further trials MaxUCB chooses among {arms}."
        )

    @property
    def _budget(self) -> Budget:
        return float(self.filtering.budget), self.filtering.unit

    def _next(self, situation: Situation) -> Turn:
        left, records = situation.left, situation.pulls.records
        return self.filtering.next(left, records, situation.rounds, self._streams, situation.k)
