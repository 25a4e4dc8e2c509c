"""``arm_report``: how a study shared its trials among its arms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from optuna.samplers import BaseSampler
from optuna.study import Study

from automl_plugins.bandits.report import ArmReport
from automl_plugins.bandits.successive_filtering import Unit

from . import _private
from ._arm_memory import ArmMemory
from ._arms import Arms, Split
from .arm_recipes import BOASFSampler
from .arm_sampler import ArmSampler
from .studies import check_study
from .trials import Cost


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

    Any sampler may have run the study; rounds are reported where ``BOASFSampler`` stored them.

    Args:
        study: A study with one objective.
        arm: Name of the categorical parameter whose choices are the arms; None takes the arms of
            the study's sampler.
        split: Makes cells of the search space the arms, see ``BOASFSampler``.
        max_arms: See ``BOASFSampler``.
        reward_range: As in the samplers; None takes that of the study's sampler.
        cost: As ``reward_range``.

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
    known = ArmMemory(study, key, cost, reward_range, cells, declared)
    view = known.everything(study)
    arms = known.arms
    if arms is None:
        if cells is not None:
            lacks = "has a parameter to split" if known.has_complete else "is complete"
            raise ValueError(f"No trial of the study {lacks}: its cells are not known yet.")
        raise ValueError(
            f"No trial of the study has asked for {key!r}. Its categorical parameters:"
            f" {sorted(known.categories)}."
        )
    # As if the next trial were to be chosen.
    situation = known.situation(view, arms, len(view))
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
        maximize=known.maximize,
        unit=unit,
    )


def _reported(
    sampler: BaseSampler, arm: str | None, cells: Split | None
) -> tuple[str, Split | None, Arms | None]:
    """The key of the arms, what divides the space into cells, and the arms if they are declared.

    They are those of the sampler if neither ``arm`` nor ``cells`` is given.
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
