"""Why a trial was proposed, with what share of earlier tasks, and what each arm got."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import cast

from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState

from automl_plugins._arguments import check_kind
from automl_plugins.bandits.report import ArmReport
from automl_plugins.bandits.successive_filtering import Unit
from automl_plugins.proposers.explanation import ArmFacts, Explanation, read_parts
from automl_plugins.records.trial import as_number

from . import _private
from ._arm_reader import ArmReader
from ._arms import Arms, Split
from ._steps import Numeric
from .arm_recipes import BOASFSampler
from .arm_sampler import ArmSampler
from .initial_design import INITIAL_DESIGN
from .studies import check_study
from .trials import Cost


def explain(trial: FrozenTrial | Trial) -> Explanation:
    """Why a trial was proposed; it may be any trial, of any study and sampler.

    It is read from the user attributes that the samplers of this package store with a trial:
    ``automl_plugins`` (origin and predictions), ``automl_plugins:arm`` and, for samplers that
    learn from earlier tasks, ``automl_plugins:sources``
    (``{"own": share, "sources": {name: share}}``). Entries that were changed to something invalid
    are left out. If a sampler of arms is inside the arms of another one, the outer arm is shown;
    the facts of the inner one are in ``automl_plugins:arm:NAME``. For dashboards
    ``automl_plugins:member``, ``automl_plugins:predicted_bound`` and
    ``automl_plugins:predicted_seconds`` repeat facts of ``automl_plugins``.

    Args:
        trial: A trial, such as ``study.best_trial``.

    Raises:
        TypeError: For anything but a trial.
    """
    allowed = "a trial, such as study.trials[-1] or study.best_trial"
    check_kind("explain", trial, FrozenTrial | Trial, allowed)
    frozen = _private.frozen(trial)
    facts = _private.read_explanation(frozen)
    own, shares = _private.read_shares(frozen) or (None, None)
    arm = ArmFacts.from_dict(_private.read_arm_facts(frozen))
    fixed = _fixed(frozen)
    joint = facts.get("origin") in ("model", "design", "random")
    independent = _independent(frozen) if joint else []
    if joint and _is_unused(frozen):
        # No value is from its proposal, so the predictions in it do not describe this trial.
        unused = "independent" if independent else "given" if fixed else None
        facts = {} if unused is None else {"origin": unused}
        own, shares, independent = None, None, []
    # First values that Optuna takes without asking a sampler, then trials that asked for nothing.
    if _is_given(frozen):
        origin = _design(frozen) or "enqueued"
        facts, own, shares = {"origin": origin}, None, None
    elif frozen.state == TrialState.WAITING or not (frozen.params or frozen.state.is_finished()):
        origin = "pending"
    elif not frozen.params:
        facts, origin = {}, "unasked"
    elif arm is not None:
        origin = "inner"
    elif all(distribution.single() for distribution in frozen.distributions.values()):
        # Optuna has called no sampler.
        origin = "constant" if frozen.state.is_finished() else "pending"
    else:  # a sampler of this package stores its own time with each trial that it served
        origin = "independent" if _private.read_overhead(frozen) else "foreign"
    return Explanation.from_facts(
        frozen.number,
        facts,
        own_share=own,
        shares=shares,
        arm=arm,
        origin=origin,
        fixed=fixed,
        independent=independent,
    )


def source_shares(study: Study) -> dict[int, dict[str, float]]:
    """Share of each earlier task in the proposal of each trial; the rest to 1 is the search's own.

    Args:
        study: A study of a sampler that learns from earlier tasks.

    Returns:
        By number of the trial, shares by name of the source, such as ``{3: {"iris": 0.25}}``.
        Trials that no such sampler proposed, or without a value of a joint proposal, are absent.

    Raises:
        TypeError: For anything but a study.
    """
    check_study("source_shares", study)
    stored = ((t, _private.read_shares(t)) for t in study.get_trials(deepcopy=False))
    return {t.number: shares[1] for t, shares in stored if shares and _is_credited(t)}


def member_trust(study: Study) -> dict[int, dict[str, float]]:
    """How much each member of the committee was trusted when each trial was proposed.

    Args:
        study: A study of ``AutoSampler``.

    Returns:
        By number of the trial, probabilities by name of the member. Trials for which no member was
        drawn, or without a value that it proposed, are absent.

    Raises:
        TypeError: For anything but a study.
    """
    check_study("member_trust", study)
    trials = study.get_trials(deepcopy=False)
    stored = ((t, read_parts(_private.read_explanation(t), "trust")) for t in trials)
    return {t.number: trust for t, trust in stored if trust and _is_credited(t)}


def _fixed(trial: FrozenTrial) -> list[str]:
    """Names of the parameters whose values the user decided beforehand."""
    enqueued, held = _private.enqueued_values(trial), _private.read_explanation(trial).get("fixed")
    held = held if isinstance(held, list) else []  # else the user's own
    return [name for name in sorted(trial.params) if name in enqueued or name in held]


def _is_credited(trial: FrozenTrial) -> bool:
    """Whether a value of a trial comes from its joint proposal, or may still come from it."""
    return not (_is_given(trial) or _is_unused(trial))


def _is_unused(trial: FrozenTrial) -> bool:
    """Whether a finished trial asked for parameters, but for none of its joint proposal."""
    # A copy of a trial may be without its proposal.
    if not trial.state.is_finished() or not _private.read_proposal(trial):
        return False
    arm = ArmFacts.from_dict(_private.read_arm_facts(trial))
    own = {*_fixed(trial), "" if arm is None else arm.parameter}  # a policy chose that one
    free = {n for n, d in trial.distributions.items() if not d.single()} - own
    if not free:
        return arm is None or arm.parameter not in trial.params
    return free.issubset(_independent(trial))


def _is_given(trial: FrozenTrial) -> bool:
    """Whether all values of a trial were enqueued, or will be."""
    enqueued = _private.enqueued_values(trial)
    if trial.state == TrialState.WAITING:
        return bool(enqueued)
    return not trial.params.keys().isdisjoint(enqueued) and all(
        name in enqueued or d.single() for name, d in trial.distributions.items()
    )


def _design(trial: FrozenTrial) -> str | None:
    """The origin of a trial that ``enqueue_initial_design`` has enqueued; None for others."""
    note = trial.user_attrs.get(INITIAL_DESIGN)
    if not isinstance(note, Mapping):
        return None
    return "design" if note.get("design") == "space_filling" else "suggested"


def _independent(trial: FrozenTrial) -> list[str]:
    """Names of varying parameters whose value is neither the user's nor the joint proposal's."""
    fixed, proposed = _fixed(trial), _private.read_proposal(trial)

    def is_proposed(name: str) -> bool:
        value, of = as_number(proposed.get(name)), trial.distributions[name]
        if isinstance(of, Numeric):
            value = min(max(value, of.low), of.high)  # a memory's range may be wider
        internal = of.to_internal_repr(trial.params[name])
        return math.isclose(value, internal, rel_tol=1e-9, abs_tol=1e-12)

    return [
        name
        for name, distribution in trial.distributions.items()
        if name not in fixed and not distribution.single() and not is_proposed(name)
    ]


# --- arms -----------------------------------------------------------------------------------


def arm_report(
    study: Study,
    arm: str | None = None,
    *,
    split: int | Mapping[str, int] | None = None,
    max_arms: int = 32,
    reward_range: tuple[float, float] | None = None,
    cost: Cost = None,
) -> ArmReport:
    """The trials that each arm of a study got, when it left, and why.

    Any sampler may have run the study; rounds are reported if ``BOASFSampler`` stored them.

    Args:
        study: A study with one objective.
        arm: Name of the categorical parameter whose choices are the arms; None takes the arms of
            the study's sampler.
        split: Makes cells of the search space the arms, see ``BOASFSampler``.
        max_arms: See ``BOASFSampler``.
        reward_range: As in the samplers; None takes the one of the study's sampler.
        cost: As in the samplers; None takes the one of the study's sampler.

    Raises:
        TypeError: For anything but a study.
        ValueError: If the study has several objectives, if ``arm`` is None and the sampler has no
            arms, or if no trial has asked for the parameter.
    """
    check_study("arm_report", study)
    sampler = _private.base_sampler(study.sampler)
    key, cells, declared = _reported(
        sampler, arm, None if split is None else Split(split, max_arms)
    )
    if isinstance(sampler, ArmSampler):
        reward_range = reward_range or sampler.reward_range
        cost = cost or sampler.cost
    reader = ArmReader(study, key, cost, reward_range, cells, declared)
    view = reader.everything(study)
    arms = reader.arms
    if arms is None:
        if cells is not None:
            lacks = "has a parameter to split" if reader.has_complete else "is complete"
            raise ValueError(f"No trial of the study {lacks}: its cells are not known yet.")
        raise ValueError(
            f"No trial of the study has asked for {key!r}. Its categorical parameters:"
            f" {sorted(reader.categories)}."
        )
    # As if the next trial were to be chosen.
    situation = reader.situation(view, arms, len(view))
    notes: list[str] = list(arms.notes)
    unit: Unit = "trials" if situation.budget is None else cast("Unit", situation.budget[1])
    if isinstance(sampler, BOASFSampler) and key == sampler.arm:
        unit = sampler.filtering.unit  # known before the first round
        if sampler.is_spent(situation):
            notes.append(sampler.describe_spent(situation))
    return ArmReport.from_pulls(
        arms.names,
        situation.pulls,
        [a for a in range(len(arms)) if a not in situation.exhausted],
        rounds=situation.rounds,
        notes=notes,
        maximize=reader.maximize,
        unit=unit,
    )


def _reported(
    sampler: BaseSampler, arm: str | None, cells: Split | None
) -> tuple[str, Split | None, Arms | None]:
    """The key of the arms, their split if they are cells, and the arms if they are declared.

    If neither ``arm`` nor ``cells`` is given, the sampler's arms are reported.
    """
    if arm is not None and cells is not None:
        raise ValueError(
            f"arm={arm!r} reports on the choices of a parameter, split={cells.parts!r} on cells of"
            " the search space: give one of them."
        )
    if cells is not None:
        return cells.key, cells, None
    if arm is not None:
        return str(arm), None, None
    if isinstance(sampler, ArmSampler):
        return sampler.arm, sampler.split, sampler.declared
    raise ValueError(
        f"{type(sampler).__name__} has no arms: give the name of the categorical parameter whose"
        " choices they are, arm='algorithm' for example, or split=2 for cells of the search space."
    )
