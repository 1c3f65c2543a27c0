"""Records of sources that could not be converted, as JSON for a dead-letter topic."""

from __future__ import annotations

from collections.abc import Iterable

from moldau.connect.api import SourceRecord
from moldau.data.connect_json import JsonConverter, JsonOptions
from moldau.data.errors import DataError
from moldau.data.primitive_bytes import java_text
from moldau.data.values import to_text

_JSON = JsonConverter(JsonOptions(schemas_enable=False))


def raw_of_source(
    record: SourceRecord,
) -> tuple[bytes | None, bytes | None, Iterable[tuple[str, bytes | None]]]:
    """Key, value and headers; what JSON cannot hold is printed."""
    headers = []
    for each in record.headers:
        text = None if each.value is None else to_text(each.value, each.schema)
        headers.append((each.key, None if text is None else text.encode()))
    key = _json(record.key_schema, record.key)
    return key, _json(record.value_schema, record.value), headers


def _json(schema: object, value: object) -> bytes | None:
    if value is None:
        return None
    try:
        return _JSON.to_json(schema, value)  # type: ignore[arg-type]
    except DataError:
        return java_text(value).encode("utf-8", "replace")
