"""Whole messages, with and without their schema."""

from __future__ import annotations

from typing import Any

from moldau.data import json_text
from moldau.data.connect_json.options import JsonOptions
from moldau.data.connect_json.reading import JsonReader, load
from moldau.data.connect_json.writing import JsonWriter
from moldau.data.errors import DataError
from moldau.data.schema import Schema, SchemaAndValue


class JsonConverter:
    """Converts messages; it remembers the schemas it has met, up to a number."""

    def __init__(self, options: JsonOptions | None = None) -> None:
        self._options = options or JsonOptions()
        self._writer = JsonWriter(self._options)
        self._reader = JsonReader(self._options)

    def to_json(self, schema: Schema | None, value: Any) -> bytes | None:
        """A message of the value; None, a tombstone, for no value without schema."""
        if schema is None and value is None:
            return None
        try:
            written, payload = self._writer.message(schema, value)
            if not self._options.schemas_enable:
                return payload
            return b'{"schema":%b,"payload":%b}' % (written, payload)
        except RecursionError:
            raise DataError("The value is nested too deeply for JSON") from None

    def from_json(self, data: bytes | None) -> SchemaAndValue:
        """The value of a message, with its schema if there is one."""
        if data is None:
            return SchemaAndValue(None, None)
        try:
            found = self._reader.after_prefix(data)
            if found is None:
                found = self._reader.message(load(data))
                self._reader.remember_prefix(data, found.schema)
            return found
        except RecursionError:
            raise DataError("The JSON is nested too deeply") from None


def schema_to_json(schema: Schema) -> bytes:
    """A schema as JSON, as it is in a message's envelope."""
    return JsonWriter(JsonOptions()).schema(schema)


def schema_from_json(data: bytes) -> Schema | None:
    """The schema that `schema_to_json` wrote; ValueError for anything else."""
    return JsonReader(JsonOptions()).schema(json_text.parse(data, decimals=True))
