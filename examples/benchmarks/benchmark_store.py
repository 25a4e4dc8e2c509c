"""A store under stress: killed writers, many writers, a million runs.

    benchmark_store.py kills  # 100 writers killed with SIGKILL
    benchmark_store.py writers  # 8 processes, 1000 runs each
    benchmark_store.py reading  # 1000 tasks of 1000 runs
    benchmark_store.py kills writers --postgres  # a server of its own, no TCP

Exits with an error if a run is lost. Unix only: the writers are forked.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer
from servers import NoServerError, postgresql

from automl_plugins.meta.store import MetaStore
from automl_plugins.records.task_record import TaskRecord
from automl_plugins.spaces.values import to_values
from automl_plugins.spaces.vector_space import VectorSpace

FORK = multiprocessing.get_context("fork")
AT_ONCE = 4  # writers that run when they are killed


def search_space() -> ConfigurationSpace:
    """A conditional space of five hyperparameters."""
    space = ConfigurationSpace()
    kernel = Categorical("kernel", ["rbf", "linear"])
    gamma = Float("gamma", (1e-5, 8), log=True)
    space.add(kernel, gamma, Float("C", (1e-3, 1e3), log=True), Integer("n", (1, 50)))
    space.add(Categorical("q", ["a", "b", "c"]), EqualsCondition(gamma, kernel, "rbf"))
    return space


# --- writers ------------------------------------------------------------------------------


def write(store: MetaStore, log: Path, worker: int, n: int) -> None:
    """Record runs, and note each in a file as soon as it is stored."""
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    space = search_space()
    for i in range(n):
        store.record(
            "bowl",
            {"kernel": "rbf", "gamma": 0.1 + worker, "C": 1.0, "n": 3, "i": i},
            loss=float(i),
            seconds=0.5,
            space=space,
            framework="benchmark",
            search=f"writer {worker}",
            key=i,
        )
        os.write(descriptor, f"{i}\n".encode())


def start(store: MetaStore, folder: Path, worker: int, n: int) -> Any:
    process = FORK.Process(target=write, args=(store, folder / f"{worker}.log", worker, n))
    process.start()
    return process


def check(url: str, folder: Path, n_writers: int) -> tuple[int, int, int]:
    """The numbers of runs noted, of noted runs lost, and of runs stored but not noted.

    Raises:
        SystemExit: If a run is lost, or more than the one in flight was not noted.
    """
    stored: dict[str, list[int]] = {}
    with MetaStore(url) as store:
        for info in store.searches():
            (record,) = store.records(search=info.search)
            stored[info.search] = [c["i"] for c in record.configurations]
    noted = lost = in_flight = 0
    for worker in range(n_writers):
        log = folder / f"{worker}.log"
        reported = [int(line) for line in log.read_text().split()] if log.exists() else []
        kept = stored.get(f"writer {worker}", [])
        noted += len(reported)
        lost += len(set(reported) - set(kept))
        in_flight += len(kept) - len(reported)
        if kept != list(range(len(kept))) or not 0 <= len(kept) - len(reported) <= 1:
            raise SystemExit(f"writer {worker} noted {reported[-1:]}, the store has {kept[-1:]}")
    return noted, lost, in_flight


def kills(url: str, folder: Path, n: int) -> None:
    """Kill writers at random moments, and check the store."""
    rng = np.random.default_rng(0)
    store = MetaStore(url)
    begin = time.perf_counter()
    for first in range(0, n, AT_ONCE):
        workers = range(first, min(first + AT_ONCE, n))
        processes = [start(store, folder, worker, 10**9) for worker in workers]
        logs = [folder / f"{worker}.log" for worker in workers]
        while not any(log.exists() and log.stat().st_size for log in logs):
            time.sleep(0.01)  # on a busy machine they start late
        for process in processes:
            time.sleep(rng.uniform(0, 0.3))
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)
        for process in processes:
            process.join()
            assert process.exitcode == -signal.SIGKILL
    seconds = time.perf_counter() - begin
    store.close()
    noted, lost, in_flight = check(url, folder, n)
    print(
        f"{n} writers killed in {seconds:.0f} s: {noted} runs noted, {lost} of them lost,"
        f" {in_flight} stored when killed before they were noted",
        flush=True,
    )


def writers(url: str, folder: Path, n: int, n_writers: int = 8) -> None:
    """Let writers run side by side, and check the store."""
    store = MetaStore(url)
    begin = time.perf_counter()
    processes = [start(store, folder, worker, n) for worker in range(n_writers)]
    for process in processes:
        process.join()
        assert process.exitcode == 0
    seconds = time.perf_counter() - begin
    store.close()
    noted, lost, _ = check(url, folder, n_writers)
    if noted != n * n_writers:
        raise SystemExit(f"{noted} of {n * n_writers} runs were stored")
    print(
        f"{n_writers} processes x {n} runs in {seconds:.1f} s"
        f" ({1e3 * seconds / noted:.2f} ms each): {noted} stored, {lost} lost",
        flush=True,
    )


# --- reading ------------------------------------------------------------------------------


def reading(url: str, n_tasks: int, n_runs: int) -> None:
    """Write many runs and read them into a ``MetaDataset``."""
    rng = np.random.default_rng(0)
    space = search_space()
    vectors = VectorSpace(space)
    seconds = 0.0
    with MetaStore(url) as store:
        for index in range(n_tasks):
            configurations = to_values(space, vectors.sample(n_runs, rng))
            losses, durations = rng.random((2, n_runs))
            record = TaskRecord(
                f"task {index}", configurations, losses, seconds=durations, space=space
            )
            begin = time.perf_counter()
            store.add(record)
            seconds += time.perf_counter() - begin
    size = f", {Path(url).stat().st_size / 1e6:.0f} MB" if Path(url).is_file() else ""
    print(f"{n_tasks} tasks x {n_runs} runs written in {seconds:.1f} s{size}", flush=True)
    begin, busy = time.perf_counter(), time.process_time()
    with MetaStore(url) as store:
        dataset = store.dataset()
    seconds, busy = time.perf_counter() - begin, time.process_time() - busy
    print(f"read in {seconds:.1f} s ({busy:.1f} s of CPU): {dataset}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="+", choices=["kills", "writers", "reading"])
    parser.add_argument("--postgres", action="store_true", help="on a PostgreSQL server")
    parser.add_argument("--quick", action="store_true", help="a tenth of it")
    parser.add_argument("--folder", type=Path, help="keep the stores and notes in a new folder")
    options = parser.parse_args()
    for what in options.what:
        with contextlib.ExitStack() as stack:
            folder = Path(options.folder or stack.enter_context(tempfile.TemporaryDirectory()))
            folder = folder / what
            folder.mkdir(parents=True)
            url = str(folder / "store.db")
            if options.postgres:
                try:
                    url = stack.enter_context(postgresql())
                except NoServerError as error:
                    raise SystemExit(str(error)) from None
            if what == "kills":
                kills(url, folder, 10 if options.quick else 100)
            elif what == "writers":
                writers(url, folder, 100 if options.quick else 1000)
            else:
                reading(url, *(100, 100) if options.quick else (1000, 1000))


if __name__ == "__main__":
    main()
