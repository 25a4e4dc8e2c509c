"""Frames as users have them: floats to the last bit, None, gaps, scales of decades."""

import copy
import math
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, Float
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from automl_plugins.__main__ import main
from automl_plugins.replay import Answer, RecordedTrial, Search, Table, TrialStatus, replay

NAN = math.nan


def table_of(columns: dict[str, list[Any]], **options: Any) -> Table:
    frame = pd.DataFrame(columns)
    frame["loss"] = np.arange(len(frame), dtype=float)
    return Table.from_frame(frame, name="t", loss="loss", **options)


# --- any frame ------------------------------------------------------------------------------

_FLOATS = st.one_of(
    st.floats(0, 1),
    st.floats(-1e3, 1e3),
    st.floats(allow_nan=False, allow_infinity=False, max_value=1e290, min_value=-1e290),
    st.builds(lambda e: 10.0**e, st.floats(-12, 12)),
)
_INTS = st.one_of(st.integers(-5, 5), st.integers(1, 10**6), st.integers(-(2**60), 2**60))
_COLUMNS = st.sampled_from(
    [
        _FLOATS,
        _INTS,
        st.sampled_from(["a", "b", "sqrt"]),
        st.booleans(),
        st.one_of(_FLOATS, st.just(NAN)),
        st.one_of(_INTS, st.none()),
        st.one_of(st.integers(1, 9), st.just("none")),
        st.sampled_from(["a", "none", None]),
    ]
)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_table_holds_every_row_of_its_frame(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 8))
    columns: dict[str, list[Any]] = {
        f"c{i}": data.draw(st.lists(kind, min_size=n, max_size=n))
        for i, kind in enumerate(data.draw(st.lists(_COLUMNS, min_size=1, max_size=4)))
    }
    columns["id"] = [f"r{i}" for i in range(n)]  # no configuration twice
    frame = pd.DataFrame(columns)
    assume(frame.notna().any().all())
    has_none = any(isinstance(v, str) and v == "none" for vs in columns.values() for v in vs)
    frame["loss"] = np.arange(n, dtype=float)
    table = Table.from_frame(frame, name="t", loss="loss", none="none" if has_none else None)
    assert len(table) == n
    for row in range(n):
        for name in columns:
            value = frame[name][row]
            if pd.isna(value):
                assert name not in table.config(row)
            elif isinstance(value, str) and value == "none":
                assert table.config(row)[name] is None
            else:
                assert table.config(row)[name] == value
            # The bounds contain what was recorded, also in ConfigSpace's own check.
            if name in table.config(row):
                assert table.space[name].legal_value(table.config(row)[name])
        if len(table.config(row)) == len(columns):
            assert table.find(table.config(row)) == Answer(row, 0.0)


# --- bounds ---------------------------------------------------------------------------------


def test_values_beyond_rounded_bounds_lie_in_a_space_of_the_users_own() -> None:
    low, high = 0.0017580580987654321, 0.48613911287370995
    space = ConfigurationSpace({"x": (low, high)})  # rounds both, the first one up
    assert space["x"].lower > low  # type: ignore[attr-defined]
    frame = pd.DataFrame({"x": [low, 0.1, high], "loss": [0.0, 1.0, 2.0]})
    table = Table.from_frame(frame, name="t", loss="loss", space=space)
    assert table.find({"x": low}) == Answer(0, 0.0)
    assert table.find({"x": 0.0017580580988}).row == 0
    with pytest.raises(ValueError, match="is not a value of x"):
        table.find({"x": low - 1e-9})


def test_numbers_that_no_space_can_bound_are_refused_with_a_sentence() -> None:
    with pytest.raises(ValueError, match="'x' has an infinite value: leave its rows out"):
        table_of({"x": [0.5, math.inf]})
    assert table_of({"x": [0.5, 1e300]}).find({"x": 1e300}).row == 1
    for value in (0.0, -1.0):
        with pytest.raises(ValueError, match=r"log names 'x'.* needs values > 0"):
            table_of({"x": [0.5, value]}, log=["x"])


# --- log scales -----------------------------------------------------------------------------


def test_columns_that_span_decades_are_on_a_log_scale_and_the_table_says_so() -> None:
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {
        "rate": 10.0 ** rng.uniform(-5, 0, 40),
        "C": [10.0**k for k in range(-4, 4)] * 5,
        "depth": rng.permutation(40) + 1,
        "units": [2**k for k in range(1, 11)] * 4,
        "dropout": rng.uniform(0, 1, 40),
        "zero": [0.0, *(10.0 ** rng.uniform(-5, 0, 39))],
        "tiny": 10.0 ** rng.uniform(-20, 0, 40),
    }
    table = table_of(columns)
    logs = {name for name in columns if table.space[name].log}  # type: ignore[attr-defined]
    assert logs == {"rate", "C", "units", "tiny"}
    assert [note.split(" is taken to be on a log scale")[0] for note in table.notes] == [
        "C",
        "rate",
        "tiny",
        "units",
    ]
    assert "its values span 0.0001 to 1000" in table.notes[0]
    assert not table_of(columns, log=()).notes
    assert table_of(columns, log=["rate"]).space["C"] == Float("C", (1e-4, 1e3))
    assert table_of(columns, grid=["units"]).space["units"].size == 10
    with pytest.raises(ValueError, match="log must be 'auto' or names of columns, got 'rate'"):
        table_of(columns, log="rate")


# --- None -----------------------------------------------------------------------------------


def test_a_text_stands_for_the_value_none() -> None:
    columns: dict[str, list[Any]] = {
        "algorithm": ["rf", "rf", "rf", "svm", "svm"],
        "max_depth": ["none", 3, 6, None, None],
        "C": [NAN, NAN, NAN, 1.0, 2.0],
    }
    table = table_of(columns, none="none")
    assert table.space["max_depth"] == Categorical("max_depth", [None, 3, 6])
    assert {c.child.name for c in table.space.conditions} == {"max_depth", "C"}
    assert table.config(0) == {"algorithm": "rf", "max_depth": None}
    assert table.config(3) == {"algorithm": "svm", "C": 1} and not table.notes
    assert table.find({"algorithm": "rf", "max_depth": None}) == Answer(0, 0.0)
    # A proposal may say None of what is inactive.
    assert table.find({"algorithm": "svm", "max_depth": None, "C": 2}) == Answer(4, 0.0)
    with pytest.raises(ValueError, match="has no value for max_depth, active there"):
        table.find({"algorithm": "rf"})
    again = copy.deepcopy(table)
    assert again.find({"algorithm": "rf", "max_depth": None}) == Answer(0, 0.0)
    assert again.config(3) == table.config(3)


def test_a_gap_that_nothing_explains_is_told() -> None:
    columns: dict[str, list[Any]] = {"k": ["a", "a", "b"], "depth": [3, None, 6]}
    (note,) = table_of(columns).notes
    assert "depth is empty in 1 of 3 rows, which no other column explains" in note
    assert "none='none'" in note


def test_texts_of_a_file_beside_the_marker_are_numbers_again(tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    file.write_text("depth,boot,loss\nNone,True,1\n3,None,2\n6,False,3\n")
    with pytest.raises(ValueError, match=r"none='None' stands in no cell.*keep_default_na=False"):
        Table.from_frame(pd.read_csv(file), name="t", loss="loss", none="None")
    frame = pd.read_csv(file, keep_default_na=False, na_values=[""])
    table = Table.from_frame(frame, name="t", loss="loss", none="None")
    assert [table.config(row) for row in range(3)] == [
        {"depth": None, "boot": True},
        {"depth": 3, "boot": None},
        {"depth": 6, "boot": False},
    ]
    assert type(table.config(0)["boot"]) is bool and type(table.config(1)["depth"]) is int


def test_none_of_a_search_is_a_value_and_what_was_not_asked_for_is_not() -> None:
    configs: list[dict[str, Any]] = [
        {"k": "a", "d": None},
        {"k": "a", "d": 3.0},
        {"k": "b"},
        {"k": "a", "d": 5.0},
    ]
    trials = [RecordedTrial(c, TrialStatus.COMPLETE, float(i)) for i, c in enumerate(configs)]
    table = Table.from_studies(Search("t", "m", 0, trials), name="t")
    assert [table.config(row) for row in range(4)] == [t.config for t in trials]
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda t: float(t.suggest_categorical("w", [None, "x"]) is None), n_trials=8)
    replayed = replay(
        optuna.samplers.RandomSampler,
        Table.from_studies(study, name="t"),
        budget=8,
        progress=False,
    )
    assert (replayed["distance"] == 0).all() and set(replayed["loss"]) == {0.0, 1.0}


# --- the README's way -----------------------------------------------------------------------


def runs_file(folder: Path) -> Path:
    rng = np.random.default_rng(1)
    n = 40
    frame = pd.DataFrame(
        {
            "dataset": np.repeat(["a", "b"], n // 2),
            "lr": 10.0 ** rng.uniform(-4, 0, n),
            "dropout": rng.random(n),
            "class_weight": rng.choice(["None", "balanced"], n),
            "depth": [*rng.integers(2, 30, n - 1), NAN],
            "loss": rng.random(n),
            "seconds": rng.random(n),
        }
    )
    frame.to_csv(folder / "runs.csv", index=False)
    return folder / "runs.csv"


def test_the_command_line_does_the_same_and_knows_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs_file(tmp_path)
    (tmp_path / "replay.toml").write_text(
        """\
budget = 4
path = "replay.csv"

[tables.mine]
file = "runs.csv"
group = "dataset"
loss = "loss"
seconds = "seconds"
none = "None"

[methods.random]
adapter = "optuna"
optimizer = "RandomSampler"

[methods.TPE]
adapter = "optuna"
optimizer = "TPESampler"
"""
    )
    assert main(["replay", str(tmp_path / "replay.toml")]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "Table mine/a: lr is taken to be on a log scale" in printed
    assert "class_weight is empty" not in printed
    assert len(pd.read_csv(tmp_path / "replay.csv", comment="#")) == 16
