"""Reads and writes messages.

For each message class and version there is one pair of functions, imported (`messages/ready`) or
made from the class's field table (`codec_maker`) on first use, and kept. They touch no table at run
time: neighbouring fixed-width fields go through one precompiled struct, nested structs and arrays
are written out in place, varints of one byte need no call.

Invariants: bytes that are no valid message raise WireError and nothing else, and no
allocation is larger than the bytes at hand can justify. A field that the version lacks must have
its default value, unless it is ignorable; otherwise writing raises WireError.
"""

from __future__ import annotations

import struct
from typing import TypeVar

from moldau.wire.codec_functions import (
    Decoder,
    Encoder,
    Scattered,
    read_unsigned_varint,
    write_unsigned_varint,
)
from moldau.wire.constants import Buffer
from moldau.wire.errors import WireError
from moldau.wire.message import Message
from moldau.wire.messages.ready import ready_decoder, ready_encoder

__all__ = [
    "Scattered",
    "decode",
    "decode_prefix",
    "encode",
    "encode_into",
    "read_unsigned_varint",
    "write_unsigned_varint",
]

M = TypeVar("M", bound=Message)

_encoders: dict[tuple[type[Message], int], Encoder] = {}
_decoders: dict[tuple[type[Message], int], Decoder] = {}


def encode(message: Message, version: int) -> bytes:
    """The body of `message` in `version`."""
    out = bytearray()
    encode_into(message, version, out)
    return bytes(out)


def encode_into(message: Message, version: int, out: bytearray) -> None:
    """Append the body of `message` to `out`; after a WireError `out` may hold part of it."""
    key = (type(message), version)
    encoder = _encoders.get(key) or _make_encoder(*key)
    try:
        encoder(message, out)
    except (WireError, struct.error, AttributeError, TypeError, UnicodeEncodeError) as error:
        # But for the first: a value too large, of the wrong kind, or null, for its field's type.
        name = type(message).__qualname__
        raise WireError(f"{name} v{version} cannot be written: {error}") from error


def decode(cls: type[M], version: int, buffer: Buffer, position: int = 0) -> M:
    """The message whose body starts at `position`; what follows it is not looked at."""
    return decode_prefix(cls, version, buffer, position)[0]


def decode_prefix(cls: type[M], version: int, buffer: Buffer, position: int = 0) -> tuple[M, int]:
    """The message whose body starts at `position`, and the position after it."""
    decoder = _decoders.get((cls, version)) or _make_decoder(cls, version)
    try:
        if type(buffer) is bytes:
            message, end = decoder(buffer, position, len(buffer))
        else:
            # Bytes are faster to take apart than a view, by more than the copy costs.
            data = bytes(memoryview(buffer)[position:])
            message, end = decoder(data, 0, len(data))
            end += position
    except (WireError, IndexError, ValueError, struct.error) as error:
        name = cls.__qualname__
        raise WireError(f"{name} v{version} is truncated or malformed: {error}") from error
    return message, end  # type: ignore[return-value]


def _check_version(cls: type[Message], version: int) -> None:
    if "LOWEST_VERSION" not in cls.__dict__:
        raise TypeError(f"{cls.__qualname__} is a part of a message, not one by itself")
    if not cls.LOWEST_VERSION <= version <= cls.HIGHEST_VERSION:
        raise WireError(
            f"{cls.__name__} has no version {version}: "
            f"versions are {cls.LOWEST_VERSION} to {cls.HIGHEST_VERSION}"
        )


def _make_encoder(cls: type[Message], version: int) -> Encoder:
    _check_version(cls, version)
    encoder = ready_encoder(cls.__name__, version)
    if encoder is None:
        # Imported here: most clients only need what is ready.
        from moldau.wire.codec_maker import make_encoder

        encoder = make_encoder(cls, version)
    _encoders[cls, version] = encoder
    return encoder


def _make_decoder(cls: type[Message], version: int) -> Decoder:
    _check_version(cls, version)
    decoder = ready_decoder(cls.__name__, version)
    if decoder is None:
        from moldau.wire.codec_maker import make_decoder

        decoder = make_decoder(cls, version)
    _decoders[cls, version] = decoder
    return decoder
