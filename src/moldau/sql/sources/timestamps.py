"""The TIMESTAMP property: which columns may be a record's time, and how they are read."""

from __future__ import annotations

from moldau.sql.errors import KsqlException
from moldau.sql.sources.data_source import TimestampColumn
from moldau.sql.sources.schema import LogicalSchema
from moldau.sql.types import BIGINT, STRING, TIMESTAMP


def check_timestamp_column(schema: LogicalSchema, timestamp: TimestampColumn | None) -> None:
    """An error where the column cannot be a record's time."""
    if timestamp is None:
        return
    column = schema.find(timestamp.name)
    if column is None:
        raise KsqlException(
            "The TIMESTAMP column set in the WITH clause does not exist in the schema: "
            f"'{timestamp.name}'"
        )
    if column.type is STRING:
        if timestamp.format is None:
            raise KsqlException(
                "A String timestamp field has been specified without also specifying the "
                "timestamp_format"
            )
        return
    if timestamp.format is not None:
        raise KsqlException(
            "'TIMESTAMP_FORMAT' set in the WITH clause can only be used when the timestamp column "
            "is of type STRING."
        )
    if column.type not in (BIGINT, TIMESTAMP):
        raise KsqlException(
            f"Timestamp column, `{timestamp.name}`, should be LONG(INT64), TIMESTAMP, or a String "
            "with a timestamp_format specified."
        )
