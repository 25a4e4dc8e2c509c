"""Temporary database servers, each in a temporary folder, reached by a socket, without TCP.

They are independent of the servers of the system and leave nothing behind. Unix only.
"""

from __future__ import annotations

import contextlib
import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

PATIENCE = 60  # seconds in which a server must answer
_ELSEWHERE = ("/usr/sbin", "/usr/lib/postgresql/*/bin")  # Debian's folders outside the PATH


class NoServerError(Exception):
    """No server can be started; the message says why."""


def program(name: str) -> str | None:
    """Path of a program, also in Debian's folders outside the PATH; None if not installed."""
    folders = [folder for pattern in _ELSEWHERE for folder in sorted(glob.glob(pattern))]
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(reversed(folders)))


@contextlib.contextmanager
def postgresql() -> Iterator[str]:
    """Address of an empty database of PostgreSQL, whose server ends with the block.

    Raises:
        NoServerError: Where none can be started.
    """
    with _folder("PostgreSQL") as (folder, account):
        data = f"{folder}/data"
        initdb, postgres = _find("initdb", "PostgreSQL"), _find("postgres", "PostgreSQL")
        make = [initdb, "-D", data, "-U", "store", "-A", "trust", "-N", "-E", "UTF8"]
        _make("PostgreSQL", [*make, "--locale=C"], account)
        command = [postgres, "-D", data, "-k", str(folder), "-c", "listen_addresses="]
        with _served("PostgreSQL", command, folder, account, "ready to accept connections"):
            yield f"postgresql+psycopg://store@/postgres?host={folder}"


@contextlib.contextmanager
def mariadb() -> Iterator[str]:
    """Address of an empty database of MariaDB, whose server ends with the block.

    Raises:
        NoServerError: Where none can be started.
    """
    with _folder("MariaDB") as (folder, account):
        own = ["--no-defaults", f"--datadir={folder}/data"]
        make = [_find("mariadb-install-db", "MariaDB"), *own, "--skip-test-db"]
        _make("MariaDB", [*make, "--auth-root-authentication-method=normal"], account)
        first = folder / "first.sql"
        first.write_text("CREATE DATABASE trials CHARACTER SET utf8mb4;\n")
        first.chmod(0o644)
        socket = folder / "socket"
        files = [f"--socket={socket}", f"--pid-file={folder}/pid", f"--init-file={first}"]
        command = [_find("mariadbd", "MariaDB"), *own, *files, "--skip-networking"]
        with _served("MariaDB", command, folder, account, "ready for connections"):
            yield f"mysql+pymysql://root@localhost/trials?unix_socket={socket}"


def _find(name: str, server: str) -> str:
    path = program(name)
    if path is None:
        raise NoServerError(f"{server} cannot be started: {name} is not installed")
    return path


@contextlib.contextmanager
def _folder(server: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """A folder for a server, and the account to run it: the servers refuse to run as root."""
    folder = tempfile.mkdtemp(prefix="db")  # the path of a socket may have 107 characters
    try:
        account: dict[str, Any] = {"cwd": folder, "text": True}
        if os.getuid() == 0:
            try:
                owner = pwd.getpwnam("nobody")
            except KeyError:
                raise NoServerError(
                    f"{server} cannot be started: it refuses to run as root, and there is no"
                    " account nobody"
                ) from None
            os.chown(folder, owner.pw_uid, owner.pw_gid)
            account |= {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        yield Path(folder), account
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _make(server: str, command: Sequence[str], account: dict[str, Any]) -> None:
    made = subprocess.run(command, capture_output=True, check=False, **account)
    if made.returncode:
        output = (made.stdout + made.stderr).strip()[-500:]
        raise NoServerError(f"{server} cannot be started: {command[0]} failed: {output}")


@contextlib.contextmanager
def _served(
    name: str, command: Sequence[str], folder: Path, account: dict[str, Any], ready: str
) -> Iterator[None]:
    """Run a server during the block, which begins when its log says that it is ready."""
    path = folder / "log"
    with path.open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, **account)
    try:
        end = time.monotonic() + PATIENCE
        while ready not in path.read_text(errors="replace"):
            if server.poll() is not None or time.monotonic() > end:
                output = path.read_text(errors="replace").strip()[-500:]
                raise NoServerError(f"{name} does not start: {output}")
            time.sleep(0.05)
        yield
    finally:
        server.send_signal(signal.SIGQUIT)  # stops at once; its data are deleted anyway
        try:
            server.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
