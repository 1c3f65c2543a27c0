"""ksqlDB's language over topics: text, syntax tree, plan, streams topology.

    from moldau import sql

    with sql.connect("http://127.0.0.1:8088") as connection:
        cursor = connection.execute("SELECT * FROM totals WHERE id = ?", ["a"])
        print(cursor.fetchall())

This module is a DB-API 2.0 module (PEP 249). Importing it loads nothing until a name is used.
"""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from moldau.sql.client.dbapi import Connection, Cursor, connect
    from moldau.sql.client.errors import (
        DatabaseError,
        DataError,
        Error,
        IntegrityError,
        InterfaceError,
        InternalError,
        NotSupportedError,
        OperationalError,
        ProgrammingError,
        Warning,
    )
    from moldau.sql.client.types import BINARY, DATETIME, NUMBER, ROWID, STRING

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]

apilevel: Final = "2.0"
#: Threads may share the module and connections, but not cursors.
threadsafety: Final = 2
#: `?` with a sequence; `:name` with a mapping works as well.
paramstyle: Final = "qmark"

Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes

_ERRORS = """
    Warning Error InterfaceError DatabaseError DataError OperationalError IntegrityError
    InternalError ProgrammingError NotSupportedError
"""
_MODULES = {
    **dict.fromkeys(("Connection", "Cursor", "connect"), "dbapi"),
    **dict.fromkeys(_ERRORS.split(), "errors"),
    **dict.fromkeys(("BINARY", "DATETIME", "NUMBER", "ROWID", "STRING"), "types"),
}


def DateFromTicks(ticks: float) -> datetime.date:
    return TimestampFromTicks(ticks).date()


def TimeFromTicks(ticks: float) -> datetime.time:
    return TimestampFromTicks(ticks).time()


def TimestampFromTicks(ticks: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(ticks, datetime.UTC)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f"moldau.sql.client.{_MODULES[name]}"), name)
    globals()[name] = found
    return found
