"""Metrics as OpenTelemetry's OTLP bytes, which brokers hand on to collectors.

Pure. A protobuf message is written by hand here: the seven messages that are needed, of which only
the used fields, take fewer lines than the library's generated classes would take to import.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

__all__ = ["Decoded", "Point", "decode_metrics", "encode_metrics", "telemetry_name"]

_DOMAIN = "org.apache.kafka"
_DELTA, _CUMULATIVE = 1, 2
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_DOUBLE = struct.Struct("<d")
_LONG = struct.Struct("<q")
_NANOS_PER_MS = 1_000_000
# The broker knows it from the request.
_LEFT_OUT_TAG = "client_id"


class Point(NamedTuple):
    """A value at a time. A sum has the time from which on it counts, a gauge has none."""

    name: str
    tags: Mapping[str, str]
    value: int | float
    time_ms: int
    start_ms: int | None = None
    is_delta: bool = False


def telemetry_name(group: str, name: str) -> str:
    """The name of a metric for collectors: `org.apache.kafka.producer.batch.size.avg`."""
    group = group.lower().replace("-", ".").replace(".metrics", "")
    return f"{_DOMAIN}.{group}.{name.lower().replace('-', '.')}"


def encode_metrics(points: Iterable[Point], labels: Mapping[str, str]) -> bytes:
    """A MetricsData of one resource, which the labels describe."""
    resource = b"".join(_field(1, _attribute(key, value)) for key, value in labels.items())
    scope = b"".join(_field(2, _metric(point)) for point in points)
    return _field(1, _field(1, resource) + _field(2, scope))


def _metric(point: Point) -> bytes:
    data = _field(1, _data_point(point))
    name = _field(1, point.name.encode())
    if point.start_ms is None:
        return name + _field(5, data)
    temporality = bytes([_DELTA if point.is_delta else _CUMULATIVE])
    is_monotonic = b"\1"
    sum_ = data + _key(2, _VARINT) + temporality + _key(3, _VARINT) + is_monotonic
    return name + _field(7, sum_)


def _data_point(point: Point) -> bytes:
    out = bytearray()
    if point.start_ms is not None:
        out += _key(2, _FIXED64) + _LONG.pack(point.start_ms * _NANOS_PER_MS)
    out += _key(3, _FIXED64) + _LONG.pack(point.time_ms * _NANOS_PER_MS)
    if isinstance(point.value, int):
        out += _key(6, _FIXED64) + _LONG.pack(point.value)
    else:
        out += _key(4, _FIXED64) + _DOUBLE.pack(point.value)
    for key, value in point.tags.items():
        key = key.lower().replace("-", "_")
        if key != _LEFT_OUT_TAG:
            out += _field(7, _attribute(key, value))
    return bytes(out)


def _attribute(key: str, value: str) -> bytes:
    return _field(1, key.encode()) + _field(2, _field(1, value.encode()))


def _field(number: int, data: bytes) -> bytes:
    return _key(number, _BYTES) + _varint(len(data)) + data


def _key(number: int, wire_type: int) -> bytes:
    return bytes([number << 3 | wire_type])


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class Decoded(NamedTuple):
    """A value that was read from OTLP bytes."""

    name: str
    tags: Mapping[str, str]
    value: float


def decode_metrics(data: bytes) -> list[Decoded]:
    """The numbers in a MetricsData: gauges and sums, and the counts and sums of histograms.

    ValueError if the bytes are not OTLP. Attributes of the resource are added to the tags.
    """
    try:
        return list(_decode(data))
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise ValueError(f"not the bytes of OTLP metrics: {error}") from None


def _decode(data: bytes) -> Iterator[Decoded]:
    for resource_metrics in _parts(data, 1):
        tags: dict[str, str] = {}
        for resource in _parts(resource_metrics, 1):
            tags |= _tags(resource, 1)
        for scope in _parts(resource_metrics, 2):
            for metric in _parts(scope, 2):
                name = next(_parts(metric, 1), b"").decode()
                for number in (5, 7):
                    for kind in _parts(metric, number):
                        for point in _parts(kind, 1):
                            yield Decoded(name, tags | _tags(point, 7), _number(point))
                for kind in _parts(metric, 9):
                    for point in _parts(kind, 1):
                        found = dict(_fixed(point))
                        labels = tags | _tags(point, 9)
                        yield Decoded(f"{name}.count", labels, _LONG.unpack(found[4])[0])
                        if 5 in found:
                            yield Decoded(f"{name}.sum", labels, _DOUBLE.unpack(found[5])[0])


def _number(point: bytes) -> float:
    for number, value in _fixed(point):
        if number == 4:
            return float(_DOUBLE.unpack(value)[0])
        if number == 6:
            return int(_LONG.unpack(value)[0])
    return 0


def _tags(data: bytes, number: int) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in _parts(data, number):
        key = next(_parts(pair, 1), b"").decode()
        value = next(_parts(pair, 2), b"")
        text = next(_parts(value, 1), None)
        if text is not None:
            found[key] = text.decode()
        else:
            found[key] = str(next((n for field, _, n in _fields(value) if field == 3), ""))
    return found


def _parts(data: bytes, number: int) -> Iterator[bytes]:
    for field, wire_type, value in _fields(data):
        if field == number and wire_type == _BYTES and isinstance(value, bytes):
            yield value


def _fixed(data: bytes) -> Iterator[tuple[int, bytes]]:
    for field, wire_type, value in _fields(data):
        if wire_type == _FIXED64 and isinstance(value, bytes):
            yield field, value


def _fields(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Each field's number, wire type and value."""
    position = 0
    while position < len(data):
        key, position = _read_varint(data, position)
        wire_type = key & 7
        if wire_type == _VARINT:
            number, position = _read_varint(data, position)
            yield key >> 3, wire_type, number
            continue
        if wire_type == _BYTES:
            size, position = _read_varint(data, position)
        elif wire_type == _FIXED64:
            size = 8
        elif wire_type == _FIXED32:
            size = 4
        else:
            raise IndexError(f"wire type {wire_type}")
        if position + size > len(data):
            raise IndexError("it ends early")
        yield key >> 3, wire_type, data[position : position + size]
        position += size


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 63:
            raise IndexError("a number is too long")
