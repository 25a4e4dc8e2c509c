"""Why a trial was proposed, and the share of earlier tasks in the decision."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from optuna.distributions import FloatDistribution, IntDistribution
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState

from automl_plugins._arguments import check_kind
from automl_plugins.proposers.explanation import ArmFacts, Explanation, read_parts

from . import _private
from .initial_design import INITIAL_DESIGN
from .studies import check_study


def explain(trial: FrozenTrial | Trial) -> Explanation:
    """Why ``trial`` was proposed: any trial of any study, of any sampler.

    It is read from the user attributes that the samplers of this package store with a trial:
    ``automl_plugins`` (origin and predictions), ``automl_plugins:arm`` and, for samplers that
    learn from earlier tasks, ``automl_plugins:sources``
    (``{"own": share, "sources": {name: share}}``). Entries that were changed to something invalid
    are left out. Of samplers of arms within each other it shows the outer one; the facts of the
    others are in ``automl_plugins:arm:NAME``. ``automl_plugins:member``,
    ``automl_plugins:predicted_bound`` and ``automl_plugins:predicted_seconds`` repeat facts of the
    first for dashboards.

    Args:
        trial: A trial, such as ``study.best_trial``.

    Raises:
        TypeError: For anything but a trial.
    """
    allowed = "a trial, such as study.trials[-1] or study.best_trial"
    check_kind("explain", trial, FrozenTrial | Trial, allowed)
    frozen = _private.frozen(trial)
    enqueued = _private.enqueued_values(frozen)
    facts = _private.read_explanation(frozen)
    own, shares = _private.read_shares(frozen) or (None, None)
    arm = ArmFacts.from_dict(_private.read_arm_facts(frozen))
    fixed = _fixed(frozen, enqueued)
    joint = facts.get("origin") in ("model", "design", "random")
    independent = _independent(frozen, fixed) if joint else []
    if joint and _is_unused(frozen, fixed):
        # Its proposal decided nothing, so the predictions in it are not of this trial.
        unused = "independent" if independent else "given" if fixed else None
        facts = {} if unused is None else {"origin": unused}
        own, shares, independent = None, None, []
    # First what Optuna takes without asking a sampler, then what has not been asked for.
    if _is_given(frozen, enqueued):
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
        Shares by name of the source, by number of the trial; trials that no such sampler proposed
        are absent, and so are those of which no value is of a joint proposal.

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
        Probabilities by name of the member, by number of the trial; trials of which the committee
        proposed no value are absent.

    Raises:
        TypeError: For anything but a study.
    """
    check_study("member_trust", study)
    trials = study.get_trials(deepcopy=False)
    stored = ((t, read_parts(_private.read_explanation(t), "trust")) for t in trials)
    return {t.number: trust for t, trust in stored if trust and _is_credited(t)}


def _fixed(trial: FrozenTrial, enqueued: Mapping[str, Any]) -> list[str]:
    """Names of the parameters whose values the user decided beforehand."""
    held = _private.read_explanation(trial).get("fixed")
    held = held if isinstance(held, list) else []  # else the user's own
    return [name for name in sorted(trial.params) if name in enqueued or name in held]


def _is_credited(trial: FrozenTrial) -> bool:
    """Whether a value of a trial is of its joint proposal, or may be once it is asked for."""
    enqueued = _private.enqueued_values(trial)
    return not (_is_given(trial, enqueued) or _is_unused(trial, _fixed(trial, enqueued)))


def _is_unused(trial: FrozenTrial, fixed: list[str]) -> bool:
    """Whether a finished trial asked for parameters, but for none of its joint proposal."""
    # A copy of a trial may be without its proposal.
    if not trial.state.is_finished() or not _private.read_proposal(trial):
        return False
    arm = ArmFacts.from_dict(_private.read_arm_facts(trial))
    own = {*fixed, "" if arm is None else arm.parameter}  # a policy chose that one
    free = {n for n, d in trial.distributions.items() if not d.single()} - own
    if not free:
        return arm is None or arm.parameter not in trial.params
    return free.issubset(_independent(trial, fixed))


def _is_given(trial: FrozenTrial, enqueued: Mapping[str, Any]) -> bool:
    """Whether all values of a trial were enqueued, or will be."""
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


def _independent(trial: FrozenTrial, fixed: list[str]) -> list[str]:
    """Parameters whose values are not those of the joint proposal."""
    proposed = _private.read_proposal(trial)

    def is_proposed(name: str) -> bool:
        value: Any = proposed.get(name)
        of = trial.distributions[name]
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and isinstance(of, FloatDistribution | IntDistribution):
            value = min(max(value, of.low), of.high)  # the range of a memory may be wider
        internal = of.to_internal_repr(trial.params[name])
        return is_number and math.isclose(value, internal, rel_tol=1e-9, abs_tol=1e-12)

    return [
        name
        for name, distribution in trial.distributions.items()
        if name not in fixed and not distribution.single() and not is_proposed(name)
    ]
