"""Suggest functions for ``fmin`` that choose an arm first: by weights, a bandit, or filtering.

Each is an ``algo=`` itself; options are given by a call, ``algo=bandit(policy=UCB1())``, or by
``functools.partial``. The option ``seed=`` is for runs that are to be continued: proposals then
depend on it and on the number of the trial, not on what ``fmin`` draws from ``rstate``.

An arm is an option of the root choice, or of the choice named ``label``; hyperparameters outside
of it belong to every arm. Inside an arm any other suggest function proposes and sees that arm's
trials only. The document of a trial records its arm and why it was chosen.
"""

from __future__ import annotations

import logging
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Any

import numpy as np
from hyperopt import Domain, Trials, rand, tpe

from automl_plugins._arguments import check_budget, check_kind, level_of_caller
from automl_plugins.bandits.confidence import policy_or_default
from automl_plugins.bandits.model_weights import draw_weighted
from automl_plugins.bandits.policy import ArmChoice, Policy
from automl_plugins.bandits.records import loss_range
from automl_plugins.bandits.report import describe_dropped_best, describe_round
from automl_plugins.bandits.successive_filtering import PAPER, Score, SuccessiveFiltering
from automl_plugins.formats import format_budget
from automl_plugins.proposers.explanation import ArmFacts
from automl_plugins.spaces.cells import check_split
from automl_plugins.streams import Streams

from ._arms import Arms, ArmSpace, Split, Weights, arms_of, option_weights
from ._pulls import Cost, Situation, last_search, read_pulls, read_rounds
from .suggest import Algorithm, Suggest
from .trials import NOTE, Document, new_document, outer_note, unique_number

logger = logging.getLogger("automl_plugins.adapters.hyperopt.boasf")


class ArmMethod(ABC):
    """A method that chooses the arm of each trial; subclasses have the options as attributes.

    Attributes:
        label, inner, seed, reward_range: See ``Bandit``; the seed is used by ``Algorithm``.
        split, max_arms, cost: See ``Boasf``.
        repeats: Whether a configuration may be tried twice.
        owns_workers: Whether every running trial is one of this process, so none has been left
            by a worker that died.
    """

    owns_workers = False

    label: str | None
    inner: Suggest | str
    seed: int | None
    split: Split | None = None
    max_arms: int = 32
    reward_range: tuple[float, float] | None = None
    cost: Cost = None
    repeats: bool = False

    def __post_init__(self) -> None:
        inner_of(self.inner, 1)  # refuses what is not a suggest function
        self.reward_range = loss_range(self.reward_range)

    def space(self, domain: Domain) -> ArmSpace:
        """The search space divided into arms; ValueError if it has none."""
        return arms_of(domain, label=self.label, split=self.split, max_arms=self.max_arms)

    @abstractmethod
    def choose(
        self, space: ArmSpace, situation: Situation, streams: Streams, tid: int
    ) -> tuple[ArmChoice | None, dict[str, Any]]:
        """The arm of a trial, None if there is none left, and further notes for its document."""

    def search(self, arms: Arms) -> dict[str, Any]:
        """Plain data that distinguish this search from others in the same trials."""
        return {"arms": arms.to_dict()}

    def note_search(self, situation: Situation, *, again: bool = False) -> dict[str, Any]:
        """The data of ``search`` for the note of a trial; empty if the trials have them already.

        Not in every document, because they are long: readers look for the newest one with them.
        """
        search = self.search(situation.arms)
        is_known = not again and last_search(situation.known) == search
        return {} if is_known else {"search": search}

    def suggest(
        self,
        new_ids: Sequence[int],
        domain: Domain,
        trials: Trials,
        streams: Streams,
        known: Situation | None = None,
    ) -> list[Document]:
        """A document for each id, or fewer if there is nothing left to propose.

        ``known`` is what ``read`` has returned, if the trials have not changed since.
        """
        space = self.space(domain)
        inner = inner_of(self.inner, len(space.arms))
        name = self.inner if isinstance(self.inner, str) else full_name_of(inner).split(".")[-1]
        new: list[Document] = []
        for tid in new_ids:
            situation = self.read(domain, trials, new) if new or known is None else known
            number = unique_number(tid, situation.known)
            proposed = self._propose(space, situation, inner, trials, streams, number)
            if proposed is None:
                break
            choice, note, values, noted = proposed
            named_choice = asdict(choice) | {"arm": space.arms.names[choice.arm]}
            facts = ArmFacts(space.arms.choice, sampler=name, **named_choice)
            document = new_document(trials, domain, tid, values)
            own = {"arm": choice.arm, "why": facts.to_dict(), **note}
            search = self.note_search(situation, again="opened" in note)
            document["misc"][NOTE] = outer_note(noted) | own | search
            new.append(document)
        return new

    def _propose(
        self,
        space: ArmSpace,
        situation: Situation,
        inner: Any,
        trials: Trials,
        streams: Streams,
        number: int,
    ) -> tuple[ArmChoice, dict[str, Any], dict[str, Any], Mapping[str, Any]] | None:
        """The arm, its notes, values and their note; None if no arm has new values."""
        while True:
            choice, note = self.choose(space, situation, streams, number)
            if choice is None:
                return None
            tried = set() if self.repeats else situation.tried.get(choice.arm, set())
            seen = situation.documents(choice.arm)
            found = space.propose(choice.arm, number, trials, seen, inner, streams, tried)
            if found is not None:
                return choice, note, *found
            # The suggest function has nothing new to propose in this arm; in another it may have.
            situation = situation.without(choice.arm)

    def read(self, domain: Domain, trials: Trials, new: Sequence[Document] = ()) -> Situation:
        """All trials as pulls, including ``new`` ones that are not inserted yet.

        ValueError for trials of another search space.
        """
        return read_pulls(
            trials,
            self.space(domain).arms,
            domain=domain,
            cost=self.cost,
            reward_range=self.reward_range,
            new=new,
            all_alive=self.owns_workers,
        )


@dataclass(kw_only=True)
class Weighted(ArmMethod):
    """Weighted model sampling (Sarigiannis et al. 2019): models with more to tune come more often.

    The default is the paper's RS.W. Trials of Hyperopt have no budgets, so SH.W and HB.W are
    ``automl_plugins.bandits.SuccessiveHalving`` and ``Hyperband`` with these weights.

    Args:
        label: The choice whose options are weighted; None is the root.
        weights: ``"2^N"`` draws an option with a probability proportional to two to the power of
            the number of its hyperparameters, nested ones included; ``"volume"`` to the product
            of their ranges. Otherwise a weight for each option: a mapping by name or index, or a
            sequence in their order.
        paper: Whether to refuse deviations from the paper: other weights, another inner function.
        inner, seed: See ``bandit``.

    Raises:
        ValueError: If the space has no such choice, or for weights that do not fit it.

    Example::

        fmin(objective, space, algo=weighted, max_evals=60)
    """

    label: str | None = None
    weights: Weights = "2^N"
    inner: Suggest | str = "random"
    paper: bool = False
    seed: int | None = None
    repeats = True  # draws of the paper do not depend on earlier ones

    def __post_init__(self) -> None:
        super().__post_init__()
        # Weights may be an array, whose comparison has no truth value.
        is_paper = isinstance(self.weights, str) and self.weights == "2^N"
        if self.paper and not (is_paper and self.inner == "random"):
            raise ValueError(
                f"paper=True has weights='2^N' and inner='random', got {self.weights!r} and"
                f" {self.inner!r}."
            )

    def choose(
        self, space: ArmSpace, situation: Situation, streams: Streams, tid: int
    ) -> tuple[ArmChoice | None, dict[str, Any]]:
        """An arm that is not exhausted, drawn by its weight."""
        p = np.array(option_weights(space, self.weights))
        p[[*situation.exhausted]] = 0.0
        if not p.any():
            return None, {}
        return draw_weighted(range(len(p)), p / p.sum(), streams.generator("weights", tid)), {}


@dataclass(kw_only=True)
class Bandit(ArmMethod):
    """A bandit over the options of a choice: the policy chooses the arm of the next trial.

    Pending trials count as pulls; trials that fail, raise or return NaN have the reward 0.
    Configurations are not repeated: an option without hyperparameters is tried once, and when
    nothing is left to try in any option, no trial is proposed, which ends ``fmin``.

    Args:
        policy: Any of ``automl_plugins.bandits``; None is ``MaxUCB()``.
        label: The choice whose options are the arms; None is the root.
        inner: Suggest function inside an option, or ``"random"`` or ``"tpe"``.
            Hyperopt's TPE starts with 20 random trials that the options share, but each has at
            least 3; ``functools.partial(tpe.suggest, n_startup_jobs=...)`` sets the number.
        reward_range: The best and the worst possible loss, with the rewards 1 and 0, in either
            order; None scales by the losses so far, see ``RewardScale``.
        seed: For runs that are to be continued; None takes what ``fmin`` draws.

    Raises:
        ValueError: If the space has no such choice.
        TypeError: For a policy of the wrong type.

    Example::

        fmin(objective, space, algo=bandit(policy=UCB1()), max_evals=60)
    """

    policy: Policy | None = None
    label: str | None = None
    inner: Suggest | str = tpe.suggest
    reward_range: tuple[float, float] | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        policy_or_default(self.policy)  # refuses what is not a policy

    def choose(
        self, space: ArmSpace, situation: Situation, streams: Streams, tid: int
    ) -> tuple[ArmChoice | None, dict[str, Any]]:
        """The arm that the policy chooses."""
        if not situation.left:
            return None, {}
        policy = policy_or_default(self.policy)
        return policy.decide(situation.left, situation.pulls.records, streams, tid), {}


@dataclass(kw_only=True)
class Boasf(ArmMethod):
    """BOASF (Zhu 2020): the arms share a budget in rounds, and the better ones advance.

    A suggest function proposes within each arm and sees that arm's trials only. A configuration is
    not evaluated twice; an option without hyperparameters is evaluated once. An arm that always
    fails is dropped, unless all arms with something left to try fail. When the budget is spent no
    trial is proposed, which ends ``fmin``. A line for each round goes to the log (level INFO).

    Rounds are stored in the documents of the trials. With the same options and trials a search
    continues where it stopped. With another budget it opens new rounds; existing trials count, as
    in ``fmin``.

    Args:
        budget_seconds: Budget in seconds, added up over all evaluations, parallel ones too. A
            running evaluation is never stopped; one that is not expected to fit is not started,
            unless with ``paper=True`` or ``carry_debts=False``.
        max_evals: Budget in evaluations, failed ones and those in ``trials`` included.
        rounds, score, c, temperature, min_pulls, carry_debts: See
            ``automl_plugins.bandits.SuccessiveFiltering``.
        label: The choice whose options are the arms; None is the root, or if the root is not a
            choice, the only choice whose options have hyperparameters.
        split: Makes cells of the space the arms: number of parts of each hyperparameter's range
            on its own scale, or numbers by label, the most important first. Normal distributions
            and hyperparameters of only some options of a choice are left whole.
        max_arms: Largest number of cells; hyperparameters that would exceed it are left whole.
            The paper has up to 32.
        inner: Suggest function inside an arm, see ``bandit``.
        cost: Seconds charged for an evaluation: a text is a key of the result, a function gets
            the result. None takes the key ``"seconds"`` if the result has it, else the measured
            seconds, which also count for a failed trial without a cost.
        reward_range, seed: See ``bandit``.
        paper: Whether to follow algorithm 1 of the paper: it then sets score, c, temperature,
            min_pulls and carry_debts, which cannot be given. Rewards are scaled to [0, 1] unless
            ``reward_range`` is given, and TPE begins with fewer random trials in each arm, 3 if
            there are many; for the rest see ``bandits.SuccessiveFiltering.paper``.

    Raises:
        TypeError: For an argument of the wrong type.
        ValueError: For an argument outside its range, or a space without arms.

    Example::

        fmin(objective, space, algo=boasf(max_evals=100), max_evals=100)
    """

    budget_seconds: float | None = None
    max_evals: int | None = None
    rounds: int = 3
    score: Score = "maximum"
    c: float | None = None
    temperature: float | None = None
    min_pulls: int = 1
    carry_debts: bool = True
    label: str | None = None
    split: Split | None = None
    max_arms: int = 32
    inner: Suggest | str = tpe.suggest
    cost: Cost = None
    reward_range: tuple[float, float] | None = None
    paper: bool = False
    seed: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        budget, unit = check_budget(max_evals=self.max_evals, budget_seconds=self.budget_seconds)
        if self.label is not None and self.split is not None:
            raise ValueError(
                "label= makes the options of a choice the arms, split= makes cells of the whole"
                " space the arms: give one of them."
            )
        if self.split is not None:
            check_split(self.split, self.max_arms)
        # Checked here, because the cost is not used before the first trial has been evaluated.
        allowed = "None, a key of the result, or a function of the result"
        check_kind("cost", self.cost, str | Callable | None, allowed)
        if self.paper:
            # An argument that equals its default counts as not given: the two look the same.
            defaults = {field.name: field.default for field in fields(self)}
            changed = [name for name in PAPER if getattr(self, name) != defaults[name]]
            if changed:
                raise ValueError(
                    f"paper=True takes no {', '.join(changed)}: the paper sets them. Leave them"
                    " out, or leave out paper=True."
                )
        own = PAPER if self.paper else {name: getattr(self, name) for name in PAPER}
        self.filtering = SuccessiveFiltering(budget, unit=unit, rounds=self.rounds, **own)

    def search(self, arms: Arms) -> dict[str, Any]:
        """The arms, the budget, the number of rounds, and the key of the cost if it has one."""
        budget = {name: getattr(self, name) for name in ("budget_seconds", "max_evals", "rounds")}
        cost = {"cost": self.cost} if isinstance(self.cost, str) else {}
        return super().search(arms) | budget | cost

    def choose(
        self, space: ArmSpace, situation: Situation, streams: Streams, tid: int
    ) -> tuple[ArmChoice | None, dict[str, Any]]:
        """The arm whose share is next, after opening a new round if the last one has ended."""
        n, filtering = len(space.arms), self.filtering
        if not situation.rows and not filtering.suffices_for(n):  # once, at the first trial
            budget = format_budget(filtering.budget, "evaluations")
            warnings.warn(
                f"{n} arms, but {budget}: not every arm gets {filtering.min_pulls}. They are taken"
                " in random order; raise max_evals, or have fewer arms.",
                stacklevel=level_of_caller(),
            )
        rounds = read_rounds(situation.known, self.search(space.arms))
        records, left = situation.pulls.records, situation.left
        turn = filtering.next(left, records, rounds, streams, tid)
        if turn.current is None or turn.choice is None:
            return None, {}
        for opened in turn.opened:
            line = describe_round(opened, space.arms.names)
            best = "" if math.isinf(situation.best) else f" Best loss {situation.best:.6g}."
            logger.info("%s.%s", line, best)
        for line in describe_dropped_best(turn.opened, records, left, space.arms.names):
            logger.warning(line)
        note: dict[str, Any] = {"round": turn.current.index}
        if turn.opened:
            note["opened"] = [opened.to_dict() for opened in turn.opened]
        return turn.choice, note


weighted = Algorithm(Weighted)
bandit = Algorithm(Bandit)
boasf = Algorithm(Boasf)


# --- inside an arm ---------------------------------------------------------------------------

_NAMED: dict[str, Suggest] = {"random": rand.suggest, "tpe": tpe.suggest}

_STARTUP_JOBS = 20  # of Hyperopt's TPE, for the whole space
_FEWEST = 3  # start-up trials of an arm: with fewer TPE has nothing to compare


def inner_of(inner: Suggest | str, n_arms: int) -> Suggest:
    """The suggest function for each of ``n_arms`` arms, see ``Bandit``."""
    found = _NAMED.get(inner) if isinstance(inner, str) else inner
    if not callable(found):
        raise (ValueError if isinstance(inner, str) else TypeError)(
            "inner must be 'random', 'tpe' or a suggest function such as hyperopt.tpe.suggest,"
            f" got {inner!r}."
        )
    given = found.keywords if isinstance(found, partial) else {}
    if (found.func if isinstance(found, partial) else found) is not tpe.suggest:
        return found
    share = max(_FEWEST, math.ceil(_STARTUP_JOBS / max(n_arms, 1)))
    # If verbose, TPE logs two lines for each trial. Arguments of the user take precedence.
    return partial(found, **({"n_startup_jobs": share, "verbose": False} | given))


def full_name_of(suggest: Any) -> str:
    """Module and name of a function; if it is called ``suggest``, its module: ``hyperopt.tpe``."""
    while isinstance(suggest, partial):
        suggest = suggest.func
    name = getattr(suggest, "__qualname__", type(suggest).__qualname__)
    return str(suggest.__module__ if name == "suggest" else f"{suggest.__module__}.{name}")
