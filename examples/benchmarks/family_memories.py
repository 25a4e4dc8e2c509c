"""AutoSampler with a memory: the bundled one of its default, or one of a family; also lies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

from common import spoil
from ConfigSpace import ConfigurationSpace
from ConfigSpace.hyperparameters import OrdinalHyperparameter
from families import Task, oboe_tables
from recorded_tables import MEMORIES, memory_of, read_features

from automl_plugins import recipes
from automl_plugins.frameworks import load_adapter
from automl_plugins.meta import MetaDataset
from automl_plugins.meta.bundled_memories import LEARNERS, bundled
from automl_plugins.meta.recognition import RecognisedMemory
from automl_plugins.replay import Method, Optimizer, Problem, proposing
from automl_plugins.spaces.choices import DECODERS, ENCODERS

#: Data sets that are copies of each other, or nearly: a memory for one leaves out the others.
TWINS = [
    {f"{family}/{name}" for name in names.split()}
    for family, names in (
        ("svm_grid", "diabetes pima"),
        ("svm_grid", "breast-cancer wisconsin"),
        ("svm_grid", "australian crx"),
        ("oboe", "40474 40475 40476 40477 40478"),
        ("oboe", "772 948"),
        ("oboe", "1442 1449"),
        ("oboe", "1086 1087"),
        ("oboe", "1049 1454"),
        ("oboe", "1499 1500"),
        ("oboe", "40997 40998"),
    )
]
_WISCONSIN, _CREDIT = "breast cancer wisconsin", "credit approval"
_MLP = {"australian": _CREDIT, "credit_g": "german"}
_RBV2 = {
    **{"15": _WISCONSIN, "1510": _WISCONSIN, "29": _CREDIT, "40981": _CREDIT},
    **{"23": "contraceptive", "31": "german", "37": "pima", "50": "tic-tac-toe"},
    **{"54": "vehicle", "181": "yeast", "307": "vowel", "334": "monk-2"},
    **{"1489": "phoneme", "6332": "bands", "40496": "led7digit", "40498": "winequality"},
    **{"40685": "shuttle", "40975": "car"},
}
_TRAINED = {"breast_cancer": _WISCONSIN, "ecoli3": "ecoli"}
#: Searched data sets whose source, the tag "family" of a bundled memory, has another name there.
#: Those of OpenML are numbers: of tasks in ``adaboost``, of data sets in ``rbv2_xgboost``.
_SOURCES = {
    "svm_grid": {
        **{"australian": _CREDIT, "crx": _CREDIT, "wdbc": _WISCONSIN, "wisconsin": _WISCONSIN},
        **{"breast-cancer": "breast", "diabetes": "pima", "german-numer": "german"},
        **{"sonar-scale": "sonar", "winequality-red": "winequality"},
    },
    "adaboost": {
        **{"23": "contraceptive", "31": "german", "37": "pima", "49": "tic-tac-toe"},
        **{"53": "vehicle", "3022": "vowel", "9952": "phoneme", "14954": "bands"},
        "146821": "car",
    },
    "xgboost_random": {"australian": _CREDIT, "german.numer": "german"},
    "hpobench_mlp": _MLP,
    "hpobench": _MLP,
    "rbv2_xgboost": _RBV2,
    "rbv2_xgboost_tuned": _RBV2,
    **{learner: _TRAINED for learner in ("lightgbm", "random_forest", "svm")},
}
#: ``described`` also uses the meta-features of the searched data set.
HONEST, LIES = ("honest", "described"), ("negated", "shuffled")


@cache
def _memory(family: str, how: str) -> MetaDataset:
    """All tables of a family, with spoilt losses if ``how`` is one of ``LIES``."""
    if how in LIES:
        return spoil(_memory(family, "honest"), how)
    if family == "oboe":
        return memory_of(oboe_tables(), read_features("oboe/dataset_sizes.csv", "dataset_id"))
    return MEMORIES[family]()[1]


def with_memory(how: str, task: Task) -> Method:
    """The sampler for a task; its memory has neither the task nor a copy of it."""
    twins = {name for group in TWINS if task.name in group for name in group}
    every = _memory(task.family, "honest" if how == "described" else how)
    own = next(t.meta_features for t in every.tasks if t.name == task.name)
    known = own if how == "described" else None
    others = every.without(task.name, *twins)
    return proposing(how, lambda problem: recipes.auto(others, meta_features=known))


@cache
def _runs_of(source: str) -> frozenset[str]:
    """Names of the data sets in the bundled memories from one source."""
    tasks = [task for learner in LEARNERS for task in bundled(learner).tasks]
    return frozenset(task.name for task in tasks if task.tags["family"] == source)


def without_itself(task: Task) -> RecognisedMemory:
    """The memory of ``AutoSampler``'s default, without runs on the data that is searched."""
    _, _, data = task.name.partition("/")
    source = _SOURCES.get(task.family, {}).get(data, data)
    return RecognisedMemory().without({data, *_runs_of(source)})


class ByValue:
    """``AutoSampler``, asked for the values of a grid: a memory knows values, not their numbers.

    A replay asks for the number of a value in its order, which is all the same without a memory.
    """

    def __init__(self, **options: Any) -> None:
        self.name, self.options = "AutoSampler", options

    def start(self, problem: Problem) -> Optimizer:
        """See ``Method``."""
        ordered = {
            name: list(hyperparameter.sequence)
            for name, hyperparameter in problem.space.items()
            if isinstance(hyperparameter, OrdinalHyperparameter)
        }
        space = with_choices(problem.space)
        make = load_adapter("optuna").optimizer
        method: Method = make("AutoSampler", ordinal=ordered, **self.options)
        return method.start(replace(problem, space=space))


def with_choices(space: ConfigurationSpace) -> ConfigurationSpace:
    """The space with categories in place of ordered values."""
    written = space.to_serialized_dict(ENCODERS)
    for i, known in enumerate(written["hyperparameters"]):
        if known["type"] == "ordinal":
            choices = {"type": "categorical", "choices": known["sequence"], "weights": None}
            kept = {key: known[key] for key in ("name", "default_value", "meta")}
            written["hyperparameters"][i] = kept | choices
    return ConfigurationSpace.from_serialized_dict(written, DECODERS)


def _by_default(task: Task, **options: Any) -> Method:
    return ByValue(memory=without_itself(task), **options)


WITH_MEMORY: dict[str, Callable[[Task], Method]] = {
    "AutoSampler": _by_default,
    "AutoSampler, cost": partial(_by_default, cost="seconds"),
    **{f"AutoSampler, {how} memory": partial(with_memory, how) for how in (*HONEST, *LIES)},
}
