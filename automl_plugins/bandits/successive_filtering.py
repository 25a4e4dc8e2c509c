"""Adaptive successive filtering of BOASF (Zhu 2020, section 3): arms share a budget in rounds.

=======  ==========================================================================================
mu, s    mean and standard deviation of an arm's rewards so far, N of them
UCB      mu + c s / sqrt(N), the Gaussian upper confidence bound of an arm
p        (UCB - min UCB) / (max UCB - min UCB): with this probability an arm advances
share    softmax(UCB / temperature): an arm's part of a round's budget
=======  ==========================================================================================

In the paper's loop each arm is pulled until its share is used up, so the last evaluation of every
arm in every round overruns. Here debts and savings are carried over, an evaluation starts only if
about half of it still fits, and later rounds share what is really left (``carry_debts=False`` is
the paper's loop, except that it ends when the budget is spent).

The goal of a search is the best single trial, which the arm with the best mean often does not
have. So the default compares arms by their best reward, and the arm of the best trial always
advances; ``score="mean"`` is the paper's UCB.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from automl_plugins._arguments import check_choice, check_finite, check_integer
from automl_plugins.arrays import FloatArray, IntArray
from automl_plugins.formats import format_count
from automl_plugins.records.trial import ROUNDING, finite_or_none, is_used_up
from automl_plugins.streams import Streams

from .policy import ArmChoice, best_of
from .records import ArmRecords, ArmStatistics

Score = Literal["mean", "maximum"]
Unit = Literal["trials", "seconds"]

# (c, temperature): for means as in the paper; for maxima a sharp softmax, in which an arm 0.02
# below the best one gets 1 / e of the best one's share.
_DEFAULTS: dict[Score, tuple[float, float]] = {"mean": (2.0, 1.0), "maximum": (0.0, 0.02)}


PAPER: dict[str, Any] = dict(score="mean", c=2.0, temperature=1.0, min_pulls=1, carry_debts=False)
"""The arguments of ``SuccessiveFiltering`` that follow Zhu (2020)."""


@dataclass(frozen=True)
class Decision:
    """The decision of a round on one arm."""

    arm: int
    advances: bool  # whether it takes part in the round
    score: float | None  # upper confidence bound; None for an arm without rewards
    probability: float | None  # of advancing; None in the first round
    share: float = 0.0  # of the round's budget, in its unit; 0 for an arm that left
    limit: float = 0.0  # total spending of the arm at which its share is used up
    reason: str = ""  # why it takes part or left, in words


@dataclass(frozen=True)
class Round:
    """One round.

    Attributes:
        index: Counted from 0.
        limit: Total spending of all arms at its end.
        decisions: One for each arm of the round before, in ascending order.
        finished: How many pulls had finished when it was opened.

    Example::

        first = SuccessiveFiltering(30).open([0, 1], records, None, Streams(1))
        assert Round.from_dict(first.to_dict()) == first
    """

    index: int
    limit: float
    decisions: tuple[Decision, ...]
    finished: int = 0

    @property
    def arms(self) -> tuple[int, ...]:
        """The arms that take part."""
        return tuple(d.arm for d in self.decisions if d.advances)

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON keeps unchanged."""
        return {**asdict(self), "decisions": [asdict(d) for d in self.decisions]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Round:
        """The inverse of ``to_dict``."""
        decisions = tuple(Decision(**d) for d in data["decisions"])
        finished = int(data.get("finished") or 0)
        return cls(int(data["index"]), float(data["limit"]), decisions, finished)


@dataclass(frozen=True)
class Turn:
    """The next step of a search."""

    arm: int | None  # None without an arm, or if the budget is spent or kept for running pulls
    opened: tuple[Round, ...] = ()  # rounds opened by this step, to be stored by the caller
    current: Round | None = None  # the newest round, in which ``arm`` takes part

    @property
    def choice(self) -> ArmChoice | None:
        """The arm, why it was chosen, its score and the round; None without an arm."""
        if self.arm is None or self.current is None:
            return None
        # Without rewards, or where it took no part in the round before, the arm has no score.
        score = next((d.score for d in self.current.decisions if d.arm == self.arm), None)
        return ArmChoice(self.arm, "share of BOASF", score, self.current.index + 1)


def advance_probabilities(scores: npt.ArrayLike) -> FloatArray:
    """Probabilities (K,) of advancing: min-max scaled finite scores, 1 for infinite ones.

    The best always advances and the worst never does; if all are equal, all advance.
    """
    values = np.asarray(scores, dtype=np.float64)
    known = np.isfinite(values)
    out = np.ones(len(values))
    if known.any():
        low, high = values[known].min(), values[known].max()
        if high > low:
            out[known] = (values[known] - low) / (high - low)
    return out


def softmax_shares(scores: npt.ArrayLike, temperature: float = 1.0) -> FloatArray:
    """Parts (K,) of a budget, summing to 1; infinite scores count as the largest finite one."""
    values = np.asarray(scores, dtype=np.float64)
    finite = values[np.isfinite(values)]
    values = np.where(np.isfinite(values), values, finite.max() if len(finite) else 0.0)
    weights = np.exp((values - values.max()) / temperature)
    return np.asarray(weights / weights.sum())


class _Ledger(NamedTuple):
    """The cost of the arms so far, in the unit of the budget, running pulls included."""

    statistics: ArmStatistics  # of all arms up to the largest number
    spent: FloatArray  # cost of each arm (K,)
    expected: FloatArray  # cost of its next pull (K,); 0 where nothing is known

    def left(self, budget: float) -> float:
        """The rest of a budget, with a margin for rounding of the sum; 0 if it is used up."""
        spent = float(self.spent.sum())
        return 0.0 if is_used_up(spent, budget) else (1.0 + ROUNDING) * budget - spent


class SuccessiveFiltering:
    """Adaptive successive filtering: which arm may spend how much, round by round.

    All methods are pure functions. The caller stores the rounds: their decisions are drawn once,
    so that results which arrive late do not change them.

    Args:
        budget: Trials or seconds in all; > 0.
        unit: Unit of ``budget``.
        rounds: Rounds of equal budget; >= 1.
        score: What is compared: ``"maximum"``, the best reward, which is the goal of a search
            (the arm of the best complete pull always advances), or ``"mean"``, the paper's bound
            of the mean reward, which may drop that arm.
        c: Weight of the uncertainty s / sqrt(N); >= 0. None is 0 for maxima and the paper's 2
            for means.
        temperature: Temperature of the softmax; > 0. None is 0.02 for maxima and the paper's 1 for
            means, which makes shares of scores in [0, 1] nearly equal (e^0.9 / e^0.6 = 1.35).
        min_pulls: Evaluations of each arm in the first round, whatever they cost, as far as the
            budget goes; >= 1.
        carry_debts: Whether what an arm spent beyond or below its share changes its next share.

    Raises:
        ValueError: For an argument outside its range.

    Example::

        filtering = SuccessiveFiltering(30, rounds=3)
        turn = filtering.next([0, 1], records, rounds, Streams(1), k=3)
        rounds += turn.opened  # kept by the caller
    """

    def __init__(
        self,
        budget: float,
        *,
        unit: Unit = "trials",
        rounds: int = 3,
        score: Score = "maximum",
        c: float | None = None,
        temperature: float | None = None,
        min_pulls: int = 1,
        carry_debts: bool = True,
    ) -> None:
        check_choice("unit", unit, get_args(Unit))
        check_finite("budget", budget, positive=True)
        check_integer("rounds", rounds, 1)
        if score not in _DEFAULTS:
            raise ValueError(
                "score must be 'maximum' (an arm's best reward) or 'mean' (the paper's bound of"
                f" its mean reward), got {score!r}."
            )
        c = _DEFAULTS[score][0] if c is None else c
        temperature = _DEFAULTS[score][1] if temperature is None else temperature
        check_finite("c", c)
        check_finite("temperature", temperature, positive=True)
        check_integer("min_pulls", min_pulls, 1)
        self.budget = float(budget)
        self.unit: Unit = unit
        self.rounds = rounds
        self.c = c
        self.temperature = temperature
        self.score: Score = score
        self.min_pulls = min_pulls
        self.carry_debts = carry_debts

    @classmethod
    def paper(
        cls, budget: float, *, unit: Unit = "trials", rounds: int = 3
    ) -> SuccessiveFiltering:
        """Algorithm 1 as printed: the bound of the mean with c = 2, its plain softmax, no debts.

        Differences: The search ends when the budget is spent. The printed loop overruns it in
        every round, so here the last rounds are short or missing, and an arm may never be tried
        if evaluations are expensive. If all scores are equal, and equation 7 is 0 / 0, all arms
        advance. A failed evaluation has reward 0 instead of none. An arm that failed three times
        without a success waits for the end of the round; then it is dropped, as in the paper.
        """
        return cls(budget, unit=unit, rounds=rounds, **PAPER)

    def suffices_for(self, n_arms: int) -> bool:
        """Whether the budget has ``min_pulls`` for each arm; always True for one in seconds."""
        return self.unit == "seconds" or n_arms * self.min_pulls <= self.budget

    def next(
        self,
        arms: Sequence[int],
        records: ArmRecords,
        rounds: Sequence[Round],
        streams: Streams,
        k: int,
    ) -> Turn:
        """The arm of pull ``k``, and the rounds that are opened for it.

        An arm that has failed three times and never succeeded is not pulled again unless all
        have. If the arms of the last round have nothing left to try, an extra round shares the
        rest of the budget among all other arms.

        Args:
            arms: Arms that have something left to try.
            records: All pulls so far, running ones included.
            rounds: The rounds so far, as they were stored.
            streams: Source of randomness.
            k: Number of this pull; the same number gives the same random draws.
        """
        current = rounds[-1] if rounds else None
        if not len(arms):
            return Turn(None, current=current)
        ledger = self._ledger(records, arms)
        usable = ledger.statistics.working(np.unique(np.asarray(arms, dtype=np.int64))).tolist()
        opened: list[Round] = []
        while True:
            if current is not None:
                arm = self.choose(current, records, usable, streams, k)
                spent = is_used_up(float(ledger.spent.sum()), self.budget)
                last = current.index + 1 >= self.rounds
                if arm is not None or spent or (last and set(current.arms) & set(usable)):
                    return Turn(arm, tuple(opened), current)
                if last:  # nothing is left in its arms: an extra round of the others
                    arms = usable
            current = self.open(arms, records, current, streams)
            opened.append(current)

    def open(
        self,
        arms: Sequence[int],
        records: ArmRecords,
        previous: Round | None,
        streams: Streams,
    ) -> Round:
        """The round after ``previous`` (None: the first), drawn from the finished records.

        The first round takes all ``arms``. A later round filters the arms of the round before; if
        none of these is left in ``arms``, it filters all ``arms``.

        Raises:
            ValueError: If there is no arm.
        """
        if not len(arms):
            raise ValueError("There is no arm that could take part in a round.")
        ready = np.unique(np.asarray(arms, dtype=np.int64))
        # With the arms of the round before: one may have left ``arms`` without a pull.
        ledger = self._ledger(records, [*ready, *(previous.arms if previous else ())])
        if previous is None:
            decisions = [
                Decision(a, True, None, None, reason="first round") for a in ready.tolist()
            ]
        else:
            decisions = self._filter(previous, ready, ledger, records.incumbents(), streams)
        index = 0 if previous is None else previous.index + 1
        granted = self._grant(index, decisions, previous, ledger)
        return replace(granted, finished=int(records.finished.sum()))

    def choose(
        self,
        current: Round,
        records: ArmRecords,
        arms: Sequence[int],
        streams: Streams,
        k: int,
    ) -> int | None:
        """The arm of the next pull in this round; None when the round is over.

        An arm that has failed three times and never succeeded waits for the end of the round,
        unless all have: if it fails at once, it would never use up a share in seconds. The
        arguments are those of ``next``.
        """
        ledger = self._ledger(records, current.arms)
        left = ledger.left(self.budget)
        ready = np.intersect1d(np.asarray(arms, dtype=np.int64), current.arms)
        if not len(ready) or left <= 0:
            return None
        works = set(ledger.statistics.working(ready).tolist())
        open_arms = [d for d in current.decisions if d.arm in works]
        index = np.array([d.arm for d in open_arms], dtype=np.int64)
        share = np.array([d.share for d in open_arms])
        room = np.array([d.limit for d in open_arms]) - ledger.spent[index]
        cost = ledger.expected[index]
        rng = streams.generator("pull", k)
        if current.index == 0:
            # No arm is judged by fewer pulls, even if one evaluation takes more than a share.
            pulls = ledger.statistics.pulls[index]
            due = (pulls < self.min_pulls) & (cost <= left)
            if due.any():
                return best_of(index[due], -pulls[due].astype(np.float64), rng)
        fits = room > 0
        if self.carry_debts:
            in_time = ledger.spent.sum() < current.limit
            # Half a pull has to fit, so debts and savings are about half a pull at most.
            fits &= (room >= cost / 2) & (cost <= left) & in_time
        if fits.any():
            # Shares are used up evenly; those of a sharp softmax may underflow to 0.
            return best_of(index[fits], (room / np.maximum(share, 1e-300))[fits], rng)
        if current.index >= self.rounds - 1:
            # The rest after all shares goes to the best arm whose next pull still fits.
            fits = cost <= left
            scores = np.array([np.inf if d.score is None else d.score for d in open_arms])
            return best_of(index[fits], scores[fits], rng) if fits.any() else None
        return None

    # --- parts ----------------------------------------------------------------------------

    def _ledger(self, records: ArmRecords, arms: Sequence[int] | IntArray) -> _Ledger:
        statistics = ArmStatistics.from_records(records, int(max(arms)) + 1)
        if self.unit == "trials":
            pulls = statistics.pulls.astype(np.float64)
            return _Ledger(statistics, pulls, np.ones(len(pulls)))
        # Pulls of unknown cost, such as failures, are not free: they cost what the others did.
        timed = statistics.timed
        mean = statistics.seconds.sum() / max(1, int(timed.sum()))
        known = statistics.seconds / np.maximum(timed, 1)
        cost = np.where((timed == 0) & (statistics.scored > 0), mean, known)
        unknown = statistics.pulls - timed
        return _Ledger(statistics, statistics.seconds + unknown * cost, cost)

    def _filter(
        self,
        previous: Round,
        ready: IntArray,
        ledger: _Ledger,
        incumbents: set[int],
        streams: Streams,
    ) -> list[Decision]:
        """Decide which arms of the round before advance (paper 3.2, equations 6 and 7)."""
        before = np.array(previous.arms, dtype=np.int64)
        if not np.isin(before, ready).any():  # all others have nothing left to try
            before = ready
        statistics = ledger.statistics
        # One failure is enough: an arm without a success is dropped, as in the paper.
        works = statistics.working(np.intersect1d(before, ready), failures=1)
        failing = statistics.failing(1)
        sd, n = np.sqrt(statistics.variance[before]), statistics.scored[before]
        level = statistics.mean[before] if self.score == "mean" else statistics.best[before]
        bound = level + self.c * sd / np.sqrt(np.maximum(n, 1))
        # A maximum of -inf (no success) is judged only if no arm has a success: all advance then.
        scores = np.where(n > 0, bound, np.inf)  # what has no result yet is not dropped
        judged = np.isin(before, works)
        probabilities = np.zeros(len(before))
        probabilities[judged] = advance_probabilities(scores[judged])
        if self.score == "maximum":
            # A pruned pull, or c > 0, may put another arm above the one with the best trial.
            probabilities[judged & np.isin(before, list(incumbents))] = 1.0
        # A draw for each arm number, so that it does not depend on which other arms are left.
        draws = streams.generator("filter", previous.index + 1).random(int(before.max()) + 1)
        decisions = []
        for place, arm in enumerate(before.tolist()):
            score = finite_or_none(scores[place])
            probability = float(probabilities[place])
            advances = bool(judged[place] and draws[arm] < probability)
            if arm not in ready:
                reason = "has nothing left to try"
            elif not judged[place]:
                reason = "failed every time"
            elif failing[arm]:  # judged all the same: all arms that can be pulled have failed
                reason = f"failed {format_count(int(n[place]), 'time')}"
            elif score is None:
                reason = "no result yet"
            elif advances:
                reason = "best" if probability == 1.0 else "drawn to advance"
            else:
                reason = "worst" if probability == 0.0 else "drawn to leave"
            decisions.append(Decision(arm, advances, score, probability, reason=reason))
        return decisions

    def _grant(
        self, index: int, decisions: list[Decision], previous: Round | None, ledger: _Ledger
    ) -> Round:
        """Share the round's budget among the advancing arms (paper 3.3, equation 8)."""
        scores = np.array([np.inf if d.score is None else d.score for d in decisions])
        advances = np.array([d.advances for d in decisions])
        arms = np.array([d.arm for d in decisions])[advances]
        spent = ledger.spent[arms]
        total = float(ledger.spent.sum())
        if not self.carry_debts:
            budget, balance = self.budget / self.rounds, np.zeros(len(arms))
        else:
            # Savings (> 0) and debts of each arm; one that took no part before has neither.
            limits = {} if previous is None else {d.arm: d.limit for d in previous.decisions}
            balance = np.array([limits.get(a, ledger.spent[a]) for a in arms.tolist()]) - spent
            # The extra round of ``next`` has an index of ``rounds`` or more.
            left = max(self.budget - total, 0.0) / max(self.rounds - index, 1)
            budget = max(left - float(balance.sum()), 0.0)  # debts are paid out of the new shares
        shares = budget * softmax_shares(scores[advances], self.temperature)
        granted = iter(zip(shares.tolist(), (spent + balance + shares).tolist(), strict=True))
        final = []
        for d in decisions:
            share, limit = next(granted) if d.advances else (0.0, float(ledger.spent[d.arm]))
            final.append(replace(d, share=share, limit=limit))
        limit = min(total + budget + float(balance.sum()), self.budget)
        return Round(index, limit, tuple(final))
