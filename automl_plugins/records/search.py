"""Recorded searches, as adapters read them from studies, run histories and trials."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from ConfigSpace import ConfigurationSpace

from automl_plugins.formats import format_count
from automl_plugins.records.trial import Status, Trial, column_of, fail_violating, in_order

if TYPE_CHECKING:
    import pandas as pd


RecordedTrial = Trial  # its public name: frameworks have a Trial of their own


@dataclass(frozen=True)
class Search:
    """One search, its trials in the order in which they finished.

    Attributes:
        table: What was tuned: the data set, the task.
        method: What tuned it.
        seed: Number of the repetition.
        trials: Finished trials.
        space: The search space; None where the framework does not know it.
        left_out: Sentences about trials that are left out, such as "2 waiting trials left out."
        maximized: Whether the losses are the negated values of a maximised objective.

    Example::

        trials = [RecordedTrial({"C": 0.5}, TrialStatus.COMPLETE, loss=0.3)]
        search_frame([Search("iris", "by hand", 0, trials)])
    """

    table: str
    method: str
    seed: int
    trials: Sequence[Trial]
    space: ConfigurationSpace | None = None
    left_out: tuple[str, ...] = ()
    maximized: bool = False

    @classmethod
    def of(
        cls,
        table: str,
        method: str,
        seed: int,
        trials: Iterable[Trial],
        *,
        space: ConfigurationSpace | None = None,
        left_out: Mapping[str, int] | None = None,
        where: str = "",
        maximized: bool = False,
    ) -> Search:
        """The finished ones of ``trials``, sorted; ``finished`` counts from the earliest start.

        ``left_out`` has the number of other trials by the name of their state, such as
        ``{"waiting": 2}``; each becomes a sentence that begins with ``where``.
        """
        trials = in_order(trials)
        # Running trials count, too: one of them may have started the search.
        begin = min((t.started for t in trials if not math.isnan(t.started)), default=math.nan)
        done = [
            replace(trial, finished=trial.ended - begin)
            for trial in trials
            if trial.status != Status.RUNNING
        ]
        sentences = tuple(
            f"{where}{format_count(n, f'{state} trial')} left out."
            for state, n in (left_out or {}).items()
            if n
        )
        return cls(table, method, seed, done, space, sentences, maximized)

    def __repr__(self) -> str:
        out = f", {len(self.left_out)} left out" if self.left_out else ""
        name = "/".join((self.table, self.method, str(self.seed)))
        return f"Search({name!r}, {format_count(len(self.trials), 'trial')}{out})"


#: Columns of the data frame of searches, in order; ``replay`` adds to them.
KEYS = ("table", "method", "seed", "trial")
COLUMNS = (*KEYS, "seconds", "loss", "best", "status")


def search_frame(searches: Iterable[Search]) -> pd.DataFrame:
    """Searches as one tidy data frame with the columns ``COLUMNS``.

    ``trial`` counts finished trials from 1, ``seconds`` is the time since the start of the search,
    ``best`` the least loss so far of a trial that is complete at the full budget, NaN before the
    first one. A complete trial that violates a constraint counts as failed.
    """
    import pandas as pd

    frames = [pd.DataFrame(_columns(search), columns=list(COLUMNS)) for search in searches]
    if not frames:
        return pd.DataFrame(columns=list(COLUMNS))
    return pd.concat(frames, ignore_index=True)


def _columns(search: Search) -> dict[str, Any]:
    # Tables and plots know no constraints, and an infeasible trial must not be the best.
    trials = fail_violating(search.trials)
    # A loss at a lower budget cannot be the best.
    full = column_of(
        trials, lambda t: t.loss if t.status == Status.COMPLETE and t.step is None else None
    )
    return {
        "table": search.table,
        "method": search.method,
        "seed": search.seed,
        "trial": np.arange(1, len(trials) + 1),
        "seconds": column_of(trials, attrgetter("finished")),
        "loss": column_of(trials, attrgetter("loss")),
        "best": np.fmin.accumulate(full) if len(full) else full,  # fmin passes over NaN
        "status": [str(t.status) for t in trials],
    }
