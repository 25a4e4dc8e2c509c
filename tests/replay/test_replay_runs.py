"""Many searches: names, seeds, processes, and the file of an interrupted replay."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ConfigSpace import ConfigurationSpace, Integer
from effort import count_calls
from pandas.testing import assert_frame_equal

from automl_plugins.replay import Outcome, Problem, Proposal, Record, Table, read_runs, replay
from automl_plugins.replay.runs import REPLAY_COLUMNS, search_seed

NAN = math.nan


def table_of(name: str = "t", n: int = 40, **arguments: Any) -> Table:
    space = ConfigurationSpace({"n": (0, n - 1)})
    losses = np.random.default_rng(len(name)).normal(size=n)
    arguments = {"seconds": np.linspace(0.1, 3, n), **arguments}
    return Table(name, space, [{"n": i} for i in range(n)], losses, **arguments)


def run(optimizer: Any, table: Any = None, **arguments: Any) -> pd.DataFrame:
    arguments = {"budget": 10, "progress": False, **arguments}
    return replay(optimizer, table_of() if table is None else table, **arguments)


def at_random(
    space: ConfigurationSpace, records: Sequence[Record], rng: np.random.Generator
) -> Mapping[str, Any]:
    return {"n": int(rng.integers(40))}


def at_low(
    space: ConfigurationSpace, records: Sequence[Record], rng: np.random.Generator
) -> Mapping[str, Any]:
    return {"n": int(rng.integers(10))}


def failing(step: str) -> Any:
    """A method that fails when it is started, asked or told."""

    # Within a function, for a worker process cannot import this module.
    class Failing:
        name = "failing"

        def start(self, problem: Problem) -> Failing:
            self.take("start")
            return self

        def ask(self) -> Proposal:
            self.take("ask")
            return Proposal({"n": 1})

        def tell(self, proposal: Proposal, outcome: Outcome) -> None:
            self.take("tell")

        def take(self, name: str) -> None:
            if name == step:
                raise RuntimeError("out of ideas")

    return Failing()


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("when", ["start", "ask", "tell"])
def test_an_error_of_a_method_says_which_one_it_was_on_which_problem(
    when: str, n_jobs: int
) -> None:
    methods: Any = {"fine": lambda space, records, rng: {"n": len(records)}, "bad": failing(when)}
    with pytest.raises(RuntimeError, match="out of ideas") as raised:
        run(methods, [table_of("one")], seed=[7], n_jobs=n_jobs)
    assert raised.value.__notes__ == ["Method 'bad' failed on table 'one' with seed 7."]


# --- seeds ----------------------------------------------------------------------------------


def test_tables_do_not_repeat_one_start() -> None:
    frame = run(at_random, [table_of("one"), table_of("two")])
    rows = frame.groupby("table")["row"].apply(list)
    assert rows["one"] != rows["two"]
    assert search_seed(0, "one") != search_seed(0, "two") != search_seed(1, "two")
    assert 0 <= search_seed(0, "one") < 2**32


def test_a_table_may_be_called_as_any_file() -> None:
    name = os.fsdecode(b"caf\xe9")  # which UTF-8 cannot write
    assert set(run(at_random, [table_of(name)])["table"]) == {name}


def test_a_search_does_not_depend_on_the_company_it_is_run_in() -> None:
    tables = [table_of("one"), table_of("two")]
    methods = {"random": at_random, "low": at_low}
    whole = run(methods, tables, seed=range(3))
    alone = run({"low": at_low}, tables[1], seed=2)
    part = whole.query("table == 'two' and method == 'low' and seed == 2")
    assert_frame_equal(part.reset_index(drop=True), alone)


def test_processes_change_nothing() -> None:
    tables = [table_of("one"), table_of("two")]
    methods = {
        "random": lambda space, records, rng: {"n": int(rng.integers(40))},
        "next": lambda space, records, rng: {"n": len(records)},
    }
    arguments: Any = {"seed": [0, 1], "n_workers": 2}
    assert_frame_equal(
        run(methods, tables, n_jobs=2, **arguments), run(methods, tables, **arguments)
    )


def test_the_table_and_its_space_stay_as_they_were() -> None:
    table = table_of()
    table.space.seed(1)
    expected = [dict(c) for c in table.space.sample_configuration(5)]
    table.space.seed(1)
    run(lambda space, *_: space.sample_configuration(), table)
    assert [dict(c) for c in table.space.sample_configuration(5)] == expected


# --- the frame ------------------------------------------------------------------------------


def test_rows_come_by_seed_table_and_method_as_they_were_named() -> None:
    tables = [table_of("z"), table_of("a")]
    frame = run({"b": at_random, "a": at_low}, tables, seed=[5, 1], budget=2)
    assert frame.columns.tolist() == list(REPLAY_COLUMNS)
    keys = frame[["seed", "table", "method"]].drop_duplicates().to_numpy().tolist()
    assert keys == [[s, t, m] for s in (5, 1) for t in ("z", "a") for m in ("b", "a")]
    assert frame["trial"].tolist() == [1, 2] * 8


# --- methods --------------------------------------------------------------------------------


class Counting:
    """An ask-and-tell object with a seed of its own."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.told: list[Outcome] = []

    def ask(self) -> Proposal:
        return Proposal({"n": int(self.rng.integers(40))})

    def tell(self, proposal: Proposal, outcome: Outcome) -> None:
        self.told.append(outcome)


def test_every_search_copies_an_instance_whose_own_seed_rules() -> None:
    optimizer = Counting(7)
    frame = run(optimizer, seed=[0, 1])
    assert frame["method"].unique().tolist() == ["Counting"]
    expected = np.random.default_rng(7).integers(40, size=10)
    for _, search in frame.groupby("seed"):
        np.testing.assert_array_equal(search["row"], expected)
    assert optimizer.told == []


def test_a_callable_sees_its_records() -> None:
    seen: list[list[Record]] = []

    def propose(space: Any, records: Sequence[Record], rng: Any) -> Mapping[str, Any] | None:
        seen.append(list(records))
        return {"n": len(records)} if len(records) < 3 else None

    losses = [3.0, NAN, 1.0]
    space = ConfigurationSpace({"n": (0, 2)})
    table = Table("t", space, [{"n": i} for i in range(3)], losses, seconds=[1.0, 2.0, 4.0])
    frame = run(propose, table)
    assert len(frame) == 3
    assert [len(records) for records in seen] == [0, 1, 2, 3]
    assert [r.config for r in seen[-1]] == [{"n": 0}, {"n": 1}, {"n": 2}]
    np.testing.assert_array_equal([r.loss for r in seen[-1]], losses)
    assert [r.seconds for r in seen[-1]] == [1.0, 2.0, 4.0]
    assert [str(r.status) for r in seen[-1]] == ["complete", "failed", "complete"]


def test_names_are_those_of_the_functions_or_of_the_mapping() -> None:
    assert run([at_random, at_low], budget=1)["method"].tolist() == ["at_random", "at_low"]
    assert run({"x": at_random}, budget=1)["method"].tolist() == ["x"]


# --- what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"optimizer": [at_low, at_low]}, r"Two methods are called at_low: pass a dictionary"),
        ({"unit": "hours"}, "unit must be one of 'trials', 'seconds', got 'hours'"),
        ({"budget": 2.5}, r"budget must be a whole number of trials > 0, got 2.5"),
        ({"budget": 0}, "budget must be a whole number of trials > 0"),
        ({"budget": NAN}, "budget must be a whole number"),
        ({"budget": math.inf}, "budget must be a whole number"),
        ({"seed": -1}, "seed must be an integer >= 0, got -1"),
        ({"seed": [1, 2**63]}, r"seed must be less than 2\*\*63, .*got 9223372036854775808"),
        ({"max_trials": 0}, "max_trials must be an integer >= 1, got 0"),
        ({"budget": -1.0, "unit": "seconds"}, "budget must be seconds > 0"),
        ({"n_workers": 0}, "n_workers must be an integer >= 1, got 0"),
        ({"table": []}, "at least one table and one seed"),
        ({"optimizer": []}, "at least one method"),
        ({"optimizer": {1: at_random, "1": at_random}}, "Two methods are called 1"),
        ({"n_jobs": 0}, "n_jobs must be an integer >= 1, or -1 for all cores, got 0"),
        ({"n_jobs": -2}, "n_jobs must be an integer >= -1, got -2"),
        ({"seed": []}, "at least one table and one seed"),
        ({"seed": [1, 1]}, "The seed 1 occurs twice"),
        ({"progress": "line"}, "progress must be True, False, None or 'lines', got 'line'"),
        ({"table": [table_of("a"), table_of("a")]}, "The table a occurs twice"),
        (
            {"table": [table_of(), table_of("bare", seconds=None)], "unit": "seconds"},
            r"table bare has no seconds: budget in trials, or build the table with seconds=1.0",
        ),
    ],
)
def test_illegal_arguments_are_refused(
    arguments: dict[str, Any], message: str, tmp_path: Path
) -> None:
    arguments = {"optimizer": at_random, "table": table_of(), **arguments}
    with pytest.raises(ValueError, match=message):
        run(**arguments, path=tmp_path / "runs.csv")
    with pytest.raises(TypeError, match=r"budget must be a whole number of trials > 0, got '5'"):
        run(at_random, budget="5", path=tmp_path / "runs.csv")
    for wrong in ([1.5], 1.5, "01", True):
        with pytest.raises(TypeError, match="seed must be an integer >= 0, got"):
            run(at_random, seed=wrong, path=tmp_path / "runs.csv")
    with pytest.raises(TypeError, match="overhead must be True or False, got 'no'"):
        run(at_random, overhead="no", path=tmp_path / "runs.csv")
    assert not list(tmp_path.iterdir())


# --- the file -------------------------------------------------------------------------------

TABLES = [table_of(name) for name in ("one", "two", "three", "four")]


def counted(log: Path) -> Any:
    """``at_random`` that writes a line for each proposal."""

    def propose(space: Any, records: Sequence[Record], rng: Any) -> Mapping[str, Any]:
        with log.open("a") as file:
            file.write(".")
        return at_random(space, records, rng)

    return {"random": propose}


def n_calls(log: Path) -> int:
    return len(log.read_text()) if log.exists() else 0


def test_a_name_that_a_file_cannot_keep_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with pytest.raises(ValueError, match="cannot keep the carriage return in the name"):
        run(counted(log), table_of("a\rb"), path=tmp_path / "runs.csv")
    with pytest.raises(ValueError, match="cannot keep the half of a character in the name"):
        run({"\ud800": at_random}, TABLES[0], path=tmp_path / "runs.csv")
    assert not n_calls(log) and not (tmp_path / "runs.csv").exists()
    assert len(run({"random": at_random}, table_of("a\rb"))) == 10


def test_a_replay_goes_on_where_it_stopped(tmp_path: Path) -> None:
    path, log = tmp_path / "deep" / "runs.csv", tmp_path / "log"
    method = counted(log)
    first = run(method, TABLES[:2], path=path)
    assert n_calls(log) == 20
    both = run(method, TABLES, path=path)
    assert n_calls(log) == 40
    in_one_go = run({"random": at_random}, TABLES)
    assert_frame_equal(both, in_one_go)
    assert_frame_equal(first, in_one_go[:20])
    # Nothing is left to run; what is not asked for is not returned.
    assert_frame_equal(run(method, TABLES, path=path), in_one_go)
    part = run(method, TABLES[1], path=path)
    assert_frame_equal(part, in_one_go[10:20].reset_index(drop=True))
    assert n_calls(log) == 40
    assert_frame_equal(read_runs(path), in_one_go)


def test_a_run_of_no_rows_is_done_too(tmp_path: Path) -> None:
    path, calls = tmp_path / "runs.csv", []

    def nothing(*_: Any) -> None:
        calls.append(1)

    assert run(nothing).columns.tolist() == run(nothing, path=path).columns.tolist()
    assert run(nothing, path=path).empty
    assert len(calls) == 2
    assert_frame_equal(run([nothing, at_random], path=path), run(at_random))


@pytest.mark.parametrize(
    ("rows", "journal", "again"),
    [
        (lambda text: text + "one,random,0,1,0.5", str, 0),
        (lambda text: text + 'one,"ra', str, 0),
        (str, lambda text: text[:-5], 10),  # the last run was written, its line was cut
        (lambda text: text[:70], lambda text: text.splitlines(keepends=True)[0], 20),
    ],
)
def test_what_a_crash_left_is_cut_off_and_run_again(
    rows: Any, journal: Any, again: int, tmp_path: Path
) -> None:
    path, log = tmp_path / "runs.csv", tmp_path / "log"
    method, files = counted(log), [path, tmp_path / "runs.csv.journal"]
    expected = run(method, TABLES[:2], path=path)
    whole = [file.read_text() for file in files]
    for file, damaged in zip(files, (rows, journal), strict=True):
        file.write_text(damaged(file.read_text()))
    assert_frame_equal(run(method, TABLES[:2], path=path), expected)
    assert n_calls(log) == 20 + again
    assert [file.read_text() for file in files] == whole
    assert_frame_equal(run(method, TABLES, path=path), run({"random": at_random}, TABLES))


def test_two_replays_do_not_write_to_one_file(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"

    def meanwhile(*arguments: Any) -> Mapping[str, Any]:
        if not path.exists():
            run({"m": at_random}, path=path)
        return at_random(*arguments)

    with pytest.raises(ValueError, match=r"runs.csv was changed while this replay ran"):
        run({"m": meanwhile}, path=path)
    assert_frame_equal(run({"m": meanwhile}, path=path), run({"m": at_random}))


def test_finished_runs_that_were_cut_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    run(at_random, TABLES[:2], path=path)
    path.write_bytes(path.read_bytes()[:-30])
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"runs.csv has \d+ bytes of \d+ written: it was cut"):
        run(at_random, TABLES[:2], path=path)
    assert path.read_bytes() == before
    path.unlink()
    with pytest.raises(
        ValueError, match=r"gone or empty. To begin anew, delete runs.csv.journal too"
    ):
        run(at_random, TABLES[:2], path=path)


OTHER_LINES = {
    "empty": "{}",
    "a list": "[1]",
    "no JSON": "x",
    "deep": "[" * 100_000,
    "a list as seed": '{"table": "a", "method": "b", "seed": [0], "end": 1}',
}


@pytest.mark.parametrize("line", OTHER_LINES.values(), ids=list(OTHER_LINES))
@pytest.mark.parametrize("place", [0, 2])
def test_a_journal_of_something_else_is_told(line: str, place: int, tmp_path: Path) -> None:
    path, journal = tmp_path / "runs.csv", tmp_path / "runs.csv.journal"
    run(at_random, TABLES[:2], path=path)
    lines = journal.read_text().splitlines()
    journal.write_text("\n".join([*lines[:place], line, *lines[place:], ""]))
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"journal is damaged|runs with budget None, now 10"):
        run(at_random, TABLES[:2], path=path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("left", [0, 30])
def test_a_journal_without_a_whole_line_is_told(left: int, tmp_path: Path) -> None:
    path, journal = tmp_path / "runs.csv", tmp_path / "runs.csv.journal"
    run(at_random, TABLES[:2], path=path)
    journal.write_bytes(journal.read_bytes()[:left])
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"journal is damaged, its first line was cut. Restore"):
        run(at_random, TABLES[:2], path=path)
    assert path.read_bytes() == before
    journal.unlink()
    with pytest.raises(ValueError, match=r"was not written by a replay \(no runs.csv.journal"):
        run(at_random, TABLES[:2], path=path)


@pytest.mark.parametrize("suffix", [".gz", ".XZ", ".zip"])
def test_a_name_by_which_pandas_would_unpack_the_file_is_refused(
    tmp_path: Path, suffix: str
) -> None:
    with pytest.raises(ValueError, match=r"would not be compressed.* ends in \.csv"):
        run({"random": at_random}, path=tmp_path / f"runs.csv{suffix}")
    assert not list(tmp_path.iterdir())


def test_a_journal_with_other_bytes_is_told(tmp_path: Path) -> None:
    path, journal = tmp_path / "runs.csv", tmp_path / "runs.csv.journal"
    run(at_random, TABLES[0], seed=[0, 1], path=path)
    before = path.read_bytes()
    journal.write_bytes(journal.read_bytes().replace(b"at_random", b"at_r\xc0ndom"))
    with pytest.raises(ValueError, match=r"journal is damaged.*0xc0.*Restore a copy"):
        run(at_random, TABLES[0], seed=[0, 1], path=path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"budget": 11}, "budget 10, now 11: continue with the same settings"),
        ({"n_workers": 2}, "n_workers 1, now 2"),
        ({"unit": "seconds"}, "unit 'trials', now 'seconds'"),
        ({"overhead": True}, "overhead False, now True"),
    ],
)
def test_other_settings_are_refused(changed: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    run(at_random, path=path)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    with pytest.raises(ValueError, match=message):
        run(at_random, path=path, **changed)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def at_one(
    space: ConfigurationSpace, records: Sequence[Record], rng: np.random.Generator
) -> Mapping[str, Any]:
    return {"n": 1 + len(records)}


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Table.from_frame\(.*\); got a DataFrame"):
        run(at_random, pd.DataFrame({"n": [1], "loss": [0.5]}))
    with pytest.raises(TypeError, match=r"Table.from_frame\(.*\); got a function"):
        run(at_random, at_one)


def test_changed_records_are_refused(tmp_path: Path) -> None:
    path, configs, losses = tmp_path / "runs.csv", [{"n": i} for i in range(10)], np.arange(10.0)
    space = ConfigurationSpace({"n": (0, 39)})
    run(at_one, [Table("t", space, configs, losses), TABLES[0]], path=path, budget=3)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    for changed in (
        Table("t", space, configs, losses + 1.0),
        Table("t", space, configs, losses, seconds=2.0),
        Table("t", space, [*configs[:9], {"n": 12}], losses),
        Table("t", ConfigurationSpace({"n": (0, 99)}), configs, losses),
    ):
        with pytest.raises(ValueError, match="on table t as it was before its records changed"):
            run(at_one, changed, path=path, budget=3)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before
    run(at_one, Table("t", space, configs, losses), path=path, budget=3)  # equal ones continue
    elsewhere = ConfigurationSpace({"n": Integer("n", (0, 39), default=7)})  # as do these
    options = {"path": path, "budget": 3, "n_workers": np.int64(1)}
    run(at_one, Table("t", elsewhere, configs, losses), **options)
    assert (tmp_path / "runs.csv").read_bytes() == before["runs.csv"]


def test_runs_without_seconds_take_the_median() -> None:
    space, configs = ConfigurationSpace({"n": (0, 39)}), [{"n": i} for i in range(40)]
    failed = np.arange(40) % 2 == 1
    losses = np.where(failed, NAN, np.arange(40.0))
    seconds = np.where(failed, NAN, 10.0 + np.arange(40) % 3)
    table = Table("t", space, configs, losses, seconds=seconds)
    frame = run(at_random, table, budget=100.0, unit="seconds")
    assert 8 <= len(frame) <= 10 and (np.diff(frame.seconds) >= 10.0).all()
    (note,) = [n for n in frame.attrs["notes"] if "seconds" in n]
    assert "20 of 40 runs have no seconds: they take 11 s, the median of the others" in note
    unknown = Table("t", space, configs, losses, seconds=np.full(40, NAN))
    with pytest.raises(ValueError, match="has no seconds"):
        run(at_random, unknown, budget=100.0, unit="seconds")


def test_a_file_that_no_replay_wrote_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"exists but was not written by a replay"):
        run(at_random, path=path)
    assert [p.name for p in tmp_path.iterdir()] == ["runs.csv"]
    assert path.read_text() == "a,b\n1,2\n"


def test_numbers_and_names_survive_the_file_to_the_last_bit(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    losses = [0.1 + 0.2, 1 / 3, 5e-324, 1.7e308, -0.0, NAN, *rng.normal(size=34)]
    names = ['NA, "quoted"', "nan", "001", ""]
    base = table_of()
    tables = [base.with_losses(n, losses, seconds=rng.exponential(size=40)) for n in names]
    path = tmp_path / "runs.csv"
    methods = {"null": lambda space, records, rng: {"n": len(records)}}
    direct = run(methods, tables, budget=40, n_workers=3)
    written = run(methods, tables, budget=40, n_workers=3, path=path)
    assert_frame_equal(written, direct, check_exact=True)
    assert_frame_equal(read_runs(path), direct, check_exact=True)
    assert read_runs(path)["table"].unique().tolist() == names


# --- speed ----------------------------------------------------------------------------------


def test_a_trial_of_a_replay_is_a_few_dozen_calls() -> None:
    n = 2000
    points = np.random.default_rng(0).random((n, 8))
    space = ConfigurationSpace({f"x{i}": (0.0, 1.0) for i in range(8)})
    configs = [{f"x{i}": float(v) for i, v in enumerate(point)} for point in points]
    table = Table("large", space, configs, points.sum(axis=1), seconds=1.0)

    def once() -> None:
        prepared = iter(configs)
        frame = run({"prepared": lambda *_: next(prepared)}, table, budget=n)
        assert (frame["row"] == np.arange(n)).all()

    once()
    assert count_calls(once) / n < 200
