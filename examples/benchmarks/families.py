"""Families of problems to search: recorded tables, full grids, surrogates of YAHPO Gym, functions.

A problem answers any configuration of its space at once. Every second problem of a family is for
tuning defaults, the others for judging them.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from ConfigSpace import (
    Categorical,
    ConfigurationSpace,
    EqualsCondition,
    Float,
    InCondition,
    Integer,
)
from ConfigSpace.hyperparameters import CategoricalHyperparameter, OrdinalHyperparameter
from recorded_tables import adaboost, data_path, oboe, read_array, read_csv, svm_grid
from smooth_functions import SMOOTH, Function

from automl_plugins.arrays import FloatArray
from automl_plugins.replay import Table

Config = Mapping[str, Any]


@dataclass(frozen=True)
class Task:
    """A problem to search.

    Attributes:
        name: Family and problem, as in ``"svm_grid/iris"``.
        space: The search space.
        loss: The loss of a configuration, to be minimised; NaN where the evaluation fails.
        best: The least possible loss; None if unknown.
        worst: The largest loss of a table; regret is a share of the distance from ``best`` to it.
            None if the task has no such scale.
        seconds: Recorded duration of an evaluation; None where unknown.
        losses: The losses (n,) of many configurations, where that is faster than one by one.
        until: Recorded seconds after which a search is over; an evaluation that would end later
            does not count.
    """

    name: str
    space: ConfigurationSpace
    loss: Callable[[Config], float]
    best: float | None = None
    worst: float | None = None
    seconds: Callable[[Config], float] | None = None
    losses: Callable[[Sequence[Config]], FloatArray] | None = None
    until: float = math.inf

    @property
    def family(self) -> str:
        """The first part of the name."""
        return self.name.partition("/")[0]

    @property
    def numeric(self) -> bool:
        """Whether all hyperparameters are numbers, whatever the configuration."""
        parameters = self.space.values()
        categories = any(isinstance(p, CategoricalHyperparameter) for p in parameters)
        return not categories and not self.space.conditions

    def scale(self, draws: int) -> tuple[float, float | None]:
        """The best and the worst loss.

        If the best is unknown, it is that of ``draws`` random configurations, until a search
        finds a better one; the "worst" is then their median.
        """
        if self.best is not None:
            return self.best, self.worst
        configs = draw(self.space, draws)
        losses = self.losses(configs) if self.losses else [self.loss(c) for c in configs]
        return float(np.nanmin(losses)), float(np.nanmedian(losses))


def draw(space: ConfigurationSpace, n: int) -> list[Config]:
    """Random configurations, the same in each call."""
    space = copy.deepcopy(space)
    space.seed(0)
    return [dict(config) for config in space.sample_configuration(n)]


# --- recorded tables -------------------------------------------------------------------------


def _of_table(table: Table) -> Task:
    def loss(config: Config) -> float:
        return float(table.losses[table.find(config).row])

    def seconds(config: Config) -> float:
        assert table.seconds is not None
        return float(table.seconds[table.find(config).row])

    timed = None if table.seconds is None else seconds
    return Task(table.name, table.space, loss, table.best, table.worst, timed)


def oboe_tables() -> list[Table]:
    """Every sixth data set of oboe."""
    return oboe(6)


def _xgboost_random() -> list[Task]:
    """XGBoost, 5 000 random configurations for each data set."""
    frame = read_csv("xgboost_random/xgboost.csv.gz")
    space = ConfigurationSpace()
    for name in frame.columns.drop(["task", "error", "max_depth_index"]):
        shares = name in ("subsample", "colsample_bytree")
        upper = 1.0 if shares else float(frame[name].max())
        space.add(Float(name, (float(frame[name].min()), upper), log=not shares))
    space.add(Integer("max_depth_index", (0, 12)))
    return [
        _of_table(
            Table.from_frame(
                rows,
                name=f"xgboost_random/{name}",
                loss="error",
                parameters=list(space),
                space=space,
                repeats="mean",
            )
        )
        for name, rows in frame.groupby("task")
    ]


def grid_space(values: Mapping[str, Sequence[Any]]) -> ConfigurationSpace:
    """The space of a full grid: numbers as ordinals, all else as categories."""
    space = ConfigurationSpace()
    for name, choices in values.items():
        numbers = all(isinstance(v, int | float) for v in choices)
        space.add(
            OrdinalHyperparameter(name, sorted(choices)) if numbers else Categorical(name, choices)
        )
    return space


def _grids(folder: str, file: str, sign: float) -> list[Task]:
    """Full grids that are too large for a ``Table`` to be fast; mean over the seeds."""
    described = json.loads(data_path(f"{folder}/space.json").read_text())
    values: dict[str, list[Any]] = described["search_space"]
    space = grid_space(values)
    places = {name: {v: i for i, v in enumerate(choices)} for name, choices in values.items()}
    shape = [len(choices) for choices in values.values()]
    losses = sign * read_array(f"{folder}/{file}").astype(np.float64).mean(axis=2)

    def loss(of_task: FloatArray, config: Config) -> float:
        return float(of_task[tuple(places[name][config[name]] for name in places)])

    return [
        Task(
            f"{folder}/{name}",
            space,
            partial(loss, of_task.reshape(shape)),
            float(np.nanmin(of_task)),
            float(np.nanmax(of_task)),
        )
        for name, of_task in zip(described["datasets"], losses, strict=True)
    ]


# --- surrogates of YAHPO Gym -----------------------------------------------------------------

_TASK = {"lcbench": "OpenML_task_id", "rbv2_xgboost": "task_id"}
EPOCHS = 52
_FIXED: dict[str, dict[str, float]] = {
    "lcbench": {"epoch": EPOCHS},
    "rbv2_xgboost": {"trainsize": 1.0, "repl": 10},
}
_NUMBERS = {  # in the order of the network's inputs
    "lcbench": "epoch batch_size learning_rate momentum weight_decay num_layers max_units"
    " max_dropout",
    "rbv2_xgboost": "nrounds eta gamma lambda alpha subsample max_depth min_child_weight"
    " colsample_bytree colsample_bylevel rate_drop skip_drop trainsize repl",
}
_CATEGORIES = {
    "lcbench": ["OpenML_task_id"],
    "rbv2_xgboost": ["task_id", "booster", "num.impute.selected.cpo"],
}
_SCORE = {"lcbench": 1, "rbv2_xgboost": 0}  # output: validation accuracy in percent, accuracy
_SECONDS = {"lcbench": 0, "rbv2_xgboost": 6}  # output: seconds of the training


class Surrogate:
    """A network of YAHPO Gym (Pfisterer et al. 2022), for all tasks of a scenario."""

    def __init__(self, scenario: str) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        folder = data_path(f"yahpo/{scenario}")
        self.scenario = scenario
        self.codes: dict[str, dict[str, int]] = json.loads(
            (folder / "encoding.json").read_text(encoding="utf-8")
        )
        self.space = self._read_space(
            json.loads((folder / "config_space.json").read_text(encoding="utf-8"))
        )
        self._session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options)

    def _read_space(self, described: dict[str, Any]) -> ConfigurationSpace:
        """Read ConfigSpace's old JSON format, without the task and the fixed hyperparameters."""
        left_out = {_TASK[self.scenario], *_FIXED[self.scenario]}
        space = ConfigurationSpace()
        for entry in described["hyperparameters"]:
            name = entry["name"]
            if name in left_out:
                continue
            if entry["type"] == "categorical":
                space.add(Categorical(name, entry["choices"]))
                continue
            make = Float if entry["type"] == "uniform_float" else Integer
            space.add(make(name, (entry["lower"], entry["upper"]), log=entry["log"]))
        for entry in described["conditions"]:
            child, parent = space[entry["child"]], space[entry["parent"]]
            space.add(
                EqualsCondition(child, parent, entry["value"])
                if entry["type"] == "EQ"
                else InCondition(child, parent, entry["values"])
            )
        return space

    @property
    def tasks(self) -> list[str]:
        """The tasks, ascending."""
        return sorted(set(self.codes[_TASK[self.scenario]]) - {"#na#"}, key=int)

    def losses(self, task: str, configs: Sequence[Config]) -> FloatArray:
        """Losses (n,) of configurations: accuracy with its sign turned."""
        return -self._answer(task, configs)[:, _SCORE[self.scenario]]

    def curve(self, task: str, config: Config) -> FloatArray:
        """Losses (52,) after each epoch of a training; lcbench only."""
        epochs = range(1, EPOCHS + 1)
        return self.losses(task, [{**config, "epoch": epoch} for epoch in epochs])

    def seconds(self, task: str, configs: Sequence[Config]) -> FloatArray:
        """Seconds (n,) of their trainings."""
        return self._answer(task, configs)[:, _SECONDS[self.scenario]]

    def _answer(self, task: str, configs: Sequence[Config]) -> FloatArray:
        """All outputs of the network, one row for each configuration."""
        fixed = _FIXED[self.scenario] | {_TASK[self.scenario]: task}
        full = [{**fixed, **config} for config in configs]
        names, categories = _NUMBERS[self.scenario].split(), _CATEGORIES[self.scenario]
        numbers = [[config.get(name, 0.0) for name in names] for config in full]
        codes = [
            [self.codes[name][str(config.get(name, "#na#"))] for name in categories]
            for config in full
        ]
        inputs = {"x_cont": np.array(numbers, np.float32), "x_cat": np.array(codes, np.int32)}
        return np.asarray(self._session.run(None, inputs)[0], dtype=np.float64)


@cache
def surrogate(scenario: str) -> Surrogate:
    """The network of a scenario."""
    return Surrogate(scenario)


def _yahpo(scenario: str) -> list[Task]:
    network = surrogate(scenario)

    def loss(task: str, config: Config) -> float:
        return float(network.losses(task, [config])[0])

    return [
        Task(
            f"{scenario}/{t}",
            network.space,
            partial(loss, t),
            losses=partial(network.losses, t),
        )
        for t in network.tasks
    ]


# --- smooth functions ------------------------------------------------------------------------


def _smooth() -> list[Task]:
    """Functions on the unit cube whose least value is 0."""
    return [
        of_function(f"smooth/{name}", function, d, (0.0, 1.0), 0.0)
        for name, (function, d) in SMOOTH.items()
    ]


def of_function(
    name: str, function: Function, d: int, ends: tuple[float, float], best: float
) -> Task:
    """A function of d numbers, each between the same ends."""
    space = ConfigurationSpace({f"x{j}": ends for j in range(d)})
    return Task(name, space, partial(_at_point, function, d), best)


def _at_point(function: Function, d: int, config: Config) -> float:
    return float(function(np.array([config[f"x{j}"] for j in range(d)])))


# --- by name ---------------------------------------------------------------------------------

FAMILIES: dict[str, Callable[[], list[Task]]] = {
    "svm_grid": lambda: [_of_table(table) for table in svm_grid()],
    "oboe": lambda: [_of_table(table) for table in oboe_tables()],
    "adaboost": lambda: [_of_table(table) for table in adaboost()],
    "xgboost_random": _xgboost_random,
    "hpobench_mlp": partial(_grids, "hpobench_mlp", "accuracy_u16.npy.xz", -1e-4),
    "hpolib_fcnet": partial(_grids, "hpolib_fcnet", "log10_valid_mse_f16.npy.xz", 1.0),
    "lcbench": partial(_yahpo, "lcbench"),
    "rbv2_xgboost": partial(_yahpo, "rbv2_xgboost"),
    "smooth": _smooth,
}
MOST_JUDGED = 20  # tasks of a family


@cache
def family(name: str) -> list[Task]:
    """All tasks of a family."""
    return FAMILIES[name]()


def half(name: str, which: str) -> list[Task]:
    """The ``"tuned"`` tasks of a family, or at most 20 evenly spaced ``"judged"`` ones."""
    if which == "tuned":
        return family(name)[::2]
    return spread(family(name)[1::2], MOST_JUDGED)


def spread(tasks: list[Task], most: int) -> list[Task]:
    """At most so many of the tasks, evenly spaced."""
    n = min(len(tasks), most)
    return [tasks[i * len(tasks) // n] for i in range(n)]
