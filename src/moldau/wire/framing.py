"""Requests and responses as they travel: a size, a header, a body.

The frame's size (4 bytes) is read by the network layer; every function here that takes bytes
expects them after it, and every function that makes a frame puts it in front.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from moldau.wire.apis import API_BY_KEY, Api
from moldau.wire.codec import Scattered, decode, encode_into, read_unsigned_varint
from moldau.wire.constants import Buffer
from moldau.wire.errors import WireError
from moldau.wire.message import Message

_FIXED = struct.Struct(">hhih")
_INT32 = struct.Struct(">i")
_SIZE_AND_CORRELATION = struct.Struct(">ii")
# size, api key, api version, correlation id, length of the client id
_REQUEST_HEAD = struct.Struct(">ihhih")


class RequestHeader(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    # Where the body starts in the buffer that the header was read from.
    body_position: int


def decode_request_header(buffer: Buffer, position: int = 0) -> RequestHeader:
    """Read a header.

    Whether the API and version are known is not decided here, for an unknown version of
    ApiVersions still has to be answered. The header of anything unknown is read as far as its
    client id, and its body position is where a version 1 header ends.
    """
    try:
        api_key, api_version, correlation_id, length = _FIXED.unpack_from(buffer, position)
    except struct.error:
        raise WireError("a request header is cut off") from None
    position += _FIXED.size
    client_id = None
    if length >= 0:
        end = position + length
        if end > len(buffer):
            raise WireError("the client id of a request header is cut off")
        try:
            client_id = str(buffer[position:end], "utf-8")
        except UnicodeDecodeError as error:
            raise WireError(f"the client id of a request header is not UTF-8: {error}") from None
        position = end
    api = API_BY_KEY.get(api_key)
    if api is not None and api.flexible_from <= api_version <= api.max_version_unstable:
        position = _skip_tags(buffer, position)
    return RequestHeader(api_key, api_version, correlation_id, client_id, position)


def encode_request_frame(
    api: Api, version: int, correlation_id: int, client_id: str | None, request: Message
) -> bytes:
    """A whole request, size in front."""
    return b"".join(encode_request_parts(api, version, correlation_id, client_id, request))


def encode_request_parts(
    api: Api, version: int, correlation_id: int, client_id: str | None, request: Message
) -> list[Buffer]:
    """A whole request, size in front, in parts: long byte strings in it are not copied."""
    client = b"" if client_id is None else client_id.encode()
    length = -1 if client_id is None else len(client)
    try:
        out = Scattered(_REQUEST_HEAD.pack(0, api.key, version, correlation_id, length))
    except struct.error as error:
        raise WireError(f"a request header cannot be written: {error}") from error
    out += client
    if version >= api.flexible_from:
        out.append(0)
    encode_into(request, version, out)
    _INT32.pack_into(out, 0, out.whole_size - 4)
    return out.parts()


def encode_response_frame(api: Api, version: int, correlation_id: int, response: Message) -> bytes:
    """A whole response, size in front."""
    out = bytearray(_SIZE_AND_CORRELATION.pack(0, correlation_id))
    if api.response_header_version(version):
        out.append(0)
    encode_into(response, version, out)
    _INT32.pack_into(out, 0, len(out) - 4)
    return bytes(out)


def decode_response(
    api: Api, version: int, buffer: Buffer, position: int = 0
) -> tuple[int, Message]:
    """The correlation id and the message of a response."""
    correlation_id, position = decode_response_header(api, version, buffer, position)
    return correlation_id, decode(api.response, version, buffer, position)


def decode_response_header(
    api: Api, version: int, buffer: Buffer, position: int = 0
) -> tuple[int, int]:
    """The correlation id and the position of the body."""
    try:
        (correlation_id,) = _INT32.unpack_from(buffer, position)
    except struct.error:
        raise WireError("a response header is cut off") from None
    position += 4
    if api.response_header_version(version):
        position = _skip_tags(buffer, position)
    return correlation_id, position


def _skip_tags(buffer: Buffer, position: int) -> int:
    """The position after a tag section. No header has a tag that means anything to us."""
    count, position = read_unsigned_varint(buffer, position)
    for _ in range(count):
        # Ends at the end of the buffer at the latest: there a varint is cut off.
        _, position = read_unsigned_varint(buffer, position)
        size, position = read_unsigned_varint(buffer, position)
        position += size
    if position > len(buffer):
        raise WireError("the tagged fields of a header are cut off")
    return position
