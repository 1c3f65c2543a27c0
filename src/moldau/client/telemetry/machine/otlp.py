"""Metrics as OpenTelemetry's OTLP bytes, which brokers hand on to collectors.

Pure. A protobuf message is written by hand here: the seven messages that are needed, of which only
the used fields, take fewer lines than the library's generated classes would take to import.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import NamedTuple

__all__ = ["Point", "encode_metrics", "telemetry_name"]

_DOMAIN = "org.apache.kafka"
_DELTA, _CUMULATIVE = 1, 2
_VARINT, _FIXED64, _BYTES = 0, 1, 2
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
