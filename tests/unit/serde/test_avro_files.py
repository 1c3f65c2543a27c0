"""Avro container files, read with and without logical types."""

from __future__ import annotations

import datetime
import io

import pytest

from moldau.serde.avro_files import AvroFile, write_avro_file

SCHEMA = """{"type": "record", "name": "R", "fields": [
  {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
  {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]}]}"""
MOMENT = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_logical_types_can_be_left_as_they_are_underneath(codec: str) -> None:
    file = io.BytesIO()
    rows = [{"at": MOMENT, "day": MOMENT.date()}, {"at": MOMENT, "day": None}] * 3000
    write_avro_file(file, SCHEMA, rows, codec=codec)
    file.seek(0)
    assert list(AvroFile(file)) == rows
    file.seek(0)
    found = list(AvroFile(file, logical_types=False))
    assert found == [{"at": 1767225600000, "day": 20454}, {"at": 1767225600000, "day": None}] * 3000
