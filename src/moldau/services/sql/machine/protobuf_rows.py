"""Rows as Protobuf messages: `Accept: application/vnd.ksql.v1+protobuf`."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from typing import Any

from moldau.services.sql.machine.frames import Messages
from moldau.sql.types import Column

__all__ = ["ProtobufMessages", "protobuf_writer"]


class ProtobufMessages(Messages):
    """ksqlDB's array of messages; the header has the schema of the rows, which are bytes."""

    def header(self, query_id: str | None, columns: Sequence[Column]) -> str:
        # The library is an extra, and few clients ask for this.
        from moldau.sql.formats.protobuf import message_schema

        found = {
            "queryId": query_id,
            "schema": ", ".join(map(str, columns)),
            "protoSchema": message_schema(columns),
        }
        return "[" + json.dumps({"header": found}) + ",\n"

    def row(self, columns: str, *, tombstone: bool = False) -> str:
        if tombstone:
            return super().row(columns, tombstone=True)
        return f'{{"row":{{"protobufBytes":{columns}}}}},\n'


def protobuf_writer(columns: Sequence[Column]) -> Callable[[Sequence[Any]], str]:
    """A row as the JSON text of its message's bytes."""
    from moldau.sql.formats.protobuf import ProtobufNoRegistryFormat

    serde = ProtobufNoRegistryFormat({}).serde(columns, frozenset(), None, is_key=False)

    def write(row: Sequence[Any]) -> str:
        message = serde.serialize("", tuple(row)) or b""
        return f'"{base64.b64encode(message).decode()}"'

    return write
