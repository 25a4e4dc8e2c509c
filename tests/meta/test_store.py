"""The store keeps what it is given, on SQLite and PostgreSQL."""

from __future__ import annotations

import dataclasses
import json
import pickle
import sqlite3
import time
import unittest.mock
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from ConfigSpace import ConfigurationSpace
from known_runs import assert_same
from known_runs import kernel_record as record
from known_runs import kernel_space as space
from servers import NoServerError, postgresql

from automl_plugins.__main__ import main
from automl_plugins.meta import MetaDataset, TaskRecord
from automl_plugins.meta.store import MetaStore, StoreError, rows
from automl_plugins.records.trial import Status

TABLES = ["meta_tasks", "meta_spaces", "meta_searches", "meta_runs"]


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """Address of a PostgreSQL server that was started for the tests."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    started = postgresql()
    try:
        url = started.__enter__()
    except NoServerError as error:
        pytest.skip(str(error))
    yield url
    started.__exit__(None, None, None)


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MetaStore]:
    """A store that is new."""
    if request.param == "sqlite":
        with MetaStore(tmp_path / "runs.db") as store:
            yield store
        return
    with MetaStore(request.getfixturevalue("server")) as store:
        yield store
        drop_tables(store)


def contents(store: MetaStore) -> dict[str, Any]:
    """All rows of all tables."""
    return store._database.read(
        lambda c: {t: c.execute(sa.text(f"SELECT * FROM {t} ORDER BY 1")).all() for t in TABLES}
    )


def drop_tables(store: MetaStore) -> None:
    for table in ["meta_schema", *reversed(TABLES)]:  # first what refers to others
        drop = sa.text(f"DROP TABLE IF EXISTS {table}")
        store._database.write(lambda c, drop=drop: c.execute(drop))  # type: ignore[misc]


def names(store: MetaStore, **options: Any) -> list[str]:
    return [found.name for found in store.records(**options)]


# --- writing and reading ------------------------------------------------------------------


def test_records_come_back(store: MetaStore) -> None:
    records = [record(), record("wine", 3, 1, space=None, seed=2**70, framework="smac")]
    assert [store.add(r) for r in records] == [5, 3]
    found = store.records()
    for left, right in zip(records, found, strict=True):
        assert_same(left, right)
    with pickle.loads(pickle.dumps(store)) as copy:  # as its address
        assert copy.url == store.url
        assert_same(copy.records()[0], records[0])


def test_a_run_at_a_time_is_the_same_as_all_at_once(store: MetaStore) -> None:
    whole = record()
    for i, configuration in enumerate(whole.configurations):
        assert store.record(
            "iris",
            configuration,
            whole.losses[i],
            seconds=None if np.isnan(whole.seconds[i]) else whole.seconds[i],
            status=Status(whole.status[i]),
            budget=None if np.isnan(whole.budget[i]) else whole.budget[i],
            time=whole.times[i],
            space=whole.space,
            framework="optuna",
            seed=3,
        )
    store.describe("iris", meta_features=whole.meta_features, tags=whole.tags)
    assert_same(whole, store.records()[0])


def test_defaults_of_a_run(store: MetaStore) -> None:
    begin = time.time()
    for x, loss in enumerate((0.5, None, float("inf"))):
        store.record("t", {"x": x}, loss)
    store.record("t", {"x": 4}, 0.25, status="PRUNED", budget=3)
    (found,) = store.records()
    failed = Status.FAILED
    assert found.status.tolist() == [Status.COMPLETE, failed, failed, Status.PRUNED]
    np.testing.assert_array_equal(found.losses, [0.5, np.nan, np.nan, 0.25])
    assert np.isnan(found.seconds).all() and found.space is None and found.seed is None
    assert ((begin <= found.times) & (found.times <= time.time())).all()


def test_a_run_is_stored_once(store: MetaStore) -> None:
    assert store.record("t", {"x": 1}, 0.5, search="a", key=7)
    assert not store.record("t", {"x": 2}, 0.1, search="a", key="7")
    assert store.record("t", {"x": 2}, 0.1, search="b", key=7)
    assert store.record("u", {"x": 2}, 0.1, search="a", key=7)
    (first,) = store.records(["t"], search="a")
    assert first.losses.tolist() == [0.5] and first.configurations[0] == {"x": 1}
    repeated = TaskRecord("again", [{"x": 1}] * 3, np.full(3, 0.5))
    assert [store.add(repeated), store.add(repeated)] == [3, 0]  # runs of their own


def test_what_is_told_last_counts(store: MetaStore) -> None:
    store.record("t", {"n": 1}, 0.5, space=space(8), search="s")
    store.record("t", {"n": 1}, 0.5, space=space(9), search="s")
    store.record("t", {"n": 1}, 0.5, search="s", framework="optuna", seed=1)
    (found,) = store.records()
    assert found.space == space(9) and found.framework == "optuna" and found.seed == 1
    store.describe("t", meta_features={"a": 1, "b": float(np.float32(2))}, tags={"x": "1"})
    store.describe("t", meta_features={"b": 3.0, "c": np.nan}, tags={"y": "2"})
    store.describe("u")
    first, second = store.tasks()
    assert repr(first.meta_features) == repr({"a": 1.0, "b": 3.0, "c": np.nan})
    assert first.tags == {"x": "1", "y": "2"}
    assert second.name == "u" and not second.meta_features and not second.tags


def test_dataset_is_that_of_the_records(store: MetaStore) -> None:
    records = [record(), record("iris", 4, 1, seed=4), record("wine", 3, 2)]
    for r in records:
        store.add(r)
    for target in (None, space(), space(0.5)):
        left = MetaDataset.from_records(records, target)
        right = store.dataset(target)
        assert left.space == right.space
        assert [t.name for t in left.tasks] == [t.name for t in right.tasks] == ["iris", "wine"]
        for name in ("task", "vectors", "losses", "seconds", "status"):
            np.testing.assert_array_equal(getattr(left, name), getattr(right, name))
        assert left.coverage == right.coverage
    assert len(store.dataset(space(0.5), out_of_range="drop")) < len(right)


def test_many_searches_are_read_in_parts(
    store: MetaStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "_MOST_IDS", 2)
    sizes = [1, 9, 2, 2, 2, 6, 1]
    for i, n in enumerate(sizes):
        losses = 10.0 * i + np.arange(float(n))
        store.add(TaskRecord(f"task {i}", [{"x": j} for j in range(n)], losses))
    for i, (n, found) in enumerate(zip(sizes, store.records(), strict=True)):
        assert found.losses.tolist() == [10 * i + j for j in range(n)]
    assert [info.n_runs for info in store.searches()] == sizes


def test_choosing_tasks_and_searches(store: MetaStore) -> None:
    store.add(record("iris"))
    store.add(record("wine", framework="smac"), search="first")
    store.add(record("digits", tags={"family": "images"}), search="first")
    assert names(store, tasks=["wine", "iris"]) == ["iris", "wine"]
    assert names(store, exclude=["iris", "unknown"]) == ["wine", "digits"]
    assert names(store, tasks=iter(["iris"])) == ["iris"]
    assert names(store, exclude=iter(["iris", "wine"])) == ["digits"]
    assert names(store, tags={"family": "flowers"}) == ["iris", "wine"]
    assert names(store, framework="smac") == ["wine"]
    assert names(store, search="first", exclude=["wine"]) == ["digits"]
    assert [t.name for t in store.tasks(tags={"family": "images"})] == ["digits"]
    searches = [(info.task, info.search) for info in store.searches()[1:]]
    assert searches == [("wine", "first"), ("digits", "first")]
    with pytest.raises(ValueError, match="no runs to learn from"):
        store.dataset(tags={"family": "none"})


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (["optuna"], TypeError, r"must be text, got \['optuna'\]"),
        (2**70, TypeError, "must be text, got 1180591620717411303424"),
        ("\ud800", ValueError, "is not a valid text"),
        ("a\0b", ValueError, "has a character that cannot be stored"),
    ],
)
def test_names_that_no_store_can_have_are_refused(
    store: MetaStore, wrong: Any, error: type[Exception], words: str
) -> None:
    calls: dict[str, Callable[[], Any]] = {
        "framework": lambda: store.records(framework=wrong),
        "search": lambda: store.records(search=wrong),
        "search ": lambda: store.delete_search(wrong),
        "task": lambda: store.delete_search("s", task=wrong),
        "task ": lambda: store.delete_task(wrong),
    }
    for argument, call in calls.items():
        with pytest.raises(error, match=f"^{argument.strip()} {words}"):
            call()


# --- nothing wrong gets in ----------------------------------------------------------------

Act = Callable[[Any], Any]
WRONG: list[tuple[Act, type[Exception], str]] = [
    (lambda s: s.record("t", {"layers": (1, 2)}, 0.1), TypeError, "is a tuple"),
    (lambda s: s.record("t", {"x": np.inf}, 0.1), ValueError, "x=inf"),
    (lambda s: s.record("t", {}, "0.1"), TypeError, "loss must be a number"),
    (lambda s: s.record("t", {}, np.complex128(1)), TypeError, "loss must be a number"),
    (lambda s: s.record("t", {}, 10**400), ValueError, "loss is a whole number too large"),
    (lambda s: s.record("t", {}, 0.1, seconds=-1), ValueError, "finite and >= 0"),
    (lambda s: s.record("t", {}, 0.1, budget=np.inf), ValueError, "budget must be"),
    (lambda s: s.record("t", {}, 0.1, status=Status.RUNNING), ValueError, "status"),
    (lambda s: s.record("t", {}, 0.1, status="done"), ValueError, "'complete', .*, got 'done'"),
    (lambda s: s.record("t", [0.5], 0.1), TypeError, "values by name"),
    (lambda s: s.record("", {}, 0.1), ValueError, "1 to 500 characters, got 0"),
    (lambda s: s.record("t" * 501, {}, 0.1), ValueError, "got 501"),
    (lambda s: s.record("a\0b", {}, 0.1), ValueError, "cannot be stored"),
    (lambda s: s.record("\ud800", {}, 0.1), ValueError, "not a valid text"),
    (lambda s: s.record(3, {}, 0.1), TypeError, "must be text, got 3"),
    (lambda s: s.record("t", {}, 1, framework="\0"), ValueError, "framework"),
    (
        lambda s: s.record("t", {}, 1, seed=1.5),
        TypeError,
        "seed must be an integer >= 0, or None, got 1.5",
    ),
    (
        lambda s: s.record("t", {}, 1, seed="1"),
        TypeError,
        "seed must be an integer >= 0, or None, got '1'",
    ),
    (lambda s: s.add(record(), keys=[1, 2]), ValueError, "5 runs need as many keys"),
    (lambda s: s.add(record(), keys=[1, 1, 2, 3, 4]), ValueError, "4 of them"),
    (
        lambda s: s.add(TaskRecord("t", [{"x": 1}, {"x": []}], np.zeros(2))),
        TypeError,
        "'t', run 1: x=",
    ),
    (lambda s: s.describe("new", meta_features={"n": np.inf}), ValueError, "n must be finite"),
    (lambda s: s.describe("new", meta_features={"n": 10**400}), ValueError, "n is a .* too large"),
    (lambda s: s.describe("new", tags={"n": 3}), TypeError, "tag 'n' must be text"),
    (lambda s: s.describe("new", tags={3: "n"}), TypeError, "name of a tag must be text, got 3"),
    (lambda s: s.describe("new", tags={"n": "\ud800"}), ValueError, "tag 'n' is not a valid text"),
    (lambda s: s.describe("new", tags={"\0": "n"}), ValueError, "tag has a character that cannot"),
    (lambda s: s.add(record(tags={"n": "\0"})), ValueError, "'iris': the tag 'n' has a character"),
    (
        lambda s: s.describe("new", meta_features={"\ud800": 1}),
        ValueError,
        "meta-feature is not a",
    ),
    (lambda s: s.delete_task("new"), ValueError, "has no task 'new'"),
    (lambda s: s.delete_search("x", task="iris"), ValueError, "in the task 'iris'"),
    (lambda s: s.describe("iris", meta_features=[1, 2]), TypeError, "numbers by name"),
    (lambda s: s.describe("iris", tags="x"), TypeError, "tags takes texts by name; got"),
    (lambda s: s.import_(__file__), ValueError, "not a file of recorded runs"),
    (lambda s: s.export("x.json", ["new"]), ValueError, "has no task 'new'"),
    (lambda s: s.records(["iri"]), ValueError, "has no task 'iri'; it has 1: iris"),
    (lambda s: s.records("iris"), TypeError, "tasks must be names of tasks, got the text 'iris'"),
    (lambda s: s.records(exclude=None), TypeError, "exclude must be names of tasks, got None"),
    (lambda s: s.tasks(tags="a"), TypeError, "tags takes texts by name; got 'a'"),
]


def test_bad_input_changes_nothing(store: MetaStore) -> None:
    store.add(record())
    before = contents(store)
    for act, error, told in WRONG:
        with pytest.raises(error, match=told):
            act(store)
        assert contents(store) == before, told


def test_a_transaction_happens_in_full_or_not_at_all(
    store: MetaStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.add(record())
    before, insert = contents(store), rows._insert

    def cut(connection: Any, table: sa.Table) -> sa.Insert:
        if table.name == "meta_runs":
            raise KeyboardInterrupt
        return insert(connection, table)

    monkeypatch.setattr(rows, "_insert", cut)
    with pytest.raises(KeyboardInterrupt):
        store.add(record("wine", space=space(9)))
    monkeypatch.undo()
    assert contents(store) == before


def test_a_row_that_others_delete_meanwhile_is_written_again(store: MetaStore) -> None:
    calls = []

    def work(connection: Any) -> str:
        calls.append(1)
        if len(calls) < 3:
            raise sa.exc.IntegrityError("INSERT", {}, Exception("FOREIGN KEY constraint failed"))
        connection.execute(sa.text("INSERT INTO meta_tasks VALUES (1, 'a', '{}', '{}')"))
        return "done"

    assert store._database.write(work) == "done" and len(calls) == 3
    assert [t.name for t in store.tasks()] == ["a"]
    fail = unittest.mock.Mock(
        side_effect=sa.exc.IntegrityError("INSERT", {}, Exception("FOREIGN"))
    )
    with pytest.raises(StoreError, match="FOREIGN"):
        store._database.write(fail)


HOSTILE = [
    "'; DROP TABLE meta_runs; --",
    '"quoted" `names` [x] %s %(x)s :name ? {0}',
    "back\\slash \n line \t \x01",
    "../../etc/passwd",
    "\u202edlrow \U0001f600 é \u0000".replace("\0", ""),
    "NULL",
]


def test_names_are_never_sql(store: MetaStore) -> None:
    for name in HOSTILE:
        given = record(name, framework=name, tags={name: name}, meta_features={name: 1.0})
        given = dataclasses.replace(given, configurations=[{name: name, "i": i} for i in range(5)])
        assert store.add(given, search=name, keys=[f"{name}{i}" for i in range(5)]) == 5
    assert [task.name for task in store.tasks()] == HOSTILE
    for name in HOSTILE:
        (found,) = store.records([name], framework=name, search=name, tags={name: name})
        assert found.configurations[0] == {name: name, "i": 0} and found.framework == name
        assert found.meta_features == {name: 1.0}
    for left, name in enumerate(HOSTILE, start=1):
        assert store.delete_search(name) == 5 and store.delete_task(name) == 0
        assert len(store.tasks()) == len(HOSTILE) - left


# --- deleting -----------------------------------------------------------------------------


def test_deleting_a_task_leaves_nothing_of_it(store: MetaStore) -> None:
    store.add(record("wine"))
    before = contents(store)
    store.add(record(space=space(9)))
    store.record("iris", {"x": 1}, 0.1)
    assert store.delete_task("iris") == 6
    assert contents(store) == before


def test_deleting_a_search(store: MetaStore) -> None:
    store.add(record(), search="a")
    store.add(record(draw=1, n=3), search="b")
    store.add(record("wine"), search="b")
    assert store.delete_search("b", task="iris") == 3
    assert [(i.task, i.search) for i in store.searches()] == [("iris", "a"), ("wine", "b")]
    assert store.delete_search("b") == 5
    assert [t.name for t in store.tasks()] == ["iris", "wine"]


def test_more_searches_than_sqlite_takes_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def limit(raw: sqlite3.Connection, _: object) -> None:
        raw.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 20)  # 32 766 unless built otherwise

    monkeypatch.setattr(rows, "_MOST_IDS", 10)
    with MetaStore(tmp_path / "runs.db") as store:
        for i in range(30):
            one = TaskRecord(f"task {i}", [{"x": 1}], np.array([0.1]), space=space(i + 2))
            store.add(one, search="same")
        sa.event.listen(store._database._connect().engine, "connect", limit)
        store.close()
        known = store.records()
        assert [found.space for found in known] == [space(i + 2) for i in range(30)]
        assert store.delete_search("same") == 30
        assert not any(contents(store)[table] for table in TABLES[1:])


def test_what_is_deleted_is_not_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    secret = [{"x": f"tell-tale {i}"} for i in range(300)]
    with MetaStore(path) as store:
        store.add(TaskRecord("secret project", secret, np.zeros(300)))
        store.add(record())
    assert b"tell-tale" in path.read_bytes()
    with MetaStore(path) as store:
        assert store.delete_task("secret project") == 300
    content = path.read_bytes()
    assert b"tell-tale" not in content and b"secret project" not in content
    with MetaStore(path) as store:
        assert_same(store.records()[0], record())


# --- files --------------------------------------------------------------------------------


def test_an_older_file_changes_no_description(store: MetaStore, tmp_path: Path) -> None:
    store.record("t", {"x": 1}, 0.5)
    store.describe("t", meta_features={"n": 100}, tags={"owner": "ann", "old": "y"})
    store.export(tmp_path / "old.json")
    store.delete_task("t")
    store.record("t", {"x": 1}, 0.5)
    store.describe("t", meta_features={"n": 5000}, tags={"owner": "bob"})
    store.import_(tmp_path / "old.json")
    (task,) = store.tasks()
    assert task.meta_features == {"n": 5000}
    assert task.tags == {"owner": "bob", "old": "y"}  # what is missing is added


def test_an_older_file_narrows_no_space_and_a_newer_one_widens_it(
    store: MetaStore, tmp_path: Path
) -> None:
    def runs(*depths: int, upper: int, **known: Any) -> TaskRecord:
        space = ConfigurationSpace({"depth": (1, upper)})
        return TaskRecord(
            "t", [{"depth": d} for d in depths], np.array(depths) / 9, space=space, **known
        )

    def depths(of: MetaStore) -> list[int]:
        return [c["depth"] for record in of.dataset().records() for c in record.configurations]

    store.add(runs(2, 5, upper=5), search="s", keys=["0", "1"])
    store.export(tmp_path / "old.json")
    store.add(runs(40, upper=50, framework="optuna", seed=3), search="s", keys=["2"])
    store.export(tmp_path / "new.json")
    before = contents(store)
    assert store.import_(tmp_path / "old.json") == 0
    assert contents(store) == before
    assert depths(store) == [2, 5, 40]
    with MetaStore(tmp_path / "other.db") as other:
        other.import_(tmp_path / "old.json")
        assert other.import_(tmp_path / "new.json") == 1
        assert depths(other) == [2, 5, 40]
        (info,) = other.searches()
        assert (info.framework, info.seed) == ("optuna", 3)  # which the old file did not know
        # One that contradicts what is there changes nothing of it.
        kinds = TaskRecord(
            "t",
            [{"depth": "deep"}],
            np.zeros(1),
            space=ConfigurationSpace({"depth": ["deep", "flat"]}),
        )
        with MetaStore(tmp_path / "third.db") as third:
            third.add(kinds, search="s", keys=["3"])
            third.export(tmp_path / "other.json")
        other.import_(tmp_path / "other.json")
        assert depths(other) == [2, 5, 40]


def test_what_is_unknown_replaces_no_meta_feature(store: MetaStore, tmp_path: Path) -> None:
    store.describe("t", meta_features={"skew": 1.5, "n": np.nan})
    store.describe("t", meta_features={"skew": np.nan, "n": 100})
    assert store.tasks()[0].meta_features == {"skew": 1.5, "n": 100}
    store.describe("u", meta_features={"skew": np.nan})
    store.describe("u", meta_features={"skew": None})  # type: ignore[dict-item]
    store.export(tmp_path / "all.json", ["u"])
    store.describe("u", meta_features={"skew": 2.0})
    store.import_(tmp_path / "all.json")
    assert store.tasks()[1].meta_features == {"skew": 2.0}


def test_a_store_is_not_exported_onto_itself(tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    with MetaStore(path) as store:
        store.record("a", {"x": 1}, 0.1)
        before = path.read_bytes()
        for same in (path, tmp_path / "." / "runs.json"):
            with pytest.raises(ValueError, match=r"runs\.json is the store itself"):
                store.export(same)
        assert path.read_bytes() == before


@pytest.mark.parametrize("name", ["all.json", "all.json.xz"])
def test_an_export_replaces_the_one_before_and_nothing_else(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with MetaStore(tmp_path / "store.db") as store:
        store.record("wine", {"x": 1}, 0.1)
        for _ in range(2):
            store.export(path)
        if name == "all.json":  # its length is part of the format
            assert len(json.loads(path.read_bytes())["digest"]) == 32
        for content in (b"no export", b"\xfd7zXZ\x00"):  # the second begins as xz does
            path.write_bytes(content)
            with pytest.raises(ValueError, match="no export has written it"):
                store.export(path)
            assert path.read_bytes() == content


def test_filters_that_leave_nothing_are_named(store: MetaStore) -> None:
    store.add(record())
    with pytest.raises(
        ValueError, match=r"exclude=\['iris'\]: the store has 'iris' \(framework 'op"
    ):
        store.dataset(exclude=["iris"])
    with pytest.raises(ValueError, match="no runs to learn from with framework='Optuna'"):
        store.dataset(framework="Optuna")


def test_export_and_import(store: MetaStore, tmp_path: Path) -> None:
    store.add(record(), search="a")
    store.add(record("wine", space=None))
    store.record("wine", {"x": 1}, 0.1)
    store.describe("bare", tags={"a": "b"})
    before = contents(store)
    store.export(tmp_path / "all.json.xz")
    assert store.import_(tmp_path / "all.json.xz") == 0
    assert contents(store) == before
    with MetaStore(tmp_path / "other.db") as other:
        assert [other.import_(tmp_path / "all.json.xz") for _ in range(2)] == [11, 0]
        assert {t.name for t in other.tasks()} == {"iris", "wine", "bare"}
        for left, right in zip(store.records(), other.records(), strict=True):
            assert_same(left, right)
        assert [i.search for i in store.searches()] == [i.search for i in other.searches()]
    store.export(tmp_path / "one.json", ["iris"])
    with MetaStore(tmp_path / "third.db") as third:
        assert third.import_(tmp_path / "one.json") == 5
        assert [t.name for t in third.tasks()] == ["iris"]


# --- commands -----------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["tasks", "searches", "show", "export", "delete"])
def test_commands_make_no_store_to_look_into(
    store: MetaStore, action: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address = store._database.url.render_as_string(hide_password=False)
    options = {"show": ["t"], "export": [f"{tmp_path}/all.json"], "delete": ["--task", "t"]}
    command = ["store", action, address, *options.get(action, [])]
    store.record("t", {"x": 1}, 0.5)
    assert main(command) == (1 if action == "delete" else 0)  # it asks
    drop_tables(store)
    capsys.readouterr()
    assert main(command) == 2
    assert capsys.readouterr().err == (
        f"automl-plugins store: {store.url} has no store in it. One is made by what records runs,"
        " or imports them.\n"
    )
    assert not store._database.read(lambda c: sa.inspect(c).get_table_names())
