# cython: boundscheck=False, wraparound=False, annotation_typing=False
"""The records inside a batch: one pass that checks them, one that reads them, one that writes them.

The file is plain Python, and with `_record_codec.pxd` beside it also the source of a compiled
module with the same names and results. Invariants: nothing is read before `_scan` has
found it inside the given bounds, so the unchecked reads below it cannot leave the buffer.

Two ways of writing serve both forms. A variable that the .pxd calls a C integer stays within 64
bits here too, by masks or by an explicit check. A variable that it calls a `char` pointer is a
bytes, a bytearray or a memoryview here: indexing gives a number and slicing a copy in both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from moldau.wire.constants import Buffer

if TYPE_CHECKING:

    def memcpy(target: Any, source: Any, size: int) -> None: ...


try:
    import cython
except ImportError:
    # Only the compiler needs the real one, and it does not let its name be assigned.
    globals()["cython"] = SimpleNamespace(compiled=False)

COMPILED: bool = cython.compiled

if not cython.compiled:
    # The compiler takes them from the .pxd, as C.
    from moldau.wire.varint import varint, varint_size, varlong

Headers = tuple[tuple[str, bytes | None], ...]

# What `RecordScan.problem` says. Zero means that the section is sound.
PROBLEMS = (
    "",
    "a variable-length number is longer than allowed or runs past its record",
    "a record is longer than the bytes that are left",
    "a timestamp does not fit 64 bits",
    "a key runs past its record",
    "a value runs past its record",
    "a header count is negative",
    "a header key runs past its record",
    "a header value runs past its record",
    "a record's fields do not fill its length",
    "bytes are left after the last record",
)

_INT32_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1
_INT64_MIN = -_INT64_MAX - 1

_GROWTH_MAX = 2**20


class Record:
    """One record as clients see it; equal when all its fields are."""

    __slots__ = ("headers", "key", "offset", "timestamp", "value")

    def __init__(
        self,
        offset: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
    ) -> None:
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.headers = headers

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return (
            self.offset == other.offset
            and self.timestamp == other.timestamp
            and self.key == other.key
            and self.value == other.value
            and self.headers == other.headers
        )

    def __hash__(self) -> int:
        return hash((self.offset, self.timestamp, self.key, self.value, self.headers))

    def __repr__(self) -> str:
        return (
            f"Record(offset={self.offset}, timestamp={self.timestamp}, key={self.key!r}, "
            f"value={self.value!r}, headers={self.headers!r})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return Record, (self.offset, self.timestamp, self.key, self.value, self.headers)


class RecordScan:
    """What one pass over a records section found.

    `problem` indexes PROBLEMS and concerns record `index`; the other fields are meaningful only
    without a problem. `max_timestamp` is -1 and `max_timestamp_index` -1 when no record has a
    timestamp.
    """

    __slots__ = (
        "bad_timestamp_count",
        "dense",
        "index",
        "last_offset_delta",
        "max_timestamp",
        "max_timestamp_index",
        "null_key_count",
        "problem",
    )

    def __init__(self) -> None:
        self.problem = 0
        self.index = 0
        self.max_timestamp = -1
        self.max_timestamp_index = -1
        self.null_key_count = 0
        self.bad_timestamp_count = 0
        self.dense = True
        self.last_offset_delta = -1


def _scan_headers(data: Buffer, position: int, record_end: int, count: int) -> int:
    """The position after `count` headers, or minus the problem found."""
    for _ in range(count):
        size = varint_size(data, position, record_end, 5)
        if size == 0:
            return -1
        length = varint(data, position, size)
        position += size
        if length < 0 or length > record_end - position:
            return -7
        position += length
        size = varint_size(data, position, record_end, 5)
        if size == 0:
            return -1
        length = varint(data, position, size)
        position += size
        if length > record_end - position:
            return -8
        if length > 0:
            position += length
    return position


def _scan(
    scan: RecordScan,
    data: Buffer,
    position: int,
    end: int,
    record_count: int,
    base_timestamp: int,
    timestamp_min: int,
    timestamp_max: int,
) -> int:
    """Walk the records between `position` and `end`; the problem found, or 0.

    Long, because each field moves the position that the next one starts from, and returning two
    numbers from a helper would cost an object per field where the file is not compiled.
    """
    max_timestamp = -1
    max_timestamp_index = -1
    null_keys = 0
    bad_timestamps = 0
    dense = True
    offset_delta = -1
    for index in range(record_count):
        scan.index = index
        size = varint_size(data, position, end, 5)
        if size == 0:
            return 1
        length = varint(data, position, size)
        position += size
        if length < 1 or length > end - position:
            return 2
        record_end = position + length
        position += 1

        size = varint_size(data, position, record_end, 10)
        if size == 0:
            return 1
        delta = varlong(data, position, size)
        position += size
        if delta > 0:
            if base_timestamp > _INT64_MAX - delta:
                return 3
        elif base_timestamp < _INT64_MIN - delta:
            return 3
        timestamp = base_timestamp + delta
        if timestamp > max_timestamp:
            max_timestamp = timestamp
            max_timestamp_index = index
        if (timestamp < timestamp_min or timestamp > timestamp_max) and timestamp != -1:
            bad_timestamps += 1

        size = varint_size(data, position, record_end, 5)
        if size == 0:
            return 1
        offset_delta = varint(data, position, size)
        position += size
        if offset_delta != index:
            dense = False

        size = varint_size(data, position, record_end, 5)
        if size == 0:
            return 1
        length = varint(data, position, size)
        position += size
        if length > record_end - position:
            return 4
        if length >= 0:
            position += length
        else:
            null_keys += 1

        size = varint_size(data, position, record_end, 5)
        if size == 0:
            return 1
        length = varint(data, position, size)
        position += size
        if length > record_end - position:
            return 5
        if length > 0:
            position += length

        size = varint_size(data, position, record_end, 5)
        if size == 0:
            return 1
        count = varint(data, position, size)
        position += size
        if count < 0:
            return 6
        if count > 0:
            position = _scan_headers(data, position, record_end, count)
            if position < 0:
                return -position
        if position != record_end:
            return 9
    scan.max_timestamp = max_timestamp
    scan.max_timestamp_index = max_timestamp_index
    scan.null_key_count = null_keys
    scan.bad_timestamp_count = bad_timestamps
    scan.dense = dense
    scan.last_offset_delta = offset_delta
    if position != end:
        return 10
    return 0


def validate_records(
    buffer: Buffer,
    position: int,
    end: int,
    record_count: int,
    base_timestamp: int,
    timestamp_min: int = _INT64_MIN,
    timestamp_max: int = _INT64_MAX,
) -> RecordScan:
    """Check the uncompressed records of one batch, which must fill `position` to `end` exactly.

    The scan counts null keys and timestamps outside the limits (-1, no timestamp, is never
    outside) and notes whether the offset deltas are 0, 1, 2 and so on; what those mean is for
    the caller.
    """
    scan = RecordScan()
    if position < 0 or position > end or end > len(buffer):
        raise ValueError(f"bytes {position} to {end} do not lie within {len(buffer)} bytes")
    if cython.compiled:
        if position == end:
            scan.problem = 1 if record_count > 0 else 0
            return scan
        view = buffer
        scan.problem = _scan(
            scan,
            cython.address(view[0]),
            position,
            end,
            record_count,
            base_timestamp,
            timestamp_min,
            timestamp_max,
        )
    else:
        scan.problem = _scan(
            scan,
            buffer,
            position,
            end,
            record_count,
            base_timestamp,
            timestamp_min,
            timestamp_max,
        )
    return scan


def _read_headers(chars: bytes, position: int, count: int) -> Headers:
    """Headers whose bounds the scan has checked."""
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        size = varint_size(chars, position, position + 5, 5)
        length = varint(chars, position, size)
        position += size
        name = chars[position : position + length]
        position += length
        size = varint_size(chars, position, position + 5, 5)
        length = varint(chars, position, size)
        position += size
        # Java puts U+FFFD where a name is not UTF-8; a reader must not stop at it.
        text = name.decode("utf-8", "replace")
        if length < 0:
            headers.append((text, None))
        else:
            headers.append((text, chars[position : position + length]))
            position += length
    return tuple(headers)


def decode_records(
    data: bytes,
    position: int,
    end: int,
    record_count: int,
    base_offset: int,
    base_timestamp: int,
    log_append_time: int | None = None,
) -> list[Record]:
    """Read the records of one batch; ValueError if the section is not sound.

    `log_append_time` is the timestamp of every record where the broker set it.
    """
    if type(data) is not bytes:
        raise TypeError(f"records are decoded from bytes, not {type(data).__name__}")
    scan = validate_records(data, position, end, record_count, base_timestamp)
    if scan.problem:
        raise ValueError(f"record {scan.index}: {PROBLEMS[scan.problem]}")
    chars = data
    records: list[Record] = []
    overridden = log_append_time is not None
    append_time = log_append_time if log_append_time is not None else 0
    for _ in range(record_count):
        position += varint_size(chars, position, end, 5) + 1
        record = Record.__new__(Record)
        size = varint_size(chars, position, end, 10)
        if overridden:
            record.timestamp = append_time
        else:
            record.timestamp = base_timestamp + varlong(chars, position, size)
        position += size
        size = varint_size(chars, position, end, 5)
        record.offset = base_offset + varint(chars, position, size)
        position += size
        size = varint_size(chars, position, end, 5)
        length = varint(chars, position, size)
        position += size
        if length >= 0:
            record.key = chars[position : position + length]
            position += length
        else:
            record.key = None
        size = varint_size(chars, position, end, 5)
        length = varint(chars, position, size)
        position += size
        if length >= 0:
            record.value = chars[position : position + length]
            position += length
        else:
            record.value = None
        size = varint_size(chars, position, end, 5)
        count = varint(chars, position, size)
        position += size
        if count == 0:
            record.headers = ()
        else:
            record.headers = _read_headers(chars, position, count)
            position = _scan_headers(chars, position, end, count)
        records.append(record)
    return records


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


def _put_bytes(out: Any, position: int, content: bytes | None, size: int) -> int:
    """Copy `content`, which has `size` bytes; the position after it."""
    if cython.compiled:
        source = content
        memcpy(out + position, source, size)
    else:
        out[position : position + size] = content
    return position + size


def _encode_headers(headers: Iterable[tuple[str, bytes | None]]) -> bytes:
    """The header count and the headers."""
    pairs = [(name.encode(), None if value is None else bytes(value)) for name, value in headers]
    scratch = bytearray(5)
    out = bytearray(scratch[: _put(scratch, 0, _zigzag(len(pairs)))])
    for encoded, value in pairs:
        out += scratch[: _put(scratch, 0, _zigzag(len(encoded)))]
        out += encoded
        if value is None:
            out.append(1)
        else:
            out += scratch[: _put(scratch, 0, _zigzag(len(value)))]
            out += value
    return bytes(out)


def _as_bytes(content: Any) -> bytes | None:
    if content is None or type(content) is bytes:
        return content
    if isinstance(content, (bytearray, memoryview)):
        return bytes(content)
    raise TypeError(f"keys and values are bytes or None, not {type(content).__name__}")


def encode_records(
    records: Sequence[Any],
    prefix_size: int,
    base_offset: int,
    base_timestamp: int,
) -> tuple[bytearray, int, int]:
    """Write a records section after `prefix_size` zero bytes.

    `records` are `Record` objects, or tuples (key, value, timestamp, headers) that take the
    offsets from `base_offset` on. Returns the bytes, the last offset delta and the largest
    timestamp (-1 each without records).
    """
    out = bytearray(prefix_size + 64 + 64 * len(records))
    capacity = len(out)
    target = out
    position = prefix_size
    delta = -1
    max_timestamp = -1
    remaining = len(records)
    for item in records:
        remaining -= 1
        previous = delta
        if type(item) is tuple:
            key, value, timestamp, headers = item
            delta += 1
        else:
            key = item.key
            value = item.value
            timestamp = item.timestamp
            headers = item.headers
            delta = item.offset - base_offset
            if delta <= previous or delta > _INT32_MAX:
                raise ValueError(
                    f"record offset {item.offset} does not follow in a batch from {base_offset}"
                )
        if type(key) is not bytes and key is not None:
            key = _as_bytes(key)
        if type(value) is not bytes and value is not None:
            value = _as_bytes(value)
        key_size = -1 if key is None else len(key)
        value_size = -1 if value is None else len(value)
        tail = _encode_headers(headers) if headers else b"\x00"
        tail_size = len(tail)
        if timestamp < -1:
            raise ValueError(f"timestamp {timestamp} is negative; -1 means none")
        if timestamp > _INT64_MAX:
            raise OverflowError(f"timestamp {timestamp} does not fit 64 bits")
        if timestamp > max_timestamp:
            max_timestamp = timestamp
        if base_timestamp < 0 and timestamp > _INT64_MAX + base_timestamp:
            raise OverflowError(
                f"timestamp {timestamp} lies too far from the batch's first, {base_timestamp}"
            )
        time_delta = _zigzag(timestamp - base_timestamp)
        size = 1 + _size_of(time_delta) + _size_of(_zigzag(delta)) + tail_size
        size += _size_of(_zigzag(key_size)) + _size_of(_zigzag(value_size))
        if key_size > 0:
            size += key_size
        if value_size > 0:
            size += value_size
        if size > _INT32_MAX - 5 - position:
            raise OverflowError("the records of one batch take less than 2 GiB")
        if position + 5 + size > capacity:
            # Room for as many records of this size as may come, within reason.
            growth = min((size + 5) * remaining, _GROWTH_MAX)
            out.extend(bytes(max(growth, capacity) + size + 5))
            capacity = len(out)
            target = out
        position = _put(target, position, _zigzag(size))
        target[position] = 0
        position = _put(target, position + 1, time_delta)
        position = _put(target, position, _zigzag(delta))
        position = _put(target, position, _zigzag(key_size))
        if key_size > 0:
            position = _put_bytes(target, position, key, key_size)
        position = _put(target, position, _zigzag(value_size))
        if value_size > 0:
            position = _put_bytes(target, position, value, value_size)
        position = _put_bytes(target, position, tail, tail_size)
    del out[position:]
    return out, delta, max_timestamp
