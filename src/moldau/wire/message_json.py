"""Messages of the wire as Kafka's tools print them in JSON: its field names, bytes in base64."""

from __future__ import annotations

import base64
import json
from typing import Any
from uuid import UUID

from moldau.wire.message import Message
from moldau.wire.uuids import ZERO_UUID, uuid_to_text

__all__ = ["compact_json", "message_to_json"]


def message_to_json(message: Message, version: int) -> dict[str, object]:
    """The fields that exist in `version`; tagged fields only if they differ from their default."""
    found: dict[str, object] = {}
    for name, _, first, last, _, tag, default, _ in message.FIELDS:
        if not first <= version <= last:
            continue
        value = getattr(message, name)
        if tag is not None and _is_default(value, default):
            continue
        found[_camel_case(name)] = _plain(value, version)
    return found


def compact_json(value: object) -> str:
    """On one line without blanks, as Kafka's JSON library writes it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _is_default(value: Any, default: Any) -> bool:
    if default == ():
        # Arrays, structs and UUIDs: the empty value.
        if isinstance(value, Message):
            return value == type(value)()
        return value == ZERO_UUID or (isinstance(value, list) and not value)
    return bool(value == default)


def _plain(value: Any, version: int) -> Any:
    if isinstance(value, Message):
        return message_to_json(value, version)
    if isinstance(value, list | tuple):
        return [_plain(each, version) for each in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, UUID):
        return uuid_to_text(value)
    return value


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    if first == "kraft":
        # Kafka's own spelling; "kraft" is one word here.
        first = "kRaft"
    return first + "".join(other.capitalize() for other in others)
