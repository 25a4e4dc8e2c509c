"""What a search sees of a memory, and the memories that come with the package."""

from __future__ import annotations

import copy
import json
import logging
import lzma
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ConfigSpace import Categorical, Configuration, ConfigurationSpace, EqualsCondition, Float

import automl_plugins
from automl_plugins.meta import (
    MemoryMismatch,
    MetaDataset,
    MetaStore,
    TaskRecord,
    bundled,
    sources,
)
from automl_plugins.meta.bundled_memories import HYPERPARAMETERS, LEARNERS, METRICS, REGRESSIONS
from automl_plugins.meta.memories import AlignedMemory, TaskMemory
from automl_plugins.meta.recognition import RecognisedMemory, recognise, task_memory
from automl_plugins.meta.sources import names_of, open_memory, read_memory
from automl_plugins.meta.warm_start import advise
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status
from automl_plugins.spaces.vector_space import VectorSpace


def a_space(upper: float = 1.0) -> ConfigurationSpace:
    return ConfigurationSpace({"x": (0.0, upper)})


def records(*names: str) -> list[TaskRecord]:
    return [
        TaskRecord(name, [{"x": 0.25}, {"x": 0.5}], np.array([0.1, float(i)]), space=a_space())
        for i, name in enumerate(names)
    ]


ABC = MetaDataset.from_records(records("a", "b", "c"), a_space())
SPACE = VectorSpace(a_space())


def names(memory: AlignedMemory) -> tuple[str, ...]:
    return tuple(task.name for task in memory.on(SPACE).tasks)


def test_the_task_and_its_variants_are_left_out_which_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, logger="automl_plugins.meta"):
        memory = TaskMemory(ABC, task="b")
        assert names(memory) == ("a", "c") and memory.names == ("a", "b", "c")
        assert names(memory.without({"c", "never seen"})) == ("a",)
        assert names(TaskMemory(ABC, task="new")) == ("a", "b", "c")
    assert [r.message for r in caplog.records] == [
        "Task 'b' is in the memory; its own runs there are left out."
    ]


def test_a_misspelt_task_is_answered_with_the_one_of_a_like_name(
    caplog: pytest.LogCaptureFixture,
) -> None:
    known = records("iris", "wine", "once")
    known.append(replace(known[0], name="one", losses=np.array([0.1, np.nan])))
    with caplog.at_level(logging.INFO, logger="automl_plugins.meta"):
        for task in ("iris", "churn", None, "Iris"):
            TaskMemory(known, task=task)
        TaskMemory(known, task="one")  # which is there, though nothing can be learnt from it
    assert [r.message for r in caplog.records if r.levelno == logging.INFO] == [
        "Task 'iris' is in the memory; its own runs there are left out.",
        "task: the memory has no task 'Iris'. Did you mean 'iris'?",
    ]


def test_it_is_aligned_once_for_each_space() -> None:
    memory = TaskMemory(records("a", "b"))
    first = memory.on(SPACE)
    np.testing.assert_allclose(first.vectors[:2, 0], [0.25, 0.5])
    assert memory.on(SPACE) is first
    wide = memory.on(VectorSpace(a_space(upper=2.0)))
    np.testing.assert_allclose(wide.vectors[:2, 0], [0.125, 0.25])
    again = pickle.loads(pickle.dumps(memory))
    np.testing.assert_array_equal(again.on(SPACE).vectors, first.vectors)


def test_that_a_memory_is_outside_a_range_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    space = ConfigurationSpace({"x": (2.0, 4.0)})
    with caplog.at_level(logging.WARNING, logger="automl_plugins.meta"):
        TaskMemory(records("a", "b", "c")).on(VectorSpace(space))
        TaskMemory(records("a", "b", "c")).on(SPACE)
        # Whoever has not named it cannot have made a mistake.
        TaskMemory(records("a", "b", "c"), chosen=False).on(VectorSpace(space))
    assert [r.message for r in caplog.records] == [
        "x was recorded from 0.25 to 0.5, and 6 of these 6 values lie outside the range of this"
        " search, 2 to 4: little is known of it there. The nearest end counts for 3 of"
        " them, the default for the others. If this is not meant, widen the range, or use a"
        " memory of it."
    ]
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="automl_plugins.meta"):
        advise(space, records("a", "b", "c"), k=2)
    assert [r.levelname for r in caplog.records] == ["WARNING"]


def test_a_note_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    memory = TaskMemory(records("a", "b"))
    with caplog.at_level(logging.INFO, logger="automl_plugins.meta"):
        for extra in ("y", "z", "y"):  # a space of another form each time
            wider = a_space(upper=0.3)
            wider.add(Float(extra, (0.0, 1.0)))
            memory.without({"a"}).on(VectorSpace(wider))
    # A move of x, and a lack of y and of z.
    assert len(caplog.messages) == len(set(caplog.messages)) == 3


def test_a_store_is_remembered_and_its_path_is_read(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with MetaStore(path) as store:
        for record in records("a", "b"):
            store.add(record)
        memory = TaskMemory(store, task="a")
        assert names(memory) == ("b",)
        store.add(records("a", "b", "later")[2])
        assert names(memory) == ("b",)  # one search, one memory
    by_path = TaskMemory(path)
    assert names(by_path) == ("a", "b", "later")


def test_a_home_folder_may_be_written_as_a_tilde(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    folder, asked = tmp_path / "smac3_output", []

    class Owner:
        def read_tasks(self, path: str) -> list[TaskRecord]:
            asked.append(path)
            return records("a")

    folder.mkdir()
    monkeypatch.setattr(sources, "owner_of", lambda path: Owner())
    assert [task.name for task in read_memory("~/smac3_output")] == ["a"]  # type: ignore[union-attr]
    assert asked == [str(folder)]


def test_a_folder_without_runs_is_no_memory(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match="is a folder in which no runs are recorded: name a store"
    ):
        read_memory(tmp_path)


@pytest.mark.parametrize("kind", [MetaStore, MetaDataset])
def test_a_class_is_no_memory(kind: Any) -> None:
    with pytest.raises(
        TypeError, match=f"memory must be a MetaDataset, .*, got .*{kind.__name__}"
    ):
        read_memory(kind)


@pytest.mark.parametrize("exclude", [["a", "b"], ("a", "b", "c")])
def test_an_exclusion_of_everything_is_named(exclude: Any) -> None:
    for memory in (records("a", "b"), MetaDataset.from_records(records("a", "b"))):
        with pytest.raises(ValueError, match="exclude leaves no task: the memory has a, b only"):
            open_memory(memory, a_space(), exclude=exclude)


@pytest.mark.parametrize("task", [None, "a"])
def test_what_aligns_itself_is_taken_as_it_is(task: str | None) -> None:
    class Own(AlignedMemory):
        def on(self, space: VectorSpace) -> MetaDataset:
            return ABC

    own = Own()
    assert task_memory(own, task=task) is own
    assert isinstance(task_memory(ABC, task=task), TaskMemory)


@pytest.mark.parametrize(
    ("memory", "options", "error", "message"),
    [
        (records("a"), {"task": "a"}, ValueError, "no task but a, .*nothing to learn"),
        ([], {}, ValueError, "no sources to learn from"),
        (3, {}, TypeError, "memory must be"),
        ("no such memory", {}, ValueError, "no memory"),
        ([records("a")[0].described(meta_features={"n": "10"})], {}, ValueError, "'a': .* n='10'"),  # type: ignore[dict-item]
    ],
)
def test_what_is_refused_and_why(
    memory: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        TaskMemory(memory, **options)


# --- those of the package ---------------------------------------------------------------------

DATA = Path(automl_plugins.__file__).parent / "data"


@pytest.mark.parametrize("learner", LEARNERS)
def test_enough_was_measured_and_described(learner: str) -> None:
    data = bundled(learner)
    assert len(data.tasks) >= (20 if learner in REGRESSIONS else 50)
    distinct, which = data.distinct
    # The same configurations on every task, but for the library's default that is a task's own.
    shared = np.bincount(which, minlength=len(distinct)) >= len(data.tasks)
    assert shared.sum() >= (16 if learner == "catboost" else 32)
    for rows in data.rows:
        assert set(np.flatnonzero(shared)) <= set(which[rows])
        assert rows.stop - rows.start <= shared.sum() + 1
    complete = data.status == Status.COMPLETE
    assert complete.mean() > 0.95
    assert (data.losses[complete] >= 0).all()
    assert learner in REGRESSIONS or (data.losses[complete] <= 1).all()
    assert np.isnan(data.seconds).mean() < 0.05 and not (data.seconds <= 0).any()
    for vector in distinct:
        Configuration(data.space, vector=vector.copy()).check_valid_configuration()
    known = data.meta_feature_names()
    assert "NumberOfInstances" in known
    assert ("NumberOfClasses" in known) == (learner not in REGRESSIONS)
    assert np.isfinite(data.meta_features(known)).mean() > 0.9
    assert len({task.tags["family"] for task in data.tasks}) >= (
        20 if learner in REGRESSIONS else 40
    )
    assert all(None not in task.size for task in data.tasks)
    # The text of the file: what reads it would make zeros unknown.
    document = json.loads(lzma.decompress((DATA / f"{learner}.json.xz").read_bytes()))
    seconds = [s for record in document["records"] for s in record["seconds"]]
    assert len(seconds) >= len(data)
    assert all(s is None or s > 0.0 for s in seconds)


def test_metrics_share_everything_but_the_losses() -> None:
    a, *others = (bundled("knn", metric=metric) for metric in METRICS)
    for other in others:
        np.testing.assert_array_equal(a.vectors, other.vectors)
        np.testing.assert_array_equal(a.seconds, other.seconds)
        assert (a.losses != other.losses).any()


def test_they_are_small() -> None:
    files = sorted(DATA.glob("*.json.xz"))
    assert {file.name.removesuffix(".json.xz") for file in files} == set(LEARNERS)
    assert sum(file.stat().st_size for file in files) < 3e6


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"learner": "resnet"}, "learner must be one of 'lightgbm', 'random_forest'"),
        ({"learner": "svm", "metric": "rmse"}, "metric must be one of 'error', 'balanced_error'"),
    ],
)
def test_unknown_names(options: dict[str, str], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        bundled(**options)


# --- by the search space ----------------------------------------------------------------------

ANY, WORDS, BOTH = (0.01, 2.0), ["a", "b"], [True, False]
# What names do not tell apart
FOREST, LIGHTGBM, XGBOOST = (
    (learner, f"{learner}_regression") for learner in ("random_forest", "lightgbm", "xgboost")
)
COMMON_FOREST: dict[str, Any] = {
    "n_estimators": (50, 500),
    "max_depth": (2, 32),
    "min_samples_split": (2, 20),
    "min_samples_leaf": (1, 20),
    "max_features": ["sqrt", "log2"],
}


@pytest.mark.parametrize(
    ("space", "learner"),
    [
        ({"num_leaves": (4, 64), "learning_rate": ANY}, LIGHTGBM),
        # as many others as its own
        ({"num_leaves": (4, 64), "learning_rate": ANY, "max_bin": (2, 9), "x": ANY}, LIGHTGBM),
        ({"num_leaves": (4, 64), "a": ANY, "learning_rate": ANY, "b": ANY, "c": ANY}, None),
        # what cannot vary does not count
        (
            {"C": ANY, "gamma": ANY, "kernel": ["rbf"], "a": "x", "b": [1], "c": ["y"]},
            "svm",
        ),
        ({"C": ANY, "kernel": ["rbf"]}, None),
        ({"C": (-3.0, 3.0), "gamma": (-5.0, 1.0)}, None),  # exponents
        ({"C": ANY, "kernel": ["rbf", "linear"]}, "svm"),
        ({"C": ANY, "kernel": ["linear", "cosine"]}, None),  # other words
        # words for numbers, which histogram boosting does not have
        ({"max_features": ["sqrt", "log2"], "min_samples_leaf": (1, 9)}, FOREST),
        (COMMON_FOREST, FOREST),
        ({"C": ANY, "gamma": ["scale", "auto"]}, "svm"),
        ({"C": ANY, "gamma": ["large", "small"]}, None),
        # of gradient boosting, which has the names of forests
        (COMMON_FOREST | {"learning_rate": ANY}, XGBOOST),
        # of the library, but not recorded
        ({"num_leaves": (4, 64), "max_depth": (2, 9), "max_bin": (15, 255)}, None),
        # a choice counts by one recorded option
        ({"min_samples_leaf": ["a", "b"], "criterion": BOTH, "bootstrap": BOTH}, None),
        ({"min_samples_leaf": (1, 9), "criterion": ["gini", "x"]}, "random_forest"),
        # a switch, however it is written
        ({"max_features": ANY, "min_samples_leaf": (1, 9), "bootstrap": [0, 1]}, FOREST),
        ({"max_features": ANY, "min_samples_leaf": (1, 9), "bootstrap": (0, 1)}, FOREST),
        ({"max_features": ANY, "min_samples_leaf": (1, 9), "bootstrap": (0, 2)}, None),
        # of random forests or of histogram boosting
        ({"max_features": ANY, "min_samples_leaf": (1, 9)}, None),
        ({"max_features": ANY, "min_samples_leaf": (1, 9), "bootstrap": BOTH}, FOREST),
        (
            {"max_features": ANY, "min_samples_leaf": (1, 9), "learning_rate": ANY},
            "hist_gradient_boosting",
        ),
        (
            {"max_features": ANY, "min_samples_leaf": (1, 9), "criterion": ["gini", "entropy"]},
            "random_forest",
        ),
        ({"max_depth": (1, 9), "learning_rate": ANY}, XGBOOST),
        # of CatBoost or a network
        ({"depth": (1, 9), "learning_rate": ANY}, None),
        ({"depth": (1, 9), "learning_rate": ANY, "iterations": (50, 500)}, "catboost"),
        ({"subsample": ANY, "learning_rate": ANY}, None),  # of LightGBM or XGBoost
        ({"n_neighbors": (1, 30), "weights": ["uniform", "distance"]}, "knn"),
        ({"n_neighbors": (1, 30)}, None),
        ({"alpha": ANY, "learning_rate_init": ANY}, "mlp"),
        ({"alpha": ANY, "early_stopping": BOTH}, "mlp"),
        ({"alpha": ANY, "early_stopping": BOTH, "penalty": ["l1", "l2"]}, None),  # a perceptron
        ({"C": ANY, "class_weight": ["balanced", "none"]}, None),  # svm or logistic_regression
        (
            {"C": ANY, "class_weight": ["balanced", "none"], "tol": (1e-5, 1e-3)},
            "logistic_regression",
        ),
        ({"C": ANY, "class_weight": ["balanced", "none"], "tol": (0.1, 0.9)}, None),
        (
            {"C": ANY, "class_weight": [None, "balanced"], "penalty": ["l1", "l2"]},
            "logistic_regression",
        ),
        # as many of each learner
        ({"C": ANY, "gamma": ANY, "n_neighbors": (1, 30), "p": (1, 2)}, None),
        ({"model__C": ANY, "model__gamma": ANY}, "svm"),
        ({"model_C": ANY, "model_gamma": ANY}, "svm"),
        ({"x": ANY, "y": ANY}, None),
        # choices of numbers, recorded as ranges
        ({"alpha": [0.001, 0.1], "batch_size": [32, 64, 128]}, "mlp"),
        # also beside None or a word
        ({"max_depth": [3, 5, 7, None], "learning_rate": ANY, "n_estimators": (50, 500)}, XGBOOST),
        ({"alpha": ANY, "batch_size": ["auto", 32, 64]}, "mlp"),
        ({"alpha": ANY, "batch_size": ["auto", 32]}, None),
        # hardly any recorded value lies in the range: reinforcement learning, say
        ({"gamma": (0.9, 0.9999), "learning_rate": ANY}, None),
        ({"gamma": (1.0, 5.0), "learning_rate": ANY}, XGBOOST),
        # of forests as well, or of other models
        ({"n_estimators": (50, 500), "max_depth": (2, 32)}, None),
        ({"n_estimators": (50, 500), "max_depth": (2, 32), "min_samples_split": (2, 20)}, None),
        ({"alpha": ANY, "gamma": ANY}, None),
    ],
)
def test_a_learner_is_recognised_by_its_hyperparameters(
    space: Any, learner: str | tuple[str, ...] | None
) -> None:
    found, candidates, told, _ = recognise(VectorSpace(ConfigurationSpace(space)))
    assert set(found) <= set(candidates)
    assert found == ((learner,) if isinstance(learner, str) else learner or ())
    assert ("bundled memory is used" in told) == (len(found) == 1)
    assert ("_regression are used" in told) == (len(found) == 2)
    assert ("continues without" in told) == (learner is None)


def test_all_bundled_spaces_are_recognised_by_the_names_that_are_known() -> None:
    for learner in LEARNERS:
        space = bundled(learner).space
        assert sorted(space) == sorted(HYPERPARAMETERS[learner])
        found, _, told, _ = recognise(VectorSpace(space))
        if learner.startswith(("lightgbm", "xgboost")):
            classifier = learner.removesuffix("_regression")
            assert found == (classifier, f"{classifier}_regression")
        elif learner in REGRESSIONS:  # the forests', whose names the classifier has too
            assert found == ("random_forest", learner)
        else:
            assert found == (("random_forest",) if learner == "extra_trees" else (learner,))
        assert ("That of extra_trees would fit as well." in told) == (found[0] == "random_forest")
    unclear = recognise(VectorSpace(ConfigurationSpace({"C": ANY, "class_weight": ["none", "x"]})))
    assert "may be that of svm or logistic_regression (C, class_weight)" in unclear.line
    assert unclear.candidates == ("svm", "logistic_regression") and not unclear.learners


def test_a_space_is_served_by_the_memory_of_its_learner(
    caplog: pytest.LogCaptureFixture,
) -> None:
    memory = task_memory("auto", task="iris")
    assert isinstance(memory, RecognisedMemory)
    small = VectorSpace(ConfigurationSpace({"C": ANY, "gamma": ANY}))
    larger = VectorSpace(ConfigurationSpace({"C": ANY, "gamma": ANY, "degree": (2, 5)}))
    other = VectorSpace(ConfigurationSpace({"x": ANY}))
    unclear = VectorSpace(ConfigurationSpace({"C": ANY, "class_weight": ["balanced", "none"]}))
    with caplog.at_level(logging.DEBUG, logger="automl_plugins.meta"):
        for space in (small, larger):
            dataset = memory.on(space)
            assert memory.on(space) is dataset
            expected = bundled("svm").aligned(space.space)
            assert {task.name for task in dataset.tasks} == {
                task.name for task in expected.tasks
            } - {"iris"}
        for _ in range(2):
            with pytest.raises(MemoryMismatch, match="no learner with a bundled") as raised:
                memory.on(other)
            assert raised.value.expected
        with pytest.raises(MemoryMismatch, match="may be that of svm or"):
            memory.on(unclear)
    lines = [r for r in caplog.records if "search space" in r.message]
    itself = "Task 'iris' is in the memory; its own runs there are left out."
    assert [r.levelname for r in caplog.records if r.message == itself] == ["INFO"]
    assert "wine" not in {task.name for task in memory.without({"wine"}).on(small).tasks}
    again = pickle.loads(pickle.dumps(memory))
    np.testing.assert_array_equal(again.on(small).vectors, memory.on(small).vectors)
    caplog.clear()
    caplog.set_level(logging.DEBUG, logger="automl_plugins.meta")
    with pytest.raises(MemoryMismatch):
        RecognisedMemory().on(other)
    assert [r.levelname for r in caplog.records] == ["DEBUG"]  # none was in use before
    assert [(r.levelname, r.message.partition(",")[0]) for r in lines] == [
        ("INFO", "The search space is that of svm (C"),
        ("INFO", "The search space is that of no learner with a bundled memory (lightgbm"),
        ("INFO", "The search space may be that of svm or logistic_regression (C"),
    ]


def branching(choice: str, branches: dict[str, dict[str, Any]], **always: Any) -> VectorSpace:
    """A choice, what is active for each of its options, and what always is."""
    space = ConfigurationSpace(always)
    parent = Categorical(choice, list(branches))
    space.add(parent)
    for option, hyperparameters in branches.items():
        own = [Float(name, bounds) for name, bounds in hyperparameters.items()]
        space.add(own)
        space.add(EqualsCondition(child, parent, option) for child in own)
    return VectorSpace(space)


def test_one_algorithm_among_several_is_not_recognised() -> None:
    svm, forest = {"C": ANY, "gamma": ANY}, {"n_estimators": ANY, "max_depth": ANY}
    for branches in ({"svm": svm, "forest": forest}, {"svm": svm, "bayes": {}}):
        found = recognise(branching("algorithm", branches))  # XGBoost has a gamma, too
        assert not found.learners and not found.choices
    # The choice is the learner's own, or some of its hyperparameters do not depend on it.
    own = recognise(branching("kernel", {"rbf": {"gamma": ANY}, "linear": {}}, C=ANY))
    assert own.learners == ("svm",) and not own.choices
    free = {name: ANY for name in ("reg_alpha", "reg_lambda", "subsample", "learning_rate")}
    trees = {"max_depth": ANY, "min_child_weight": ANY}
    found = recognise(branching("booster", {"gbtree": trees, "gblinear": {}}, **free))
    assert found.learners[0] == "xgboost" and found.choices == ("booster",)
    # Numbers choose no algorithm, words and switches may.
    numbers = {"max_bin": [63, 255], "max_depth": ["auto", 4]}
    words = {"scaler": ["a", "b"], "switch": BOTH, "bit": [0, 1]}
    space: dict[str, Any] = {"num_leaves": (4, 64), **free, **numbers, **words}
    found = recognise(VectorSpace(ConfigurationSpace(space)))
    assert found.learners == LIGHTGBM and set(found.choices) == set(words)


def test_a_memory_waits_until_a_choice_has_shown_that_it_is_not_one_of_algorithms() -> None:
    space = VectorSpace(ConfigurationSpace({"C": ANY, "gamma": ANY, "scaler": ["a", "b", "c"]}))
    growing, known = RecognisedMemory(), RecognisedMemory()
    growing.growing = True
    scaler = space.space.index_of["scaler"]
    vectors = space.sample(6, np.random.default_rng(0))
    vectors[:, scaler] = 0.0
    losses = np.arange(6.0)
    status = np.array([Status.COMPLETE, Status.FAILED, *[Status.COMPLETE] * 4])
    history = History.of(vectors, np.where(status == Status.FAILED, np.nan, losses), status=status)
    waits = [growing.waits(space, history.first(n)) for n in range(7)]
    assert waits == [True, True, True, True, False, False, False]  # three are complete
    vectors[2, scaler] = 1.0
    other = History.of(vectors, history.losses, status=status)
    assert [growing.waits(space, other.first(n)) for n in (1, 2, 3)] == [True, True, False]
    assert not any(known.waits(space, history.first(n)) for n in range(7))
    svm = VectorSpace(ConfigurationSpace({"C": ANY, "gamma": ANY, "kernel": ["rbf", "poly"]}))
    assert not growing.waits(svm, History.of(svm.sample(1, np.random.default_rng(0)), [1.0]))


def test_the_prefix_of_a_step_hides_no_learner() -> None:
    bare = {"num_leaves": (2, 64), "learning_rate": (0.01, 1.0)}

    def found(**names: Any) -> tuple[str, ...]:
        return recognise(VectorSpace(ConfigurationSpace(names)))[0]

    expected = found(**bare)
    assert expected == ("lightgbm", "lightgbm_regression")
    clf = {f"clf__{name}": values for name, values in bare.items()}
    assert found(**clf) == expected
    assert found(**clf, pca__tol=(0.1, 0.9)) == expected  # as clf has more of the known ones
    assert found(**{f"pipe__{name}": values for name, values in clf.items()}) == expected
    for other in ("lgbm_", "my_lgbm_", "clf.", "clf:", "clf/"):
        assert found(**{f"{other}{name}": values for name, values in bare.items()}) == expected
    assert not found(**{f"clf__x{name}": values for name, values in bare.items()})  # none ends so
    # Of two steps neither is meant.
    assert not found(**clf, **{f"reg__{name}": values for name, values in bare.items()})
    memory = RecognisedMemory().on(VectorSpace(ConfigurationSpace(clf)))
    assert memory.imputed is not None and not memory.imputed.any() and len(memory.tasks) > 50


def test_classifications_and_regressions_serve_a_space_of_both() -> None:
    space = VectorSpace(ConfigurationSpace({"num_leaves": (4, 64), "learning_rate": ANY}))
    found = RecognisedMemory(task="iris").on(space)
    both = [bundled(learner) for learner in LIGHTGBM]
    names = [task.name for memory in both for task in memory.tasks if task.name != "iris"]
    assert [task.name for task in found.tasks] == names
    losses = np.concatenate([memory.without("iris").losses for memory in both])
    np.testing.assert_array_equal(found.losses, losses)


def test_the_library_s_default_is_among_the_runs_of_every_task() -> None:
    defaults: dict[str, dict[str, Any]] = {
        "lightgbm": {"n_estimators": 100, "learning_rate": 0.1, "num_leaves": 31},
        "knn": {"n_neighbors": 5, "weights": "uniform", "p": 2},
        "xgboost": {"n_estimators": 100, "learning_rate": 0.3, "max_depth": 6},
        "logistic_regression": {"C": 1.0, "solver": "lbfgs", "tol": 1e-4},
        "mlp": {"n_layers": 1, "n_units": 100, "alpha": 1e-4},
        "hist_gradient_boosting": {"max_iter": 100, "learning_rate": 0.1, "max_leaf_nodes": 31},
        "catboost": {"iterations": 1000, "depth": 6, "l2_leaf_reg": 3.0, "rsm": 1.0},
        "random_forest": {"bootstrap": True, "min_samples_leaf": 1, "max_samples": 1.0},
        "random_forest_regression": {"bootstrap": True, "max_features": 1.0, "max_samples": 1.0},
        "extra_trees": {"bootstrap": False, "min_samples_leaf": 1, "criterion": "gini"},
        "svm": {"C": 1.0, "kernel": "rbf"},
    }
    for learner in LEARNERS:
        expected = defaults[learner if learner in defaults else learner.split("_")[0]]
        for record in bundled(learner).records():
            assert any(
                all(run.get(name) == pytest.approx(value) for name, value in expected.items())
                for run in record.configurations
            ), (learner, record.name)


@pytest.mark.parametrize(
    ("learner", "chosen"),
    [
        ("random_forest", {"max_features": (2 + 0.5) / 4}),  # "sqrt" is 2 of 4
        ("extra_trees", {"max_features": (2 + 0.5) / 4}),
        ("svm", {"gamma": 1 / 4}),  # "scale" of standardised columns
    ],
)
def test_a_default_that_depends_on_the_data_is_there_as_a_number(
    learner: str, chosen: dict[str, float]
) -> None:
    iris = next(r for r in bundled(learner).records() if r.name == "iris")
    first, last = iris.configurations[0], iris.configurations[-1]
    assert last == {**first, **{name: pytest.approx(value) for name, value in chosen.items()}}
    assert np.isfinite(iris.losses[-1])


def test_memories_of_several_algorithms_serve_a_search_among_them() -> None:
    space = ConfigurationSpace()
    algorithm = Categorical("algorithm", ["mlp", "svm", "knn"])
    space.add(algorithm)
    learners = {"svm": bundled("svm"), "knn": bundled("knn")}
    for learner, memory in learners.items():
        own = [copy.deepcopy(hyperparameter) for hyperparameter in memory.space.values()]
        space.add(own)
        space.add(EqualsCondition(hyperparameter, algorithm, learner) for hyperparameter in own)
    # None is recognised by itself: its suggestions would all be of one algorithm.
    assert not recognise(VectorSpace(space)).learners
    together = [record for memory in learners.values() for record in memory.records()]
    design = advise(space, together, k=6).design
    assert {c["algorithm"] for c in design.configurations} == {"svm", "knn"}
    for suggested in design.configurations:
        assert any(
            {name: suggested.get(name) for name in run} == pytest.approx(run)
            for record in learners[suggested["algorithm"]].records()
            for run in record.configurations
        )


def test_a_bundled_memory_in_use_leaves_out_further_tasks() -> None:
    space = VectorSpace(bundled("knn").space)
    memory = RecognisedMemory()
    first, *others = names_of(memory.on(space))
    assert names_of(memory.without({first}).on(space)) == tuple(others)
    assert names_of(memory.on(space)) == (first, *others)


def test_a_memory_of_nothing_else_is_none(caplog: pytest.LogCaptureFixture) -> None:
    space = bundled("knn").space
    memory = RecognisedMemory().without({task.name for task in bundled("knn").tasks})
    with (
        caplog.at_level(logging.INFO, logger="automl_plugins.meta"),
        pytest.raises(MemoryMismatch, match="nothing to learn from") as raised,
    ):
        memory.on(VectorSpace(space))
    assert raised.value.expected and "continues without a memory" in caplog.text


def test_a_learner_whose_runs_do_not_fit_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    """A space that grows is a new one at each trial."""
    caplog.set_level(logging.INFO, logger="automl_plugins.meta")
    memory = RecognisedMemory()
    names: dict[str, Any] = {"C": (1e-3, 1e3), "solver": ["newton-cg", "sag"]}
    for more in ({}, {"fit_intercept": [True, False]}, {"other": (0.0, 1.0)}):
        names |= more
        with pytest.raises(MemoryMismatch):
            memory.on(VectorSpace(ConfigurationSpace(names)))
    (said,) = caplog.messages
    assert said.startswith("Bundled memory of logistic_regression: No run of the memory lies in")


@pytest.mark.parametrize("empty", ["", " "])
def test_an_empty_text_is_not_the_current_folder(empty: str) -> None:
    with pytest.raises(ValueError, match="is empty: name a store, or pass None for no memory"):
        read_memory(empty)
