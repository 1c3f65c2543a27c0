"""Where the pipelines put orders, and how to look into it afterwards without Spark."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from moldau.installation import pip_install

__all__ = ["Database", "parquet_rows", "reachable"]

Rows = Sequence[tuple[str, str]]
TABLE = "orders_demo"


class Database:
    """A PostgreSQL database by `postgresql://user:password@host:port/name`, or a SQLite file."""

    def __init__(self, address: str | Path) -> None:
        self._address = address

    @property
    def name(self) -> str:
        return "SQLite" if isinstance(self._address, Path) else "PostgreSQL"

    @property
    def jdbc_url(self) -> str:
        if isinstance(self._address, Path):
            return f"jdbc:sqlite:{self._address}"
        parts = urlsplit(self._address)
        where = f"{parts.hostname or '127.0.0.1'}:{parts.port or 5432}{parts.path}"
        given = {"user": parts.username, "password": parts.password}
        query = "&".join(f"{key}={value}" for key, value in given.items() if value)
        return f"jdbc:postgresql://{where}" + (f"?{query}" if query else "")

    def prepare(self) -> None:
        """Without the table, which the pipeline makes."""
        with contextlib.closing(self._connect()) as connection:
            connection.cursor().execute(f"DROP TABLE IF EXISTS {TABLE}")
            connection.commit()

    def rows(self) -> Rows:
        """None while there is no table yet."""
        with contextlib.closing(self._connect()) as connection:
            cursor = connection.cursor()
            try:
                cursor.execute(f"SELECT id, state FROM {TABLE}")
            except Exception as error:
                if TABLE in str(error):
                    return []
                raise
            return [(str(order_id), str(state)) for order_id, state in cursor.fetchall()]

    def _connect(self) -> Any:
        if isinstance(self._address, Path):
            return sqlite3.connect(self._address, timeout=30)
        import psycopg

        return psycopg.connect(self._address, connect_timeout=5)


def reachable(address: str) -> str | None:
    """Why a PostgreSQL database cannot be used, None if it can."""
    try:
        import psycopg
    except ImportError:
        return f"psycopg is not installed: {pip_install('spark')}"
    try:
        psycopg.connect(address, connect_timeout=5).close()
    except psycopg.Error as error:
        return str(error).splitlines()[0]
    return None


def parquet_rows(folder: Path) -> Rows:
    """Only of files that the pipeline has committed, which Spark keeps a list of: a task that was
    tried again leaves others behind."""
    import pyarrow.parquet as parquet

    rows: list[tuple[str, str]] = []
    for path in _committed(folder):
        found = parquet.ParquetFile(path).read(columns=["id", "state"]).to_pylist()
        rows += [(each["id"], each["state"]) for each in found]
    return rows


def _committed(folder: Path) -> set[Path]:
    """Spark's file sink writes a file for each batch, every tenth with all there were before."""
    paths: set[Path] = set()
    for batch in (folder / "_spark_metadata").glob("[0-9]*"):
        for line in batch.read_text().splitlines():
            if line.startswith("{"):
                paths.add(Path(unquote(urlsplit(json.loads(line)["path"]).path)))
    return paths
