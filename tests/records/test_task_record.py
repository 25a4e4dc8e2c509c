"""What is remembered of one task."""

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ConfigSpace import ConfigurationSpace

from automl_plugins.frameworks import TrialStatus
from automl_plugins.meta import MetaDataset, TaskRecord
from automl_plugins.records.search import RecordedTrial
from automl_plugins.records.trial import Status


def test_columns_that_are_not_given_are_unknown() -> None:
    record = TaskRecord("t", [{"x": 1}, {"x": 2}], np.array([0.5, np.nan]))
    assert record.status.tolist() == [Status.COMPLETE, Status.FAILED]
    assert np.isnan(record.seconds).all() and np.isnan(record.budget).all()
    assert np.isnan(record.times).all()


def test_zero_seconds_are_unknown() -> None:
    record = TaskRecord(
        "t", [{"x": i} for i in range(3)], np.zeros(3), seconds=np.array([0, 1, 0])
    )
    np.testing.assert_array_equal(record.seconds, [np.nan, 1.0, np.nan])
    space = ConfigurationSpace({"x": (0, 2)})
    memory = MetaDataset.from_records([record], space)
    np.testing.assert_array_equal(memory.seconds, record.seconds)
    direct = dataclasses.replace(memory, seconds=np.array([0.0, 2.0, np.nan]))
    np.testing.assert_array_equal(direct.seconds, [np.nan, 2.0, np.nan])


@pytest.mark.parametrize("loss", [np.inf, -np.inf, np.nan])
def test_a_complete_run_without_a_finite_loss_has_failed(loss: float) -> None:
    record = TaskRecord("t", [{}], np.array([loss]), status=np.array([Status.COMPLETE]))
    assert record.status.tolist() == [Status.FAILED]
    assert np.isnan(record.losses).all()


def test_a_pruned_run_keeps_its_last_loss() -> None:
    record = TaskRecord("t", [{}], np.array([0.7]), status=np.array([Status.PRUNED]))
    assert record.losses.tolist() == [0.7]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"losses": np.zeros(3)}, "losses must have shape"),
        ({"losses": []}, r"losses must have shape \(2,\), got \(0,\)"),
        ({"losses": [0.5, "low"]}, "losses must be numbers, .*'low'"),
        ({"losses": [0.5, 10**400]}, "losses must be numbers, .*too large"),
        ({"seconds": np.array([1.0, -1.0])}, "seconds must be finite and >= 0, or NaN; row 1"),
        ({"seconds": np.array([1.0, np.inf])}, "seconds must be finite"),
        ({"status": np.array([0, Status.RUNNING])}, "status must be COMPLETE, PRUNED or FAILED"),
    ],
)
def test_wrong_columns_are_named(columns: dict[str, np.ndarray], message: str) -> None:
    given = {"losses": np.zeros(2), **columns}
    with pytest.raises(ValueError, match=f"Task 'glass': {message}"):
        TaskRecord("glass", [{}, {}], **given)  # type: ignore[arg-type]


def test_configurations_are_values_by_name() -> None:
    with pytest.raises(TypeError, match=r"Task 'a': .* such as .*; row 1 has \[1.0\]"):
        TaskRecord("a", [{"C": 1.0}, [1.0]], np.zeros(2))  # type: ignore[list-item]


def test_trials_become_a_record() -> None:
    trials = [
        RecordedTrial({"x": 0.1}, TrialStatus.COMPLETE, 1.5, seconds=2.0),
        RecordedTrial({"x": 0.2}, TrialStatus.PRUNED, 1.0, curve={1.0: 2.0, 4.0: 1.0}),
        RecordedTrial({"x": 0.3}, TrialStatus.FAILED, np.nan),
        RecordedTrial({"x": 0.4}, TrialStatus.COMPLETE, 0.5, step=3.0),
        RecordedTrial({"x": 0.5}, TrialStatus.COMPLETE, 0.1, constraints={"c": 1.0}),
        RecordedTrial({"x": 0.6}, TrialStatus.COMPLETE, 0.2, constraints={"c": np.nan}),
    ]
    record = TaskRecord.of("wine", trials, framework="optuna", seed=7)
    assert record.name == "wine" and record.seed == 7 and record.framework == "optuna"
    np.testing.assert_array_equal(record.losses, [1.5, 1.0, np.nan, 0.5, np.nan, 0.2])
    np.testing.assert_array_equal(record.budget, [np.nan, 4.0, np.nan, 3.0, np.nan, np.nan])
    assert record.status.tolist() == [0, 1, 2, 0, 2, 0]


def test_a_frame_becomes_a_record() -> None:
    frame = pd.DataFrame(
        {"kernel": ["rbf", "linear"], "gamma": [0.1, None], "score": [0.9, None], "t": [1.0, 2.0]}
    )
    record = TaskRecord.from_frame(frame, name="a", loss="score", seconds="t", maximize=True)
    assert record.configurations == [{"kernel": "rbf", "gamma": 0.1}, {"kernel": "linear"}]
    np.testing.assert_array_equal(record.losses, [-0.9, np.nan])
    assert record.seconds.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="no column 'loss'; it has kernel"):
        TaskRecord.from_frame(frame, name="a", loss="loss")
    with pytest.raises(ValueError, match=r"Column 'kernel' must be numbers, .*'rbf'"):
        TaskRecord.from_frame(frame, name="a", loss="kernel")
    whole = frame.assign(score=pd.array([1, None], dtype="Int64"))
    np.testing.assert_array_equal(
        TaskRecord.from_frame(whole, name="a", loss="score").losses, [1.0, np.nan]
    )


@pytest.mark.parametrize("dtype", ["float32", "float16", "Float32"])
def test_a_narrow_float_of_a_frame_is_the_number_it_prints(dtype: str) -> None:
    frame = pd.DataFrame({"x": pd.Series([0.1, None], dtype=dtype), "loss": [1.0, 2.0]})
    categories = dtype != "float16"  # pandas has none of these
    for given in [frame, *([frame.astype({"x": "category"})] if categories else [])]:
        record = TaskRecord.from_frame(given, name="a", loss="loss")
        assert record.configurations == [{"x": 0.1}, {}]


def test_durations_of_a_frame_become_seconds() -> None:
    times = pd.to_timedelta([1.5, None, 120], unit="s")
    frame = pd.DataFrame({"x": [1, 2, 3], "loss": [3.0, 2.0, 1.0], "t": times})
    for unit in ("ns", "us", "ms"):
        given = frame.astype({"t": f"timedelta64[{unit}]"})
        record = TaskRecord.from_frame(given, name="a", loss="loss", seconds="t")
        np.testing.assert_array_equal(record.seconds, [1.5, np.nan, 120.0])
    dated = frame.assign(t=pd.Timestamp("2026-01-01"))
    with pytest.raises(ValueError, match="Column 't' has dates; subtract"):
        TaskRecord.from_frame(dated, name="a", loss="loss", seconds="t")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"frame": "runs.csv"}, TypeError, "frame must be a data frame, .*got 'runs.csv'"),
        ({"name": 3}, TypeError, "name must be the task's name, a text, got 3"),
        ({"maximize": "no"}, TypeError, "maximize must be True or False, got 'no'"),
        ({"parameters": "x"}, TypeError, r"parameters must be names of columns: \['x'\]"),
        (
            {"parameters": ["x", "loss"]},
            ValueError,
            "'loss' cannot be both a hyperparameter and a",
        ),
        ({"loss": "z"}, ValueError, "Column 'z' must be numbers, .*complex numbers have no order"),
        ({"loss": "large"}, ValueError, "Column 'large' must be numbers, .*too large"),
        ({"loss": "text"}, ValueError, r"0,1.*; pandas\.to_numeric\(frame\['text'\], errors='coe"),
        (
            {"frame": pd.DataFrame([[1, 2, 3]], columns=["x", "x", "loss"])},
            ValueError,
            "The frame has more than one column 'x'",
        ),
        (
            {"frame": pd.DataFrame([[1, 2, 3]], columns=[1, "1", "loss"])},
            ValueError,
            "The frame has more than one column '1'",
        ),
    ],
)
def test_what_is_no_frame_of_runs_is_refused(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    frame = pd.DataFrame({"x": [1, 2], "loss": [3.0, 2.0], "text": ["0,1", "2"]})
    frame["z"] = [1.0 + 5.0j, 2.0]
    frame["large"] = pd.Series([10**400, 1], dtype=object)  # pandas 2 makes floats of a list
    given: dict[str, Any] = {"frame": frame, "name": "a", "loss": "loss", **arguments}
    with pytest.raises(error, match=message):
        TaskRecord.from_frame(**given)


@pytest.mark.parametrize(
    "given",
    [{"space": {"x": (0.0, 1.0)}}, {"meta_features": None}, {"tags": None}, {"tags": ["a"]}],
)
def test_facts_of_another_kind_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=f"Task 't': {next(iter(given))} takes "):
        TaskRecord("t", [{"x": 0.1}], np.ones(1), **given)


@pytest.mark.filterwarnings("error")
def test_sparse_columns_are_read_as_others() -> None:
    sparse: dict[str, Any] = {"x": [0.0, 1.5], "k": [0, 1], "b": [False, True]}
    frame = pd.DataFrame({n: pd.arrays.SparseArray(v) for n, v in sparse.items()})
    frame["loss"] = [1.0, 2.0]
    found = TaskRecord.from_frame(frame, name="t", loss="loss").configurations
    assert found == [{"x": 0.0, "k": 0, "b": False}, {"x": 1.5, "k": 1, "b": True}]
    assert [type(v) for v in found[1].values()] == [float, int, bool]


def test_a_description_is_added() -> None:
    record = TaskRecord("t", [{}], np.zeros(1), tags={"a": "b"})
    described = record.described(meta_features={"n": 3.0})
    assert described.meta_features == {"n": 3.0} and described.tags == {"a": "b"}
    assert record.meta_features == {}
