"""Runs of earlier tasks, aligned to one search space."""

from typing import Any

import numpy as np
import pytest
from ConfigSpace import (
    Categorical,
    ConfigurationSpace,
    EqualsCondition,
    Float,
    Integer,
)
from ConfigSpace.hyperparameters import Constant
from proposing import conditional

from automl_plugins.meta import MemoryMismatch, MetaDataset, MetaTask, TaskRecord
from automl_plugins.meta.coverage import note_coverage
from automl_plugins.meta.sources import take_conditions
from automl_plugins.records.scores import regret, standardise_losses
from automl_plugins.records.trial import Status
from automl_plugins.spaces.choices import categorical, ordinal


def unit(*names: str) -> ConfigurationSpace:
    return ConfigurationSpace({name: (0.0, 1.0) for name in names})


def record(name: str, losses: list[float], **known: Any) -> TaskRecord:
    rows = [{"x": i / 10} for i in range(len(losses))]
    return TaskRecord(name, rows, np.array(losses), **{"space": unit("x"), **known})


def test_records_become_columns() -> None:
    data = MetaDataset.from_records(
        [
            record("a", [3.0, 1.0], meta_features={"n": 5.0}, tags={"family": "f"}),
            record("b", [0.5]),
            record("a", [2.0], meta_features={"p": 2.0}),
        ]
    )
    assert [task.name for task in data.tasks] == ["a", "b"]
    assert data.task.tolist() == [0, 0, 0, 1]
    assert data.losses.tolist() == [3.0, 1.0, 2.0, 0.5]
    assert data.tasks[0].meta_features == {"n": 5.0, "p": 2.0}
    assert data.tasks[0].tags == {"family": "f"}
    assert data.meta_feature_names() == ("n", "p")
    np.testing.assert_array_equal(data.meta_features(), [[5.0, 2.0], [np.nan, np.nan]])
    assert [data.losses[rows].tolist() for rows in data.rows] == [[3.0, 1.0, 2.0], [0.5]]
    assert data.tasks[1].size == (None, None)
    assert "2 tasks, 4 runs" in repr(data)


def test_runs_at_a_lower_budget_are_left_out() -> None:
    data = MetaDataset.from_records([record("a", [3.0, 1.0], budget=np.array([1.0, np.nan]))])
    assert data.losses.tolist() == [1.0]
    assert (data.coverage[0].n_runs, data.coverage[0].n_partial) == (2, 1)


def test_records_come_back() -> None:
    space = ConfigurationSpace()
    kind, depth = Categorical("kind", ["svm", "tree"]), Integer("depth", (1, 9))
    space.add(kind, depth, Float("C", (0.1, 10.0), log=True))
    space.add(EqualsCondition(depth, kind, "tree"))
    rows = [{"kind": "svm", "C": 1.0}, {"kind": "tree", "depth": 3, "C": 0.5}]
    data = MetaDataset.from_records([TaskRecord("a", rows, np.array([1.0, np.nan]), space=space)])
    (back,) = data.records()
    assert [dict(sorted(r.items())) for r in back.configurations] == [
        {"C": pytest.approx(1.0), "kind": "svm"},
        {"C": pytest.approx(0.5), "depth": 3, "kind": "tree"},
    ]
    assert back.status.tolist() == [Status.COMPLETE, Status.FAILED]
    again = MetaDataset.from_records([back])
    np.testing.assert_allclose(again.vectors, data.vectors)


def test_it_moves_to_another_space() -> None:
    data = MetaDataset.from_records([record("a", [3.0, 1.0, 2.0])])
    moved = data.aligned(ConfigurationSpace({"x": (0.1, 0.2), "new": (0, 4)}))
    assert len(moved) == 3 and moved.coverage[0].n_clipped == 1
    assert moved.coverage[0].imputed == {"new": 3}
    assert data.aligned(data.space) is data
    dropped = data.aligned(ConfigurationSpace({"x": (0.1, 0.2)}), out_of_range="drop")
    assert dropped.losses.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("kind", "recorded", "asked"),
    [
        (categorical, ["x", "y", "z"], ["z", "y", "x"]),
        (categorical, [100.0, 200.0], [100, 200]),
        (ordinal, [1, 2], [1.0, 2.0]),
    ],
)
def test_it_moves_to_a_space_that_is_equal_by_its_operator(
    kind: Any, recorded: list[Any], asked: list[Any]
) -> None:
    a, b = ConfigurationSpace(), ConfigurationSpace()
    a.add(kind("k", recorded, default=recorded[0]))
    b.add(kind("k", asked, default=recorded[0]))
    assert a == b
    runs = [{"k": value} for value in recorded]
    losses = np.arange(float(len(runs)))
    data = MetaDataset.from_records([TaskRecord("t", runs, losses, space=a)])
    (moved,) = data.aligned(b).records()
    assert [run["k"] for run in moved.configurations] == recorded
    assert {type(run["k"]) for run in moved.configurations} == {type(asked[0])}


def far(n_inside: int = 0) -> list[TaskRecord]:
    """Two tasks of the same 30 configurations, in another order; x is inside in some of each."""
    rows = [{"x": 2.0 + i / 30, "y": i / 30} for i in range(30)]
    for i in range(n_inside):
        rows[i]["x"] = 0.25
    spaces = ConfigurationSpace({"x": (0.0, 4.0), "y": (0.0, 1.0)})
    return [
        TaskRecord(name, order, np.arange(30.0), space=spaces)
        for name, order in (("a", rows), ("b", rows[::-1]))
    ]


def warnings_of(data: MetaDataset) -> list[str]:
    return [note.text for note in note_coverage(data.coverage) if note.is_warning]


def test_of_a_memory_outside_a_range_a_third_is_at_its_end() -> None:
    data = MetaDataset.from_records(far(n_inside=1), unit("x", "y"))
    x = data.vectors[:, 0]
    assert data.imputed is not None and len(data) == 60
    assert x[[0, 59]].tolist() == [0.25, 0.25]  # what is inside counts
    assert set(x.tolist()) == {0.25, 0.5, 1.0} and not data.imputed[x != 0.5].any()
    assert (x == 1.0).sum() == 20 and data.imputed[x == 0.5, 0].all()
    np.testing.assert_array_equal(data.vectors[:30], data.vectors[:29:-1])
    assert data.coverage[0].clipped == {"x": 10} and data.coverage[0].imputed == {"x": 19}
    (note,) = note_coverage(data.coverage)
    assert note.is_warning and note.text.startswith(
        "x was recorded from 0.25 to 2.96667, and 58 of these 60 values lie outside the range of"
        " this search, 0 to 1: little is known of it there."
    )
    assert "widen the range" in note.text


def test_what_is_at_the_end_of_a_range_follows_no_grid() -> None:
    """In the order of a grid one category of three would be at the end, or none."""
    space = ConfigurationSpace({"x": (5.0, 9.0), "k": ["a", "b", "c"]})
    grid = [{"x": x / 40, "k": k} for x in range(40) for k in "abc"]
    recorded = ConfigurationSpace({"x": (0.0, 1.0), "k": ["a", "b", "c"]})
    tasks = [TaskRecord(t, grid, np.arange(120.0), space=recorded) for t in "st"]
    data = MetaDataset.from_records(tasks, space)
    x, k = (data.vectors[:, data.space.index_of[name]] for name in "xk")
    at_end = [int(((x == 0.0) & (k == i)).sum()) for i in range(3)]
    assert sum(at_end) == 80 and min(at_end) > 10
    (note,) = warnings_of(data)
    assert "The nearest end counts for 80 of them" in note


def test_of_a_memory_a_twentieth_of_which_is_inside_all_is_clipped() -> None:
    one = far(n_inside=1)[0]
    twenty = one.rows(dict(enumerate(one.configurations[:20])))
    data = MetaDataset.from_records([twenty], unit("x", "y"))
    assert data.coverage[0].clipped == {"x": 19} and not data.coverage[0].imputed
    (note,) = note_coverage(data.coverage)
    assert "in 19 of 20 recorded runs" in note.text and not note.is_warning


@pytest.mark.parametrize("options", [{"out_of_range": "drop"}, {"missing": "drop"}])
def test_who_drops_what_does_not_fit_is_told_all_else(options: dict[str, Any]) -> None:
    data = MetaDataset.from_records(far(n_inside=1), unit("x", "y"), **options)
    assert len(data) == (2 if "out_of_range" in options else 60)
    assert set(data.vectors[:, 0].tolist()) <= {0.25, 1.0}
    assert not warnings_of(data)


def test_a_number_that_is_fixed_is_not_outside_a_range() -> None:
    space = unit("y")
    space.add(Constant("x", 100))
    assert not warnings_of(MetaDataset.from_records(far(), space))


def test_runs_of_a_branch_are_kept_where_their_numbers_are_outside() -> None:
    """Without the parent, a run that has no value for its child would be of another branch."""
    known = ConfigurationSpace({"kind": ["a", "b"], "x": (2.0, 4.0), "y": (0.0, 1.0)})
    known.add(EqualsCondition(known["x"], known["kind"], "a"))
    rows: list[dict[str, Any]] = [{"kind": "a", "x": 2.0 + i / 9, "y": i / 9} for i in range(9)]
    rows.append({"kind": "b", "y": 0.5})
    data = MetaDataset.from_records(
        [TaskRecord("a", rows, np.arange(10.0), space=known)], unit("x", "y")
    )
    assert data.losses.tolist() == [*range(9)] and data.coverage[0].n_unrelated == 1


def test_imputed_values_are_not_recorded_ones() -> None:
    rows = [{"x": 0.5, "new": 0.25}, {"x": 0.75}]
    record = TaskRecord("a", rows, np.arange(2.0))
    wide = MetaDataset.from_records([record], ConfigurationSpace({"x": (0.0, 1.0), "new": (0, 8)}))
    assert wide.coverage[0].imputed == {"new": 1} and wide.vectors[1].tolist() == [0.5, 0.75]
    (back,) = wide.records()
    assert back.configurations == [{"new": 0, "x": 0.5}, {"x": 0.75}]
    asked = ConfigurationSpace({"x": (0.0, 1.0), "new": [0, 5, 7]})
    for known in (wide, wide.without("b"), wide.subset(lambda task: task.name == "a")):
        again = known.aligned(asked)
        assert again.coverage[0].imputed == {"new": 1}
        direct = MetaDataset.from_records([back], asked)
        np.testing.assert_array_equal(again.vectors, direct.vectors)


def test_tasks_of_other_algorithms_have_no_runs() -> None:
    """Two algorithms in one memory: each search learns from the runs of its own."""
    svm = TaskRecord("svm", [{"C": 1.0}, {"C": 2.0}], np.array([0.5, 0.4]), space=unit("C"))
    for known in ([svm, record("a", [3.0, 1.0])], [svm, record("a", [3.0, 1.0], space=None)]):
        data = MetaDataset.from_records(known, unit("x"))
        assert data.losses.tolist() == [3.0, 1.0] and [task.name for task in data.tasks] == ["a"]
        assert [covered.n_unrelated for covered in data.coverage] == [2, 0]
    # Nor do they where the memory had been aligned to the union of both spaces.
    both = MetaDataset.from_records([svm, record("a", [3.0, 1.0])])
    assert len(both) == 4 and both.aligned(unit("x")).losses.tolist() == [3.0, 1.0]


@pytest.mark.parametrize(
    ("records", "told"),
    [
        ([], "no runs to learn from"),
        ([record("a", [])], "no runs to learn from"),
        ([record("a", [1.0], space=None)], "Task 'a' has no search space"),
        ([record("a", [3.0], budget=np.ones(1))], "All 1 recorded runs .* at a lower budget"),
    ],
)
def test_nothing_to_learn_from(records: list[TaskRecord], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        MetaDataset.from_records(records)


def test_one_record_is_enough() -> None:
    assert len(MetaDataset.from_records(record("a", [1.0, 2.0]))) == 2  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((3,), {}, r"must be TaskRecords, such as store\.records\(\), got 3"),
        (("runs.db",), {}, r"must be TaskRecords, such as store\.records\(\), got 'r'"),
        (([{"x": 1}],), {}, r"must be TaskRecords, such as .*, got {'x': 1}"),
        (([], {"x": (0, 1)}), {}, "takes a ConfigurationSpace as space; got <dict of 1>"),
        (([], unit("x")), {"missin": "drop"}, "no argument missin; .* Did you mean 'missing'"),
    ],
)
def test_other_arguments_are_refused(arguments: Any, options: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        MetaDataset.from_records(*arguments, **options)


def test_names_that_are_left_out_are_no_list() -> None:
    data = MetaDataset.from_records([record("a", [1.0]), record("b", [1.0])], unit("x"))
    assert [task.name for task in data.without("a", "c").tasks] == ["b"]
    with pytest.raises(TypeError, match=r"names of tasks, got \['a'\] among them"):
        data.without(["a"])  # type: ignore[arg-type]


def test_a_space_without_hyperparameters_is_named() -> None:
    with pytest.raises(MemoryMismatch, match=r"the runs have x; the space has none\."):
        MetaDataset.from_records([record("a", [1.0])], ConfigurationSpace())


def test_options_count_in_an_equal_space_too() -> None:
    space = unit("x", "g")
    known = [{"x": 0.1, "g": 0.2}, {"x": 0.3}]
    data = MetaDataset.from_records([TaskRecord("a", known, np.zeros(2), space=space)])
    assert data.aligned(unit("x", "g")) is data
    assert len(data.aligned(unit("x", "g"), missing="drop")) == 1
    with pytest.raises(ValueError, match="missing must be"):
        data.aligned(unit("x", "g"), missing="typo")  # type: ignore[arg-type]


def test_an_unknown_meta_feature_replaces_none() -> None:
    parts = [
        record("a", [1.0], meta_features={"n": n, "m": m})
        for n, m in ((5.0, np.nan), (np.nan, 2.0))
    ]
    assert MetaDataset.from_records(parts).tasks[0].meta_features == {"n": 5.0, "m": 2.0}


@pytest.mark.parametrize(("value", "told"), [("many", "got n='many'"), (10**400, "too large for")])
def test_a_meta_feature_is_a_number(value: Any, told: str) -> None:
    with pytest.raises(ValueError, match=f"Task 'a': .*{told}"):
        MetaDataset.from_records([record("a", [1.0], meta_features={"n": value})])


def test_tasks_are_left_out() -> None:
    data = MetaDataset.from_records([record(n, [float(i)]) for i, n in enumerate("abc")])
    left = data.without("b")
    assert [t.name for t in left.tasks] == ["a", "c"] and left.task.tolist() == [0, 1]
    assert left.losses.tolist() == [0.0, 2.0] and len(left.coverage) == 2
    with pytest.raises(ValueError, match="No task is left"):
        data.subset(lambda task: False)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"losses": np.zeros(3)}, "losses must have shape"),
        ({"task": np.array([1, 0])}, "ascending"),
        ({"task": np.array([0, 2])}, r"task must lie in \[0, 2\)"),
        ({"tasks": (MetaTask("a"), MetaTask("a"))}, "names of their own, a does not"),
        ({"task": np.array([1, 1])}, "must have runs, a has none"),
    ],
)
def test_columns_must_fit(changed: dict[str, Any], told: str) -> None:
    columns: dict[str, Any] = {
        "space": unit("x"),
        "tasks": (MetaTask("a"), MetaTask("b")),
        "task": np.array([0, 1]),
        "vectors": np.zeros((2, 1)),
        "losses": np.zeros(2),
        "seconds": np.zeros(2),
        "status": np.zeros(2, dtype=np.int64),
    }
    MetaDataset(**columns)
    with pytest.raises(ValueError, match=told):
        MetaDataset(**(columns | changed))


def test_distinct_configurations_come_in_order_of_appearance() -> None:
    rows = [{"x": 0.5}, {"x": 0.1}, {"x": 0.5}, {"x": 0.9}, {"x": 0.1}]
    data = MetaDataset.from_records([TaskRecord("a", rows, np.arange(5.0), space=unit("x"))])
    distinct, which = data.distinct
    assert distinct[:, 0].tolist() == pytest.approx([0.5, 0.1, 0.9])
    assert which.tolist() == [0, 1, 0, 2, 1]


# --- losses of tasks made comparable --------------------------------------------------------


def test_scores_by_hand() -> None:
    losses = np.array([1.0, np.nan, 3.0])
    np.testing.assert_allclose(regret(losses), [0.0, 1.0, 1.0])
    np.testing.assert_allclose(standardise_losses(losses), [-1.0, 1.0, 1.0])
    for scale in (regret, standardise_losses):
        assert scale(np.array([2.0, 2.0])).tolist() == [0.0, 0.0]
        assert scale(np.array([2.0, np.nan])).tolist() == [0.0, 1.0]
        assert scale(np.array([np.nan])).tolist() == [1.0]
        assert scale(np.array([])).shape == (0,)


def test_each_task_has_its_own_scale() -> None:
    pruned = np.array([0, 0, Status.PRUNED])
    data = MetaDataset.from_records(
        [record("a", [1.0, 3.0, 2.0], status=pruned), record("b", [30.0, 10.0])]
    )
    np.testing.assert_allclose(data.scores(regret), [0.0, 1.0, 1.0, 1.0, 0.0])


# --- names and conditions of a step -----------------------------------------------------------


def test_the_prefix_of_a_step_of_a_pipeline_is_no_part_of_a_name() -> None:
    records = [
        TaskRecord(
            name,
            [{"k": "a", "x": 0.25}, {"k": "b"}],
            np.array([1.0, 2.0]),
            space=conditional("x") if has_space else None,
        )
        for name, has_space in (("one", True), ("other", False))
    ]
    plain = MetaDataset.from_records(records, conditional("x"))
    piped = ConfigurationSpace({"pca__n": (1, 9)})
    piped.add_configuration_space("clf", conditional("x"), delimiter="__")
    found = MetaDataset.from_records(records, piped)
    columns = [found.vector_space.names.index(name) for name in ("clf__k", "clf__x")]
    names = [plain.vector_space.names.index(name) for name in ("k", "x")]
    np.testing.assert_array_equal(found.vectors[:, columns], plain.vectors[:, names])
    assert found.coverage[0].shared == ("clf__k", "clf__x") and found.coverage[0].n_kept == 2
    # A name that is known as it is has no prefix, and of two steps neither is meant.
    piped.add(Float("x", (0.0, 1.0)))
    assert MetaDataset.from_records(records, piped).coverage[0].shared == ("x",)
    two = ConfigurationSpace({"a__x": (0.0, 1.0), "b__x": (0.0, 1.0)})
    with pytest.raises(MemoryMismatch, match="share no hyperparameter"):
        MetaDataset.from_records(records, two)


def test_conditions_are_those_of_the_step() -> None:
    flat = ConfigurationSpace({"clf__k": ["a", "b"], "clf__x": (0.0, 1.0)})
    taken = take_conditions(flat, [record("one", [1.0], space=conditional("x"))])
    assert [parent.name for parent in taken.parents_of["clf__x"]] == ["clf__k"]


def test_what_is_not_asked_for_keeps_its_name() -> None:
    known = ConfigurationSpace({f"svm.{name}": (0.0, 1.0) for name in ("C", "tol", "seed")})
    known.add(Float("seed", (0.0, 1.0)))
    record_ = record("one", [1.0], space=known)
    assert [*take_conditions(unit("C", "tol"), [record_])] == ["C", "tol"]
