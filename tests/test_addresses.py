"""Reading creates nothing, and every door gives the same answer to a path that is not there."""

import contextlib
import json
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
from optuna.storages.journal import JournalFileBackend

from automl_plugins.__main__ import main
from automl_plugins.addresses import check_exists, file_of, without_password
from automl_plugins.meta import MetaStore, convert
from automl_plugins.meta.memories import read_memory

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
        ("sqlite:///odl.db", r"did you mean 'sqlite:///old\.db'"),
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
        ("postgresql://host/db", None),
    ],
)
def test_files_of_addresses(address: str, file: Path | None) -> None:
    assert file_of(address) == file


@pytest.mark.parametrize("address", ["sqlite://", "sqlite:///:memory:"])
def test_a_database_in_memory_holds_nothing(address: str) -> None:
    with pytest.raises(ValueError, match="in memory, so it is empty: name a file"):
        check_exists(address)
