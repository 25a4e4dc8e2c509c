"""Replay recorded tables under any optimizer: which method is best on *your* past runs."""

from typing import TYPE_CHECKING

from automl_plugins._lazy import import_when_used

if TYPE_CHECKING:
    from automl_plugins.frameworks import (
        Method,
        Optimizer,
        Outcome,
        Problem,
        Proposal,
        Prunes,
        TrialStatus,
    )
    from automl_plugins.records.search import RecordedTrial, Search, search_frame

    from .csv_files import read_runs
    from .lookup import Answer
    from .runs import replay
    from .simulation import Record, proposing, regret
    from .table import Table

import_when_used(
    __name__,
    {
        "automl_plugins.frameworks": [
            "Method",
            "Optimizer",
            "Outcome",
            "Problem",
            "Proposal",
            "Prunes",
            "TrialStatus",
        ],
        "csv_files": ["read_runs"],
        "runs": ["replay"],
        "automl_plugins.records.search": ["RecordedTrial", "Search", "search_frame"],
        "simulation": ["Record", "proposing", "regret"],
        "lookup": ["Answer"],
        "table": ["Table"],
    },
)

__all__ = [
    "Answer",
    "Method",
    "Optimizer",
    "Outcome",
    "Problem",
    "Proposal",
    "Prunes",
    "Record",
    "RecordedTrial",
    "Search",
    "Table",
    "TrialStatus",
    "proposing",
    "read_runs",
    "regret",
    "replay",
    "search_frame",
]
