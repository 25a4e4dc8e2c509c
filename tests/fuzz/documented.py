"""Errors and warnings that a user may meet, each with what the message must say, and why."""

from __future__ import annotations

from dataclasses import dataclass

from hyperopt.exceptions import AllTrialsFailed
from smac.main.exceptions import ConfigurationSpaceExhaustedException
from spaces import Refused

from automl_plugins.meta.coverage import MemoryMismatch


@dataclass(frozen=True)
class Known:
    """An error that is an answer: it says what was given, and what to do."""

    kinds: tuple[type[Exception], ...]
    text: str  # a regular expression
    reason: str


@dataclass(frozen=True)
class Heard:
    """A warning that is an answer."""

    kind: type[Warning]
    text: str
    why: str


V, M = (ValueError,), (MemoryMismatch, ValueError)
ERRORS: list[Known] = [
    Known((Refused,), "", "the framework has no such space"),
    Known(V, "optimises one objective, the study has [23]", "several objectives"),
    # memories
    Known((MemoryMismatch,), "", "the memory does not fit"),
    Known(V, "There are no runs to learn from: every task is empty", "an empty memory"),
    Known(V, "None of the \\d+ runs of the memory completed", "a memory without a complete run"),
    Known(V, "has no search space: pass the space that the runs", "a task without a space"),
    # what was recorded
    Known(V, "cost='seconds' gave .* for trial .*: it must be a finite number", "wrong seconds"),
    Known(V, "no complete trial has a user attribute of that name", "seconds that no trial has"),
    Known(V, "A search of another space needs trials of its own", "trials of another space"),
    # spaces
    Known(V, "q of .* must be a finite number above 0", "Hyperopt: an illegal step"),
    Known(V, "reaches e \\*\\* .*: the numbers of hp", "Hyperopt: logarithms beyond floats"),
    Known(V, "has no two integers that 64-bit floats can tell apart", "integers beyond floats"),
    Known(V, "search_space has no parameter 'algorithm': arm= must name", "no such arm"),
    Known(V, "arm='algorithm' names a parameter with .*; arms are the choices of", "not an arm"),
    Known(V, "arm=.* has the equal choices .*: Optuna stores the first one", "equal arms"),
    Known(V, "is complete and has not asked for it. Categorical parameters of", "no such arm"),
    Known(V, "split=.*Nothing can be split", "nothing to split"),
    Known(V, "No choice has the label 'algorithm'; there are", "no such arm"),
    Known(V, "Pass search_space=: the distributions that the objective asks for", "no space"),
    Known(V, "The search space has no choice whose options could be arms", "no such arm"),
    Known(
        V,
        "The range of .* is unbounded or unknown, so it has no volume: pass weights=",
        "no volume",
    ),
    Known(V, "Several choices could be the arms: .* Pass label=, one of them", "which arm?"),
    Known(V, "n must be at least \\d+ with r_min=.* got", "a schedule too short"),
    # of the frameworks
    Known(V, "does not support dynamic value space", "Optuna: choices cannot change"),
    Known(V, "^'.*' not in \\(", "Optuna's TPE: choices cannot change"),
    Known((AllTrialsFailed,), "", "Hyperopt: all trials failed"),
    Known(V, "Cannot set different (distribution kind|log conf)", "Optuna: a kind cannot change"),
    Known(
        V,
        r"The value \d{16,} of parameter .* isn't contained in the distribution Int.*step=",
        "Optuna: steps of integers beyond 2^53 are reckoned in floats",
    ),
    Known((OverflowError,), "[Rr]ange exceeds valid bounds", "a range beyond numpy's draws"),
    Known((StopIteration,), "^$", "SMAC: the space is exhausted"),
    Known((ConfigurationSpaceExhaustedException,), "", "SMAC: the space is exhausted"),
]
WARNINGS: list[Heard] = [
    Heard(UserWarning, "the range is not divisible by `step`", "Optuna, of the user's range"),
    Heard(
        UserWarning,
        r"Fixed parameter '?.*'? with value \d{16,} is out of range for distribution Int",
        "Optuna: steps of integers beyond 2^53 are reckoned in floats",
    ),
    Heard(RuntimeWarning, "overflow encountered in subtract", "Optuna's RandomSampler"),
    Heard(
        UserWarning, r"\d+ arms, but \d+ evaluations?: not every arm gets", "a budget too small"
    ),
]
