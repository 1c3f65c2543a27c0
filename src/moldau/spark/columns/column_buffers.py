"""The buffers of Arrow columns, before anything of Arrow's is put around them."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["BinaryColumn", "Columns", "HeaderColumn"]


class BinaryColumn(NamedTuple):
    """`data` is cut by `row_count + 1` int32 `ends`; `validity` is None where nothing is null."""

    validity: bytearray | None
    ends: bytearray
    data: bytearray
    size: int
    null_count: int


class HeaderColumn(NamedTuple):
    """Lists, cut by `row_count + 1` int32 `ends` out of `pair_count` names and values."""

    validity: bytearray | None
    ends: bytearray
    null_count: int
    pair_count: int
    names: BinaryColumn
    values: BinaryColumn


class Columns(NamedTuple):
    """The buffers of `row_count` rows; each may be longer than the rows need."""

    row_count: int
    key: BinaryColumn
    value: BinaryColumn
    #: int64, int64 in microseconds, and int32: 0 for the producer's time, 1 for the broker's.
    offsets: bytearray
    timestamps: bytearray
    timestamp_types: bytearray
    headers: HeaderColumn | None
