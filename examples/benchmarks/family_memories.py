"""AutoSampler with a memory of the other data sets of a family, intact or spoilt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial

from common import spoil
from families import Task, oboe_tables
from recorded_tables import adaboost, memory_of, read_features, svm_grid

from automl_plugins import recipes
from automl_plugins.meta import MetaDataset
from automl_plugins.proposers.proposal import Proposer
from automl_plugins.replay import Method, Problem, proposing

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
#: ``described`` also uses the meta-features of the searched data set.
HONEST, LIES = ("honest", "described"), ("negated", "shuffled")


@cache
def _memory(family: str, how: str) -> MetaDataset:
    """All tables of a family, with spoilt losses if ``how`` is one of ``LIES``."""
    if how in LIES:
        return spoil(_memory(family, "honest"), how)
    if family == "svm_grid":
        return memory_of(svm_grid(), read_features("svm_grid/metafeatures.csv", "dataset"))
    if family == "oboe":
        return memory_of(oboe_tables(), read_features("oboe/dataset_sizes.csv", "dataset_id"))
    features = read_features("adaboost_openml/metafeatures.csv.gz", "task_id")
    return memory_of(adaboost(), features)


def _make(memory: MetaDataset, known: Mapping[str, float] | None, problem: Problem) -> Proposer:
    return recipes.auto(memory, meta_features=known)


def with_memory(how: str, task: Task) -> Method:
    """The sampler for a task; its memory has neither the task nor a copy of it."""

    twins = {name for group in TWINS if task.name in group for name in group}
    every = _memory(task.family, "honest" if how == "described" else how)
    known = next(dict(t.meta_features) for t in every.tasks if t.name == task.name)
    others = every.without(task.name, *twins)
    return proposing(how, partial(_make, others, known if how == "described" else None))


WITH_MEMORY: dict[str, Callable[[Task], Method]] = {
    f"AutoSampler, {how} memory": partial(with_memory, how) for how in (*HONEST, *LIES)
}
