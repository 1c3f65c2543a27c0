"""How bytes name their schema: Confluent's wire format, before the payload or in a header. Pure.

Before the payload: a zero byte, the id in four bytes and, for Protobuf, which message it is. In the
header `__key_schema_id` or `__value_schema_id`: a one, the schema's guid and, for Protobuf, which
message it is; the payload stands alone.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

__all__ = [
    "Framed",
    "FramingError",
    "header_name",
    "header_value",
    "id_in_header",
    "named_in_header",
    "prefix",
    "read_frame",
]

MAGIC_ID: Final = 0
MAGIC_GUID: Final = 1
_PREFIX: Final = struct.Struct(">bi")
PREFIX_SIZE: Final = _PREFIX.size
_GUID_SIZE: Final = 16
_BY_HEADER: Final = ("header", "headerschemaidserializer")
_BY_PREFIX: Final = ("", "prefix", "prefixschemaidserializer", "confluentschemaidserializer")


class FramingError(ValueError):
    """Bytes that do not say which schema they have."""


@dataclass(frozen=True, slots=True)
class Framed:
    """Either `id` or `guid` names the schema. `indexes` says which message of a Protobuf schema it
    is; None if that is in front of the payload."""

    id: int | None
    guid: str | None
    payload: bytes
    indexes: bytes | None = None


def prefix(schema_id: int) -> bytes:
    return _PREFIX.pack(MAGIC_ID, schema_id)


def id_in_header(serializer: str | None) -> bool:
    """What `value.schema.id.serializer` says. Raises FramingError."""
    name = (serializer or "").strip().rpartition(".")[2].lower()
    if name not in (*_BY_HEADER, *_BY_PREFIX):
        raise FramingError("must be PrefixSchemaIdSerializer or HeaderSchemaIdSerializer")
    return name in _BY_HEADER


def header_name(is_key: bool) -> str:
    return "__key_schema_id" if is_key else "__value_schema_id"


def header_value(guid: str, indexes: bytes = b"") -> bytes:
    return bytes([MAGIC_GUID]) + UUID(guid).bytes + indexes


def read_frame(
    data: bytes, headers: Iterable[tuple[str, bytes | None]] | None, is_key: bool
) -> Framed:
    """The header counts where there is one, then the first bytes.

    The last header of its name counts, as in Java: one who passes on a record with its headers may
    have added another.
    """
    wanted = header_name(is_key)
    found = None
    for name, value in headers or ():
        if name == wanted and value:
            found = value
    if found is not None:
        return named_in_header(found, data)
    if len(data) < PREFIX_SIZE:
        raise FramingError(
            f"{len(data)} bytes are too few for the id of a schema: was this written by a "
            "serializer with a registry?"
        )
    magic, schema_id = _PREFIX.unpack_from(data)
    if magic != MAGIC_ID:
        raise FramingError(
            f"the first byte is {data[0]}, not 0: was this written by a serializer with a registry?"
        )
    return Framed(schema_id, None, data[PREFIX_SIZE:])


def named_in_header(value: bytes, data: bytes) -> Framed:
    """By the value of a header, which is not empty."""
    if value[0] == MAGIC_GUID and len(value) > _GUID_SIZE:
        guid = UUID(bytes=value[1 : 1 + _GUID_SIZE])
        return Framed(None, str(guid), data, value[1 + _GUID_SIZE :])
    if value[0] == MAGIC_ID and len(value) >= PREFIX_SIZE:
        return Framed(_PREFIX.unpack_from(value)[1], None, data, value[PREFIX_SIZE:])
    raise FramingError(
        f"the header with the id of the schema has {len(value)} bytes of no known form"
    )
