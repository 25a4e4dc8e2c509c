"""``arm_report``: how a study shared its trials among its arms."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from optuna.study import Study

from automl_plugins.bandits.report import ArmReport

from . import _private
from ._arm_situation import KnownStudy, Situation
from ._columns import Cost
from ._memory import View
from .arm_sampler import ArmSampler
from .boasf_sampler import BOASFSampler


def arm_report(
    study: Study,
    arm: str | None = None,
    *,
    reward_range: tuple[float, float] | None = None,
    cost: Cost = None,
) -> ArmReport:
    """Which arm of a study got what, when it left, and why.

    Any sampler may have run the study; rounds are reported where ``BOASFSampler`` stored them.

    Args:
        study: A study with one objective.
        arm: Name of the categorical parameter whose choices are the arms; None takes that of the
            study's sampler.
        reward_range: As in the samplers; None takes that of the study's sampler.
        cost: The same.

    Raises:
        ValueError: If the study has several objectives, if ``arm`` is None and the sampler has no
            arms, or if no trial has asked for the parameter.
    """
    if len(study.directions) > 1:
        raise ValueError(f"A report needs one objective, the study has {len(study.directions)}.")
    sampler = _private.base_sampler(study.sampler)
    if isinstance(sampler, ArmSampler):
        arm = arm or sampler.arm
        reward_range = reward_range or sampler.reward_range
        cost = cost or sampler.cost
    if arm is None:
        raise ValueError(
            f"{type(sampler).__name__} has no arms: give the name of the categorical parameter"
            " whose choices they are, arm='algorithm' for example."
        )
    known = KnownStudy(study, arm, cost, reward_range)
    view = known.memory.everything(study)
    distribution = known.memory.distribution
    if distribution is None:
        raise ValueError(
            f"No trial of the study has asked for {arm!r}. Its categorical parameters:"
            f" {sorted(known.memory.categories)}."
        )
    situation = known.situation(view, distribution, len(view))
    sign = -1.0 if known.memory.maximize else 1.0
    return ArmReport(
        names=tuple(str(choice) for choice in distribution.choices),
        records=situation.pulls.records,
        losses=(sign * situation.pulls.losses).tolist(),
        rounds=situation.rounds,
        notes=tuple(_notes(situation)),
        maximize=known.memory.maximize,
        unit=sampler.unit if isinstance(sampler, BOASFSampler) else "trials",
        opened=_opened(study, view, arm, known.memory.openers),
    )


def _notes(situation: Situation) -> list[str]:
    choices, pulls = situation.choices, situation.pulls
    notes = [f"Rewards: {pulls.scale.reason}."]
    notes += [f"{choices[a]} failed in all of its trials." for a in sorted(pulls.given_up())]
    empty = sorted(set(range(len(choices))) - set(situation.arms))
    notes += [f"{choices[a]} has no configuration left to try." for a in empty]
    return notes


def _opened(study: Study, view: View, arm: str, openers: Sequence[int]) -> tuple[int, ...]:
    """How many pulls had finished when the trial that opened a round began."""
    ends = [row.finished for row in view.columns.rows if arm in row.values]
    starts = {t.number: t.datetime_start for t in study.get_trials(deepcopy=False)}
    begun = [starts[number] or datetime.max for number in openers]
    return tuple(sum(end <= start for end in ends) for start in begun)
