"""MariaDB as Python sees it: connections, the types of its columns, rows as Arrow batches."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Sequence
from importlib import import_module
from types import TracebackType
from typing import Any

import pyarrow as pa

from moldau.spark.tables.jdbc.machine.address import Address
from moldau.spark.tables.jdbc.machine.statements import quoted

from ..errors import TableError
from ..sinks import missing_extra

MARK = "%s"
AS_TEXT = "CHAR"
# Names in double quotes, and a value that does not fit is refused instead of changed.
_SQL_MODE = "ANSI_QUOTES,STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
_CONNECT_SECONDS = 30
_DECIMAL_DIGITS_MAX = 38
_UNSIGNED = 32
_BINARY_CHARSET = 63
# Values that a table refuses: null, duplicates, out of range, too long, of another type, not
# allowed by a CHECK or a foreign key.
_REFUSED = frozenset(
    {1048, 1062, 1216, 1217, 1264, 1265, 1292, 1364, 1366, 1406, 1451, 1452, 1526, 1690, 4025}
)


def driver() -> Any:
    try:
        found = import_module("pymysql")
        import_module("pymysql.cursors")
    except ImportError:
        raise missing_extra("PyMySQL") from None
    return found


class Connection:
    """A connection whose times are UTC; `execute` gives a cursor, as other drivers do."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._connection.commit()
        finally:
            self.close()

    def execute(self, statement: str, values: Sequence[Any] | None = None) -> Any:
        cursor = self._connection.cursor()
        cursor.execute(statement, values)
        return cursor

    def insert_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """As few statements as fit what the server takes at once."""
        with self._connection.cursor() as cursor:
            cursor.executemany(statement, rows)

    def unbuffered(self) -> Any:
        """A cursor whose rows stay on the server until they are fetched."""
        return self._connection.cursor(driver().cursors.SSCursor)

    def commit(self) -> None:
        self._connection.commit()

    def close(self) -> None:
        self._connection.close()


def connect(address: Address) -> Connection:
    """A server that does not answer is given up on."""
    pymysql = driver()
    given = dict(address.parameters)
    where = f"{given['host']}:{given['port']}"
    timeout_ms = int(given.get("connect_timeout", _CONNECT_SECONDS * 1000))
    read_ms = int(given.get("read_timeout", 0))
    try:
        connection = pymysql.connect(
            host=given["host"],
            port=int(given["port"]),
            user=given.get("user"),
            password=given.get("password", ""),
            database=given["database"],
            charset="utf8mb4",
            autocommit=False,
            connect_timeout=max(1, timeout_ms // 1000),
            read_timeout=read_ms / 1000 or None,
            ssl=_ssl(given),
            sql_mode=_SQL_MODE,
            init_command="SET time_zone = '+00:00'",
        )
    except (pymysql.err.MySQLError, OSError) as error:
        raise TableError(
            f"MariaDB at {where} cannot be reached: {reason(error)}",
            "Check host, port, database, user and password of the jdbc: address",
        ) from None
    return Connection(connection)


def _ssl(given: dict[str, str]) -> ssl.SSLContext | None:
    mode = given.get("sslmode", "disable")
    if mode == "disable":
        return None
    context = ssl.create_default_context(cafile=given.get("ssl_ca"))
    context.check_hostname = mode == "verify-full"
    if mode == "trust":
        context.verify_mode = ssl.CERT_NONE
    return context


def errors() -> Any:
    return driver().err.MySQLError


def is_refusal(error: Exception) -> bool:
    """Whether the database refuses a row, and nothing else is wrong."""
    return bool(error.args) and error.args[0] in _REFUSED


def reason(error: Exception) -> str:
    """What the database says, without the number."""
    text = str(error.args[1]) if len(error.args) > 1 else str(error)
    return text.strip().partition("\n")[0]


def delayed_now(delay_ms: int) -> str:
    return f"CURRENT_TIMESTAMP(6) - INTERVAL {delay_ms * 1000} MICROSECOND"


def relation_columns(connection: Connection, relation: str) -> list[tuple[str, Any, str]]:
    """Name, Arrow type and SQL expression of each column of a table or (query).

    A type that Arrow lacks is read as text: that keeps every value, and can be cast in a step.
    """
    cursor = connection.execute(f"SELECT * FROM {relation} moldau_columns LIMIT 0")
    found = []
    for field in cursor._result.fields:
        name = quoted(field.name)
        arrow_type, expression = _arrow_type(field, name)
        found.append((field.name, arrow_type, expression))
    return found


def _arrow_type(field: Any, name: str) -> tuple[Any, str]:
    types = driver().constants.FIELD_TYPE
    unsigned = bool(field.flags & _UNSIGNED)
    whole = {
        types.SHORT: (pa.int16(), pa.int32()),
        types.INT24: (pa.int32(), pa.int32()),
        types.LONG: (pa.int32(), pa.int64()),
        types.LONGLONG: (pa.int64(), pa.decimal128(20, 0)),
        types.YEAR: (pa.int32(), pa.int32()),
    }
    simple = {
        types.FLOAT: pa.float32(),
        types.DOUBLE: pa.float64(),
        types.DATE: pa.date32(),
        types.DATETIME: pa.timestamp("us"),
        types.TIMESTAMP: pa.timestamp("us", "UTC"),
    }
    texts = (types.VARCHAR, types.VAR_STRING, types.STRING, types.ENUM, types.SET)
    blobs = (types.TINY_BLOB, types.MEDIUM_BLOB, types.LONG_BLOB, types.BLOB)
    code = field.type_code
    if code == types.TINY:
        if field.length == 1:
            return pa.bool_(), name
        return (pa.int16() if unsigned else pa.int8()), name
    if code in whole:
        return whole[code][unsigned], name
    if code in simple:
        return simple[code], name
    if code == types.NEWDECIMAL:
        digits = field.length - (field.scale > 0) - (not unsigned)
        if digits <= _DECIMAL_DIGITS_MAX:
            return pa.decimal128(digits, field.scale), name
    elif code == types.BIT:
        return (pa.bool_() if field.length == 1 else pa.int64()), f"({name} + 0)"
    elif code in texts or code in blobs:
        return (pa.binary() if field.charsetnr == _BINARY_CHARSET else pa.string()), name
    elif code == types.GEOMETRY:
        return pa.string(), f"ST_AsText({name})"
    return pa.string(), f"CAST({name} AS {AS_TEXT})"


def select(
    connection: Connection, statement: str, values: Sequence[Any], schema: Any, fetch_size: int
) -> Iterator[Any]:
    """Rows in Arrow batches that stay on the server until they are read: memory holds one batch."""
    with connection.unbuffered() as cursor:
        cursor.execute(statement, values)
        while rows := cursor.fetchmany(fetch_size):
            columns = zip(*rows, strict=True)
            arrays = [
                _array(name, list(column), arrow_type)
                for name, column, arrow_type in zip(
                    schema.names, columns, schema.types, strict=True
                )
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(name: str, values: list[Any], arrow_type: Any) -> Any:
    try:
        if pa.types.is_boolean(arrow_type):
            values = [None if value is None else bool(value) for value in values]
        elif pa.types.is_string(arrow_type):
            values = [value.decode() if isinstance(value, bytes) else value for value in values]
        return pa.array(values, arrow_type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeDecodeError) as error:
        raise TableError(
            f"column {name!r} has a value that does not fit {arrow_type}: {error}",
            "Cast the column in a query:, or give schema: with a wider type",
        ) from None
