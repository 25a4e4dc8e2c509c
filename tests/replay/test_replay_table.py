"""What a table answers: recorded runs exactly, everything else from the nearest one."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ConfigSpace import (
    Categorical,
    ConfigurationSpace,
    EqualsCondition,
    Float,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    Integer,
    NotEqualsCondition,
    OrdinalHyperparameter,
)

from automl_plugins.replay import Answer, Table

NAN = math.nan


def conditional_space() -> ConfigurationSpace:
    """A grid of 2 * 3 + 3 * 1 = 9 configurations: ``gamma`` belongs to the kernel rbf."""
    space = ConfigurationSpace()
    kernel = Categorical("kernel", ["linear", "rbf"])
    gamma = OrdinalHyperparameter("gamma", [0.1, 1.0])
    space.add(kernel, gamma, OrdinalHyperparameter("c", [1, 10, 100]))
    space.add(EqualsCondition(gamma, kernel, "rbf"))
    return space


def conditional_grid() -> list[dict[str, Any]]:
    rbf = [{"kernel": "rbf", "gamma": g, "c": c} for g in (0.1, 1.0) for c in (1, 10, 100)]
    return [{"kernel": "linear", "c": c} for c in (1, 10, 100)] + rbf


def line(values: list[float], **arguments: Any) -> Table:
    """One float in [0, 10]; the losses are the row numbers."""
    space = ConfigurationSpace({"x": (0.0, 10.0)})
    return Table("line", space, [{"x": v} for v in values], np.arange(len(values)), **arguments)


# --- exact answers --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda table: pickle.loads(pickle.dumps(table))]
)
def test_a_copy_of_a_table_answers_as_it_does(copied: Any) -> None:
    table = Table("svm", conditional_space(), conditional_grid()[1:], np.arange(8))
    known = {"kernel": "rbf", "gamma": 1.0, "c": 10}
    unknown = {"kernel": "linear", "c": 1}
    before = [table.find(known), table.find(unknown)]
    again = copied(table)
    assert [again.find(known), again.find(unknown)] == before
    assert again.find({**known, "kernel": "linear"}) == table.find({**known, "kernel": "linear"})
    with pytest.raises(ValueError, match="c=7 is not a value"):
        again.find({"kernel": "linear", "c": 7})


def test_every_configuration_of_a_complete_conditional_grid_is_its_own_answer() -> None:
    grid = conditional_grid()
    table = Table("svm", conditional_space(), grid, np.arange(9))
    assert table.complete
    assert len(table) == 9
    for row, config in enumerate(grid):
        assert table.find(config) == Answer(row, 0.0)
        assert table.config(row) == config


def test_a_grid_with_a_hole_is_not_complete() -> None:
    assert not Table("svm", conditional_space(), conditional_grid()[:-1], np.arange(8)).complete
    assert not line([1, 2, 3]).complete


def test_a_grid_without_what_is_forbidden_is_complete() -> None:
    space = ConfigurationSpace({"a": ["x", "y"], "b": ["x", "y"]})
    space.add(
        ForbiddenAndConjunction(
            ForbiddenEqualsClause(space["a"], "y"), ForbiddenEqualsClause(space["b"], "y")
        )
    )
    grid = [{"a": a, "b": b} for a, b in product("xy", repeat=2)]
    assert Table("t", space, grid[:-1], [1, 2, 3]).complete


def test_rows_that_are_no_configuration_do_not_make_a_grid_complete() -> None:
    grid = conditional_grid()
    gap = {"kernel": "rbf", "c": 1}  # without its gamma, in the place of the last row
    assert not Table("svm", conditional_space(), [*grid[:-1], gap], np.arange(9)).complete


def test_a_list_is_the_tuple_that_was_recorded() -> None:
    frame = pd.DataFrame({"layers": [(8, 8), (4, (2, None))], "loss": [1.0, 2.0]})
    table = Table.from_frame(frame, name="t", loss="loss")
    assert table.find({"layers": [8, 8]}) == table.find({"layers": (8, 8)}) == Answer(0, 0.0)
    assert table.find({"layers": [4, [2, None]]}) == Answer(1, 0.0)


def test_what_an_inactive_parent_makes_active_is_recorded() -> None:
    space = ConfigurationSpace()
    kernel = Categorical("kernel", ["linear", "rbf"], default="rbf")
    gamma = OrdinalHyperparameter("gamma", [0.1, 1.0], default_value=1.0)
    shift = OrdinalHyperparameter("shift", [0, 1])
    space.add(kernel, gamma, shift, OrdinalHyperparameter("c", [1, 10, 100]))
    space.add(EqualsCondition(gamma, kernel, "rbf"), NotEqualsCondition(shift, gamma, 0.1))
    linear = [{"kernel": "linear", "c": c, "shift": s} for c in (1, 10, 100) for s in (0, 1)]
    low = [{"kernel": "rbf", "gamma": 0.1, "c": c} for c in (1, 10, 100)]
    high = [{**v, "kernel": "rbf", "gamma": 1.0} for v in linear]
    table = Table("svm", space, grid := linear + low + high, np.arange(15))
    assert table.complete
    assert [table.find(config).row for config in grid] == [*range(15)]
    assert [table.config(row) for row in range(15)] == grid


def test_inactive_values_are_ignored_in_what_is_asked() -> None:
    table = Table("svm", conditional_space(), conditional_grid(), np.arange(9))
    for gamma in (0.1, 77.0, None, NAN):
        answer = table.find({"kernel": "linear", "c": 10, "gamma": gamma})
        assert answer == Answer(1, 0.0)


@pytest.mark.parametrize("absent", [None, NAN, np.float64("nan")])
def test_inactive_recorded_values_may_be_none_or_nan(absent: float | None) -> None:
    grid = [{**config, "gamma": config.get("gamma", absent)} for config in conditional_grid()]
    table = Table("svm", conditional_space(), grid, np.arange(9))
    assert table.complete
    assert table.config(0) == {"kernel": "linear", "c": 1}
    assert table.find({"kernel": "linear", "c": 100}) == Answer(2, 0.0)


# --- nearest answers ------------------------------------------------------------------------


def test_distances_are_those_of_the_scales() -> None:
    space = ConfigurationSpace()
    space.add(
        Float("rate", (1e-4, 1.0), log=True),
        Integer("n", (0, 10)),
        OrdinalHyperparameter("size", ["s", "m", "l", "xl", "xxl"]),
        Categorical("kind", ["a", "b", "c"]),
    )
    table = Table("t", space, [{"rate": 1e-4, "n": 0, "size": "s", "kind": "a"}], [1.0])
    base = table.config(0)
    # One decade of four; 3 of 10; two places of four; another category.
    for change, distance in (
        ({"rate": 1e-3}, 0.25),
        ({"n": 3}, 0.3),
        ({"size": "l"}, 0.5),
        ({"kind": "b"}, 1.0),
        ({"kind": "c"}, 1.0),
        ({"rate": 1e-2, "n": 10, "size": "xxl", "kind": "b"}, 3.5),
    ):
        answer = table.find({**base, **change})
        assert answer.row == 0
        assert answer.distance == pytest.approx(distance, abs=1e-12)


def test_inactive_numbers_count_as_the_low_end_and_inactive_categories_as_half() -> None:
    space = ConfigurationSpace()
    kernel = Categorical("kernel", ["linear", "rbf"])
    gamma, shape = Float("gamma", (0.0, 1.0)), Categorical("shape", ["u", "v"])
    space.add(kernel, gamma, shape)
    space.add(EqualsCondition(gamma, kernel, "rbf"), EqualsCondition(shape, kernel, "rbf"))
    table = Table("t", space, [{"kernel": "linear"}], [0.0])
    answer = table.find({"kernel": "rbf", "gamma": 0.25, "shape": "v"})
    assert answer.distance == pytest.approx(1 + 0.25 + 0.5)


def test_of_equally_near_runs_the_first_answers() -> None:
    for values in ([4.0, 6.0], [6.0, 4.0]):
        answer = line(values).find({"x": 5.0})
        assert answer.row == 0
        assert answer.distance == pytest.approx(0.1)


def _distance(one: Mapping[str, Any], two: Mapping[str, Any]) -> float:
    """Written out for ``_mixed_space``, without the package's code."""
    total: float = abs(math.log10(one["rate"]) - math.log10(two["rate"])) / 3
    total += abs(one["n"] - two["n"]) / 19
    order = ["low", "mid", "high"]
    total += abs(order.index(one["level"]) - order.index(two["level"])) / 2
    total += one["kind"] != two["kind"]
    total += abs(one.get("depth", 0.0) - two.get("depth", 0.0)) / 5
    hots: list[list[float]] = [[0.5 * (c.get("sub") == s) for s in "pqr"] for c in (one, two)]
    total += sum(abs(a - b) for a, b in zip(*hots, strict=True))
    return total


def _mixed_space() -> ConfigurationSpace:
    space = ConfigurationSpace()
    kind, depth = Categorical("kind", ["tree", "knn", "net"]), Float("depth", (0.0, 5.0))
    sub = Categorical("sub", ["p", "q", "r"])
    space.add(kind, depth, sub, Float("rate", (1e-3, 1.0), log=True), Integer("n", (1, 20)))
    space.add(OrdinalHyperparameter("level", ["low", "mid", "high"]))
    space.add(EqualsCondition(depth, kind, "tree"), EqualsCondition(sub, kind, "net"))
    return space


@pytest.mark.parametrize("seed", range(2))
def test_the_nearest_run_is_that_of_a_brute_force_search(seed: int) -> None:
    space = _mixed_space()
    space.seed(seed)
    rows = [dict(c) for c in space.sample_configuration(60)]
    table = Table("t", space, rows, np.arange(60))
    for configuration in space.sample_configuration(60):
        distances = [_distance(configuration, row) for row in rows]
        answer = table.find(configuration)
        assert answer.distance == pytest.approx(min(distances), abs=1e-12)
        assert distances[answer.row] == pytest.approx(min(distances), abs=1e-12)


# --- what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"kernel": "rbf", "c": 1}, "no value for gamma, which is active"),
        ({"kernel": "rbf", "c": 1, "gamma": NAN}, "no value for gamma, which is active"),
        ({"kernal": "rbf", "c": 1}, "no value for kernel"),
        ({"kernel": "poly", "c": 1}, "kernel='poly' is not a value"),
        ({"kernel": "linear", "c": 2}, "c=2 is not a value"),
        ({"kernel": "linear", "c": True}, "c=True is not a value"),
    ],
)
def test_illegal_questions_are_refused(config: dict[str, Any], message: str) -> None:
    table = Table("svm", conditional_space(), conditional_grid(), np.arange(9))
    with pytest.raises(ValueError, match=message):
        table.find(config)


def test_recorded_configurations_must_be_in_the_space() -> None:
    space = ConfigurationSpace({"x": (0.0, 1.0)})
    with pytest.raises(ValueError, match=r"'t', row 1: y not in the search space, which has x"):
        Table("t", space, [{"x": 0.0}, {"x": 1.0, "y": 2}], [0, 1])
    with pytest.raises(ValueError, match=r"'t', row 0: x=2.0 is not a value of"):
        Table("t", space, [{"x": 2.0}], [0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"losses": [1.0]}, r"losses must have shape \(2,\), got \(1,\)"),
        ({"losses": [[1.0, 2.0]]}, r"losses must have shape \(2,\), got \(1, 2\)"),
        ({"losses": [NAN, NAN]}, "no finite loss in 2 rows"),
        ({"losses": [NAN, math.inf]}, "no finite loss in 2 rows"),
        ({"seconds": [1.0, -1.0]}, r"seconds must be finite and >= 0, or NaN; row 1 has -1\.0"),
        ({"seconds": [math.inf, 1.0]}, "row 0 has inf"),
        ({"steps": (1,)}, "steps or curve_seconds but no curves"),
        ({"curve_seconds": [[1], [1]]}, "steps or curve_seconds but no curves"),
        ({"curves": [[1], [1]]}, "has curves but no steps"),
        ({"curves": [[1]], "steps": (1,)}, r"curves must have shape \(2, 1\), got \(1, 1\)"),
        ({"curves": [[1, 2], [1, 2]], "steps": (2, 1)}, "steps must ascend"),
        ({"curves": [[1, 2], [1, 2]], "steps": (1, 1)}, "steps must ascend"),
        ({"curves": [[1], [1]], "steps": (NAN,)}, "steps must ascend and be finite"),
        ({"curves": [[1, 2], [1, 2]], "steps": (1, math.inf)}, "steps must ascend and be finite"),
        (
            {"curves": [[1, 2], [1, 2]], "steps": (1, 2), "curve_seconds": [[1], [2]]},
            r"curve_seconds must have shape \(2, 2\), got \(2, 1\)",
        ),
        (
            {"curves": [[1, 2], [1, 2]], "steps": (1, 2), "curve_seconds": [[1, 2], [1, -2]]},
            r"curve_seconds must be finite and >= 0, or NaN; row 1 has -2",
        ),
        ({"seconds": [1.0, 2.0, 3.0]}, r"'t': seconds must have shape \(2,\), got \(3,\)"),
        ({"seconds": [[1.0], [2.0]]}, r"'t': seconds must have shape \(2,\), got \(2, 1\)"),
        (
            {"losses": np.array([1.0 + 5.0j, 2.0])},
            "losses must be numbers, .*complex numbers have no",
        ),
        ({"losses": [1.0, "low"]}, "Table 't': losses must be numbers, .*'low'"),
        ({"seconds": ["long", 2.0]}, "Table 't': seconds must be numbers, .*'long'"),
    ],
)
def test_measurements_that_do_not_fit_are_refused(arguments: Any, message: str) -> None:
    space = ConfigurationSpace({"x": (0.0, 1.0)})
    arguments = {"losses": [1.0, 2.0], **arguments}
    with pytest.raises(ValueError, match=message):
        Table("t", space, [{"x": 0.0}, {"x": 1.0}], **arguments)
    runs: Any = [{"x": 0.0}, 1.0]
    with pytest.raises(TypeError, match=r"'t': configurations are values by name.*row 1 has 1\.0"):
        Table("t", space, runs, **arguments)
    bare = pd.DataFrame({"loss": [1.0, 3.0]})
    with pytest.raises(ValueError, match=r"'t': rows 0 and 1 record one configuration, \{\}"):
        Table.from_frame(bare, name="t", loss="loss")
    assert Table.from_frame(bare, name="t", loss="loss", repeats="mean").losses.tolist() == [2.0]


# --- what it knows --------------------------------------------------------------------------


def test_best_and_worst_are_finite() -> None:
    space = ConfigurationSpace({"x": (0.0, 10.0)})
    losses = [NAN, 3.0, -math.inf, 5.0, math.inf]
    table = Table("t", space, [{"x": float(i)} for i in range(5)], losses)
    assert (table.best, table.worst) == (3.0, 5.0)


def test_seconds_are_spread_evenly_over_the_steps() -> None:
    table = line([1.0, 2.0], seconds=8.0, curves=[[3, 2], [3, 2]], steps=(1, 4))
    assert table.steps == (1.0, 4.0)
    np.testing.assert_array_equal(table.seconds, [8.0, 8.0])
    np.testing.assert_array_equal(table.curve_seconds, [[2.0, 8.0], [2.0, 8.0]])


@pytest.mark.parametrize(
    ("steps", "seconds"),
    [((0, 1, 2, 3), [2, 4, 6, 8]), ((-3, -2, 0), [2, 4, 8]), ((-1, 1, 2), [3.2, 6.4, 8])],
)
def test_the_first_step_takes_seconds_though_it_is_numbered_0(
    steps: tuple[float, ...], seconds: list[float]
) -> None:
    """It would be free else, and what is pruned there would never use up a budget."""
    table = line([1.0], seconds=8.0, curves=[[3.0] * len(steps)], steps=steps)
    assert table.curve_seconds is not None
    np.testing.assert_allclose(table.curve_seconds[0], seconds)
    alone = line([1.0], seconds=8.0, curves=[[3.0]], steps=steps[:1])
    np.testing.assert_array_equal(alone.curve_seconds, [[8.0]])


def test_a_table_keeps_its_own_copies() -> None:
    losses, seconds = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    space = ConfigurationSpace({"x": (0.0, 1.0)})
    table = Table("t", space, [{"x": 0.0}, {"x": 1.0}], losses, seconds=seconds)
    losses[:], seconds[:] = 0, 0
    assert table.seconds is not None
    assert (table.losses.tolist(), table.seconds.tolist()) == ([1, 2], [3, 4])


def test_other_losses_on_the_same_configurations() -> None:
    table = line([1.0, 2.0], seconds=1.0, curves=[[3], [3]], steps=(1,))
    other = table.with_losses("other", [5.0, NAN], seconds=[1.0, 2.0])
    assert (other.name, other.best, other.worst, len(other)) == ("other", 5.0, 5.0, 2)
    assert other.seconds is not None
    assert other.seconds.tolist() == [1.0, 2.0]
    assert (other.curves, other.curve_seconds, other.steps) == (None, None, ())
    assert other.find({"x": 1.9}).row == 1
    # The table that it came from is as it was.
    assert (table.name, table.losses.tolist(), table.steps) == ("line", [0.0, 1.0], (1.0,))
    assert table.with_losses("bare", [0.0, 1.0]).seconds is None
    with pytest.raises(ValueError, match=r"'short': losses must have shape"):
        table.with_losses("short", [1.0])


def test_notes_on_other_losses_are_left_out() -> None:
    space = ConfigurationSpace({"x": (0.0, 1.0)})
    configs = [{"x": 0.1}, {"x": 0.2}]
    table = Table("t", space, configs, [1, 2], seconds=[1.0, NAN], notes=["of the space"])
    assert len(table.notes) == 2
    assert table.with_losses("u", [1, 2], seconds=[1.0, 1.0]).notes == ("of the space",)
    other = table.with_losses("u", [1, 2], seconds=[NAN, 3.0])
    assert other.notes[1:] == (
        "1 of 2 runs have no seconds: they take 3 s, the median of the others.",
    )
    assert other.with_losses("v", [1, 2]).notes == ("of the space",)
    assert len(table.notes) == 2


def test_unknown_seconds_of_curves_are_those_of_the_run() -> None:
    """They would be free else, and a budget of seconds would never end."""
    losses = [[3.0, 2.0], [3.0, NAN]]
    spent = [[1.0, NAN], [NAN, NAN]]
    table = line([1.0, 2.0], seconds=[8.0, 4.0], curves=losses, steps=(1, 4), curve_seconds=spent)
    np.testing.assert_array_equal(table.curve_seconds, [[1.0, 8.0], [1.0, 4.0]])
    (note,) = [note for note in table.notes if "curves" in note]
    assert note.startswith("2 of 3 losses of curves have no seconds")
    untimed = line([1.0, 2.0], curves=losses, steps=(1, 4), curve_seconds=spent)
    np.testing.assert_array_equal(untimed.curve_seconds, [[1.0, 1.0], [0.25, 1.0]])
    known = line([1.0, 2.0], curves=losses, steps=(1, 4), curve_seconds=[[1, 2], [1, NAN]])
    assert not [note for note in known.notes if "curves" in note]  # no loss was there
