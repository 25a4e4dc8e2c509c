"""Reading creates nothing, and every door gives the same answer to a path that is not there."""

import contextlib
import json
import pickle
import re
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
import pytest
from automl_plugins.adapters.optuna import (
    ADAPTER,
    AutoSampler,
    TSTSampler,
    curves,
    enqueue_initial_design,
    explain,
    meta_dataset_from_studies,
    record,
)
from automl_plugins.adapters.optuna._sources import read_sources
from optuna.storages.journal import JournalFileBackend

from automl_plugins.__main__ import main
from automl_plugins.addresses import (
    as_database,
    check_exists,
    file_of,
    is_to_come,
    replacing,
    without_password,
)
from automl_plugins.meta import MetaStore, convert
from automl_plugins.meta.memories import TaskMemory
from automl_plugins.meta.sources import read_memory

read_task = ADAPTER.read_task


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("studies") / "old.db"
    study = optuna.create_study(study_name="t/m/0", storage=f"sqlite:///{path}")
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    return path


@pytest.fixture
def folder(tmp_path: Path, studies: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a database of studies and files of something else."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(studies, "old.db")
    (tmp_path / "runs.csv").write_text("x,loss\n1,2\n")
    return tmp_path


def add(source: str) -> Any:
    recorder = record("memory.db", task="t")
    assert isinstance(recorder.recorder.store, MetaStore)
    recorder.recorder.store.close()
    return recorder.add(source)


READERS: dict[str, Callable[[str], Any]] = {
    "add": add,
    "curves": curves,
    "read_task": read_task,
    "meta_dataset_from_studies": meta_dataset_from_studies,
    "convert": lambda source: convert(source, "hyperopt"),
}
MEMORIES: dict[str, Callable[[str], Any]] = {
    "recorded": read_memory,
    "enqueue_initial_design": lambda memory: enqueue_initial_design(
        optuna.create_study(),
        memory=memory,
        search_space={"x": optuna.distributions.FloatDistribution(0, 1)},
    ),
}


@pytest.mark.parametrize("address", ["sqlite:///missing.db", "sqlite+pysqlite:///missing.db"])
@pytest.mark.parametrize("name", [*READERS, *MEMORIES])
def test_a_database_that_is_not_there_is_refused_and_not_created(
    name: str, address: str, folder: Path
) -> None:
    with pytest.raises(
        ValueError, match=f"There is no (database|memory) {re.escape(repr(address))}"
    ):
        {**READERS, **MEMORIES}[name](address)
    with pytest.raises(ValueError, match=r"did you mean 'sqlite:///old\.db'"):
        {**READERS, **MEMORIES}[name](address.replace("missing", "odl"))
    assert not (folder / "missing.db").exists() and not (folder / "odl.db").exists()


@pytest.mark.parametrize("sampler", [TSTSampler, AutoSampler])
def test_the_memory_of_a_first_search_is_made_by_it(
    sampler: Any, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    optuna.logging.enable_propagation()
    address = "sqlite:///first.db"

    def search(name: str) -> tuple[set[str], optuna.Study]:
        caplog.clear()
        before = sorted(folder.iterdir())
        new = sampler(address, seed=1)
        assert sorted(folder.iterdir()) == before  # no database is made by looking for it
        study = optuna.create_study(study_name=name, sampler=new, storage=address)
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=4)
        return {r.getMessage() for r in caplog.records if r.levelname == "WARNING"}, study

    warnings, study = search("first")
    assert warnings == {
        "There is no database 'sqlite:///first.db' yet. This search does without a memory."
    }
    assert explain(study.trials[0]).origin != "suggested"
    warnings, study = search("second")
    assert not warnings and explain(study.trials[0]).origin in ("suggested", "model")


@pytest.mark.parametrize("sampler", [TSTSampler, AutoSampler])
@pytest.mark.parametrize(
    ("address", "answer"),
    [
        (
            "sqlite:///odl.db",
            r"did you mean 'sqlite:///old\.db'\? If not, make it first: MetaStore\('sqlite:///odl",
        ),
        ("sqlite:///nowhere/first.db", "there is no folder 'nowhere'"),
        ("missing.db", "There is no memory 'missing.db'"),
    ],
)
def test_a_mistake_in_the_address_of_a_memory_is_refused(
    sampler: Any, address: str, answer: str, folder: Path
) -> None:
    with pytest.raises(ValueError, match=answer):
        sampler(address)
    assert not (folder / "missing.db").exists()


LIKE = [
    ("run.db", "runs.db"),
    ("memory.db", "memroy.db"),
    ("memory.db", "memory.sqlite3"),
    ("Memory.db", "memory.db"),
    ("moel.db", "model.db"),
    ("run_1s.db", "run_1.db"),
    ("db.sqlite3", "db"),
]
UNLIKE = [
    ("optuna.sqlite3", "memory.sqlite3"),
    ("a.sqlite3", "studies.sqlite3"),
    ("run1.sqlite3", "mem.sqlite3"),
    ("h.db", "mem.db"),
    ("db.db", "m.db"),
    ("a.db", "b.db"),
    ("a.db", "ab.db"),
    ("churn_2025.db", "churn_2026.db"),
    ("2024.db", "2025.db"),
    ("run_12.db", "run_21.db"),
    ("run_1.db", "run_11.db"),
    ("run.db", "run2.db"),
    ("study_a.db", "study_b.db"),
    ("svm.db", "svr.db"),
    ("mem.db", "mem_old.db"),
]


@pytest.mark.parametrize(("there", "given"), LIKE)
def test_one_slip_of_the_keys_is_a_misprint(there: str, given: str, folder: Path) -> None:
    (folder / "old.db").rename(there)
    for one, other in ((there, given), (given, there)):
        (folder / there).rename(one)
        there = one
        if not (folder / other).exists():  # where large and small letters are the same
            with pytest.raises(ValueError, match=f"did you mean 'sqlite:///{re.escape(one)}'"):
                AutoSampler(memory=f"sqlite:///{other}")


@pytest.mark.parametrize(("there", "given"), UNLIKE)
def test_a_new_database_beside_another_is_to_come(
    there: str, given: str, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    optuna.logging.enable_propagation()
    (folder / "old.db").rename(there)
    sampler = AutoSampler(memory=f"sqlite:///{given}", seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    assert {r.getMessage() for r in caplog.records if r.levelname == "WARNING"} == {
        f"There is no database 'sqlite:///{given}' yet. This search does without a memory."
    }
    (folder / there).rename(given)
    assert is_to_come(f"sqlite:///{there}")


def test_what_is_nearest_by_name_is_suggested(folder: Path) -> None:
    for name in ("memoy.db", "memory.sqlite3", "memoryy.db"):
        shutil.copy("old.db", name)
    with pytest.raises(ValueError, match=r"did you mean 'sqlite:///memory\.sqlite3'"):
        read_memory("sqlite:///memory.db")


def test_the_file_that_was_given_is_named_if_it_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(partial: Path, *_: object) -> Any:
        raise PermissionError(13, "Permission denied", str(partial))

    given = tmp_path / "o.json"
    told = f"[Errno 13] Permission denied: {str(given)!r}"
    with monkeypatch.context() as patched, pytest.raises(PermissionError) as refused:
        patched.setattr(Path, "open", refuse)
        with replacing(given):
            pass
    assert str(refused.value) == told
    with monkeypatch.context() as patched, pytest.raises(PermissionError) as refused:
        patched.setattr("os.replace", refuse)
        with replacing(given):
            pass
    assert str(refused.value) == told
    with pytest.raises(FileNotFoundError, match=r"other\.json"), replacing(given):
        (tmp_path / "other.json").read_bytes()  # the error of the block is its own
    assert not list(tmp_path.iterdir())


def test_what_has_a_like_name_may_be_made_first(folder: Path) -> None:
    MetaStore("sqlite:///odl.db").close()
    AutoSampler("sqlite:///odl.db")  # is not refused


@pytest.mark.parametrize("address", ["notes", "notes.md", "sqlite:///notes.md"])
def test_only_a_database_is_suggested_for_a_memory(address: str, folder: Path) -> None:
    (folder / "notes.txt").write_text("nearer by name, and no memory")
    with pytest.raises(ValueError, match=r"There is no memory '[^']*'\. It may be"):
        read_memory(address)
    (folder / "old.db").rename("note.db")
    with pytest.raises(ValueError, match=r"did you mean 'sqlite:///note\.db'"):
        read_memory(address)


@pytest.mark.parametrize("name", READERS)
def test_the_path_of_a_database_is_answered_with_its_address(name: str, folder: Path) -> None:
    with pytest.raises(Exception, match=r"(?i)did you mean 'sqlite:///(.*/)?old\.db'"):
        READERS[name]("old.db")


@pytest.mark.parametrize(
    ("file", "text"), [("runs.csv", "x,loss\n1,2\n"), ("runs.log", "x\n1\n"), ("list.log", "[1]")]
)
def test_what_is_no_journal_is_refused_with_a_sentence(file: str, text: str, folder: Path) -> None:
    (folder / file).write_text(text)
    with pytest.raises(ValueError, match=f"{file}' is not a journal file of Optuna. Studies are"):
        add(file)


@pytest.fixture
def store(folder: Path) -> Path:
    path = folder / "store.db"
    with MetaStore(path) as made:
        for best in (0.1, 0.2, 0.3):
            for x in (0.1, 0.2, 0.3, 0.4):
                made.record(f"t{best}", {"x": x}, abs(x - best))
    return path


def tables(path: Path) -> list[str]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        return sorted(name for (name,) in rows)


@pytest.mark.parametrize("name", READERS)
def test_a_database_of_something_else_is_refused_and_left_as_it_is(
    name: str, folder: Path, store: Path
) -> None:
    with contextlib.closing(sqlite3.connect("other.db")) as other:
        other.execute("CREATE TABLE customers (name)")
    before = tables(store)
    with pytest.raises(ValueError, match=r"'sqlite:///store.db' is a store of runs \(MetaStore\)"):
        READERS[name]("sqlite:///store.db")
    with pytest.raises(ValueError, match=r"holds no studies of Optuna, but the tables customers:"):
        READERS[name]("sqlite:///other.db")
    assert tables(store) == before and tables(folder / "other.db") == ["customers"]
    (folder / "text.db").write_text("text" * 999)
    with pytest.raises(ValueError, match=r"'sqlite:///text.db' cannot be read: .* not a database"):
        READERS[name]("sqlite:///text.db")


def test_a_database_without_tables_is_a_storage_without_studies(folder: Path) -> None:
    (folder / "new.db").touch()
    assert curves("sqlite:///new.db") == [] and add("sqlite:///new.db") == 0
    AutoSampler("sqlite:///new.db", seed=0)
    assert (folder / "new.db").stat().st_size == 0


def test_a_store_that_optuna_made_its_tables_in_is_a_memory_still(store: Path) -> None:
    optuna.storages.RDBStorage("sqlite:///store.db")
    assert {"studies", "trials", "meta_schema"} <= set(tables(store))
    memory = read_sources("sqlite:///store.db").memory
    assert isinstance(memory, TaskMemory) and memory.names == ("t0.1", "t0.2", "t0.3")


def test_the_password_of_a_database_is_not_shown() -> None:
    with pytest.raises(
        ValueError, match=r"'postgresql\+psycopg://me:\*\*\*@[^ ]*' cannot be read"
    ):
        curves("postgresql+psycopg://me:secret@127.0.0.1:1/studies?connect_timeout=1")


@pytest.mark.parametrize("address", ["postgresql://me:secret@h:port/d", "sqlite://h/old.db"])
def test_an_address_that_cannot_be_read_is_named(address: str) -> None:
    with pytest.raises(ValueError, match=r"' is not the address of a database") as caught:
        convert(address, "optuna")
    assert "secret" not in str(caught.value)


def damage(folder: Path, change: str) -> None:
    """Change the database of the studies by a statement of SQL."""
    with contextlib.closing(sqlite3.connect(folder / "old.db")) as connection:
        connection.execute(change)
        connection.commit()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("UPDATE alembic_version SET version_num = 'v2.6.0.a'", "RuntimeError: .* upgrade"),
        ("ALTER TABLE studies RENAME study_name TO name", "OperationalError: no such column"),
        ("UPDATE trials SET state = 'ODD'", "LookupError: 'ODD'"),
    ],
)
def test_a_storage_that_cannot_be_read_is_one_line(
    change: str, reason: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(folder, change)
    assert main(["compare", "sqlite:///old.db"]) == 2
    assert re.fullmatch(f".* cannot be read: {reason}.*\n", capsys.readouterr().err)


def test_a_damaged_journal_is_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    optuna.storages.JournalStorage(JournalFileBackend("study.log")).create_new_study(
        [optuna.study.StudyDirection.MINIMIZE]
    )
    whole = (folder / "study.log").read_text()
    for line, reason in (('{"op_code": "\t"}', "JSONDecodeError"), ('{"op_code": 0}', "KeyError")):
        (folder / "study.log").write_text(f"{whole}{line}\n{whole}")
        assert main(["compare", "study.log"]) == 2
        assert f"'study.log' cannot be read: {reason}" in capsys.readouterr().err


def test_passwords_are_not_shown() -> None:
    for address in ("sqlite:///a@b.db", "postgresql://ann@host/db", "a/b.db", "x://host:5/a"):
        assert without_password(address) == address
    found = without_password("postgresql://ann:s:e/c@host:5/db")
    assert found == "postgresql://ann:***@host:5/db"
    found = without_password("postgresql://host:5/db?password=s@c&sslpassword=x&user=ann")
    assert found == "postgresql://host:5/db?password=***&sslpassword=***&user=ann"


def test_what_is_there_is_read(folder: Path) -> None:
    storage = optuna.storages.JournalStorage(JournalFileBackend("study.log"))
    study = optuna.create_study(study_name="t/m/1", storage=storage)
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    assert "op_code" in json.loads((folder / "study.log").read_text().splitlines()[0])
    assert add("study.log") == 2
    assert add("sqlite:///old.db") == 2
    assert len(curves(f"sqlite:///{folder / 'old.db'}")[0].trials) == 2
    (folder / "empty.log").touch()
    assert curves("empty.log") == []


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("sqlite:///missing.db", "There is no database 'sqlite:///missing.db'"),
        ("old.db", "did you mean 'sqlite:///old.db'"),
        ("odl.db", "There is no file 'odl.db'; did you mean 'sqlite:///old.db'"),
        ("run.csv", "There is no file 'run.csv'; did you mean 'runs.csv'"),
        ("runs.toml", "There is no file 'runs.toml'."),  # not a file of another kind
        ("nowhere/runs.csv", "there is no folder 'nowhere'"),
    ],
)
def test_the_command_line_answers_alike(
    source: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(folder.iterdir())
    assert main(["compare", source]) == 2
    assert message in capsys.readouterr().err
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("address", "file"),
    [
        ("sqlite:///a/b.db", Path("a/b.db")),
        ("sqlite:////a/b.db", Path("/a/b.db")),
        ("sqlite:///a.db?timeout=5", Path("a.db")),
        ("sqlite:///file:a.db?mode=ro&uri=true", Path("a.db")),
        ("a.db", Path("a.db")),
        ("~/a.db", Path("~/a.db").expanduser()),
        ("~nobody of this name.db", Path("~nobody of this name.db")),
        ("postgresql://host/db", None),
    ],
)
def test_files_of_addresses(address: str, file: Path | None) -> None:
    assert file_of(address) == file


ODD_NAMES = [
    "läufe.db",
    "my runs.db",
    "100%.db",
    "p%20q.db",
    "a?b.db",
    "a#b.db",
    "a+b.db",
    "a@b:c.db",
]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_the_url_of_a_store_is_that_of_its_file_at_every_door(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with MetaStore(tmp_path / name) as store:
        store.record("t", {"x": 1}, 0.5)
        url = store.url
        assert pickle.loads(pickle.dumps(store)).url == url
    assert file_of(url) == tmp_path / name
    assert main(["store", "tasks", url]) == 0 and "t " in capsys.readouterr().out
    with MetaStore(url) as same:
        assert len(same.tasks()) == 1
    memory = read_memory(url)
    assert isinstance(memory, list) and len(memory) == 1
    AutoSampler(url, seed=0)
    assert [found.name for found in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_optuna_opens_the_same_file(name: str, tmp_path: Path) -> None:
    address = as_database(tmp_path / name)
    if "://" not in address:
        pytest.skip("SQLAlchemy has no address for it before 2.1")
    study = optuna.create_study(study_name="t/m/0", storage=address)
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    assert [found.name for found in tmp_path.iterdir()] == [name]
    assert len(curves(address)) == 1


def test_an_address_of_another_file_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    MetaStore("p%20q.db").close()
    before = sorted(folder.iterdir())
    if file_of("sqlite:///p%20q.db") == Path("p q.db"):  # SQLAlchemy 2.1 reads %20 as a space
        assert main(["store", "tasks", "sqlite:///p%20q.db"]) == 2
        assert "did you mean 'sqlite:///p%2520q.db'" in capsys.readouterr().err
    with pytest.raises(ValueError, match="named by its file, not by a URI"):
        MetaStore("sqlite:///file:a.db?mode=ro&uri=true")
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("address", ["sqlite://", "sqlite:///:memory:"])
def test_a_database_in_memory_holds_nothing(address: str) -> None:
    with pytest.raises(ValueError, match="in memory, so it is empty: name a file"):
        check_exists(address)
