"""What warm starts of all frameworks share: modes, memories, fitted designs, filling points."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace, ForbiddenEqualsClause
from hypothesis import given
from hypothesis import strategies as st
from known_runs import model_space, records

from automl_plugins.meta import Design, MetaDataset, Suggestion, TaskRecord
from automl_plugins.meta.sources import read_memory, take_conditions
from automl_plugins.meta.store import MetaStore
from automl_plugins.meta.tasks import describe_task
from automl_plugins.meta.warm_start import (
    MODES,
    advise,
    fit_design,
    n_remaining,
    n_suggestions,
)
from automl_plugins.proposers.design import space_filling
from automl_plugins.spaces.ranges import float_range
from automl_plugins.spaces.vector_space import VectorSpace

MEMORY = MetaDataset.from_records(records())
TASK = {"NumberOfInstances": 150.0}
SPACE = model_space()
OTHER = ConfigurationSpace({"alpha": (0.0, 1.0)})

# --- modes ----------------------------------------------------------------------------------


@given(st.sampled_from(MODES), st.integers(0, 100), st.none() | st.integers(1, 100))
def test_modes_keep_their_promise_for_any_start_up(mode: str, n: int, k: int | None) -> None:
    suggested = n_suggestions(mode, n, k)
    rest = n_remaining(mode, suggested, n)
    assert suggested >= 1 and rest >= 0
    total = suggested + rest
    assert total == {"add": n + suggested, "part": max(n, suggested), "replace": suggested}[mode]


@pytest.mark.parametrize(
    ("mode", "k", "error", "told"),
    [
        ("only", None, ValueError, r"'add'.*'part'.*'replace'.*got 'only'"),
        ("part", 0, ValueError, "an integer >= 1, got 0"),
        ("part", 2.5, TypeError, r"an integer >= 1, got 2\.5"),
        ("part", True, TypeError, "an integer >= 1, got True"),
    ],
)
def test_bad_modes_and_numbers(mode: str, k: Any, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        n_suggestions(mode, 10, k)


# --- memories -------------------------------------------------------------------------------


def test_all_forms_of_a_memory_advise_the_same(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    expected = advise(SPACE, MEMORY, k=3, task=TASK).design
    with MetaStore(path) as store:
        for record in records():
            store.add(record)
        for form in (store, path, str(path), f"sqlite:///{path}", records()):
            found = advise(SPACE, form, k=3, task=TASK).design
            assert found.configurations == expected.configurations
            np.testing.assert_array_equal(found.scores, expected.scores)


def test_bundled_memory_by_name() -> None:
    known = read_memory("knn")
    assert isinstance(known, MetaDataset) and "n_neighbors" in known.space
    assert len(advise(known.space, "knn", k=4).design) == 4


@pytest.mark.parametrize(
    ("memory", "options", "error", "told"),
    [
        *(
            (m, {}, TypeError, "must be a MetaDataset, a MetaStore")
            for m in (None, 3, [1], {"a": 1})
        ),
        (MEMORY, {"space": OTHER}, ValueError, r"share no hyperparameter.*C, depth, model.*alpha"),
        (records(), {"space": OTHER}, ValueError, "share no hyperparameter"),
        ([], {}, ValueError, "no runs"),
        ("auto", {}, ValueError, "is for a search, .* Here the learner must be named: lightgbm"),
        (
            MEMORY,
            {"space": ConfigurationSpace({"model": ["knn", "mlp"]})},
            ValueError,
            "No run of the memory lies in the search space: t0",
        ),
        (
            MEMORY,
            {"exclude": "t2"},
            TypeError,
            "exclude must be names of tasks, got the text 't2'",
        ),
        (MEMORY, {"design": "best"}, ValueError, r"one of 'diverse', .*'bad_start', got 'best'"),
        (MEMORY, {"design": 3}, TypeError, "or a Design, got 3"),
        (MEMORY, {"design": lambda *_: []}, TypeError, "must return a Design"),
    ],
)
def test_what_is_refused(
    memory: Any, options: dict[str, Any], error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        advise(memory=memory, k=1, **{"space": SPACE} | options)


@pytest.mark.parametrize("memory", [MEMORY, records()], ids=["data set", "records"])
def test_what_becomes_of_the_runs_is_told(memory: Any) -> None:
    space = ConfigurationSpace({"model": ["svm", "mlp"], "C": (0.001, 1000.0)})
    design = advise(space, memory, k=2, task=TASK).design
    assert design.notes == ("40 of 80 recorded runs are left out because of model in 40.",)
    space = ConfigurationSpace({"model": ["svm", "forest"], "C": (0.1, 1000.0), "new": (0, 4)})
    assert advise(space, memory, k=2, task=TASK).design.notes == (
        "Hyperparameters of the runs that this search does not have are ignored: depth in 40 of 80"
        " recorded runs. The search has new, which no run has. If two of these are one by"
        " different names, rename it in the runs or in the search; else nothing need be done.",
        "C is outside the range of this search in 8 of 80 recorded runs: there the nearest value"
        " inside counts, and nothing need be done.",
        "new is missing in 80 of 80 recorded runs and is imputed.",
        "C is missing in 40 of 80 recorded runs and is imputed.",
    )


@pytest.mark.parametrize("memory", [MEMORY, records()], ids=["data set", "records"])
def test_tasks_are_left_out(memory: Any) -> None:
    task, exclude = {"NumberOfInstances": 300.0}, ["t2", "other"]
    design = advise(SPACE, memory, k=8, task=task, design="knn", exclude=exclude).design
    assert not any("t2" in suggestion.reason for suggestion in design)
    assert not any("exclude" in note for note in design.notes)  # its runs may come later
    names = iter(exclude)
    again = advise(SPACE, memory, k=8, task=task, design="knn", exclude=names).design  # type: ignore[arg-type]
    assert str(again) == str(design)
    design = advise(SPACE, memory, k=3, task=task, exclude=["tt2"]).design
    assert "exclude: the memory has no task 'tt2'. Did you mean 't2'?" in design.notes


def test_few_shared_meta_features_are_told() -> None:
    described = [
        r.described(meta_features={**r.meta_features, "a": 1.0, "b": float(i), "c": 2.0})
        for i, r in enumerate(records())
    ]
    design = advise(SPACE, described, k=2, task={"NumberOfInstances": 300.0}).design
    assert "1 of the memory's 4 meta-features" in design.notes[0]


# --- the task -------------------------------------------------------------------------------


def test_meta_features_decide() -> None:
    for n, model in ((120.0, "svm"), (790.0, "forest")):
        design = advise(SPACE, MEMORY, k=1, task={"NumberOfInstances": n}, design="knn").design
        assert design.configurations[0]["model"] == model
        assert not design.notes


def test_without_a_description_all_tasks_count_alike() -> None:
    design = advise(SPACE, MEMORY, k=2).design
    assert any("all of them count alike" in note for note in design.notes)
    undescribed = MetaDataset.from_records(records(described=False))
    X, y = np.zeros((30, 1)), np.arange(30) % 2
    # Nothing is computed that cannot be used.
    assert describe_task(X=X, y=y, wanted=False) is None
    assert any("alike" in note for note in advise(SPACE, undescribed, k=2, X=X, y=y).design.notes)


# --- the design -----------------------------------------------------------------------------


def test_fewer_than_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "automl_plugins.meta.warm_start"):
        design = advise(SPACE, MEMORY, k=50).design
    assert len(design) == 10
    assert "50 suggestions were asked for, there are 10." in design.notes
    assert "expected regret" in caplog.text and "50 suggestions" in caplog.text


def ready(*configurations: dict[str, Any]) -> Design:
    return Design(
        "mine",
        tuple(Suggestion(np.zeros(0), c, 0.5 + i, f"r{i}") for i, c in enumerate(configurations)),
    )


def test_a_ready_design_is_fitted_to_the_space() -> None:
    given = ready(
        {"model": "svm", "C": 1e6},
        {"model": "svm", "C": 1e5},  # the same, once it is clipped
        {"model": "mlp"},
        {"model": "forest", "depth": 3, "C": 1.0},
    )
    design = advise(SPACE, None, k=10, design=given).design
    assert design.configurations == [
        {"model": "svm", "C": pytest.approx(1000.0)},
        {"model": "forest", "depth": 3},
    ]
    assert [s.reason for s in design] == ["r0", "r3"]
    assert design.scores.tolist() == [0.5, 3.5]
    assert "3 of 4 runs, dropped for model in 1, clipped C in 2" in design.notes[0]
    space = VectorSpace(SPACE)
    for suggestion in design:
        np.testing.assert_array_equal(
            space.canonical(space.activate(suggestion.vector[None]))[0], suggestion.vector
        )


@pytest.mark.parametrize("configurations", [[{"alpha": 1.0}], []])
def test_a_ready_design_for_something_else(configurations: list[dict[str, Any]]) -> None:
    with pytest.raises(ValueError, match=r"nothing for this search space.*model"):
        fit_design(ready(*configurations), SPACE)


# --- conditions and filling points ----------------------------------------------------------


BARE = [TaskRecord("t", [{"C": 1.0, "model": "svm"}], np.array([0.0]))]


@pytest.mark.parametrize(
    ("known", "space", "conditions"),
    [
        (
            records(),
            {"model": ["svm", "forest"], "C": (0.1, 1.0), "other": (0, 1)},
            ["C | model in {'svm'}"],
        ),
        (records(), {"model": ["forest", "mlp"], "C": (0.1, 1.0)}, []),  # no option svm
        (MEMORY, {"C": (0.1, 1.0)}, []),
        (BARE, {"model": ["svm", "forest"], "C": (0.1, 1.0)}, []),  # recorded without a space
    ],
)
def test_conditions_of_the_memory(
    known: Any, space: dict[str, Any], conditions: list[str]
) -> None:
    found = take_conditions(ConfigurationSpace(space), known)
    assert [str(c) for c in found.conditions] == conditions


def test_conditions_of_the_memory_beside_numbers_that_configspace_cannot_round() -> None:
    space = ConfigurationSpace({"model": ["svm", "forest"], "C": (0.1, 1.0)})
    with np.errstate(over="ignore"):
        space.add(float_range("huge", 1e300, 1e308))
    assert len(take_conditions(space, records()).conditions) == 1


def test_filling_points_are_new_valid_and_seeded() -> None:
    space = VectorSpace(model_space())
    tried = space.sample(3, np.random.default_rng(0))
    points = space_filling(space, tried, 12, np.random.default_rng(1))
    assert points.shape == (12, space.d)
    np.testing.assert_array_equal(space.canonical(space.activate(points)), points)
    assert len(np.unique(space.keys(np.vstack([tried, points])))) == 15
    np.testing.assert_array_equal(
        points, space_filling(space, tried, 12, np.random.default_rng(1))
    )
    models = points[:, space.names.index("model")]
    assert 4 <= models.sum() <= 8  # both branches have their share


def test_filling_points_end_with_the_space() -> None:
    space = ConfigurationSpace({"a": ["x", "y"], "b": ["u", "v"]})
    space.add(ForbiddenEqualsClause(space["b"], "v"))
    vectors = VectorSpace(space)
    points = space_filling(vectors, np.empty((0, 2)), 9, np.random.default_rng(0))
    assert len(points) == 2
