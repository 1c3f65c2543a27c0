# cython: boundscheck=False, wraparound=False, annotation_typing=False
"""Fetched batches become the records that consumers see.

The file is plain Python, and with `_records.pxd` beside it also the source of a compiled module
with the same names and results, written as `moldau.wire._record_codec` is. Invariants:
records are read only after `validate_records` has found their whole section sound, so the
unchecked reads below cannot leave it; a reader stays where it is when it raises; and records in
front of a bad one are given before the error is.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from types import GenericAlias, SimpleNamespace
from typing import Any

from moldau.client.errors import CorruptRecordError, RecordDeserializationError
from moldau.wire._record_codec import PROBLEMS, validate_records
from moldau.wire.batch_header import (
    ATTRIBUTES_POSITION,
    COMPRESSION_MASK,
    CONTROL_FLAG,
    HEADER_SIZE,
    HEADER_STRUCT,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL_FLAG,
)
from moldau.wire.checksums import crc32c
from moldau.wire.compression import Compression, CompressionError, decompress_to_buffer
from moldau.wire.constants import Buffer
from moldau.wire.records import read_header

try:
    import cython
except ImportError:
    # Only the compiler needs the real one, and it does not let its name be assigned.
    globals()["cython"] = SimpleNamespace(compiled=False)

COMPILED: bool = cython.compiled

if not cython.compiled:
    # The compiler takes them from the .pxd, as C.
    from moldau.wire.varint import varint, varint_length, varlong

Headers = tuple[tuple[str, bytes | None], ...]
Deserializer = Callable[[str, Any, Headers], Any]


_CREATE_TIME = 0
_LOG_APPEND_TIME = 1

# What becomes of keys and of values: nothing, text, or whatever a function makes of them.
_AS_BYTES = 0
_AS_TEXT = 1
_BY_CALL = 2


class ConsumerRecord:
    """One record as a consumer gives it; equal when all its fields are.

    `timestamp_type` is 0 for the producer's time and 1 for the broker's. The sizes are those of
    the bytes on the wire, -1 for null. `delivery_count` is for share groups.
    """

    __slots__ = (
        "_delivery_count",
        "_leader_epoch",
        "headers",
        "key",
        "offset",
        "partition",
        "serialized_key_size",
        "serialized_value_size",
        "timestamp",
        "timestamp_type",
        "topic",
        "value",
    )

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        timestamp: int = -1,
        timestamp_type: int = _CREATE_TIME,
        key: Any = None,
        value: Any = None,
        headers: Headers = (),
        leader_epoch: int | None = None,
        serialized_key_size: int = -1,
        serialized_value_size: int = -1,
        delivery_count: int | None = None,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.timestamp = timestamp
        self.timestamp_type = timestamp_type
        self.key = key
        self.value = value
        self.headers = headers
        self.serialized_key_size = serialized_key_size
        self.serialized_value_size = serialized_value_size
        self._leader_epoch = -1 if leader_epoch is None else leader_epoch
        self._delivery_count = -1 if delivery_count is None else delivery_count

    @property
    def leader_epoch(self) -> int | None:
        """The epoch of the leader that appended the record."""
        return None if self._leader_epoch < 0 else self._leader_epoch

    @property
    def delivery_count(self) -> int | None:
        """How often a share group was given the record, this time included."""
        return None if self._delivery_count < 0 else self._delivery_count

    @classmethod
    def __class_getitem__(cls, types: Any) -> GenericAlias:
        """`ConsumerRecord[str, bytes]` in annotations: the types of key and value."""
        return GenericAlias(cls, types)

    def _fields(self) -> tuple[Any, ...]:
        return (
            self.topic,
            self.partition,
            self.offset,
            self.timestamp,
            self.timestamp_type,
            self.key,
            self.value,
            self.headers,
            self.leader_epoch,
            self.serialized_key_size,
            self.serialized_value_size,
            self.delivery_count,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ConsumerRecord):
            return NotImplemented
        return self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash((self.topic, self.partition, self.offset))

    def __repr__(self) -> str:
        return (
            f"ConsumerRecord(topic={self.topic!r}, partition={self.partition}, "
            f"offset={self.offset}, timestamp={self.timestamp}, "
            f"timestamp_type={self.timestamp_type}, key={self.key!r}, value={self.value!r}, "
            f"headers={self.headers!r}, leader_epoch={self.leader_epoch}, "
            f"delivery_count={self.delivery_count})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return ConsumerRecord, self._fields()


def _read_headers(data: Any, position: int, count: int) -> Headers:
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        size = varint_length(data, position)
        length = varint(data, position, size)
        position += size
        name = data[position : position + length]
        position += length
        size = varint_length(data, position)
        length = varint(data, position, size)
        position += size
        # Java puts U+FFFD where a name is not UTF-8; a reader must not stop at it.
        text = name.decode("utf-8", "replace")
        if length < 0:
            headers.append((text, None))
        else:
            headers.append((text, data[position : position + length]))
            position += length
    return tuple(headers)


def _kind_of(deserializer: Deserializer | None) -> int:
    if deserializer is None:
        return _AS_BYTES
    if getattr(deserializer, "utf8_text", False):
        return _AS_TEXT
    return _BY_CALL


class BatchReader:
    """Gives the records of one batch, in as many portions as the caller likes."""

    __slots__ = (
        "_append_time",
        "_base_timestamp",
        "_check_crcs",
        "_index",
        "_key_deserializer",
        "_key_kind",
        "_leader_epoch",
        "_partition",
        "_position",
        "_source",
        "_start_offset",
        "_timestamp_type",
        "_topic",
        "_value_deserializer",
        "_value_kind",
        "_view",
        "base_offset",
        "is_control",
        "is_transactional",
        "last_offset",
        "next_offset",
        "producer_id",
        "record_count",
        "size",
    )

    def __init__(
        self,
        buffer: Buffer,
        position: int,
        topic: str,
        partition: int,
        *,
        start_offset: int = 0,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
        check_crcs: bool = True,
    ) -> None:
        self._topic = topic
        self._partition = partition
        self._key_deserializer = key_deserializer
        self._value_deserializer = value_deserializer
        self._check_crcs = check_crcs
        self._source: Any = None
        self.record_count = 0
        self._index = 0
        if position >= 0:
            self.open(readable(buffer), position, start_offset)

    def open(self, data: memoryview, position: int, start_offset: int) -> None:
        """Turn to the batch at `position` of what `readable` gave; of a bad one nothing is read."""
        self.record_count = 0
        self._index = 0
        try:
            (
                base_offset,
                length,
                leader_epoch,
                magic,
                crc,
                attributes,
                last_delta,
                base_timestamp,
                max_timestamp,
                producer_id,
                _,
                _,
                record_count,
            ) = HEADER_STRUCT.unpack_from(data, position)
        except struct.error:
            raise self._corrupt(
                f"{len(data) - position} bytes at position {position} are too few for a batch"
            ) from None
        size = LOG_OVERHEAD + length
        end = position + size
        if magic != MAGIC or size < HEADER_SIZE or end > len(data) or record_count < 0:
            raise self._corrupt(_header_problem(data, position))
        if self._check_crcs and crc32c(data[position + ATTRIBUTES_POSITION : end]) != crc:
            raise self._corrupt(
                f"batch at offset {base_offset}: its checksum does not match its bytes"
            )
        source = data
        start = position + HEADER_SIZE
        if attributes & COMPRESSION_MASK and record_count:
            source = self._decompressed(data[start:end], base_offset, attributes)
            start, end = 0, len(source)
        scan = validate_records(source, start, end, record_count, base_timestamp)
        if scan.problem:
            raise self._corrupt(
                f"batch at offset {base_offset}: record {scan.index}: {PROBLEMS[scan.problem]}"
            )
        if source is not self._source:
            self._source = source
            # Slices of bytes are bytes; the compiled form reads everything where it is.
            self._view: Any = source if cython.compiled else source.obj
        self._position = start
        self._start_offset = start_offset
        self._base_timestamp = base_timestamp
        self._timestamp_type = (
            _LOG_APPEND_TIME if attributes & LOG_APPEND_TIME_FLAG else _CREATE_TIME
        )
        self._append_time = max_timestamp
        self._leader_epoch = leader_epoch
        self.base_offset = base_offset
        self.last_offset = base_offset + last_delta
        self.producer_id = producer_id
        self.is_control = attributes & CONTROL_FLAG != 0
        self.is_transactional = attributes & TRANSACTIONAL_FLAG != 0
        self._key_kind = _AS_BYTES if self.is_control else _kind_of(self._key_deserializer)
        self._value_kind = _AS_BYTES if self.is_control else _kind_of(self._value_deserializer)
        self.size = size
        self.record_count = record_count
        self.next_offset = base_offset if record_count else self.last_offset + 1
        if start_offset > self.next_offset:
            self.next_offset = start_offset

    def _decompressed(self, section: memoryview, base_offset: int, attributes: int) -> memoryview:
        codec = attributes & COMPRESSION_MASK
        try:
            if codec > Compression.ZSTD:
                raise CompressionError(f"compression id {codec}")
            return readable(decompress_to_buffer(Compression(codec), section))
        except CompressionError as error:
            raise self._corrupt(f"batch at offset {base_offset}: {error}") from error

    def _corrupt(self, problem: str) -> CorruptRecordError:
        return CorruptRecordError(f"{self._topic}-{self._partition}: {problem}")

    @property
    def exhausted(self) -> bool:
        return self._index >= self.record_count

    @property
    def leader_epoch(self) -> int | None:
        return None if self._leader_epoch < 0 else self._leader_epoch

    def skip_to(self, offset: int) -> None:
        """Give no record below `offset`."""
        self._start_offset = max(self._start_offset, offset)
        self.next_offset = max(self.next_offset, offset)

    def next(self, max_count: int = -1) -> list[ConsumerRecord]:
        """The next records, at most `max_count` of them; none when there are no more."""
        records: list[ConsumerRecord] = []
        self.fill(records, max_count)
        return records

    def fill(self, records: list[ConsumerRecord], max_count: int) -> None:
        """Append the next records. One that cannot be deserialized ends this quietly if `records`
        holds any: it is raised when it is the first.

        Long, because each field moves the position that the next one starts from.
        """
        if self._index >= self.record_count:
            return
        chars = cython.address(self._view[0]) if cython.compiled else self._view
        topic = self._topic
        partition = self._partition
        leader_epoch = self._leader_epoch
        atomic = self._key_kind != _BY_CALL and self._value_kind != _BY_CALL
        position = self._position
        left = self.record_count - self._index
        room = max_count if max_count >= 0 else left
        while left > 0 and room > 0:
            size = varint_length(chars, position)
            length = varint(chars, position, size)
            position += size
            record_end = position + length
            position += 1
            size = varint_length(chars, position)
            timestamp = self._base_timestamp + varlong(chars, position, size)
            position += size
            size = varint_length(chars, position)
            offset = self.base_offset + varint(chars, position, size)
            position += size
            if offset < self._start_offset:
                position = record_end
                left -= 1
                self._position = position
                self._index += 1
                continue
            record = ConsumerRecord.__new__(ConsumerRecord)
            record.topic = topic
            record.partition = partition
            record.offset = offset
            record.timestamp_type = self._timestamp_type
            record.timestamp = (
                self._append_time if self._timestamp_type == _LOG_APPEND_TIME else timestamp
            )
            record._leader_epoch = leader_epoch
            record._delivery_count = -1
            size = varint_length(chars, position)
            length = varint(chars, position, size)
            position += size
            if length >= 0:
                record.serialized_key_size = length
                record.key = chars[position : position + length]
                position += length
            else:
                record.serialized_key_size = -1
                record.key = None
            size = varint_length(chars, position)
            length = varint(chars, position, size)
            position += size
            if length >= 0:
                record.serialized_value_size = length
                record.value = chars[position : position + length]
                position += length
            else:
                record.serialized_value_size = -1
                record.value = None
            size = varint_length(chars, position)
            length = varint(chars, position, size)
            position += size
            record.headers = _read_headers(chars, position, length) if length > 0 else ()
            if self._key_kind != _AS_BYTES or self._value_kind != _AS_BYTES:
                try:
                    self._deserialize(record)
                except Exception as error:
                    if records:
                        break
                    raise self._deserialization_error(record, error) from error
            if cython.compiled and atomic:
                # Bytes, text and tuples of them cannot form cycles: the collector, which would
                # visit every record of a large poll over and over, need not know of them.
                PyObject_GC_UnTrack(record)  # type: ignore[name-defined]  # noqa: F821
            records.append(record)
            position = record_end
            left -= 1
            room -= 1
            self._position = position
            self._index += 1
            self.next_offset = offset + 1
        if left == 0:
            # Offsets whose records compaction took are passed over with the batch.
            self.next_offset = max(self.next_offset, self.last_offset + 1)

    def _deserialize(self, record: ConsumerRecord) -> None:
        if self._key_kind == _AS_TEXT:
            if record.key is not None:
                record.key = record.key.decode()
        elif self._key_kind == _BY_CALL:
            record.key = _call(self._key_deserializer, self._topic, record.key, record.headers)
        if self._value_kind == _AS_TEXT:
            if record.value is not None:
                record.value = record.value.decode()
        elif self._value_kind == _BY_CALL:
            record.value = _call(
                self._value_deserializer, self._topic, record.value, record.headers
            )

    def _deserialization_error(
        self, record: ConsumerRecord, error: Exception
    ) -> RecordDeserializationError:
        return RecordDeserializationError(
            f"cannot deserialize the record at offset {record.offset} of "
            f"{self._topic}-{self._partition}: {error}",
            topic=self._topic,
            partition=self._partition,
            offset=record.offset,
        )


def _call(deserializer: Any, topic: str, content: bytes | None, headers: Headers) -> Any:
    if content is None and getattr(deserializer, "null_is_null", False):
        return None
    return deserializer(topic, content, headers)


def readable(buffer: Buffer) -> memoryview:
    """A view that records can be read from: of the buffer itself, or where this file is not
    compiled of a copy as bytes, whose slices are bytes."""
    if cython.compiled or type(buffer) is bytes:
        return memoryview(buffer)
    return memoryview(bytes(buffer))


def _header_problem(data: Buffer, position: int) -> str:
    """What is wrong with a header that was refused."""
    header = read_header(data, position)
    where = f"at offset {header.base_offset}"
    if header.magic != MAGIC:
        return f"batch format {header.magic} {where}; only format 2 is read"
    if header.record_count < 0:
        return f"batch {where} says it has {header.record_count} records"
    left = len(data) - position
    return f"batch {where} says it has {header.size} bytes, {left} are there"


def decode_consumer_records(
    buffer: Buffer,
    position: int,
    *,
    topic: str,
    partition: int,
    start_offset: int = 0,
    max_count: int = -1,
    key_deserializer: Deserializer | None = None,
    value_deserializer: Deserializer | None = None,
) -> list[ConsumerRecord]:
    """The records of the batch at `position`, from `start_offset` on."""
    reader = BatchReader(
        buffer,
        position,
        topic,
        partition,
        start_offset=start_offset,
        key_deserializer=key_deserializer,
        value_deserializer=value_deserializer,
    )
    return reader.next(max_count)


def acquired_records(
    records: Iterable[ConsumerRecord], ranges: Sequence[tuple[int, int, int]]
) -> list[ConsumerRecord]:
    """The records inside the ranges (first offset, last offset, delivery count), both ascending."""
    taken: list[ConsumerRecord] = []
    index = 0
    count = len(ranges)
    for record in records:
        while index < count and ranges[index][1] < record.offset:
            index += 1
        if index == count:
            break
        if ranges[index][0] <= record.offset:
            record._delivery_count = ranges[index][2]
            taken.append(record)
    return taken
