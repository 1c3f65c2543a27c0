"""Messages as lists of tokens, so that a mutation can pick a count, a length or a tag.

The obvious encoder: what it writes is compared with the codec's by a unit test.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from moldau.wire.codec_source import FORMATS, SIZED, Field
from moldau.wire.message import Message


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    """A fixed-width type, or `varint`, `text`, `blob`; lengths and counts are `varint` in flexible
    versions, otherwise `length16` or `length32`."""
    data: bytes


def tokens_of(message: Message, version: int) -> list[Token]:
    return _Writer(type(message), version).whole(message)


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


class _Writer:
    def __init__(self, owner: type[Message], version: int) -> None:
        self._owner = owner
        self._version = version
        self._flexible = version >= owner.FLEXIBLE_FROM
        self._out: list[Token] = []

    def whole(self, message: Message) -> list[Token]:
        self._struct(message)
        return self._out

    def _struct(self, message: Message) -> None:
        fields = [Field(row, self._version, self._flexible) for row in message.FIELDS]
        for field in fields:
            if field.present and field.tag is None:
                self._value(field, getattr(message, field.name))
        if not self._flexible:
            return
        fresh = type(message)()
        tagged: dict[int, list[Token]] = {
            tag: [Token("blob", bytes(data))]
            for tag, data in (message.unknown_tagged_fields or {}).items()
        }
        for field in fields:
            value = getattr(message, field.name)
            if field.tag is not None and value != getattr(fresh, field.name):
                outer, self._out = self._out, []
                self._value(field, value)
                tagged[field.tag], self._out = self._out, outer
        self._varint(len(tagged))
        for tag in sorted(tagged):
            self._varint(tag)
            self._varint(sum(len(token.data) for token in tagged[tag]))
            self._out += tagged[tag]

    def _value(self, field: Field, value: Any) -> None:
        if field.is_array:
            if self._length(field, value, "length32"):
                for each in value:
                    self._single(field, each)
        else:
            self._single(field, value)

    def _single(self, field: Field, value: Any) -> None:
        kind = field.element
        if kind in SIZED:
            is_text = kind == "string"
            data = value.encode() if is_text and value is not None else value
            if self._length(field, data, "length16" if is_text else "length32"):
                self._out.append(Token("text" if is_text else "blob", bytes(data)))
        elif kind == "uuid":
            self._out.append(Token(kind, value.bytes))
        elif kind in FORMATS:
            self._out.append(Token(kind, struct.pack(">" + FORMATS[kind], value)))
        else:
            if field.nullable and not field.is_array:
                absent = b"\xff" if field.tag is None else b"\x00"
                self._out.append(Token("int8", absent if value is None else b"\x01"))
            if value is not None:
                self._struct(value)

    def _length(self, field: Field, value: Any, kind: str) -> bool:
        """Write it; False for null."""
        if field.flexible:
            self._varint(0 if value is None else len(value) + 1)
        else:
            number = -1 if value is None else len(value)
            packed = struct.pack(">h" if kind == "length16" else ">i", number)
            self._out.append(Token(kind, packed))
        return value is not None

    def _varint(self, number: int) -> None:
        self._out.append(Token("varint", varint(number)))
