"""The servers are what they are called, and nothing of them is left."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest
import servers
import sqlalchemy as sa


@pytest.mark.parametrize(
    ("start", "name"), [(servers.postgresql, "PostgreSQL"), (servers.mariadb, "MariaDB")]
)
def test_a_server_answers_and_leaves_nothing(
    start: Callable[[], contextlib.AbstractContextManager[str]], name: str
) -> None:
    with start() as address:
        folder = Path(next(iter(sa.make_url(address).query.values())))  # type: ignore[arg-type]
        assert folder.exists()
        engine = sa.create_engine(address)
        with engine.connect() as connection:
            assert name in str(connection.execute(sa.text("SELECT version()")).scalar())
        engine.dispose()
    assert not folder.exists()


def test_a_program_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "program", lambda _: None)
    with pytest.raises(servers.NoServerError, match=r"MariaDB cannot .*: mariadb-install-db is"):
        servers.mariadb().__enter__()


def test_a_server_that_does_not_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "_make", lambda *_: None)  # its folder stays empty
    with pytest.raises(servers.NoServerError, match=r"PostgreSQL does not start: .*data"):
        servers.postgresql().__enter__()
