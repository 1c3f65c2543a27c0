# cython: boundscheck=False, wraparound=False, annotation_typing=False
"""The rows of an Arrow batch go into the producer's open batches; no object is made per row.

Decided here: the partition of a row (its own, murmur2 of its key, or the sticky one) and whether
its record fits the batch that is open there. Invariants: rows are taken in order, and where
one does not fit, or has no open batch, this stops before it: it goes the producer's ordinary way,
which opens the next batch. The digest does not depend on the order of rows, nor on partitions and
timestamps: the same rows always have the same one.

The file is plain Python, and with `_rows.pxd` beside it also the source of a compiled module with
the same names and results, written as `moldau.wire._record_codec` is.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from moldau.client.producer._murmur2 import murmur2
from moldau.wire.constants import Buffer

if TYPE_CHECKING:

    def memcpy(target: Any, source: Any, size: int) -> None: ...


try:
    import cython
except ImportError:
    # Only the compiler needs the real one, and it does not let its name be assigned.
    globals()["cython"] = SimpleNamespace(compiled=False)

COMPILED: bool = cython.compiled


_MASK_64 = 0xFFFF_FFFF_FFFF_FFFF
_POSITIVE = 0x7FFF_FFFF
# About what a record without headers takes beside key and value, -1 for each that is null.
_RECORD_OVERHEAD = 10
# Odd numbers without a pattern, as multipliers.
_MIX_1 = 0x9E37_79B9_7F4A_7C15
_MIX_2 = 0xC2B2_AE3D_27D4_EB4F
_NO_HEADERS = b"\x00"
# Stand for buffers that are not there, for something must be pointed to.
_FILLER = b"\xff"
_EIGHT = bytes(8)


def _chars(view: Any) -> Any:
    """What can be pointed into; never of an empty buffer."""
    if cython.compiled:
        return cython.address(view[0])
    return view


def _int32s(view: Any) -> Any:
    """The same as numbers of 4 bytes, which stay where they are."""
    if cython.compiled:
        return cython.cast("const int *", cython.address(view[0]))
    return memoryview(view).cast("B").cast("i")


def _int64s(view: Any) -> Any:
    if cython.compiled:
        return cython.cast("const long long *", cython.address(view[0]))
    return memoryview(view).cast("B").cast("q")


class Validity:
    """Which values are not null; without a buffer none is."""

    def __init__(self, buffer: Buffer | None, offset: int) -> None:
        self._offset = offset
        self._has_nulls = buffer is not None
        self._owner: Any = _FILLER if buffer is None else buffer
        self._bits = _chars(self._owner)

    def is_null(self, row: int) -> bool:
        if not self._has_nulls:
            return False
        position = row + self._offset
        return not (self._bits[position >> 3] >> (position & 7)) & 1


class BinaryInput:
    """A column of bytes or text: `data` is cut by int32 `ends`, of which the first is at
    `offset`."""

    def __init__(
        self, validity: Buffer | None, ends: Buffer, data: Buffer | None, offset: int
    ) -> None:
        self._validity = Validity(validity, offset)
        self._offset = offset
        self._ends_owner: Any = ends
        self._ends = _int32s(self._ends_owner)
        # Where every value is empty there need not be any data.
        self._data_owner: Any = data if data is not None and len(data) else _FILLER
        self.data = _chars(self._data_owner)

    def start(self, row: int) -> int:
        position: int = self._ends[row + self._offset]
        return position

    def length(self, row: int) -> int:
        """-1 for null."""
        if self._validity.is_null(row):
            return -1
        place = row + self._offset
        size: int = self._ends[place + 1] - self._ends[place]
        return size

    def value(self, row: int) -> bytes | None:
        length = self.length(row)
        if length < 0:
            return None
        start = self.start(row)
        return bytes(self.data[start : start + length])


class NumberInput:
    """A column of int32, or of int64 if `is_wide`."""

    def __init__(
        self, validity: Buffer | None, numbers: Buffer, offset: int, *, is_wide: bool
    ) -> None:
        self._validity = Validity(validity, offset)
        self._offset = offset
        self._is_wide = is_wide
        self._owner: Any = numbers
        self._narrow = _int32s(self._owner)
        self._wide = _int64s(self._owner if is_wide else _EIGHT)

    def is_null(self, row: int) -> bool:
        return self._validity.is_null(row)

    def number(self, row: int) -> int:
        place = row + self._offset
        found: int = self._wide[place] if self._is_wide else self._narrow[place]
        return found


class HeaderInput:
    """A column of lists of names and values."""

    def __init__(
        self,
        validity: Buffer | None,
        ends: Buffer,
        offset: int,
        names: BinaryInput,
        values: BinaryInput,
    ) -> None:
        self._validity = Validity(validity, offset)
        self._offset = offset
        self._owner: Any = ends
        self._ends = _int32s(self._owner)
        self._names = names
        self._values = values
        #: The count of a row's headers and the headers, as a batch has them.
        self.tail = bytearray(_NO_HEADERS)
        self.tail_size = 1

    def encode(self, row: int) -> None:
        """Write the tail of a row's record."""
        self.tail_size = 0
        first = self._ends[row + self._offset]
        last = self._ends[row + self._offset + 1]
        if self._validity.is_null(row):
            last = first
        self._put_number(last - first)
        for index in range(first, last):
            self._put_value(self._names, index)
            self._put_value(self._values, index)

    def _put_number(self, number: int) -> None:
        if self.tail_size + 10 > len(self.tail):
            self.tail.extend(bytes(len(self.tail) + 10))
        unsigned = (number << 1) ^ (number >> 63)
        while unsigned > 127:
            self.tail[self.tail_size] = (unsigned & 127) | 128
            unsigned >>= 7
            self.tail_size += 1
        self.tail[self.tail_size] = unsigned
        self.tail_size += 1

    def _put_value(self, column: BinaryInput, index: int) -> None:
        length = column.length(index)
        self._put_number(length)
        if length > 0:
            size = self.tail_size
            if size + length > len(self.tail):
                self.tail.extend(bytes(len(self.tail) + length))
            start = column.start(index)
            target: Any = self.tail
            if cython.compiled:
                memcpy(target + size, column.data + start, length)
            else:
                target[size : size + length] = column.data[start : start + length]
            self.tail_size = size + length

    def pairs(self, row: int) -> list[tuple[str, bytes | None]]:
        """A row's headers as a producer takes them."""
        if self._validity.is_null(row):
            return []
        first = self._ends[row + self._offset]
        last = self._ends[row + self._offset + 1]
        return [
            ((self._names.value(index) or b"").decode(), self._values.value(index))
            for index in range(first, last)
        ]


class Rows:
    """The columns of one Arrow batch; those that it does not have are None.

    `topics` are indexes into the places that `RowAppender.append` is given; without them all rows
    go to the first place. `timestamps` are milliseconds, `now_ms` is for rows without one.
    """

    def __init__(
        self,
        row_count: int,
        *,
        key: BinaryInput | None,
        value: BinaryInput | None,
        headers: HeaderInput | None,
        topics: NumberInput | None,
        partitions: NumberInput | None,
        timestamps: NumberInput | None,
        now_ms: int,
    ) -> None:
        self.row_count = row_count
        self.key = key
        self.value = value
        self.headers = headers
        self.topics = topics
        self.partitions = partitions
        self.timestamps = timestamps
        self.now_ms = now_ms

    def topic_index(self, row: int) -> int:
        return 0 if self.topics is None else self.topics.number(row)

    def timestamp(self, row: int) -> int:
        if self.timestamps is None or self.timestamps.is_null(row):
            return self.now_ms
        return self.timestamps.number(row)

    def record(self, row: int) -> tuple[Any, ...]:
        """Key, value, partition or None, timestamp and headers: for the ordinary way."""
        partition = None
        if self.partitions is not None and not self.partitions.is_null(row):
            partition = self.partitions.number(row)
        return (
            None if self.key is None else self.key.value(row),
            None if self.value is None else self.value.value(row),
            partition,
            self.timestamp(row),
            None if self.headers is None else self.headers.pairs(row),
        )


class Slot:
    """A partition's open batch, and which rows its records came from."""

    def __init__(self, batch: Any) -> None:
        self.batch = batch
        self.builder = batch.builder
        self._numbers = bytearray(64)
        self._count = 0

    def note(self, number: int) -> None:
        """The next record is row `number` of all that were ever written."""
        size = 8 * self._count
        if size + 8 > len(self._numbers):
            self._numbers.extend(bytes(len(self._numbers)))
        if cython.compiled:
            target = self._numbers
            cython.cast("long long *", target)[self._count] = number
        else:
            self._numbers[size : size + 8] = number.to_bytes(8, "little")
        self._count += 1

    def row(self, index: int) -> int:
        """Where record `index` came from; the last known one for an index beyond."""
        position = 8 * max(0, min(index, self._count - 1))
        return int.from_bytes(self._numbers[position : position + 8], "little")


class Place:
    """A topic, as far as rows are concerned: its partitions' open batches."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        name = topic.encode()
        chars = name
        self._seed = _checksum(chars, 0, len(name), 0)
        self.partition_count = 0
        self.slots: list[Slot | None] = []
        #: Where rows without a key go, and the bytes that went there; -1 before there is one.
        self.sticky_partition = -1
        self.sticky_size = 0

    def update(self, partition_count: int, sticky_partition: int) -> None:
        """As the producer has it now."""
        if partition_count != self.partition_count:
            self.slots = self.slots[:partition_count]
            self.slots.extend([None] * (partition_count - len(self.slots)))
            self.partition_count = partition_count
        self.sticky_partition = sticky_partition
        self.sticky_size = 0


class RowAppender:
    """Appends rows; `row_number` counts them, `digest` sums their checksums if `digests`."""

    def __init__(self, *, digests: bool, ignore_keys: bool) -> None:
        self._digests = digests
        self._ignore_keys = ignore_keys
        self.row_number = 0
        self.digest = 0

    def append(self, rows: Rows, first: int, places: list[Place]) -> int:
        """Append the rows from `first` on; the row that this stopped at, or their number."""
        place = places[0]
        for row in range(first, rows.row_count):
            if rows.topics is not None:
                place = places[rows.topic_index(row)]
            if not self._append(rows, row, place):
                return row
            self.count(rows, row, place)
        return rows.row_count

    def _append(self, rows: Rows, row: int, place: Place) -> bool:
        """Whether there was an open batch with room for a row's record."""
        key: Any = rows.key
        value: Any = rows.value
        headers: Any = rows.headers
        key_size = -1 if key is None else key.length(row)
        value_size = -1 if value is None else value.length(row)
        is_sticky = False
        if rows.partitions is not None and not rows.partitions.is_null(row):
            number = rows.partitions.number(row)
        elif key_size >= 0 and not self._ignore_keys:
            number = self._partition(key, key.start(row), key_size, place.partition_count)
        else:
            number = place.sticky_partition
            is_sticky = True
        if number < 0 or number >= place.partition_count:
            return False
        slot = place.slots[number]
        # A batch that was sent and acknowledged at once has no builder any more.
        if slot is None or slot.builder is None:
            return False
        if cython.compiled:
            key_chars: Any = _NO_HEADERS
            value_chars: Any = _NO_HEADERS
            tail: Any = _NO_HEADERS
            tail_size = 1
            if key_size > 0:
                key_chars = key.data + key.start(row)
            if value_size > 0:
                value_chars = value.data + value.start(row)
            if headers is not None:
                headers.encode(row)
                tail_bytes = headers.tail
                tail = tail_bytes
                tail_size = headers.tail_size
            index = slot.builder.append_chars(
                rows.timestamp(row), key_chars, key_size, value_chars, value_size, tail, tail_size
            )
        else:
            key_bytes, value_bytes, _, timestamp, pairs = rows.record(row)
            index = slot.builder.append(timestamp, key_bytes, value_bytes, pairs)
        if index < 0:
            return False
        slot.note(self.row_number)
        if is_sticky:
            place.sticky_size += key_size + value_size + _RECORD_OVERHEAD
        return True

    def _partition(self, key: BinaryInput, start: int, size: int, partition_count: int) -> int:
        if partition_count == 0:
            return -1
        if cython.compiled:
            hashed = murmur2_chars(key.data + start, size)  # type: ignore[name-defined]  # noqa: F821
        else:
            hashed = murmur2(bytes(key.data[start : start + size]))
        number: int = (hashed & _POSITIVE) % partition_count
        return number

    def count(self, rows: Rows, row: int, place: Place) -> None:
        """A row became a record, here or the ordinary way."""
        self.row_number += 1
        if not self._digests:
            return
        checksum = place._seed
        nothing = _NO_HEADERS
        if rows.key is not None:
            checksum = _column_checksum(rows.key, row, checksum)
        else:
            checksum = _checksum(nothing, 0, -1, checksum)
        if rows.value is not None:
            checksum = _column_checksum(rows.value, row, checksum)
        else:
            checksum = _checksum(nothing, 0, -1, checksum)
        headers = rows.headers
        if headers is not None:
            headers.encode(row)
            if headers.tail_size > 1:
                tail = headers.tail
                checksum = _checksum(tail, 0, headers.tail_size, checksum)
        self.digest = (self.digest + checksum) & _MASK_64


def _column_checksum(column: BinaryInput, row: int, seed: int) -> int:
    length = column.length(row)
    return _checksum(column.data, column.start(row) if length > 0 else 0, length, seed)


def _checksum(data: Any, position: int, length: int, seed: int) -> int:
    """64 bits of `length` bytes, -1 for null, and of what came before them."""
    mixed = (seed ^ ((length + 1) * _MIX_1)) & _MASK_64
    other = mixed ^ _MIX_2
    end = position + length
    # Two at a time, for each step waits for the one before it.
    while position + 16 <= end:
        mixed = ((mixed ^ _word(data, position)) * _MIX_2) & _MASK_64
        other = ((other ^ _word(data, position + 8)) * _MIX_1) & _MASK_64
        mixed ^= mixed >> 29
        other ^= other >> 31
        position += 16
    while position < end:
        mixed = ((mixed ^ data[position]) * _MIX_2) & _MASK_64
        mixed ^= mixed >> 29
        position += 1
    mixed = ((mixed ^ (other >> 17) ^ other) * _MIX_1) & _MASK_64
    return mixed ^ (mixed >> 32)


def _word(data: Any, position: int) -> int:
    """Eight bytes as a number."""
    if cython.compiled:
        word = 0
        memcpy(cython.address(word), data + position, 8)
        return word
    return int.from_bytes(data[position : position + 8], "little")
