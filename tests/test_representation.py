"""What objects show: samplers how they were constructed, results a line each."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from automl_plugins.adapters.optuna import (
    AutoSampler,
    BanditSampler,
    BOASFSampler,
    GBQRSampler,
    SuccessiveFilteringPruner,
    SurrogateSampler,
    TSTSampler,
    WeightedModelSampler,
)
from ConfigSpace import ConfigurationSpace
from optuna.samplers import RandomSampler

from automl_plugins.bandits import UCB1, ArmRecords, ArmReport, IncreasingEffort, MaxUCB
from automl_plugins.meta import Design, MetaDataset, MetaTask, Suggestion, TaskRecord, bundled
from automl_plugins.meta.factorization.recommendation import Recommendation
from automl_plugins.meta.features.extraction import MetaFeatures
from automl_plugins.meta.memories import TaskMemory
from automl_plugins.proposers.proposal import Proposal
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status
from automl_plugins.replay import RecordedTrial, Search, Table, TrialStatus
from automl_plugins.statistics import compare

N = 90
FLOATS = np.linspace(0.1, 0.9, N)
STATUS = np.repeat([0, 1, 2, 3], [60, 20, 7, 3])
LOSSES = np.where(STATUS < 2, FLOATS, np.nan)
NAMED = {f"a rather long name {i}": float(v) for i, v in enumerate(FLOATS)}
SCORES = pd.DataFrame(np.random.default_rng(0).random((N, 3)), columns=["a", "b", "c"])
SUGGESTION = Suggestion(FLOATS, {"C": 1.0}, 0.123456, "best on the nearest tasks")
COMPARED = compare(SCORES)


@pytest.mark.parametrize(
    ("thing", "expected"),
    [
        (
            History.of(np.tile(FLOATS, (N, 1)), LOSSES, status=STATUS),
            "History(90 rows: 60 complete, 20 pruned, 7 failed, 3 running; 90 parameters)",
        ),
        (History.of(np.empty((0, 2)), []), "History(0 rows; 2 parameters)"),
        (
            TaskRecord("iris", [{"x": v} for v in FLOATS], FLOATS, meta_features=NAMED),
            "TaskRecord('iris', 90 rows: 90 complete, best loss 0.1)",
        ),
        (
            TaskRecord("iris", [{}], np.array([np.nan])),
            "TaskRecord('iris', 1 row: 1 failed)",
        ),
        (
            MetaTask("iris", NAMED, {"family": "iris"}),
            "MetaTask('iris', 90 meta-features, {'family': 'iris'})",
        ),
        (bundled("knn"), "MetaDataset(52 tasks, 3328 runs, 3 parameters)"),
        (
            MetaFeatures(NAMED, NAMED, {"SkewnessMax": "no numbers"}, "classification", 1.25),
            "MetaFeatures(90 of classification, 1 unknown, 1.25 s)",
        ),
        (SUGGESTION, "Suggestion({'C': 1.0}, score 0.1235: best on the nearest tasks)"),
        (
            Design("diverse", (SUGGESTION,) * 9, ("a note",)),
            "Design('diverse', 9 configurations, 1 note; print it to read them)",
        ),
        (
            Proposal(FLOATS, "model", loss=0.5, success=0.91234, n_rows=40, shares=NAMED),
            "Proposal(90 parameters by model, loss 0.5, success 0.9123, 40 rows, 90 earlier",
        ),
        (Proposal(FLOATS, "random"), "Proposal(90 parameters by random)"),
        (COMPARED, "Comparison(3 methods; print it to read it)"),
        (COMPARED.budgets[0], "BudgetComparison(3 methods on 90 tasks)"),
        (
            Search("iris", "TPE", 3, [RecordedTrial(NAMED, TrialStatus.COMPLETE, 0.5)] * N),
            "Search('iris/TPE/3', 90 trials)",
        ),
        (
            ArmRecords.of(STATUS, LOSSES, status=STATUS),
            "ArmRecords(90 rows: 60 complete, 20 pruned, 7 failed, 3 running)",
        ),
        (
            ArmReport(("svm", "rf"), ArmRecords.of(STATUS % 2, FLOATS), list(FLOATS)),
            "ArmReport(2 arms, 90 pulls; print it)",
        ),
        (Recommendation(7, 0.25, 0.125, FLOATS), "Recommendation(pipeline 7, loss 0.25 ± 0.12,"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_a_repr_is_one_short_line(thing: Any, expected: str) -> None:
    assert repr(thing).startswith(expected)
    assert len(repr(thing)) < 120 and "\n" not in repr(thing)


def test_one_is_singular() -> None:
    space = ConfigurationSpace({"C": (0.0, 1.0)})
    record = TaskRecord("iris", [{"C": 0.5}], np.array([0.5]), space=space)
    arms = ArmReport(("svm",), ArmRecords.of([0], [0.5]), [0.5])
    compared = compare(SCORES[:1], control="a")
    shown = [
        (History.of([[0.5]], [0.5]), "History(1 row: 1 complete; 1 parameter)"),
        (MetaDataset.from_records([record]), "MetaDataset(1 task, 1 run, 1 parameter)"),
        (MetaTask("iris", {"n": 1.0}), "MetaTask('iris', 1 meta-feature)"),
        (Design("knn", (SUGGESTION,)), "Design('knn', 1 configuration; print it to read them)"),
        (
            Table("iris", space, [{"C": 0.5}], [0.5]),
            "Table('iris', 1 configuration of 1 parameter)",
        ),
        (arms, "ArmReport(1 arm, 1 pull; print it)"),
        (compared.budgets[0], "BudgetComparison(3 methods on 1 task)"),
        (Proposal(FLOATS[:1], "model", n_rows=1), "Proposal(1 parameter by model, 1 row)"),
    ]
    for thing, expected in shown:
        assert repr(thing) == expected
    with pytest.raises(ValueError, match=r"iris: 1 complete trial of the full budget\."):
        TaskMemory([record])


def test_the_numbers_of_a_status_are_counted() -> None:
    assert {int(s) for s in Status} == set(STATUS.tolist())


SHOWN = {
    "GBQRSampler(seed=1)": GBQRSampler(seed=1),
    "GBQRSampler(balance=None, seed=1)": GBQRSampler(seed=1, balance=None, alpha=0.3),
    "GBQRSampler.thesis(n_startup_trials=4, seed=1)": GBQRSampler.thesis(
        n_startup_trials=4, seed=1
    ),
    "SurrogateSampler(surrogate='extra_trees', seed=2)": SurrogateSampler(
        surrogate="extra_trees", seed=2
    ),
    "TSTSampler(memory='svm', seed=3)": TSTSampler("svm", seed=3),
    "TSTSampler.paper(memory='svm', seed=3)": TSTSampler.paper("svm", seed=3),
    "BanditSampler(arm='model', policy=UCB1(c=1.0), inner=RandomSampler)": BanditSampler(
        "model", policy=UCB1(c=1.0), inner=RandomSampler
    ),
    "BOASFSampler(n_trials=20, score='mean', seed=0)": BOASFSampler(
        n_trials=20, rounds=3, score="mean", seed=0
    ),
    "WeightedModelSampler(weights=<dict of 2>)": WeightedModelSampler(weights={"a": 1, "b": 2}),
    "MaxUCB()": MaxUCB(),
    "IncreasingEffort(min_pulls=3)": IncreasingEffort(min_pulls=3),
}


@pytest.mark.parametrize("text", SHOWN)
def test_shown_as_constructed(text: str) -> None:
    shown = SHOWN[text]
    assert repr(shown) == text
    assert repr(pickle.loads(pickle.dumps(shown))) == text
    assert repr(copy.deepcopy(shown)) == text


def test_numbers_of_numpy_are_shown_as_numbers() -> None:
    assert repr(AutoSampler(seed=np.int64(3))) == "AutoSampler(seed=3)"
    shown = repr(GBQRSampler(alpha=np.float64(0.25), seed=1))
    assert shown == "GBQRSampler(alpha=0.25, seed=1)"


class Noted(AutoSampler):  # type: ignore[misc]
    """A sampler of a user's, with an argument of its own."""

    def __init__(self, note: str, **options: Any) -> None:
        super().__init__(**options)
        self.note = note


def test_a_subclass_is_shown_with_its_own_arguments() -> None:
    assert repr(Noted("first", seed=1)) == "Noted(note='first', seed=1)"


def test_arguments_are_not_held_and_mistakes_are_those_of_the_constructor() -> None:
    long = GBQRSampler(independent_sampler=RandomSampler(), ordinal={"x": ["a", "b"]})
    assert repr(long) == "GBQRSampler(ordinal=<dict of 1>, independent_sampler=<RandomSampler>)"
    assert len(pickle.dumps(SuccessiveFilteringPruner())) < 2000
    with pytest.raises(TypeError, match="sed"):
        UCB1(sed=1)  # type: ignore[call-arg]
