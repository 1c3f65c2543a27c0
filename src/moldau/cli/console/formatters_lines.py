"""Records as JSON, one object per line: what `--json` prints.

Keys, values and header values are strings; bytes that are not UTF-8 are in base64 under the same
name with `_base64` appended. A deserializer's numbers, lists and objects are JSON's.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING

from moldau.cli.console.formatters import Deserialize, Output, deserializer_of
from moldau.cli.support.machine.java_text import java_text
from moldau.wire.message_json import compact_json

if TYPE_CHECKING:
    from moldau.cli.console.formatters import RawRecord

__all__ = ["JsonLinesFormatter"]

_TIMESTAMP_TYPES = {0: "CreateTime", 1: "LogAppendTime"}


class JsonLinesFormatter:
    def __init__(self) -> None:
        self._key: Deserialize | None = None
        self._value: Deserialize | None = None

    def configure(self, settings: Mapping[str, str]) -> None:
        self._key = deserializer_of(settings, "key.deserializer", is_key=True)
        self._value = deserializer_of(settings, "value.deserializer", is_key=False)

    def write_to(self, record: RawRecord, output: Output) -> None:
        shown: dict[str, object] = {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "timestamp_type": _TIMESTAMP_TYPES.get(record.timestamp_type),
        }
        if record.leader_epoch is not None:
            shown["leader_epoch"] = record.leader_epoch
        if record.delivery_count is not None:
            shown["delivery_count"] = record.delivery_count
        shown["headers"] = [
            {"key": name} | _named("value", value) for name, value in record.headers
        ]
        shown |= _named("key", self._read(self._key, record.key, record))
        shown |= _named("value", self._read(self._value, record.value, record))
        output.write(compact_json(shown).encode() + b"\n")

    def close(self) -> None:
        pass

    @staticmethod
    def _read(deserialize: Deserialize | None, data: bytes | None, record: RawRecord) -> object:
        if data is None or deserialize is None:
            return data
        return deserialize(record.topic, data, record.headers)


def _named(name: str, value: object) -> dict[str, object]:
    if isinstance(value, bytes | bytearray | memoryview):
        data = bytes(value)
        try:
            return {name: data.decode()}
        except UnicodeDecodeError:
            return {f"{name}_base64": base64.b64encode(data).decode()}
    if value is None or isinstance(value, bool | int | float | str | list | dict):
        return {name: value}
    return {name: java_text(value).decode(errors="replace")}
