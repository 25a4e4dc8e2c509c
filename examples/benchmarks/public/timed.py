"""Problems whose evaluations take recorded seconds: the budget of a search is in seconds."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

import numpy as np
from families import Config, Task, half, surrogate

from public import llm_trainings
from public.suites import suite

LLM = "llm"
N_TRIALS = 200  # at most
MEAN_TRIALS = 50  # random configurations whose mean seconds make the budget of a search
_DRAWS = 1000
_LEAST = 0.01  # seconds: a network may predict 0 or less


def _timed(task: Task, seconds: Callable[[Config], float]) -> Task:
    """The task with the mean seconds of ``MEAN_TRIALS`` random configurations as its budget."""
    space = copy.deepcopy(task.space)
    space.seed(0)
    mean = np.mean([seconds(dict(c)) for c in space.sample_configuration(_DRAWS)])
    return replace(task, seconds=seconds, until=MEAN_TRIALS * float(mean))


def _recorded(tasks: list[Task]) -> list[Task]:
    return [_timed(task, task.seconds) for task in tasks if task.seconds is not None]


def _rbv2_xgboost() -> list[Task]:
    network = surrogate("rbv2_xgboost")

    def seconds(task: str, config: Config) -> float:
        return max(float(network.seconds(task, [config])[0]), _LEAST)

    tasks = suite("rbv2_xgboost")
    return [_timed(task, partial(seconds, task.name.partition("/")[2])) for task in tasks]


FAMILIES: dict[str, Callable[[], list[Task]]] = {
    LLM: lambda: [llm_trainings.task()],
    "oboe": lambda: _recorded(half("oboe", "judged")),
    "nasbench201": lambda: _recorded(suite("nasbench201")),
    "rbv2_xgboost": _rbv2_xgboost,
}


@cache
def timed(family: str) -> list[Task]:
    """The tasks of a family; none was tuned on."""
    return FAMILIES[family]()
