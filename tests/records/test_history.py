"""History: what it holds, what it refuses, and that a prefix is the history of that time."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest

from automl_plugins.arrays import FARTHEST
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status

NAN, INF = float("nan"), float("inf")

COLUMNS = tuple(field.name for field in dataclasses.fields(History))


def three(**columns: Any) -> History:
    """Return a history of three rows, numbered 10, 20 and 30, with some columns replaced."""
    given: dict[str, Any] = {
        "vectors": [[0.1, NAN], [0.2, 0.5], [0.3, 1.0]],
        "losses": [3.0, 1.0, 2.0],
        "number": [10, 20, 30],
        **columns,
    }
    return History.of(given.pop("vectors"), given.pop("losses"), **given)


def mixed(n: int, seed: int = 0) -> History:
    """Return a history with rows of every status, the last two of them running."""
    rng = np.random.default_rng(seed)
    status = rng.integers(3, size=n)
    status[-2:] = Status.RUNNING
    losses = np.where(status == Status.FAILED, NAN, rng.normal(size=n))
    return History.of(
        rng.random((n, 3)),
        losses,
        seconds=rng.random(n),
        status=status,
        number=rng.permutation(100)[:n],
        budget=rng.integers(5, size=n),
        constraints=rng.normal(size=(n, 2)),
        missing=rng.random((n, 3)) < 0.1,
    )


# Construction


def test_columns_that_are_not_given() -> None:
    history = History.of([[0.1], [0.2]], [1, 2])
    np.testing.assert_array_equal(history.number, [0, 1])
    np.testing.assert_array_equal(history.status, [Status.COMPLETE] * 2)
    np.testing.assert_array_equal(history.seconds, [NAN, NAN])
    np.testing.assert_array_equal(history.budget, [NAN, NAN])
    assert history.constraints.shape == (2, 0)
    np.testing.assert_array_equal(history.missing, [[False], [False]])
    assert history.feasible.all()
    assert len(history) == history.n_finished == 2


def test_a_history_can_be_copied_and_pickled() -> None:
    history = History.of([[0.1], [0.2]], [1, 2])
    for other in (copy.deepcopy(history), pickle.loads(pickle.dumps(history))):
        for name in COLUMNS:
            np.testing.assert_array_equal(getattr(other, name), getattr(history, name))


def test_zero_seconds_are_unknown() -> None:
    given = np.array([0.0, 1.5, 0.0])
    history = three(seconds=given, status=[0, 1, 3])
    np.testing.assert_array_equal(history.seconds, [NAN, 1.5, NAN])
    np.testing.assert_array_equal(history.first(2).seconds, [NAN, 1.5])
    assert given[0] == 0.0  # the caller's own column is as it was


def test_empty() -> None:
    history = History.of(np.empty((0, 4)), [])
    assert len(history) == history.n_finished == 0
    assert history.feasible.shape == (0,)
    assert len(history.first(0)) == len(history.first(5)) == 0


def test_unknown_values_are_legal_where_they_may_be_unknown() -> None:
    history = three(
        losses=[NAN, NAN, NAN],
        status=[Status.PRUNED, Status.FAILED, Status.RUNNING],
        seconds=[1e-9, NAN, 1e9],
        constraints=[[NAN], [NAN], [1.0]],
        budget=[NAN, 3.0, -1.0],
    )
    assert len(history) == 3


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"vectors": [0.1, 0.2, 0.3]}, r"vectors must have shape \(3, d\), got \(3,\)\."),
        ({"number": [1, 2]}, r"vectors must have shape \(2, d\), got \(3, 2\)\."),
        ({"losses": [1.0, 2.0]}, r"losses must have shape \(3,\), got \(2,\)\."),
        ({"losses": [[1.0], [2.0], [3.0]]}, r"losses must have shape \(3,\), got \(3, 1\)\."),
        ({"seconds": [1.0]}, r"seconds must have shape \(3,\), got \(1,\)\."),
        ({"status": [0, 0, 0, 0]}, r"status must have shape \(3,\), got \(4,\)\."),
        ({"budget": 1.0}, r"budget must have shape \(3,\), got \(\)\."),
        ({"constraints": [1.0, 2.0, 3.0]}, r"constraints must have shape \(3, c\), got \(3,\)\."),
        ({"constraints": [[1.0]]}, r"constraints must have shape \(3, c\), got \(1, 1\)\."),
        (
            {"missing": [[True], [True], [True]]},
            r"missing must have shape \(3, 2\), got \(3, 1\)\.",
        ),
        (
            {"vectors": [[0.1, 0.2], [0.3, INF], [-INF, 0.0]]},
            r"vectors must be finite or NaN; row 1 has inf\.",
        ),
        (
            {"losses": [0.0, 1.0, INF]},
            r"losses must be finite or NaN \(clip infinities\); row 2 has inf\.",
        ),
        ({"losses": [-INF, 1.0, 2.0]}, r"losses must be finite .* row 0 has -inf\."),
        (
            {"losses": [0.0, NAN, 1.0]},
            r"losses of a COMPLETE row must be known; row 1 has nan\.",
        ),
        (
            {"seconds": [NAN, 0.0, -1e-9]},
            r"seconds must be finite and >= 0, or NaN; row 2 has -1e-09\.",
        ),
        (
            {"seconds": [-INF, 0.0, 0.0]},
            r"seconds must be finite and >= 0, or NaN; row 0 has -inf",
        ),
        ({"seconds": [0.0, INF, INF]}, r"seconds must be finite and >= 0, or NaN; row 1 has inf"),
        ({"status": [0, 4, 9]}, r"status must be a Status; row 1 has 4\."),
        ({"status": [-1, 0, 0]}, r"status must be a Status; row 0 has -1\."),
        ({"status": [0, 3, 0]}, r"RUNNING row must come last; row 1 has 3\."),
        ({"status": [3, 3, 1]}, r"RUNNING row must come last; row 1 has 3\."),
        ({"number": [1, 2, 1]}, r"number must be unique; row 2 has 1\."),
    ],
)
def test_what_is_refused(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        three(**columns)


# Prefixes


@pytest.mark.parametrize("n", [0, 1, 7, 18, 20, 99])
def test_first_rows_are_the_history_of_that_time(n: int) -> None:
    history = mixed(20)
    prefix = history.first(n)
    assert len(prefix) == min(n, 20)
    then = History(**{name: getattr(history, name)[:n] for name in COLUMNS})  # validated
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(prefix, name), getattr(then, name))
        assert getattr(prefix, name).dtype == getattr(history, name).dtype
    assert prefix.n_finished == then.n_finished
    np.testing.assert_array_equal(prefix.feasible, then.feasible)


# Facts


def test_feasible_by_hand() -> None:
    history = three(constraints=[[0.0, -1.0], [1e-300, -1.0], [NAN, 0.0]])
    np.testing.assert_array_equal(history.feasible, [True, False, True])
    history = three(constraints=[[NAN, NAN], [NAN, 1.0], [-INF, INF]])
    np.testing.assert_array_equal(history.feasible, [True, False, False])


def test_values_of_an_old_range_are_moved_to_where_they_can_be_reckoned_with() -> None:
    history = three(vectors=[[1e210, NAN], [-1e300, 0.5], [0.3, 7.0]])
    np.testing.assert_array_equal(history.vectors, [[FARTHEST, NAN], [-FARTHEST, 0.5], [0.3, 7.0]])
