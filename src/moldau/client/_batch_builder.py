# cython: boundscheck=False, wraparound=False, annotation_typing=False
"""The producer's open batches: each record is written in wire format as it comes.

Plain Python, and with `_batch_builder.pxd` beside it also the source of a compiled module with the
same names and results. Invariants: a batch that was built takes no more records; the
records before a `split` and after it are the same in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from sys import getrefcount
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from moldau.invariant import InvariantError
from moldau.wire._record_codec import decode_records
from moldau.wire.batch_header import (
    CRC_POSITION,
    CRC_STRUCT,
    HEADER_SIZE,
    HEADER_STRUCT,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL_FLAG,
)
from moldau.wire.compression import Compression, compress, decompress
from moldau.wire.constants import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from moldau.wire.records import NO_PARTITION_LEADER_EPOCH, checksum

if TYPE_CHECKING:

    def memcpy(target: Any, source: Any, size: int) -> None: ...

    def PyByteArray_Resize(buffer: bytearray, size: int) -> int: ...


try:
    import cython
except ImportError:
    # Only the compiler needs the real one, and it does not let its name be assigned.
    globals()["cython"] = SimpleNamespace(compiled=False)

COMPILED: bool = cython.compiled

RecordRow = tuple[bytes | None, bytes | None, int, tuple[tuple[str, bytes | None], ...]]

_INT32_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1
_HEADER_SIZE = HEADER_SIZE
_CAPACITY_MIN = 512
# A compressed batch is taken to be this much larger than the ratio seen lately says.
_ESTIMATE_MARGIN = 1.05
_SPARES_MAX = 32
# What `getrefcount` returns for an object that only a local variable holds.
_OWN_REFERENCES = 1 if cython.compiled else 2


def _zigzag(value: int) -> int:
    """The unsigned number that stands for `value`; small for small magnitudes."""
    return (value << 1) ^ (value >> 63)


def _size_of(unsigned: int) -> int:
    """Bytes that the unsigned number takes."""
    size = 1
    while unsigned > 127:
        unsigned >>= 7
        size += 1
    return size


def _put(out: Any, position: int, unsigned: int) -> int:
    """Write the unsigned number; the position after it."""
    while unsigned > 127:
        out[position] = (unsigned & 127) | 128
        unsigned >>= 7
        position += 1
    out[position] = unsigned
    return position + 1


def _put_bytes(out: Any, position: int, content: Any, size: int) -> int:
    """Copy `size` bytes of `content`; the position after them."""
    if cython.compiled:
        memcpy(out + position, content, size)
    else:
        out[position : position + size] = content[:size]
    return position + size


def _varint_bytes(value: int) -> bytes:
    unsigned = _zigzag(value)
    out = bytearray()
    while unsigned > 127:
        out.append((unsigned & 127) | 128)
        unsigned >>= 7
    out.append(unsigned)
    return bytes(out)


def _encode_headers(headers: Iterable[tuple[str, Any]]) -> bytes:
    """The header count and the headers."""
    pairs = list(headers)
    parts = [_varint_bytes(len(pairs))]
    for name, value in pairs:
        encoded = name.encode()
        parts.append(_varint_bytes(len(encoded)))
        parts.append(encoded)
        content = _as_bytes(value)
        if content is None:
            parts.append(_varint_bytes(-1))
        else:
            parts.append(_varint_bytes(len(content)))
            parts.append(content)
    return b"".join(parts)


def _as_bytes(content: Any) -> bytes | None:
    if content is None or type(content) is bytes:
        return content
    if isinstance(content, (bytes, bytearray, memoryview)):
        return bytes(content)
    raise TypeError(
        f"keys, values and header values are bytes or None, not {type(content).__name__}"
    )


class BatchBuilder:
    """One batch that grows by `append` up to `limit_bytes` and ends as the bytes of `build`.

    The first record always fits, however large it is. `size` is what the batch will take: exact
    without compression, else guessed from `compression_ratio` (compressed by uncompressed bytes
    lately).
    """

    __slots__ = (
        "_buffer",
        "_capacity",
        "_codec",
        "_compression_level",
        "_factor",
        "_packed",
        "_position",
        "_spares",
        "_target",
        "base_timestamp",
        "closed",
        "limit_bytes",
        "max_timestamp",
        "record_count",
    )

    def __init__(
        self,
        limit_bytes: int,
        *,
        compression: Compression = Compression.NONE,
        compression_level: int | None = None,
        compression_ratio: float = 1.0,
        spares: list[bytearray] | None = None,
    ) -> None:
        """`spares` are buffers of batches that are done, shared by who makes many batches."""
        self.limit_bytes = limit_bytes
        self.record_count = 0
        self.base_timestamp = -1
        self.max_timestamp = -1
        self.closed = False
        self._codec = int(compression)
        self._compression_level = compression_level
        self._factor = compression_ratio * _ESTIMATE_MARGIN if self._codec else 1.0
        self._packed: bytearray | None = None
        self._spares = spares
        self._buffer = spares.pop() if spares else bytearray(_CAPACITY_MIN)
        self._target = self._buffer
        self._capacity = len(self._buffer)
        self._position = _HEADER_SIZE

    @property
    def uncompressed_size(self) -> int:
        """Bytes of the records, without the batch header, before compression."""
        return self._position - _HEADER_SIZE

    @property
    def size(self) -> int:
        if self._packed is not None:
            return len(self._packed)
        return _HEADER_SIZE + int((self._position - _HEADER_SIZE) * self._factor)

    @property
    def compressed_ratio(self) -> float:
        """Compressed by uncompressed bytes; 1 while nothing was compressed."""
        if self._packed is None or self.record_count == 0:
            return 1.0
        return (len(self._packed) - _HEADER_SIZE) / (self._position - _HEADER_SIZE)

    def append(
        self,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, Any]] | None = None,
    ) -> int:
        """Add a record; its index in the batch, or -1 if it does not fit or the batch is closed."""
        if self.closed:
            return -1
        if type(key) is not bytes and key is not None:
            key = _as_bytes(key)
        if type(value) is not bytes and value is not None:
            value = _as_bytes(value)
        if timestamp < -1:
            raise ValueError(f"timestamp {timestamp} is negative; -1 means none")
        if timestamp > _INT64_MAX:
            raise OverflowError(f"timestamp {timestamp} does not fit 64 bits")
        tail = _encode_headers(headers) if headers else b"\x00"
        key_size = -1 if key is None else len(key)
        value_size = -1 if value is None else len(value)
        # Of nothing nothing is copied, but even so there must be something to point to.
        key_bytes = b"" if key is None else key
        value_bytes = b"" if value is None else value
        return self.append_chars(
            timestamp, key_bytes, key_size, value_bytes, value_size, tail, len(tail)
        )

    def append_chars(
        self,
        timestamp: int,
        key: Any,
        key_size: int,
        value: Any,
        value_size: int,
        tail: Any,
        tail_size: int,
    ) -> int:
        """As `append`, for who has bytes somewhere and checks the timestamp himself; a size of -1
        is null, and `tail` is the count of headers and the headers as they are written.

        Long, because each field moves the position that the next one starts from.
        """
        if self.closed:
            return -1
        index = self.record_count
        delta = _zigzag(timestamp - self.base_timestamp) if index else 0
        size = 1 + _size_of(delta) + _size_of(_zigzag(index)) + tail_size
        size += _size_of(_zigzag(key_size)) + _size_of(_zigzag(value_size))
        if key_size > 0:
            size += key_size
        if value_size > 0:
            size += value_size
        position = self._position
        if size > _INT32_MAX - 5 - position:
            if index:
                return -1
            raise OverflowError("the records of one batch take less than 2 GiB")
        needed = position + _size_of(_zigzag(size)) + size
        if index:
            if self._codec == 0:
                if needed > self.limit_bytes:
                    return -1
            elif (
                _HEADER_SIZE + (position - _HEADER_SIZE) * self._factor + (needed - position)
                > self.limit_bytes
            ):
                return -1
        if needed > self._capacity:
            self._grow(needed)
        target = self._target
        if index == 0:
            self.base_timestamp = timestamp
            self.max_timestamp = timestamp
        elif timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        position = _put(target, position, _zigzag(size))
        target[position] = 0
        position = _put(target, position + 1, delta)
        position = _put(target, position, _zigzag(index))
        position = _put(target, position, _zigzag(key_size))
        if key_size > 0:
            position = _put_bytes(target, position, key, key_size)
        position = _put(target, position, _zigzag(value_size))
        if value_size > 0:
            position = _put_bytes(target, position, value, value_size)
        position = _put_bytes(target, position, tail, tail_size)
        self._position = position
        self.record_count = index + 1
        return index

    def _grow(self, needed: int) -> None:
        """Room for `needed` bytes: twice as much as before, within the limit where that does."""
        capacity = self._capacity * 2
        if capacity > self.limit_bytes and self._codec == 0:
            capacity = self.limit_bytes
        if capacity < needed:
            capacity = needed
        if cython.compiled:
            # Nobody reads what was not written, so it need not be zero.
            PyByteArray_Resize(self._buffer, capacity)
        else:
            self._buffer.extend(bytes(capacity - self._capacity))
        self._target = self._buffer
        self._capacity = capacity

    def close(self) -> None:
        """Take no more records."""
        self.closed = True

    def build(
        self,
        *,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        is_transactional: bool = False,
    ) -> bytearray:
        """The whole batch, closed; a later call writes other ids into the same bytes."""
        self.closed = True
        if self._packed is None:
            self._pack()
        batch = self._packed
        if batch is None:
            raise InvariantError("a closed batch is packed")
        HEADER_STRUCT.pack_into(
            batch,
            0,
            0,
            len(batch) - LOG_OVERHEAD,
            NO_PARTITION_LEADER_EPOCH,
            MAGIC,
            0,
            self._codec | (TRANSACTIONAL_FLAG if is_transactional else 0),
            max(self.record_count - 1, 0),
            self.base_timestamp,
            self.max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            self.record_count,
        )
        CRC_STRUCT.pack_into(batch, CRC_POSITION, checksum(batch, 0, len(batch)))
        return batch

    def _pack(self) -> None:
        buffer = self._buffer
        del buffer[self._position :]
        if self._codec and self.record_count:
            with memoryview(buffer) as view, view[_HEADER_SIZE:] as section:
                packed = compress(Compression(self._codec), section, self._compression_level)
            # The plain records are of no more use: `records` can have them back from these.
            self._keep(buffer)
            buffer = bytearray(_HEADER_SIZE)
            buffer += packed
        self._packed = buffer
        self._buffer = bytearray()
        self._target = self._buffer
        self._capacity = 0

    def release(self) -> None:
        """The batch is done: another may have its memory, unless somebody still holds it, as a
        connection does that has not sent all of it."""
        packed = self._packed
        self._packed = None
        self._buffer = bytearray()
        self._target = self._buffer
        self._capacity = 0
        self.closed = True
        if packed is not None and getrefcount(packed) <= _OWN_REFERENCES:
            self._keep(packed)

    def _keep(self, buffer: bytearray) -> None:
        spares = self._spares
        if spares is not None and len(spares) < _SPARES_MAX and len(buffer) >= _CAPACITY_MIN:
            spares.append(buffer)

    def records(self) -> list[RecordRow]:
        """What was appended, as (key, value, timestamp, headers)."""
        if self._packed is None:
            section = bytes(self._buffer[_HEADER_SIZE : self._position])
        else:
            with memoryview(self._packed) as view, view[_HEADER_SIZE:] as packed:
                if self._codec and self.record_count:
                    section = decompress(
                        Compression(self._codec), packed, self._position - _HEADER_SIZE
                    )
                else:
                    section = bytes(packed)
        return [
            (record.key, record.value, record.timestamp, record.headers)
            for record in decode_records(
                section, 0, len(section), self.record_count, 0, self.base_timestamp
            )
        ]

    def split(self, limit_bytes: int) -> list[BatchBuilder]:
        """The same records in batches of at most `limit_bytes`, or of one record each."""
        ratio = self.compressed_ratio
        parts: list[BatchBuilder] = []
        part: BatchBuilder | None = None
        for key, value, timestamp, headers in self.records():
            if part is None or part.append(timestamp, key, value, headers) < 0:
                part = BatchBuilder(
                    limit_bytes,
                    compression=Compression(self._codec),
                    compression_level=self._compression_level,
                    compression_ratio=ratio,
                )
                parts.append(part)
                part.append(timestamp, key, value, headers)
        return parts
