"""Engines that are started for the tests: `make engines`. What does not start is an error."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest
import servers


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "80 trials of a study instead of 400; most samplers on PostgreSQL alone"
    parser.addoption("--quick", action="store_true", help=text)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("quick"):
        items[:] = [item for item in items if not _takes_longer(item)]


def _takes_longer(item: pytest.Item) -> bool:
    """Whether a sampler that works like another one is tried on a further storage."""
    call: Any = getattr(item, "callspec", None)
    given = call.params if call else {}
    return (
        given.get("sampler") in {"GBQRSampler", "TSTSampler", "BOASFSampler"}
        and given["address"] != "postgresql"
    )


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """Address of a database of PostgreSQL."""
    with servers.postgresql() as address:
        yield address


@pytest.fixture(scope="session")
def mariadb() -> Iterator[str]:
    """Address of a database of MariaDB."""
    with servers.mariadb() as address:
        yield address


def pytest_sessionstart() -> None:
    # A run that is terminated, or interrupted in the background, stops its servers too.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if _skipped(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if n := len(_skipped(config)):
        terminalreporter.write_line(f"{n} skipped: `make engines` runs everything.", red=True)


def _skipped(config: pytest.Config) -> list[Any]:
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    return list(reporter.stats.get("skipped", []))
