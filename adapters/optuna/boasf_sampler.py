"""``BOASFSampler``: adaptive successive filtering chooses the arms, TPE tunes them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Self

import numpy as np
from optuna.logging import get_logger
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from automl_plugins.bandits.policy import ArmChoice
from automl_plugins.bandits.report import describe_lost_incumbent
from automl_plugins.bandits.successive_filtering import (
    PAPER,
    Score,
    SuccessiveFiltering,
    Turn,
    Unit,
    lost_incumbent,
)
from automl_plugins.bandits.ucb import MaxUCB
from automl_plugins.representation import preset

from . import _inner, _private
from ._arm_memory import Situation
from ._arms import Split
from ._inner import Inner
from .arm_sampler import ArmOptions, ArmSampler

if TYPE_CHECKING:
    from typing_extensions import Unpack

_logger = get_logger("optuna.automl_plugins")


class BOASFSampler(ArmSampler):
    """Bayesian optimisation by adaptive successive filtering (Zhu 2020).

    The budget is spent in rounds. After each, every arm advances by chance, the better the
    likelier; those that do share the next round by softmax. What a round decided is stored with
    its first trial and read afterwards, by all workers, so late results change nothing.

    A sampler cannot end a study. When the budget is spent it asks ``study.optimize`` to stop if
    it may, else it goes on: ``MaxUCB`` chooses among the arms of the last round.

    Args:
        arm: Name of the categorical parameter whose choices are the arms. Not with ``split``.
        n_trials: Budget in trials. Give this or ``seconds``.
        seconds: Budget in seconds of ``cost``.
        split: Makes cells of the search space the arms: number of parts of each parameter's range
            on its own scale, or numbers by name, the most important first. Without
            ``search_space`` the cells are made of what the first complete trial has asked for;
            parameters that only some trials ask for are best left out.
        max_arms: Most cells; parameters that would make more are left whole. The paper has up to
            32.
        rounds: Rounds of equal budget; >= 1.
        score: ``"maximum"``, an arm's best reward: the arm of the best trial always advances. Or
            ``"mean"``, the paper's bound of the mean reward: it may drop that arm, with a warning.
        c: Weight of the uncertainty in an arm's upper confidence bound; >= 0. None is 0 for maxima
            and the paper's 2 for means.
        temperature: Of the softmax; > 0. None is 0.02 for maxima and the paper's 1 for means,
            which makes the shares nearly equal.
        min_pulls: Trials of each arm in the first round, as far as the budget goes; >= 1.
        carry_debts: Carry what an arm spent too much or too little over to its next share;
            False is the paper's loop.
        stop_when_spent: End ``study.optimize`` with the trial that spends the budget. In a loop
            of ``study.ask`` nothing can be ended.
        inner: Sampler inside the arms, see ``ArmSampler``; None is Optuna's TPE with
            10 random trials for each arm, fewer if there are more than four arms.
        **options: ``search_space``, ``warn_independent_sampling``, ``reward_range``, ``cost`` and
            ``seed``: see ``ArmSampler``. All trials of the study count towards the budget,
            failed ones and those of earlier runs too.

    Raises:
        ValueError: For an argument outside its range; for both budgets, or none; if nothing can
            be split.
        TypeError: For an argument of another kind.

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
        if (n_trials is None) == (seconds is None):
            raise ValueError(
                "Give the budget as n_trials= or as seconds=, one of the two; got"
                f" n_trials={n_trials!r} and seconds={seconds!r}."
            )
        if n_trials is not None and (
            isinstance(n_trials, bool) or not isinstance(n_trials, int | np.integer)
        ):
            raise ValueError(f"n_trials must be a whole number, got {n_trials!r}.")
        if split is not None and arm != "algorithm":
            raise ValueError(
                f"arm={arm!r} names a parameter whose choices are the arms, split={split!r} makes"
                " cells of the search space the arms: give one of them."
            )
        super().__init__(
            arm,
            inner=inner,
            default_inner=_inner.tpe,
            split=None if split is None else Split(split, max_arms),
            **options,
        )
        self.unit: Unit = "seconds" if n_trials is None else "trials"
        budget = seconds if n_trials is None else n_trials
        assert budget is not None
        self.filtering = SuccessiveFiltering(
            budget,
            unit=self.unit,
            rounds=rounds,
            c=c,
            temperature=temperature,
            score=score,
            min_pulls=min_pulls,
            carry_debts=carry_debts,
        )
        self.stop_when_spent = stop_when_spent
        self._afterwards = MaxUCB()
        self._said_few = False

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

        ``bandits.SuccessiveFiltering.paper`` says what differs. Further: rewards are scaled to
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
        self,
        study: Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        """Pass the event on; stop the study if the trial spent the budget."""
        super().after_trial(study, trial, state, values)
        if self.stop_when_spent and len(study.directions) == 1:
            situation = self._after(study, trial, state, values)
            if situation is not None and self._next(situation).arm is None:
                with contextlib.suppress(RuntimeError):  # not inside study.optimize
                    study.stop()

    def _choose(self, situation: Situation) -> ArmChoice:
        turn = self._next(situation)
        last = (*situation.rounds, *turn.opened)[-1]
        if turn.arm is not None:
            return ArmChoice(turn.arm, "share of BOASF", last.score_of(turn.arm), last.index + 1)
        arms = [a for a in last.arms if a in situation.left] or situation.left
        records = situation.pulls.records
        return self._afterwards.decide(arms, records, self._streams, situation.k)

    def _record(self, study: Study, trial: FrozenTrial, situation: Situation) -> None:
        """Store the rounds that are opened for a trial."""
        n_arms = len(situation.arms)
        if self.unit == "trials" and n_arms > self.filtering.budget and not self._said_few:
            self._said_few = True
            _logger.warning(
                f"{n_arms} arms share a budget of {self.filtering.budget:g} trials: not every arm"
                " will be tried."
            )
        opened = self._next(situation).opened
        if opened:
            stored = [r.to_dict() for r in opened]
            _private.write_rounds(study, trial, self.arm, stored)
        for outcome in opened:
            lost = lost_incumbent(outcome, situation.pulls.records, situation.left)
            if lost is not None:
                _logger.warning(describe_lost_incumbent(outcome, situation.arms.names[lost]))

    def _after(
        self,
        study: Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> Situation | None:
        """The situation of the next trial; None without arms."""
        whole = _private.whole_study(study)
        known = self._known(whole)
        view = known.memory.view(whole, trial)
        done = _private.as_finished(study, trial, state, values)
        view = known.memory.with_finished(view, done)
        arms = self._asked(trial) or self._arms(known)
        return None if arms is None else known.situation(view, arms, trial.number + 1)

    def _next(self, situation: Situation) -> Turn:
        return self.filtering.next(
            situation.left,
            situation.pulls.records,
            situation.rounds,
            self._streams,
            situation.k,
        )
