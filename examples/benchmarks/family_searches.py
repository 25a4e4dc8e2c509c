"""Searches on the families of problems: the methods, one search, and results kept as lines.

A line of a result file is a search: its task, method and seed, the trials at which its best loss
improved, and the seconds that proposing took.
"""

from __future__ import annotations

import copy
import json
import lzma
import math
import re
import runpy
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from common import Quiet, silence
from families import Task
from family_memories import WITH_MEMORY
from joblib import Parallel, delayed

from automl_plugins.frameworks import Optimizer, Proposal, load_adapter
from automl_plugins.replay import Method, Outcome, Problem, TrialStatus
from automl_plugins.replay.runs import search_seed

MakeMethod = Callable[[], Method]
Tasks = Callable[[str], Sequence[Task]]  # the tasks of a family; must be picklable
TWICE = "random 2x"
NO_MEMORY = "AutoSampler, no memory"
SCALES = "scales.csv"  # best and worst loss of each task, beside the searches


def of_framework(framework: str, what: str, **options: Any) -> MakeMethod:
    """A method of a framework that is imported when it is used."""
    return lambda: load_adapter(framework).optimizer(what, **options)


def penalise(make: MakeMethod) -> MakeMethod:
    """The method, told ``FAILURE_AS`` as the loss of a failed evaluation."""
    return lambda: Penalised(make())


OURS: dict[str, MakeMethod] = {
    NO_MEMORY: of_framework("optuna", "AutoSampler", memory=None),
    "GBQR": of_framework("optuna", "GBQRSampler"),
}
PEERS: dict[str, MakeMethod] = {
    "Optuna TPE": of_framework("optuna", "TPESampler"),
    "Optuna TPE grouped": of_framework("optuna", "TPESampler", multivariate=True, group=True),
    "Hyperopt TPE": of_framework("hyperopt", "tpe"),
    TWICE: of_framework("optuna", "RandomSampler"),
}
SLOW: dict[str, MakeMethod] = {
    "SMAC": of_framework("smac", "HyperparameterOptimizationFacade"),
    "Optuna GP": of_framework("optuna", "GPSampler", warn_independent_sampling=False),
    "Optuna CMA-ES": of_framework("optuna", "CmaEsSampler", warn_independent_sampling=False),
}
COST_AWARE: dict[str, MakeMethod] = {
    f"{NO_MEMORY}, cost": of_framework("optuna", "AutoSampler", memory=None, cost="seconds"),
    "EIPerSecondSampler": of_framework("optuna", "EIPerSecondSampler", cost="seconds"),
}
#: Other samplers of this package for a search without a memory.
OTHERS: dict[str, MakeMethod] = {
    "Forest EI": of_framework("optuna", "SurrogateSampler", surrogate="random_forest"),
    "GBQR thesis": of_framework("optuna", "GBQRSampler.thesis"),
}
#: GBQR without one of its parts each.
ABLATIONS: dict[str, MakeMethod] = {
    "GBQR without doubt": of_framework("optuna", "GBQRSampler", doubt=0.0),
    "GBQR without balance": of_framework("optuna", "GBQRSampler", balance=None),
    "GBQR one model": of_framework("optuna", "GBQRSampler", n_models=1),
}
RANDOM = {"random": of_framework("optuna", "RandomSampler")}
METHODS = OURS | PEERS | SLOW | COST_AWARE | OTHERS | ABLATIONS | RANDOM
FAILURE_AS = 100.0  # the loss of an objective that must return a number when it fails
METHODS |= {
    f"{name}, failures as {FAILURE_AS:g}": penalise(METHODS[name])
    for name in ("Optuna TPE", "Optuna CMA-ES")
}
NUMBERS_ONLY = {"Optuna CMA-ES"}  # draws categories at random
EVALUATIONS = {TWICE: 2}  # evaluations that count as one trial, as if on two machines


@cache  # a process runs many searches
def methods(extra: Path | None) -> dict[str, MakeMethod]:
    """The methods by name, with those that ``METHODS`` of the Python file ``extra`` adds."""
    return METHODS if extra is None else METHODS | runpy.run_path(str(extra))["METHODS"]


class Penalised:
    """A method whose failed evaluations are told as complete, with the loss ``FAILURE_AS``."""

    def __init__(self, method: Method) -> None:
        self.method, self.name = method, method.name

    def start(self, problem: Problem) -> Optimizer:
        optimizer = self.method.start(problem)
        tell = optimizer.tell

        def tell_a_loss(proposal: Proposal, outcome: Outcome) -> None:
            if outcome.status == TrialStatus.FAILED:
                outcome = replace(outcome, status=TrialStatus.COMPLETE, loss=FAILURE_AS)
            tell(proposal, outcome)

        optimizer.tell = tell_a_loss  # type: ignore[method-assign]
        return optimizer


# --- one search ------------------------------------------------------------------------------


class Found(NamedTuple):
    """The result of a search.

    Attributes:
        improvements: The trials, from 1, at which the best loss improved, and that loss.
        proposing: Seconds that the optimizer took in total.
        seconds: Recorded seconds at the end of each of those trials, and at the end of the search.
        n_finished: Number of evaluations.
        n_failed: Number of failed evaluations.
    """

    improvements: list[tuple[int, float]]
    proposing: float
    seconds: list[float]
    n_finished: int
    n_failed: int


def start(method: Method, task: Task, seed: int, n_trials: int) -> Optimizer:
    """A search of ``method`` on a task, whose seed follows from ``seed`` and the task's name."""
    number = search_seed(seed, task.name)
    space = copy.deepcopy(task.space)
    space.seed(number)
    optimizer: Optimizer = Quiet(method).start(Problem(space, number, n_trials))
    return optimizer


def search(method: Method, task: Task, seed: int, n_trials: int, evaluations: int = 1) -> Found:
    """One search on a task, of which ``evaluations`` count as one trial."""
    optimizer = start(method, task, seed, n_trials * evaluations)
    improvements: list[tuple[int, float]] = []
    ends: list[float] = []
    best, clock, proposing, n_finished, n_failed = math.inf, 0.0, 0.0, 0, 0
    for k in range(n_trials * evaluations):
        began = time.perf_counter()
        proposal = optimizer.ask()
        proposing += time.perf_counter() - began
        if proposal is None:
            break
        loss = task.loss(proposal.config)
        end = clock + (1.0 if task.seconds is None else task.seconds(proposal.config))
        if end > task.until:
            break
        status = TrialStatus.COMPLETE if math.isfinite(loss) else TrialStatus.FAILED
        began = time.perf_counter()
        optimizer.tell(proposal, Outcome(status, loss, clock, end))
        proposing += time.perf_counter() - began
        clock = end
        n_finished += 1
        n_failed += status == TrialStatus.FAILED
        if loss < best:
            best = loss
            improvements.append((k // evaluations + 1, loss))
            ends.append(clock)
    if (close := getattr(optimizer, "close", None)) is not None:
        close()
    return Found(improvements, proposing, [*ends, clock], n_finished, n_failed)


# --- results in files ------------------------------------------------------------------------


def write_scales(
    families: Sequence[str],
    tasks: Tasks,
    draws: Callable[[str], int],
    folder: Path,
    limit: int | None = None,
) -> None:
    """Write the best and the worst loss of each task: regret is a share of their distance.

    ``draws`` are the random configurations of a family whose best losses are unknown, see
    ``Task.scale``.
    """
    rows = [(t.name, *t.scale(draws(name))) for name in families for t in tasks(name)[:limit]]
    folder.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows, columns=["task", "best", "worst"]).to_csv(folder / SCALES, index=False)


def file_of(folder: Path, family: str, method: str) -> Path:
    """The results of a method on a family."""
    return folder / f"{family}.{re.sub(r'[^A-Za-z0-9]+', '_', method)}.jsonl"


def read_results(folder: Path) -> Iterator[dict[str, Any]]:
    """All searches in a folder's files, packed or not."""
    for path in sorted(folder.glob("*.jsonl*")):
        packed = path.read_bytes()
        text = (lzma.decompress(packed) if path.suffix == ".xz" else packed).decode()
        for line in text.splitlines():
            if line.endswith("}"):  # a crash may have cut the last one
                yield json.loads(line)


def pack(folder: Path) -> None:
    """Turn the files of a folder into one packed file for each family."""
    by_family: dict[str, dict[tuple[str, str, int], dict[str, Any]]] = {}
    for found in read_results(folder):
        key = (found["task"], found["method"], found["seed"])
        by_family.setdefault(found["task"].partition("/")[0], {})[key] = found
    for family, searches in by_family.items():
        text = "".join(json.dumps(searches[key]) + "\n" for key in sorted(searches))
        (folder / f"{family}.jsonl.xz").write_bytes(lzma.compress(text.encode(), preset=9))
    for path in folder.glob("*.jsonl"):
        path.unlink()


def run(
    families: Sequence[str],
    names: Sequence[str],
    tasks: Tasks,
    seeds: Iterable[int],
    folder: Path,
    *,
    extra: Path | None = None,
    n_trials: int | None = None,
    n_jobs: int = 1,
    limit: int | None = None,
    every: int = 1,
) -> None:
    """Run the searches that the folder does not have yet.

    Args:
        families: Names of families.
        names: Names of methods, of ``METHODS`` or those of the Python file ``extra``.
        tasks: The tasks of a family; of every ``every``-th at most ``limit`` are searched.
        seeds: Seeds of the searches of each method on each task.
        folder: Folder of the results.
        n_trials: Trials of a search; None is 50, and 60 on smooth functions.
        n_jobs: Processes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    there = {(r["task"], r["method"], r["seed"]): int(r["n_trials"]) for r in read_results(folder)}
    jobs = []
    for family in families:
        n = n_trials or (60 if family == "smooth" else 50)
        for seed in seeds:
            for i, task in list(enumerate(tasks(family)))[::every][:limit]:
                for name in names:
                    if name in NUMBERS_ONLY and not task.numeric:
                        continue
                    if there.get((task.name, name, seed), 0) < n:
                        place = partial(_task, tasks, family, i)
                        jobs.append(partial(_keep, folder, extra, place, name, seed, n))
    print(f"{len(jobs)} searches to run", flush=True)
    Parallel(n_jobs=n_jobs)(delayed(job)() for job in jobs)


def _task(tasks: Tasks, family: str, i: int) -> Task:
    return tasks(family)[i]


def _keep(
    folder: Path,
    extra: Path | None,
    place: Callable[[], Task],
    name: str,
    seed: int,
    n_trials: int,
) -> None:
    """Run a search and append its line in one write: other processes append to the file too."""
    silence()
    task = place()
    method = WITH_MEMORY[name](task) if name in WITH_MEMORY else methods(extra)[name]()
    found = search(method, task, seed, n_trials, EVALUATIONS.get(name, 1))
    line: dict[str, Any] = {
        "task": task.name,
        "method": name,
        "seed": seed,
        "n_trials": n_trials,
        "improvements": found.improvements,
        "proposing": round(found.proposing, 3),
    }
    if task.seconds is not None:
        line["until"] = None if math.isinf(task.until) else round(task.until, 3)
        line["seconds"] = [round(s, 3) for s in found.seconds]
        line |= {"n_finished": found.n_finished, "n_failed": found.n_failed}
    with file_of(folder, task.family, name).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
