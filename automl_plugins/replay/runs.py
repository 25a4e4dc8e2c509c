"""Replay methods x tables x seeds, in parallel and resumable, as one tidy data frame."""

from __future__ import annotations

import copy
import logging
import math
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from automl_plugins._arguments import check_choice, check_flag, check_integer, repeated
from automl_plugins._imports import require
from automl_plugins.frameworks import Method, Problem
from automl_plugins.records.search import COLUMNS, Search, search_frame
from automl_plugins.records.trial import Trial, column_of
from automl_plugins.streams import code_of

from .csv_files import Journal, Key, check_names, read_runs
from .simulation import Budget, Evaluation, Simulation, as_method, regret
from .table import Table, notes_of

if TYPE_CHECKING:
    import pandas as pd


_logger = logging.getLogger(__name__)

Progress = bool | Literal["lines"] | None

_LARGEST_SEED = 2**63 - 1  # the largest integer that a column can hold

_PROGRESS_SECONDS = 10.0  # between two lines of progress

#: Columns of the data frame that ``replay`` returns, in order.
REPLAY_COLUMNS = (*COLUMNS, "regret", "step", "row", "distance")


@dataclass(frozen=True)
class _Job:
    table: Table
    label: str
    method: Method
    seed: int
    budget: Budget
    in_seconds: bool

    @property
    def key(self) -> Key:
        return self.table.name, self.label, self.seed


def replay(
    optimizer: Any,
    table: Table | Iterable[Table],
    *,
    budget: float,
    unit: Literal["trials", "seconds"] = "trials",
    seed: int | Iterable[int] = 0,
    n_workers: int = 1,
    overhead: bool = False,
    max_trials: int = 10_000,
    n_jobs: int = 1,
    path: str | os.PathLike[str] | None = None,
    progress: Progress = None,
) -> pd.DataFrame:
    """Run optimizers on recorded tables, on a simulated clock.

    Every search has its own seed, derived from ``seed`` and the table's name: with one seed for
    all, every table would get the same start design. The same arguments give the same frame.

    Args:
        optimizer: One method, a list of methods, or a mapping from their names in the result. A
            method is ``optimizer(...)`` of an adapter; a sampler, algo or facade that an adapter
            knows; an object with ``ask`` and ``tell``, see ``Optimizer``; or a callable
            ``propose(space, records, rng) -> configuration``.
        table: One table or several.
        budget: Evaluations, or simulated seconds. An evaluation that would end later does not
            count.
        unit: Unit of ``budget``.
        seed: One seed or several, from 0 to 2^63 - 1.
        n_workers: Simulated workers. Results come when they are due on the simulated clock.
            On a table without seconds all evaluations take equally long.
        overhead: Whether the real seconds that the optimizer takes to propose pass on the
            simulated clock. The column ``overhead`` then has them, plus those it takes for reports
            and results, and the frame differs from run to run.
        max_trials: Most evaluations of a search with a budget in seconds; reaching it is logged as
            a warning.
        n_jobs: Searches that run at the same time, in processes of their own; -1 for all cores.
        path: CSV file to which every finished search is appended. Searches found there are not
            run again.
        progress: Whether to show a progress bar; None shows it on a terminal only. "lines" writes
            a line to stderr every few seconds, for a file or a pipe.

    Returns:
        A row for each finished evaluation with the columns table, method, seed, trial (from 1, in
        order of finishing), seconds (simulated, since the start; NaN where the table has none),
        loss (NaN if failed), best (least loss of the complete ones so far), status, regret
        (normalised, see ``regret``), step (that the optimizer asked for, if any), row (of the
        table) and distance (from the configuration to the recorded one; 0 if they are equal). A
        search whose optimizer has no more proposals ends before its budget and has fewer rows.

    Raises:
        ValueError: For an illegal budget, names that occur twice, a budget in seconds for a table
            without seconds, or a proposal outside the search space.
        TypeError: For an optimizer or another argument of an unknown kind.
        Exception: What a method raises, with a note on the method, the table and the seed.
    """
    for library in ("pandas", "tqdm"):
        require(library, needed_by="automl_plugins.replay", extra="evidence")
    import pandas as pd

    # Iterating over a data frame would give its columns; as one thing, ``_check`` refuses it.
    is_one = hasattr(table, "columns") or not isinstance(table, Iterable)
    tables: list[Table] = [table] if is_one else list(table)  # type: ignore[list-item,arg-type]
    given = list(seed) if isinstance(seed, Iterable) else [seed]
    methods = _methods(optimizer)
    _check(tables, methods, given, budget, unit, n_workers)
    check_integer("max_trials", max_trials, 1)
    check_integer("n_jobs", n_jobs, -1)
    if n_jobs == 0:
        raise ValueError("n_jobs must be an integer >= 1, or -1 for all cores, got 0.")
    check_flag("overhead", overhead)
    if progress not in (True, False, None, "lines"):
        raise ValueError(f"progress must be True, False, None or 'lines', got {progress!r}.")
    seeds = [int(s) for s in given]
    in_seconds = unit == "seconds"
    n_trials, seconds = (max_trials, float(budget)) if in_seconds else (int(budget), math.inf)
    limit = Budget(n_trials, seconds, n_workers, overhead)
    jobs = [
        _Job(t, label, method, s, limit, in_seconds)
        # Seed by seed: each seed that is complete compares all methods on all tables.
        for s in seeds
        for t in tables
        for label, method in methods.items()
    ]
    settings = {
        "budget": seconds if in_seconds else n_trials,
        "unit": unit,
        "n_workers": int(n_workers),
        "overhead": bool(overhead),
        "max_trials": int(max_trials) if in_seconds else None,
        "version": 1,
    }
    journal = None
    if path is not None:
        check_names(path, [*(table.name for table in tables), *methods])  # before hours of work
        journal = Journal(path, settings, {table.name: table.digest() for table in tables})
    frames = _frames_of(jobs, journal, n_jobs, progress)
    # In the order of the jobs, not in which they finished.
    # Empty frames are left out: their text columns are of floats, so pandas would make objects.
    chosen = [frames[job.key] for job in jobs if job.key in frames and len(frames[job.key])]
    empty = pd.DataFrame(columns=list(REPLAY_COLUMNS))
    runs = pd.concat(chosen, ignore_index=True) if chosen else empty
    runs.attrs["notes"] = notes_of(tables)
    return runs


def _frames_of(
    jobs: Sequence[_Job], journal: Journal | None, n_jobs: int, progress: Progress
) -> dict[Key, pd.DataFrame]:
    """Run the searches that the journal lacks; return all of them by key."""
    open_jobs = [job for job in jobs if journal is None or job.key not in journal.done]
    frames: dict[Key, pd.DataFrame] = {}
    for key, frame in _report_progress(_run_all(open_jobs, n_jobs), len(open_jobs), progress):
        if journal is None:
            frames[key] = frame
        else:
            journal.write(key, frame)
    if journal is not None and journal.done:
        # The searches of this call are read, too, so that a resumed call returns the same frame.
        by_search: Any = read_runs(journal.path).groupby(["table", "method", "seed"], sort=False)
        frames = dict(iter(by_search))
    return frames


def _methods(optimizer: Any) -> dict[str, Method]:
    if isinstance(optimizer, Mapping):
        named = [(str(label), as_method(thing)) for label, thing in optimizer.items()]
    else:
        things = optimizer if isinstance(optimizer, list | tuple) else [optimizer]
        named = [(method.name, method) for method in map(as_method, things)]
    if twice := sorted(repeated(name for name, _ in named)):
        raise ValueError(
            f"Two methods are called {', '.join(twice)}: pass a dictionary of names and methods."
        )
    return dict(named)


def _check(
    tables: Sequence[Table],
    methods: Mapping[str, Method],
    seeds: Sequence[int],
    budget: float,
    unit: str,
    n_workers: int,
) -> None:
    if wrong := [t for t in tables if not isinstance(t, Table)]:
        raise TypeError(
            "replay takes tables, such as Table.from_frame(frame, name=..., loss=...); got a"
            f" {type(wrong[0]).__name__}."
        )
    for seed in seeds:
        check_integer("seed", seed, 0)
        if seed > _LARGEST_SEED:
            raise ValueError(f"seed must be less than 2**63, for a frame holds it, got {seed}.")
    check_choice("unit", unit, ("trials", "seconds"))
    is_number = isinstance(budget, Real) and not isinstance(budget, bool)
    if not is_number or not budget > 0 or (unit == "trials" and not float(budget).is_integer()):
        what = "a whole number of trials" if unit == "trials" else "seconds"
        error = ValueError if is_number else TypeError
        raise error(f"budget must be {what} > 0, got {budget!r} (unit={unit!r}).")
    check_integer("n_workers", n_workers, 1)
    if not methods:
        raise ValueError("replay needs at least one method.")
    if not tables or not seeds:
        raise ValueError("replay needs at least one table and one seed.")
    for what, values in (("table", [t.name for t in tables]), ("seed", list(map(str, seeds)))):
        if twice := sorted(repeated(values)):
            raise ValueError(f"The {what} {', '.join(twice)} occurs twice.")
    if unit == "seconds" and (bare := [t.name for t in tables if t.seconds is None]):
        raise ValueError(
            f"A budget in seconds, but table {', '.join(bare)} has no seconds: budget in trials,"
            " or build the table with seconds=1.0."
        )


def _run_all(jobs: list[_Job], n_jobs: int) -> Iterator[tuple[Key, pd.DataFrame]]:
    if n_jobs == 1 or len(jobs) < 2:
        yield from map(_run, jobs)
        return
    from joblib import Parallel, delayed

    # Unordered: a search is in the journal once it ends, even if earlier ones are still running.
    pool = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    yield from pool(delayed(_run)(job) for job in jobs)


def _report_progress(
    results: Iterator[tuple[Key, pd.DataFrame]], total: int, progress: Progress
) -> Iterator[tuple[Key, pd.DataFrame]]:
    if progress != "lines":
        from tqdm.auto import tqdm

        hidden = None if progress is None else not progress  # None: hidden unless on a terminal
        yield from tqdm(results, total=total, unit="search", disable=hidden)
        return
    start = last = time.monotonic()
    print(f"0 of {total} searches, 0 s", file=sys.stderr, flush=True)
    for n, result in enumerate(results, start=1):
        yield result
        now = time.monotonic()
        if now - last >= _PROGRESS_SECONDS or n == total:
            print(f"{n} of {total} searches, {now - start:.0f} s", file=sys.stderr, flush=True)
            last = now


def search_seed(seed: int, table: str) -> int:
    """Seed of the search on one table."""
    sequence = np.random.SeedSequence(seed, spawn_key=(code_of(table),))
    return int(sequence.generate_state(1)[0])


def _run(job: _Job) -> tuple[Key, pd.DataFrame]:
    seed = search_seed(job.seed, job.table.name)
    # Draws move the random state of a space, and searches share the table.
    space = copy.deepcopy(job.table.space)
    space.seed(seed)
    problem = Problem(
        space,
        seed,
        None if job.in_seconds else job.budget.n_trials,
        job.budget.n_workers,
        job.table.steps,
        job.budget.seconds if job.in_seconds else None,
    )
    optimizer = None
    try:
        optimizer = job.method.start(problem)
        simulation = Simulation(job.table, optimizer, job.budget)
        evaluations = simulation.run()
    except Exception as error:  # a method may be anybody's
        error.add_note(
            f"Method {job.label!r} failed on table {job.table.name!r} with seed {job.seed}."
        )
        raise
    finally:
        if (close := getattr(optimizer, "close", None)) is not None:
            close()
    if job.in_seconds and simulation.started >= job.budget.n_trials:
        _logger.warning("%s stopped at max_trials=%d.", job.key, job.budget.n_trials)
    return job.key, _frame(job, evaluations)


def _frame(job: _Job, evaluations: Sequence[Evaluation]) -> pd.DataFrame:
    table = job.table
    trials = [
        Trial(
            e.proposal.config,
            e.outcome.status,
            e.outcome.loss,
            finished=math.nan if table.seconds is None else e.outcome.finished,
            step=e.proposal.step,
        )
        for e in evaluations
    ]
    frame = search_frame([Search(table.name, job.label, job.seed, trials)])
    frame["regret"] = regret(frame["best"], best=table.best, worst=table.worst)
    frame["step"] = column_of(trials, lambda trial: trial.step)
    frame["row"] = np.array([e.answer.row for e in evaluations], dtype=np.int64)
    frame["distance"] = np.array([e.answer.distance for e in evaluations], dtype=np.float64)
    if job.budget.overhead:
        frame["overhead"] = np.array([e.overhead for e in evaluations], dtype=np.float64)
    return frame
