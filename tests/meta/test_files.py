"""Files of recorded runs: exact, compact, all or nothing."""

from __future__ import annotations

import json
import lzma
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ConfigSpace import (
    Beta,
    Categorical,
    ConfigurationSpace,
    Constant,
    EqualsCondition,
    Float,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    InCondition,
    Integer,
    Normal,
    OrConjunction,
)
from hypothesis import given
from hypothesis import strategies as st

from automl_plugins.meta import TaskRecord
from automl_plugins.meta.files import VERSION, read_records, write_records
from automl_plugins.records.trial import Status

finite = st.floats(allow_nan=False, allow_infinity=False)
values = st.one_of(finite, st.integers(), st.booleans(), st.none(), st.text())


def exact(value: Any) -> Any:
    """What tells 1, 1.0, True, 0.0 and -0.0 apart."""
    return type(value), struct.pack("<d", value) if isinstance(value, float) else value


def exactly(record: TaskRecord) -> list[dict[str, Any]]:
    return [{k: exact(v) for k, v in c.items()} for c in record.configurations]


def assert_same(left: TaskRecord, right: TaskRecord) -> None:
    assert exactly(left) == exactly(right)
    for name in ("losses", "seconds", "budget", "times"):
        found = getattr(right, name)
        np.testing.assert_array_equal(getattr(left, name), found)
        np.testing.assert_array_equal(np.signbit(getattr(left, name)), np.signbit(found))
    assert left.status.tolist() == right.status.tolist()
    for name in ("name", "space", "meta_features", "tags", "framework", "seed"):
        assert repr(getattr(left, name)) == repr(getattr(right, name)), name


def full_space() -> ConfigurationSpace:
    space = ConfigurationSpace("full")
    kind = Categorical("kind", ["a", True, 1.5, None, 3], weights=[1, 2, 3, 4, 5])
    number = Integer("number", (1, 50), log=True)
    gamma = Float("gamma", (1e-5, 8.123), log=True, meta={"unit": "1"})
    space.add(kind, number, gamma, Constant("fixed", "x"))
    space.add(Categorical("order", [1, 2, 4, 8], ordered=True))
    space.add(Float("normal", (0.1, 10), distribution=Normal(1, 2), default=0.3))
    space.add(Integer("beta", (1, 9), distribution=Beta(1.5, 2)))
    space.add(
        OrConjunction(InCondition(gamma, kind, ["a", 1.5]), EqualsCondition(gamma, number, 3))
    )
    space.add(
        ForbiddenAndConjunction(ForbiddenEqualsClause(number, 2), ForbiddenEqualsClause(kind, 3))
    )
    return space


def record(name: str = "iris", **changes: Any) -> TaskRecord:
    given: dict[str, Any] = {
        "configurations": [{"x": 1, "kind": "a"}, {"x": 1.0}, {"x": 1, "kind": "a"}, {}],
        "losses": np.array([0.1, np.nan, 1 / 3, -0.0]),
        "seconds": np.array([1.0, 2.0, np.nan, 0.0]),
        "status": np.array([Status.COMPLETE, Status.FAILED, Status.PRUNED, Status.COMPLETE]),
        "budget": np.array([np.nan, np.nan, 3.0, np.nan]),
        "times": np.array([1.7e9, np.nan, 1.7e9 + 1e-6, 0.0]),
        "space": full_space(),
        "meta_features": {"NumberOfInstances": 150.0, "Skewness": np.nan},
        "tags": {"source": "été"},
        "framework": "optuna",
        "seed": 2**70,
    }
    return TaskRecord(name, **given | changes)


@pytest.mark.parametrize("name", ["runs.json", "runs.json.xz"])
def test_everything_comes_back(tmp_path: Path, name: str) -> None:
    empty = TaskRecord("empty", [], np.empty(0), meta_features={"n": 1.0})
    records = [record(), record("wine", space=None, seed=None), empty]
    write_records(tmp_path / name, records)
    found = read_records(tmp_path / name)
    assert len(found) == 3
    for left, right in zip(records, found, strict=True):
        assert_same(left, right)
    assert found[0].space == full_space()
    assert [path.name for path in tmp_path.iterdir()] == [name]


@given(
    st.lists(
        st.tuples(st.dictionaries(st.text(min_size=1), values, max_size=3), finite), max_size=6
    )
)
def test_values_come_back_exactly(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[dict[str, Any], float]]
) -> None:
    path = tmp_path_factory.mktemp("files") / "runs.json"
    left = TaskRecord("t", [c for c, _ in rows], np.array([loss for _, loss in rows]))
    write_records(path, [left])
    assert_same(left, read_records(path)[0])


def test_equal_values_of_different_types_stay_apart(tmp_path: Path) -> None:
    values = [1, 1.0, True, 0, 0.0, -0.0, False, "1", None]
    left = TaskRecord("t", [{"x": v} for v in values], np.zeros(len(values)))
    write_records(tmp_path / "a.json", [left])
    assert_same(left, read_records(tmp_path / "a.json")[0])


def test_what_repeats_is_written_once(tmp_path: Path) -> None:
    write_records(tmp_path / "a.json", [record(), record("wine"), record("digits")])

    def refuse(constant: str) -> float:
        raise AssertionError(f"{constant} is no JSON")

    document = json.loads((tmp_path / "a.json").read_text(), parse_constant=refuse)
    assert len(document["spaces"]) == 1
    assert sum(block["n"] for block in document["configurations"]) == 3
    places = [entry["configurations"] for entry in document["records"]]
    assert places == [[0, 1, 0, 2]] * 3


def test_numpy_scalars_become_builtins_and_nan_is_inactive(tmp_path: Path) -> None:
    given = {
        "a": np.float64(0.1),
        "b": np.int32(3),
        "c": np.bool_(True),
        "d": np.str_("x"),
        "e": float("nan"),
        "f": np.float32(0.5),
    }
    write_records(tmp_path / "a.json", [TaskRecord("t", [given], np.zeros(1))])
    (found,) = read_records(tmp_path / "a.json")
    expected = {"a": 0.1, "b": 3, "c": True, "d": "x", "f": 0.5}
    assert exactly(found) == [{k: exact(v) for k, v in expected.items()}]


def wrong_records() -> Iterator[Any]:
    def one(value: Any, **more: Any) -> TaskRecord:
        return TaskRecord("iris", [{"x": 0}, {"layers": value}], np.zeros(2), **more)

    yield pytest.param(
        one((10, 20)), TypeError, r"run 1: layers=\(10, 20\) is a tuple", id="tuple"
    )
    yield pytest.param(one([1]), TypeError, "is a list", id="list")
    yield pytest.param(one(np.zeros(2)), TypeError, "is a ndarray", id="array")
    yield pytest.param(one(float("inf")), ValueError, "layers=inf must be finite", id="infinite")
    yield pytest.param(
        TaskRecord("iris", [{3: 1}], np.zeros(1)),  # type: ignore[dict-item]
        TypeError,
        "3 names a hyperparameter",
        id="name",
    )
    yield pytest.param(
        one(1, meta_features={"n": np.inf}), ValueError, "n must be finite", id="meta-feature"
    )
    yield pytest.param(
        one(1, meta_features={"n": "many"}), TypeError, "must be a number", id="meta-feature text"
    )
    yield pytest.param(one(1, tags={"a": 1}), TypeError, "must be text, got 1", id="tag")
    yield pytest.param(
        one(1, budget=np.array([1, np.inf])), ValueError, "budget .* row 1", id="budget"
    )
    tuples = ConfigurationSpace()
    tuples.add(Categorical("layers", [(1, 2), (3,)]))
    yield pytest.param(one(1, space=tuples), TypeError, r"the choice \(1, 2\)", id="space")
    for value in (np.inf, np.nan):
        choices = ConfigurationSpace({"penalty": Categorical("penalty", [1.0, value])})
        told = f"penalty has the choice {value}, .* Offer it as text"
        yield pytest.param(one(1, space=choices), ValueError, told, id=f"choice {value}")


@pytest.mark.parametrize(("wrong", "error", "told"), list(wrong_records()))
def test_a_file_is_written_in_full_or_not_at_all(
    tmp_path: Path, wrong: TaskRecord, error: type[Exception], told: str
) -> None:
    path = tmp_path / "a.json"
    write_records(path, [record()])
    before = path.read_bytes()
    with pytest.raises(error, match=told):
        write_records(path, [record("wine"), wrong])
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["a.json"]


def test_a_failing_disk_leaves_no_half_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.json"
    write_records(path, [record()])

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_records(path, [record("wine")])
    assert read_records(path)[0].name == "iris"
    assert [found.name for found in tmp_path.iterdir()] == ["a.json"]


def test_a_cut_or_changed_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json.xz"
    write_records(path, [record()])
    whole = path.read_bytes()
    for length in range(0, len(whole), 37):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"damaged or cut short"):
            read_records(path)
    for place in range(len(whole) // 3, len(whole), 97):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        with pytest.raises(ValueError, match="damaged"):
            read_records(path)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{}", "does not say 'automl_plugins records'"),
        ("[1, 2]", "does not say"),
        ('{"x": NaN}', "NaN is no JSON"),
        ("kernel,loss\nrbf,0.1", "no file of recorded runs"),
        ("", "no file of recorded runs"),
        ("\udcff", "no file of recorded runs"),
    ],
)
def test_a_foreign_file_is_refused(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ValueError, match=told):
        read_records(path)


def test_version_and_inner_damage(tmp_path: Path) -> None:
    path = tmp_path / "a.json.xz"
    write_records(path, [record()])
    document = json.loads(lzma.decompress(path.read_bytes()))

    def changed(**changes: Any) -> None:
        path.write_text(json.dumps(document | changes))

    changed(version=VERSION + 1)
    with pytest.raises(ValueError, match=f"has version {VERSION + 1} .* a newer automl_plugins"):
        read_records(path)
    changed(spaces=[])
    with pytest.raises(ValueError, match="is damaged: IndexError"):
        read_records(path)
    entry = document["records"][0]
    for wrong in ({"configurations": [-1] * 4}, {"losses": [1.0]}, {"task": None, "space": "x"}):
        changed(records=[entry | wrong])
        with pytest.raises(ValueError, match="is damaged"):
            read_records(path)
