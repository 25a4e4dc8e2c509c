"""Replay recorded tables under any optimizer: which method is best on *your* past runs."""

from typing import TYPE_CHECKING

from automl_plugins._lazy import import_when_used

if TYPE_CHECKING:
    from automl_plugins.records.search import RecordedTrial, Search, search_frame

    from .callables import Record
    from .journal import read_runs
    from .proposing import proposing
    from .protocol import Method, Optimizer, Outcome, Problem, Proposal, Prunes, TrialStatus
    from .runs import replay
    from .simulation import regret
    from .table import Answer, Table

import_when_used(
    __name__,
    {
        "callables": ["Record"],
        "journal": ["read_runs"],
        "proposing": ["proposing"],
        "protocol": [
            "Method",
            "Optimizer",
            "Outcome",
            "Problem",
            "Proposal",
            "Prunes",
            "TrialStatus",
        ],
        "runs": ["replay"],
        "automl_plugins.records.search": ["RecordedTrial", "Search", "search_frame"],
        "simulation": ["regret"],
        "table": ["Answer", "Table"],
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
