"""Runs of anywhere as vectors of a search space."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ConfigSpace import (
    Categorical,
    ConfigurationSpace,
    Constant,
    EqualsCondition,
    Float,
    ForbiddenEqualsClause,
    ForbiddenEqualsRelation,
    Integer,
)
from ConfigSpace.hyperparameters import OrdinalHyperparameter
from hypothesis import given, settings
from hypothesis import strategies as st

from automl_plugins.meta import MetaDataset, TaskRecord
from automl_plugins.meta.alignment import align
from automl_plugins.meta.conversion import conform
from automl_plugins.meta.coverage import note_coverage
from automl_plugins.meta.readings import _place, read_runs
from automl_plugins.meta.units import DataSize
from automl_plugins.spaces.choices import categorical
from automl_plugins.spaces.ranges import integer_range, stepped_range
from automl_plugins.spaces.scales import Steps
from automl_plugins.spaces.values import to_values
from automl_plugins.spaces.vector_space import VectorSpace


def space_of(*hyperparameters: Any) -> ConfigurationSpace:
    space = ConfigurationSpace()
    space.add(*hyperparameters)
    return space


def svm() -> ConfigurationSpace:
    kernel = Categorical("kernel", ["rbf", "linear"])
    gamma = Float("gamma", (1e-3, 10.0), log=True, default=0.1)
    space = space_of(kernel, gamma, Float("C", (0.1, 100.0), log=True, default=1.0))
    space.add(EqualsCondition(gamma, kernel, "rbf"))
    return space


def aligned(
    space: ConfigurationSpace,
    *rows: Mapping[str, Any],
    size: DataSize | None = None,
    records: Sequence[TaskRecord] = (),
    **options: Any,
) -> Any:
    vectors = VectorSpace(space)
    return align(vectors, read_runs(vectors, rows, size=size, records=records), "t", **options)


def values(space: ConfigurationSpace, vectors: np.ndarray) -> list[dict[str, Any]]:
    return to_values(space, vectors)


@given(seed=st.integers(0, 1000))
@settings(max_examples=25, deadline=None)
def test_what_a_space_produced_comes_back(seed: int) -> None:
    space = svm()
    space.add(Integer("n", (1, 1000), log=True), OrdinalHyperparameter("q", [1, 2, 4, 8]))
    vectors = VectorSpace(space).sample(20, np.random.default_rng(seed))
    back, keep, coverage, _ = aligned(space, *values(space, vectors))
    assert keep.all() and coverage.n_clipped == 0 and not coverage.imputed
    np.testing.assert_allclose(back, vectors, atol=1e-12)
    assert VectorSpace(space).keys(back).tolist() == VectorSpace(space).keys(vectors).tolist()


def test_missing_values_are_imputed_with_the_default() -> None:
    vectors, keep, coverage, _ = aligned(svm(), {"kernel": "rbf", "C": 2.0}, {"kernel": "linear"})
    got = values(svm(), vectors)
    assert got[0] == {"kernel": "rbf", "C": pytest.approx(2.0), "gamma": pytest.approx(0.1)}
    assert got[1] == {"kernel": "linear", "C": pytest.approx(1.0)}  # gamma is inactive there
    assert coverage.imputed == {"C": 1, "gamma": 1} and keep.all()
    assert "imputed" in str(coverage)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"out_of_range": "Drop"}, "out_of_range must be"),
        ({"missing": "drop it"}, "missing must be"),
    ],
)
def test_unknown_policies(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        aligned(svm(), {}, **options)


def test_missing_values_drop_the_run_if_asked_to() -> None:
    _, keep, coverage, _ = aligned(
        svm(), {"kernel": "rbf", "C": 2.0}, {"kernel": "linear", "C": 1.0}, missing="drop"
    )
    assert keep.tolist() == [False, True] and coverage.n_dropped == 1


def test_numbers_outside_are_clipped_or_dropped() -> None:
    rows: list[dict[str, Any]] = [{"C": 1e6}, {"C": 0.0}, {"C": 10**400}, {}]
    rows = [{"kernel": "linear"} | row for row in rows]
    vectors, keep, coverage, _ = aligned(svm(), *rows)
    column = svm().index_of["C"]
    assert vectors[:3, column].tolist() == [1.0, 0.0, 1.0] and coverage.n_clipped == 3
    _, keep, coverage, _ = aligned(svm(), *rows, out_of_range="drop")
    assert keep.tolist() == [False, False, False, True] and coverage.n_clipped == 0


def test_a_foreign_category_drops_the_run() -> None:
    vectors, keep, coverage, _ = aligned(svm(), {"kernel": "poly", "C": 1.0}, {"kernel": "linear"})
    assert keep.tolist() == [False, True] and coverage.n_kept == 1
    assert np.isnan(vectors[0]).all()


def test_a_choice_none_is_a_value_also_without_a_recorded_space() -> None:
    rows: list[dict[str, Any]] = [{"w": None, "n": 10}, {"w": "b", "n": 5}, {"w": None, "n": 5}]
    asked = space_of(categorical("w", [None, "b"]))
    found = MetaDataset.from_records([TaskRecord("t", rows, np.arange(3.0))], asked)
    assert [dict(run) for run in found.records()[0].configurations] == [
        {"w": value} for value in (None, "b", None)
    ]


def test_a_choice_none_that_the_space_does_not_have_drops_the_run() -> None:
    rows: list[dict[str, Any]] = [{"w": None, "n": None}, {"w": "b", "n": 3}, {"n": 3}]
    asked = space_of(Categorical("w", ["a", "b"]), Integer("n", (1, 9)))
    losses = np.array([0.0, 1.0, 2.0])
    said = space_of(categorical("w", [None, "a", "b"]), categorical("n", [None, 3]))
    found = MetaDataset.from_records([TaskRecord("t", rows, losses, space=said)], asked)
    assert found.losses.tolist() == [1.0, 2.0]
    assert found.coverage[0].dropped == {"w": 1, "n": 1} and found.coverage[0].imputed == {"w": 1}
    # Without a space None may be a gap of a data frame.
    found = MetaDataset.from_records([TaskRecord("t", rows, losses)], asked)
    assert found.losses.tolist() == losses.tolist() and found.coverage[0].imputed == {
        "w": 2,
        "n": 1,
    }


@pytest.mark.parametrize("spelled", ["None", None, "none"])
def test_text_stands_for_the_value_it_spells(spelled: Any) -> None:
    space = space_of(Categorical("w", ["None", "balanced"]), Categorical("b", [True, False]))
    vectors, keep, _, _ = aligned(space, {"w": spelled, "b": "True"})
    assert keep.all() and values(space, vectors) == [{"w": "None", "b": True}]


def test_known_meanings_become_numbers() -> None:
    space = space_of(Float("max_features", (0.01, 1.0), default=0.5))
    rows = [{"max_features": value} for value in ("sqrt", 0.3, None)]
    vectors, keep, _, _ = aligned(space, *rows, size=DataSize(100, 25))
    got = [v["max_features"] for v in values(space, vectors)]
    assert got == pytest.approx([0.2, 0.3, 1.0]) and keep.all()
    counts = space_of(Integer("max_features", (1, 50)))
    vectors, keep, _, _ = aligned(counts, *rows, size=DataSize(100, 25))
    assert [v["max_features"] for v in values(counts, vectors)] == [5, 8, 25] and keep.all()
    # without the number of features nobody can tell
    _, keep, _, _ = aligned(space, *rows)
    assert keep.tolist() == [False, True, True]


@pytest.mark.parametrize("recorded", [-1, 0, "-1", None])
def test_a_depth_without_limit_is_a_deep_tree(recorded: Any) -> None:
    space = space_of(Integer("max_depth", (3, 30)))
    vectors, keep, coverage, _ = aligned(space, {"max_depth": recorded}, {"max_depth": 2})
    assert keep.all() and coverage.clipped == {"max_depth": 1}
    assert values(space, vectors) == [{"max_depth": 20}, {"max_depth": 3}]
    # In a space that has the number it means what it means there.
    known = space_of(Integer("max_depth", (-1, 30)))
    vectors, _, _, _ = aligned(known, {"max_depth": -1}, {"max_depth": 0})
    assert values(known, vectors) == [{"max_depth": -1}, {"max_depth": 0}]


def test_integers_that_a_step_moves_are_counted() -> None:
    steps = stepped_range("n", Steps(0, 10_000, 10**7 + 1))
    vectors, _, coverage, _ = aligned(space_of(steps), {"n": 10**7 + 3}, {"n": 10**7})
    assert values(space_of(steps), vectors) == [{"n": 10**7}] * 2
    assert coverage.rounded == {"n": 1}
    tenths = stepped_range("x", Steps(0.0, 0.1, 11, is_integer=False))
    single = float(np.float32(0.3))
    _, _, coverage, _ = aligned(space_of(tenths), {"x": single}, {"x": 0.3001}, {"x": 0.30011})
    assert coverage.rounded == {"x": 1}
    # Between -2^60 and 2^60 the vector of 5 is that of 0.
    wide = space_of(integer_range("n", -(2**60), 2**60))
    vectors, _, coverage, _ = aligned(wide, {"n": 5}, {"n": -(2**60) + 256}, {"n": 2**60})
    assert [run["n"] for run in values(wide, vectors)] == [0, -(2**60) + 256, 2**60]
    assert coverage.rounded == {"n": 1} and not coverage.clipped


def test_values_between_steps_are_not_outside() -> None:
    space = space_of(stepped_range("n", Steps(100, 100, 10)))
    rows = [{"n": n} for n in (50, 149, 151, 300, 1001)]
    for policy, kept in (("clip", [0, 1, 2, 3, 4]), ("drop", [1, 2, 3])):
        vectors, keep, coverage, _ = aligned(space, *rows, out_of_range=policy)
        assert np.flatnonzero(keep).tolist() == kept and coverage.rounded == {"n": 2}
        assert [v["n"] for v in values(space, vectors[1:4])] == [100, 200, 300]
        assert "moved to the nearest value n in 2" in str(coverage)
        note = note_coverage([coverage])[-1].text
        assert "n is between the values of this search in 2 of" in note
    assert coverage.dropped == {"n": 2}
    _, _, coverage, _ = aligned(space, *rows)
    note = note_coverage([coverage])[0].text
    assert note.startswith("n is outside the range of this search in 2 of")


def test_ordinals_take_the_nearest_value() -> None:
    space = space_of(
        OrdinalHyperparameter("q", [1, 10, 100]), OrdinalHyperparameter("s", ["a", "b"])
    )
    vectors, keep, coverage, _ = aligned(space, {"q": 12, "s": "b"}, {"q": 10, "s": "c"})
    assert values(space, vectors[:1]) == [{"q": 10, "s": "b"}]
    assert keep.tolist() == [True, False] and coverage.rounded == {"q": 1}
    assert aligned(space, {"q": 101}, {"q": 0}, {"q": 5})[2].clipped == {"q": 2}


def test_another_category_than_the_fixed_one_drops_the_run() -> None:
    space = space_of(Constant("kernel", "linear"), Float("C", (0.1, 10.0)))
    rows = [{"kernel": "rbf", "C": 1.0}, {"kernel": "linear", "C": 2.0}]
    _, keep, coverage, _ = aligned(space, *rows)
    assert keep.tolist() == [False, True] and coverage.dropped == {"kernel": 1}
    assert "dropped for kernel in 1" in str(coverage)


def test_numbers_that_no_category_names_are_not_told() -> None:
    space = space_of(Categorical("gamma", ["scale", "auto"]), Float("C", (0.1, 10.0)))
    _, keep, coverage, _ = aligned(space, {"gamma": 0.01, "C": 1.0}, {"gamma": 0.1, "C": 2.0})
    assert keep.all() and coverage.imputed == {"gamma": 2}


@pytest.mark.parametrize("choices", [["sqrt", "log2", 0.5], ["sqrt", 0.5], [0.5, "log2", "sqrt"]])
def test_a_number_that_equals_a_choice_by_chance_makes_no_other_foreign(choices: Any) -> None:
    """Of tasks in which one recorded fraction was 0.5 all other runs were left out."""
    recorded = space_of(Float("max_features", (0.01, 1.0)), Float("C", (0.1, 10.0)))
    rows = [{"max_features": x, "C": 1.0} for x in (0.5, 0.2, 0.31, 0.9)]
    record = TaskRecord("t", rows, np.arange(4.0), space=recorded)
    space = space_of(Categorical("max_features", choices), Float("C", (0.1, 10.0)))
    found = aligned(space, *rows, records=[record], size=DataSize(100, 25))
    assert found.keep.all() and not found.coverage.dropped and not found.coverage.imputed
    got = [v["max_features"] for v in values(space, found.vectors)]
    assert got == [0.5, "sqrt", "sqrt", 0.5]  # 5 of 25 columns
    assert found.coverage.rounded == {"max_features": 2}
    # Without the sizes of the data nobody knows what "sqrt" is.
    found = aligned(space, *rows, records=[record])
    assert found.keep.all() and not found.coverage.dropped
    assert values(space, found.vectors[:1])[0]["max_features"] == 0.5
    assert found.coverage.imputed == found.coverage.unusable == {"max_features": 3}
    (note,) = note_coverage([found.coverage])
    assert note.text == (
        "max_features has values that cannot be used in 3 of 4 recorded runs, as they are none of"
        " this search, and is imputed there."
    )


@pytest.mark.parametrize(
    ("name", "choices", "recorded", "expected"),
    [
        # Of 25 columns they are 0.186 and 0.2, and 0.046 and 0.81 are too far from both.
        (
            "rf__max_features",
            ["log2", "sqrt"],
            [0.186, 0.2, 0.79, 0.047, 0.81, 0.046, 0.0],
            ["log2", "sqrt", "sqrt", "log2"],
        ),
        ("max_features", ["sqrt", 0.9, "x"], [0.42, 0.43, 1.0], ["sqrt", 0.9, 0.9]),
        ("max_features", [None, "sqrt"], [0.44, 0.45, 1.0], ["sqrt", None, None]),
        ("max_features", ["sqrt", 20], [9, 11, 25], ["sqrt", 20, 20]),  # counts
        ("gamma", ["scale", 1e-3], [0.04, 0.15, 0.17, 2e-3], ["scale", "scale", 1e-3]),
        ("gamma", ["auto", "scale"], [0.04, 0.02], ["auto", "auto"]),  # equal on standard scores
    ],
)
def test_a_number_goes_to_the_word_that_means_the_nearest(
    name: str, choices: list[Any], recorded: list[float], expected: list[Any]
) -> None:
    """The memory of a forest with fractions is one of a forest with "sqrt" and "log2"."""
    is_count = isinstance(recorded[0], int)
    one = Integer(name, (1, 25)) if is_count else Float(name, (0.0, 2.0))
    record = TaskRecord("t", [], np.empty(0), space=space_of(one))
    space = space_of(categorical(name, choices))
    found = aligned(
        space, *({name: x} for x in recorded), records=[record], size=DataSize(100, 25)
    )
    n = len(expected)
    assert [run[name] for run in to_values(space, found.vectors[found.keep])] == expected
    assert found.coverage.dropped == ({name: len(recorded) - n} if n < len(recorded) else {})


@pytest.mark.parametrize("make", [categorical, OrdinalHyperparameter])
def test_the_nearest_choice_is_that_on_the_recorded_scale(make: Any) -> None:
    """Of 1 and 10, 10 is nearer to 4 where C was recorded on a logarithmic scale."""
    on_log, linear = (Float("C", (1e-3, 1e3), log=log) for log in (True, False))
    rows = [{"C": c} for c in (4.0, 3.0, 0.2, 900.0)]

    def read(choices: list[float], *recorded: Any) -> list[float]:
        records = [TaskRecord("t", [], np.empty(0), space=space_of(hp)) for hp in recorded]
        space = space_of(make("C", choices))
        return [v["C"] for v in to_values(space, aligned(space, *rows, records=records).vectors)]

    assert read([1.0, 10.0, 100.0], on_log) == [10.0, 1.0, 1.0, 100.0]
    for recorded in ((linear,), (on_log, linear), (linear, on_log)):
        assert read([1.0, 10.0, 100.0], *recorded) == [1.0, 1.0, 1.0, 100.0]
    # Nothing is a ratio away from zero.
    assert read([0.0, 1.0, 100.0], on_log) == [1.0, 1.0, 0.0, 100.0]


def test_words_far_from_nearly_all_numbers_leave_no_run_out() -> None:
    space = space_of(Categorical("gamma", ["scale", "auto"]), Float("C", (0.1, 10.0)))
    known = TaskRecord("t", [], np.empty(0), space=space_of(Float("gamma", (0.0, 99.0))))
    rows = [{"gamma": 0.04 + i, "C": 1.0} for i in range(21)]
    _, keep, coverage, _ = aligned(space, *rows, records=[known], size=DataSize(100, 25))
    assert keep.all() and coverage.unusable == {"gamma": 20}
    _, keep, coverage, _ = aligned(space, *rows[:20], records=[known], size=DataSize(100, 25))
    assert keep.tolist() == [True] + [False] * 19 and coverage.dropped == {"gamma": 19}


def test_numbers_of_which_hardly_any_is_a_choice_are_not_known() -> None:
    """Also those of a data frame, of which nobody knows whether they are a range."""
    space = space_of(Categorical("gamma", ["scale", 0.5]), Float("C", (0.1, 10.0)))
    rows = [{"gamma": 0.5 + i, "C": 1.0} for i in range(21)]
    _, keep, coverage, _ = aligned(space, *rows)
    assert keep.all() and coverage.unusable == {"gamma": 20}
    _, keep, coverage, _ = aligned(space, *rows[:20])
    assert keep.tolist() == [True] + [False] * 19 and coverage.dropped == {"gamma": 19}


def test_numbers_go_to_the_nearest_choice_beside_texts_and_none() -> None:
    space = space_of(categorical("max_depth", [None, 3, 6, 9]), Float("C", (0.1, 10.0)))
    record = TaskRecord("t", [], np.empty(0), space=space_of(Integer("max_depth", (1, 12))))
    rows = [{"max_depth": i, "C": 1.0} for i in (1, 3, 5, 7, 12)]
    vectors, keep, coverage, _ = aligned(space, *rows, records=[record])
    got = [configuration["max_depth"] for configuration in to_values(space, vectors)]
    assert got == [3, 3, 6, 6, 9] and keep.all()
    assert (coverage.clipped, coverage.rounded) == ({"max_depth": 2}, {"max_depth": 2})
    one = space_of(categorical("gamma", ["scale", 0.5]), Float("C", (0.1, 10.0)))
    known = TaskRecord("t", [], np.empty(0), space=space_of(Float("gamma", (0.0, 1.0))))
    rows = [{"gamma": g, "C": 1.0} for g in (0.1, 0.5)]
    # What cannot be used is why a run is left out that must not miss anything.
    _, keep, coverage, _ = aligned(one, *rows, records=[known], missing="drop")
    assert keep.tolist() == [False, True] and coverage.dropped == {"gamma": 1}


def test_numbers_of_a_range_go_to_the_nearest_choice() -> None:
    recorded = space_of(Integer("leaves", (2, 256)), Float("C", (0.1, 10.0)))
    rows = [{"leaves": n, "C": 1.0} for n in (31, 40, 200)]
    record = TaskRecord("t", rows, np.arange(3.0), space=recorded)
    space = space_of(Categorical("leaves", [127, 31, 63]), Float("C", (0.1, 10.0)))
    vectors, keep, coverage, _ = aligned(space, *rows, records=[record])
    assert keep.all() and coverage.clipped == {"leaves": 1} and coverage.rounded == {"leaves": 1}
    assert [v["leaves"] for v in values(space, vectors)] == [31, 31, 127]
    strict = aligned(space, *rows, records=[record], out_of_range="drop")
    assert strict.keep.tolist() == [True, True, False]
    # choices, and what nothing is known of, may be the labels of anything
    labels = space_of(Categorical("leaves", [31, 40, 200]), Float("C", (0.1, 10.0)))
    for other in ([replace(record, space=labels)], []):
        found = aligned(space, *rows, records=other)
        assert found.keep.tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("switch", "off", "on"),
    [
        (Categorical("s", [True, False]), False, True),
        (categorical("s", [None, False, True]), False, True),
        (Categorical("s", [1, 0]), 0, 1),
        (OrdinalHyperparameter("s", [0, 1]), 0, 1),
        (Integer("s", (0, 1)), 0, 1),
    ],
)
def test_a_switch_is_on_or_off_in_either_language(switch: Any, off: Any, on: Any) -> None:
    space = space_of(switch, Float("x", (0.0, 1.0)))
    for recorded in ([False, True], [0, 1], [0.0, 1.0], [np.bool_(False), np.int64(1)]):
        vectors, keep, coverage, _ = aligned(space, *({"s": v, "x": 0.5} for v in recorded))
        found = [v["s"] for v in values(space, vectors)]
        assert keep.all() and not coverage.imputed
        assert found == [off, on] and [type(v) for v in found] == [type(off), type(on)]


def test_numbers_beside_0_and_1_are_no_switch() -> None:
    depths = space_of(Categorical("s", [0, 1, 2]), Float("x", (0.0, 1.0)))
    _, keep, _, _ = aligned(depths, {"s": True, "x": 0.5}, {"s": 1, "x": 0.5})
    assert keep.tolist() == [False, True]
    truths = space_of(Categorical("s", [True, False]), Float("x", (0.0, 1.0)))
    _, _, coverage, _ = aligned(truths, {"s": 1, "x": 0.5}, {"s": 2, "x": 0.5})
    assert coverage.imputed == {"s": 2}  # not known


def test_constants() -> None:
    space = space_of(Constant("n", 100), Float("x", (0.0, 1.0)))
    rows: list[dict[str, Any]] = [{"n": 100, "x": 0.1}, {"n": 50, "x": 0.2}, {"x": 0.3}]
    _, keep, coverage, _ = aligned(space, *rows)
    assert keep.all() and coverage.n_clipped == 1 and not coverage.imputed
    _, keep, _, _ = aligned(space, *rows, out_of_range="drop")
    assert keep.tolist() == [True, False, True]


def test_forbidden_configurations_are_dropped() -> None:
    space = svm()
    space.add(ForbiddenEqualsClause(space["kernel"], "linear"))
    _, keep, _, _ = aligned(space, {"kernel": "linear", "C": 1.0}, {"kernel": "rbf"})
    assert keep.tolist() == [False, True]


def test_no_run_is_no_error_where_an_equality_is_forbidden() -> None:
    space = space_of(Integer("a", (0, 9), default=1), Integer("b", (0, 9), default=2))
    space.add(ForbiddenEqualsRelation(space["a"], space["b"]))
    vectors, keep, coverage, _ = aligned(space)
    assert vectors.shape == (0, 2) and not len(keep) and coverage.n_runs == 0
    _, keep, _, _ = aligned(space, {"a": 3, "b": 3}, {"a": 3, "b": 4})
    assert keep.tolist() == [False, True]


def test_integers_are_rounded() -> None:
    space = space_of(Integer("n", (1, 9)))
    vectors, _, coverage, _ = aligned(
        space, {"n": 3.0}, {"n": 3.4}, {"n": np.int64(3)}, {"n": True}
    )
    assert [v["n"] for v in values(space, vectors[:3])] == [3, 3, 3]
    assert coverage.n_dropped == 1  # True is not a number
    assert coverage.rounded == {"n": 1}  # 3.0 is 3
    _, _, coverage, _ = aligned(space, {"n": 9.4}, {"n": 9.6}, {"n": 10.4})
    assert coverage.rounded == {"n": 1} and coverage.clipped == {"n": 2}


def leaves(lower: float, upper: float, **options: Any) -> ConfigurationSpace:
    kind: Any = Integer if isinstance(lower, int) else Float
    return space_of(kind("min_samples_leaf", (lower, upper), **options))


def advised(name: str, recorded: Sequence[Any], space: ConfigurationSpace) -> tuple[Any, Any]:
    """Values in the space of what one task of 1 000 rows and 100 columns recorded."""
    record = TaskRecord(
        "t",
        [{name: value} for value in recorded],
        np.linspace(0.1, 0.4, len(recorded)),
        meta_features={"NumberOfInstances": 1000.0, "NumberOfFeatures": 100.0},
    )
    dataset = MetaDataset.from_records([record], space)
    return [v[name] for v in to_values(space, dataset.vectors)], dataset.coverage[0]


def test_recorded_counts_are_fractions_of_the_rows() -> None:
    """The transformation of the thesis (3.1.1): a leaf of 5 of 1 000 rows is one of 0.005."""
    found, coverage = advised("min_samples_leaf", [1, 5, 50, 300], leaves(0.0005, 0.5, log=True))
    assert found == pytest.approx([0.001, 0.005, 0.05, 0.3])
    assert not coverage.clipped and coverage.converted == {"min_samples_leaf": 4}
    assert "converted between counts and fractions min_samples_leaf in 4" in str(coverage)


def test_recorded_fractions_are_counts_of_the_rows() -> None:
    recorded = [0.001, 0.005, 0.05, 0.3]
    found, coverage = advised("min_samples_leaf", recorded, leaves(1, 500, log=True))
    assert found == [1, 5, 50, 300]
    assert not coverage.clipped and coverage.converted == {"min_samples_leaf": 4}
    back, _ = advised("min_samples_leaf", found, leaves(0.0005, 0.5, log=True))
    assert back == pytest.approx(recorded)


@pytest.mark.parametrize(
    ("recorded", "fractions"),
    [
        ([10, 1, 100], [0.1, 0.01, 1.0]),
        ([10.0, 1.0, 0.3], [0.1, 0.01, 0.3]),  # a frame made floats of the counts
        ([0.3, 1.0], [0.3, 1.0]),
        ([1.0], [1.0]),
        (["sqrt", None, "log2", np.int64(10)], [0.1, 1.0, np.log2(100) / 100, 0.1]),
        ([None, 10.0], [1.0, 0.1]),
    ],
)
def test_counts_of_columns(recorded: list[Any], fractions: list[float]) -> None:
    space = space_of(Float("rf:max_features", (0.01, 1.0)))
    assert advised("rf:max_features", recorded, space)[0] == pytest.approx(fractions)
    space = space_of(Integer("max_features", (1, 100)))
    whole = [round(100 * f) for f in fractions] if recorded != [1.0] else [1]
    assert advised("max_features", recorded, space)[0] == whole
    space = space_of(Float("max_features", (0.5, 20.0)))  # neither: as they are
    assert not advised("max_features", recorded, space)[1].converted
    space = space_of(OrdinalHyperparameter("max_features", [0.01, 0.1, 0.3, 1.0]))
    found = [0.1 if f == np.log2(100) / 100 else f for f in fractions]
    assert advised("max_features", recorded, space)[0] == pytest.approx(found)


@pytest.mark.parametrize("name", ["max_features", "gamma", "max_depth"])
def test_a_gap_of_a_nullable_column_means_nothing(name: str) -> None:
    space = space_of(Float(name, (0.01, 1.0), default=0.5))
    column = pd.array([pd.NA, 0.25], dtype="Float64")
    vectors, keep, coverage, _ = aligned(space, *({name: value} for value in column))
    assert keep.all() and coverage.imputed == {name: 1}
    assert [found[name] for found in values(space, vectors)] == pytest.approx([0.5, 0.25])


@pytest.mark.parametrize(
    ("choices", "recorded", "expected"),
    [
        # Of 25 columns 1.0 are all, and 0.12 are three.
        ([1, 3, 10], [1.0, 0.12, 0.05, 0.3, 0.5], [10, 3, 1, 10, 10]),
        ([1.0, 3.0, 10.0], [1.0, 0.12, 0.05, 0.3, 0.5], [10.0, 3.0, 1.0, 10.0, 10.0]),
        ([0.1, 0.5, 1.0], [1, 2, 12, 25], [0.1, 0.1, 0.5, 1.0]),
        ([0.1, 0.5, 1.0], [1.0, 0.5], [1.0, 0.5]),
        ([0.5, 1], [1, 0.5], [1, 0.5]),  # 1 beside 0.5 is as clear as nothing else
    ],
)
def test_choices_of_counts_are_the_recorded_fractions(
    choices: list[float], recorded: list[float], expected: list[float]
) -> None:
    """``max_features`` of 2, 4, 6 or 8 meets the fractions of a forest's memory."""
    one = Integer if isinstance(recorded[0], int) else Float
    known = TaskRecord("t", [], np.empty(0), space=space_of(one("max_features", (0, 25))))
    space = space_of(Categorical("max_features", choices))
    rows = [{"max_features": x} for x in recorded]
    found = aligned(space, *rows, records=[known], size=DataSize(100, 25))
    assert found.keep.all()
    assert [run["max_features"] for run in to_values(space, found.vectors)] == expected


def test_recorded_choices_of_counts_are_not_moved() -> None:
    """Of choices that were recorded as such, another one is not the nearest."""
    known = space_of(Categorical("max_features", [1, 2, 5, 10]))
    record = TaskRecord("t", [], np.empty(0), space=known)
    rows = [{"max_features": x} for x in (1, 2, 5, 10)]
    space = space_of(Categorical("max_features", [1, 5, 20]))
    found = aligned(space, *rows, records=[record], size=DataSize(100, 25))
    assert found.keep.tolist() == [True, False, True, False]


def test_counts_without_the_sizes_are_not_known() -> None:
    rows = [{"min_samples_leaf": n} for n in (5, 300)]
    vectors, keep, coverage, _ = aligned(leaves(0.01, 0.5, default=0.25), *rows)
    assert keep.all() and coverage.imputed == {"min_samples_leaf": 2} and not coverage.converted
    assert values(leaves(0.01, 0.5), vectors)[0] == {"min_samples_leaf": pytest.approx(0.25)}
    _, keep, coverage, _ = aligned(leaves(0.01, 0.5), *rows, {"min_samples_leaf": 0.1})
    assert keep.tolist() == [False, False, True] and coverage.dropped == {"min_samples_leaf": 2}


def test_converted_runs_go_to_other_frameworks() -> None:
    record = TaskRecord(
        "t",
        [{"min_samples_leaf": 5}, {"min_samples_leaf": 0.3}],
        np.array([0.1, 0.2]),
        meta_features={"NumberOfInstances": 1000.0},
    )
    with pytest.warns(UserWarning, match="converted between counts and fractions"):
        found = conform(record, leaves(0.0005, 0.5))
    assert [c["min_samples_leaf"] for c in found.configurations] == pytest.approx([0.005, 0.3])
    # 1 lies in the range of the fractions, and means one row
    with pytest.warns(UserWarning, match="converted"):
        found = conform(
            replace(record, configurations=[{"min_samples_leaf": 1}] * 2), leaves(0.0, 1.0)
        )
    assert [c["min_samples_leaf"] for c in found.configurations] == pytest.approx([0.001] * 2)


def test_the_nearest_choice_of_the_largest_numbers() -> None:
    choice = categorical("c", [math.inf, -math.inf, 0.0])
    found = np.array([math.inf, -1e308, 5.0, -math.inf])
    entries, outside, between = _place(choice, found)
    assert entries.tolist() == [0.0, 1.0, 2.0, 1.0] and not outside.any()
    assert between.tolist() == [False, True, True, False]


def test_runs_of_other_hyperparameters_alone_are_left_out() -> None:
    space = space_of(Float("lr", (0.001, 1.0), log=True, default=0.1))
    rows: list[dict[str, Any]] = [
        {"algorithm": "gb", "lr": 0.5},
        {"algorithm": "svm", "C": 2.0},
        {"algorithm": "svm", "C": 3.0, "lr": math.nan},  # a row of a data frame
        {"lr": None},  # a gap says nothing of the algorithm
        {},
    ]
    found = aligned(space, *rows)
    assert found.keep.tolist() == [True, False, False, True, True]
    assert found.coverage.n_unrelated == 2 and found.coverage.imputed == {"lr": 2}
    assert found.imputed[:, 0].tolist() == [False, False, False, True, True]
    assert "2 of another branch" in str(found.coverage)
    (note, imputed) = note_coverage([found.coverage])
    assert note.text == "2 of 5 recorded runs are left out because of another branch in 2."
    assert imputed.text == "lr is missing in 2 of 3 recorded runs and is imputed."
