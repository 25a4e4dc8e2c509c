"""Which algorithm gets the next trial: bandits, successive filtering, weighted model sampling."""

from typing import TYPE_CHECKING

from automl_plugins._lazy import import_when_used

if TYPE_CHECKING:
    from automl_plugins.spaces.cells import partition

    from .greedy import AlwaysBest, DecreasingEpsilon, EpsilonGreedy, RandomArm
    from .increasing_effort import IncreasingEffort
    from .model_weights import failure_probability, model_weights
    from .policy import Policy
    from .records import ArmRecords
    from .report import ArmReport
    from .successive_filtering import Round, SuccessiveFiltering
    from .successive_halving import Hyperband, SuccessiveHalving
    from .thompson import Thompson, TopTwoThompson
    from .ucb import UCB1, MaxUCB, UCB1Tuned

import_when_used(
    __name__,
    {
        "greedy": ["AlwaysBest", "DecreasingEpsilon", "EpsilonGreedy", "RandomArm"],
        "increasing_effort": ["IncreasingEffort"],
        "model_weights": ["failure_probability", "model_weights"],
        "policy": ["Policy"],
        "records": ["ArmRecords"],
        "report": ["ArmReport"],
        "successive_filtering": ["Round", "SuccessiveFiltering"],
        "successive_halving": ["Hyperband", "SuccessiveHalving"],
        "thompson": ["Thompson", "TopTwoThompson"],
        "ucb": ["UCB1", "MaxUCB", "UCB1Tuned"],
        "automl_plugins.spaces.cells": ["partition"],
    },
)

__all__ = [
    "UCB1",
    "AlwaysBest",
    "ArmRecords",
    "ArmReport",
    "DecreasingEpsilon",
    "EpsilonGreedy",
    "Hyperband",
    "IncreasingEffort",
    "MaxUCB",
    "Policy",
    "RandomArm",
    "Round",
    "SuccessiveFiltering",
    "SuccessiveHalving",
    "Thompson",
    "TopTwoThompson",
    "UCB1Tuned",
    "failure_probability",
    "model_weights",
    "partition",
]
