"""Which arm got what, read from trials."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hyperopt import Domain, Trials

from automl_plugins.bandits.records import ArmStatistics
from automl_plugins.bandits.report import ArmReport

from ._arms import Split, arms_of
from ._boasf_search import last_settings, opened_in
from ._private import all_documents
from ._pulls import PullReader


def arm_report(
    trials: Trials,
    space: Any,
    *,
    label: str | None = None,
    split: Split | None = None,
    max_arms: int = 32,
    reward_range: tuple[float, float] | None = None,
) -> ArmReport:
    """How a search shared its trials and seconds among its arms.

    Arms and rounds are those of the last ``boasf_fmin`` on these trials. After ``fmin`` with any
    algorithm, or with ``label`` or ``split``, the arms are the options of a choice or the cells of
    the space, and there are no rounds.

    Args:
        trials: What the search left.
        space: Its search space.
        label: The choice whose options are the arms; None is the root.
        split: See ``boasf_fmin``.
        max_arms: See ``boasf_fmin``.
        reward_range: The best and the worst loss there may be; None scales by the losses.

    Raises:
        ValueError: If the space has no such choice.
    """
    documents = all_documents(trials)
    settings = last_settings(documents) if label is None and split is None else None
    if settings is not None:
        label, split, max_arms = settings["label"], settings["split"], settings["max_arms"]
        split = dict(split) if isinstance(split, list) else split
    domain = Domain(None, space, pass_expr_memo_ctrl=False)
    arms = arms_of(domain, label=label, split=split, max_arms=max_arms)
    if settings is not None and settings["arms"] != len(arms.arms):
        raise ValueError(
            f"The trials are those of a search with {settings['arms']} arms, and the space has"
            f" {len(arms.arms)}: pass the space that was searched."
        )
    pulls = PullReader(arms).read(documents, reward_range)
    opened = [] if settings is None else opened_in(documents, settings)
    statistics = ArmStatistics.from_records(pulls.records, len(arms.arms))
    failing = [
        name
        for name, failed, scored in zip(
            arms.names, statistics.failed, statistics.scored, strict=True
        )
        if failed and failed == scored
    ]
    left = pulls.left(arms)
    exhausted = [name for i, name in enumerate(arms.names) if i not in left]
    notes = [f"Rewards: {pulls.scale.reason}.", *arms.notes]
    if failing:
        notes.append(f"Failed every time: {', '.join(failing)}.")
    if exhausted:
        notes.append(f"Every configuration tried: {', '.join(exhausted)}.")
    for before, after in pairwise(o.round for o in opened):
        back = [arms.names[a] for a in after.arms if a not in before.arms]
        if back:
            notes.append(
                f"Round {after.index + 1} takes back {', '.join(back)}: nothing was left to try in"
                " the arms of the round before."
            )
    return ArmReport(
        names=arms.names,
        records=pulls.records,
        losses=pulls.losses,
        rounds=tuple(o.round for o in opened),
        notes=tuple(notes),
        unit="trials" if settings is None or settings["max_evals"] is not None else "seconds",
        opened=tuple(o.finished for o in opened),
    )
