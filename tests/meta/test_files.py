"""Files of recorded runs: exact, compact, all or nothing."""

from __future__ import annotations

import json
import lzma
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
from known_runs import assert_same

from automl_plugins.meta import TaskRecord
from automl_plugins.meta.files import VERSION, read_records, write_records
from automl_plugins.records.trial import Status

finite = st.floats(allow_nan=False, allow_infinity=False)
values = st.one_of(finite, st.integers(), st.booleans(), st.none(), st.text())


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
        "configurations": [{"kind": "a", "x": 1}, {"x": 1.0}, {"kind": "a", "x": 1}, {}],
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


def runs_of(*values: Any, name: str = "x", **more: Any) -> TaskRecord:
    return TaskRecord("iris", [{name: value} for value in values], np.zeros(len(values)), **more)


@pytest.mark.parametrize("name", ["runs.json", "runs.json.xz"])
def test_everything_comes_back(tmp_path: Path, name: str) -> None:
    empty = TaskRecord("empty", [], np.empty(0), meta_features={"n": 1.0})
    alike = runs_of(1, 1.0, True, 0, 0.0, -0.0, False, "1", None)
    records = [record(), record("wine", space=None, seed=None), empty, alike]
    write_records(tmp_path / name, records)
    found = read_records(tmp_path / name)
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
    configurations = [dict(sorted(c.items())) for c, _ in rows]
    left = TaskRecord("t", configurations, np.array([loss for _, loss in rows]))
    write_records(path, [left])
    assert_same(left, read_records(path)[0])


def test_what_repeats_is_written_once(tmp_path: Path) -> None:
    write_records(tmp_path / "a.json", [record(), record("wine"), record("digits")])
    document = json.loads((tmp_path / "a.json").read_text(), parse_constant=pytest.fail)
    assert len(document["spaces"]) == 1
    assert sum(block["n"] for block in document["configurations"]) == 3
    places = [entry["configurations"] for entry in document["records"]]
    assert places == [[0, 1, 0, 2]] * 3


def test_numpy_scalars_become_builtins_and_nan_is_inactive(tmp_path: Path) -> None:
    given = (np.float64(0.1), np.int32(3), np.bool_(True), np.str_("x"), np.float32(0.5))
    write_records(tmp_path / "a.json", [runs_of(*given, float("nan"))])
    *found, last = read_records(tmp_path / "a.json")[0].configurations
    assert [(type(c["x"]), c["x"]) for c in found] == [
        (float, 0.1),
        (int, 3),
        (bool, True),
        (str, "x"),
        (float, 0.5),
    ]
    assert last == {}


def space_of_choices(*choices: Any) -> ConfigurationSpace:
    space = ConfigurationSpace()
    space.add(Categorical("penalty", choices))
    return space


@pytest.mark.parametrize(
    ("wrong", "error", "told"),
    [
        (runs_of(0, (10, 20)), TypeError, r"run 1: x=\(10, 20\) is a tuple"),
        (runs_of([1]), TypeError, "is a list"),
        (runs_of(np.zeros(2)), TypeError, "is a ndarray"),
        (runs_of(float("inf")), ValueError, "x=inf must be finite"),
        (runs_of(1, name=3), TypeError, "3 names a hyperparameter"),  # type: ignore[arg-type]
        (runs_of(1, meta_features={"n": np.inf}), ValueError, "n must be finite"),
        (runs_of(1, meta_features={"n": "many"}), TypeError, "must be a number"),
        (runs_of(1, tags={"a": 1}), TypeError, "must be text, got 1"),
        (runs_of(1, 1, budget=np.array([1, np.inf])), ValueError, "budget .* row 1"),
        (runs_of(1, space=space_of_choices((1, 2), (3,))), TypeError, r"the choice \(1, 2\)"),
        (runs_of(1, space=space_of_choices(1.0, np.inf)), ValueError, "choice inf, .* as text"),
        (runs_of(1, space=space_of_choices(1.0, np.nan)), ValueError, "choice nan, .* as text"),
    ],
)
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
    cut = [whole[:length] for length in range(0, len(whole), 37)]
    changed = [
        whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :]
        for place in range(len(whole) // 3, len(whole), 97)
    ]
    for content, told in [(c, "damaged or cut short") for c in cut] + [
        (c, "damaged") for c in changed
    ]:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=told):
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


@pytest.mark.parametrize(
    ("document", "entry", "told"),
    [
        ({"version": VERSION + 1}, {}, f"has version {VERSION + 1} .* a newer automl_plugins"),
        ({"spaces": []}, {}, "is damaged: IndexError"),
        ({}, {"configurations": [-1] * 4}, "is damaged"),
        ({}, {"losses": [1.0]}, "is damaged"),
        ({}, {"task": None, "space": "x"}, "is damaged"),
    ],
)
def test_version_and_inner_damage(
    tmp_path: Path, document: dict[str, Any], entry: dict[str, Any], told: str
) -> None:
    path = tmp_path / "a.json.xz"
    write_records(path, [record()])
    found = json.loads(lzma.decompress(path.read_bytes()))
    found["records"][0] |= entry
    path.write_text(json.dumps(found | document))
    with pytest.raises(ValueError, match=told):
        read_records(path)
