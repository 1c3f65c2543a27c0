"""The four compressions that compress, by a library that is loaded for the first batch of them.

Invariant: what `compress` writes, every Kafka client reads (snappy in xerial chunks, lz4 frames of
independent 64 KiB blocks without checksums).
"""

from __future__ import annotations

import struct
from typing import Any, Final

import cramjam

from moldau.wire.compression_kinds import Compression, CompressionError, check_size
from moldau.wire.constants import Buffer

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_SIZE: Final = 32 * 1024

_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
# Flags: version 1, independent blocks, nothing else. Descriptor: 64 KiB blocks. Then the header
# checksum of those two bytes.
_LZ4_HEADER: Final = _LZ4_MAGIC + b"\x60\x40\x82"
_LZ4_END_MARK: Final = bytes(4)
_LZ4_BLOCK_SIZE: Final = 64 * 1024
_LZ4_STORED: Final = 0x8000_0000
_LZ4_INDEPENDENT: Final = 0x20
_LZ4_BLOCK_CHECKSUM: Final = 0x10
_LZ4_LEVEL_DEFAULT: Final = 9
_LZ4_LIBRARY_LEVEL_FAST: Final = 1
_LZ4_LIBRARY_LEVEL_MAX: Final = 12

_GZIP_LEVEL_DEFAULT: Final = 6
_ZSTD_LEVEL_DEFAULT: Final = 3
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"

_UINT32: Final = struct.Struct("<I")
_INT32_BE: Final = struct.Struct(">i")

# No output larger than this times the input is set aside on the word of a header alone.
_HINT_RATIO_MAX: Final = 1024
_BUFFER_SIZE_MIN: Final = 4096
_GROWTH: Final = 4


def compress(codec: Compression, data: Buffer, level: int | None) -> bytes:
    """Compress `data`; `level` None (or gzip's -1) means Kafka's default for the codec."""
    if codec is Compression.ZSTD:
        return bytes(cramjam.zstd.compress(data, _ZSTD_LEVEL_DEFAULT if level is None else level))
    if codec is Compression.LZ4:
        return _lz4_compress(data, level)
    if codec is Compression.SNAPPY:
        return _snappy_compress(data)
    known = level if level is not None and level >= 0 else _GZIP_LEVEL_DEFAULT
    return bytes(cramjam.gzip.compress(data, known))


def decompress_to_buffer(codec: Compression, data: Buffer, max_size: int) -> bytearray:
    """Undo `compress`, or raise `CompressionError`."""
    if codec is Compression.ZSTD:
        return _decompress_growing(cramjam.zstd, data, _zstd_size_hint(data), max_size)
    if codec is Compression.LZ4:
        return _decompress_growing(cramjam.lz4, data, _lz4_size_hint(data), max_size)
    if codec is Compression.SNAPPY:
        return _snappy_decompress(data, max_size)
    return _decompress_growing(cramjam.gzip, data, _gzip_size_hint(data), max_size)


def _decompress_growing(library: Any, data: Buffer, hint: int, max_size: int) -> bytearray:
    """Decompress into a buffer of the hinted size, growing it up to `max_size` when it is full."""
    ceiling = len(data) * _HINT_RATIO_MAX
    size = min(max(min(hint, ceiling), _BUFFER_SIZE_MIN), max_size)
    while True:
        out = bytearray(size)
        try:
            written = library.decompress_into(data, out)
        except cramjam.DecompressionError as error:
            if not _is_output_full(error):
                raise CompressionError(f"cannot decompress: {error}") from error
            if size == max_size:
                check_size(max_size + 1, max_size)
            size = min(size * _GROWTH, max_size)
            continue
        del out[written:]
        return out


def _is_output_full(error: Exception) -> bool:
    # The library has one exception type for everything; this is its text for a full output.
    return "write whole buffer" in str(error)


def _gzip_size_hint(data: Buffer) -> int:
    """The trailer holds the size modulo 2^32 (of the last member, if there are several)."""
    if len(data) < 18:
        raise CompressionError("cannot decompress: gzip data is shorter than its header")
    return int(_UINT32.unpack_from(data, len(data) - 4)[0])


def _zstd_size_hint(data: Buffer) -> int:
    """The content size of the first frame, where the writer gave one."""
    if len(data) < 5 or bytes(data[:4]) != _ZSTD_MAGIC:
        raise CompressionError("cannot decompress: not a zstd frame")
    descriptor = data[4]
    single_segment = descriptor >> 5 & 1
    size_bytes = (single_segment, 2, 4, 8)[descriptor >> 6]
    if size_bytes == 0:
        return len(data) * _GROWTH
    start = 5 + (0 if single_segment else 1) + (0, 1, 2, 4)[descriptor & 3]
    content_size = int.from_bytes(data[start : start + size_bytes], "little")
    return content_size + 256 if size_bytes == 2 else content_size


def _lz4_size_hint(data: Buffer) -> int:
    """Check what Java's reader insists on, and bound the size by the number of blocks."""
    if len(data) < 7 or bytes(data[:4]) != _LZ4_MAGIC:
        raise CompressionError("cannot decompress: not an lz4 frame")
    flags, descriptor = data[4], data[5]
    if flags >> 6 != 1:
        raise CompressionError(f"cannot decompress: lz4 frame version {flags >> 6} is not 1")
    if not flags & _LZ4_INDEPENDENT:
        raise CompressionError("cannot decompress: lz4 frame with linked blocks")
    block_size = 1 << (8 + 2 * (descriptor >> 4 & 7))
    block_trailer = 4 if flags & _LZ4_BLOCK_CHECKSUM else 0
    position = 7 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)
    end = len(data) - 4
    size = 0
    while position <= end:
        length = _UINT32.unpack_from(data, position)[0] & ~_LZ4_STORED
        if length == 0:
            break
        # A block cannot grow by more than lz4's largest ratio of 255.
        size += min(block_size, length * 255)
        position += 4 + length + block_trailer
    return size


def _lz4_compress(data: Buffer, level: int | None) -> bytes:
    # Kafka's default level names the fast compressor; any other means the thorough one, whose
    # levels above 12 are the same in the library.
    if level is None or level == _LZ4_LEVEL_DEFAULT:
        level = _LZ4_LIBRARY_LEVEL_FAST
    level = min(level, _LZ4_LIBRARY_LEVEL_MAX)
    view = memoryview(data)
    parts: list[Any] = [_LZ4_HEADER]
    for start in range(0, len(view), _LZ4_BLOCK_SIZE):
        # Only the library's frame compressor knows levels, and it adds checksums to blocks, so
        # each block is taken out of a frame of its own.
        compressor = cramjam.lz4.Compressor(level, content_checksum=False, block_linked=False)
        compressor.compress(bytes(view[start : start + _LZ4_BLOCK_SIZE]))
        frame = memoryview(compressor.finish())
        checksum_size = 4 if frame[4] & _LZ4_BLOCK_CHECKSUM else 0
        parts.append(frame[len(_LZ4_HEADER) : len(frame) - checksum_size - len(_LZ4_END_MARK)])
    parts.append(_LZ4_END_MARK)
    return b"".join(parts)


def _snappy_compress(data: Buffer) -> bytes:
    view = memoryview(data)
    parts: list[Any] = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK_SIZE):
        packed = cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_SIZE])
        parts += (_INT32_BE.pack(len(packed)), packed)
    return b"".join(parts)


def _snappy_decompress(data: Buffer, max_size: int) -> bytearray:
    view = memoryview(data)
    if bytes(view[:8]) != _XERIAL_MAGIC:
        # Clients built on plain snappy send one raw block.
        return _snappy_block(view, bytearray(), max_size)
    out = bytearray()
    position = len(_XERIAL_HEADER)
    if len(view) < position:
        raise CompressionError("cannot decompress: snappy stream header is cut off")
    while position < len(view):
        if bytes(view[position : position + 8]) == _XERIAL_MAGIC:
            # Streams may follow one another, each with its header.
            position += len(_XERIAL_HEADER)
            continue
        if position + 4 > len(view):
            raise CompressionError("cannot decompress: snappy chunk length is cut off")
        length = _INT32_BE.unpack_from(view, position)[0]
        position += 4
        if not 0 <= length <= len(view) - position:
            raise CompressionError(
                f"cannot decompress: snappy chunk of {length} bytes, {len(view) - position} left"
            )
        _snappy_block(view[position : position + length], out, max_size)
        position += length
    return out


def _snappy_block(block: memoryview, out: bytearray, max_size: int) -> bytearray:
    try:
        check_size(len(out) + cramjam.snappy.decompress_raw_len(block), max_size)
        out += memoryview(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise CompressionError(f"cannot decompress: {error}") from error
    return out
