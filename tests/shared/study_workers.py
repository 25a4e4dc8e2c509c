"""Processes that search one study in parallel, and the storage accesses of each trial."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import optuna
import sqlalchemy as sa
from automl_plugins.adapters.optuna import (
    AutoSampler,
    BanditSampler,
    BOASFSampler,
    GBQRSampler,
    TSTSampler,
)
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from sqlalchemy.orm import Mapper

WORKERS = 8
IMPORTED = [  # installed ones: the server does not know where this file is
    "automl_plugins.adapters.optuna",
    "automl_plugins.recipes.with_memory",
    "automl_plugins.surrogates.quantile_boosting",
    "optuna.storages._rdb.alembic",
]
PATIENCE = 600  # seconds after which a worker is taken to hang


def objective(trial: optuna.Trial) -> float:
    """Two algorithms, each with a real number of its own, and a real number of both."""
    x = trial.suggest_float("x", 0.0, 1.0)
    if trial.suggest_categorical("algorithm", ["svm", "forest"]) == "svm":
        return x + (trial.suggest_float("C", 1e-3, 1e3, log=True) / 1e3 - 0.2) ** 2
    return 0.1 + x + abs(trial.suggest_float("features", 0.0, 1.0) - 0.4)


def earlier() -> list[optuna.Study]:
    """Two searches of the same space."""
    studies = []
    for seed in range(2):
        sampler = optuna.samplers.RandomSampler(seed=seed)
        study = optuna.create_study(study_name=f"earlier {seed}", sampler=sampler)
        study.optimize(objective, n_trials=15)
        studies.append(study)
    return studies


# Functions of the number of all trials. Half of these are start-up trials, for a model is fitted
# for each of the others while all eight workers ask at once.
SAMPLERS: dict[str, Callable[[int], BaseSampler]] = {
    "AutoSampler": lambda n: AutoSampler(seed=1, n_startup_trials=n // 2),
    "GBQRSampler": lambda n: GBQRSampler(seed=1, n_startup_trials=n // 2),
    "TSTSampler": lambda _: TSTSampler(earlier(), seed=1),
    "BanditSampler": lambda _: BanditSampler(seed=1),
    "BOASFSampler": lambda n: BOASFSampler(seed=1, n_trials=n),
}


def open_storage(address: str) -> BaseStorage:
    """A database by its address, or a journal by the path of its file."""
    if "://" not in address:
        return JournalStorage(JournalFileBackend(address))
    # SQLite has one writer at a time; its default is to give up after 5 seconds.
    options = {"connect_args": {"timeout": PATIENCE}} if address.startswith("sqlite") else {}
    return RDBStorage(address, engine_kwargs=options)


@contextmanager
def opened(address: str) -> Iterator[BaseStorage]:
    """Open a storage; its connections are closed after the block."""
    storage = open_storage(address)
    try:
        yield storage
    finally:
        if isinstance(storage, RDBStorage):
            storage.remove_session()
            storage.engine.dispose()


class Meter:
    """Counts the accesses to a storage and the records it returns.

    These are statements and rows of a database, reads and lines of a journal.
    """

    def __init__(self, storage: BaseStorage) -> None:
        self.asked = self.answered = 0
        if isinstance(storage, RDBStorage):
            sa.event.listen(storage.engine, "before_cursor_execute", self._ask)
            sa.event.listen(Mapper, "load", self._answer)
        else:
            assert isinstance(storage, JournalStorage)
            backend: Any = storage._backend
            backend.read_logs = self._counted(backend.read_logs)

    def _ask(self, *_: Any) -> None:
        self.asked += 1

    def _answer(self, *_: Any) -> None:
        self.answered += 1

    def _counted(
        self, read: Callable[[int], Iterator[dict[str, Any]]]
    ) -> Callable[[int], Iterator[dict[str, Any]]]:
        def counted(log_number_from: int) -> Iterator[dict[str, Any]]:
            self._ask()
            for line in read(log_number_from):
                self._answer()
                yield line

        return counted


def work(
    address: str, sampler: str, n_trials: int, together: bool, log: Path, everyone: Any
) -> None:
    """Run a worker's trials, and write the storage accesses of each to a file."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = open_storage(address)
    meter, notes = Meter(storage), list[tuple[int, int, int]]()

    def note(_: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        notes.append((trial.number, meter.asked, meter.answered))
        meter.asked = meter.answered = 0

    name = log.parent.name
    made = SAMPLERS[sampler](WORKERS * n_trials)
    study = optuna.load_study(study_name=name, storage=storage, sampler=made)
    everyone.wait(PATIENCE)

    def evaluate(trial: optuna.Trial) -> float:
        loss = objective(trial)
        if together:
            everyone.wait(PATIENCE)
        return loss

    study.optimize(evaluate, n_trials=n_trials, callbacks=[note])
    log.write_text(json.dumps(notes))


def run_workers(
    address: str, sampler: str, folder: Path, n_trials: int, *, together: bool = False
) -> list[tuple[int, int, int]]:
    """Run all workers on a new study, named like the folder.

    Args:
        address: Address of the storage.
        sampler: Its name in ``SAMPLERS``.
        folder: For the notes of the workers.
        n_trials: Trials of each worker.
        together: Whether no trial ends before all workers have begun theirs.

    Returns:
        Number of each trial, of accesses to the storage for it, and of records returned.

    Raises:
        RuntimeError: If workers fail, or do not finish in time; they are killed.
    """
    with opened(address) as storage:
        optuna.create_study(study_name=folder.name, storage=storage)
    # Forked by a server that has imported everything and runs no threads.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    everyone = context.Barrier(WORKERS)
    logs = [folder / f"{i}.json" for i in range(WORKERS)]
    arguments = [(address, sampler, n_trials, together, log, everyone) for log in logs]
    processes = [context.Process(target=work, args=some) for some in arguments]
    for process in processes:
        process.start()
    try:
        for process in processes:
            process.join(PATIENCE)
        ends = [process.exitcode for process in processes]
        if any(ends) or None in ends:
            raise RuntimeError(f"{sampler} on {address}: workers ended with {ends}; None hangs.")
    finally:
        for process in processes:
            process.kill()
    notes: list[Any] = [tuple(note) for log in logs for note in json.loads(log.read_text())]
    return sorted(notes)
