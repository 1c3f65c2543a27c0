"""Avro's parsing canonical form, and the CRC-64-AVRO fingerprint of it."""

from __future__ import annotations

from typing import Any

from moldau.data.avro.model import (
    Array,
    AvroType,
    Enum,
    Fixed,
    Map,
    Primitive,
    Record,
    Union,
)
from moldau.data.json_text import compact

_EMPTY = 0xC15D213AA4D7A795


def parsing_canonical_form(schema: AvroType) -> str:
    """Only what is needed to read data, in the one form that the specification gives."""
    return compact(_node(schema, set()))


def _node(schema: AvroType, known: set[str]) -> Any:
    match schema:
        case Primitive():
            return schema.kind
        case Array():
            return {"type": "array", "items": _node(schema.items, known)}
        case Map():
            return {"type": "map", "values": _node(schema.values, known)}
        case Union():
            return [_node(each, known) for each in schema.branches]
    full = schema.name.full
    if full in known:
        return full
    known.add(full)
    node: dict[str, Any] = {"name": full, "type": schema.kind}
    match schema:
        case Record():
            node["fields"] = [
                {"name": each.name, "type": _node(each.type, known)} for each in schema.fields
            ]
        case Enum():
            node["symbols"] = schema.symbols
        case Fixed():
            node["size"] = schema.size
    return node


def _table() -> list[int]:
    table = []
    for number in range(256):
        for _ in range(8):
            number = (number >> 1) ^ (_EMPTY if number & 1 else 0)
        table.append(number)
    return table


_TABLE = _table()


def fingerprint(schema: AvroType) -> int:
    """CRC-64-AVRO of the canonical form, a signed number of 64 bits as in Java."""
    crc = _EMPTY
    for byte in parsing_canonical_form(schema).encode():
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc - (1 << 64) if crc >> 63 else crc
