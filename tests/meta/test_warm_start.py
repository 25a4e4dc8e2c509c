"""What warm starts of all frameworks share: modes, memories, fitted designs, filling points."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ConfigSpace import (
    ConfigurationSpace,
    ForbiddenEqualsClause,
)
from hypothesis import given
from hypothesis import strategies as st
from known_runs import model_space, records

from automl_plugins.meta import Design, MetaDataset, Suggestion, TaskRecord
from automl_plugins.meta.memories import open_memory, read_memory, take_conditions
from automl_plugins.meta.store import MetaStore
from automl_plugins.meta.tasks import MetaTask, describe_task
from automl_plugins.meta.warm_start import (
    MODES,
    advise,
    fit_design,
    n_remaining,
    n_suggestions,
)
from automl_plugins.proposers.design import space_filling
from automl_plugins.spaces.vector_space import VectorSpace


@pytest.fixture
def memory() -> MetaDataset:
    return MetaDataset.from_records(records())


# --- modes ----------------------------------------------------------------------------------


@given(st.sampled_from(MODES), st.integers(0, 100), st.none() | st.integers(1, 100))
def test_modes_keep_their_promise_for_any_start_up(mode: str, n: int, k: int | None) -> None:
    suggested = n_suggestions(mode, n, k)
    rest = n_remaining(mode, suggested, n)
    assert suggested >= 1 and rest >= 0
    total = suggested + rest
    assert total == {"add": n + suggested, "part": max(n, suggested), "replace": suggested}[mode]


def test_bad_modes_and_numbers() -> None:
    with pytest.raises(ValueError, match=r"'add'.*'part'.*'replace'.*got 'only'"):
        n_suggestions("only", 10)
    with pytest.raises(ValueError, match="at least 1, got 0"):
        n_suggestions("part", 10, 0)
    with pytest.raises(TypeError, match=r"whole number, got 2.5"):
        n_suggestions("part", 10, 2.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="whole number, got True"):
        n_suggestions("part", 10, True)


# --- memories -------------------------------------------------------------------------------


def test_all_forms_of_a_memory_advise_the_same(tmp_path: Path, memory: MetaDataset) -> None:
    path = tmp_path / "memory.db"
    with MetaStore(path) as store:
        for record in records():
            store.add(record)
        from_store = advise(model_space(), store, k=3, task={"NumberOfInstances": 150.0})
    task = {"NumberOfInstances": 150.0}
    expected = advise(model_space(), memory, k=3, task=task)
    assert from_store.configurations == expected.configurations
    for form in (path, str(path), f"sqlite:///{path}", records()):
        found = advise(model_space(), form, k=3, task=task)
        assert found.configurations == expected.configurations
        np.testing.assert_array_equal(found.scores, expected.scores)


def test_bundled_memory_by_name() -> None:
    known = read_memory("knn")
    assert isinstance(known, MetaDataset) and "n_neighbors" in known.space
    assert len(advise(known.space, "knn", k=4)) == 4


@pytest.mark.parametrize("thing", [None, 3, [1, 2], {"a": 1}])
def test_what_is_no_memory(thing: Any) -> None:
    with pytest.raises(TypeError, match="memory must be a MetaDataset, a MetaStore"):
        advise(model_space(), thing, k=1)


def test_nothing_shared_and_nothing_recorded(memory: MetaDataset, tmp_path: Path) -> None:
    other = ConfigurationSpace({"alpha": (0.0, 1.0)})
    with pytest.raises(ValueError, match=r"share no hyperparameter.*C, depth, model.*alpha"):
        advise(other, memory, k=1)
    with pytest.raises(ValueError, match="share no hyperparameter"):
        advise(other, records(), k=1)
    with MetaStore(tmp_path / "empty.db") as store, pytest.raises(ValueError, match="no runs"):
        advise(model_space(), store, k=1)
    foreign = ConfigurationSpace({"model": ["knn", "mlp"]})
    with pytest.raises(ValueError, match="No run of the memory lies in the search space: t0"):
        open_memory(memory, foreign)


def test_runs_that_the_space_leaves_out_are_told(memory: MetaDataset) -> None:
    space = ConfigurationSpace({"model": ["svm", "mlp"], "C": (0.001, 1000.0)})
    for known in (memory, records()):
        design = advise(space, known, k=2, task={"NumberOfInstances": 150.0})
        assert design.notes == ("40 of 80 runs are left out because of model in 40.",)


def test_what_is_moved_and_imputed_is_told(memory: MetaDataset) -> None:
    space = ConfigurationSpace({"model": ["svm", "forest"], "C": (0.1, 1000.0), "new": (0, 4)})
    design = advise(space, memory, k=2, task={"NumberOfInstances": 150.0})
    assert design.notes == (
        "C was moved into its range in 8 of 80 runs.",
        "new is not known of 80 of 80 runs, its default is taken.",
        "C is not known of 40 of 80 runs, its default is taken.",
    )


def test_tasks_are_left_out(memory: MetaDataset) -> None:
    for known in (memory, records()):
        design = advise(
            model_space(),
            known,
            k=8,
            task={"NumberOfInstances": 300.0},
            design="knn",
            exclude=["t2", "other"],
        )
        assert not any("t2" in suggestion.reason for suggestion in design)
    with pytest.raises(TypeError, match=r"exclude must be names of tasks, got the text 't2'"):
        advise(model_space(), memory, k=1, exclude="t2")


def test_few_shared_meta_features_are_told() -> None:
    described = [
        r.described(meta_features={**r.meta_features, "a": 1.0, "b": float(i), "c": 2.0})
        for i, r in enumerate(records())
    ]
    design = advise(model_space(), described, k=2, task={"NumberOfInstances": 300.0})
    assert "1 of the memory's 4 meta-features" in design.notes[0]


# --- the task -------------------------------------------------------------------------------


def test_meta_features_decide(memory: MetaDataset) -> None:
    for n, model in ((120.0, "svm"), (790.0, "forest")):
        design = advise(model_space(), memory, k=1, task={"NumberOfInstances": n}, design="knn")
        assert design.configurations[0]["model"] == model
        assert not design.notes


def test_without_a_description_all_tasks_count_alike(memory: MetaDataset) -> None:
    design = advise(model_space(), memory, k=2)
    assert any("all of them count alike" in note for note in design.notes)
    undescribed = MetaDataset.from_records(records(described=False))
    X, y = np.zeros((30, 1)), np.arange(30) % 2
    assert describe_task(X=X, y=y, wanted=False) == MetaTask(
        ""
    )  # nothing is computed that cannot be used
    assert any("alike" in note for note in advise(model_space(), undescribed, k=2, X=X, y=y).notes)


# --- the design -----------------------------------------------------------------------------


def test_what_is_no_design(memory: MetaDataset) -> None:
    with pytest.raises(ValueError, match=r"one of diverse, .*bad_start, got 'best'"):
        advise(model_space(), memory, k=1, design="best")
    with pytest.raises(TypeError, match="or a Design, got 3"):
        advise(model_space(), memory, k=1, design=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must return a Design"):
        advise(model_space(), memory, k=1, design=lambda *_: [])  # type: ignore[arg-type]


def test_fewer_than_asked_for(memory: MetaDataset, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "automl_plugins.meta.warm_start"):
        design = advise(model_space(), memory, k=50)
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
    design = advise(model_space(), None, k=10, design=given)
    assert design.configurations == [
        {"model": "svm", "C": pytest.approx(1000.0)},
        {"model": "forest", "depth": 3},
    ]
    assert [s.reason for s in design] == ["r0", "r3"]
    assert design.scores.tolist() == [0.5, 3.5]
    assert "3 of 4 runs, dropped for model in 1, clipped C in 2" in design.notes[0]
    space = VectorSpace(model_space())
    for suggestion in design:
        np.testing.assert_array_equal(
            space.canonical(space.activate(suggestion.vector[None]))[0], suggestion.vector
        )


def test_a_ready_design_for_something_else() -> None:
    with pytest.raises(ValueError, match=r"nothing for this search space.*model"):
        fit_design(ready({"alpha": 1.0}), model_space())
    with pytest.raises(ValueError, match="nothing for this search space"):
        fit_design(ready(), model_space())


# --- conditions and filling points ----------------------------------------------------------


def test_conditions_of_the_memory() -> None:
    flat = ConfigurationSpace({"model": ["svm", "forest"], "C": (0.1, 1.0), "other": (0, 1)})
    space = take_conditions(flat, records())
    assert [str(c) for c in space.conditions] == ["C | model in {'svm'}"]
    # svm is no option here, and a record without a space tells no conditions
    few = ConfigurationSpace({"model": ["forest", "mlp"], "C": (0.1, 1.0)})
    assert not take_conditions(few, records()).conditions
    alone = ConfigurationSpace({"C": (0.1, 1.0)})
    assert not take_conditions(alone, MetaDataset.from_records(records())).conditions
    bare = [TaskRecord("t", [{"C": 1.0, "model": "svm"}], np.array([0.0]))]
    flat = ConfigurationSpace({"model": ["svm", "forest"], "C": (0.1, 1.0)})
    assert not take_conditions(flat, bare).conditions


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
