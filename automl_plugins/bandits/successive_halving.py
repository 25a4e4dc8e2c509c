"""Successive halving and Hyperband with stated budgets (Sarigiannis 2019, section 2).

======  ===========================================================================================
r       resource of an evaluation, a part of the full one: of the training rows, of the epochs
s_max   floor(-log_eta r_min), so there are s_max + 1 rungs
n_i     floor(n eta^-i), the configurations evaluated in rung i
r_i     eta^(-s_max + i), their resource; the last rung has all of it
b       sum of n_i r_i, the budget in full evaluations (eq. 2)
======  ===========================================================================================

What differs from algorithm 1 is the result: line 13 returns the finalist with the smallest loss of
any rung, ``best`` the smallest loss of the full resource.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from automl_plugins._arguments import check_integer

C = TypeVar("C")

_SLACK = 1e-9  # 3^5 / 243 may be a rounding above 1


@dataclass(frozen=True)
class Rung:
    """How many configurations are evaluated with which resource."""

    n: int  # configurations, >= 1
    resource: float  # part of the full one, in (0, 1]


@dataclass(frozen=True)
class Evaluation(Generic[C]):
    """One evaluation of a schedule; configurations, brackets and their rungs count from 0."""

    number: int  # of the configuration, through all brackets
    configuration: C  # what ``sample(number)`` returned
    bracket: int
    rung: int
    resource: float  # part of the full one
    loss: float  # minimised; NaN or inf if it failed


def promote(losses: npt.ArrayLike, keep: int) -> npt.NDArray[np.int64]:
    """Indices of the ``keep`` smallest of the losses (n,), the best first.

    Equal losses keep their order. Failed evaluations (NaN) come last: they are promoted only if
    too few have succeeded, so that the whole budget is used as stated.
    """
    values = np.asarray(losses, dtype=np.float64)
    return np.argsort(values, kind="stable")[:keep]  # NumPy sorts NaN behind inf


def best(evaluations: Iterable[Evaluation[C]]) -> Evaluation[C]:
    """The evaluation with the smallest loss among those with the largest resource, the first.

    Algorithm 1 of the paper returns the finalist with the smallest loss of any rung (line 13).
    Losses at unequal resources are not compared here: a lucky loss on a ninth of the data is no
    evidence against a loss on all of the data. If all evaluations with the full resource failed
    (NaN or inf), the largest resource with a success counts.

    Raises:
        ValueError: If none has succeeded.
    """
    done = [e for e in evaluations if e.loss < math.inf]
    if not done:
        raise ValueError("No evaluation has succeeded: there is no best one.")
    full = max(e.resource for e in done)
    return min((e for e in done if e.resource == full), key=lambda e: e.loss)


def promotions(r_min: float, eta: int) -> int:
    """Number of promotions from ``r_min`` to the full resource, floor(-log_eta r_min)."""
    check_integer("eta", eta, 2)
    if not 0.0 < r_min <= 1.0:
        raise ValueError(
            f"r_min must lie in (0, 1], got {r_min!r}: it is a part of the full resource."
        )
    s = 0
    while r_min * eta ** (s + 1) <= 1.0 + _SLACK:  # log_3(243) rounds below 5
        s += 1
    return s


@dataclass(frozen=True)
class _Schedule(ABC):
    """One schedule of successive halving or several, with the arguments of both classes below."""

    n: int
    r_min: float = 1 / 9
    eta: int = 3

    def __post_init__(self) -> None:
        least, why = self._least(promotions(self.r_min, self.eta))
        check_integer("n", self.n, 1)
        if self.n < least:
            raise ValueError(
                f"n must be at least {least} with r_min={self.r_min:g} and eta={self.eta}, {why},"
                f" got {self.n}."
            )

    @abstractmethod
    def _least(self, s_max: int) -> tuple[int, str]:
        """The smallest ``n``, and why."""

    @property
    @abstractmethod
    def brackets(self) -> tuple[SuccessiveHalving, ...]:
        """The schedules of successive halving that are executed, the most exploring one first."""

    @property
    def budget(self) -> float:
        """The cost of all evaluations, in full evaluations (eq. 2 and 4)."""
        return math.fsum(r.n * r.resource for bracket in self.brackets for r in bracket.rungs)

    def run(
        self,
        sample: Callable[[int], C],
        evaluate: Callable[[C, float], float],
        *,
        catch: tuple[type[Exception], ...] = (),
        map: Callable[..., Iterable[float]] = map,
    ) -> list[Evaluation[C]]:
        """Run all evaluations.

        Args:
            sample: Returns configuration number i.
            evaluate: Returns the loss of a configuration, given its part of the full resource, in
                (0, 1]; NaN if it failed.
            catch: Exceptions of ``evaluate`` that count as failures; others end the run.
            map: Evaluates the configurations of a rung, such as ``map`` of an executor.

        Returns:
            All evaluations, bracket by bracket and rung by rung; see ``best``.
        """
        out: list[Evaluation[C]] = []
        configurations: list[C] = []
        for b, bracket in enumerate(self.brackets):
            first = len(configurations)
            numbers = list(range(first, first + bracket.n))
            configurations += [sample(i) for i in numbers]
            for r, rung in enumerate(bracket.rungs):
                loss_of = partial(_loss, evaluate, rung.resource, catch)
                losses = [float(x) for x in map(loss_of, [configurations[i] for i in numbers])]
                out += [
                    Evaluation(i, configurations[i], b, r, rung.resource, loss)
                    for i, loss in zip(numbers, losses, strict=True)
                ]
                # As many as the next rung has: flooring twice is flooring n / eta^(i + 1) once.
                numbers = [numbers[i] for i in promote(losses, rung.n // bracket.eta).tolist()]
        return out


def _loss(
    evaluate: Callable[[C, float], float],
    resource: float,
    catch: tuple[type[Exception], ...],
    configuration: C,
) -> float:
    try:
        return evaluate(configuration, resource)
    except catch:
        return math.nan


class SuccessiveHalving(_Schedule):
    """Evaluate many configurations cheaply, and the best 1 / eta of them with eta times as much.

    With ``r_min=1`` this is random search. ``of_budget`` gives schedules that cost the same.

    Args:
        n: Configurations in the first rung; >= eta^s_max, so that one reaches the last.
        r_min: Least resource, in (0, 1]; the first rung has eta^-s_max, which may be more.
        eta: One in eta is promoted; an integer >= 2.

    Raises:
        ValueError: For an argument outside its range.
        TypeError: For an ``n`` or ``eta`` that is not whole.

    Example::

        evaluations = SuccessiveHalving(n=9).run(sample, evaluate)
    """

    def _least(self, s_max: int) -> tuple[int, str]:
        return self.eta**s_max, "so that one configuration reaches the last rung"

    @classmethod
    def of_budget(cls, budget: int, s: int, *, eta: int = 3) -> SuccessiveHalving:
        """The schedule of s + 1 rungs that share a budget equally (table 1: SH_s).

        With eta = 3 it costs ``budget`` for s = 0, 1 and 2 if that is a multiple of 6, else less
        by at most one evaluation: 33, 32.3 and 33 of 33.

        Args:
            budget: Budget in full evaluations; > s.
            s: Number of promotions: 0 is random search, and more explore more.
            eta: One in eta is promoted; an integer >= 2.

        Raises:
            ValueError: For an argument outside its range.
            TypeError: For an argument that is not whole.
        """
        promotions(1.0, eta)
        check_integer("s", s, 0)
        check_integer("budget", budget, s + 1)  # a full evaluation for each rung
        return cls(budget * eta**s // (s + 1), 1 / eta**s, eta)

    @property
    def rungs(self) -> tuple[Rung, ...]:
        """The rungs, the least resource first."""
        s = promotions(self.r_min, self.eta)
        return tuple(Rung(self.n // self.eta**i, 1 / self.eta ** (s - i)) for i in range(s + 1))

    @property
    def brackets(self) -> tuple[SuccessiveHalving, ...]:
        """The schedule itself."""
        return (self,)


class Hyperband(_Schedule):
    """Schedules of successive halving of nearly equal budget, from s_max promotions down to none.

    Which of them suits a task is not known before, so all are executed (Li 2016). With eta = 3
    and r_min = 1/9 they are SH2, SH1 and SH0 of the paper, and the budget is 3 n if n is a
    multiple of 6, else less by at most 4/3; see ``budget``.

    Args:
        n: Largest cost of each schedule, in full evaluations; > s_max.
        r_min: Least resource, in (0, 1].
        eta: See ``SuccessiveHalving``, also for the errors.

    Example::

        from automl_plugins.bandits.successive_halving import best

        evaluations = Hyperband(n=6).run(sample, evaluate)
        best(evaluations)  # of those at the full resource
    """

    def _least(self, s_max: int) -> tuple[int, str]:
        return s_max + 1, "a full evaluation for each rung of the longest schedule"

    @property
    def brackets(self) -> tuple[SuccessiveHalving, ...]:
        """The schedules, the one that explores most first."""
        order = range(promotions(self.r_min, self.eta), -1, -1)
        return tuple(SuccessiveHalving.of_budget(self.n, s, eta=self.eta) for s in order)
