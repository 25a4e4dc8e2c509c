"""Why was this trial proposed, and what part had earlier tasks in it?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState

from automl_plugins.proposers.explanation import ArmFacts, Explanation

from . import _private
from .initial_design import INITIAL_DESIGN


def explain(trial: FrozenTrial | Trial) -> Explanation:
    """Why ``trial`` was proposed: any trial of any study, whoever proposed it.

    It is read from what the samplers of this package store with a trial: the user attributes
    ``automl_plugins`` (origin and predictions), ``automl_plugins:arm`` and, for samplers that
    learn from earlier tasks, ``automl_plugins:sources``
    (``{"own": share, "sources": {name: share}}``). What somebody has changed there to something
    that is no fact is left out.
    """
    frozen = _private.frozen(trial)
    facts = _private.read_explanation(frozen)
    enqueued = [name for name in _private.enqueued_values(frozen) if name in frozen.params]
    noted = facts.get("fixed")
    held = [name for name in noted if name in frozen.params] if isinstance(noted, list) else []
    fixed = sorted({*enqueued, *held})
    arm = _arm(frozen)
    own, shares = _private.read_shares(frozen) or (None, None)
    origin = _origin(frozen, arm)
    if _given(frozen, enqueued):
        facts = {"origin": origin}
        own, shares = None, None
    return Explanation.from_facts(
        frozen.number,
        facts,
        own_share=own,
        shares=shares,
        arm=arm,
        origin=origin,
        fixed=fixed,
        independent=_independent(frozen, fixed) if _joint(facts) else (),
    )


def source_shares(study: Study) -> dict[int, dict[str, float]]:
    """Share of each earlier task in the proposal of each trial; what is left to 1 is the search's.

    Args:
        study: A study of a sampler that learns from earlier tasks.

    Returns:
        Shares by name of the source, by number of the trial; trials that such a sampler did not
        propose are absent.
    """
    found = {t.number: _private.read_shares(t) for t in study.get_trials(deepcopy=False)}
    return {number: shares[1] for number, shares in found.items() if shares is not None}


def _given(trial: FrozenTrial, enqueued: list[str]) -> bool:
    """Whether all values of a trial were enqueued, or will be."""
    if trial.state == TrialState.WAITING:
        return bool(_private.enqueued_values(trial))
    return bool(enqueued) and all(
        name in enqueued or distribution.single()
        for name, distribution in trial.distributions.items()
    )


def _joint(facts: Mapping[str, Any]) -> bool:
    """Whether there was a joint proposal."""
    return facts.get("origin") in ("model", "design", "random")


def _origin(trial: FrozenTrial, arm: ArmFacts | None) -> str:
    """The origin of a trial for which none is stored, or all of whose values are given.

    A sampler of this package has left its time, or the arm, with each trial that it served.
    """
    enqueued = [name for name in _private.enqueued_values(trial) if name in trial.params]
    if _given(trial, enqueued):
        return _design(trial) or "enqueued"
    if trial.state == TrialState.WAITING or not (trial.params or trial.state.is_finished()):
        return "pending"
    if arm is not None:
        return "inner"
    return "independent" if _private.has_overhead(trial) else "foreign"


def _design(trial: FrozenTrial) -> str | None:
    """The origin of a trial that ``enqueue_initial_design`` has enqueued; None for others."""
    note = trial.user_attrs.get(INITIAL_DESIGN)
    if not isinstance(note, Mapping):
        return None
    return "design" if note.get("design") == "space_filling" else "suggested"


def _arm(trial: FrozenTrial) -> ArmFacts | None:
    noted = ArmFacts.from_dict(_private.read_arm_facts(trial))
    if noted is not None:
        return noted
    for parameter, index in _private.published_arms(trial).items():  # of an earlier version
        choices = getattr(trial.distributions.get(parameter), "choices", ())
        if 0 <= index < len(choices):
            return ArmFacts(parameter, str(choices[index]))
    return None


def _independent(trial: FrozenTrial, fixed: list[str]) -> tuple[str, ...]:
    """Parameters whose values are not those of the joint proposal."""
    proposed = _private.read_proposal(trial)
    return tuple(
        name
        for name, value in trial.params.items()
        if name not in fixed
        and not trial.distributions[name].single()
        and not _same(proposed.get(name), trial.distributions[name].to_internal_repr(value))
    )


def _same(proposed: Any, internal: float) -> bool:
    if isinstance(proposed, bool) or not isinstance(proposed, int | float):
        return False
    return math.isclose(proposed, internal, rel_tol=1e-9, abs_tol=1e-12)
