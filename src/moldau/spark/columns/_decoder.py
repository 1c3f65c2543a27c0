# cython: boundscheck=False, wraparound=False, annotation_typing=False
"""Fetched batches of one partition become the buffers of Arrow columns; no object per record.

Decided here: which records of the batches belong to the range (not control records, not those of
aborted transactions where only committed ones are wanted, none below its start or from its end on)
and when the columns are full. Invariants: records are read only after `validate_records`
has found their whole section sound, so the unchecked reads below cannot leave it; a row is in every
column or in none; `next_offset` is the first offset that nothing is known of.

The file is plain Python, and with `_decoder.pxd` beside it also the source of a compiled module
with the same names and results, written as `moldau.wire._record_codec` is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from moldau.client.errors import CorruptRecordError
from moldau.spark.columns.column_buffers import BinaryColumn, Columns, HeaderColumn
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
    MAGIC_POSITION,
    OFFSET_AND_LENGTH_STRUCT,
    TRANSACTIONAL_FLAG,
)
from moldau.wire.checksums import crc32c
from moldau.wire.compression import Compression, CompressionError, decompress_to_buffer
from moldau.wire.records import ControlType, CorruptBatchError, decode_batch, decode_control_type

if TYPE_CHECKING:

    def memcpy(target: Any, source: Any, size: int) -> None: ...

    def PyByteArray_Resize(buffer: bytearray, size: int) -> int: ...

    def PyByteArray_FromStringAndSize(chars: Any, size: int) -> bytearray: ...


try:
    import cython
except ImportError:
    # Only the compiler needs the real one, and it does not let its name be assigned.
    globals()["cython"] = SimpleNamespace(compiled=False)

COMPILED: bool = cython.compiled

if not cython.compiled:
    # The compiler takes them from the .pxd, as C.
    from moldau.wire.varint import varint, varint_length, varlong


# The first and the last millisecond whose microseconds are 64 bits wide.
_TIMESTAMP_MAX = (2**63 - 1) // 1000
_TIMESTAMP_MIN = -_TIMESTAMP_MAX
_INT32_MAX = 2**31 - 1
_DATA_CAPACITY_MIN = 1024


def _new(size: int) -> bytearray:
    """Memory that is written before it is read, so where it is compiled it is not zeroed."""
    if cython.compiled:
        return PyByteArray_FromStringAndSize(cython.NULL, size)
    return bytearray(size)


def _int32s(buffer: bytearray) -> Any:
    if cython.compiled:
        chars = buffer
        return cython.cast("int *", chars)
    return memoryview(buffer).cast("i")


def _int64s(buffer: bytearray) -> Any:
    if cython.compiled:
        chars = buffer
        return cython.cast("long long *", chars)
    return memoryview(buffer).cast("q")


class BinaryBuffers:
    """Values of variable length that grow one by one."""

    def __init__(self, count_max: int, capacity: int) -> None:
        self._count_max = count_max
        self._ends_buffer = _new(4 * (count_max + 1))
        self._ends = _int32s(self._ends_buffer)
        self._ends[0] = 0
        self._validity = bytearray((count_max + 7) // 8)
        self._bits = self._validity
        self._capacity = capacity
        self._data = _new(capacity)
        self._target: Any = self._data
        self.size = 0
        self.count = 0
        self.null_count = 0

    def reserve(self, size: int) -> None:
        """Room for `size` more bytes."""
        needed = self.size + size
        if needed > self._capacity:
            capacity = max(needed, 2 * self._capacity)
            if cython.compiled:
                PyByteArray_Resize(self._data, capacity)
            else:
                self._data.extend(bytes(capacity - self._capacity))
            self._target = self._data
            self._capacity = capacity

    def reserve_count(self, count: int) -> None:
        """Room for `count` more values."""
        needed = self.count + count
        if needed > self._count_max:
            count_max = max(needed, 2 * self._count_max)
            ends = _new(4 * (count_max + 1))
            used = 4 * (self.count + 1)
            ends[:used] = self._ends_buffer[:used]
            self._ends_buffer = ends
            self._ends = _int32s(ends)
            self._validity = self._validity + bytes((count_max + 7) // 8 - len(self._validity))
            self._bits = self._validity
            self._count_max = count_max

    def append(self, data: Any, position: int, length: int) -> None:
        """The `length` bytes of `data` at `position`, for which there is room; null if negative."""
        count = self.count
        size = self.size
        if length >= 0:
            self._bits[count >> 3] |= 1 << (count & 7)
            if cython.compiled:
                memcpy(self._target + size, data + position, length)
            else:
                self._target[size : size + length] = data[position : position + length]
            size += length
            self.size = size
        else:
            self.null_count += 1
        self._ends[count + 1] = size
        self.count = count + 1

    def column(self) -> BinaryColumn:
        validity = self._validity if self.null_count else None
        return BinaryColumn(validity, self._ends_buffer, self._data, self.size, self.null_count)


class HeaderBuffers:
    """The headers of rows. How many there are is known with each row only, so these grow."""

    def __init__(self, rows_max: int) -> None:
        self._ends_buffer = _new(4 * (rows_max + 1))
        self._ends = _int32s(self._ends_buffer)
        self._ends[0] = 0
        self._validity = bytearray((rows_max + 7) // 8)
        self._bits = self._validity
        self._names = BinaryBuffers(64, _DATA_CAPACITY_MIN)
        self._values = BinaryBuffers(64, _DATA_CAPACITY_MIN)
        self.row_count = 0
        self.null_count = 0
        self.size = 0

    def append(self, data: Any, position: int, count: int, size_max: int) -> None:
        """The `count` headers of a row, the first of which is at `position`, and which have
        `size_max` bytes at most; none at all is null."""
        names = self._names
        values = self._values
        row = self.row_count
        if count > 0:
            self._bits[row >> 3] |= 1 << (row & 7)
            names.reserve_count(count)
            values.reserve_count(count)
            # Where a name is not UTF-8, a byte of it becomes three.
            names.reserve(3 * size_max)
            values.reserve(size_max)
        else:
            self.null_count += 1
        for _ in range(count):
            size = varint_length(data, position)
            length = varint(data, position, size)
            position += size
            if _is_ascii(data, position, length):
                names.append(data, position, length)
            else:
                text = _text(data[position : position + length])
                names.append(text, 0, len(text))
            position += length
            size = varint_length(data, position)
            length = varint(data, position, size)
            position += size
            values.append(data, position, length)
            if length > 0:
                position += length
        self.size = names.size + values.size
        self._ends[row + 1] = names.count
        self.row_count = row + 1

    def column(self) -> HeaderColumn:
        return HeaderColumn(
            self._validity if self.null_count else None,
            self._ends_buffer,
            self.null_count,
            self._names.count,
            self._names.column(),
            self._values.column(),
        )


def _is_ascii(data: Any, position: int, length: int) -> bool:
    found = 0
    for cursor in range(position, position + length):
        found |= data[cursor]
    return found < 128


def _text(name: Any) -> bytes:
    """A header's name as UTF-8: Java puts U+FFFD where it is not, and a reader must not stop."""
    return bytes(name).decode("utf-8", "replace").encode()


class ColumnDecoder:
    """Fills columns with the records of `start <= offset < end`, response after response.

    The columns are full with `rows_max` rows, or once their data has `bytes_max` bytes.
    """

    def __init__(
        self,
        topic: str,
        partition: int,
        start: int,
        end: int,
        *,
        rows_max: int,
        bytes_max: int,
        include_headers: bool = False,
        check_crcs: bool = True,
        read_committed: bool = False,
    ) -> None:
        self._topic = topic
        self._partition = partition
        self._end = end
        self.next_offset = start
        self._rows_max = rows_max
        self._bytes_max = bytes_max
        self._include_headers = include_headers
        self._check_crcs = check_crcs
        self._read_committed = read_committed
        self._data = memoryview(b"")
        self._part_position = 0
        self._aborted: deque[tuple[int, int]] = deque()
        self._aborted_producers: set[int] = set()
        self._section: Any = None
        self._left = 0
        self._start_columns(_DATA_CAPACITY_MIN, _DATA_CAPACITY_MIN)

    def _start_columns(self, key_capacity: int, value_capacity: int) -> None:
        # A range never has more rows than offsets, and is often far smaller than a batch.
        rows = min(self._rows_max, max(0, self._end - self.next_offset))
        self.row_count = 0
        self._keys = BinaryBuffers(rows, key_capacity)
        self._values = BinaryBuffers(rows, value_capacity)
        self._headers = HeaderBuffers(rows) if self._include_headers else None
        self._offsets_buffer = _new(8 * rows)
        self._timestamps_buffer = _new(8 * rows)
        self._types_buffer = _new(4 * rows)
        self._offsets = _int64s(self._offsets_buffer)
        self._timestamps = _int64s(self._timestamps_buffer)
        self._types = _int32s(self._types_buffer)

    @property
    def finished(self) -> bool:
        """Whether no record of the range can come any more."""
        return self._left == 0 and self.next_offset >= self._end

    def skip_to(self, offset: int) -> None:
        """Nothing below `offset` is in the log any more."""
        self.next_offset = max(self.next_offset, offset)

    def open(self, records: memoryview, aborted: Iterable[tuple[int, int]] = ()) -> None:
        """Turn to a partition's part of a Fetch response; what was there before is dropped.

        `aborted` are (producer id, first offset) of the aborted transactions that it names.
        """
        self._data = records
        self._part_position = 0
        self._left = 0
        self._aborted_producers.clear()
        self._aborted.clear()
        if self._read_committed:
            self._aborted.extend(sorted(aborted, key=lambda item: item[1]))

    def fill(self) -> bool:
        """Append rows; True when the columns are full, False when the part has no more for them."""
        while True:
            if self._left == 0 and not self._open_next():
                return False
            if not self._append_rows():
                return True

    def take(self) -> Columns:
        """What was filled; the next rows go into new columns."""
        headers = self._headers
        taken = Columns(
            self.row_count,
            self._keys.column(),
            self._values.column(),
            self._offsets_buffer,
            self._timestamps_buffer,
            self._types_buffer,
            None if headers is None else headers.column(),
        )
        # The next columns will likely need about as much.
        self._start_columns(
            max(_DATA_CAPACITY_MIN, taken.key.size + taken.key.size // 8),
            max(_DATA_CAPACITY_MIN, taken.value.size + taken.value.size // 8),
        )
        return taken

    # Batches.

    def _open_next(self) -> bool:
        """Turn to the next batch with records of the range; False where no whole one is left."""
        data = self._data
        size = len(data)
        while self._part_position + HEADER_SIZE <= size and self.next_offset < self._end:
            position = self._part_position
            batch_size = LOG_OVERHEAD + OFFSET_AND_LENGTH_STRUCT.unpack_from(data, position)[1]
            if data[position + MAGIC_POSITION] != MAGIC:
                raise self._corrupt(
                    f"messages of format {data[position + MAGIC_POSITION]} at offset "
                    f"{OFFSET_AND_LENGTH_STRUCT.unpack_from(data, position)[0]}; only format 2 is "
                    "read"
                )
            if batch_size < HEADER_SIZE:
                raise self._corrupt(
                    f"a batch says it has {batch_size} bytes, fewer than its header"
                )
            if position + batch_size > size:
                break
            self._part_position = position + batch_size
            fields = HEADER_STRUCT.unpack_from(data, position)
            last_offset = fields[0] + fields[6]
            dropped = fields[5] & CONTROL_FLAG != 0
            if self._read_committed and fields[9] >= 0:
                dropped = self._follow_transaction(fields, position)
            if last_offset < self.next_offset:
                continue
            if dropped or fields[12] == 0:
                self.next_offset = last_offset + 1
                continue
            self._open_batch(fields, position, batch_size)
            return True
        return False

    def _open_batch(self, fields: Any, position: int, size: int) -> None:
        """Check a batch, so that its records can be read without looking."""
        base_offset = fields[0]
        crc = fields[4]
        attributes = fields[5]
        base_timestamp = fields[7]
        record_count = fields[12]
        source: Any = self._data
        start = position + HEADER_SIZE
        end = position + size
        if record_count < 0:
            raise self._corrupt(f"batch at offset {base_offset} says it has {record_count} records")
        if self._check_crcs and crc32c(source[position + ATTRIBUTES_POSITION : end]) != crc:
            raise self._corrupt(
                f"batch at offset {base_offset}: its checksum does not match its bytes"
            )
        if attributes & COMPRESSION_MASK:
            source = self._decompressed(source[start:end], base_offset, attributes)
            start, end = 0, len(source)
        scan = validate_records(source, start, end, record_count, base_timestamp)
        if scan.problem:
            raise self._corrupt(
                f"batch at offset {base_offset}: record {scan.index}: {PROBLEMS[scan.problem]}"
            )
        if source is not self._section:
            self._section = source
            # Slices of bytes are bytes; the compiled form reads everything where it is.
            self._view: Any = source
        self._position = start
        self._section_end = end
        self._base_offset = base_offset
        self._last_offset = base_offset + fields[6]
        self._base_timestamp = base_timestamp
        is_append_time = attributes & LOG_APPEND_TIME_FLAG != 0
        self._timestamp_type = 1 if is_append_time else 0
        self._append_time = fields[8]
        self._left = record_count

    def _decompressed(self, section: memoryview, base_offset: int, attributes: int) -> bytearray:
        codec = attributes & COMPRESSION_MASK
        try:
            if codec > Compression.ZSTD:
                raise CompressionError(f"compression id {codec}")
            return decompress_to_buffer(Compression(codec), section)
        except CompressionError as error:
            raise self._corrupt(f"batch at offset {base_offset}: {error}") from error

    def _follow_transaction(self, fields: Any, position: int) -> bool:
        """Note which producers' transactions are aborted here; whether the batch there, which has
        these header fields, holds nothing for the reader."""
        last_offset = fields[0] + fields[6]
        attributes = fields[5]
        producer_id = fields[9]
        while self._aborted and self._aborted[0][1] <= last_offset:
            self._aborted_producers.add(self._aborted.popleft()[0])
        if not attributes & CONTROL_FLAG:
            return attributes & TRANSACTIONAL_FLAG != 0 and producer_id in self._aborted_producers
        if producer_id in self._aborted_producers and self._is_abort(position):
            self._aborted_producers.discard(producer_id)
        return True

    def _is_abort(self, position: int) -> bool:
        try:
            records = decode_batch(bytes(self._data[position : self._part_position]))
            key = records[0].key if records else None
            return key is not None and decode_control_type(key) == ControlType.ABORT
        except CorruptBatchError as error:
            raise self._corrupt(f"control batch: {error}") from error

    def _corrupt(self, problem: str) -> CorruptRecordError:
        return CorruptRecordError(f"{self._topic}-{self._partition}: {problem}")

    # Records.

    def _append_rows(self) -> bool:
        """Append the records of the open batch; whether it is done with, for else there is no room.

        Long, because each field moves the position that the next one starts from.
        """
        chars = cython.address(self._view[0]) if cython.compiled else self._view
        keys = self._keys
        values = self._values
        headers: Any = self._headers
        with_headers = headers is not None
        position = self._position
        left = self._left
        row = self.row_count
        next_offset = self.next_offset
        # What is left of the section is an upper bound for each.
        keys.reserve(self._section_end - position)
        values.reserve(self._section_end - position)
        while left > 0:
            size = varint_length(chars, position)
            length = varint(chars, position, size)
            start = position + size
            record_end = start + length
            # One byte of attributes, which mean nothing yet.
            start += 1
            size = varint_length(chars, start)
            timestamp = self._base_timestamp + varlong(chars, start, size)
            start += size
            size = varint_length(chars, start)
            offset = self._base_offset + varint(chars, start, size)
            start += size
            if offset < next_offset:
                position = record_end
                left -= 1
                continue
            if offset >= self._end:
                left = 0
                break
            if row >= self._rows_max or keys.size + values.size >= self._bytes_max:
                break
            if with_headers and headers.size >= self._bytes_max:
                break
            if row and keys.size + values.size + length > _INT32_MAX:
                break
            size = varint_length(chars, start)
            length = varint(chars, start, size)
            start += size
            keys.append(chars, start, length)
            if length > 0:
                start += length
            size = varint_length(chars, start)
            length = varint(chars, start, size)
            start += size
            values.append(chars, start, length)
            if length > 0:
                start += length
            if with_headers:
                size = varint_length(chars, start)
                length = varint(chars, start, size)
                headers.append(chars, start + size, length, record_end - start)
            if self._timestamp_type == 1:
                timestamp = self._append_time
            if timestamp > _TIMESTAMP_MAX:
                timestamp = _TIMESTAMP_MAX
            elif timestamp < _TIMESTAMP_MIN:
                timestamp = _TIMESTAMP_MIN
            self._offsets[row] = offset
            self._timestamps[row] = timestamp * 1000
            self._types[row] = self._timestamp_type
            row += 1
            next_offset = offset + 1
            position = record_end
            left -= 1
        self.row_count = row
        self._position = position
        self._left = left
        self.next_offset = next_offset
        if left == 0 and self._last_offset >= next_offset:
            # Offsets whose records compaction took are passed over with the batch.
            self.next_offset = self._last_offset + 1
        return left == 0
