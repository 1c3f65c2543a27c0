"""How rows are written to a client: a JSON array of messages, lines, or a JSON array of rows.

`frames_of` chooses by the negotiated type. Each answer begins with `header`, has a `row` for each
row, and ends with `end`, whatever happened: an error that comes after the first row is a message of
its own, because the status has been sent.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, Protocol

from moldau.sql.types import Column

__all__ = [
    "DELIMITED",
    "V1",
    "V1_PROTOBUF",
    "Frames",
    "Messages",
    "frames_of",
    "streamed_type",
    "whole",
]

V1: Final = "application/vnd.ksql.v1+json"
V1_PROTOBUF: Final = "application/vnd.ksql.v1+protobuf"
DELIMITED: Final = "application/vnd.ksqlapi.delimited.v1"

Error = dict[str, Any]


class Frames(Protocol):
    def header(self, query_id: str | None, columns: Sequence[Column]) -> str: ...

    def row(self, columns: str, *, tombstone: bool = False) -> str:
        """`columns` is a JSON array."""

    def end(self, message: str | None, error: Error | None) -> str: ...


class Messages:
    """An array of a header, rows and a last message: /query, and ksqlDB's own type.

    Each has a line, which ends when it is sent: clients read line by line.
    """

    def header(self, query_id: str | None, columns: Sequence[Column]) -> str:
        schema = ", ".join(map(str, columns))
        return "[" + json.dumps({"header": {"queryId": query_id, "schema": schema}}) + ",\n"

    def row(self, columns: str, *, tombstone: bool = False) -> str:
        if tombstone:
            return f'{{"row":{{"tombstone":true,"columns":{columns}}}}},\n'
        return f'{{"row":{{"columns":{columns}}}}},\n'

    def end(self, message: str | None, error: Error | None) -> str:
        last = {"finalMessage": message} if error is None else {"errorMessage": error}
        return json.dumps(last) + "]\n"


def _header(query_id: str | None, columns: Sequence[Column]) -> str:
    return json.dumps(
        {
            "queryId": query_id,
            "columnNames": [each.name for each in columns],
            "columnTypes": [str(each.type) for each in columns],
        }
    )


class Lines:
    """A line with the columns, then a line per row: /query-stream. Deleted rows are not shown."""

    def header(self, query_id: str | None, columns: Sequence[Column]) -> str:
        return _header(query_id, columns) + "\n"

    def row(self, columns: str, *, tombstone: bool = False) -> str:
        return "" if tombstone else columns + "\n"

    def end(self, message: str | None, error: Error | None) -> str:
        return "" if error is None else json.dumps(error) + "\n"


class Rows:
    """The same as Lines, as one JSON array."""

    def header(self, query_id: str | None, columns: Sequence[Column]) -> str:
        return "[" + _header(query_id, columns)

    def row(self, columns: str, *, tombstone: bool = False) -> str:
        return "" if tombstone else ",\n" + columns

    def end(self, message: str | None, error: Error | None) -> str:
        return "]\n" if error is None else ",\n" + json.dumps(error) + "]\n"


def whole(frames: Frames, header: str, rows: Sequence[str], message: str | None) -> str:
    """An answer that is complete; without a last message where nothing is to be said."""
    text = header + "".join(rows)
    if message is None and isinstance(frames, Messages):
        return text.removesuffix(",\n") + "]\n"
    return text + frames.end(message, None)


def streamed_type(accept: str | None, negotiated: str) -> str:
    """The type of a streamed answer. Of types that are equally welcome the client's first counts,
    as in ksqlDB: `application/json, */*` does not mean lines."""
    for each in (accept or "").split(","):
        name = each.partition(";")[0].strip().lower()
        if name in (DELIMITED, V1, V1_PROTOBUF, "application/json"):
            return name
    return negotiated


def frames_of(media_type: str) -> Frames:
    """For /query-stream."""
    if media_type == V1:
        return Messages()
    return Rows() if media_type == "application/json" else Lines()
