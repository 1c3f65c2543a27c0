"""Kafka's five record compressions, in the framing Java clients and brokers read.

Invariants: `decompress` never makes more than `max_size` bytes out of its input, and bytes it
cannot read raise `CompressionError`.
"""

from __future__ import annotations

from moldau.wire.compression_kinds import (
    DECOMPRESSED_SIZE_MAX,
    Compression,
    CompressionError,
    DecompressedTooLargeError,
    check_size,
)
from moldau.wire.constants import Buffer

__all__ = [
    "DECOMPRESSED_SIZE_MAX",
    "Compression",
    "CompressionError",
    "DecompressedTooLargeError",
    "compress",
    "decompress",
    "decompress_to_buffer",
]


def compress(codec: Compression, data: Buffer, level: int | None = None) -> bytes:
    """Compress `data`; `level` None (or gzip's -1) means Kafka's default for the codec."""
    if codec is Compression.NONE:
        return bytes(data)
    # Here, since most programs compress nothing.
    from moldau.wire import compressors

    return compressors.compress(codec, data, level)


def decompress(codec: Compression, data: Buffer, max_size: int = DECOMPRESSED_SIZE_MAX) -> bytes:
    """Undo `compress`, or raise `CompressionError`."""
    return bytes(decompress_to_buffer(codec, data, max_size))


def decompress_to_buffer(
    codec: Compression, data: Buffer, max_size: int = DECOMPRESSED_SIZE_MAX
) -> bytearray:
    """Like `decompress`, sparing the last copy."""
    if codec is Compression.NONE:
        check_size(len(data), max_size)
        return bytearray(data)
    from moldau.wire import compressors

    return compressors.decompress_to_buffer(codec, data, max_size)
