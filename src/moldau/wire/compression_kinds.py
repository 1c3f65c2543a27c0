"""The codecs of batches, and what may be wrong with compressed bytes."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

DECOMPRESSED_SIZE_MAX: Final = 128 * 1024 * 1024


class Compression(IntEnum):
    """The codec in bits 0-2 of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class CompressionError(ValueError):
    """Compressed bytes that cannot be read."""


class DecompressedTooLargeError(CompressionError):
    """The input is sound as far as read, but holds more than the reader allows."""


def check_size(size: int, max_size: int) -> None:
    if size > max_size:
        raise DecompressedTooLargeError(f"decompressed data is larger than {max_size} bytes")
