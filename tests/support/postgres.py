"""PostgreSQL from Debian's package: a private cluster for a run of tests.

It listens on 127.0.0.1 at a port of its own, keeps its files in a temporary folder and is stopped
by the id of its process. PostgreSQL refuses to run as root, so root starts it as `postgres` or
`nobody`.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.processes import free_port
from support.waiting import eventually

_PACKAGED = Path("/usr/lib/postgresql")
_START_SECONDS_MAX = 60.0
_numbers = itertools.count(1)


def postgres_missing() -> str | None:
    """Why PostgreSQL cannot run here, or None."""
    if programs() is None:
        return "PostgreSQL is not here: apt-get install postgresql"
    return None


def programs() -> Path | None:
    found = sorted(_PACKAGED.glob("*/bin/initdb"))
    return found[-1].parent if found else None


@dataclass(frozen=True)
class Postgres:
    """A running cluster; every test takes a database of its own."""

    port: int

    def connect(self, database: str = "postgres", **options: Any) -> Any:
        import psycopg

        return psycopg.connect(
            host="127.0.0.1", port=self.port, user="moldau", dbname=database, **options
        )

    def database(self) -> str:
        """The name of a new, empty database."""
        name = f"test{next(_numbers)}"
        with self.connect(autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return name

    def url(self, database: str) -> str:
        return f"jdbc:postgresql://127.0.0.1:{self.port}/{database}?user=moldau"


@contextlib.contextmanager
def running_postgres() -> Iterator[Postgres]:
    found = programs()
    assert found is not None, postgres_missing()
    user = unprivileged()
    # Not pytest's folder: that one is closed to other users.
    folder = Path(tempfile.mkdtemp(prefix="moldau-postgres-"))
    if user is not None:
        os.chown(folder, user.pw_uid, user.pw_gid)
    data = folder / "data"
    try:
        run(user, found / "initdb", "-D", data, "-U", "moldau", "-A", "trust", "-N")
        with _server(user, found / "postgres", data) as cluster:
            yield cluster
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def arguments(cluster: Postgres, data: Path) -> list[str]:
    settings = {
        "listen_addresses": "127.0.0.1",
        "port": cluster.port,
        "unix_socket_directories": data.parent,
        "fsync": "off",
        "wal_level": "logical",
        "max_replication_slots": 30,
        "max_wal_senders": 30,
        "max_connections": 40,
    }
    return [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]


@contextlib.contextmanager
def _server(user: pwd.struct_passwd | None, program: Path, data: Path) -> Iterator[Postgres]:
    cluster = Postgres(free_port())
    with open(data.parent / "log", "wb") as log:
        process = subprocess.Popen(
            [program, "-D", data, *arguments(cluster, data)],
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=data.parent,
            **as_user(user),
        )
    try:
        eventually(
            lambda: process.poll() is None and answers(cluster),
            what=f"PostgreSQL answers: {(data.parent / 'log').read_text()}",
            seconds_max=_START_SECONDS_MAX,
        )
        yield cluster
    finally:
        # SIGINT is PostgreSQL's fast shutdown: it ends sessions instead of waiting for them.
        process.send_signal(signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def answers(cluster: Postgres) -> bool:
    import psycopg

    try:
        cluster.connect(connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True


def unprivileged() -> pwd.struct_passwd | None:
    if os.getuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")


def as_user(user: pwd.struct_passwd | None) -> dict[str, Any]:
    return {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def run(user: pwd.struct_passwd | None, program: Path, *arguments: object) -> None:
    done = subprocess.run(
        [program, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=_START_SECONDS_MAX,
        cwd="/",
        check=False,
        **as_user(user),
    )
    assert done.returncode == 0, done.stderr
