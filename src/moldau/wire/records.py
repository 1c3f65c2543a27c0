"""Record batches, format v2: headers, checksums, and whole batches to records and back.

The data path reads headers only (`read_header`, `iterate_headers`) and never single records;
`decode_batch` and `encode_batch` are for clients, coordinators and tools. Invariants: bytes
that are no sound batch raise `CorruptBatchError`, and a header field is never changed without the
checksum that covers it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple, TypedDict, Unpack

from moldau.wire._record_codec import Headers, Record, decode_records, encode_records
from moldau.wire.batch_header import (
    ATTRIBUTES_POSITION,
    COMPRESSION_MASK,
    CONTROL_FLAG,
    CRC_POSITION,
    CRC_STRUCT,
    DELETE_HORIZON_FLAG,
    HEADER_SIZE,
    HEADER_STRUCT,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL_FLAG,
)
from moldau.wire.checksums import crc32c
from moldau.wire.compression import (
    DECOMPRESSED_SIZE_MAX,
    Compression,
    CompressionError,
    compress,
    decompress,
)
from moldau.wire.constants import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    Buffer,
)
from moldau.wire.errors import WireError

__all__ = [
    "BatchHeader",
    "Compression",
    "ControlType",
    "CorruptBatchError",
    "Headers",
    "Record",
    "RecordInput",
    "checksum",
    "crc_matches",
    "decode_batch",
    "decode_batches",
    "decode_control_type",
    "decode_coordinator_epoch",
    "encode_batch",
    "encode_batch_buffer",
    "encode_end_txn_marker",
    "iterate_headers",
    "read_header",
]

NO_PARTITION_LEADER_EPOCH: Final = -1

_CONTROL_KEY: Final = struct.Struct(">hh")
_END_TXN_VALUE: Final = struct.Struct(">hi")
_INT32_MAX: Final = 2**31 - 1

RecordInput = Record | tuple[bytes | None, bytes | None, int, Headers | Sequence[tuple[str, bytes]]]


class CorruptBatchError(WireError):
    """Bytes that are no sound record batch."""


class BatchHeader(NamedTuple):
    """The 61 bytes before the records, in the order they are stored."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch."""
        return LOG_OVERHEAD + self.batch_length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The last record's sequence number; numbers wrap to 0 after 2^31-1."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & _INT32_MAX

    @property
    def compression(self) -> Compression:
        """Raises `CorruptBatchError` for an id that no codec has."""
        codec = self.attributes & COMPRESSION_MASK
        if codec > Compression.ZSTD:
            raise CorruptBatchError(f"batch at offset {self.base_offset}: compression id {codec}")
        return _COMPRESSIONS[codec]

    @property
    def is_log_append_time(self) -> bool:
        return self.attributes & LOG_APPEND_TIME_FLAG != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_FLAG != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_FLAG != 0

    @property
    def has_delete_horizon(self) -> bool:
        """Whether `base_timestamp` is the time from which tombstones here may be dropped."""
        return self.attributes & DELETE_HORIZON_FLAG != 0

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID


_COMPRESSIONS: Final = tuple(Compression)

# From the tuple that HEADER_STRUCT unpacks, at a third of the time of `BatchHeader._make`.
header_from: Callable[[tuple[int, ...]], BatchHeader] = partial(tuple.__new__, BatchHeader)


class ControlType:
    """The kinds of control records, by the number in their key."""

    ABORT: Final = 0
    COMMIT: Final = 1
    LEADER_CHANGE: Final = 2
    SNAPSHOT_HEADER: Final = 3
    SNAPSHOT_FOOTER: Final = 4
    KRAFT_VERSION: Final = 5
    KRAFT_VOTERS: Final = 6


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header at `position`; only its presence is checked, not what it says."""
    try:
        return header_from(HEADER_STRUCT.unpack_from(buffer, position))
    except struct.error:
        raise CorruptBatchError(
            f"{len(buffer) - position} bytes at position {position} are too few for a batch header"
        ) from None


def iterate_headers(buffer: Buffer, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each batch that is there in full; a cut-off last one is left out."""
    size = len(buffer)
    while position + HEADER_SIZE <= size:
        header = header_from(HEADER_STRUCT.unpack_from(buffer, position))
        _check_header(header, position)
        if position + header.size > size:
            return
        yield position, header
        position += header.size


def _check_header(header: BatchHeader, position: int) -> None:
    if header.magic != MAGIC:
        raise CorruptBatchError(f"batch at position {position}: magic {header.magic}, expected 2")
    if header.batch_length < HEADER_SIZE - LOG_OVERHEAD:
        raise CorruptBatchError(
            f"batch at position {position}: length {header.batch_length} is below the header's"
        )


def checksum(buffer: Buffer, position: int, size: int) -> int:
    """The CRC-32C that belongs in the header of the batch of `size` bytes at `position`."""
    with memoryview(buffer) as view, view[position + ATTRIBUTES_POSITION : position + size] as part:
        return crc32c(part)


def crc_matches(buffer: Buffer, position: int, header: BatchHeader) -> bool:
    """Whether the batch is there in full and its bytes are those that were written."""
    size = header.size
    if size < HEADER_SIZE or position + size > len(buffer):
        return False
    return checksum(buffer, position, size) == header.crc


class BatchOptions(TypedDict, total=False):
    """What `encode_batch_buffer` takes besides the records; each is optional."""

    base_offset: int | None
    compression: Compression
    compression_level: int | None
    partition_leader_epoch: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    is_control: bool
    log_append_time_ms: int | None
    delete_horizon_ms: int | None
    last_offset_delta: int | None


def encode_batch(records: Sequence[RecordInput], **options: Unpack[BatchOptions]) -> bytes:
    """One batch of the given records, as `encode_batch_buffer` makes it."""
    return bytes(encode_batch_buffer(records, **options))


def encode_batch_buffer(
    records: Sequence[RecordInput],
    *,
    base_offset: int | None = None,
    compression: Compression = Compression.NONE,
    compression_level: int | None = None,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
    is_control: bool = False,
    log_append_time_ms: int | None = None,
    delete_horizon_ms: int | None = None,
    last_offset_delta: int | None = None,
) -> bytearray:
    """One batch of the given records.

    Tuples (key, value, timestamp, headers) take consecutive offsets from `base_offset` (0 unless
    given). `Record`s keep their own offsets, which must ascend; `base_offset` is the first one's
    unless given. `last_offset_delta` may be given to span offsets whose records are gone, and
    must be for a batch without records.
    """
    base_timestamp = NO_TIMESTAMP
    if records:
        first = records[0]
        if isinstance(first, Record):
            base_timestamp = first.timestamp
            base_offset = first.offset if base_offset is None else base_offset
        else:
            base_timestamp = first[2]
    if base_offset is None:
        base_offset = 0
    if delete_horizon_ms is not None:
        base_timestamp = delete_horizon_ms
    attributes = (
        compression
        | (LOG_APPEND_TIME_FLAG if log_append_time_ms is not None else 0)
        | (TRANSACTIONAL_FLAG if is_transactional else 0)
        | (CONTROL_FLAG if is_control else 0)
        | (DELETE_HORIZON_FLAG if delete_horizon_ms is not None else 0)
    )
    buffer, delta, max_timestamp = encode_records(records, HEADER_SIZE, base_offset, base_timestamp)
    if compression is not Compression.NONE and records:
        with memoryview(buffer) as view, view[HEADER_SIZE:] as section:
            packed = compress(compression, section, compression_level)
        buffer[HEADER_SIZE:] = packed
    if last_offset_delta is None:
        last_offset_delta = delta
    if last_offset_delta < max(delta, 0):
        raise ValueError(f"last offset delta {last_offset_delta}, but records reach {delta}")
    HEADER_STRUCT.pack_into(
        buffer,
        0,
        base_offset,
        len(buffer) - LOG_OVERHEAD,
        partition_leader_epoch,
        MAGIC,
        0,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp if log_append_time_ms is None else log_append_time_ms,
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    CRC_STRUCT.pack_into(buffer, CRC_POSITION, checksum(buffer, 0, len(buffer)))
    return buffer


def decode_batch(
    buffer: Buffer, position: int = 0, *, max_size: int = DECOMPRESSED_SIZE_MAX
) -> list[Record]:
    """The records of the batch at `position`, whose checksum the caller may check before."""
    header = read_header(buffer, position)
    _check_header(header, position)
    end = position + header.size
    if end > len(buffer):
        raise CorruptBatchError(
            f"batch at offset {header.base_offset}: {header.size} bytes announced, "
            f"{len(buffer) - position} there"
        )
    codec = header.compression
    start = position + HEADER_SIZE
    try:
        if codec is Compression.NONE or header.record_count == 0:
            data = bytes(buffer[start:end])
        else:
            with memoryview(buffer) as view, view[start:end] as section:
                data = decompress(codec, section, max_size)
        return decode_records(
            data,
            0,
            len(data),
            header.record_count,
            header.base_offset,
            header.base_timestamp,
            header.max_timestamp if header.is_log_append_time else None,
        )
    except (CompressionError, ValueError) as error:
        raise CorruptBatchError(f"batch at offset {header.base_offset}: {error}") from error


def decode_batches(buffer: Buffer, position: int = 0) -> Iterator[tuple[BatchHeader, list[Record]]]:
    """Header and records of each batch that is there in full."""
    for start, header in iterate_headers(buffer, position):
        yield header, decode_batch(buffer, start)


def encode_end_txn_marker(
    *,
    producer_id: int,
    producer_epoch: int,
    committed: bool,
    coordinator_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
) -> bytes:
    """The control batch that ends a transaction in a partition; it takes one offset."""
    key = _CONTROL_KEY.pack(0, ControlType.COMMIT if committed else ControlType.ABORT)
    value = _END_TXN_VALUE.pack(0, coordinator_epoch)
    return encode_batch(
        [(key, value, timestamp, ())],
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )


def decode_control_type(key: bytes | None) -> int:
    """What kind of control record has this key; kinds unknown here are returned as they are."""
    if key is None or len(key) < _CONTROL_KEY.size:
        raise CorruptBatchError(f"control record key of {len(key or b'')} bytes, expected 4")
    version, kind = _CONTROL_KEY.unpack_from(key)
    if version < 0:
        raise CorruptBatchError(f"control record key version {version}")
    return int(kind)


def decode_coordinator_epoch(value: bytes | None) -> int:
    """The coordinator epoch in a transaction marker's value."""
    if value is None or len(value) < _END_TXN_VALUE.size:
        raise CorruptBatchError(f"transaction marker of {len(value or b'')} bytes, expected 6")
    return int(_END_TXN_VALUE.unpack_from(value)[1])
