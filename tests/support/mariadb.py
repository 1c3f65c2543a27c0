"""MariaDB from Debian's package: a private server for a run of tests.

It listens on 127.0.0.1 at a port of its own, keeps its files in a temporary folder and is stopped
by the id of its process.
"""

from __future__ import annotations

import contextlib
import getpass
import itertools
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.processes import free_port
from support.waiting import eventually

_START_SECONDS_MAX = 60.0
_numbers = itertools.count(1)


def mariadb_missing() -> str | None:
    """Why MariaDB cannot run here, or None."""
    if shutil.which("mariadbd", path="/usr/sbin:/usr/bin") is None:
        return "MariaDB is not here: apt-get install mariadb-server"
    return None


@dataclass(frozen=True)
class MariaDb:
    """A running server; every test takes a database of its own."""

    port: int

    def connect(self, database: str | None = None) -> Any:
        import pymysql

        return pymysql.connect(
            host="127.0.0.1", port=self.port, user="moldau", password="secret",
            database=database, autocommit=True,
        )  # fmt: skip

    def execute(self, database: str, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements; the rows of the last."""
        with self.connect(database) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def database(self) -> str:
        """The name of a new, empty database."""
        name = f"test{next(_numbers)}"
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}")
        return name

    def url(self, database: str) -> str:
        return f"jdbc:mariadb://127.0.0.1:{self.port}/{database}"


@contextlib.contextmanager
def running_mariadb(*options: str) -> Iterator[MariaDb]:
    folder = Path(tempfile.mkdtemp(prefix="moldau-mariadb-"))
    data, user = folder / "data", f"--user={getpass.getuser()}"
    server = MariaDb(free_port())
    grant = folder / "init.sql"
    grant.write_text(
        "CREATE USER moldau@'127.0.0.1' IDENTIFIED BY 'secret';\n"
        "GRANT ALL ON *.* TO moldau@'127.0.0.1' WITH GRANT OPTION;\n"
    )
    try:
        subprocess.run(
            ["mariadb-install-db", "--no-defaults", user, f"--datadir={data}",
             "--auth-root-authentication-method=normal", "--skip-test-db"],
            check=True, capture_output=True, timeout=_START_SECONDS_MAX,
        )  # fmt: skip
        with open(folder / "log", "wb") as log:
            process = subprocess.Popen(
                ["/usr/sbin/mariadbd", "--no-defaults", user, f"--datadir={data}",
                 f"--port={server.port}", "--bind-address=127.0.0.1",
                 f"--socket={folder / 'socket'}", f"--pid-file={folder / 'pid'}",
                 f"--init-file={grant}", "--skip-name-resolve", *options],
                stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip
        try:
            eventually(
                lambda: process.poll() is None and _answers(server),
                what=f"MariaDB answers: {(folder / 'log').read_text()}",
                seconds_max=_START_SECONDS_MAX,
            )
            yield server
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _answers(server: MariaDb) -> bool:
    import pymysql

    try:
        server.connect().close()
    except pymysql.err.OperationalError:
        return False
    return True
