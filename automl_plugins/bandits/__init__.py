"""Which algorithm gets the next trial: bandits, successive filtering, weighted model sampling."""

from typing import TYPE_CHECKING

from automl_plugins._lazy import import_when_used

if TYPE_CHECKING:
    from automl_plugins.spaces.cells import partition

    from .confidence import (
        UCB1,
        IncreasingEffort,
        MaxUCB,
        Thompson,
        TopTwoThompson,
        UCB1Tuned,
    )
    from .model_weights import failure_probability, model_weights
    from .policy import AlwaysBest, DecreasingEpsilon, EpsilonGreedy, Policy, RandomArm
    from .records import ArmRecords
    from .report import ArmReport
    from .successive_filtering import Round, SuccessiveFiltering
    from .successive_halving import Hyperband, SuccessiveHalving

import_when_used(
    __name__,
    {
        "confidence": [
            "UCB1",
            "IncreasingEffort",
            "MaxUCB",
            "Thompson",
            "TopTwoThompson",
            "UCB1Tuned",
        ],
        "model_weights": ["failure_probability", "model_weights"],
        "policy": ["AlwaysBest", "DecreasingEpsilon", "EpsilonGreedy", "Policy", "RandomArm"],
        "records": ["ArmRecords"],
        "report": ["ArmReport"],
        "successive_filtering": ["Round", "SuccessiveFiltering"],
        "successive_halving": ["Hyperband", "SuccessiveHalving"],
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
