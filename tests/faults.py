"""Fault injection with real signals, locks and limits: ``make faults``.

    python tests/faults.py kills  # 100 workers of studies, killed with SIGKILL at random moments
    python tests/faults.py resumed  # replays and boasf_fmin, killed and run again to their end
    python tests/faults.py locked full  # a locked storage, a full disk
    python tests/faults.py --quick  # all faults, a few times

Exits with an error if a finished trial is lost, a file is damaged or a search cannot continue.
Unix only: workers are forked.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import resource
import signal
import sqlite3
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
from automl_plugins.adapters.hyperopt import boasf_fmin
from automl_plugins.adapters.hyperopt._private import load
from automl_plugins.adapters.optuna import (
    AutoSampler,
    BanditSampler,
    BOASFSampler,
    GBQRSampler,
    optimizer,
    record,
)
from hyperopt import Trials, hp
from optuna.samplers import BaseSampler, RandomSampler
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock
from optuna.trial import FrozenTrial, TrialState

from automl_plugins.meta import MetaStore, TaskRecord
from automl_plugins.meta.files import StoredSearch, read_records, write_searches
from automl_plugins.meta.store import StoreError
from automl_plugins.replay import Table, replay

FORK = multiprocessing.get_context("fork")
AT_ONCE = 2
ALGORITHM = {"algorithm": optuna.distributions.CategoricalDistribution(["svm", "rf"])}

SAMPLERS: dict[str, Callable[[], BaseSampler]] = {
    "AutoSampler": lambda: AutoSampler(seed=1, memory=None),
    "BOASFSampler": lambda: BOASFSampler(n_trials=500, seed=1, search_space=ALGORITHM),
    "BanditSampler": lambda: BanditSampler(seed=1, search_space=ALGORITHM),
}


def check(holds: bool, fault: str) -> None:
    """Exit with the message ``fault`` unless a condition holds."""
    if not holds:
        raise SystemExit(f"FAULT: {fault}")


def objective(trial: optuna.Trial) -> float:
    if trial.suggest_categorical("algorithm", ["svm", "rf"]) == "svm":
        return (trial.suggest_float("C", 0, 1) - 0.3) ** 2
    return 0.1 + abs(trial.suggest_float("x", 0, 1) - 0.6)


def storage_in(folder: Path, kind: str) -> BaseStorage:
    if kind == "sqlite":
        return RDBStorage(f"sqlite:///{folder / 'study.db'}")
    path = str(folder / "study.log")
    # A killed worker leaves its lock, which the others break after the grace period.
    return JournalStorage(JournalFileBackend(path, JournalFileSymlinkLock(path, grace_period=2)))


def begin(target: Callable[..., Any], *arguments: Any) -> Any:
    process = FORK.Process(target=target, args=arguments)
    process.start()
    return process


def kill(process: Any, after: float) -> bool:
    """SIGKILL after some seconds; whether it was still alive then."""
    process.join(after)
    process.kill()
    process.join()
    return bool(process.exitcode == -signal.SIGKILL)


# --- workers of a study -----------------------------------------------------------------------


def work(folder: Path, kind: str, name: str, log: Path) -> None:
    """Run trials without end; each is noted in a file as soon as it is stored."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(_: optuna.Study, trial: FrozenTrial) -> None:
        os.write(descriptor, f"{json.dumps([trial.number, trial.value])}\n".encode())

    storage = storage_in(folder, kind)
    study = optuna.load_study(study_name="s", storage=storage, sampler=SAMPLERS[name]())
    study.optimize(objective, n_trials=10**6, callbacks=[note])


def kills(folder: Path, n: int) -> None:
    names = [*SAMPLERS, *SAMPLERS]
    cases = list(zip(("sqlite", "journal") * len(SAMPLERS), names, strict=True))
    rng = np.random.default_rng(0)
    total = noted = zombies = 0
    for index, (kind, name) in enumerate(cases):
        share = len(range(index, n, len(cases)))
        if share:
            place = folder / f"{kind} {name}"
            place.mkdir()
            found = kill_workers(place, kind, name, share, rng)
            total, noted, zombies = total + share, noted + found[0], zombies + found[1]
    print(f"{total} workers killed: {noted} trials noted, 0 of them lost, {zombies} left running")


def kill_workers(
    folder: Path, kind: str, name: str, n: int, rng: np.random.Generator
) -> tuple[int, int]:
    """Kill ``n`` workers of a study, one after another.

    Returns:
        Number of finished trials noted, and number of trials left running.
    """
    optuna.create_study(study_name="s", storage=storage_in(folder, kind))
    log = folder / "noted"
    workers = [begin(work, folder, kind, name, log) for _ in range(AT_ONCE)]
    killed = 0
    while killed < n:
        before = log.stat().st_size if log.exists() else 0
        deadline = time.monotonic() + 120
        while not log.exists() or log.stat().st_size == before:
            check(time.monotonic() < deadline, f"no worker of {name} on {kind} makes progress")
            time.sleep(0.005)
        check(kill(workers.pop(0), rng.uniform(0, 0.3)), f"a worker of {name} ended by itself")
        killed += 1
        workers.append(begin(work, folder, kind, name, log))
    for worker in workers:
        kill(worker, 0)
    return verify(folder, kind, name, n + AT_ONCE)


def verify(folder: Path, kind: str, name: str, n_killed: int) -> tuple[int, int]:
    study = optuna.load_study(
        study_name="s", storage=storage_in(folder, kind), sampler=SAMPLERS[name]()
    )
    noted = dict(map(json.loads, (folder / "noted").read_text().splitlines()))
    stored = {t.number: t for t in study.get_trials(deepcopy=False)}
    check(sorted(stored) == list(range(len(stored))), "numbers of trials are missing")
    for number, value in noted.items():
        trial = stored[number]
        finished = trial.state == TrialState.COMPLETE and trial.value == value
        check(finished, f"trial {number} was noted with {value}: {trial.state}, {trial.values}")
    zombies = sum(t.state == TrialState.RUNNING for t in stored.values())
    check(zombies <= n_killed, f"{zombies} trials are left running by {n_killed} workers")
    study.optimize(objective, n_trials=10)
    new = study.get_trials(deepcopy=False)[len(stored) :]
    check(all(t.state == TrialState.COMPLETE for t in new), "the study does not continue")
    check(len({repr(t.params) for t in new}) == len(new), "a configuration is proposed twice")
    if kind == "sqlite":
        with contextlib.closing(sqlite3.connect(folder / "study.db")) as plain:
            found = plain.execute("PRAGMA integrity_check").fetchall()
        check(found == [("ok",)], f"the file is damaged: {found}")
    return len(noted), zombies


# --- searches that are run again to their end -------------------------------------------------


def tables() -> list[Table]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((60, 2)), columns=["x", "y"])
    losses = [(frame["x"] - 0.2 * i) ** 2 + frame["y"] for i in range(3)]
    return [
        Table.from_frame(frame.assign(loss=loss), name=f"t{i}", loss="loss")
        for i, loss in enumerate(losses)
    ]


def run_replay(path: Path | None) -> pd.DataFrame:
    methods = {"gbqr": optimizer("GBQRSampler"), "random": optimizer(RandomSampler)}
    return replay(methods, tables(), budget=12, seed=[0, 1], path=path, progress=False)


def sleep_and_square(x: float) -> float:
    time.sleep(0.01)
    return x**2


def run_boasf(path: Path, log: Path, n: int) -> Trials:
    """Run BOASF; every evaluation is noted before its result is returned."""

    def fn(config: dict[str, Any]) -> float:
        loss = sleep_and_square(config.get("C", 2.0) - 1.0)
        with log.open("a") as file:
            file.write(f"{loss!r}\n")
        return loss

    options = [{"m": "a", "C": hp.uniform("C", 0, 3)}, {"m": "b", "d": hp.uniform("d", 0, 1)}]
    trials = None if path.exists() else Trials()
    boasf_fmin(
        fn,
        hp.choice("m", options),
        max_evals=n,
        trials=trials,
        trials_save_file=str(path),
        rstate=np.random.default_rng(0),
        show_progressbar=False,
        verbose=False,
    )
    with path.open("rb") as file:
        found: Trials = load(file)
    return found


def resumed(folder: Path, n: int) -> None:
    rng = np.random.default_rng(0)
    path, killed = folder / "runs.csv", 0
    for _ in range(n):
        killed += kill(begin(run_replay, path), rng.uniform(0.02, 0.5))
    pd.testing.assert_frame_equal(run_replay(path), run_replay(None))
    print(f"replay killed {killed} times: the same rows as in one go")
    save, log, alive = folder / "trials.pkl", folder / "noted", 0
    for _ in range(n):
        alive += kill(begin(run_boasf, save, log, 30), rng.uniform(0.1, 0.5))
    trials = run_boasf(save, log, 30)
    noted = [float(line) for line in log.read_text().split()]
    check(len(trials) == 30, f"{len(trials)} of 30 trials")
    check(len(noted) - 30 <= alive, "more than the running trial was evaluated again")
    check(set(trials.losses()) <= set(noted), "a loss that no evaluation had")
    print(f"boasf_fmin killed {alive} times: 30 trials, {len(noted) - 30} evaluated again")


# --- a locked storage -------------------------------------------------------------------------


def hold(path: Path, seconds: float, ready: Any) -> None:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        ready.set()
        time.sleep(seconds)
        other.execute("COMMIT")


def locked(folder: Path, seconds: float) -> None:
    """While another process holds the lock, the search and its recorder wait."""
    store, address = folder / "runs.db", f"sqlite:///{folder}/study.db"
    study = optuna.create_study(storage=address, sampler=SAMPLERS["AutoSampler"]())
    recorder = record(store, task="bowl")
    study.optimize(objective, n_trials=3, callbacks=[recorder])
    for path in (folder / "study.db", store):
        ready = FORK.Event()
        recorder.recorder.store.close()
        holder = begin(hold, path, seconds, ready)
        check(ready.wait(60), "the file could not be locked")
        start = time.monotonic()
        study.optimize(objective, n_trials=3, callbacks=[recorder])
        waited = time.monotonic() - start
        holder.join()
        check(waited > 0.5 * seconds, f"it waited {waited:.1f} s only: was there a lock?")
    check(len(study.trials) == 9 and recorder.n_recorded == 9, "a trial is lost")
    print(f"storage and store locked for {seconds:g} s each: all trials are there")


# --- a full disk ------------------------------------------------------------------------------


@contextlib.contextmanager
def at_most(size: int) -> Iterator[None]:
    """Limit the size of files; Python ignores the signal, so writing beyond it fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def in_child(function: Callable[..., None], *arguments: Any) -> None:
    child = begin(function, *arguments)
    child.join()
    check(child.exitcode == 0, f"{function.__name__} ended with {child.exitcode}")


def fill_storage(folder: Path) -> None:
    path = folder / "study.db"
    study = optuna.create_study(
        storage=f"sqlite:///{path}", study_name="s", sampler=GBQRSampler(seed=1)
    )
    study.optimize(objective, n_trials=5)
    done: list[int] = []
    error = None
    with at_most(path.stat().st_size + 20_000):
        try:
            study.optimize(objective, n_trials=300, callbacks=[lambda _, t: done.append(t.number)])
        except Exception as raised:
            error = raised
    check(error is not None, "the disk was never full")
    study = optuna.load_study(study_name="s", storage=f"sqlite:///{path}")
    states = {t.number: t.state for t in study.trials}
    check(all(states[n] == TrialState.COMPLETE for n in done), "a trial is lost")
    study.sampler = GBQRSampler(seed=1)
    study.optimize(objective, n_trials=3)
    print(f"disk full after {len(done)} trials of a study: none is lost, it continues", flush=True)


def fill_store(folder: Path) -> None:
    path = folder / "full.db"
    recorder = record(path, task="bowl")
    study = optuna.create_study(sampler=GBQRSampler(seed=1))
    study.optimize(objective, n_trials=3, callbacks=[recorder])
    with at_most(path.stat().st_size + 20_000):
        study.optimize(objective, n_trials=8, callbacks=[recorder])
        lost = recorder.n_lost
        check(lost > 0, "the disk was never full")
        with MetaStore(path) as store:
            try:
                for i in range(500):
                    store.record("bowl", {"x": "x" * 1000, "i": i}, 0.5)
            except StoreError as error:
                check("make room on the disk" in str(error), str(error))
            else:
                check(False, "the disk was never full")
    with MetaStore(path) as store:
        kept = sum(len(found) for found in store.records() if found.framework)
        check(kept == recorder.n_recorded, f"{kept} of {recorder.n_recorded} runs")
        check(store.record("bowl", {"x": 1}, 0.5), "the store cannot be written any more")
    print(f"disk full under a store: the search continued, {lost} runs counted lost", flush=True)


def fill_files(folder: Path) -> None:
    path = folder / "runs.json"
    write_searches(path, [StoredSearch(TaskRecord("a", [{"x": 1}], np.array([0.5])))])
    many = TaskRecord("b", [{"x": i} for i in range(9999)], np.arange(9999.0))
    with at_most(4096), contextlib.suppress(OSError):
        write_searches(path, [StoredSearch(many)])
        check(False, "the disk was never full")
    check(read_records(path)[0].name == "a", "the export before is lost")
    runs = folder / "full.csv"
    with at_most(2000), contextlib.suppress(OSError):
        run_replay(runs)
        check(False, "the disk was never full")
    pd.testing.assert_frame_equal(run_replay(runs), run_replay(None))
    names = sorted(p.name for p in folder.iterdir() if p.suffix == ".tmp")
    check(not names, f"left behind: {names}")
    print("disk full under an export and a replay: the export before, the same rows", flush=True)


def full(folder: Path, _: int) -> None:
    for function in (fill_storage, fill_store, fill_files):
        in_child(function, folder)


FAULTS: dict[str, Callable[[Path, Any], None]] = {
    "kills": kills,
    "resumed": resumed,
    "locked": locked,
    "full": full,
}


OFTEN = {"kills": (100, 4), "resumed": (20, 2), "locked": (3, 1), "full": (1, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", choices=[*FAULTS, []], default=[])
    parser.add_argument("--quick", action="store_true", help="a few times")
    options = parser.parse_args()
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    warnings.filterwarnings("ignore", message="The value of `grace_period`")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    for what in options.what or FAULTS:
        with tempfile.TemporaryDirectory() as folder:
            FAULTS[what](Path(folder), OFTEN[what][options.quick])


if __name__ == "__main__":
    main()
