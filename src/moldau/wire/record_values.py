"""Messages stored in records: the metadata log's, the coordinators', and other versioned data.

- metadata log: value = frame version 1, record type, record version (varints), body
- coordinator topics: key = record type (int16), body; value = version (int16), body
- other data (control records, consumer protocol): version (int16), body
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Literal, TypeVar, cast

from moldau.wire import messages
from moldau.wire.codec import (
    decode,
    decode_prefix,
    encode_into,
    read_unsigned_varint,
    write_unsigned_varint,
)
from moldau.wire.constants import Buffer
from moldau.wire.errors import WireError
from moldau.wire.message import Message
from moldau.wire.messages.tables import RECORD_TYPES

M = TypeVar("M", bound=Message)
Family = Literal["group", "transaction", "share"]

METADATA_FRAME_VERSION = 1
# The key messages of all coordinators have this single version.
COORDINATOR_KEY_VERSION = 0
_INT16 = struct.Struct(">h")


class UnknownRecordTypeError(WireError):
    """A well-formed record of a type that this release does not know."""

    def __init__(self, kind: str, record_type: int) -> None:
        super().__init__(f"no {kind} record has type {record_type}")
        self.record_type = record_type


def encode_metadata_record(message: Message, version: int) -> bytes:
    """The value of a record in the metadata log."""
    return _encode_framed(message, version, "metadata")


def decode_metadata_record(buffer: Buffer) -> tuple[Message, int]:
    """The message and its version."""
    return _decode_framed(buffer, "metadata")


def decode_remote_log_record(buffer: Buffer) -> tuple[Message, int]:
    """The message and its version."""
    return _decode_framed(buffer, "remote-log")


def encode_coordinator_key(message: Message) -> bytes:
    """The key of a record in a coordinator's topic."""
    record_type = message.TYPE
    if record_type is None or not message.KIND.endswith("-key"):
        raise WireError(f"{type(message).__name__} is no key of a coordinator's records")
    out = bytearray(_INT16.pack(record_type))
    encode_into(message, COORDINATOR_KEY_VERSION, out)
    return bytes(out)


def encode_coordinator_value(message: Message, version: int) -> bytes:
    """The value of a record in a coordinator's topic."""
    if not message.KIND.endswith("-value"):
        raise WireError(f"{type(message).__name__} is no value of a coordinator's records")
    return encode_versioned(message, version)


def decode_coordinator_record(
    family: Family, key: Buffer, value: Buffer | None
) -> tuple[Message, Message | None]:
    """Key and value messages of a coordinator's record; a tombstone's value is None.

    Raises UnknownRecordTypeError for a type of a later release.
    """
    record_type = _leading_int16(key, f"a {family} key")
    key_class = _record_class(f"{family}-key", record_type)
    key_message = decode(key_class, COORDINATOR_KEY_VERSION, key, 2)
    if value is None:
        return key_message, None
    value_class = _record_class(f"{family}-value", record_type)
    return key_message, decode_versioned(value_class, value)


def encode_versioned(message: Message, version: int) -> bytes:
    """A message after its version, as in control records and the consumer protocol."""
    out = bytearray(_INT16.pack(version))
    encode_into(message, version, out)
    return bytes(out)


def decode_versioned(cls: type[M], buffer: Buffer) -> M:
    """Read what `encode_versioned` wrote."""
    version = _leading_int16(buffer, cls.__name__)
    return decode(cls, version, buffer, 2)


def _leading_int16(buffer: Buffer, what: str) -> int:
    try:
        (number,) = _INT16.unpack_from(buffer)
    except struct.error:
        raise WireError(f"{what} is cut off") from None
    return cast(int, number)


def _record_class(kind: str, record_type: int) -> type[Message]:
    name = RECORD_TYPES[kind].get(record_type)
    if name is None:
        raise UnknownRecordTypeError(kind, record_type)
    return cast(type[Message], getattr(messages, name))


def _encode_framed(message: Message, version: int, kind: str) -> bytes:
    record_type = message.TYPE
    if record_type is None or kind != message.KIND:
        raise WireError(f"{type(message).__name__} is no {kind} record")
    out = bytearray(_frame(record_type, version))
    encode_into(message, version, out)
    return bytes(out)


@lru_cache(maxsize=1024)
def _frame(record_type: int, version: int) -> bytes:
    """What precedes a record's body."""
    out = bytearray((METADATA_FRAME_VERSION,))
    write_unsigned_varint(out, record_type)
    write_unsigned_varint(out, version)
    return bytes(out)


def _decode_framed(buffer: Buffer, kind: str) -> tuple[Message, int]:
    frame_version, position = read_unsigned_varint(buffer, 0)
    if frame_version != METADATA_FRAME_VERSION:
        raise WireError(
            f"a {kind} record has frame version {frame_version}, "
            f"only {METADATA_FRAME_VERSION} is known"
        )
    record_type, position = read_unsigned_varint(buffer, position)
    version, position = read_unsigned_varint(buffer, position)
    cls = _record_class(kind, record_type)
    message, end = decode_prefix(cls, version, buffer, position)
    if end != len(buffer):
        raise WireError(f"{cls.__name__} v{version} is followed by {len(buffer) - end} bytes")
    return message, version
