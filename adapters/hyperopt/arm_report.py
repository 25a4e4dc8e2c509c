"""Which arm got what, read from trials."""

from __future__ import annotations

from typing import Any

from hyperopt import Domain, Trials

from automl_plugins.bandits.report import ArmReport

from ._arms import Arms, Split, arms_of
from ._private import all_documents
from ._pulls import PullReader, last_search, read_rounds


def arm_report(
    trials: Trials,
    space: Any = None,
    *,
    label: str | None = None,
    split: Split | None = None,
    max_arms: int = 32,
    reward_range: tuple[float, float] | None = None,
) -> ArmReport:
    """How a search shared its trials and seconds among its arms.

    Arms and rounds are those of the last ``boasf``, ``bandit`` or ``weighted`` on these trials.
    After ``fmin`` with any other algorithm, or with ``label`` or ``split``, the arms are the
    options of a choice or the cells of the space, and there are no rounds.

    Args:
        trials: What the search left.
        space: Its search space; needed only where no trial says what the arms are.
        label: The choice whose options are the arms; None is the root.
        split: See ``boasf``.
        max_arms: See ``boasf``.
        reward_range: The best and the worst loss there may be; None scales by the losses.

    Raises:
        ValueError: If the space has no such choice, or is needed.
    """
    documents = all_documents(trials)
    search = last_search(documents) if label is None and split is None else None
    if search is not None:
        arms = Arms.from_dict(search["arms"])
    elif space is not None:
        domain = Domain(None, space, pass_expr_memo_ctrl=False)
        arms = arms_of(domain, label=label, split=split, max_arms=max_arms).arms
    else:
        raise ValueError(
            "No trial says what the arms are: pass the search space, arm_report(trials, space)."
        )
    situation = PullReader(arms).read(documents, reward_range)
    rounds = [] if search is None else read_rounds(documents, search)
    return ArmReport.from_pulls(
        arms.names,
        situation.pulls,
        situation.left,
        rounds=rounds,
        notes=arms.notes,
        unit="trials" if search is None or search.get("budget_seconds") is None else "seconds",
    )
