"""The rules that hold for every trial, and columns that grow."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest

from automl_plugins.records.history import History
from automl_plugins.records.trial import (
    MOST_RUNNING,
    Columns,
    Status,
    Trial,
    as_number,
    as_seconds,
    finite_or_none,
    in_order,
    known_times,
    note_outcome,
    oldest_running,
    read_outcome,
    unix_time,
)

COMPLETE, PRUNED, FAILED, RUNNING = Status
NO_NUMBERS: list[Any] = [None, "1.5", b"1", True, np.True_, {}, [1.0], 10**400]


@pytest.mark.parametrize("loss", [math.inf, -math.inf, math.nan])
def test_what_has_no_loss_has_failed(loss: float) -> None:
    assert Trial({}, COMPLETE, loss).status == FAILED
    assert Trial({}, PRUNED, loss).status == PRUNED
    for status in Status:
        assert math.isnan(Trial({}, status, loss).loss)


def test_failed_and_running_trials_have_no_loss() -> None:
    losses = [Trial({}, status, 1.0).loss for status in Status]
    np.testing.assert_array_equal(losses, [1.0, 1.0, math.nan, math.nan])


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.inf, math.nan, 1e19])
def test_what_is_no_duration_is_unknown(seconds: float) -> None:
    assert math.isnan(Trial({}, COMPLETE, 1.0, seconds).seconds)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, 1.0),
        (np.float32(0.5), 0.5),
        (np.array(2.0), 2.0),
        (-math.inf, -math.inf),
        *((wrong, math.nan) for wrong in NO_NUMBERS),
    ],
)
def test_numbers(value: Any, expected: float) -> None:
    np.testing.assert_array_equal(as_number(value), expected)
    assert finite_or_none(value) == (expected if math.isfinite(expected) else None)


@pytest.mark.parametrize(
    ("status", "loss", "budget"),
    [
        (PRUNED, 0.5, math.nan),
        (PRUNED, math.nan, 3.0),
        (COMPLETE, 0.5, 1.0),
        (FAILED, math.nan, 1.0),
    ],
)
def test_outcomes_that_frameworks_lack_are_noted(
    status: Status, loss: float, budget: float
) -> None:
    note = json.loads(json.dumps(note_outcome(status, loss, budget), allow_nan=False))
    np.testing.assert_array_equal(read_outcome(note), (status, loss, budget))


def test_outcomes_in_full_need_no_note() -> None:
    assert note_outcome(COMPLETE, 0.5, math.nan) == note_outcome(FAILED, 0.0, math.nan) == {}


@pytest.mark.parametrize("status", [int(RUNNING), True, False, None, "1", "?", 1.5, -1, 4, []])
def test_what_is_no_finished_outcome_is_ignored(status: Any) -> None:
    assert read_outcome({"status": status, "loss": 0.5, "budget": None}) is None
    assert read_outcome(None) is read_outcome({}) is read_outcome([status]) is None


def test_the_first_duration_counts() -> None:
    assert as_seconds(None, "3", 0.0, -1.0, math.inf, 2.5, 7.0) == 2.5
    assert math.isnan(as_seconds())


@pytest.fixture
def in_tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Local time is nine hours ahead of UTC."""
    monkeypatch.setenv("TZ", "JST-9")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("in_tokyo")
def test_times() -> None:
    moment = datetime(2020, 1, 2, 3)
    assert unix_time(moment) == moment.replace(tzinfo=UTC).timestamp()
    assert unix_time(moment, local=True) == unix_time(moment) - 9 * 3600
    abroad = moment.replace(tzinfo=timezone(timedelta(hours=2)))
    assert unix_time(abroad, local=True) == unix_time(abroad) == unix_time(moment) - 2 * 3600
    # Simulated clocks have no daylight saving time.
    assert unix_time(datetime(2000, 7, 1), local=True) == unix_time(datetime(2000, 7, 1))
    assert math.isnan(unix_time(None)) and math.isnan(unix_time("2020-01-02"))
    times = known_times(np.array([unix_time(datetime(2000, 1, 1)), 2e9, math.nan]))
    np.testing.assert_array_equal(times, [math.nan, 2e9, math.nan])


def test_statuses_are_words() -> None:
    status: Any = Status
    assert [str(s) for s in Status] == ["complete", "pruned", "failed", "running"]
    assert [status(str(s)) for s in Status] == list(Status)
    with pytest.raises(ValueError, match="'gone'"):
        status("gone")
    word: Any = "failed"
    failed = Trial({}, word, 0.5)
    assert failed.status is FAILED and math.isnan(failed.loss)
    wrong: Any = "gone"
    with pytest.raises(ValueError, match="'gone'"):
        Trial({}, wrong)


def trials() -> list[Trial]:
    """In their order."""
    return [
        Trial({}, FAILED, number=4),
        Trial({}, COMPLETE, 5.0, number=7),
        Trial({}, COMPLETE, 3.0, 2.0, number=2, ended=10.0, constraints={"b": 1.0}),
        Trial({}, PRUNED, 2.0, curve={1.0: 4.0, 3.0: 2.0}, number=0, ended=11.0),
        Trial({}, COMPLETE, 1.0, step=3.0, number=1, ended=11.0, constraints={"a": -1.0}),
        Trial({}, RUNNING, number=3, ended=1.0),
        Trial({}, RUNNING, number=5),
    ]


def test_the_order_is_that_of_the_ends() -> None:
    given = trials()  # the same objects: from Python 3.13 on a NaN makes a trial unlike its copy
    assert in_order(reversed(given)) == given
    assert [t.number for t in given] == [4, 7, 2, 0, 1, 3, 5]


@pytest.mark.parametrize("cuts", [(7,), (3, 7), (1, 2, 3, 4, 5, 6, 7)])
@pytest.mark.parametrize("reverse", [False, True])
def test_growing_columns_are_those_read_at_once(cuts: tuple[int, ...], reverse: bool) -> None:
    given = trials()[::-1] if reverse else trials()
    columns, begin = Columns[Trial](), 0
    for end in cuts:
        columns.facts("loss"), columns.constraint("a")  # known, so they grow
        before = list(columns)
        longer = columns.extended(given[begin:end])
        assert list(columns) == before
        columns, begin = longer, end
    np.testing.assert_array_equal(columns.facts("number"), [4, 7, 2, 0, 1, 3, 5])
    np.testing.assert_array_equal(columns.facts("loss")[:5], [math.nan, 5.0, 3.0, 2.0, 1.0])
    np.testing.assert_array_equal(columns.constraint("a")[3:], [math.nan, -1.0] + [math.nan] * 2)
    assert columns.numbers == {0, 1, 2, 3, 4, 5, 7} and columns.constraint_names == {"a", "b"}


def test_a_history_of_trials_by_hand() -> None:
    given = trials()
    finished, running = Columns(given[:5]), Columns(given[5:])
    history = History.of_trials(finished, running, vectors=np.arange(14.0).reshape(7, 2))
    assert history.number.tolist() == [4, 7, 2, 0, 1, 3, 5]
    # A complete trial at a lower budget cannot stand beside those in full.
    assert history.status.tolist() == [
        FAILED,
        COMPLETE,
        COMPLETE,
        PRUNED,
        PRUNED,
        RUNNING,
        RUNNING,
    ]
    nan = math.nan
    np.testing.assert_array_equal(history.budget, [nan, nan, nan, 3, 3, nan, nan])
    np.testing.assert_array_equal(history.seconds, [nan, nan, 2, nan, nan, nan, nan])
    np.testing.assert_array_equal(history.constraints[2:5], [[nan, 1], [nan, nan], [-1, nan]])
    assert History.of_trials(Columns[Trial](), vectors=np.empty((0, 2))).constraints.shape == (
        0,
        0,
    )


def test_running_trials_of_dead_workers() -> None:
    rng = np.random.default_rng(0)
    assert oldest_running(np.array([], dtype=np.int64)) == -math.inf
    assert oldest_running(np.arange(MOST_RUNNING - 1)) == -math.inf
    finished = rng.permutation(np.arange(10, 10 + 2 * MOST_RUNNING))
    oldest = oldest_running(finished)
    for number in (0, 9 + MOST_RUNNING, 10 + MOST_RUNNING, 400):
        later = int((finished > number).sum())
        assert (number < oldest) == (later >= MOST_RUNNING)
