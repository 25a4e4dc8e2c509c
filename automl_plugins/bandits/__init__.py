"""Which algorithm gets the next trial: bandits, successive filtering, weighted model sampling."""

from typing import TYPE_CHECKING

from automl_plugins._imports import import_when_used

if TYPE_CHECKING:
    from automl_plugins.spaces.cells import partition as partition

    from .confidence import UCB1 as UCB1
    from .confidence import IncreasingEffort as IncreasingEffort
    from .confidence import MaxUCB as MaxUCB
    from .confidence import Thompson as Thompson
    from .confidence import TopTwoThompson as TopTwoThompson
    from .confidence import UCB1Tuned as UCB1Tuned
    from .model_weights import failure_probability as failure_probability
    from .model_weights import model_weights as model_weights
    from .policy import AlwaysBest as AlwaysBest
    from .policy import DecreasingEpsilon as DecreasingEpsilon
    from .policy import EpsilonGreedy as EpsilonGreedy
    from .policy import Policy as Policy
    from .policy import RandomArm as RandomArm
    from .records import ArmRecords as ArmRecords
    from .report import ArmReport as ArmReport
    from .successive_filtering import Round as Round
    from .successive_filtering import SuccessiveFiltering as SuccessiveFiltering
    from .successive_halving import Hyperband as Hyperband
    from .successive_halving import SuccessiveHalving as SuccessiveHalving

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
