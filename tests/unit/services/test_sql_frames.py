"""The forms in which rows of queries are sent."""

from __future__ import annotations

import json

from moldau.services.sql.machine.frames import (
    DELIMITED,
    V1,
    V1_PROTOBUF,
    frames_of,
    streamed_type,
)
from moldau.services.sql.machine.protobuf_rows import ProtobufMessages, protobuf_writer
from moldau.sql.types import BIGINT, STRING, Column, Namespace

_COLUMNS = [Column("ID", BIGINT, Namespace.KEY), Column("NAME", STRING)]


def test_deleted_rows_are_shown_by_messages_only() -> None:
    assert frames_of(DELIMITED).row("[1]", tombstone=True) == ""
    assert frames_of("application/json").row("[1]", tombstone=True) == ""
    message = frames_of(V1).row("[1,null]", tombstone=True).removesuffix(",\n")
    assert json.loads(message) == {"row": {"tombstone": True, "columns": [1, None]}}


def test_the_first_known_type_of_a_client_counts() -> None:
    assert streamed_type(f"text/html, {V1_PROTOBUF}, */*", DELIMITED) == V1_PROTOBUF
    assert streamed_type("application/json, */*", DELIMITED) == "application/json"
    assert streamed_type("*/*", DELIMITED) == DELIMITED


def test_rows_as_protobuf_bring_their_schema() -> None:
    frames = ProtobufMessages()
    header = json.loads(frames.header("q", _COLUMNS).removesuffix(",\n") + "]")[0]["header"]
    assert header["schema"] == "`ID` BIGINT KEY, `NAME` STRING"
    assert "int64 ID = 1;\n  string NAME = 2;" in header["protoSchema"]
    row = frames.row(protobuf_writer(_COLUMNS)((1, "a")))
    assert json.loads(row.removesuffix(",\n")) == {"row": {"protobufBytes": "CAESAWE="}}
