"""Names with the prefix of a step, and the other names that libraries have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ConfigSpace import (
    AndConjunction,
    ConfigurationSpace,
    EqualsCondition,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    ForbiddenGreaterThanRelation,
    ForbiddenInClause,
    GreaterThanCondition,
)

from automl_plugins.meta import MetaDataset, bundled
from automl_plugins.meta.names import rename_all, spelling
from automl_plugins.meta.recognition import recognise
from automl_plugins.records.task_record import TaskRecord
from automl_plugins.spaces.vector_space import VectorSpace

ANY = (0.01, 1.0)
# The names of Optuna's examples for the native interfaces.
NATIVE_LIGHTGBM = {
    "lambda_l1": (1e-8, 10.0),
    "lambda_l2": (1e-8, 10.0),
    "num_leaves": (2, 256),
    "feature_fraction": (0.4, 1.0),
    "bagging_fraction": (0.4, 1.0),
    "bagging_freq": (1, 7),
    "min_child_samples": (5, 100),
}
NATIVE_XGBOOST = {
    "booster": ["gbtree", "gblinear", "dart"],
    "lambda": (1e-8, 1.0),
    "alpha": (1e-8, 1.0),
    "subsample": (0.2, 1.0),
    "colsample_bytree": (0.2, 1.0),
    "max_depth": (3, 9),
    "min_child_weight": (2, 10),
    "eta": (1e-8, 1.0),
    "gamma": (1e-8, 1.0),
}


@pytest.mark.parametrize(
    ("names", "known", "expected"),
    [
        ("x y", "x y", ""),
        ("s__x y", "x y", ""),  # ``y`` is known as it is
        ("s__x s__z y", "x z", "x:s__x z:s__z"),
        ("s__x", "x w", "x:s__x w:s__w"),
        ("s__x t__x", "x", ""),  # either could be meant
        ("x", "s__x s__w t__v", "s__x:x s__w:w"),  # the reverse
        ("lambda_l2 num_leaves", "reg_lambda num_leaves", "reg_lambda:lambda_l2"),
        ("reg_lambda num_leaves", "lambda_l2 num_leaves", "lambda_l2:reg_lambda"),
        ("alpha", "reg_alpha max_depth", ""),  # alone it may be of another learner
        ("alpha eta", "reg_alpha learning_rate", "reg_alpha:alpha learning_rate:eta"),
        ("alpha reg_alpha eta", "reg_alpha learning_rate", "learning_rate:eta"),
        ("reg_alpha eta", "reg_alpha alpha eta", ""),  # two hyperparameters
        ("lambda eta", "reg_lambda lambda_l2 eta", "reg_lambda:lambda"),  # the first one
        ("s__eta s__gamma", "learning_rate gamma", "learning_rate:s__eta gamma:s__gamma"),
        ("eta gamma", "s__learning_rate s__gamma", "s__learning_rate:eta s__gamma:gamma"),
    ],
)
def test_spelling(names: str, known: str, expected: str) -> None:
    pairs = dict(pair.split(":") for pair in expected.split())
    assert spelling(names.split(), known.split()) == pairs


def test_a_space_keeps_all_but_the_names() -> None:
    def made(a: str, b: str, c: str) -> ConfigurationSpace:
        space = ConfigurationSpace("a", space={a: (0.1, 1.0), b: ["a", "name"], c: (1, 4)})
        space[a].meta = {"name": "a"}
        larger, equal = GreaterThanCondition(space[c], space[a], 0.3), EqualsCondition
        space.add(AndConjunction(larger, equal(space[c], space[b], "a")))
        not_b, not_c = ForbiddenEqualsClause(space[b], "a"), ForbiddenInClause(space[c], [3, 4])
        space.add(ForbiddenAndConjunction(not_b, not_c))
        space.add(ForbiddenGreaterThanRelation(space[a], space[c]))
        return space

    assert rename_all(made("a", "b", "c"), {"a": "b", "b": "s__a", "c": "c"}) == made(
        "b", "s__a", "c"
    )


@pytest.mark.parametrize(
    ("learner", "space"), [("lightgbm", NATIVE_LIGHTGBM), ("xgboost", NATIVE_XGBOOST)]
)
def test_native_names_are_those_of_the_bundled_memories(learner: str, space: Any) -> None:
    native = ConfigurationSpace(space)
    found, _, told, _ = recognise(VectorSpace(native))
    assert found == (learner, f"{learner}_regression"), told
    dataset = bundled(learner).aligned(native)
    shared = set(dataset.coverage[0].shared)
    assert set(space) - shared == {"lightgbm": {"bagging_freq"}, "xgboost": {"booster"}}[learner]


def test_what_the_space_does_not_have_keeps_the_name_that_was_recorded() -> None:
    space = ConfigurationSpace({"clf__C": ANY, "clf__gamma": ANY})
    runs = [{"C": 0.1, "gamma": 0.2, "kernel": "rbf"}]
    for known in (None, ConfigurationSpace({"C": ANY, "gamma": ANY, "kernel": ["rbf", "poly"]})):
        record = TaskRecord("t", runs, np.array([1.0]), space=known)
        (coverage,) = MetaDataset.from_records([record], space).coverage
        assert (coverage.shared, coverage.ignored) == (("clf__C", "clf__gamma"), ("kernel",))


def test_runs_have_the_values_of_either_name() -> None:
    space = ConfigurationSpace({"eta": ANY, "subsample": ANY})
    runs = [{"learning_rate": 0.1, "subsample": 0.2}, {"learning_rate": 0.5, "subsample": 0.4}]
    records = [
        TaskRecord("either", runs, np.array([1.0, 2.0])),
        TaskRecord("other", [{"eta": 0.5, "subsample": 0.4}], np.array([3.0])),
    ]
    dataset = MetaDataset.from_records(records, space)
    values = ANY[0] + dataset.vectors * (ANY[1] - ANY[0])
    np.testing.assert_allclose(values, [[0.1, 0.2], [0.5, 0.4], [0.5, 0.4]])
