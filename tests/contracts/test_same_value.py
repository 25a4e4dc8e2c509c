"""Every interface of the package agrees on which choice a recorded value is."""

from __future__ import annotations

import itertools
import math
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from automl_plugins.adapters.hyperopt import initial_trials
from automl_plugins.adapters.hyperopt.expressions import ExpressionSpace
from automl_plugins.adapters.hyperopt.space import translate
from automl_plugins.adapters.optuna import enqueue_initial_design, meta_dataset_from_studies
from automl_plugins.adapters.optuna._foresight import Foresight
from automl_plugins.adapters.optuna._union import UnionSpace
from automl_plugins.adapters.optuna.space import value_in
from automl_plugins.adapters.smac import MetaInitialDesign
from ConfigSpace import ConfigurationSpace, Float
from ConfigSpace.hyperparameters import UniformFloatHyperparameter
from hyperopt import hp
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from smac import Scenario

from automl_plugins.meta import Design, Suggestion
from automl_plugins.meta.alignment import align
from automl_plugins.meta.conversion import conform
from automl_plugins.meta.readings import read_runs, read_switch
from automl_plugins.records.task_record import TaskRecord
from automl_plugins.replay import Table
from automl_plugins.spaces.choices import categorical, usual_place
from automl_plugins.spaces.values import ABSENT, find, index_of, same, to_vector, values_of
from automl_plugins.spaces.vector_space import VectorSpace

Choices = list[Any]
Door = Callable[[Choices, Any], int | None]
DOORS: dict[str, Door] = {}


def door(function: Door) -> Door:
    DOORS[function.__name__] = function
    return function


def space_of(choices: Choices) -> ConfigurationSpace:
    space = ConfigurationSpace()
    space.add(categorical("x", choices), Float("y", (0.0, 1.0)))
    return space


def distributions_of(choices: Choices) -> dict[str, BaseDistribution]:
    return {"x": CategoricalDistribution(choices), "y": FloatDistribution(0.0, 1.0)}


def design_of(value: Any) -> Design:
    return Design("own", (Suggestion(np.empty(0), {"x": value, "y": 0.5}, 0.0, "tried"),))


@door
def vectors(choices: Choices, value: Any) -> int | None:
    space = space_of(choices)
    entry = to_vector(space, {"x": value})[space.index_of["x"]]
    return None if math.isnan(entry) else int(entry)


@door
def alignment(choices: Choices, value: Any) -> int | None:
    space = VectorSpace(space_of(choices))
    found, keep, coverage, _ = align(space, read_runs(space, [{"x": value, "y": 0.5}]), "t")
    if not keep[0] or "x" in coverage.imputed:
        return None
    return int(found[0, space.space.index_of["x"]])


@door
def conversion(choices: Choices, value: Any) -> int | None:
    """Converts a failed run, for which nothing is imputed."""
    record = TaskRecord("t", [{"x": value, "y": 0.5}], np.array([math.nan]))
    found = conform(record, space_of(choices), partial=True).configurations
    return index_of(choices, found[0]["x"]) if found and "x" in found[0] else None


@door
def foresight(choices: Choices, value: Any) -> int | None:
    """The option that a child depends on, if other options are known to be without it."""
    for other in range(len(choices)):
        tasks = [[{"x": value, "y": 0.5}, {"x": choices[other]}]]
        rules = Foresight(distributions_of(choices), tasks).rules({}, distributions_of(choices))
        if rules:
            return int(rules[0].values[0])
    return None


@door
def optuna_space(choices: Choices, value: Any) -> int | None:
    found = value_in(CategoricalDistribution(choices), value)
    return None if found is ABSENT else index_of(choices, found)


def first_equal(choices: Choices, value: Any) -> int | None:
    index = find(choices, value)
    return None if index is None else list(choices).index(choices[index])


@door
def optuna_union(choices: Choices, value: Any) -> int | None:
    union = UnionSpace(distributions_of(choices))
    reading = read_runs(union.vectors, [{"x": value, "y": 0.5}])
    found, keep, coverage, _ = align(union.vectors, reading, "t")
    if not keep[0] or "x" in coverage.imputed:
        return None
    return index_of(choices, union.decode("x", found[0, union.column["x"]]))


@door
def optuna_initial_design(choices: Choices, value: Any) -> int | None:
    study = optuna.create_study()
    try:
        found = enqueue_initial_design(
            study, design_of(value), search_space=distributions_of(choices), mode="replace"
        )
    except ValueError:
        return None
    return index_of(choices, found[0].configuration["x"])


@door
def hyperopt_labels(choices: Choices, value: Any) -> int | None:
    known = translate({"x": hp.choice("x", choices)})
    try:
        return int(known.labels({"x": value})["x"])
    except ValueError:
        return None


@door
def hyperopt_expression(choices: Choices, value: Any) -> int | None:
    try:
        return int(ExpressionSpace(space_of(choices)).labels({"x": value})["x"])
    except ValueError:
        return None


@door
def hyperopt_initial_design(choices: Choices, value: Any) -> int | None:
    space = {"x": hp.choice("x", choices), "y": hp.uniform("y", 0.0, 1.0)}
    try:
        trials = initial_trials(space, design_of(value), mode="replace")
    except ValueError:
        return None
    return int(trials.trials[0]["misc"]["vals"]["x"][0])


@door
def smac_initial_design(choices: Choices, value: Any) -> int | None:
    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(space_of(choices), n_trials=9, output_directory=Path(folder), seed=0)
        try:
            design = MetaInitialDesign(scenario, None, design=design_of(value), mode="replace")
        except ValueError:
            return None
        (first,) = design.select_configurations()
    return index_of(choices, values_of(first)["x"])


@door
def replay(choices: Choices, value: Any) -> int | None:
    rows = [{"x": choice, "y": 0.5} for choice in choices]
    table = Table("t", space_of(choices), rows, list(range(len(choices))))
    try:
        return table.find({"x": value, "y": 0.5}).row
    except ValueError:
        return None


# Doors that replace an unknown value by the default.
IMPUTE = {name for name in DOORS if name.endswith("initial_design")}
ATOMS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(-2, 2, width=16),
    st.text("ab1.", max_size=3),
    st.sampled_from(["true", "False", "none", "1", "1.0", "0.5", "1e-2", 0.01, 2**60, math.nan]),
)  # fmt: skip
LISTS = st.lists(ATOMS, min_size=2, max_size=5)


def is_exact(choices: Choices) -> bool:
    """Whether ConfigSpace and Hyperopt can tell the choices apart themselves."""
    return len({*choices}) == len(choices) and not any(c != c for c in choices)


@settings(max_examples=60, deadline=None)
@given(LISTS, st.data())
@example([1, 2], None)
@example(["scale", "auto"], None)
@example([1, True, "1"], None)
@example([3, 5, 7], None)
@example([3, None, 5], None)
def test_every_door_gives_the_same_answer(choices: Choices, data: Any) -> None:
    assume(all(index_of(choices, c) == i for i, c in enumerate(choices)))
    # Of 0 and 0.0 a table cannot have one row each.
    has_twins = any(same(a, b) for a, b in itertools.combinations(choices, 2))
    values = [1.0, True, "true", "1"] if data is None else []
    if data is not None:
        spelled = st.sampled_from([*choices, *map(str, choices)])
        values = [data.draw(st.one_of(ATOMS, spelled)) for _ in range(2)]
    exact = is_exact(choices)
    switch = space_of(choices)["x"]
    for value in values:
        # Of a switch, 0 is False in recorded runs, and in nothing else.
        if not same(read_switch(switch, [value]), [value]):
            continue
        expected = find(choices, value)
        for name, answer in DOORS.items():
            if not exact and name.startswith(("hyperopt", "smac")):
                continue
            if has_twins and name == "replay":
                continue
            # Of equal choices one is left, and [1, True, 0] becomes a switch.
            if not exact and data is not None and name == "optuna_union":
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = answer(choices, value)
            # Of equal choices Optuna stores the first, so its space has no other.
            if name == "optuna_union" and expected not in (None, first_equal(choices, value)):
                assert found is None, (name, choices, value)
            elif expected is None and name in IMPUTE:
                usual = None if name.startswith("smac") else usual_place(choices)
                assert found in (None, usual or 0), (name, choices, value)
            else:
                assert found == expected, (name, choices, value)


@pytest.mark.parametrize("choices", [[1, True], [1, "1"], [None, 1, 1.0], [2**60, 0.5]])
def test_a_memory_of_studies_keeps_choices_that_are_equal(choices: Choices) -> None:
    study = optuna.create_study(study_name="t")
    for i, choice in enumerate(choices):
        study.add_trial(
            optuna.create_trial(
                params={"x": choice},
                distributions={"x": CategoricalDistribution(choices)},
                value=i,
            )
        )
    dataset = meta_dataset_from_studies(study)
    assert dataset.vectors[:, 0].tolist() == [*map(float, range(len(choices)))]


@settings(max_examples=50, deadline=None)
@given(st.floats(-5, 5), st.floats(0.5, 5), ATOMS | st.floats(-9, 9))
def test_numbers_of_a_range_are_read_alike(low: float, width: float, value: Any) -> None:
    space = ConfigurationSpace()
    space.add(Float("x", (low, low + width)))
    hyperparameter = space["x"]
    assert isinstance(hyperparameter, UniformFloatHyperparameter)
    expected = to_vector(space, {"x": value})[0]
    whole = VectorSpace(space)
    kept, keep, coverage, _ = align(whole, read_runs(whole, [{"x": value}]), "t")
    inside = bool(keep[0]) and not coverage.clipped and not coverage.imputed
    assert inside == (not math.isnan(expected))
    table = Table("t", space, [{"x": hyperparameter.default_value}], [0.0])
    distribution = FloatDistribution(float(hyperparameter.lower), float(hyperparameter.upper))
    if inside:
        assert kept[0, 0] == expected
        assert value_in(distribution, value) == pytest.approx(hyperparameter.to_value(expected))
        table.find({"x": value})
    else:
        assert value_in(distribution, value) is ABSENT
        with pytest.raises(ValueError, match="x"):
            table.find({"x": value})
