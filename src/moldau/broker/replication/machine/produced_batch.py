"""What a Produce request may contain for one partition: exactly one batch of the current format.

Only the start of the batch header is read here; the log validates the rest.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from moldau.broker.log.machine._plain_batches import attributes_of_single
from moldau.wire.batch_header import (
    COMPRESSION_MASK,
    LENGTH_MAGIC_ATTRIBUTES_STRUCT,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    PRODUCER_STRUCT,
    TRANSACTIONAL_FLAG,
)
from moldau.wire.errors import ApiError, ErrorCode

ZSTD_SINCE: Final = 7

_MAGIC_END: Final = MAGIC_POSITION + 1
_ZSTD: Final = 4
_START: Final = LENGTH_MAGIC_ATTRIBUTES_STRUCT


class MalformedRequest(ApiError):
    """Rejected before the log is asked."""


class Producer(NamedTuple):
    """Of a transactional batch."""

    id: int
    epoch: int
    base_sequence: int


def single_batch(records: memoryview | None, version: int) -> tuple[memoryview, int]:
    """The one batch that `records` must be, and the low byte of its attributes."""
    if records is not None and (plain := attributes_of_single(records)) >= 0:
        return records, plain
    size = 0 if records is None else len(records)
    if records is None or size < _MAGIC_END:
        raise MalformedRequest(
            ErrorCode.INVALID_RECORD,
            f"Produce requests with version {version} must have at least one record batch"
            " per partition",
        )
    if size < _START.size:
        raise MalformedRequest(ErrorCode.CORRUPT_MESSAGE, f"a batch of {size} bytes has no header")
    batch_length, magic, attributes = _START.unpack_from(records)
    batch_size = batch_length + LOG_OVERHEAD
    if batch_size != size:
        records = _first_batch(records, batch_size, version)
    if magic != MAGIC:
        raise MalformedRequest(
            ErrorCode.INVALID_RECORD,
            f"Produce requests with version {version} are only allowed to contain record batches"
            f" with magic version 2, not {magic}",
        )
    if version < ZSTD_SINCE and attributes & COMPRESSION_MASK == _ZSTD:
        raise MalformedRequest(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"Produce requests with version {version} are not allowed to use ZStandard compression",
        )
    return records, attributes


def _first_batch(records: memoryview, batch_size: int, version: int) -> memoryview:
    """`records` without the incomplete batch that may follow the first, as Kafka trims them."""
    if batch_size < _MAGIC_END:
        raise MalformedRequest(
            ErrorCode.CORRUPT_MESSAGE, f"a batch claims a size of {batch_size} bytes"
        )
    if batch_size > len(records):
        raise MalformedRequest(
            ErrorCode.INVALID_RECORD,
            f"Produce requests with version {version} must have at least one whole record batch"
            f" per partition; this one has {len(records)} of {batch_size} bytes",
        )
    rest = records[batch_size:]
    if len(rest) >= _START.size:
        (batch_length, _, _) = _START.unpack_from(rest)
        if batch_length + LOG_OVERHEAD <= len(rest):
            raise MalformedRequest(
                ErrorCode.INVALID_RECORD,
                f"Produce requests with version {version} are only allowed to contain exactly"
                " one record batch per partition",
            )
    return records[:batch_size]


def looks_transactional(records: memoryview | None) -> bool:
    """Whether the attributes say so, whatever else is wrong with the records."""
    return (
        records is not None
        and len(records) >= _START.size
        and bool(records[_START.size - 1] & TRANSACTIONAL_FLAG)
    )


def transactional_producer(records: memoryview | None, version: int) -> Producer | None:
    """The producer of a transactional batch; None for others and for malformed ones."""
    try:
        batch, attributes = single_batch(records, version)
    except MalformedRequest:
        return None
    if not attributes & TRANSACTIONAL_FLAG or len(batch) < PRODUCER_STRUCT.size:
        return None
    producer = Producer(*PRODUCER_STRUCT.unpack_from(batch))
    return producer if producer.id >= 0 else None
