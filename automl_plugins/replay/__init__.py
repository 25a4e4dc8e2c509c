"""Replay recorded tables under any optimizer: which method is best on *your* past runs."""

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
from automl_plugins.replay.csv_files import read_runs
from automl_plugins.replay.lookup import Answer
from automl_plugins.replay.runs import replay
from automl_plugins.replay.simulation import Record, proposing, regret
from automl_plugins.replay.table import Table

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
