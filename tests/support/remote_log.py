"""Records of `__remote_log_metadata`, which Moldau reads (dump-log) and never writes."""

from __future__ import annotations

from moldau.invariant import present
from moldau.wire.codec import encode
from moldau.wire.message import Message

_FRAME_VERSION = 1


def encode_remote_log_record(message: Message, version: int) -> bytes:
    """Framed as in the metadata log: frame version, record type, version, each below 128."""
    record_type = present(message.TYPE, f"{type(message).__name__} has no record type")
    return bytes((_FRAME_VERSION, record_type, version)) + encode(message, version)
