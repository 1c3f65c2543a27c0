"""An Arrow batch that is to be written, checked and taken apart into buffers.

Invariants: columns are found by name, as Spark's Kafka sink has them (key, value, headers,
topic, partition, and timestamp beside them); what cannot become records is refused with the column,
and where it is a row's fault with the row, before anything of the batch is written.
"""

from __future__ import annotations

from typing import Any

from moldau.spark.columns._rows import BinaryInput, HeaderInput, NumberInput, Rows
from moldau.spark.columns.errors import RowError
from moldau.spark.columns.schema import HEADERS, pyarrow

__all__ = ["TIMESTAMP_MAX", "rows_of"]

TIMESTAMP_MAX = 2**63 - 1
_KNOWN = ("key", "value", "headers", "topic", "partition", "timestamp")


def rows_of(
    batch: pyarrow.RecordBatch, *, default_topic: str | None, first_row: int, now_ms: int
) -> tuple[Rows, list[str]]:
    """The rows, and the topics that they name by index. `first_row` is the number of the first."""
    columns = {name: batch.column(index) for index, name in enumerate(batch.schema.names)}
    if "value" not in columns:
        shown = ", ".join(batch.schema.names) or "none"
        raise RowError(f"there is no column value; the columns are: {shown}")
    for name in columns:
        if name not in _KNOWN:
            raise RowError(
                f"column {name} is none of {', '.join(_KNOWN)}: select those, and make one value "
                "of the others, for example with to_json(struct(*))"
            )
    topics, names = _topics(columns.get("topic"), default_topic, first_row)
    rows = Rows(
        batch.num_rows,
        key=_binary("key", columns.get("key")),
        value=_binary("value", columns["value"]),
        headers=_headers(columns.get("headers"), first_row),
        topics=topics,
        partitions=_partitions(columns.get("partition")),
        timestamps=_timestamps(columns.get("timestamp"), first_row),
        now_ms=now_ms,
    )
    return rows, names


def _binary(name: str, column: pyarrow.Array | None) -> BinaryInput | None:
    if column is None or pyarrow.types.is_null(column.type):
        return None
    kind = column.type
    if not (pyarrow.types.is_binary(kind) or pyarrow.types.is_string(kind)):
        wide = (
            pyarrow.types.is_large_binary(kind)
            or pyarrow.types.is_large_string(kind)
            or pyarrow.types.is_fixed_size_binary(kind)
            or str(kind) in ("binary_view", "string_view")
        )
        if not wide:
            raise RowError(f"column {name} has type {kind}; it must be binary or string")
        column = column.cast(pyarrow.binary())
    validity, ends, data = column.buffers()
    return BinaryInput(
        _view(validity) if column.null_count else None, _view(ends), _view(data), column.offset
    )


def _view(buffer: pyarrow.Buffer | None) -> memoryview:
    """Arrow's bytes are signed."""
    return memoryview(b"" if buffer is None else buffer).cast("B")


def _headers(column: pyarrow.Array | None, first_row: int) -> HeaderInput | None:
    if column is None or pyarrow.types.is_null(column.type):
        return None
    if column.type != HEADERS:
        try:
            column = column.cast(HEADERS)
        except (pyarrow.ArrowException, ValueError) as error:
            raise RowError(
                f"column headers has type {column.type}; it must be an array of structs of a "
                "string key and a binary value"
            ) from error
    pairs = column.values
    names, values = pairs.field("key"), pairs.field("value")
    if pairs.null_count or names.null_count:
        _refuse_nameless(column, first_row)
    return HeaderInput(
        _view(column.buffers()[0]) if column.null_count else None,
        _view(column.buffers()[1]),
        column.offset,
        _required(_binary("headers.key", names)),
        _required(_binary("headers.value", values)),
    )


def _refuse_nameless(column: pyarrow.Array, first_row: int) -> None:
    for row, pairs in enumerate(column):
        for pair in pairs.as_py() or ():
            if pair is None or pair["key"] is None:
                raise RowError("a header has no key", row=first_row + row)


def _required(found: BinaryInput | None) -> BinaryInput:
    if found is None:
        raise RowError("column headers has no keys and values")
    return found


def _topics(
    column: pyarrow.Array | None, default_topic: str | None, first_row: int
) -> tuple[NumberInput | None, list[str]]:
    if column is None or pyarrow.types.is_null(column.type):
        if default_topic is None:
            raise RowError("no topic is given: set the option topic, or add a column topic")
        return None, [default_topic]
    if not (pyarrow.types.is_string(column.type) or pyarrow.types.is_large_string(column.type)):
        raise RowError(f"column topic has type {column.type}; it must be string")
    if column.null_count:
        if default_topic is None:
            row = next(index for index, each in enumerate(column) if not each.is_valid)
            raise RowError(
                "column topic is null: set the option topic for such rows", row=first_row + row
            )
        column = column.fill_null(default_topic)
    encoded = column.dictionary_encode()
    names = encoded.dictionary.to_pylist()
    if len(names) == 1:
        return None, names
    indices = encoded.indices
    return NumberInput(None, _view(indices.buffers()[1]), indices.offset, is_wide=False), names


def _partitions(column: pyarrow.Array | None) -> NumberInput | None:
    return _numbers(column, "partition", pyarrow.int32(), is_wide=False)


def _timestamps(column: pyarrow.Array | None, first_row: int) -> NumberInput | None:
    if column is None or pyarrow.types.is_null(column.type):
        return None
    if not pyarrow.types.is_timestamp(column.type):
        raise RowError(f"column timestamp has type {column.type}; it must be timestamp")
    # Kafka's timestamps are milliseconds; what is finer is cut off, as in Spark.
    in_ms = column.cast(pyarrow.timestamp("ms", tz=column.type.tz), safe=False)
    numbers = in_ms.cast(pyarrow.int64())
    if len(numbers) and numbers.null_count < len(numbers):
        lowest = min_of(numbers)
        if lowest < 0:
            row = next(index for index, each in enumerate(numbers) if (each.as_py() or 0) < 0)
            raise RowError("a timestamp before 1970 cannot be written", row=first_row + row)
    return _numbers(numbers, "timestamp", pyarrow.int64(), is_wide=True)


def min_of(numbers: pyarrow.Array) -> int:
    from pyarrow import compute

    found: int = compute.min(numbers).as_py()
    return found


def _numbers(
    column: pyarrow.Array | None, name: str, kind: Any, *, is_wide: bool
) -> NumberInput | None:
    if column is None or pyarrow.types.is_null(column.type):
        return None
    if column.type != kind:
        if not pyarrow.types.is_integer(column.type):
            raise RowError(f"column {name} has type {column.type}; it must be int")
        try:
            column = column.cast(kind)
        except pyarrow.ArrowException as error:
            raise RowError(f"column {name} has numbers that do not fit {kind}: {error}") from error
    validity, numbers = column.buffers()
    return NumberInput(
        _view(validity) if column.null_count else None,
        _view(numbers),
        column.offset,
        is_wide=is_wide,
    )
