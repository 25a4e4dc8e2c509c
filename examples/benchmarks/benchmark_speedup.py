"""Speed-up of a study by two, four and eight workers.

A study of 64 trials that sleep for a second each: in memory by threads (``n_jobs``), and on a
PostgreSQL server of its own by processes. The clock starts when all workers have loaded their
libraries; besides sleep it measures proposals and the storage.

    benchmark_speedup.py  # 25 minutes; nothing else should run meanwhile
    benchmark_speedup.py --samplers GBQRSampler --storages memory --repeats 1
"""

from __future__ import annotations

import contextlib
import multiprocessing
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import optuna
import servers
from automl_plugins.adapters.optuna import AutoSampler, GBQRSampler
from common import run_command, silence
from optuna.samplers import BaseSampler
from optuna.storages import RDBStorage

SAMPLERS: dict[str, Callable[[], BaseSampler]] = {
    "AutoSampler": partial(AutoSampler, seed=1),
    "GBQRSampler": partial(GBQRSampler, seed=1),
}
PATIENCE = 600  # seconds within which all workers must have started


class Sleep:
    """An objective of four parameters that takes a number of seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self, trial: optuna.Trial) -> float:
        """The loss, after the seconds have passed."""
        rate = trial.suggest_float("rate", 1e-4, 1.0, log=True)
        depth = trial.suggest_int("depth", 1, 12)
        share = trial.suggest_float("share", 0.1, 1.0)
        kind = trial.suggest_categorical("kind", ["gbdt", "dart", "rf"])
        time.sleep(self.seconds)
        return abs(rate - 0.1) + abs(depth - 6) / 6 + (share - 0.7) ** 2 + 0.1 * (kind == "rf")


def warm_up(sampler: str, address: str | None = None) -> None:
    """Load all that proposals and a storage need, so that start-up is not measured."""
    study = optuna.create_study(sampler=SAMPLERS[sampler](), storage=address)
    study.optimize(Sleep(0.0), n_trials=15)


def by_threads(sampler: str, workers: int, trials: int, seconds: float) -> float:
    """Seconds that a study in memory takes."""
    warm_up(sampler)
    study = optuna.create_study(sampler=SAMPLERS[sampler]())
    begin = time.perf_counter()
    study.optimize(Sleep(seconds), n_trials=trials, n_jobs=workers)
    return time.perf_counter() - begin


def by_processes(sampler: str, workers: int, trials: int, seconds: float, address: str) -> float:
    """Seconds that a study on a server takes, each worker with an equal part of the trials."""
    storage = RDBStorage(address)
    study = optuna.create_study(storage=storage)
    context = multiprocessing.get_context("forkserver")
    everyone = context.Barrier(workers + 1)
    arguments = (address, study.study_name, sampler, trials // workers, seconds, everyone)
    processes = [context.Process(target=work, args=arguments) for _ in range(workers)]
    for process in processes:
        process.start()
    everyone.wait(PATIENCE)
    begin = time.perf_counter()
    for process in processes:
        process.join()
    taken = time.perf_counter() - begin
    finished = study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
    storage.remove_session()
    storage.engine.dispose()
    if len(finished) != trials:
        raise SystemExit(f"{len(finished)} of {trials} trials are complete.")
    return taken


def work(
    address: str, name: str, sampler: str, trials: int, seconds: float, everyone: Any
) -> None:
    """Run the trials of one process."""
    silence()
    warm_up(sampler, address)
    study = optuna.load_study(study_name=name, storage=address, sampler=SAMPLERS[sampler]())
    everyone.wait(PATIENCE)
    study.optimize(Sleep(seconds), n_trials=trials)


def main(
    samplers: Sequence[str] = tuple(SAMPLERS),
    storages: Sequence[str] = ("memory", "PostgreSQL"),
    workers: Sequence[int] = (1, 2, 4, 8),
    trials: int = 64,
    seconds: float = 1.0,
    repeats: int = 3,
) -> None:
    """Print median seconds, and the speed-up over the first number of workers."""
    with contextlib.ExitStack() as stack:
        address = stack.enter_context(servers.postgresql()) if "PostgreSQL" in storages else ""
        for storage in storages:
            for sampler in samplers:
                medians: list[float] = []
                for n in workers:
                    found = []
                    for _ in range(repeats):
                        if storage == "memory":
                            found.append(by_threads(sampler, n, trials, seconds))
                        else:
                            found.append(by_processes(sampler, n, trials, seconds, address))
                    medians.append(statistics.median(found))
                    print(
                        f"{sampler} in {storage}, {n} workers: {medians[-1]:.2f} s,"
                        f" {medians[0] / medians[-1]:.2f} times sooner"
                        f" (of {repeats}: {', '.join(f'{taken:.2f}' for taken in found)})",
                        flush=True,
                    )


if __name__ == "__main__":
    run_command(__doc__, main, samplers=SAMPLERS, storages=["memory", "PostgreSQL"])
