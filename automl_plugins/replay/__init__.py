"""Replay recorded tables under any optimizer: which method is best on *your* past runs."""

from .callables import Record
from .journal import read_runs
from .proposing import proposing
from .protocol import Method, Optimizer, Outcome, Problem, Proposal, Prunes, TrialStatus
from .runs import replay
from .search import RecordedTrial, Search, search_frame
from .simulation import regret
from .table import Answer, Table

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
