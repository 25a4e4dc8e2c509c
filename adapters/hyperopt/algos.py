"""Suggest functions for ``fmin`` that choose a model first: by fixed weights, or as a bandit.

Both are an ``algo=`` themselves; options are given by a call, ``algo=bandit(policy=UCB1())``, or
by ``functools.partial``. The option ``seed=`` is for runs that are to be continued: proposals
then depend on it and on the number of the trial in place of what ``fmin`` draws from ``rstate``.

An arm is an option of the root choice, or of the choice named ``label``; hyperparameters outside
of it belong to every arm. Inside an arm any other suggest function proposes and sees that arm's
trials only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from functools import partial, wraps
from inspect import signature
from typing import Any

from hyperopt import Domain, Trials, tpe

from automl_plugins.bandits.policy import Policy
from automl_plugins.bandits.ucb import MaxUCB
from automl_plugins.streams import Streams

from ._arms import Arms, Suggest, Weights, arms_of, inner_of, option_weights
from ._documents import Document, new_document
from ._private import all_documents
from ._pulls import Pulls, reader_of


def _with_options(suggest: Suggest) -> Callable[..., Any]:
    """Lets a suggest function be called with options only, for a partial of it."""
    known = signature(suggest)

    @wraps(suggest)
    def algo(*args: Any, **options: Any) -> Any:
        if not args:
            own = {name: value for name, value in options.items() if name != "seed"}
            known.bind(None, None, None, None, **own)  # misspelt options are refused here
            return partial(algo, **options)
        if len(args) == 4 and "seed" in options:
            args = (*args[:3], options.pop("seed"))
        return suggest(*args, **options)

    return algo


@_with_options
def weighted(
    new_ids: Sequence[int],
    domain: Domain,
    trials: Trials,
    seed: int,
    *,
    label: str | None = None,
    weights: Weights = "2^N",
    inner: Suggest | str = "random",
    paper: bool = False,
) -> list[Document]:
    """Weighted model sampling (Sarigiannis et al. 2019): models with more to tune come more often.

    As it is by default it is the paper's RS.W; Hyperopt has no budgets of a trial, so SH.W and
    HB.W are ``automl_plugins.bandits.SuccessiveHalving`` and ``Hyperband`` with these weights.

    Args:
        new_ids: Numbers of the trials to propose.
        domain: What is searched.
        trials: All trials so far.
        seed: Seed of this call.
        label: The choice whose options are weighted; None is the root.
        weights: ``"2^N"`` draws an option with a probability in proportion to two to the power of
            the number of its hyperparameters, nested ones included; ``"volume"`` to the product
            of their ranges. Otherwise a weight for each option: a mapping by its name or index,
            or a sequence in their order.
        inner: What proposes inside an option: ``"random"``, ``"tpe"`` or a suggest function.
        paper: Whether to refuse what is not the paper's: other weights, another inner function.

    Raises:
        ValueError: If the space has no such choice, or for weights that do not fit it.
    """
    if paper and (weights, inner) != ("2^N", "random"):
        raise ValueError(
            f"paper=True has weights='2^N' and inner='random', got {weights!r} and {inner!r}."
        )
    arms = arms_of(domain, label=label)
    p = option_weights(arms, weights)
    streams, suggest = Streams(seed), inner_of(inner, len(arms.arms))

    def choose(tid: int, pulls: Pulls) -> int:
        return int(streams.generator("weights", tid).choice(len(p), p=p))

    return _suggest(new_ids, domain, trials, arms, choose, suggest, streams, repeat=True)


@_with_options
def bandit(
    new_ids: Sequence[int],
    domain: Domain,
    trials: Trials,
    seed: int,
    *,
    policy: Policy | None = None,
    label: str | None = None,
    inner: Suggest | str = tpe.suggest,
    reward_range: tuple[float, float] | None = None,
) -> list[Document]:
    """A bandit over the options of a choice: the next trial goes where the policy says.

    Pending trials count as pulls; trials that fail, raise or return NaN count with reward 0.
    Configurations are not repeated: an option without hyperparameters is tried once, and when
    nothing is left to try in any option, no trial is proposed, which ends ``fmin``.

    Args:
        new_ids: Numbers of the trials to propose.
        domain: What is searched.
        trials: All trials so far.
        seed: Seed of this call.
        policy: Any of ``automl_plugins.bandits``; None is ``MaxUCB()``.
        label: The choice whose options are the arms; None is the root.
        inner: What proposes inside an option: ``"random"``, ``"tpe"`` or a suggest function.
            Hyperopt's TPE starts with 20 random trials that the options share, but each has at
            least 3; ``functools.partial(tpe.suggest, n_startup_jobs=...)`` sets the number.
        reward_range: The best and the worst loss there may be, which get the rewards 1 and 0;
            None scales by the losses so far, see ``RewardScale``.

    Raises:
        ValueError: If the space has no such choice.
        TypeError: For a policy that is none.
    """
    arms = arms_of(domain, label=label)
    streams, suggest = Streams(seed), inner_of(inner, len(arms.arms))
    chooser = MaxUCB() if policy is None else policy
    if not isinstance(chooser, Policy):
        raise TypeError(
            f"policy must be one of automl_plugins.bandits, such as UCB1(), got {policy!r}."
        )

    def choose(tid: int, pulls: Pulls) -> int | None:
        left = pulls.left(arms)
        return chooser.choose(left, pulls.records, streams, tid) if left else None

    return _suggest(
        new_ids, domain, trials, arms, choose, suggest, streams, reward_range=reward_range
    )


def _suggest(
    new_ids: Sequence[int],
    domain: Domain,
    trials: Trials,
    arms: Arms,
    choose: Callable[[int, Pulls], int | None],
    inner: Suggest,
    streams: Streams,
    *,
    reward_range: tuple[float, float] | None = None,
    repeat: bool = False,
) -> list[Document]:
    """A document for each id, as far as there is anything to propose."""
    known, reader = all_documents(trials), reader_of(trials, arms)
    new: list[Document] = []
    for tid in new_ids:
        pulls = reader.read([*known, *new], reward_range)
        arm = choose(tid, pulls)
        if arm is None:
            break
        tried: Set[Any] = frozenset() if repeat else pulls.tried.get(arm, frozenset())
        values = arms.arms[arm].propose(tid, pulls.documents(arm), inner, streams, tried)
        if values is None:
            break
        new.append(new_document(trials, domain, tid, values))
    return new
