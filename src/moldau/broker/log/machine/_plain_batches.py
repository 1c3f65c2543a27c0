# cython: annotation_typing=False, boundscheck=False, wraparound=False
"""Accepts batches that need nothing but their offset: uncompressed, sound, timed by the producer.

Plain Python, and with `_plain_batches.pxd` beside it also the source of a compiled module with the
same names and results. Nearly every batch of a small request is plain, and one pass over its header
here replaces a dozen calls of `validation.py`, which decides about all others.

Invariants: a batch that is accepted here would be accepted there, with the same result and the same
bytes; one that is not is unchanged.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Final

from moldau.broker.log.machine.validated_batch import ValidatedBatch
from moldau.wire._record_codec import validate_records
from moldau.wire.batch_header import (
    COMPRESSION_MASK,
    CONTROL_FLAG,
    HEADER_SIZE,
    LOG_APPEND_TIME_FLAG,
    MAGIC,
    TRANSACTIONAL_FLAG,
)
from moldau.wire.checksums import crc32c
from moldau.wire.constants import Buffer

try:
    import cython
except ImportError:
    # Only the compiler needs the real one, and it does not let its name be assigned.
    globals()["cython"] = SimpleNamespace(compiled=False)

COMPILED: bool = cython.compiled

if not cython.compiled:

    def bytes_of(view: memoryview) -> memoryview:
        """The compiler takes it from the .pxd: the address of the first byte."""
        return view


_INT64_MAX: Final = 2**63 - 1
_INT32_MAX: Final = 2**31 - 1
_INT32_MASK: Final = 2**32 - 1
_INT32_SIGN: Final = 2**31
# As numbers of C, where this is compiled.
_HEADER_BYTES: Final = HEADER_SIZE
_VERSION: Final = MAGIC
_ZSTD: Final = 4
_COMPRESSION: Final = COMPRESSION_MASK
#: A batch with one of these in its attributes is not plain.
_NOT_PLAIN: Final = COMPRESSION_MASK | LOG_APPEND_TIME_FLAG | CONTROL_FLAG
_TRANSACTIONAL: Final = TRANSACTIONAL_FLAG

_new_tuple = tuple.__new__


def _int32(data: Buffer, position: int) -> int:
    """The big-endian number of four bytes."""
    number = data[position] << 24 | data[position + 1] << 16
    number |= data[position + 2] << 8 | data[position + 3]
    return (number & _INT32_MASK ^ _INT32_SIGN) - _INT32_SIGN


def _int64(data: Buffer, position: int) -> int:
    high = _int32(data, position)
    return high * (_INT32_MASK + 1) + (_int32(data, position + 4) & _INT32_MASK)


def attributes_of_single(view: memoryview) -> int:
    """The low byte of the attributes if the bytes are one batch of the current format by its size,
    else -1; also if it is compressed by zstd, which not every request may have."""
    size = len(view)
    if size < _HEADER_BYTES:
        return -1
    data = bytes_of(view)
    if _int32(data, 8) != size - 12 or data[16] != _VERSION or data[22] & _COMPRESSION == _ZSTD:
        return -1
    return data[22]


class PlainBatches:
    """The rules of one log, as far as they concern plain batches."""

    def __init__(
        self,
        *,
        size_max: int,
        timestamp_before_max_ms: int,
        timestamp_after_max_ms: int,
        compacted: bool,
    ) -> None:
        self._size_max = size_max
        self._before_max_ms = timestamp_before_max_ms
        self._after_max_ms = timestamp_after_max_ms
        self._compacted = compacted

    def accept(
        self, view: memoryview, offset: int, now_ms: int, leader_epoch: int
    ) -> ValidatedBatch | None:
        """Give a plain batch its offset and leader epoch, in place; None if it is not plain, or not
        sound. `view` is one of bytes that follow each other."""
        size = len(view)
        if size < _HEADER_BYTES or size > self._size_max or view.readonly:
            return None
        data = bytes_of(view)
        # The low byte has all that matters.
        attributes = data[22]
        if data[16] != _VERSION or attributes & _NOT_PLAIN:
            return None
        count = _int32(data, 57)
        producer_id = _int64(data, 43)
        sequence = _int32(data, 53)
        if (
            _int32(data, 8) != size - 12
            or _int64(data, 0) != 0
            or count <= 0
            or _int32(data, 23) != count - 1
            or (producer_id >= 0 and sequence < 0)
            or crc32c(view[21:]) != _int32(data, 17) & _INT32_MASK
        ):
            return None
        base_timestamp = _int64(data, 27)
        max_timestamp = _int64(data, 35)
        scan = validate_records(
            view,
            _HEADER_BYTES,
            size,
            count,
            base_timestamp,
            now_ms - self._before_max_ms,
            now_ms + min(self._after_max_ms, _INT64_MAX - now_ms),
        )
        if (
            scan.problem
            or not scan.dense
            or scan.bad_timestamp_count
            or scan.max_timestamp != max_timestamp
            or (self._compacted and scan.null_key_count)
        ):
            return None
        for index in range(8):
            data[index] = offset >> 56 - 8 * index & 0xFF
        for index in range(4):
            data[12 + index] = leader_epoch >> 24 - 8 * index & 0xFF
        first_largest = scan.max_timestamp_index
        # Straight to the tuple, as in `validation.py`.
        return _new_tuple(
            ValidatedBatch,
            (
                view,
                offset,
                offset + count - 1,
                max_timestamp,
                -1 if first_largest < 0 else offset + first_largest,
                base_timestamp,
                -1,
                producer_id,
                ((data[51] << 8 | data[52]) ^ 0x8000) - 0x8000,
                sequence,
                -1 if sequence < 0 else sequence + count - 1 & _INT32_MAX,
                attributes & _TRANSACTIONAL != 0,
                False,
                count,
                size,
            ),
        )
