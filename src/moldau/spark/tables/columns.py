"""How a frame's columns fit a table's: which are added, which are widened, which cannot be.

Columns are matched by name. A table column that the frame lacks becomes null; a frame column that
the table lacks is added with `mergeSchema` and is an error without. Types may only widen (int to
long, float to double, decimal to a larger one), so that no value is ever changed by being written.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from .errors import SchemaMismatchError

_INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]
_DECIMAL_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}


def arrow_schema(spark_schema: Any) -> Any:
    """The Arrow form of Spark's columns, all nullable, timestamps in UTC."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_schema

    try:
        schema = to_arrow_schema(spark_schema, timezone="UTC")
    except (PySparkException, TypeError) as error:
        raise SchemaMismatchError(
            f"a column's type cannot be stored: {error}", "Cast it in a step, for instance to text"
        ) from None
    return pa.schema([field.with_nullable(True) for field in schema])


def added_columns(where: str, table: Any, frame: Any, *, merge_schema: bool) -> list[Any]:
    """The fields that must be added to the table first; an error if the frame does not fit."""
    added = [field for field in frame if field.name not in table.names]
    if added and not merge_schema:
        wanted = ", ".join(f"{field.name} {field.type}" for field in added)
        raise SchemaMismatchError(
            f"{where} has no column for {wanted}",
            f"Its columns are {', '.join(table.names)}. Add mergeSchema: true to have them added, "
            "or leave them out in a step",
        )
    for field in frame:
        if field.name in table.names and not widens(field.type, table.field(field.name).type):
            raise SchemaMismatchError(
                f"{where}: column {field.name!r} is {table.field(field.name).type}, and "
                f"{field.type} does not fit in",
                "Cast it in a step",
            )
    for field in table:
        if not field.nullable and field.name not in frame.names:
            raise SchemaMismatchError(
                f"{where}: column {field.name!r} must not be null, and the rows have no such column"
            )
    return added


def widens(given: Any, wanted: Any) -> bool:
    """Whether every value of `given` is a value of `wanted`."""
    if given == wanted or _is_large(given, wanted):
        return True
    if given in _INTEGERS:
        if wanted in _INTEGERS:
            return _INTEGERS.index(given) <= _INTEGERS.index(wanted)
        if pa.types.is_decimal(wanted):
            return int(wanted.precision - wanted.scale) >= _DECIMAL_DIGITS[given]
        return given != pa.int64() and bool(pa.types.is_float64(wanted))
    if pa.types.is_float32(given):
        return bool(pa.types.is_float64(wanted))
    if pa.types.is_decimal(given) and pa.types.is_decimal(wanted):
        whole = wanted.precision - wanted.scale >= given.precision - given.scale
        return bool(whole and wanted.scale >= given.scale)
    if pa.types.is_timestamp(given) and pa.types.is_timestamp(wanted):
        return (given.tz is None) == (wanted.tz is None)
    return _widens_inside(given, wanted)


def _widens_inside(given: Any, wanted: Any) -> bool:
    if _is_list(given) and _is_list(wanted):
        return widens(given.value_type, wanted.value_type)
    if pa.types.is_map(given) and pa.types.is_map(wanted):
        return widens(given.key_type, wanted.key_type) and widens(given.item_type, wanted.item_type)
    if pa.types.is_struct(given) and pa.types.is_struct(wanted):
        names = [field.name for field in given]
        return names == [field.name for field in wanted] and all(
            widens(given.field(name).type, wanted.field(name).type) for name in names
        )
    return False


def _is_large(given: Any, wanted: Any) -> bool:
    return any(
        narrow(one) and wide(other)
        for narrow, wide in (
            (pa.types.is_string, pa.types.is_large_string),
            (pa.types.is_binary, pa.types.is_large_binary),
        )
        for one, other in ((given, wanted), (wanted, given))
    )


def _is_list(arrow_type: Any) -> bool:
    return bool(pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type))


def fit(where: str, batch: Any, schema: Any) -> Any:
    """The batch with exactly the table's columns, in its order and types."""
    columns = []
    for field in schema:
        if field.name in batch.schema.names:
            column = batch.column(field.name)
            column = column if column.type == field.type else column.cast(field.type)
        else:
            column = pa.nulls(batch.num_rows, field.type)
        if not field.nullable and column.null_count:
            raise SchemaMismatchError(
                f"{where}: column {field.name!r} must not be null, and a row's is: "
                f"{first_row_where_null(batch, field.name)}",
                "Filter such rows in a step, or give them a value",
            )
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def first_row_where_null(batch: Any, name: str) -> dict[str, object]:
    index = batch.column(name).is_null().index(True).as_py()
    row: dict[str, object] = batch.slice(index, 1).to_pylist()[0]
    return row


def require_columns(where: str, option: str, names: Iterable[str], schema: Any) -> None:
    for name in names:
        if name not in schema.names:
            raise SchemaMismatchError(
                f"{where}: {option} names {name!r}, which the rows do not have",
                f"Their columns are {', '.join(schema.names)}",
            )


def last_of_each_key(table: Any, keys: tuple[str, ...], sequence_by: str) -> Any:
    """One row per key: the one with the largest `sequence_by`, else the last that came."""
    position = "__moldau_position"
    numbered = table.append_column(position, pa.array(range(table.num_rows), pa.int64()))
    order = [(position, "descending")]
    if sequence_by:
        order.insert(0, (sequence_by, "descending"))
    numbered = numbered.take(pa.compute.sort_indices(numbered, order))
    firsts = numbered.group_by(list(keys), use_threads=False).aggregate([(position, "first")])
    kept = firsts.column(f"{position}_first").combine_chunks().sort()
    return table.take(kept)
