"""PostgreSQL as Python sees it: connections, the types of its columns, rows as Arrow batches."""

from __future__ import annotations

import decimal
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from moldau.spark.tables.jdbc.machine.address import Address

from ..errors import TableError
from ..sinks import missing_extra

_TYPES = {
    "bool": pa.bool_(),
    "bytea": pa.binary(),
    "int2": pa.int16(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "oid": pa.int64(),
    "float4": pa.float32(),
    "float8": pa.float64(),
    "text": pa.string(),
    "varchar": pa.string(),
    "bpchar": pa.string(),
    "name": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
}
MARK = "%s"
AS_TEXT = "text"
# As in Spark's own JDBC source: numeric without bounds.
_ANY_NUMERIC = pa.decimal128(38, 18)
_DECIMAL_DIGITS_MAX = 38
# As many digits as PostgreSQL's numeric may have are rounded right.
_WIDE = decimal.Context(prec=150_000)


def driver() -> Any:
    try:
        import psycopg
    except ImportError:
        raise missing_extra("psycopg") from None
    return psycopg


def connect(address: Address, *, autocommit: bool = False) -> Any:
    """A connection whose times are UTC. A server that does not answer is given up on."""
    psycopg = driver()
    parameters = {"connect_timeout": "30", **dict(address.parameters)}
    try:
        connection = psycopg.connect(**parameters, autocommit=True)
    except psycopg.OperationalError as error:
        where = f"{parameters.get('host', 'localhost')}:{parameters.get('port', '5432')}"
        raise TableError(
            f"PostgreSQL at {where} cannot be reached: {str(error).partition(chr(10))[0]}",
            "Check host, port, user and password of the jdbc: address",
        ) from None
    connection.execute("SET TIME ZONE 'UTC'")
    connection.autocommit = autocommit
    return connection


def errors() -> Any:
    return driver().Error


def delayed_now(delay_ms: int) -> str:
    return f"CURRENT_TIMESTAMP - interval '{delay_ms} milliseconds'"


def relation_columns(connection: Any, relation: str) -> list[tuple[str, Any, str]]:
    """Name, Arrow type and SQL expression of each column of a table or (query).

    A type that Arrow lacks is read as text: that keeps every value, and can be cast in a step.
    """
    cursor = connection.execute(f"SELECT * FROM {relation} moldau_columns LIMIT 0")
    found = []
    for column in cursor.description or ():
        name = '"' + column.name.replace('"', '""') + '"'
        arrow_type = _arrow_type(connection, column)
        if arrow_type is None:
            found.append((column.name, pa.string(), f"{name}::text"))
        else:
            found.append((column.name, arrow_type, name))
    return found


def _arrow_type(connection: Any, column: Any) -> Any:
    info = connection.adapters.types.get(column.type_code)
    if info is None:
        return None
    if info.array_oid == column.type_code and info.oid != column.type_code:
        element = _TYPES.get(info.name)
        return None if element is None else pa.list_(element)
    if info.name == "numeric":
        if column.precision is None or not 0 <= (column.scale or 0) <= column.precision:
            return _ANY_NUMERIC
        if column.precision > _DECIMAL_DIGITS_MAX:
            return None
        return pa.decimal128(column.precision, column.scale or 0)
    return _TYPES.get(info.name)


def select(
    connection: Any, statement: str, parameters: Sequence[Any], schema: Any, fetch_size: int
) -> Iterator[Any]:
    """Rows in Arrow batches, through a cursor on the server: memory holds one batch."""
    with connection.cursor(name="moldau_source") as cursor:
        cursor.itersize = fetch_size
        cursor.execute(statement, parameters)
        while rows := cursor.fetchmany(fetch_size):
            columns = zip(*rows, strict=True)
            arrays = [
                _array(name, list(values), arrow_type)
                for name, values, arrow_type in zip(
                    schema.names, columns, schema.types, strict=True
                )
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(name: str, values: list[Any], arrow_type: Any) -> Any:
    try:
        if pa.types.is_decimal(arrow_type):
            return _decimals(values, arrow_type)
        return pa.array(values, arrow_type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise TableError(
            f"column {name!r} has a value that does not fit {arrow_type}: {error}",
            "Cast the column in a query:, or give schema: with a wider type",
        ) from None


def _decimals(values: list[Any], arrow_type: Any) -> Any:
    """PostgreSQL's numeric has more digits than any fixed scale: excess ones are rounded off.

    NaN and infinity, which Spark's decimals lack, become null.
    """
    return pa.array([_to_scale(value, arrow_type.scale) for value in values], arrow_type)


def _to_scale(value: Any, scale: int) -> Any:
    if value is None or not value.is_finite():
        return None
    if -value.as_tuple().exponent <= scale:
        return value
    return value.quantize(decimal.Decimal(1).scaleb(-scale), context=_WIDE)
